bin_PROGRAMS += cmd/dtrun cmd/dtrun-perf
pkglibexec_PROGRAMS += cmd/dtrun-agent
noinst_LIBRARIES += cmd/libcmd.a

# The part of dtrun that runs before any connection. It is a library so that tests can link it.
cmd_libcmd_a_SOURCES = \
	cmd/buildinfo.c cmd/buildinfo.h \
	cmd/commandline.c cmd/commandline.h \
	cmd/completion.c cmd/completion.h \
	cmd/config.c cmd/config.h \
	cmd/dryrun.c cmd/dryrun.h \
	cmd/firstprocess.c cmd/firstprocess.h \
	cmd/foreign.c cmd/foreign.h \
	cmd/options.c cmd/options.h \
	cmd/pernode.c cmd/pernode.h \
	cmd/programword.c cmd/programword.h \
	cmd/request.c cmd/request.h \
	cmd/similar.c cmd/similar.h \
	cmd/stepgpus.c cmd/stepgpus.h
cmd_libcmd_a_CPPFLAGS = $(AM_CPPFLAGS) $(SSH2_CFLAGS) $(CJSON_CFLAGS) $(UV_CFLAGS) \
	$(SODIUM_CFLAGS)
if HAVE_PMIX
cmd_libcmd_a_CPPFLAGS += -DHAVE_PMIX
endif
CMD_LIBS = cmd/libcmd.a runtime/libgpufound.a $(LAUNCHER_LIBS) $(CJSON_LIBS)

cmd_dtrun_SOURCES = cmd/dtrun.c
cmd_dtrun_CPPFLAGS = $(AM_CPPFLAGS) $(SSH2_CFLAGS) $(CJSON_CFLAGS) $(UV_CFLAGS)
cmd_dtrun_LDADD = $(CMD_LIBS) $(SSH2_LIBS) $(UV_LIBS)

# dtrun generates the completion files. If it cannot run here, they are not installed.
if !CROSS_COMPILING
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
fishcompletiondir = $(datadir)/fish/vendor_completions.d
nodist_bashcompletion_DATA = cmd/completion/dtrun
nodist_zshcompletion_DATA = cmd/completion/_dtrun
nodist_fishcompletion_DATA = cmd/completion/dtrun.fish
CLEANFILES += $(nodist_bashcompletion_DATA) $(nodist_zshcompletion_DATA) \
	$(nodist_fishcompletion_DATA)

cmd/completion/dtrun: cmd/dtrun$(EXEEXT)
	@$(MKDIR_P) cmd/completion
	$(AM_V_GEN)cmd/dtrun$(EXEEXT) --completion bash >$@

cmd/completion/_dtrun: cmd/dtrun$(EXEEXT)
	@$(MKDIR_P) cmd/completion
	$(AM_V_GEN)cmd/dtrun$(EXEEXT) --completion zsh >$@

cmd/completion/dtrun.fish: cmd/dtrun$(EXEEXT)
	@$(MKDIR_P) cmd/completion
	$(AM_V_GEN)cmd/dtrun$(EXEEXT) --completion fish >$@
endif

# Fully static, since it is copied to hosts of which nothing is known. Only getpwuid_r would need
# glibc's shared libraries. libuv has a call of it, which the agent never reaches.
cmd_dtrun_agent_SOURCES = cmd/dtrun-agent.c
cmd_dtrun_agent_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
cmd_dtrun_agent_LDFLAGS = -all-static -Wl,--defsym=getpwuid_r=abort
cmd_dtrun_agent_LDADD = $(AGENT_LIBS) $(SODIUM_STATIC_LIBS) $(UV_STATIC_LIBS)

if HAVE_PMIX
pkglibexec_PROGRAMS += cmd/dtrun-pmix
cmd_dtrun_pmix_SOURCES = cmd/dtrun-pmix.c cmd/pmix/names.c cmd/pmix/names.h \
	cmd/pmix/requests.c cmd/pmix/requests.h cmd/pmix/server.c cmd/pmix/server.h
cmd_dtrun_pmix_CPPFLAGS = $(AM_CPPFLAGS) $(PMIX_CFLAGS)
cmd_dtrun_pmix_LDADD = $(BASE_LIBS) $(PMIX_LIBS)
endif

# The parts of dtrun-perf. It is a library so that tests can link it.
noinst_LIBRARIES += cmd/libperf.a
cmd_libperf_a_SOURCES = \
	cmd/perf/args.c cmd/perf/args.h \
	cmd/perf/between.c cmd/perf/between.h \
	cmd/perf/choice.c cmd/perf/choice.h \
	cmd/perf/compare.c cmd/perf/compare.h \
	cmd/perf/elements.c cmd/perf/elements.h \
	cmd/perf/measure.c cmd/perf/measure.h \
	cmd/perf/memory.c cmd/perf/memory.h \
	cmd/perf/network.c cmd/perf/network.h \
	cmd/perf/ops.c cmd/perf/ops.h \
	cmd/perf/raw.c cmd/perf/raw.h \
	cmd/perf/table.c cmd/perf/table.h \
	cmd/perf/thresholds.c cmd/perf/thresholds.h \
	cmd/perf/tune.c cmd/perf/tune.h \
	cmd/perf/tunefile.c cmd/perf/tunefile.h

# Needs only libdtrun and libc, like any program that is sent to hosts.
cmd_dtrun_perf_SOURCES = \
	cmd/dtrun-perf.c \
	runtime/kernels/dtype.c runtime/kernels/dtype.h \
	runtime/coll/layout.c runtime/coll/layout.h \
	runtime/base/tuning.c runtime/base/tuning.h \
	runtime/base/tuningfile.c runtime/base/tuningfile.h
cmd_dtrun_perf_LDADD = cmd/libperf.a runtime/libdtrun.la runtime/libgpufound.a $(WIRE_LIBS) -lm
cmd_dtrun_perf_LDFLAGS = $(AM_LDFLAGS) $(LIB_FROM_BIN)
