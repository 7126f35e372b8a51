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

tests_fuzz_libdriver_a_SOURCES = tests/fuzz/driver.c tests/fuzz/fuzz.h

tests_fuzz_checkpoint_SOURCES = tests/fuzz/checkpoint.c tests/fuzz/fuzz.h
tests_fuzz_checkpoint_LDADD = tests/fuzz/libdriver.a launcher/libbase.a $(RUNTIME_LIBS) $(SODIUM_STATIC_LIBS)

tests_fuzz_config_SOURCES = tests/fuzz/config.c tests/fuzz/fuzz.h
tests_fuzz_config_LDADD = tests/fuzz/libdriver.a $(CMD_LIBS)

tests_fuzz_hostarg_SOURCES = tests/fuzz/hostarg.c tests/fuzz/hosts.h tests/fuzz/fuzz.h
tests_fuzz_hostarg_LDADD = tests/fuzz/libdriver.a $(LAUNCHER_LIBS)

tests_fuzz_hostfile_SOURCES = tests/fuzz/hostfile.c tests/fuzz/hosts.h tests/fuzz/fuzz.h
tests_fuzz_hostfile_LDADD = tests/fuzz/libdriver.a $(LAUNCHER_LIBS)

tests_fuzz_knownhosts_SOURCES = tests/fuzz/knownhosts.c tests/fuzz/fuzz.h
tests_fuzz_knownhosts_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
tests_fuzz_knownhosts_LDADD = tests/fuzz/libdriver.a $(LAUNCHER_LIBS) $(SSH2_LIBS) $(UV_LIBS)

tests_fuzz_messages_SOURCES = tests/fuzz/messages.c tests/fuzz/fuzz.h
tests_fuzz_messages_LDADD = tests/fuzz/libdriver.a $(BASE_LIBS)

tests_fuzz_peers_SOURCES = tests/fuzz/peers.c tests/fuzz/fuzz.h
tests_fuzz_peers_LDADD = tests/fuzz/libdriver.a launcher/libbase.a $(RUNTIME_LIBS) $(SODIUM_STATIC_LIBS)

tests_fuzz_pmi_SOURCES = tests/fuzz/pmi.c tests/fuzz/fuzz.h
tests_fuzz_pmi_LDADD = tests/fuzz/libdriver.a $(AGENT_LIBS)

tests_fuzz_ranks_SOURCES = tests/fuzz/ranks.c tests/fuzz/fuzz.h
tests_fuzz_ranks_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
tests_fuzz_ranks_LDADD = tests/fuzz/libdriver.a $(AGENT_LIBS) $(UV_LIBS)

tests_fuzz_rendezvous_SOURCES = tests/fuzz/rendezvous.c tests/fuzz/fuzz.h
tests_fuzz_rendezvous_LDADD = tests/fuzz/libdriver.a $(AGENT_LIBS)

tests_fuzz_sshconfig_SOURCES = tests/fuzz/sshconfig.c tests/fuzz/fuzz.h
tests_fuzz_sshconfig_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
tests_fuzz_sshconfig_LDADD = tests/fuzz/libdriver.a $(LAUNCHER_LIBS) $(SSH2_LIBS) $(UV_LIBS)

tests_fuzz_tuning_SOURCES = tests/fuzz/tuning.c tests/fuzz/fuzz.h
tests_fuzz_tuning_LDADD = tests/fuzz/libdriver.a launcher/libbase.a $(RUNTIME_LIBS)
