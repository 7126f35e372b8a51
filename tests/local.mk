# make check: unit tests (cmocka) and black-box tests (bats). Each test point counts, through TAP.
TEST_EXTENSIONS = .bats
TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(TAP_DRIVER)
LOG_COMPILER = $(srcdir)/tests/unit/run
BATS_LOG_DRIVER = $(TAP_DRIVER)
BATS_LOG_COMPILER = $(srcdir)/tests/watched
AM_BATS_LOG_FLAGS = $(BATS) --tap
AM_TESTS_ENVIRONMENT = \
	CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	DTRUN_BUILD='$(abs_top_builddir)'; export DTRUN_BUILD; \
	DTRUN_SOURCE='$(abs_top_srcdir)'; export DTRUN_SOURCE;

# The order in which tests run. Black-box tests and those of the agent wait most of the time, and leave
# processors to the builds of ./quickstart check. Other unit tests and fuzz targets keep processors busy,
# and are short enough not to run alone at the end.
if HAVE_BATS
TESTS += $(CLI_TESTS) $(CLUSTER_TESTS) tests/sim/sim.bats
endif
if HAVE_CMOCKA
TESTS += $(AGENT_TESTS) $(UNIT_TESTS)
endif

# Unit tests: tests/unit/NAME.c becomes the program tests/unit/NAME. (The longest come first.)
UNIT_TESTS = \
	tests/unit/faults/disturbed_hosts \
	tests/unit/faults/deaths \
	tests/unit/faults/disturbed \
	tests/unit/coll/collectives \
	tests/unit/api/memory \
	tests/unit/shm/copied \
	tests/unit/coll/hierarchical \
	tests/unit/faults/aborted \
	tests/unit/api/threads \
	tests/unit/faults/failures \
	tests/unit/cmd/options \
	tests/unit/cmd/foreign \
	tests/unit/wire/frame \
	tests/unit/wire/msg \
	tests/unit/place/envrules \
	tests/unit/base/base \
	tests/unit/place/gpu \
	tests/unit/gpu/gpuabi \
	tests/unit/cmd/names \
	tests/unit/cmd/pernode \
	tests/unit/place/plan \
	tests/unit/place/frameworks_go \
	tests/unit/place/bind \
	tests/unit/base/elfneeds \
	tests/unit/job/fence \
	tests/unit/place/mpimap \
	tests/unit/base/needs \
	tests/unit/agent/pmi \
	tests/unit/hosts/hostlist \
	tests/unit/hosts/hostfile \
	tests/unit/hosts/hostarg \
	tests/unit/hosts/hostrange \
	tests/unit/hosts/scheduler \
	tests/unit/hosts/slurmgpus \
	tests/unit/wire/codec \
	tests/unit/remote/boot \
	tests/unit/place/iface \
	tests/unit/base/bytequeue \
	tests/unit/base/inject \
	tests/unit/base/uvloop \
	tests/unit/remote/link \
	tests/unit/remote/sshsettings \
	tests/unit/agent/pmisock \
	tests/unit/agent/keeper \
	tests/unit/agent/probe \
	tests/unit/agent/ranksock \
	tests/unit/agent/standby \
	tests/unit/watch/cause \
	tests/unit/remote/child \
	tests/unit/remote/sshsocket \
	tests/unit/agent/commshm \
	tests/unit/watch/wait_graph \
	tests/unit/check/check \
	tests/unit/check/paths \
	tests/unit/agent/hostfacts \
	tests/unit/checkpoint/checkpoint \
	tests/unit/checkpoint/checkpoint_anew \
	tests/unit/checkpoint/checkpoint_crash \
	tests/unit/checkpoint/checkpoint_format \
	tests/unit/checkpoint/checkpoint_owner \
	tests/unit/checkpoint/checkpoint_visible \
	tests/unit/session/heartbeat \
	tests/unit/driver/reportfile \
	tests/unit/driver/streams \
	tests/unit/job/engine \
	tests/unit/job/job_fsm \
	tests/unit/watch/flight_record \
	tests/unit/agent/cgroup \
	tests/unit/base/cgroupdir \
	tests/unit/agent/leftovers \
	tests/unit/agent/ncclfiles \
	tests/unit/agent/mapped \
	tests/unit/io/linebuf \
	tests/unit/io/outmux \
	tests/unit/io/outname \
	tests/unit/comm/pairnotes \
	tests/unit/session/reach \
	tests/unit/agent/rendezvous \
	tests/unit/agent/rendezvousserver \
	tests/unit/job/comeback \
	tests/unit/job/quarantine \
	tests/unit/job/restart \
	tests/unit/remote/quickack \
	tests/unit/remote/rshcommand \
	tests/unit/remote/sruncommand \
	tests/unit/agent/oom \
	tests/unit/agent/ratelimit \
	tests/unit/agent/relay \
	tests/unit/agent/quiet \
	tests/unit/agent/jobsignals \
	tests/unit/agent/removetree \
	tests/unit/agent/segments \
	tests/unit/gpu/standin_cuda \
	tests/unit/gpu/standin_misuse \
	tests/unit/gpu/standin_nccl \
	tests/unit/gpu/afterfailure \
	tests/unit/gpu/streamwait \
	tests/unit/faults/disturbed_gpu \
	tests/unit/gpu/provision \
	tests/unit/watch/words

include tests/runtime.mk

if HAVE_CMOCKA
check_PROGRAMS += $(UNIT_TESTS)

# These play the launcher for a real agent, and need the static agent.
AGENT_TESTS = tests/unit/agent/agentends tests/unit/agent/agent tests/unit/agent/agentfaults \
	tests/unit/agent/agentrendezvous
check_PROGRAMS += $(AGENT_TESTS)

