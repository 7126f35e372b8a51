noinst_LIBRARIES += runtime/libwire.a runtime/libruntime.a
lib_LTLIBRARIES += runtime/libdtrun.la
include_HEADERS += runtime/dtrun.h runtime/dtrun_tune.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runtime/dtrun.pc
EXTRA_DIST += runtime/libdtrun.map

runtime_libwire_a_SOURCES = \
	runtime/wire/auth.c runtime/wire/auth.h \
	runtime/wire/callkind.c runtime/wire/callkind.h \
	runtime/wire/codec.c runtime/wire/codec.h \
	runtime/wire/dataframe.c runtime/wire/dataframe.h \
	runtime/wire/env.h \
	runtime/wire/frame.c runtime/wire/frame.h \
	runtime/wire/handshake.c runtime/wire/handshake.h \
	runtime/wire/highfd.h \
	runtime/wire/hostshm.c runtime/wire/hostshm.h \
	runtime/wire/inet.c runtime/wire/inet.h \
	runtime/wire/msg.c runtime/wire/msg.h \
	runtime/wire/ncclfile.h \
	runtime/wire/nccllib.c runtime/wire/nccllib.h \
	runtime/wire/page.h \
	runtime/wire/rankmsg.c runtime/wire/rankmsg.h \
	runtime/wire/sealed.c runtime/wire/sealed.h \
	runtime/wire/thread.c runtime/wire/thread.h \
	runtime/wire/writeall.c runtime/wire/writeall.h
runtime_libwire_a_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
runtime_libwire_a_CFLAGS = $(AM_CFLAGS) -fPIC

