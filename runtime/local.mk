noinst_LTLIBRARIES += runtime/libwire.la
lib_LTLIBRARIES += runtime/libdtrun.la
include_HEADERS += runtime/dtrun.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runtime/dtrun.pc
EXTRA_DIST += runtime/libdtrun.map

runtime_libwire_la_SOURCES = \
	runtime/wire/codec.c runtime/wire/codec.h \
	runtime/wire/env.h \
	runtime/wire/frame.c runtime/wire/frame.h \
	runtime/wire/hostshm.c runtime/wire/hostshm.h \
	runtime/wire/msg.c runtime/wire/msg.h \
	runtime/wire/rankmsg.c runtime/wire/rankmsg.h

runtime_libdtrun_la_SOURCES = \
	runtime/context.c \
	runtime/device.c runtime/device.h
runtime_libdtrun_la_LIBADD = runtime/libwire.la $(SODIUM_STATIC_LIBS)
runtime_libdtrun_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,defs \
	-Wl,--version-script=$(top_srcdir)/runtime/libdtrun.map
EXTRA_runtime_libdtrun_la_DEPENDENCIES = runtime/libdtrun.map

# The plugin for device memory.
if HAVE_NCCL
noinst_LTLIBRARIES += runtime/libnccl-backend.la
lib_LTLIBRARIES += runtime/libdtrun-nccl.la
endif
runtime_libnccl_backend_la_SOURCES = \
	runtime/device.h \
	runtime/nccl/comm.c runtime/nccl/comm.h \
	runtime/nccl/error.c runtime/nccl/error.h \
	runtime/nccl/plugin.c
runtime_libnccl_backend_la_CPPFLAGS = $(AM_CPPFLAGS) $(NCCL_CPPFLAGS)
runtime_libdtrun_nccl_la_SOURCES =
runtime_libdtrun_nccl_la_LIBADD = runtime/libnccl-backend.la $(NCCL_LIBS)
runtime_libdtrun_nccl_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,defs $(NCCL_RPATH)