# Tests with several threads, which also run under ThreadSanitizer. (The longest come first.)
THREAD_TESTS = tests/unit/checkpoint/checkpoint_isave tests/unit/tcp/alltoall \
	tests/unit/checkpoint/checkpoint_crash tests/unit/p2p/p2p tests/unit/shm/shm \
	tests/unit/api/requests tests/unit/api/buckets tests/unit/api/threads \
	tests/unit/api/threadrules tests/unit/comm/leaving tests/unit/checkpoint/checkpoint \
	tests/unit/comm/limits tests/unit/diag/recorder tests/unit/comm/error_report \
	tests/unit/comm/pairnotes tests/unit/remote/link

# What needs no static agent can run under a sanitizer: these unit tests, and the fuzz targets.
CHECKED_UNITS = $(UNIT_TESTS) $(FUZZ_TESTS)
# (Automake's check-TESTS would build all of check_PROGRAMS.)
units: $(CHECKED_UNITS)
runtime-libraries: $(RUNTIME_LIBS)
check-unit: units
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(CHECKED_UNITS)' check_PROGRAMS= check_LTLIBRARIES=
endif

tests_unit_libagentproc_a_SOURCES = tests/unit/agent/agentproc.c tests/unit/agent/agentproc.h
tests_unit_libagentproc_a_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)

tests_unit_agent_agent_SOURCES = tests/unit/agent/agent.c
tests_unit_agent_agent_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_agent_LDADD = tests/unit/libagentproc.a $(WIRE_LIBS) $(CMOCKA_LIBS)
EXTRA_tests_unit_agent_agent_DEPENDENCIES = cmd/dtrun-agent$(EXEEXT) tests/rank/fds$(EXEEXT)

tests_unit_agent_agentends_SOURCES = tests/unit/agent/agentends.c
tests_unit_agent_agentends_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_agentends_LDADD = tests/unit/libagentproc.a $(WIRE_LIBS) $(CMOCKA_LIBS)
EXTRA_tests_unit_agent_agentends_DEPENDENCIES = cmd/dtrun-agent$(EXEEXT)

tests_unit_agent_agentfaults_SOURCES = tests/unit/agent/agentfaults.c
tests_unit_agent_agentfaults_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_agentfaults_LDADD = tests/unit/libagentproc.a $(WIRE_LIBS) $(CMOCKA_LIBS)
EXTRA_tests_unit_agent_agentfaults_DEPENDENCIES = cmd/dtrun-agent$(EXEEXT) tests/rank/steps$(EXEEXT)

tests_unit_agent_agentrendezvous_SOURCES = tests/unit/agent/agentrendezvous.c
tests_unit_agent_agentrendezvous_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_agentrendezvous_LDADD = tests/unit/libagentproc.a $(WIRE_LIBS) $(CMOCKA_LIBS)
EXTRA_tests_unit_agent_agentrendezvous_DEPENDENCIES = cmd/dtrun-agent$(EXEEXT)

tests_unit_wire_codec_SOURCES = tests/unit/wire/codec.c
tests_unit_wire_codec_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_wire_codec_LDADD = $(WIRE_LIBS) $(CMOCKA_LIBS)

# With -rpath, libtool builds these as shared libraries.
FAKES = tests/fake/libstandstill.la tests/fake/libclock.la \
	tests/fake/libimpatient.la tests/fake/libspoiled.la tests/fake/libthreadless.la \
	tests/fake/libunfinished.la tests/fake/libhungdisk.la tests/fake/libloading.la
check_LTLIBRARIES = $(FAKES)
tests_fake_libstandstill_la_SOURCES = tests/fake/standstill.c
tests_fake_libstandstill_la_LDFLAGS = -avoid-version -rpath /nowhere
tests_fake_libclock_la_SOURCES = tests/fake/clock.c
tests_fake_libclock_la_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
# (Linked with -z now, it could not be loaded into env without libuv.)
tests_fake_libclock_la_LIBADD = $(UV_LIBS)
tests_fake_libclock_la_LDFLAGS = -avoid-version -rpath /nowhere
tests_fake_libimpatient_la_SOURCES = tests/fake/impatient.c
tests_fake_libimpatient_la_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
tests_fake_libimpatient_la_LDFLAGS = -avoid-version -rpath /nowhere
tests_fake_libloading_la_SOURCES = tests/fake/loading.c
tests_fake_libloading_la_LDFLAGS = -avoid-version -rpath /nowhere
tests_fake_libspoiled_la_SOURCES = tests/fake/spoiled.c
tests_fake_libspoiled_la_LDFLAGS = -avoid-version -rpath /nowhere
tests_fake_libthreadless_la_SOURCES = tests/fake/threadless.c
tests_fake_libthreadless_la_LDFLAGS = -avoid-version -rpath /nowhere
tests_fake_libunfinished_la_SOURCES = tests/fake/unfinished.c
tests_fake_libunfinished_la_LDFLAGS = -avoid-version -rpath /nowhere
tests_fake_libhungdisk_la_SOURCES = tests/fake/hungdisk.c
tests_fake_libhungdisk_la_LDFLAGS = -avoid-version -rpath /nowhere

# A stand-in for NVIDIA's driver. tests/standin/standin.bash makes programs find it.
EXTRA_DIST += tests/standin/standin.bash
check_LTLIBRARIES += tests/standin/libcuda.la
tests_standin_libcuda_la_SOURCES = tests/standin/driver.h tests/standin/standin.h \
	tests/standin/capture.c tests/standin/contexts.c tests/standin/copies.c \
	tests/standin/devices.c tests/standin/events.c tests/standin/fold.c \
	tests/standin/kernels.c tests/standin/memory.c tests/standin/names.c \
	tests/standin/streams.c tests/standin/virtual.c
tests_standin_libcuda_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
tests_standin_libcuda_la_LDFLAGS = -version-info 1:0:0 -rpath /nowhere

# A stand-in for the CUDA runtime's last error.
check_LTLIBRARIES += tests/standin/libcudart.la
tests_standin_libcudart_la_SOURCES = tests/standin/cudart.c tests/standin/cudart.h \
	tests/standin/standin.h
tests_standin_libcudart_la_LIBADD = tests/standin/libcuda.la
tests_standin_libcudart_la_LDFLAGS = -version-info 13:0:0 -rpath /nowhere