# All of libdtrun, with every symbol visible: unit tests link this.
runtime_libruntime_a_SOURCES = \
	runtime/api/allgather.c \
	runtime/api/allreduce.c runtime/api/allreduce.h \
	runtime/api/alltoall.c \
	runtime/api/barrier.c \
	runtime/api/broadcast.c \
	runtime/api/bucket.c \
	runtime/api/bucket_slots.c runtime/api/bucket_slots.h \
	runtime/api/bucket_task.c runtime/api/bucket_task.h \
	runtime/api/checks.c runtime/api/checks.h \
	runtime/api/communicators.c \
	runtime/api/context.c runtime/api/context.h \
	runtime/api/create.c runtime/api/create.h \
	runtime/api/enqueue.c runtime/api/enqueue.h \
	runtime/api/gather_scatter.c \
	runtime/api/join.c runtime/api/join.h \
	runtime/api/memory.c \
	runtime/api/operation.c runtime/api/operation.h \
	runtime/api/process.c \
	runtime/api/reduce.c \
	runtime/api/request.c runtime/api/request.h \
	runtime/api/sendrecv.c \
	runtime/api/split.c runtime/api/split.h \
	runtime/api/view.c runtime/api/view.h \
	runtime/base/blocks.c runtime/base/blocks.h \
	runtime/base/checksum.c runtime/base/checksum.h \
	runtime/base/clock.h \
	runtime/base/coll_error.c runtime/base/coll_error.h \
	runtime/base/copy.c runtime/base/copy.h \
	runtime/base/count_check.c runtime/base/count_check.h \
	runtime/base/error.c runtime/base/error.h \
	runtime/base/file.c runtime/base/file.h \
	runtime/base/futex.h \
	runtime/base/inflight.h \
	runtime/base/gpupath.c runtime/base/gpupath.h \
	runtime/base/min.h \
	runtime/base/reduceoptions.c runtime/base/reduceoptions.h \
	runtime/base/ticketlock.c runtime/base/ticketlock.h \
	runtime/base/tuning.c runtime/base/tuning.h \
	runtime/base/tuningfile.c runtime/base/tuningfile.h \
	runtime/base/versioned_struct.c runtime/base/versioned_struct.h \
	runtime/checkpoint/background.c runtime/checkpoint/background.h \
	runtime/checkpoint/checkpoint.c runtime/checkpoint/checkpoint.h \
	runtime/checkpoint/format.c runtime/checkpoint/format.h \
	runtime/checkpoint/group.c runtime/checkpoint/group.h \
	runtime/checkpoint/holder.c runtime/checkpoint/holder.h \
	runtime/checkpoint/lineage.c runtime/checkpoint/lineage.h \
	runtime/checkpoint/lineage_file.c runtime/checkpoint/lineage_file.h \
	runtime/checkpoint/listing.c runtime/checkpoint/listing.h \
	runtime/checkpoint/names.c runtime/checkpoint/names.h \
	runtime/checkpoint/owner.c runtime/checkpoint/owner.h \
	runtime/checkpoint/registry.c runtime/checkpoint/registry.h \
	runtime/checkpoint/restore.c \
	runtime/checkpoint/save.c \
	runtime/checkpoint/shard.c runtime/checkpoint/shard.h \
	runtime/checkpoint/snapshot.c runtime/checkpoint/snapshot.h \
	runtime/checkpoint/store.c runtime/checkpoint/store.h \
	runtime/checkpoint/visible.c runtime/checkpoint/visible.h \
	runtime/coll/adasum.c runtime/coll/adasum.h \
	runtime/coll/compressed.c runtime/coll/compressed.h \
	runtime/coll/hierarchical.c runtime/coll/hierarchical.h \
	runtime/coll/layout.c runtime/coll/layout.h \
	runtime/coll/leader_allreduce.c runtime/coll/leader_allreduce.h \
	runtime/coll/leaders.c runtime/coll/leaders.h \
	runtime/coll/ring_allgather.c runtime/coll/ring_allgather.h \
	runtime/comm/adasum_reduce.c runtime/comm/adasum_reduce.h \
	runtime/comm/algorithm.c runtime/comm/algorithm.h \
	runtime/comm/alltoall.c runtime/comm/alltoall.h \
	runtime/comm/async.c runtime/comm/async.h \
	runtime/comm/collective.c runtime/comm/collective.h \
	runtime/comm/comm.c runtime/comm/comm.h \
	runtime/comm/error_report.c runtime/comm/error_report.h \
	runtime/comm/pairnotes.c runtime/comm/pairnotes.h \
	runtime/comm/slots.c runtime/comm/slots.h \
	runtime/comm/views.c runtime/comm/views.h \
	runtime/diag/dump.c runtime/diag/dump.h \
	runtime/diag/lastcalls.c runtime/diag/lastcalls.h \
	runtime/diag/recorder.c runtime/diag/recorder.h \
	runtime/gpu/device/copies.c runtime/gpu/device/copies.h \
	runtime/gpu/device/errand.c runtime/gpu/device/errand.h \
	runtime/gpu/device/gate.c runtime/gpu/device/gate.h \
	runtime/gpu/device/life.c runtime/gpu/device/life.h \
	runtime/gpu/device/lifelong.c runtime/gpu/device/lifelong.h \
	runtime/gpu/device/memory.c runtime/gpu/device/memory.h \
	runtime/gpu/device/order.c runtime/gpu/device/order.h \
	runtime/gpu/device/pinned.c runtime/gpu/device/pinned.h \
	runtime/gpu/device/provision.c runtime/gpu/device/provision.h \
	runtime/gpu/device/stream.c runtime/gpu/device/stream.h \
	runtime/gpu/device/transfer.c runtime/gpu/device/transfer.h \
	runtime/gpu/device/wait.c runtime/gpu/device/wait.h \
	runtime/gpu/devicecall.c runtime/gpu/devicecall.h \
	runtime/gpu/direct.c runtime/gpu/direct.h \
	runtime/gpu/extents.c runtime/gpu/extents.h \
	runtime/gpu/fold/arena.c runtime/gpu/fold/arena.h \
	runtime/gpu/fold/fold.h \
	runtime/gpu/fold/fold_ptx.c \
	runtime/gpu/fold/folder.c runtime/gpu/fold/folder.h \
	runtime/gpu/fold/steps.c runtime/gpu/fold/steps.h \
	runtime/gpu/fold/words.c runtime/gpu/fold/words.h \
	runtime/gpu/fuse.c runtime/gpu/fuse.h \
	runtime/gpu/gpu.c runtime/gpu/gpu.h \
	runtime/gpu/groups.c runtime/gpu/groups.h \
	runtime/gpu/launchorder.c runtime/gpu/launchorder.h \
	runtime/gpu/leave.c runtime/gpu/leave.h \
	runtime/gpu/nccl.c runtime/gpu/nccl.h \
	runtime/gpu/ncclcalls.c runtime/gpu/ncclcalls.h \
	runtime/gpu/ncclcomm.c runtime/gpu/ncclcomm.h \
	runtime/gpu/ncclerror.c runtime/gpu/ncclerror.h \
	runtime/gpu/ncclguard.c runtime/gpu/ncclguard.h \
	runtime/gpu/ncclinit.c runtime/gpu/ncclinit.h \
	runtime/gpu/nvidia/cudafail.c runtime/gpu/nvidia/cudafail.h \
	runtime/gpu/offer.c runtime/gpu/offer.h \
	runtime/gpu/operation.h \
	runtime/gpu/shared.c runtime/gpu/shared.h \
	runtime/gpu/sharedopen.c runtime/gpu/sharedopen.h \
	runtime/gpu/staging.c runtime/gpu/staging.h \
	runtime/init.c \
	runtime/kernels/body.h \
	runtime/kernels/dtype.c runtime/kernels/dtype.h \
	runtime/kernels/kernels.h \
	runtime/kernels/packing.h \
	runtime/kernels/plain.c \
	runtime/kernels/reduce.c runtime/kernels/reduce.h \
	runtime/kernels/wireformat.c runtime/kernels/wireformat.h \
	runtime/p2p/p2p.c runtime/p2p/p2p.h \
	runtime/p2p/transfer_gpu.c runtime/p2p/transfer_gpu.h \
	runtime/shm/alltoall.c runtime/shm/alltoall.h \
	runtime/shm/call_match.c runtime/shm/call_match.h \
	runtime/shm/chunk.c runtime/shm/chunk.h \
	runtime/shm/cma.c runtime/shm/cma.h \
	runtime/shm/pairwise.c runtime/shm/pairwise.h \
	runtime/shm/pipe.c runtime/shm/pipe.h \
	runtime/shm/reduceopen.c runtime/shm/reduceopen.h \
	runtime/shm/rounds.c runtime/shm/rounds.h \
	runtime/shm/segment.c runtime/shm/segment.h \
	runtime/shm/sendrecv.c runtime/shm/sendrecv.h \
	runtime/shm/shm.c runtime/shm/shm.h \
	runtime/shm/stream.c runtime/shm/stream.h \
	runtime/tcp/alarm.c runtime/tcp/alarm.h \
	runtime/tcp/alltoall.c runtime/tcp/alltoall.h \
	runtime/tcp/flow.c runtime/tcp/flow.h \
	runtime/tcp/mesh.c runtime/tcp/mesh.h \
	runtime/tcp/silence.c runtime/tcp/silence.h \
	runtime/world/agentenv.c runtime/world/agentenv.h \
	runtime/world/agentlink.c runtime/world/agentlink.h \
	runtime/world/config.c runtime/world/config.h \
	runtime/world/listener.c runtime/world/listener.h \
	runtime/world/parentrank.c runtime/world/parentrank.h \
	runtime/world/world.c runtime/world/world.h
