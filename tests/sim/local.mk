# The engine of a job in model worlds: tests/sim/run [--seeds N] [--seed K] [--hosts N].
check_PROGRAMS += tests/sim/sim
tests_sim_sim_SOURCES = tests/sim/agent.c tests/sim/auxiliaries.c tests/sim/clock.c tests/sim/clock.h \
	tests/sim/decisions.c tests/sim/departures.c tests/sim/failed_calls.c tests/sim/faults.c tests/sim/fences.c \
	tests/sim/hangs.c tests/sim/inject.c tests/sim/input.c tests/sim/invariants.c tests/sim/main.c \
	tests/sim/network.c tests/sim/oracle.c tests/sim/output.c tests/sim/quarantine.c \
	tests/sim/ranks.c tests/sim/reach.c tests/sim/recoveries.c tests/sim/rejoin.c tests/sim/report.c \
	tests/sim/restarts.c tests/sim/scenario.c tests/sim/scenario.h tests/sim/signals.c \
	tests/sim/stopping.c tests/sim/world.c tests/sim/world.h
tests_sim_sim_CPPFLAGS = $(AM_CPPFLAGS) $(CJSON_CFLAGS)
tests_sim_sim_LDADD = $(ENGINE_LIBS) $(CJSON_LIBS)
EXTRA_DIST += tests/sim/sim.bats tests/sim/run tests/sim/mutate