# C versions of the kernels of examples/charlm.cu, for that stand-in.
check_LTLIBRARIES += tests/standin/libcharlm.la
tests_standin_libcharlm_la_SOURCES = tests/standin/charlm.c tests/standin/standin.h \
	examples/charlm.h examples/charlm_kernels.h
tests_standin_libcharlm_la_LIBADD = tests/standin/libcuda.la -lm
tests_standin_libcharlm_la_LDFLAGS = -module -avoid-version -rpath /nowhere

# A stand-in for NCCL, on the stand-in for the driver.
check_LTLIBRARIES += tests/standin/libnccl.la
tests_standin_libnccl_la_SOURCES = tests/standin/standin.h tests/standin/nccl/collective.c \
	tests/standin/nccl/comm.c tests/standin/nccl/comm.h tests/standin/nccl/config.c \
	tests/standin/nccl/config.h tests/standin/nccl/device.c tests/standin/nccl/device.h \
	tests/standin/nccl/elements.c tests/standin/nccl/elements.h tests/standin/nccl/errors.c \
	tests/standin/nccl/errors.h tests/standin/nccl/faults.c tests/standin/nccl/faults.h \
	tests/standin/nccl/group.c tests/standin/nccl/group.h \
	tests/standin/nccl/init.c tests/standin/nccl/inject.c tests/standin/nccl/inject.h \
	tests/standin/nccl/kernel.c tests/standin/nccl/kernel.h tests/standin/nccl/launch.c \
	tests/standin/nccl/launch.h tests/standin/nccl/link.c tests/standin/nccl/link.h \
	tests/standin/nccl/operation.c tests/standin/nccl/operation.h \
	tests/standin/nccl/order.c tests/standin/nccl/order.h tests/standin/nccl/p2p.c \
	tests/standin/nccl/primary.c tests/standin/nccl/primary.h \
	tests/standin/nccl/redop.c tests/standin/nccl/shared.c tests/standin/nccl/shared.h \
	tests/standin/nccl/smallfloat.c tests/standin/nccl/smallfloat.h \
	tests/standin/nccl/teardown.c
tests_standin_libnccl_la_LIBADD = tests/standin/libcuda.la -lm
tests_standin_libnccl_la_LDFLAGS = -version-info 2:0:0 -rpath /nowhere

# Makes NVIDIA's own libnccl run on the stand-in for the driver.
check_LTLIBRARIES += tests/standin/libnvidia.la
tests_standin_libnvidia_la_SOURCES = tests/standin/nvidia/abi.h tests/standin/nvidia/connection.c \
	tests/standin/nvidia/connection.h tests/standin/nvidia/function.c \
	tests/standin/nvidia/function.h tests/standin/nvidia/kernel.c \
	tests/standin/nvidia/kernel.h tests/standin/nvidia/nvml.c tests/standin/nvidia/p2p.c \
	tests/standin/nvidia/p2p.h tests/standin/nvidia/patch.c tests/standin/nvidia/ring.c \
	tests/standin/nvidia/ring.h tests/standin/nvidia/runtime.c tests/standin/nvidia/runtime.h \
	tests/standin/nccl/elements.c tests/standin/nccl/faults.c tests/standin/nccl/primary.c \
	tests/standin/nccl/smallfloat.c
tests_standin_libnvidia_la_LIBADD = tests/standin/libcuda.la -lm
tests_standin_libnvidia_la_LDFLAGS = -module -avoid-version -rpath /nowhere

tests_unit_gpu_afterfailure_SOURCES = tests/unit/gpu/afterfailure.c
tests_unit_gpu_afterfailure_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_afterfailure_LDADD = $(RUNTIME_LIBS) tests/standin/libnccl.la \
	tests/standin/libcuda.la $(SODIUM_LIBS) $(CMOCKA_LIBS) -lm
tests_unit_gpu_afterfailure_LDFLAGS = -no-install -Wl,--no-as-needed

tests_unit_gpu_streamwait_SOURCES = tests/unit/gpu/streamwait.c
tests_unit_gpu_streamwait_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_streamwait_LDADD = $(RUNTIME_LIBS) tests/standin/libcuda.la $(SODIUM_LIBS) \
	$(CMOCKA_LIBS) -lm
tests_unit_gpu_streamwait_LDFLAGS = -no-install -Wl,--no-as-needed \
	-Wl,--wrap=dt_gpu_gate_open,--wrap=dt_gpu_await_event,--wrap=dt_async_end_soon

tests_unit_faults_disturbed_gpu_SOURCES = tests/unit/faults/disturbed_gpu.c
tests_unit_faults_disturbed_gpu_CPPFLAGS = $(TESTJOB_CPPFLAGS)
tests_unit_faults_disturbed_gpu_LDADD = $(CHECKED_LIBS) tests/standin/libnccl.la \
	tests/standin/libcuda.la
tests_unit_faults_disturbed_gpu_LDFLAGS = -no-install -Wl,--no-as-needed $(FAULTS_WRAP)

tests_unit_gpu_provision_SOURCES = tests/unit/gpu/provision.c
tests_unit_gpu_provision_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_provision_LDADD = $(RUNTIME_LIBS) tests/standin/libcuda.la $(SODIUM_LIBS) \
	$(CMOCKA_LIBS)
tests_unit_gpu_provision_LDFLAGS = -no-install -Wl,--no-as-needed

tests_unit_gpu_standin_cuda_SOURCES = tests/unit/gpu/standin_cuda.c
tests_unit_gpu_standin_cuda_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_standin_cuda_LDADD = tests/standin/libcudart.la tests/standin/libcuda.la $(CMOCKA_LIBS)
tests_unit_gpu_standin_cuda_LDFLAGS = -no-install -Wl,--export-dynamic

tests_unit_gpu_standin_nccl_SOURCES = tests/unit/gpu/standin_nccl.c tests/unit/gpu/standin_nccl.h \
	tests/unit/gpu/standin_ranks.c tests/standin/nccl/elements.c tests/standin/nccl/smallfloat.c
