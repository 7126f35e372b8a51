# Unit tests of libdtrun against agents that the test plays itself.
UNIT_TESTS += \
	tests/unit/aborted \
	tests/unit/adasum \
	tests/unit/auth \
	tests/unit/blame \
	tests/unit/buckets \
	tests/unit/cma \
	tests/unit/checkpoint_calls \
	tests/unit/collectives \
	tests/unit/communicators \
	tests/unit/config \
	tests/unit/copied \
	tests/unit/cut \
	tests/unit/door \
	tests/unit/dump \
	tests/unit/failures \
	tests/unit/foldparts \
	tests/unit/gpufold \
	tests/unit/gpushared \
	tests/unit/gpuways \
	tests/unit/hardship \
	tests/unit/huge \
	tests/unit/launchorder \
	tests/unit/leaving \
	tests/unit/limits \
	tests/unit/memory \
	tests/unit/mismatches \
	tests/unit/misuse \
	tests/unit/movement \
	tests/unit/pair \
	tests/unit/ways \
	tests/unit/parts \
	tests/unit/perf \
	tests/unit/pipe \
	tests/unit/recorder \
	tests/unit/reduce \
	tests/unit/reduceoptions \
	tests/unit/requests \
	tests/unit/routes \
	tests/unit/shm \
	tests/unit/shmmove \
	tests/unit/stream \
	tests/unit/tally \
	tests/unit/threadrules \
	tests/unit/threads \
	tests/unit/trouble \
	tests/unit/tuning \
	tests/unit/twolevel \
	tests/unit/uneven \
	tests/unit/wireformat

# What plays agent and launcher.
EXTRA_LTLIBRARIES = tests/unit/libtestjob.la
CLEANFILES += tests/unit/libtestjob.la # automake cleans no such one
tests_unit_libtestjob_la_SOURCES = tests/unit/testjob.c tests/unit/testjob.h
tests_unit_libtestjob_la_CPPFLAGS = $(TESTJOB_CPPFLAGS)
TESTJOB_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
TESTJOB_LIBS = tests/unit/libtestjob.la launcher/libagent.la runtime/libruntime.la \
	$(SODIUM_LIBS) $(UV_LIBS) $(CMOCKA_LIBS)

tests_unit_buckets_SOURCES = tests/unit/buckets.c tests/unit/faults.c tests/unit/faults.h \
	tests/unit/rankcheck.h
tests_unit_buckets_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_buckets_LDADD = $(TESTJOB_LIBS)
tests_unit_buckets_LDFLAGS = $(FAULTS_WRAP)

tests_unit_launchorder_SOURCES = tests/unit/launchorder.c
tests_unit_launchorder_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_launchorder_LDADD = runtime/libruntime.la $(CMOCKA_LIBS)

tests_unit_leaving_SOURCES = tests/unit/leaving.c tests/unit/rankcheck.h
tests_unit_leaving_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_leaving_LDADD = $(TESTJOB_LIBS)

tests_unit_checkpoint_calls_SOURCES = tests/unit/checkpoint_calls.c tests/unit/rankcheck.h
tests_unit_checkpoint_calls_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_checkpoint_calls_LDADD = $(TESTJOB_LIBS)

tests_unit_limits_SOURCES = tests/unit/limits.c tests/unit/rankcheck.h
tests_unit_limits_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_limits_LDADD = $(TESTJOB_LIBS)

tests_unit_requests_SOURCES = tests/unit/requests.c tests/unit/rankcheck.h
tests_unit_requests_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_requests_LDADD = $(TESTJOB_LIBS)

tests_unit_routes_SOURCES = tests/unit/routes.c tests/unit/rankcheck.h tests/unit/wentway.h
tests_unit_routes_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_routes_LDADD = $(TESTJOB_LIBS)

tests_unit_cma_SOURCES = tests/unit/cma.c tests/unit/forbid.h tests/unit/rankcheck.h \
	tests/unit/wentway.h
tests_unit_cma_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_cma_LDADD = $(TESTJOB_LIBS)

tests_unit_copied_SOURCES = tests/unit/copied.c tests/unit/faults.c tests/unit/faults.h \
	tests/unit/rankcheck.h tests/unit/wentway.h
tests_unit_copied_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_copied_LDADD = $(TESTJOB_LIBS)
tests_unit_copied_LDFLAGS = $(FAULTS_WRAP)

tests_unit_config_SOURCES = tests/unit/config.c tests/unit/rankcheck.h
tests_unit_config_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_config_LDADD = $(TESTJOB_LIBS)

