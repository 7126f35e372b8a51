noinst_LTLIBRARIES += runtime/libwire.la runtime/libruntime.la
lib_LTLIBRARIES += runtime/libdtrun.la
include_HEADERS += runtime/dtrun.h runtime/dtrun_tune.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runtime/dtrun.pc
EXTRA_DIST += runtime/libdtrun.map

runtime_libwire_la_SOURCES = \
	runtime/wire/auth.c runtime/wire/auth.h \
	runtime/wire/codec.c runtime/wire/codec.h \
	runtime/wire/dataframe.c runtime/wire/dataframe.h \
	runtime/wire/env.h \
	runtime/wire/frame.c runtime/wire/frame.h \
	runtime/wire/handshake.c runtime/wire/handshake.h \
	runtime/wire/hostshm.c runtime/wire/hostshm.h \
	runtime/wire/inet.c runtime/wire/inet.h \
	runtime/wire/msg.c runtime/wire/msg.h \
	runtime/wire/rankmsg.c runtime/wire/rankmsg.h \
	runtime/wire/sealed.c runtime/wire/sealed.h
runtime_libwire_la_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)

# All of libdtrun, with every symbol visible: the unit tests link this.
runtime_libruntime_la_SOURCES = \
	runtime/agentenv.c runtime/agentenv.h \
	runtime/agentlink.c runtime/agentlink.h \
	runtime/async.c runtime/async.h \
	runtime/blame.c runtime/blame.h \
	runtime/bucket.c \
	runtime/checkpoint/checkpoint.c runtime/checkpoint/checkpoint.h \
	runtime/checkpoint/checksum.c runtime/checkpoint/checksum.h \
	runtime/checkpoint/file.c runtime/checkpoint/file.h \
	runtime/checkpoint/format.c runtime/checkpoint/format.h \
	runtime/checkpoint/group.c runtime/checkpoint/group.h \
	runtime/checkpoint/names.c runtime/checkpoint/names.h \
	runtime/checkpoint/owner.c runtime/checkpoint/owner.h \
	runtime/checkpoint/restore.c \
	runtime/checkpoint/save.c \
	runtime/checkpoint/shard.c runtime/checkpoint/shard.h \
	runtime/checkpoint/store.c runtime/checkpoint/store.h \
	runtime/calls.c runtime/calls.h \
	runtime/checks.c runtime/checks.h \
	runtime/collective.c runtime/collective.h \
	runtime/comm.c runtime/comm.h \
	runtime/communicators.c \
	runtime/config.c runtime/config.h \
	runtime/context.c runtime/context.h \
	runtime/copy.c runtime/copy.h \
	runtime/dtype.c runtime/dtype.h \
	runtime/dump.c runtime/dump.h \
	runtime/lastcalls.c runtime/lastcalls.h \
	runtime/error.c runtime/error.h \
	runtime/futex.h \
	runtime/gpu/arena.c runtime/gpu/arena.h \
	runtime/gpu/copies.c runtime/gpu/copies.h \
	runtime/gpu/errand.c runtime/gpu/errand.h \
	runtime/gpu/extents.c runtime/gpu/extents.h \
	runtime/gpu/fold.h runtime/gpu/fold_ptx.c \
	runtime/gpu/folder.c runtime/gpu/folder.h \
	runtime/gpu/gpu.c runtime/gpu/gpu.h \
	runtime/gpu/groups.c runtime/gpu/groups.h \
	runtime/gpu/launchorder.c runtime/gpu/launchorder.h \
	runtime/gpu/memory.c runtime/gpu/memory.h \
	runtime/gpu/nccl.c runtime/gpu/nccl.h \
	runtime/gpu/ncclcalls.c runtime/gpu/ncclcalls.h \
	runtime/gpu/offer.c runtime/gpu/offer.h \
	runtime/gpu/order.c runtime/gpu/order.h \
	runtime/gpu/pass.c runtime/gpu/pass.h \
	runtime/gpu/pinned.c runtime/gpu/pinned.h \
	runtime/gpu/shared.c runtime/gpu/shared.h \
	runtime/gpu/sharedopen.c runtime/gpu/sharedopen.h \
	runtime/gpu/staging.c runtime/gpu/staging.h \
	runtime/gpu/steps.c runtime/gpu/steps.h \
	runtime/gpu/wait.c runtime/gpu/wait.h \
	runtime/gpu/words.c runtime/gpu/words.h \
	runtime/host/adasum.c runtime/host/adasum.h \
	runtime/host/alarm.c runtime/host/alarm.h \
	runtime/host/blocks.h \
	runtime/host/clock.h \
	runtime/host/cma.c runtime/host/cma.h \
	runtime/host/cut.c runtime/host/cut.h \
	runtime/host/door.c runtime/host/door.h \
	runtime/host/flow.c runtime/host/flow.h \
	runtime/host/kernels/body.h runtime/host/kernels/kernels.h \
	runtime/host/kernels/packing.h \
	runtime/host/kernels/plain.c \
	runtime/host/handover.c runtime/host/handover.h \
	runtime/host/lanereduce.c runtime/host/lanereduce.h \
	runtime/host/lanes.c runtime/host/lanes.h \
	runtime/host/least.h \
	runtime/host/meet.c runtime/host/meet.h \
	runtime/host/mesh.c runtime/host/mesh.h \
	runtime/host/move.c runtime/host/move.h \
	runtime/host/movement.c runtime/host/movement.h \
	runtime/host/narrow.c runtime/host/narrow.h \
	runtime/host/pipe.c runtime/host/pipe.h \
	runtime/host/reduce.c runtime/host/reduce.h \
	runtime/host/roster.c runtime/host/roster.h \
	runtime/host/rounds.c runtime/host/rounds.h \
	runtime/host/segment.c runtime/host/segment.h \
	runtime/host/shm.c runtime/host/shm.h \
	runtime/host/chunk.c runtime/host/chunk.h \
	runtime/host/reduceopen.c runtime/host/reduceopen.h \
	runtime/host/shmmove.c runtime/host/shmmove.h \
	runtime/host/stream.c runtime/host/stream.h \
	runtime/host/tally.c runtime/host/tally.h \
	runtime/host/trouble.c runtime/host/trouble.h \
	runtime/host/ringgather.c runtime/host/ringgather.h \
	runtime/host/twolevel.c runtime/host/twolevel.h \
	runtime/host/width.c runtime/host/width.h \
	runtime/host/wireformat.c runtime/host/wireformat.h \
	runtime/joining.c runtime/joining.h \
	runtime/memory.c \
	runtime/operation.c runtime/operation.h \
	runtime/pair.c \
	runtime/pairnotes.c runtime/pairnotes.h \
	runtime/parentrank.c runtime/parentrank.h \
	runtime/parcels.c runtime/parcels.h \
	runtime/parts.c \
	runtime/recorder.c runtime/recorder.h \
	runtime/reduceoptions.c runtime/reduceoptions.h \
	runtime/request.c runtime/request.h \
	runtime/rooted.c \
	runtime/slots.c runtime/slots.h \
	runtime/split.c runtime/split.h \
	runtime/stamped.c runtime/stamped.h \
	runtime/ticketlock.c runtime/ticketlock.h \
	runtime/tuning.c runtime/tuning.h \
	runtime/tuningfile.c runtime/tuningfile.h \
	runtime/uneven.c runtime/uneven.h \
	runtime/ways.c runtime/ways.h \
	runtime/world.c runtime/world.h
