# Fuzz targets, each driven for two seconds; tests/fuzz/libfuzzer drives one for longer with clang.
FUZZ_TESTS = \
	tests/fuzz/checkpoint \
	tests/fuzz/config \
	tests/fuzz/hostarg \
	tests/fuzz/hostfile \
	tests/fuzz/knownhosts \
	tests/fuzz/messages \
	tests/fuzz/peers \
	tests/fuzz/pmi \
	tests/fuzz/ranks \
	tests/fuzz/rendezvous \
	tests/fuzz/sshconfig \
	tests/fuzz/tuning
check_PROGRAMS += $(FUZZ_TESTS)
TESTS += $(FUZZ_TESTS)
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/libfuzzer

tests_fuzz_checkpoint_SOURCES = tests/fuzz/checkpoint.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_checkpoint_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"checkpoint"'
tests_fuzz_checkpoint_LDADD = launcher/libbase.a $(RUNTIME_LIBS) $(SODIUM_STATIC_LIBS)

tests_fuzz_config_SOURCES = tests/fuzz/config.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_config_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"config"'
tests_fuzz_config_LDADD = $(CMD_LIBS)

tests_fuzz_hostarg_SOURCES = tests/fuzz/hostarg.c tests/fuzz/hosts.h tests/fuzz/driver.c \
	tests/fuzz/fuzz.h
tests_fuzz_hostarg_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"hostarg"'
tests_fuzz_hostarg_LDADD = $(LAUNCHER_LIBS)

tests_fuzz_hostfile_SOURCES = tests/fuzz/hostfile.c tests/fuzz/hosts.h tests/fuzz/driver.c \
	tests/fuzz/fuzz.h
tests_fuzz_hostfile_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"hostfile"'
tests_fuzz_hostfile_LDADD = $(LAUNCHER_LIBS)

tests_fuzz_knownhosts_SOURCES = tests/fuzz/knownhosts.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_knownhosts_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS) -DFUZZ_CORPUS='"knownhosts"'
tests_fuzz_knownhosts_LDADD = $(LAUNCHER_LIBS) $(SSH2_LIBS) $(UV_LIBS)

tests_fuzz_messages_SOURCES = tests/fuzz/messages.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_messages_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"messages"'
tests_fuzz_messages_LDADD = $(BASE_LIBS)

tests_fuzz_peers_SOURCES = tests/fuzz/peers.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_peers_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"peers"'
tests_fuzz_peers_LDADD = launcher/libbase.a $(RUNTIME_LIBS) $(SODIUM_STATIC_LIBS)

tests_fuzz_pmi_SOURCES = tests/fuzz/pmi.c launcher/agent/mpi/pmi.c tests/fuzz/driver.c \
	tests/fuzz/fuzz.h
tests_fuzz_pmi_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"pmi"'
tests_fuzz_pmi_LDADD = $(BASE_LIBS)

tests_fuzz_ranks_SOURCES = tests/fuzz/ranks.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_ranks_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS) -DFUZZ_CORPUS='"ranks"'
tests_fuzz_ranks_LDADD = $(AGENT_LIBS) $(UV_LIBS)

tests_fuzz_rendezvous_SOURCES = tests/fuzz/rendezvous.c launcher/agent/horovod/answer.c \
	launcher/agent/horovod/httprequest.c launcher/agent/horovod/kvstore.c tests/fuzz/driver.c \
	tests/fuzz/fuzz.h
tests_fuzz_rendezvous_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"rendezvous"'
tests_fuzz_rendezvous_LDADD = $(BASE_LIBS)

tests_fuzz_sshconfig_SOURCES = tests/fuzz/sshconfig.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_sshconfig_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS) -DFUZZ_CORPUS='"sshconfig"'
tests_fuzz_sshconfig_LDADD = $(LAUNCHER_LIBS) $(SSH2_LIBS) $(UV_LIBS)

tests_fuzz_tuning_SOURCES = tests/fuzz/tuning.c tests/fuzz/driver.c tests/fuzz/fuzz.h
tests_fuzz_tuning_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_CORPUS='"tuning"'
tests_fuzz_tuning_LDADD = launcher/libbase.a $(RUNTIME_LIBS)
