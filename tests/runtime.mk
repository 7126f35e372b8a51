# Unit tests of libdtrun against agents that the test plays itself.
UNIT_TESTS += \
	tests/unit/coll/adasum \
	tests/unit/wire/auth \
	tests/unit/comm/error_report \
	tests/unit/api/buckets \
	tests/unit/shm/cma \
	tests/unit/checkpoint/checkpoint_calls \
	tests/unit/checkpoint/checkpoint_isave \
	tests/unit/comm/communicators \
	tests/unit/world/config \
	tests/unit/coll/layout \
	tests/unit/world/listener \
	tests/unit/diag/dump \
	tests/unit/coll/foldparts \
	tests/unit/gpu/gpufold \
	tests/unit/gpu/gpushared \
	tests/unit/gpu/gpupaths \
	tests/unit/gpu/remedy \
	tests/unit/faults/hardship \
	tests/unit/coll/huge \
	tests/unit/gpu/launchorder \
	tests/unit/gpu/gate \
	tests/unit/gpu/life \
	tests/unit/gpu/ncclguard \
	tests/unit/gpu/wait \
	tests/unit/comm/async \
	tests/unit/comm/leaving \
	tests/unit/comm/limits \
	tests/unit/coll/mismatches \
	tests/unit/api/misuse \
	tests/unit/tcp/alltoall \
	tests/unit/tcp/silence \
	tests/unit/api/sendrecv \
	tests/unit/p2p/p2p \
	tests/unit/api/blocks \
	tests/unit/cmd/perf \
	tests/unit/examples/charlm \
	tests/unit/shm/page \
	tests/unit/shm/pipe \
	tests/unit/diag/recorder \
	tests/unit/kernels/reduce \
	tests/unit/base/reduceoptions \
	tests/unit/api/requests \
	tests/unit/coll/routes \
	tests/unit/shm/shm \
	tests/unit/shm/alltoall \
	tests/unit/shm/stream \
	tests/unit/base/count_check \
	tests/unit/api/threadrules \
	tests/unit/base/coll_error \
	tests/unit/base/tuning \
	tests/unit/api/join \
	tests/unit/kernels/wireformat

# What several tests share is compiled once. (Automake does not clean these archives.)
EXTRA_LIBRARIES = $(SHARED_BY_TESTS)
CLEANFILES += $(SHARED_BY_TESTS)
SHARED_BY_TESTS = tests/unit/libtestjob.a tests/unit/libchecked.a tests/unit/libcheckpoint.a \
	tests/unit/libagentproc.a tests/fuzz/libdriver.a

# Plays agents and launcher.
tests_unit_libtestjob_a_SOURCES = tests/unit/testjob.c tests/unit/testjob.h tests/unit/faults.c \
	tests/unit/faults.h
tests_unit_libtestjob_a_CPPFLAGS = $(TESTJOB_CPPFLAGS)
TESTJOB_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
TESTJOB_LIBS = tests/unit/libtestjob.a launcher/libranklink.a launcher/libbase.a $(RUNTIME_LIBS) \
	$(SODIUM_LIBS) $(UV_LIBS) $(CMOCKA_LIBS)

# What results must be, and trials of every call under faults, which take the calls from dtrun-perf.
tests_unit_libchecked_a_SOURCES = tests/unit/reference.c tests/unit/reference.h tests/unit/weighed.c \
	tests/unit/weighed.h tests/unit/faults/everycall.c tests/unit/faults/everycall.h \
	tests/unit/faults/failing.c tests/unit/faults/failing.h tests/unit/faults/trial.c \
	tests/unit/faults/trial.h
tests_unit_libchecked_a_CPPFLAGS = $(TESTJOB_CPPFLAGS)
CHECKED_LIBS = tests/unit/libchecked.a cmd/libperf.a $(TESTJOB_LIBS) -lm

tests_unit_api_buckets_SOURCES = tests/unit/api/buckets.c tests/unit/rankcheck.h
tests_unit_api_buckets_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_api_buckets_LDADD = $(TESTJOB_LIBS)
tests_unit_api_buckets_LDFLAGS = $(FAULTS_WRAP)