tests_unit_gpu_standin_nccl_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_standin_nccl_LDADD = tests/standin/libnccl.la tests/standin/libcuda.la \
	$(CMOCKA_LIBS) -lm
tests_unit_gpu_standin_nccl_LDFLAGS = -no-install

tests_unit_gpu_standin_misuse_SOURCES = tests/unit/gpu/standin_misuse.c \
	tests/unit/gpu/standin_nccl.h tests/unit/gpu/standin_ranks.c
tests_unit_gpu_standin_misuse_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_standin_misuse_LDADD = tests/standin/libnccl.la tests/standin/libcuda.la \
	$(CMOCKA_LIBS)
tests_unit_gpu_standin_misuse_LDFLAGS = -no-install

tests_unit_remote_boot_SOURCES = tests/unit/remote/boot.c tests/unit/unit.h
tests_unit_remote_boot_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_remote_boot_LDADD = $(LAUNCHER_LIBS) $(SSH2_LIBS) $(CMOCKA_LIBS)

tests_unit_place_iface_SOURCES = tests/unit/place/iface.c tests/unit/unit.h
tests_unit_place_iface_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_place_iface_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_base_bytequeue_SOURCES = tests/unit/base/bytequeue.c
tests_unit_base_bytequeue_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_bytequeue_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_base_inject_SOURCES = tests/unit/base/inject.c
tests_unit_base_inject_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_inject_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_remote_child_SOURCES = tests/unit/remote/child.c tests/unit/unit.h
tests_unit_remote_child_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_remote_child_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS) $(UV_LIBS)

tests_unit_remote_sshsocket_SOURCES = tests/unit/remote/sshsocket.c tests/unit/unit.h
tests_unit_remote_sshsocket_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(SSH2_CFLAGS) $(UV_CFLAGS)
tests_unit_remote_sshsocket_LDADD = $(LAUNCHER_LIBS) $(SSH2_LIBS) $(CMOCKA_LIBS) $(UV_LIBS)

# It also runs under ThreadSanitizer, and no other test there needs the launcher's libraries.
tests_unit_remote_link_SOURCES = tests/unit/remote/link.c tests/unit/unit.h launcher/remote/boot.c \
	launcher/remote/child.c launcher/remote/limit.c launcher/remote/link.c launcher/remote/pass.c \
	launcher/remote/transport_child.c launcher/remote/transport_local.c
tests_unit_remote_link_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_remote_link_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS) $(UV_LIBS)

tests_unit_remote_sshsettings_SOURCES = tests/unit/remote/sshsettings.c tests/unit/unit.h
tests_unit_remote_sshsettings_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_remote_sshsettings_LDADD = $(LAUNCHER_LIBS) $(SSH2_LIBS) $(CMOCKA_LIBS) $(UV_LIBS)

