noinst_LIBRARIES += launcher/libbase.a launcher/libengine.a launcher/liblauncher.a launcher/libagent.a \
	launcher/libranklink.a

# Shared by launcher and agent. Nothing here needs libssh2 or cJSON, and only uvloop needs libuv.
launcher_libbase_a_SOURCES = \
	launcher/base/agentargs.h \
	launcher/base/bytequeue.c launcher/base/bytequeue.h \
	launcher/base/ckptdir.c launcher/base/ckptdir.h \
	launcher/base/clock.h \
	launcher/base/closefrom.c launcher/base/closefrom.h \
	launcher/base/program/elfneeds.c launcher/base/program/elfneeds.h \
	launcher/base/error.c launcher/base/error.h \
	launcher/base/granted/affinity.c launcher/base/granted/affinity.h \
	launcher/base/granted/cgroupdir.c launcher/base/granted/cgroupdir.h \
	launcher/base/granted/limits.c launcher/base/granted/limits.h \
	launcher/base/program/head.c launcher/base/program/head.h \
	launcher/base/program/horovodneeds.c launcher/base/program/horovodneeds.h \
	launcher/base/inject.c launcher/base/inject.h \
	launcher/base/program/installed.c launcher/base/program/installed.h \
	launcher/base/log.c launcher/base/log.h \
	launcher/base/mem.c launcher/base/mem.h \
	launcher/base/program/mpineeds.c launcher/base/program/mpineeds.h \
	launcher/base/number.c launcher/base/number.h \
	launcher/base/nvidia.c launcher/base/nvidia.h \
	launcher/base/openfiles.c launcher/base/openfiles.h \
	launcher/base/pidfd.h \
	launcher/base/printed.c launcher/base/printed.h \
	launcher/base/process.c launcher/base/process.h \
	launcher/base/program/program.c launcher/base/program/program.h \
	launcher/base/program/imports.c launcher/base/program/imports.h \
	launcher/base/program/libraries.c launcher/base/program/libraries.h \
	launcher/base/program/script.c launcher/base/program/script.h \
	launcher/base/program/words.c launcher/base/program/words.h \
	launcher/base/random.c launcher/base/random.h \
	launcher/base/slurp.c launcher/base/slurp.h \
	launcher/base/strbuf.c launcher/base/strbuf.h \
	launcher/base/utf8.c launcher/base/utf8.h \
	launcher/base/uvloop.c launcher/base/uvloop.h \
	launcher/place/bind.c launcher/place/bind.h \
	launcher/place/envlist.c launcher/place/envlist.h \
	launcher/place/envrules.c launcher/place/envrules.h \
	launcher/place/frameworks.c launcher/place/frameworks.h \
	launcher/place/gpu.c launcher/place/gpu.h \
	launcher/place/mpimap.c launcher/place/mpimap.h \
	launcher/place/role.c launcher/place/role.h
launcher_libbase_a_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
BASE_LIBS = launcher/libbase.a $(WIRE_LIBS)