tests_unit_blame_SOURCES = tests/unit/blame.c tests/unit/faults.c tests/unit/faults.h \
	tests/unit/rankcheck.h
tests_unit_blame_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_blame_LDADD = $(TESTJOB_LIBS)
tests_unit_blame_LDFLAGS = $(FAULTS_WRAP)

tests_unit_dump_SOURCES = tests/unit/dump.c tests/unit/rankcheck.h
tests_unit_dump_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_dump_LDADD = $(TESTJOB_LIBS)

tests_unit_recorder_SOURCES = tests/unit/recorder.c
tests_unit_recorder_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_recorder_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_collectives_SOURCES = tests/unit/collectives.c tests/unit/reference.c \
	tests/unit/reference.h tests/unit/rankcheck.h
tests_unit_collectives_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_collectives_LDADD = $(TESTJOB_LIBS)

tests_unit_failures_SOURCES = tests/unit/failures.c tests/unit/rankcheck.h
tests_unit_failures_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_failures_LDADD = $(TESTJOB_LIBS)

tests_unit_hardship_SOURCES = tests/unit/hardship.c tests/unit/rankcheck.h
tests_unit_hardship_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_hardship_LDADD = $(TESTJOB_LIBS)

tests_unit_huge_SOURCES = tests/unit/huge.c tests/unit/rankcheck.h
tests_unit_huge_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_huge_LDADD = $(TESTJOB_LIBS)

tests_unit_memory_SOURCES = tests/unit/memory.c tests/unit/rankcheck.h
tests_unit_memory_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_memory_LDADD = $(TESTJOB_LIBS)

tests_unit_auth_SOURCES = tests/unit/auth.c
tests_unit_auth_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_auth_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_door_SOURCES = tests/unit/door.c
tests_unit_door_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_door_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_mismatches_SOURCES = tests/unit/mismatches.c tests/unit/rankcheck.h
tests_unit_mismatches_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_mismatches_LDADD = $(TESTJOB_LIBS)

tests_unit_misuse_SOURCES = tests/unit/misuse.c tests/unit/rankcheck.h
tests_unit_misuse_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_misuse_LDADD = $(TESTJOB_LIBS)

tests_unit_movement_SOURCES = tests/unit/movement.c
tests_unit_movement_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_movement_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_perf_SOURCES = tests/unit/perf.c cmd/perf/between.c cmd/perf/choice.c cmd/perf/elements.c \
	cmd/perf/memory.c cmd/perf/ops.c cmd/perf/thresholds.c cmd/perf/tunefile.c tests/unit/weighed.c tests/unit/weighed.h
tests_unit_perf_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_perf_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_pipe_SOURCES = tests/unit/pipe.c
tests_unit_pipe_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_pipe_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_reduce_SOURCES = tests/unit/reduce.c
tests_unit_reduce_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_reduce_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_shm_SOURCES = tests/unit/shm.c tests/unit/forbid.h
tests_unit_shm_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_shm_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_shmmove_SOURCES = tests/unit/shmmove.c
tests_unit_shmmove_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_shmmove_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_stream_SOURCES = tests/unit/stream.c
tests_unit_stream_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_stream_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_threadrules_SOURCES = tests/unit/threadrules.c tests/unit/rankcheck.h
tests_unit_threadrules_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_threadrules_LDADD = $(TESTJOB_LIBS)

tests_unit_threads_SOURCES = tests/unit/threads.c tests/unit/rankcheck.h
tests_unit_threads_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_threads_LDADD = $(TESTJOB_LIBS)

tests_unit_trouble_SOURCES = tests/unit/trouble.c
tests_unit_trouble_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_trouble_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_tuning_SOURCES = tests/unit/tuning.c tests/unit/rankcheck.h
tests_unit_tuning_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_tuning_LDADD = $(TESTJOB_LIBS)
tests_unit_adasum_SOURCES = tests/unit/adasum.c tests/unit/reference.c tests/unit/reference.h \
	tests/unit/weighed.c tests/unit/weighed.h tests/unit/rankcheck.h
tests_unit_adasum_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_adasum_LDADD = $(TESTJOB_LIBS) -lm

tests_unit_twolevel_SOURCES = tests/unit/twolevel.c tests/unit/reference.c tests/unit/reference.h \
	tests/unit/rankcheck.h
tests_unit_twolevel_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_twolevel_LDADD = $(TESTJOB_LIBS)