runtime_libruntime_la_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS) $(XXHASH_CFLAGS)
runtime_libruntime_la_LIBADD = runtime/libwire.la runtime/libgpufound.la

# The kernels of one instruction set each are compiled for it.
EXTRA_DIST += runtime/host/kernels/avx2.c runtime/host/kernels/avx512.c runtime/host/kernels/neon.c
if X86_64
noinst_LTLIBRARIES += runtime/libavx2.la runtime/libavx512.la
runtime_libavx2_la_SOURCES = runtime/host/kernels/avx2.c
runtime_libavx2_la_CFLAGS = $(AM_CFLAGS) -mavx2 -mf16c
runtime_libavx512_la_SOURCES = runtime/host/kernels/avx512.c
runtime_libavx512_la_CFLAGS = $(AM_CFLAGS) -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl \
	-mprefer-vector-width=512
runtime_libruntime_la_LIBADD += runtime/libavx2.la runtime/libavx512.la
endif
if AARCH64
runtime_libruntime_la_SOURCES += runtime/host/kernels/neon.c
endif

# fold_ptx.c is kept, so that a build needs no nvcc. This makes it again after a change of the kernel.
EXTRA_DIST += runtime/gpu/fold.cu runtime/gpu/fold_kernel.h runtime/gpu/fold_ptx.sh
fold-ptx:
	sh $(srcdir)/runtime/gpu/fold_ptx.sh $(srcdir) > fold_ptx.tmp
	mv fold_ptx.tmp $(srcdir)/runtime/gpu/fold_ptx.c

# What is on the machine, for libdtrun and for dtrun --check-build.
noinst_LTLIBRARIES += runtime/libgpufound.la
runtime_libgpufound_la_SOURCES = \
	runtime/gpu/abi_cuda.h runtime/gpu/abi_nccl.h \
	runtime/gpu/cuda.c runtime/gpu/cuda.h \
	runtime/gpu/ncclapi.c runtime/gpu/ncclapi.h \
	runtime/gpu/ncclconf.c runtime/gpu/ncclconf.h

runtime_libdtrun_la_SOURCES =
runtime_libdtrun_la_LIBADD = runtime/libruntime.la $(SODIUM_STATIC_LIBS)
# The library stays in memory after dlclose(3): its threads may still be running its code.
runtime_libdtrun_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,defs -Wl,-z,nodelete \
	-Wl,--version-script=$(top_srcdir)/runtime/libdtrun.map
EXTRA_runtime_libdtrun_la_DEPENDENCIES = runtime/libdtrun.map
