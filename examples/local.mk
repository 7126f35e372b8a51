# Real programs, installed where `dtrun ... libexec/dtrun/examples/charlm` finds them; their sources are
# documentation, and part of the text that charlm learns by default.
examplesdir = $(pkglibexecdir)/examples
examples_PROGRAMS = examples/charlm examples/halo examples/hello
examplesrcdir = $(docdir)/examples
dist_examplesrc_DATA = examples/charlm.c examples/ddp.py examples/halo.c examples/hello.c

examples_charlm_SOURCES = examples/charlm.c
examples_charlm_CPPFLAGS = -I$(top_srcdir)/runtime -DTEXT_DIR='"$(docdir)"'
examples_charlm_LDADD = runtime/libdtrun.la -lm

examples_halo_SOURCES = examples/halo.c
examples_halo_CPPFLAGS = -I$(top_srcdir)/runtime
examples_halo_LDADD = runtime/libdtrun.la

examples_hello_SOURCES = examples/hello.c
examples_hello_CPPFLAGS = -I$(top_srcdir)/runtime
examples_hello_LDADD = runtime/libdtrun.la