# The life of a job, without input, output or a clock. It needs neither libuv nor libssh2.
launcher_libengine_a_SOURCES = \
	launcher/hosts/duplicate_hosts.c launcher/hosts/duplicate_hosts.h \
	launcher/io/json.c launcher/io/json.h \
	launcher/io/label.c launcher/io/label.h \
	launcher/io/tail.c launcher/io/tail.h \
	launcher/job/config.h launcher/job/engine.h launcher/job/ops.h \
	launcher/job/auxiliaries.c launcher/job/auxiliaries.h \
	launcher/watch/cause.c launcher/watch/cause.h \
	launcher/job/core/core.c launcher/job/core/core.h \
	launcher/job/state/deaths.c launcher/job/state/deaths.h \
	launcher/job/state/exitpolicy.c launcher/job/state/exitpolicy.h \
	launcher/job/state/failed_calls.c launcher/job/state/failed_calls.h \
	launcher/job/events.c \
	launcher/job/failure.c launcher/job/failure.h \
	launcher/job/state/fence.c launcher/job/state/fence.h \
	launcher/job/hang_detect.c launcher/job/hang_detect.h \
	launcher/job/state/history.c launcher/job/state/history.h \
	launcher/job/state/comeback.c launcher/job/state/comeback.h \
	launcher/job/core/hostlink.c launcher/job/core/hostlink.h \
	launcher/job/core/hostlinks.c launcher/job/core/hostlinks.h \
	launcher/job/job.c launcher/job/job.h \
	launcher/job/core/job_fsm.c launcher/job/core/job_fsm.h \
	launcher/job/last_calls.c launcher/job/last_calls.h \
	launcher/job/launch.c launcher/job/launch.h \
	launcher/job/network.c launcher/job/network.h \
	launcher/job/state/injections.c launcher/job/state/injections.h \
	launcher/job/state/outcome.c launcher/job/state/outcome.h \
	launcher/job/pause.c launcher/job/pause.h \
	launcher/job/pulse.c launcher/job/pulse.h \
	launcher/job/state/quarantine.c launcher/job/state/quarantine.h \
	launcher/job/rank_io.c launcher/job/rank_io.h \
	launcher/job/state/ranks.c launcher/job/state/ranks.h \
	launcher/job/recovery.c launcher/job/recovery.h \
	launcher/job/state/refusal.c launcher/job/state/refusal.h \
	launcher/job/rehost.c launcher/job/rehost.h \
	launcher/job/rejoin.c launcher/job/rejoin.h \
	launcher/job/report.c launcher/job/report.h \
	launcher/job/state/restart.c launcher/job/state/restart.h \
	launcher/job/state/signal_gather.c launcher/job/state/signal_gather.h \
	launcher/watch/signal_meaning.c launcher/watch/signal_meaning.h \
	launcher/job/signals.c launcher/job/signals.h \
	launcher/job/start.c launcher/job/start.h \
	launcher/job/stopping.c launcher/job/stopping.h \
	launcher/job/stragglers.c launcher/job/stragglers.h \
	launcher/job/state/timers.c launcher/job/state/timers.h \
	launcher/watch/words.c launcher/watch/words.h \
	launcher/place/frameworks_go.c launcher/place/frameworks_go.h \
	launcher/place/iface.c launcher/place/iface.h \
	launcher/place/plan.c launcher/place/plan.h \
	launcher/session/heartbeat.c launcher/session/heartbeat.h \
	launcher/session/hostnet.c launcher/session/hostnet.h \
	launcher/session/reach.c launcher/session/reach.h \
	launcher/watch/flight_record.c launcher/watch/flight_record.h \
	launcher/watch/wait_graph.c launcher/watch/wait_graph.h
launcher_libengine_a_CPPFLAGS = $(AM_CPPFLAGS) $(CJSON_CFLAGS)
ENGINE_LIBS = launcher/libengine.a $(BASE_LIBS)