tests_unit_agent_probe_SOURCES = tests/unit/agent/probe.c tests/unit/unit.h
tests_unit_agent_probe_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_agent_probe_LDADD = $(AGENT_LIBS) $(SODIUM_LIBS) $(UV_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_keeper_SOURCES = tests/unit/agent/keeper.c tests/unit/unit.h
tests_unit_agent_keeper_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_keeper_LDADD = $(AGENT_LIBS) $(UV_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_pmisock_SOURCES = tests/unit/agent/pmisock.c tests/unit/unit.h
tests_unit_agent_pmisock_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_agent_pmisock_LDADD = $(AGENT_LIBS) $(UV_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_standby_SOURCES = tests/unit/agent/standby.c tests/unit/unit.h
tests_unit_agent_standby_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_standby_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_comm_pairnotes_SOURCES = tests/unit/comm/pairnotes.c tests/unit/unit.h
tests_unit_comm_pairnotes_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_comm_pairnotes_LDADD = launcher/libranklink.a launcher/libbase.a $(RUNTIME_LIBS) $(UV_LIBS) \
	$(CMOCKA_LIBS)

tests_unit_agent_ranksock_SOURCES = tests/unit/agent/ranksock.c
tests_unit_agent_ranksock_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_agent_ranksock_LDADD = $(AGENT_LIBS) $(UV_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_commshm_SOURCES = tests/unit/agent/commshm.c
tests_unit_agent_commshm_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_commshm_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_quiet_SOURCES = tests/unit/agent/quiet.c tests/unit/unit.h
tests_unit_agent_quiet_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_agent_quiet_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS) $(UV_LIBS)

tests_unit_agent_jobsignals_SOURCES = tests/unit/agent/jobsignals.c tests/unit/unit.h
tests_unit_agent_jobsignals_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_agent_jobsignals_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS) $(UV_LIBS)

tests_unit_agent_relay_SOURCES = tests/unit/agent/relay.c tests/unit/unit.h
tests_unit_agent_relay_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_agent_relay_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS) $(UV_LIBS)

tests_unit_agent_removetree_SOURCES = tests/unit/agent/removetree.c tests/unit/unit.h
tests_unit_agent_removetree_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_removetree_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_oom_SOURCES = tests/unit/agent/oom.c tests/unit/unit.h
tests_unit_agent_oom_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_oom_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_ratelimit_SOURCES = tests/unit/agent/ratelimit.c tests/unit/unit.h
tests_unit_agent_ratelimit_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_ratelimit_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_segments_SOURCES = tests/unit/agent/segments.c
tests_unit_agent_segments_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_segments_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_hosts_hostarg_SOURCES = tests/unit/hosts/hostarg.c tests/unit/unit.h \
	tests/unit/hosts/describe.h
tests_unit_hosts_hostarg_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_hosts_hostarg_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_hosts_hostrange_SOURCES = tests/unit/hosts/hostrange.c tests/unit/unit.h
tests_unit_hosts_hostrange_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_hosts_hostrange_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_hosts_scheduler_SOURCES = tests/unit/hosts/scheduler.c tests/unit/unit.h \
	tests/unit/hosts/describe.h
tests_unit_hosts_scheduler_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_hosts_scheduler_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_hosts_slurmgpus_SOURCES = tests/unit/hosts/slurmgpus.c tests/unit/unit.h
tests_unit_hosts_slurmgpus_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_hosts_slurmgpus_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_hosts_hostfile_SOURCES = tests/unit/hosts/hostfile.c tests/unit/unit.h \
	tests/unit/hosts/describe.h
tests_unit_hosts_hostfile_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_hosts_hostfile_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_hosts_hostlist_SOURCES = tests/unit/hosts/hostlist.c tests/unit/unit.h \
	tests/unit/hosts/describe.h
tests_unit_hosts_hostlist_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_hosts_hostlist_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_place_plan_SOURCES = tests/unit/place/plan.c tests/unit/unit.h
tests_unit_place_plan_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_place_plan_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_place_frameworks_go_SOURCES = tests/unit/place/frameworks_go.c tests/unit/unit.h
tests_unit_place_frameworks_go_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_place_frameworks_go_LDADD = $(LAUNCHER_LIBS) $(CJSON_LIBS) $(CMOCKA_LIBS)

tests_unit_base_elfneeds_SOURCES = tests/unit/base/elfneeds.c tests/unit/unit.h
tests_unit_base_elfneeds_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_elfneeds_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_place_bind_SOURCES = tests/unit/place/bind.c tests/unit/unit.h
tests_unit_place_bind_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_place_bind_LDADD = $(AGENT_LIBS) $(UV_LIBS) $(CMOCKA_LIBS)

tests_unit_place_gpu_SOURCES = tests/unit/place/gpu.c tests/unit/unit.h
tests_unit_place_gpu_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_place_gpu_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

# Only the half that compares with NVIDIA's headers may see them.
check_LIBRARIES = tests/unit/libgpuabi.a
tests_unit_libgpuabi_a_SOURCES = tests/unit/gpu/gpuabi_real.c tests/unit/gpu/gpuabi_facts.h \
	tests/unit/gpu/gpuabi.h runtime/gpu/nvidia/abi_cuda.h runtime/gpu/nvidia/abi_nccl.h
tests_unit_libgpuabi_a_CPPFLAGS = $(AM_CPPFLAGS) $(NVIDIA_CPPFLAGS)
tests_unit_gpu_gpuabi_SOURCES = tests/unit/gpu/gpuabi.c tests/unit/gpu/gpuabi_facts.h \
	tests/unit/gpu/gpuabi.h
tests_unit_gpu_gpuabi_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_gpu_gpuabi_LDADD = tests/unit/libgpuabi.a $(CMOCKA_LIBS)

tests_unit_base_base_SOURCES = tests/unit/base/base.c tests/unit/unit.h
tests_unit_base_base_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_base_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_place_envrules_SOURCES = tests/unit/place/envrules.c tests/unit/unit.h
tests_unit_place_envrules_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_place_envrules_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_wire_msg_SOURCES = tests/unit/wire/msg.c tests/unit/unit.h
tests_unit_wire_msg_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_wire_msg_LDADD = $(WIRE_LIBS) $(CMOCKA_LIBS)

tests_unit_wire_frame_SOURCES = tests/unit/wire/frame.c tests/unit/unit.h
tests_unit_wire_frame_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_wire_frame_LDADD = $(WIRE_LIBS) $(CMOCKA_LIBS)

tests_unit_cmd_foreign_SOURCES = tests/unit/cmd/foreign.c tests/unit/cmd/optiontext.h \
	tests/unit/unit.h
tests_unit_cmd_foreign_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) -DTEST_SOURCE='"$(abs_top_srcdir)"'
tests_unit_cmd_foreign_LDADD = $(CMD_LIBS) $(CMOCKA_LIBS)

tests_unit_cmd_names_SOURCES = tests/unit/cmd/names.c cmd/pmix/names.c tests/unit/unit.h
tests_unit_cmd_names_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cmd_names_LDADD = $(CMD_LIBS) $(CMOCKA_LIBS)

tests_unit_cmd_pernode_SOURCES = tests/unit/cmd/pernode.c tests/unit/unit.h
tests_unit_cmd_pernode_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cmd_pernode_LDADD = $(CMD_LIBS) $(CMOCKA_LIBS)

tests_unit_cmd_options_SOURCES = tests/unit/cmd/options.c tests/unit/cmd/optiontext.h \
	tests/unit/unit.h
tests_unit_cmd_options_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cmd_options_LDADD = $(CMD_LIBS) $(CMOCKA_LIBS)

tests_unit_libcheckpoint_a_SOURCES = tests/unit/checkpoint/checkpoint_ranks.c \
	tests/unit/checkpoint/checkpoint_ranks.h tests/unit/checkpoint/scratch.h
tests_unit_libcheckpoint_a_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
CHECKPOINT_LIBS = tests/unit/libcheckpoint.a $(RUNTIME_LIBS) $(SODIUM_STATIC_LIBS) $(CMOCKA_LIBS)

tests_unit_checkpoint_checkpoint_SOURCES = tests/unit/checkpoint/checkpoint.c tests/unit/unit.h
tests_unit_checkpoint_checkpoint_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_checkpoint_checkpoint_LDADD = $(CHECKPOINT_LIBS)

tests_unit_checkpoint_checkpoint_anew_SOURCES = tests/unit/checkpoint/checkpoint_anew.c \
	tests/unit/unit.h
tests_unit_checkpoint_checkpoint_anew_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_checkpoint_checkpoint_anew_LDADD = $(CHECKPOINT_LIBS)

tests_unit_checkpoint_checkpoint_crash_SOURCES = tests/unit/checkpoint/checkpoint_crash.c \
	tests/unit/unit.h
tests_unit_checkpoint_checkpoint_crash_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_checkpoint_checkpoint_crash_LDADD = $(CHECKPOINT_LIBS)

tests_unit_checkpoint_checkpoint_format_SOURCES = tests/unit/checkpoint/checkpoint_format.c \
	tests/unit/unit.h
tests_unit_checkpoint_checkpoint_format_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_checkpoint_checkpoint_format_LDADD = $(RUNTIME_LIBS) $(SODIUM_STATIC_LIBS) \
	$(CMOCKA_LIBS)

