# Complete programs, installed so that `dtrun ... libexec/dtrun/examples/charlm` finds them. Their
# sources are documentation, and part of the text that charlm learns by default.
examplesdir = $(pkglibexecdir)/examples
examples_PROGRAMS = examples/charlm examples/halo examples/hello
examplesrcdir = $(docdir)/examples
dist_examplesrc_DATA = examples/charlm.c examples/charlm.cu examples/charlm.h examples/charlm_gpu.c \
	examples/charlm_kernels.h examples/ddp.py examples/halo.c examples/hello.c

examples_charlm_SOURCES = examples/charlm.c examples/charlm.h
examples_charlm_CPPFLAGS = -I$(top_srcdir)/runtime -DTEXT_DIR='"$(examplesrcdir)"'
examples_charlm_LDADD = runtime/libdtrun.la -lm
examples_charlm_LDFLAGS = $(AM_LDFLAGS) $(LIB_FROM_EXAMPLES)

# The kernels' PTX is marked for drivers and devices that are older than nvcc.
if HAVE_NVCC
examples_charlm_SOURCES += examples/charlm_gpu.c examples/charlm_kernels.h
examples_charlm_CPPFLAGS += $(NVCC_CPPFLAGS) -DCHARLM_PTX='"examples/charlm.ptx"'
$(examples_charlm_OBJECTS): examples/charlm.ptx
examples/charlm.ptx: $(srcdir)/examples/charlm.cu $(srcdir)/examples/charlm_kernels.h $(srcdir)/examples/charlm.h
	$(AM_V_GEN)$(MKDIR_P) examples && $(NVCC) -ptx -arch=compute_75 -o $@.tmp $(srcdir)/examples/charlm.cu
	$(AM_V_at)sed 's/^\.version .*/.version 6.0/; s/^\.target .*/.target sm_50/' $@.tmp >$@ && rm $@.tmp
CLEANFILES += examples/charlm.ptx
endif

examples_halo_SOURCES = examples/halo.c
examples_halo_CPPFLAGS = -I$(top_srcdir)/runtime
examples_halo_LDADD = runtime/libdtrun.la
examples_halo_LDFLAGS = $(AM_LDFLAGS) $(LIB_FROM_EXAMPLES)

examples_hello_SOURCES = examples/hello.c
examples_hello_CPPFLAGS = -I$(top_srcdir)/runtime
examples_hello_LDADD = runtime/libdtrun.la
examples_hello_LDFLAGS = $(AM_LDFLAGS) $(LIB_FROM_EXAMPLES)
