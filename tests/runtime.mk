# Unit tests of libdtrun against agents that the test plays itself.
UNIT_TESTS += \
	tests/unit/collectives \
	tests/unit/failures

# What plays agent and launcher.
TESTJOB = tests/unit/testjob.c tests/unit/testjob.h
TESTJOB_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
TESTJOB_LIBS = launcher/libagent.la runtime/libruntime.la $(SODIUM_LIBS) $(UV_LIBS) $(CMOCKA_LIBS)

tests_unit_collectives_SOURCES = tests/unit/collectives.c tests/unit/rankcheck.h $(TESTJOB)
tests_unit_collectives_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_collectives_LDADD = $(TESTJOB_LIBS)

tests_unit_failures_SOURCES = tests/unit/failures.c tests/unit/rankcheck.h $(TESTJOB)
tests_unit_failures_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_failures_LDADD = $(TESTJOB_LIBS)