tests_unit_checkpoint_checkpoint_owner_SOURCES = tests/unit/checkpoint/checkpoint_owner.c \
	tests/unit/unit.h
tests_unit_checkpoint_checkpoint_owner_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_checkpoint_checkpoint_owner_LDADD = $(CHECKPOINT_LIBS)

tests_unit_checkpoint_checkpoint_visible_SOURCES = tests/unit/checkpoint/checkpoint_visible.c \
	tests/unit/unit.h
tests_unit_checkpoint_checkpoint_visible_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_checkpoint_checkpoint_visible_LDADD = $(CHECKPOINT_LIBS)

tests_unit_watch_wait_graph_SOURCES = tests/unit/watch/wait_graph.c tests/unit/unit.h
tests_unit_watch_wait_graph_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_watch_wait_graph_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_watch_cause_SOURCES = tests/unit/watch/cause.c tests/unit/unit.h
tests_unit_watch_cause_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_watch_cause_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_check_check_SOURCES = tests/unit/check/check.c tests/unit/unit.h
tests_unit_check_check_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_check_check_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_check_paths_SOURCES = tests/unit/check/paths.c tests/unit/unit.h
tests_unit_check_paths_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_check_paths_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_hostfacts_SOURCES = tests/unit/agent/hostfacts.c tests/unit/unit.h
tests_unit_agent_hostfacts_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_hostfacts_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_cgroup_SOURCES = tests/unit/agent/cgroup.c tests/unit/unit.h
tests_unit_agent_cgroup_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_cgroup_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_base_uvloop_SOURCES = tests/unit/base/uvloop.c tests/unit/unit.h
tests_unit_base_uvloop_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_base_uvloop_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_base_cgroupdir_SOURCES = tests/unit/base/cgroupdir.c tests/unit/unit.h
tests_unit_base_cgroupdir_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_cgroupdir_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_leftovers_SOURCES = tests/unit/agent/leftovers.c tests/unit/forbid.h \
	tests/unit/unit.h
tests_unit_agent_leftovers_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_leftovers_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_ncclfiles_SOURCES = tests/unit/agent/ncclfiles.c tests/unit/unit.h
tests_unit_agent_ncclfiles_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_ncclfiles_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_mapped_SOURCES = tests/unit/agent/mapped.c tests/unit/unit.h
tests_unit_agent_mapped_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_mapped_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_session_heartbeat_SOURCES = tests/unit/session/heartbeat.c tests/unit/unit.h
tests_unit_session_heartbeat_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_session_heartbeat_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_driver_reportfile_SOURCES = tests/unit/driver/reportfile.c tests/unit/unit.h
tests_unit_driver_reportfile_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_driver_reportfile_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_driver_streams_SOURCES = tests/unit/driver/streams.c tests/unit/unit.h
tests_unit_driver_streams_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_driver_streams_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS) $(UV_LIBS)

# Linked without libuv and libssh2, which shows that the engine needs neither.
tests_unit_job_engine_SOURCES = tests/unit/job/engine.c tests/unit/unit.h
tests_unit_job_engine_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_job_engine_LDADD = $(ENGINE_LIBS) $(CJSON_LIBS) $(CMOCKA_LIBS)

tests_unit_job_job_fsm_SOURCES = tests/unit/job/job_fsm.c tests/unit/unit.h
tests_unit_job_job_fsm_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_job_job_fsm_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_io_linebuf_SOURCES = tests/unit/io/linebuf.c tests/unit/unit.h
tests_unit_io_linebuf_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_io_linebuf_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_io_outmux_SOURCES = tests/unit/io/outmux.c tests/unit/unit.h
tests_unit_io_outmux_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_io_outmux_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS) $(UV_LIBS)

tests_unit_job_fence_SOURCES = tests/unit/job/fence.c tests/unit/unit.h
tests_unit_job_fence_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_job_fence_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_place_mpimap_SOURCES = tests/unit/place/mpimap.c tests/unit/unit.h
tests_unit_place_mpimap_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_place_mpimap_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_base_needs_SOURCES = tests/unit/base/needs.c tests/unit/unit.h
tests_unit_base_needs_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_needs_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

tests_unit_remote_quickack_SOURCES = tests/unit/remote/quickack.c tests/unit/unit.h
tests_unit_remote_quickack_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_remote_quickack_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_remote_rshcommand_SOURCES = tests/unit/remote/rshcommand.c tests/unit/unit.h
tests_unit_remote_rshcommand_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_remote_rshcommand_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_remote_sruncommand_SOURCES = tests/unit/remote/sruncommand.c tests/unit/unit.h
tests_unit_remote_sruncommand_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_remote_sruncommand_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_pmi_SOURCES = tests/unit/agent/pmi.c tests/unit/unit.h
tests_unit_agent_pmi_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_pmi_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_rendezvous_SOURCES = tests/unit/agent/rendezvous.c tests/unit/unit.h
tests_unit_agent_rendezvous_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_agent_rendezvous_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS)

tests_unit_agent_rendezvousserver_SOURCES = tests/unit/agent/rendezvousserver.c tests/unit/unit.h
tests_unit_agent_rendezvousserver_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(UV_CFLAGS)
tests_unit_agent_rendezvousserver_LDADD = $(AGENT_LIBS) $(CMOCKA_LIBS) $(UV_LIBS)

tests_unit_session_reach_SOURCES = tests/unit/session/reach.c tests/unit/unit.h
tests_unit_session_reach_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_session_reach_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_io_outname_SOURCES = tests/unit/io/outname.c tests/unit/unit.h
tests_unit_io_outname_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_io_outname_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_job_comeback_SOURCES = tests/unit/job/comeback.c tests/unit/unit.h
tests_unit_job_comeback_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_job_comeback_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)
tests_unit_job_quarantine_SOURCES = tests/unit/job/quarantine.c tests/unit/unit.h
tests_unit_job_quarantine_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_job_quarantine_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_job_restart_SOURCES = tests/unit/job/restart.c tests/unit/unit.h
tests_unit_job_restart_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_job_restart_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_watch_flight_record_SOURCES = tests/unit/watch/flight_record.c tests/unit/unit.h
tests_unit_watch_flight_record_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_watch_flight_record_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