# Used only by dtrun.
launcher_liblauncher_a_SOURCES = \
	launcher/check/cells.c launcher/check/cells.h \
	launcher/check/check.c launcher/check/check.h \
	launcher/check/host.c launcher/check/host.h \
	launcher/check/json.c launcher/check/json.h \
	launcher/check/paths.c launcher/check/paths.h \
	launcher/check/peer.c launcher/check/peer.h \
	launcher/check/remarks.c launcher/check/remarks.h \
	launcher/check/table.c launcher/check/table.h \
	launcher/driver/driver.c launcher/driver/driver.h \
	launcher/driver/eventqueue.c launcher/driver/eventqueue.h \
	launcher/driver/reportfile.c launcher/driver/reportfile.h \
	launcher/driver/streams.c launcher/driver/streams.h \
	launcher/hosts/hostarg.c launcher/hosts/hostarg.h \
	launcher/hosts/hostfile.c launcher/hosts/hostfile.h \
	launcher/hosts/hostlist.c launcher/hosts/hostlist.h \
	launcher/hosts/hostrange.c launcher/hosts/hostrange.h \
	launcher/hosts/hostword.c launcher/hosts/hostword.h \
	launcher/hosts/localhost.c launcher/hosts/localhost.h \
	launcher/hosts/scheduler.c launcher/hosts/scheduler.h \
	launcher/hosts/slurmgpus.c launcher/hosts/slurmgpus.h \
	launcher/io/backlog.c launcher/io/backlog.h \
	launcher/io/filereader.c launcher/io/filereader.h \
	launcher/io/filewriter.c launcher/io/filewriter.h \
	launcher/io/linebuf.c launcher/io/linebuf.h \
	launcher/io/nonblock.c launcher/io/nonblock.h \
	launcher/io/outfd.c launcher/io/outfd.h \
	launcher/io/outfiles.c launcher/io/outfiles.h \
	launcher/io/outmux.c launcher/io/outmux.h \
	launcher/io/outname.c launcher/io/outname.h \
	launcher/io/stamp.c launcher/io/stamp.h \
	launcher/io/stdinpump.c launcher/io/stdinpump.h \
	launcher/remote/boot.c launcher/remote/boot.h \
	launcher/remote/child.c launcher/remote/child.h \
	launcher/remote/choose.c launcher/remote/choose.h \
	launcher/remote/dial.c launcher/remote/dial.h \
	launcher/remote/limit.c launcher/remote/limit.h \
	launcher/remote/link.c launcher/remote/link.h \
	launcher/remote/logon.c launcher/remote/logon.h \
	launcher/remote/pass.c launcher/remote/pass.h \
	launcher/remote/quickack.c launcher/remote/quickack.h \
	launcher/remote/resolve.c launcher/remote/resolve.h \
	launcher/remote/rshcommand.c launcher/remote/rshcommand.h \
	launcher/remote/ssh/auth.c launcher/remote/ssh/auth.h \
	launcher/remote/ssh/base64.c launcher/remote/ssh/base64.h \
	launcher/remote/ssh/knownfile.c launcher/remote/ssh/knownfile.h \
	launcher/remote/ssh/knownhosts.c launcher/remote/ssh/knownhosts.h \
	launcher/remote/ssh/sshagent.c launcher/remote/ssh/sshagent.h \
	launcher/remote/ssh/sshconfig.c launcher/remote/ssh/sshconfig.h \
	launcher/remote/ssh/ssherror.c launcher/remote/ssh/ssherror.h \
	launcher/remote/ssh/sshkey.c launcher/remote/ssh/sshkey.h \
	launcher/remote/ssh/sshwire.c launcher/remote/ssh/sshwire.h \
	launcher/remote/sshask.c launcher/remote/sshask.h \
	launcher/remote/sshlogin.c launcher/remote/sshlogin.h \
	launcher/remote/sruncommand.c launcher/remote/sruncommand.h \
	launcher/remote/sshsocket.c launcher/remote/sshsocket.h \
	launcher/remote/transport.h \
	launcher/remote/transport_auto.c \
	launcher/remote/transport_child.c launcher/remote/transport_child.h \
	launcher/remote/transport_libssh2.c \
	launcher/remote/transport_local.c \
	launcher/remote/transport_rsh.c \
	launcher/remote/transport_ssh.c \
	launcher/session/loop.c launcher/session/loop.h \
	launcher/session/push.c launcher/session/push.h \
	launcher/session/session.c launcher/session/session.h
launcher_liblauncher_a_CPPFLAGS = $(AM_CPPFLAGS) $(SSH2_CFLAGS) $(CJSON_CFLAGS) $(UV_CFLAGS)
LAUNCHER_LIBS = launcher/liblauncher.a $(ENGINE_LIBS)