tests_unit_comm_async_SOURCES = tests/unit/comm/async.c
tests_unit_comm_async_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_comm_async_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm
tests_unit_gpu_ncclguard_SOURCES = tests/unit/gpu/ncclguard.c
tests_unit_gpu_ncclguard_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_ncclguard_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
tests_unit_gpu_wait_SOURCES = tests/unit/gpu/wait.c
tests_unit_gpu_wait_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_wait_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm
tests_unit_gpu_gate_SOURCES = tests/unit/gpu/gate.c
tests_unit_gpu_gate_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_gate_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm
tests_unit_gpu_gate_LDFLAGS = -Wl,--wrap=dt_cuda
tests_unit_gpu_life_SOURCES = tests/unit/gpu/life.c
tests_unit_gpu_life_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_life_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
tests_unit_gpu_launchorder_SOURCES = tests/unit/gpu/launchorder.c
tests_unit_gpu_launchorder_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_launchorder_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)

tests_unit_comm_leaving_SOURCES = tests/unit/comm/leaving.c tests/unit/rankcheck.h
tests_unit_comm_leaving_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_comm_leaving_LDADD = $(TESTJOB_LIBS)

tests_unit_checkpoint_checkpoint_calls_SOURCES = tests/unit/checkpoint/checkpoint_calls.c \
	tests/unit/rankcheck.h
tests_unit_checkpoint_checkpoint_calls_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_checkpoint_checkpoint_calls_LDADD = $(TESTJOB_LIBS)

tests_unit_checkpoint_checkpoint_isave_SOURCES = tests/unit/checkpoint/checkpoint_isave.c \
	tests/unit/rankcheck.h
tests_unit_checkpoint_checkpoint_isave_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_checkpoint_checkpoint_isave_LDADD = $(TESTJOB_LIBS)
tests_unit_checkpoint_checkpoint_isave_LDFLAGS = $(FAULTS_WRAP)

tests_unit_comm_limits_SOURCES = tests/unit/comm/limits.c tests/unit/rankcheck.h
tests_unit_comm_limits_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_comm_limits_LDADD = $(TESTJOB_LIBS)

tests_unit_api_requests_SOURCES = tests/unit/api/requests.c tests/unit/rankcheck.h
tests_unit_api_requests_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_api_requests_LDADD = $(TESTJOB_LIBS)

tests_unit_coll_routes_SOURCES = tests/unit/coll/routes.c tests/unit/rankcheck.h \
	tests/unit/algorithm.h
tests_unit_coll_routes_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_coll_routes_LDADD = $(TESTJOB_LIBS)

tests_unit_shm_cma_SOURCES = tests/unit/shm/cma.c tests/unit/forbid.h tests/unit/rankcheck.h \
	tests/unit/algorithm.h
tests_unit_shm_cma_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_shm_cma_LDADD = $(TESTJOB_LIBS)

tests_unit_shm_copied_SOURCES = tests/unit/shm/copied.c tests/unit/rankcheck.h \
	tests/unit/algorithm.h
tests_unit_shm_copied_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_shm_copied_LDADD = $(TESTJOB_LIBS)
tests_unit_shm_copied_LDFLAGS = $(FAULTS_WRAP)

tests_unit_world_config_SOURCES = tests/unit/world/config.c tests/unit/rankcheck.h
tests_unit_world_config_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_world_config_LDADD = $(TESTJOB_LIBS)

tests_unit_comm_error_report_SOURCES = tests/unit/comm/error_report.c tests/unit/rankcheck.h
tests_unit_comm_error_report_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_comm_error_report_LDADD = $(TESTJOB_LIBS)
tests_unit_comm_error_report_LDFLAGS = $(FAULTS_WRAP)

tests_unit_diag_dump_SOURCES = tests/unit/diag/dump.c tests/unit/rankcheck.h
tests_unit_diag_dump_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_diag_dump_LDADD = $(TESTJOB_LIBS)
tests_unit_diag_dump_LDFLAGS = $(FAULTS_WRAP)

tests_unit_diag_recorder_SOURCES = tests/unit/diag/recorder.c
tests_unit_diag_recorder_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_diag_recorder_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_coll_collectives_SOURCES = tests/unit/coll/collectives.c tests/unit/rankcheck.h
tests_unit_coll_collectives_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_coll_collectives_LDADD = $(CHECKED_LIBS)

tests_unit_faults_failures_SOURCES = tests/unit/faults/failures.c tests/unit/rankcheck.h
tests_unit_faults_failures_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_faults_failures_LDADD = $(TESTJOB_LIBS)