runtime_libruntime_a_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS) $(XXHASH_CFLAGS)
runtime_libruntime_a_CFLAGS = $(AM_CFLAGS) -fPIC

# Each of these files is compiled for its own instruction set.
EXTRA_DIST += runtime/kernels/avx2.c runtime/kernels/avx512.c runtime/kernels/neon.c
if X86_64
noinst_LIBRARIES += runtime/libavx2.a runtime/libavx512.a
runtime_libavx2_a_SOURCES = runtime/kernels/avx2.c
runtime_libavx2_a_CFLAGS = $(AM_CFLAGS) -fPIC -mavx2 -mf16c
runtime_libavx512_a_SOURCES = runtime/kernels/avx512.c
runtime_libavx512_a_CFLAGS = $(AM_CFLAGS) -fPIC -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl \
	-mprefer-vector-width=512
KERNEL_LIBS = runtime/libavx2.a runtime/libavx512.a
endif
if AARCH64
runtime_libruntime_a_SOURCES += runtime/kernels/neon.c
endif

# fold_ptx.c is tracked, so that a build needs no nvcc. Run make fold-ptx after a change of the
# kernel.
EXTRA_DIST += runtime/gpu/fold/fold.cu runtime/gpu/fold/fold_kernel.h runtime/gpu/fold/fold_ptx.sh
fold-ptx:
	sh $(srcdir)/runtime/gpu/fold/fold_ptx.sh $(srcdir) > fold_ptx.tmp
	mv fold_ptx.tmp $(srcdir)/runtime/gpu/fold/fold_ptx.c

# Finds the GPU libraries of the machine, for libdtrun and for dtrun --check-build.
noinst_LIBRARIES += runtime/libgpufound.a
runtime_libgpufound_a_SOURCES = \
	runtime/gpu/nvidia/abi_cuda.h runtime/gpu/nvidia/abi_nccl.h \
	runtime/gpu/nvidia/cuda.c runtime/gpu/nvidia/cuda.h \
	runtime/gpu/nvidia/ncclapi.c runtime/gpu/nvidia/ncclapi.h \
	runtime/gpu/nvidia/ncclconf.c runtime/gpu/nvidia/ncclconf.h \
	runtime/gpu/nvidia/remedy.c runtime/gpu/nvidia/remedy.h
runtime_libgpufound_a_CFLAGS = $(AM_CFLAGS) -fPIC

# What programs link that use libdtrun's insides.
WIRE_LIBS = runtime/libwire.a
RUNTIME_LIBS = runtime/libruntime.a $(KERNEL_LIBS) runtime/libgpufound.a $(WIRE_LIBS)

runtime_libdtrun_la_SOURCES =
# The library stays in memory after dlclose(3): its threads may still be running its code.
runtime_libdtrun_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,defs -Wl,-z,nodelete \
	-Wl,--version-script=$(top_srcdir)/runtime/libdtrun.map \
	-Wl,--whole-archive $(RUNTIME_LIBS:%=-Wl,%) -Wl,--no-whole-archive -Wl,$(SODIUM_STATIC_LIBS)
EXTRA_runtime_libdtrun_la_DEPENDENCIES = runtime/libdtrun.map $(RUNTIME_LIBS)