# Used only by dtrun-agent.
launcher_libagent_a_SOURCES = \
	launcher/agent/agent.c launcher/agent/agent.h \
	launcher/agent/clock.h \
	launcher/agent/deaths.c launcher/agent/deaths.h \
	launcher/agent/facts/gpuask.c launcher/agent/facts/gpuask.h \
	launcher/agent/facts/gpus.c launcher/agent/facts/gpus.h \
	launcher/agent/facts/gpustate.c launcher/agent/facts/gpustate.h \
	launcher/agent/facts/hostfacts.c launcher/agent/facts/hostfacts.h \
	launcher/agent/facts/hostinfo.c launcher/agent/facts/hostinfo.h \
	launcher/agent/facts/netaddrs.c launcher/agent/facts/netaddrs.h \
	launcher/agent/facts/savedir.c launcher/agent/facts/savedir.h \
	launcher/agent/facts/smi.c launcher/agent/facts/smi.h \
	launcher/agent/facts/topology.c launcher/agent/facts/topology.h \
	launcher/agent/ending.c launcher/agent/ending.h \
	launcher/agent/generation.c launcher/agent/generation.h \
	launcher/agent/generationstate.c launcher/agent/generationstate.h \
	launcher/agent/horovod/answer.c launcher/agent/horovod/answer.h \
	launcher/agent/horovod/httprequest.c launcher/agent/horovod/httprequest.h \
	launcher/agent/horovod/kvstore.c launcher/agent/horovod/kvstore.h \
	launcher/agent/horovod/rendezvous.c launcher/agent/horovod/rendezvous.h \
	launcher/agent/horovodserve.c launcher/agent/horovodserve.h \
	launcher/agent/io/channel.c launcher/agent/io/channel.h \
	launcher/agent/io/files.c launcher/agent/io/files.h \
	launcher/agent/io/pipewriter.c launcher/agent/io/pipewriter.h \
	launcher/agent/io/quiet.c launcher/agent/io/quiet.h \
	launcher/agent/io/relay.c launcher/agent/io/relay.h \
	launcher/agent/io/standby.c launcher/agent/io/standby.h \
	launcher/agent/io/stdinfeed.c launcher/agent/io/stdinfeed.h \
	launcher/agent/jobsignals.c launcher/agent/jobsignals.h \
	launcher/agent/keeper.c launcher/agent/keeper.h \
	launcher/agent/lease.c launcher/agent/lease.h \
	launcher/agent/mpi/pmi.c launcher/agent/mpi/pmi.h \
	launcher/agent/mpi/pmisock.c launcher/agent/mpi/pmisock.h \
	launcher/agent/mpi/pmixhelper.c launcher/agent/mpi/pmixhelper.h \
	launcher/agent/mpirequests.c launcher/agent/mpirequests.h \
	launcher/agent/probe/probe.c launcher/agent/probe/probe.h \
	launcher/agent/probe/probepath.c launcher/agent/probe/probepath.h \
	launcher/agent/ranks/cgroup.c launcher/agent/ranks/cgroup.h \
	launcher/agent/ranks/injector.c launcher/agent/ranks/injector.h \
	launcher/agent/ranks/oom.c launcher/agent/ranks/oom.h \
	launcher/agent/ranks/pty.c launcher/agent/ranks/pty.h \
	launcher/agent/ranks/rankproc.c launcher/agent/ranks/rankproc.h \
	launcher/agent/ranks/removetree.c launcher/agent/ranks/removetree.h \
	launcher/agent/ranks/spawn.c launcher/agent/ranks/spawn.h \
	launcher/agent/resources.c launcher/agent/resources.h \
	launcher/agent/sweep/leftovers.c launcher/agent/sweep/leftovers.h \
	launcher/agent/sweep/look.c launcher/agent/sweep/look.h \
	launcher/agent/sweep/ncclfiles.c launcher/agent/sweep/ncclfiles.h \
	launcher/agent/sweep/procenv.c launcher/agent/sweep/procenv.h \
	launcher/agent/sweep/procfs.c launcher/agent/sweep/procfs.h \
	launcher/agent/sweep/proclist.c launcher/agent/sweep/proclist.h \
	launcher/agent/sweep/groupsignal.c launcher/agent/sweep/groupsignal.h \
	launcher/agent/sweep/procstat.c launcher/agent/sweep/procstat.h \
	launcher/agent/sweep/procstatus.c launcher/agent/sweep/procstatus.h \
	launcher/agent/sweep/sweep.c launcher/agent/sweep/sweep.h \
	launcher/agent/unserved/mapped.c launcher/agent/unserved/mapped.h \
	launcher/agent/unserved/procscan.c launcher/agent/unserved/procscan.h \
	launcher/agent/unservedwarn.c launcher/agent/unservedwarn.h
launcher_libagent_a_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
AGENT_LIBS = launcher/libagent.a launcher/libranklink.a $(BASE_LIBS)

# How an agent talks to its ranks. Tests use it without the rest of the agent.
launcher_libranklink_a_SOURCES = \
	launcher/agent/ranklink/callwatch.c launcher/agent/ranklink/callwatch.h \
	launcher/agent/ranklink/commshm.c launcher/agent/ranklink/commshm.h \
	launcher/agent/ranklink/rankpeer.c launcher/agent/ranklink/rankpeer.h \
	launcher/agent/ranklink/ranksock.c launcher/agent/ranklink/ranksock.h \
	launcher/agent/ranklink/ratelimit.c launcher/agent/ranklink/ratelimit.h \
	launcher/agent/ranklink/segments.c launcher/agent/ranklink/segments.h
launcher_libranklink_a_CPPFLAGS = $(AM_CPPFLAGS) $(UV_CFLAGS)