tests_unit_foldparts_SOURCES = tests/unit/foldparts.c tests/unit/reference.c tests/unit/reference.h \
	tests/unit/rankcheck.h
tests_unit_foldparts_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_foldparts_LDADD = $(TESTJOB_LIBS)

tests_unit_communicators_SOURCES = tests/unit/communicators.c tests/unit/rankcheck.h
tests_unit_communicators_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_communicators_LDADD = $(TESTJOB_LIBS)

tests_unit_parts_SOURCES = tests/unit/parts.c tests/unit/rankcheck.h
tests_unit_parts_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_parts_LDADD = $(TESTJOB_LIBS)

tests_unit_uneven_SOURCES = tests/unit/uneven.c tests/unit/rankcheck.h
tests_unit_uneven_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_uneven_LDADD = $(TESTJOB_LIBS)

tests_unit_gpufold_SOURCES = tests/unit/gpufold.c
tests_unit_gpufold_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpufold_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
tests_unit_gpufold_LDADD = runtime/libruntime.la $(CMOCKA_LIBS) -lm

tests_unit_gpushared_SOURCES = tests/unit/gpushared.c
tests_unit_gpushared_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpushared_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_gpuways_SOURCES = tests/unit/gpuways.c
tests_unit_gpuways_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpuways_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_reduceoptions_SOURCES = tests/unit/reduceoptions.c tests/unit/rankcheck.h
tests_unit_reduceoptions_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_reduceoptions_LDADD = $(TESTJOB_LIBS) -lm

tests_unit_cut_SOURCES = tests/unit/cut.c
tests_unit_cut_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cut_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_tally_SOURCES = tests/unit/tally.c
tests_unit_tally_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_tally_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_wireformat_SOURCES = tests/unit/wireformat.c
tests_unit_wireformat_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_wireformat_LDADD = runtime/libruntime.la $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_pair_SOURCES = tests/unit/pair.c tests/unit/rankcheck.h
tests_unit_pair_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_pair_LDADD = $(TESTJOB_LIBS)

tests_unit_disturbed_SOURCES = tests/unit/disturbed.c tests/unit/everycall.c tests/unit/everycall.h \
	tests/unit/faults.c tests/unit/faults.h
tests_unit_disturbed_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_disturbed_LDADD = $(TESTJOB_LIBS)

tests_unit_aborted_SOURCES = tests/unit/aborted.c tests/unit/faults.c tests/unit/faults.h \
	tests/unit/rankcheck.h
tests_unit_aborted_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_aborted_LDADD = $(TESTJOB_LIBS)
tests_unit_aborted_LDFLAGS = $(FAULTS_WRAP)

tests_unit_disturbed_LDFLAGS = $(FAULTS_WRAP)
# Every function that tests/unit/faults.c stands in for.
FAULTS_WRAP = \
	-Wl,--wrap=accept4,--wrap=bind,--wrap=calloc,--wrap=close,--wrap=connect,--wrap=eventfd \
	-Wl,--wrap=fcntl,--wrap=fdopendir,--wrap=fstat,--wrap=fstatat,--wrap=fsync,--wrap=ftruncate \
	-Wl,--wrap=getsockname,--wrap=getsockopt,--wrap=listen,--wrap=malloc,--wrap=memfd_create \
	-Wl,--wrap=mkdir,--wrap=mkdirat,--wrap=mmap,--wrap=open,--wrap=openat,--wrap=poll \
	-Wl,--wrap=process_vm_readv,--wrap=process_vm_writev \
	-Wl,--wrap=pthread_atfork,--wrap=pthread_create,--wrap=read,--wrap=readdir,--wrap=realloc \
	-Wl,--wrap=recv,--wrap=recvmsg,--wrap=renameat,--wrap=sched_getaffinity,--wrap=send \
	-Wl,--wrap=sendmsg,--wrap=setsockopt,--wrap=socket,--wrap=strdup,--wrap=syscall \
	-Wl,--wrap=unlinkat,--wrap=write \
	-Wl,--wrap=dt_comm_note,--wrap=dt_fold,--wrap=dt_pipe_read,--wrap=dt_round_await \
	-Wl,--wrap=dt_round_begin,--wrap=dt_round_publish,--wrap=dt_segment_find \
	-Wl,--wrap=dt_segment_release,--wrap=dt_stream_past_caches

tests_unit_ways_SOURCES = tests/unit/ways.c tests/unit/rankcheck.h
tests_unit_ways_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_ways_LDADD = $(TESTJOB_LIBS)