tests_unit_faults_hardship_SOURCES = tests/unit/faults/hardship.c tests/unit/rankcheck.h
tests_unit_faults_hardship_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_faults_hardship_LDADD = $(TESTJOB_LIBS)

tests_unit_coll_huge_SOURCES = tests/unit/coll/huge.c tests/unit/rankcheck.h
tests_unit_coll_huge_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_coll_huge_LDADD = $(TESTJOB_LIBS)

tests_unit_api_memory_SOURCES = tests/unit/api/memory.c tests/unit/rankcheck.h
tests_unit_api_memory_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_api_memory_LDADD = $(TESTJOB_LIBS)

tests_unit_wire_auth_SOURCES = tests/unit/wire/auth.c
tests_unit_wire_auth_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_wire_auth_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_world_listener_SOURCES = tests/unit/world/listener.c
tests_unit_world_listener_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_world_listener_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_coll_mismatches_SOURCES = tests/unit/coll/mismatches.c tests/unit/rankcheck.h
tests_unit_coll_mismatches_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_coll_mismatches_LDADD = $(CHECKED_LIBS)

tests_unit_api_misuse_SOURCES = tests/unit/api/misuse.c tests/unit/rankcheck.h
nodist_tests_unit_api_misuse_SOURCES = tests/unit/api/calls.h
tests/unit/api/misuse-misuse.$(OBJEXT): tests/unit/api/calls.h
tests/unit/api/calls.h: $(srcdir)/runtime/dtrun.h $(srcdir)/tests/unit/api/calls.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(AWK) -f $(srcdir)/tests/unit/api/calls.awk $(srcdir)/runtime/dtrun.h >$@.new && mv $@.new $@
CLEANFILES += tests/unit/api/calls.h
EXTRA_DIST += tests/unit/api/calls.awk
tests_unit_api_misuse_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_api_misuse_LDADD = $(TESTJOB_LIBS)

tests_unit_tcp_alltoall_SOURCES = tests/unit/tcp/alltoall.c
tests_unit_tcp_alltoall_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_tcp_alltoall_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)
tests_unit_tcp_silence_SOURCES = tests/unit/tcp/silence.c
tests_unit_tcp_silence_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_tcp_silence_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)

tests_unit_examples_charlm_SOURCES = tests/unit/examples/charlm.c tests/unit/unit.h
tests_unit_examples_charlm_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/runtime $(CMOCKA_CFLAGS)
tests_unit_examples_charlm_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_cmd_perf_SOURCES = tests/unit/cmd/perf.c
tests_unit_cmd_perf_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cmd_perf_LDADD = tests/unit/libchecked.a cmd/libperf.a $(RUNTIME_LIBS) $(SODIUM_LIBS) \
	$(CMOCKA_LIBS) -lm

tests_unit_shm_page_SOURCES = tests/unit/shm/page.c
tests_unit_shm_page_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_shm_page_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_shm_pipe_SOURCES = tests/unit/shm/pipe.c
tests_unit_shm_pipe_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_shm_pipe_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_kernels_reduce_SOURCES = tests/unit/kernels/reduce.c
tests_unit_kernels_reduce_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kernels_reduce_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_shm_shm_SOURCES = tests/unit/shm/shm.c tests/unit/forbid.h
tests_unit_shm_shm_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_shm_shm_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_shm_alltoall_SOURCES = tests/unit/shm/alltoall.c
tests_unit_shm_alltoall_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_shm_alltoall_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_shm_stream_SOURCES = tests/unit/shm/stream.c
tests_unit_shm_stream_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_shm_stream_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_api_threadrules_SOURCES = tests/unit/api/threadrules.c tests/unit/rankcheck.h
tests_unit_api_threadrules_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_api_threadrules_LDADD = $(TESTJOB_LIBS)

tests_unit_api_threads_SOURCES = tests/unit/api/threads.c tests/unit/rankcheck.h
tests_unit_api_threads_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_api_threads_LDADD = $(TESTJOB_LIBS)

tests_unit_base_coll_error_SOURCES = tests/unit/base/coll_error.c
tests_unit_base_coll_error_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_coll_error_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_base_tuning_SOURCES = tests/unit/base/tuning.c tests/unit/rankcheck.h
tests_unit_base_tuning_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_base_tuning_LDADD = $(TESTJOB_LIBS)
tests_unit_coll_adasum_SOURCES = tests/unit/coll/adasum.c tests/unit/rankcheck.h
tests_unit_coll_adasum_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_coll_adasum_LDADD = $(CHECKED_LIBS)