tests_unit_watch_words_SOURCES = tests/unit/watch/words.c tests/unit/unit.h
tests_unit_watch_words_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
tests_unit_watch_words_LDADD = $(LAUNCHER_LIBS) $(CMOCKA_LIBS)

# Helper programs of the black-box tests.
HELPERS = \
	tests/fake/slowagent \
	tests/rank/linkprobe \
	tests/rank/oldagent \
	tests/rank/parent \
	tests/rank/closed \
	tests/rank/plugin \
	tests/rank/stuck \
	tests/rank/gpu \
	tests/rank/gpubucket \
	tests/rank/gpurandom \
	tests/rank/gpushared \
	tests/rank/gpusome \
	tests/rank/gpustream \
	tests/gpu/probe \
	tests/gpu/fetch \
	tests/gpu/stacks \
	tests/rank/fds \
	tests/rank/flood \
	tests/rank/lastline \
	tests/rank/randomjob \
	tests/rank/train \
	tests/rank/busy \
	tests/rank/headless \
	tests/rank/late \
	tests/rank/steps \
	tests/rank/unlike \
	tests/rank/pslite \
	tests/rank/horovod \
	tests/rank/signals \
	tests/kernels/bytes
check_PROGRAMS += $(HELPERS)

# Everything that black-box tests run.
helpers: all $(HELPERS) $(check_LTLIBRARIES)

tests_rank_linkprobe_SOURCES = tests/rank/linkprobe.c
tests_rank_linkprobe_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
tests_rank_linkprobe_LDADD = $(LAUNCHER_LIBS) $(SSH2_LIBS) $(UV_LIBS)
tests_rank_oldagent_SOURCES = tests/rank/oldagent.c
tests_rank_oldagent_LDADD = $(WIRE_LIBS)

tests_rank_parent_SOURCES = tests/rank/parent.c
tests_rank_parent_LDADD = runtime/libdtrun.la
tests_rank_parent_LDFLAGS = -no-install
tests_rank_plugin_SOURCES = tests/rank/plugin.c
tests_rank_closed_SOURCES = tests/rank/closed.c
tests_rank_closed_LDADD = runtime/libdtrun.la
tests_rank_closed_LDFLAGS = -no-install
tests_rank_stuck_SOURCES = tests/rank/stuck.c
tests_rank_stuck_LDADD = runtime/libdtrun.la
tests_rank_stuck_LDFLAGS = -no-install

tests_rank_gpu_SOURCES = tests/rank/gpu.c tests/rank/device.c tests/rank/device.h
tests_rank_gpu_LDADD = runtime/libdtrun.la runtime/libgpufound.a $(WIRE_LIBS) -lm
tests_rank_gpu_LDFLAGS = -no-install
tests_rank_gpubucket_SOURCES = tests/rank/gpubucket.c tests/rank/device.c tests/rank/device.h
tests_rank_gpubucket_LDADD = runtime/libdtrun.la runtime/libgpufound.a $(WIRE_LIBS)
tests_rank_gpubucket_LDFLAGS = -no-install
tests_rank_gpurandom_SOURCES = tests/rank/gpurandom.c tests/rank/gpuplain.c tests/rank/gpuplain.h \
	tests/rank/device.c tests/rank/device.h
tests_rank_gpurandom_LDADD = runtime/libdtrun.la runtime/libgpufound.a $(WIRE_LIBS) -lm
tests_rank_gpurandom_LDFLAGS = -no-install
tests_rank_gpushared_SOURCES = tests/rank/gpushared.c tests/rank/device.c tests/rank/device.h
tests_rank_gpushared_LDADD = runtime/libdtrun.la runtime/libgpufound.a $(WIRE_LIBS) -lm
tests_rank_gpushared_LDFLAGS = -no-install
tests_rank_gpusome_SOURCES = tests/rank/gpusome.c tests/rank/device.c tests/rank/device.h
tests_rank_gpusome_LDADD = runtime/libdtrun.la runtime/libgpufound.a $(WIRE_LIBS)
tests_rank_gpusome_LDFLAGS = -no-install
tests_rank_gpustream_SOURCES = tests/rank/gpustream.c tests/rank/device.c tests/rank/device.h
tests_rank_gpustream_LDADD = runtime/libdtrun.la runtime/libgpufound.a $(WIRE_LIBS)
tests_rank_gpustream_LDFLAGS = -no-install

# The GPU kit: make gpu-kit puts it together for a machine that has a GPU and nothing else
# installed.
tests_gpu_probe_SOURCES = tests/gpu/probe.c tests/gpu/probe.h tests/gpu/check.c \
	tests/gpu/failures.c tests/gpu/speed.c tests/gpu/raw.c tests/gpu/raw.h tests/gpu/spin.c \
	tests/gpu/spin.h tests/rank/device.c tests/rank/device.h tests/standin/standin.h
tests_gpu_probe_LDADD = runtime/libdtrun.la runtime/libgpufound.a $(WIRE_LIBS)
tests_gpu_probe_LDFLAGS = -no-install -Wl,--export-dynamic
tests_gpu_fetch_SOURCES = tests/gpu/fetch.c tests/rank/device.c tests/rank/device.h
tests_gpu_fetch_LDADD = $(RUNTIME_LIBS) $(SODIUM_LIBS)
tests_gpu_fetch_LDFLAGS = -no-install

tests_gpu_stacks_SOURCES = tests/gpu/stacks.c

gpu-kit: helpers
	sh $(srcdir)/tests/gpu/assemble $(srcdir) gpu-kit
clean-local: clean-gpu-kit
clean-gpu-kit:
	rm -rf gpu-kit
.PHONY: units runtime-libraries check-unit helpers gpu-kit clean-gpu-kit
EXTRA_DIST += tests/gpu/assemble tests/gpu/evidence tests/gpu/random tests/gpu/run

