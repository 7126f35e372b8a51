bin_PROGRAMS += cmd/dtrun
pkglibexec_PROGRAMS += cmd/dtrun-agent

cmd_dtrun_SOURCES = cmd/dtrun.c cmd/options.h
cmd_dtrun_CPPFLAGS = $(AM_CPPFLAGS) $(SSH2_CFLAGS) $(CJSON_CFLAGS) $(UV_CFLAGS)
cmd_dtrun_LDADD = launcher/liblauncher.la $(SSH2_LIBS) $(CJSON_LIBS) $(UV_LIBS)

# Fully static: it is copied to hosts of which nothing is known. libuv's use of getpwuid_r, which the
# agent never reaches, is what the linker would warn about.
cmd_dtrun_agent_SOURCES = cmd/dtrun-agent.c
cmd_dtrun_agent_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
cmd_dtrun_agent_LDFLAGS = -all-static -Wl,--no-warnings
cmd_dtrun_agent_LDADD = launcher/libagent.la $(UV_STATIC_LIBS)