tests_unit_coll_hierarchical_SOURCES = tests/unit/coll/hierarchical.c tests/unit/rankcheck.h
tests_unit_coll_hierarchical_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_coll_hierarchical_LDADD = $(CHECKED_LIBS)

tests_unit_coll_foldparts_SOURCES = tests/unit/coll/foldparts.c tests/unit/rankcheck.h
tests_unit_coll_foldparts_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_coll_foldparts_LDADD = $(CHECKED_LIBS)

tests_unit_comm_communicators_SOURCES = tests/unit/comm/communicators.c tests/unit/rankcheck.h
tests_unit_comm_communicators_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_comm_communicators_LDADD = $(TESTJOB_LIBS)

tests_unit_api_blocks_SOURCES = tests/unit/api/blocks.c tests/unit/rankcheck.h
tests_unit_api_blocks_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_api_blocks_LDADD = $(TESTJOB_LIBS)

tests_unit_api_join_SOURCES = tests/unit/api/join.c tests/unit/rankcheck.h
tests_unit_api_join_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_api_join_LDADD = $(TESTJOB_LIBS)

tests_unit_gpu_gpufold_SOURCES = tests/unit/gpu/gpufold.c
tests_unit_gpu_gpufold_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_gpufold_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
tests_unit_gpu_gpufold_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_gpu_gpushared_SOURCES = tests/unit/gpu/gpushared.c
tests_unit_gpu_gpushared_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_gpushared_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_gpu_remedy_SOURCES = tests/unit/gpu/remedy.c
tests_unit_gpu_remedy_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_remedy_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)

tests_unit_gpu_gpupaths_SOURCES = tests/unit/gpu/gpupaths.c
tests_unit_gpu_gpupaths_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_gpupaths_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_base_reduceoptions_SOURCES = tests/unit/base/reduceoptions.c tests/unit/rankcheck.h
tests_unit_base_reduceoptions_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_base_reduceoptions_LDADD = $(TESTJOB_LIBS) -lm

tests_unit_coll_layout_SOURCES = tests/unit/coll/layout.c
tests_unit_coll_layout_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_coll_layout_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_base_count_check_SOURCES = tests/unit/base/count_check.c
tests_unit_base_count_check_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_count_check_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS)

tests_unit_kernels_wireformat_SOURCES = tests/unit/kernels/wireformat.c
tests_unit_kernels_wireformat_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_kernels_wireformat_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm

tests_unit_api_sendrecv_SOURCES = tests/unit/api/sendrecv.c tests/unit/rankcheck.h
tests_unit_api_sendrecv_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_api_sendrecv_LDADD = $(TESTJOB_LIBS)

tests_unit_faults_deaths_SOURCES = tests/unit/faults/deaths.c
tests_unit_faults_deaths_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_faults_deaths_LDADD = $(CHECKED_LIBS)
tests_unit_faults_deaths_LDFLAGS = $(FAULTS_WRAP)

tests_unit_faults_disturbed_SOURCES = tests/unit/faults/disturbed.c
tests_unit_faults_disturbed_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_faults_disturbed_LDADD = $(CHECKED_LIBS)
tests_unit_faults_disturbed_LDFLAGS = $(FAULTS_WRAP)

tests_unit_faults_disturbed_hosts_SOURCES = tests/unit/faults/disturbed_hosts.c
tests_unit_faults_disturbed_hosts_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_faults_disturbed_hosts_LDADD = $(CHECKED_LIBS)
tests_unit_faults_disturbed_hosts_LDFLAGS = $(FAULTS_WRAP)

tests_unit_faults_aborted_SOURCES = tests/unit/faults/aborted.c tests/unit/rankcheck.h
tests_unit_faults_aborted_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_faults_aborted_LDADD = $(TESTJOB_LIBS)
tests_unit_faults_aborted_LDFLAGS = $(FAULTS_WRAP)

# Every function that tests/unit/faults.c replaces.
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

tests_unit_p2p_p2p_SOURCES = tests/unit/p2p/p2p.c tests/unit/rankcheck.h
tests_unit_p2p_p2p_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_p2p_p2p_LDADD = $(TESTJOB_LIBS)