tests_rank_train_SOURCES = tests/rank/train.c
tests_rank_train_LDADD = runtime/libdtrun.la
tests_rank_train_LDFLAGS = -no-install
tests_rank_randomjob_SOURCES = tests/rank/randomjob.c
tests_rank_randomjob_LDADD = runtime/libdtrun.la
tests_rank_randomjob_LDFLAGS = -no-install
tests_rank_fds_SOURCES = tests/rank/fds.c
tests_rank_flood_SOURCES = tests/rank/flood.c
tests_rank_lastline_SOURCES = tests/rank/lastline.c
tests_rank_busy_SOURCES = tests/rank/busy.c
tests_rank_busy_LDADD = runtime/libdtrun.la
tests_rank_busy_LDFLAGS = -no-install
tests_rank_headless_SOURCES = tests/rank/headless.c
tests_fake_slowagent_SOURCES = tests/fake/slowagent.c cmd/dtrun-agent.c
tests_fake_slowagent_CPPFLAGS = $(cmd_dtrun_agent_CPPFLAGS)
tests_fake_slowagent_LDADD = $(cmd_dtrun_agent_LDADD)
tests_fake_slowagent_LDFLAGS = $(cmd_dtrun_agent_LDFLAGS)

tests_rank_late_SOURCES = tests/rank/late.c
tests_rank_late_LDADD = runtime/libdtrun.la
tests_rank_late_LDFLAGS = -no-install
tests_rank_steps_SOURCES = tests/rank/steps.c
tests_rank_steps_LDADD = runtime/libdtrun.la
tests_rank_steps_LDFLAGS = -no-install
tests_rank_unlike_SOURCES = tests/rank/unlike.c
tests_rank_unlike_LDADD = runtime/libdtrun.la
tests_rank_unlike_LDFLAGS = -no-install
tests_rank_horovod_SOURCES = tests/rank/horovod.c tests/rank/variable.h
tests_rank_signals_SOURCES = tests/rank/signals.c
tests_rank_pslite_SOURCES = tests/rank/pslite.c tests/rank/variable.h

tests_kernels_bytes_SOURCES = tests/kernels/bytes.c
tests_kernels_bytes_LDADD = $(RUNTIME_LIBS) $(SODIUM_STATIC_LIBS)

# Black-box tests; the longest of each kind come first.
CLI_TESTS = \
	tests/cli/gpu.bats \
	tests/cli/gpumixed.bats \
	tests/cli/gpunvidia.bats \
	tests/cli/gpushared.bats \
	tests/cli/gpustream.bats \
	tests/cli/gpukit.bats \
	tests/cli/ptx.bats \
	tests/cli/usage.bats \
	tests/cli/quickstart.bats \
	tests/cli/dryrun.bats \
	tests/cli/check.bats \
	tests/cli/manual.bats \
	tests/cli/migrate.bats \
	tests/cli/completion.bats \
	tests/cli/source.bats \
	tests/cli/library.bats \
	tests/cli/programs.bats \
	tests/cli/kernels.bats \
	tests/cli/exit.bats \
	tests/cli/stop.bats \
	tests/cli/lost.bats \
	tests/cli/stdin.bats \
	tests/cli/output.bats \
	tests/cli/perf.bats \
	tests/cli/ranks.bats \
	tests/cli/horovod.bats \
	tests/cli/mpi.bats \
	tests/cli/rsh.bats \
	tests/cli/mxnet.bats \
	tests/cli/push.bats \
	tests/cli/restart.bats \
	tests/cli/late.bats \
	tests/cli/recover.bats \
	tests/cli/train.bats
CLUSTER_TESTS = \
	tests/cluster/connect.bats \
	tests/cluster/bench.bats \
	tests/cluster/collectives.bats \
	tests/cluster/frameworks.bats \
	tests/cluster/failures.bats \
	tests/cluster/transport.bats \
	tests/cluster/recover.bats \
	tests/cluster/gpu.bats \
	tests/cluster/horovod.bats \
	tests/cluster/mpi.bats \
	tests/cluster/slurm.bats \
	tests/cluster/network.bats \
	tests/cluster/random.bats \
	tests/cluster/check.bats \
	tests/cluster/bare.bats \
	tests/cluster/launch.bats \
	tests/cluster/checkpoint.bats \
	tests/cluster/user.bats
EXTRA_DIST += tests/await.bash tests/watched tests/unit/run tests/checks tests/circles.py tests/cluster/lib.bash \
	tests/cluster/slurm.bash tests/cluster/slurm_lab tests/cluster/far.py tests/cluster/random \
	tests/cluster/jobs/__main__.py tests/cluster/jobs/draw.py tests/cluster/jobs/run.py \
	tests/cluster/jobs/oracle.py tests/unit/checks.h \
	tests/unit/sanitized.h tests/rank/mpi.c tests/rank/pmix.c tests/rank/both.c

# Run by hand: see CONTRIBUTING.md. (No benchmark has a C file of its own name, or make would
# compile the file over it.)
EXTRA_DIST += tests/bench/lib.bash tests/bench/compare.py tests/bench/ratios.py \
	tests/bench/launch tests/bench/agents tests/bench/death tests/bench/death_loop.c \
	tests/bench/shape tests/bench/init_loop.c tests/bench/relay tests/bench/allreduce \
	tests/bench/allreduce_loop.c tests/bench/allreduce_gloo.py tests/bench/lines_loop.c \
	tests/bench/overlap tests/bench/overlap_loop.c tests/bench/tcp tests/bench/sockets_loop.c \
	tests/bench/paced.c tests/bench/wire tests/bench/wire_loop.c tests/bench/save \
	tests/bench/save_loop.c

EXTRA_DIST += $(CLI_TESTS) $(CLUSTER_TESTS) \
	tests/cli/background.py tests/cli/common.bash tests/cli/keys.py tests/cli/nccl_tests.py \
	tests/cli/nogo.py tests/cli/overpaid.py
