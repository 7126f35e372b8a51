#!/usr/bin/env bats
# Whichever process of dtrun is killed, nothing of the job remains.

load common

# A rank with children in sessions of their own, at any depth: they are the hardest to find again.
FAMILY='sh -c "echo ready; sleep 600" & setsid sh -c "sleep 600 & setsid sleep 600 & wait" & wait'

@test "after kill -9 of dtrun all ranks end at once, not only when the lease expires" {
    for i in 1 2 3; do
        dtrun_start --heartbeat 600 -np 3 sh -c "$FAMILY"
        out_has 3 ready
        kill -KILL "$BACKGROUND"
        wait "$BACKGROUND" || true
        becomes_clean
    done
}

@test "after kill -9 of the keeper all ranks end at once, and the job fails with 125" {
    dtrun_start --heartbeat 600 -np 3 sh -c "$FAMILY"
    out_has 3 ready
    kill -KILL "$(keeper)"
    dtrun_wait
    code_is 125
    err_has "dtrun: localhost: agent: "
    err_has "its ranks 0-2 are taken as lost"
    becomes_clean
}

@test "after kill -9 of the worker all ranks end at once, and the job fails with 125" {
    dtrun_start --heartbeat 600 -np 3 sh -c "$FAMILY"
    out_has 3 ready
    kill -KILL "$(worker)"
    dtrun_wait
    code_is 125
    err_has "dtrun: localhost: agent: dtrun-agent was killed by signal 9 (Killed); its ranks 0-2 are taken as lost"
    clean
}

# stop_by_agent SIGNAL PROCESS CODE: the signal stops the job, whichever process of the agent gets it.
stop_by_agent() {
    dtrun_start -np 2 sh -c "$FAMILY"
    out_has 2 ready
    kill "-$1" "$($2)"
    dtrun_wait
    code_is "$3"
    err_has "by SIG$1, which was sent to dtrun-agent on localhost; stopping 2 ranks"
    clean
}

@test "SIGTERM to the worker of an agent stops the job as SIGTERM to dtrun does" {
    stop_by_agent TERM worker 143
}

@test "SIGINT and SIGHUP to the keeper of an agent stop the job as they do for dtrun" {
    stop_by_agent INT keeper 130
    stop_by_agent HUP keeper 129
}

@test "SIGUSR1 to both processes of an agent reaches each rank once" {
    dtrun_start --no-tag -np 2 sh -c '
        trap "echo got USR1" USR1; trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    out_has 2 ready
    kill -USR1 "$(keeper)" "$(worker)"
    out_has 2 "got USR1"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    [ "$(grep -c 'got USR1' "$OUT")" = 2 ]
    clean
}

# Sends the signal as a batch system's daemon does, which the agent recognises by its name. It lives until dtrun
# has ended.
daemon_signals() { # NAME SIGNAL PID...
    [ -e "$1" ] || cp "$(command -v bash)" "$1"
    "./$1" -c 'kill "-$0" "${@:2}"; while kill -0 "$1" 2>/dev/null; do read -rt 0.1 <> <(:); done' \
        "$2" "$BACKGROUND" "${@:3}" 3>&- &
}

ranks() { ps -o pid=,comm= --ppid "$(worker)" | awk '$2 == "signals" { print $1 }'; }

each_rank_once() { # SIGNAL
    [ "$(grep " $1\$" "$OUT" | sort)" = "0 $1
1 $1" ] || { show; false; }
}

start_signals() {
    dtrun_start --kill-grace 600 --no-tag -np 2 "$DTRUN_BUILD/tests/rank/signals"
    out_has 2 up
}

# Sends SIGUSR1 and then SIGTERM, which ends the job.
daemon_reaches_each_rank_once() { # NAME PID...
    daemon_signals "$1" USR1 "${@:2}"
    out_has 2 USR1
    daemon_signals "$1" TERM "${@:2}"
    dtrun_wait
    code_is 143
    each_rank_once USR1
    each_rank_once TERM
    wait
    clean
}

@test "a signal that slurmstepd sends to its own child alone reaches each rank once" {
    start_signals
    daemon_reaches_each_rank_once slurmstepd "$(keeper)"
    err_has "told to end by SIGTERM, which was sent to dtrun-agent on localhost; stopping 2 ranks"
}

@test "a signal that slurmstepd sends to every process of a step reaches each rank once" {
    start_signals
    daemon_reaches_each_rank_once slurmstepd "$(keeper)" "$(worker)" $(ranks)
}

# As for a batch job with -notify, on the host of its script.
@test "a signal that sge_shepherd sends to every process of a Grid Engine job reaches each rank once" {
    SGE_TASK_ID=undefined start_signals
    daemon_reaches_each_rank_once sge_shepherd "$BACKGROUND" "$(keeper)" "$(worker)" $(ranks)
}

@test "SIGTERM to the batch script of hostfile-examples alone reaches the rank once" {
    PATH="$DTRUN_BUILD/cmd:$PATH" CODE=9 CHECKPOINTS="$T/checkpoints" \
        bash "$DTRUN_SOURCE/hostfile-examples/train.sbatch" "$DTRUN_BUILD/tests/rank/signals" \
        >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    out_has 1 up
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    [ "$(grep -c TERM "$OUT")" = 1 ]
    err_has "told to end by SIGTERM; stopping 1 rank"
    clean
}

# Grid Engine signals every process of the job. Here qstat says the state of job 7, and qresub only that it ran.
sge_script_after() { # STATE
    printf '#!/bin/sh\necho "      7 0.5 train alice %s 11/29/2026 20:25:35 all.q@node2 2"\n' "$1" >qstat
    printf '#!/bin/sh\necho "resubmitted $1"\n' >qresub
    chmod +x qstat qresub
    : >"$OUT" # the shell in the background may empty it later than out_has reads it
    env "$TOKEN" JOB_ID=7 PATH="$T:$DTRUN_BUILD/cmd:$PATH" CHECKPOINTS="$T/checkpoints" \
        bash "$DTRUN_SOURCE/hostfile-examples/train.sge" -np 2 sh -c '
            trap "exit 75" USR2; echo up; while :; do sleep 0.05; done' >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    out_has 2 up
    kill -USR2 "$BACKGROUND" "$(pgrep -xP "$BACKGROUND" dtrun)"
    dtrun_wait
    code_is 75
    err_has "preempted: rank"
    clean
}

@test "the Grid Engine script of hostfile-examples submits the job again after SIGUSR2, unless it was deleted" {
    sge_script_after r
    grep -q 'resubmitted 7' "$OUT"
    sge_script_after dr
    ! grep -q resubmitted "$OUT" || false
}

need_cgroup() {
    dtrun -np 1 cat /proc/self/cgroup
    grep -q '^0::.*/\.dtrun-cat-' "$OUT" || skip "no cgroup (version 2) can be made here"
}

# Kills both processes of the agent, at the same instant as far as they can tell.
kill_agent() {
    local keeper="$(keeper)" worker="$(worker)"

    kill -STOP "$keeper"
    kill -KILL "$worker"
    kill -KILL "$keeper"
}

@test "the next job ends what remains after both processes of an agent were killed at once" {
    need_cgroup
    cp "$(command -v sh)" "./family$$"
    dtrun_start -np 2 "./family$$" -c "$FAMILY"
    out_has 2 ready
    kill_agent
    dtrun_wait
    code_is 125
    dtrun -np 1 true
    becomes_clean
    await no_cgroup "family$$"
}

@test "what both killed processes of an agent leave behind ends before the ranks restart" {
    hide_cgroups
    dtrun_start --heartbeat 600 --max-restarts 1 -np 1 sh -c '
        if [ $DTRUN_RESTART_COUNT != 0 ]; then # a dead process has no environ any more
            ! grep -q . "/proc/$(cat child)/environ" 2>/dev/null; exit
        fi
        setsid sh -c "echo \$\$ >child; echo ready; exec sleep 600" & wait'
    out_has 1 ready
    kill_agent
    dtrun_wait
    code_is 0
    err_has "all ranks run again"
    clean
}

@test "a job does not restart beside a process that it cannot end, and names it" {
    command -v setpriv >/dev/null || skip "needs setpriv"
    hide_cgroups setpriv --bounding-set=-kill --inh-caps=-kill
    dtrun_start --heartbeat 600 --max-restarts 1 -np 1 sh -c '
        setpriv --reuid 64321 --clear-groups setsid sleep 600 & echo $! >child; echo ready; wait'
    out_has 1 ready
    child="$(cat child)"
    await exec_is "$child" sleep
    kill_agent
    dtrun_wait
    code_is 125
    err_has "1 process from before the restart cannot be killed (pid $child): Operation not permitted; the job cannot restart there"
    kill -KILL "$child"
    becomes_clean
}

exec_is() { # PID NAME
    [ "$(cat "/proc/$1/comm")" = "$2" ]
}

# Makes ./start, which a rank runs to leave a file as one that dies in NCCL's start does. ./files lists these. Like
# NCCL, the rank keeps the file open: else any job of this user that ends would remove it.
make_nccl_start() {
    cat >start <<'END'
umask 077
file="$(mktemp /dev/shm/nccl-XXXXXX)"
echo "$file" >>files
exec 8<>"$file"
{ head -c 8192 /dev/zero; printf '\1\0\0\0'; } >&8
END
}

# Prints which of the files in ./files there are.
nccl_files() {
    xargs ls 2>/dev/null <files || true
}

@test "files of ranks that died in NCCL's start are removed before a restart and at the end, unless in use" {
    make_nccl_start
    held="$(mktemp /dev/shm/nccl-XXXXXX)"
    exec 7<>"$held" # of another job
    { head -c 8192 /dev/zero; printf '\1\0\0\0'; } >&7
    dtrun --max-restarts 1 -np 1 sh -c '[ ! -e files ] || ls $(cat files); . ./start; kill -9 $$'
    code_is 137
    [ "$(wc -l <files)" = 2 ]
    [ ! -s "$OUT" ]
    [ -z "$(nccl_files)" ]
    [ -e "$held" ]
    rm "$held"
    exec 7>&-
    clean
}

@test "after kill -9 of the worker the files of ranks in NCCL's start are removed" {
    make_nccl_start
    dtrun_start -np 1 sh -c '. ./start; echo ready; exec sleep 600'
    out_has 1 ready
    [ -n "$(nccl_files)" ]
    kill -KILL "$(worker)"
    dtrun_wait
    code_is 125
    [ -z "$(nccl_files)" ]
    clean
}

@test "an agent leaves no cgroup behind and removes none that is in use" {
    need_cgroup
    cp "$(command -v sh)" "./used$$"
    dtrun_start -np 1 "./used$$" -c 'echo ready; exec sleep 600'
    out_has 1 ready
    (dtrun -np 1 true)
    [ -n "$(find /sys/fs/cgroup -type d -name ".dtrun-used$$-*")" ]
    kill -KILL "$BACKGROUND"
    wait "$BACKGROUND" || true
    becomes_clean
    await no_cgroup "used$$"
}

no_cgroup() {
    [ -z "$(find /sys/fs/cgroup -type d -name ".dtrun-$1-*")" ]
}

@test "dtrun notices a frozen agent by its silence" {
    dtrun_start --heartbeat 6 -np 2 sh -c "$FAMILY"
    out_has 2 ready
    worker="$(worker)"
    kill -STOP "$(keeper)" "$worker"
    dtrun_wait
    code_is 125
    err_has "dtrun: localhost has not answered for 6 s; its ranks 0-1 are taken as lost"
    becomes_clean # the end of the keeper has woken the worker
}

@test "an agent whose launcher stood still for longer than the lease names --heartbeat" {
    local agent

    dtrun_start --heartbeat 2 -np 1 sh -c 'echo up; exec sleep 600'
    out_has 1 up
    agent="$(keeper)"
    kill -STOP "$BACKGROUND"
    await gone "$agent"
    kill -CONT "$BACKGROUND"
    dtrun_wait
    code_is 125
    err_has "dtrun: localhost: dtrun-agent: lost the launcher (it has been silent for too long; --heartbeat gives it longer); its ranks were killed"
    clean
}

@test "an agent whose ranks have ended does not miss a launcher that stood still" {
    local agent

    dtrun_start --heartbeat 2 -np 1 sh -c 'echo up; until [ -e go ]; do sleep 0.05; done'
    out_has 1 up
    agent="$(keeper)"
    kill -STOP "$BACKGROUND"
    touch go
    await gone "$agent"
    kill -CONT "$BACKGROUND"
    dtrun_wait
    code_is 0
    err_is_empty
    clean
}

@test "a host whose checkpoint directory hangs is waited for, not lost" {
    [ -w /dev/fuse ] && unshare --mount true 2>/dev/null || skip "needs root and FUSE, to mount a file system"
    try waits_for_checkpoint_dir 1 4
}

# Mounts a file system that does not respond until its process is told to end.
make_hungfs() {
    cat >hungfs.py <<'END'
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
driver = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % driver
if libc.mount(b"hung", b"hung", b"fuse", 0, options) < 0:
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
open("end").close()
END
    mkdir hung
    mkfifo end
    env "$TOKEN" unshare --mount python3 hungfs.py >mounted 3>&- &
    await has_line mounted mounted
}

# The line appears after five seconds.
waits_for_checkpoint_dir() { # LEASE
    make_hungfs
    printf '#!/bin/sh\nexec nsenter --mount --target %s %s "$@"\n' $! "$DTRUN_AGENT" >agent
    chmod +x agent
    DTRUN_AGENT="$PWD/agent" dtrun_start --heartbeat "$1" -np 2 --checkpoint-dir hung/run touch ran
    await eval 'grep -q "does not respond" "$ERR" || gone "$BACKGROUND"'
    err_has "dtrun: localhost: the file system of the checkpoint directory does not respond; waiting for it"
    timeout "$PATIENCE" sh -c ': >end'
    dtrun_wait
    code_is 125
    err_has "dtrun: checkpoint directory $PWD/hung/run: Transport endpoint is not connected (on localhost)"
    [ ! -e ran ]
    becomes_clean
}

@test "an agent whose worker is stopped leaves no ranks behind" {
    try ends_without_worker 1 8
    dtrun_start --heartbeat 600 -np 2 sh -c "$FAMILY"
    out_has 2 ready
    kill -STOP "$(worker)"
    kill -KILL "$BACKGROUND"
    wait "$BACKGROUND" || true
    becomes_clean
}

ends_without_worker() { # LEASE
    dtrun_start --heartbeat "$1" -np 2 sh -c "$FAMILY"
    out_has 2 ready
    kill -STOP "$(worker)"
    dtrun_wait
    code_is 125
    clean
}

# The rank holds the lock of its output's pipe while it waits for a socket. The worker waits for that lock to read what
# the pipe holds.
@test "an agent that waits inside the kernel for a rank leaves no ranks behind" {
    python3 -c 'import os; os.splice' 2>/dev/null || skip "needs os.splice of python3"
    cat >splices.py <<'PROGRAM'
import os, signal, socket

silent, other = socket.socketpair()
worker = os.getppid()
os.kill(worker, signal.SIGSTOP)
print("unread", flush=True)
child = os.fork()
if child == 0:
    os.splice(silent.fileno(), 1, 65536)
while open(f"/proc/{child}/stat").read().split(") ")[1][0] != "S":
    pass
os.kill(worker, signal.SIGCONT)
os.wait()
PROGRAM
    dtrun --heartbeat 2 -np 1 python3 splices.py
    code_is 125
    becomes_clean
}

@test "the ranks of a frozen agent end before new ones take their place" {
    for which in worker both; do
        rm -f log then
        dtrun_start --heartbeat 6 --max-restarts 1 -np 1 sh -c '
            [ $DTRUN_RESTART_COUNT = 0 ] || { cp log then; exec sleep 1.3; }
            echo ready; while :; do echo old >>log; sleep 0.02; done'
        out_has 1 ready
        worker="$(worker)"
        [ $which = worker ] || kill -STOP "$(keeper)"
        kill -STOP "$worker"
        dtrun_wait
        code_is 0
        [ -s then ]
        cmp then log # the old rank has written nothing since
        clean
    done
}

# Sends the signal to every process of the job in the background. One may end while they are listed.
signal_job() { # SIGNAL
    kill "-$1" $(left_behind) 2>/dev/null || true
}

has_passed() { # TIME in seconds since boot
    local now
    read -r now _ </proc/uptime
    [ "${now%.*}" -ge "$1" ]
}

@test "a job whose processes were all frozen goes on where it was" {
    try goes_on_after_freezing 2 8
}

goes_on_after_freezing() { # LEASE
    dtrun_start --heartbeat "$1" -np 2 sh -c 'echo ready; until [ -e go ]; do sleep 0.05; done; echo done'
    out_has 2 ready
    for i in 1 2; do
        signal_job STOP
        read -r now _ </proc/uptime
        await has_passed $((${now%.*} + 3 * $1)) # three leases
        signal_job CONT
    done
    : >go
    dtrun_wait
    code_is 0
    out_has 2 done
    err_is_empty
    clean
}

@test "a job that is told to end while it brings back a lost agent ends at once" {
    printf '#!/bin/sh\n[ ! -e first ] || { : >second; exec cat; }\n: >first\nexec "%s"\n' \
        "$DTRUN_AGENT" >agent
    chmod +x agent
    DTRUN_AGENT="$T/agent" dtrun_start --heartbeat 600 --max-restarts 2 -np 1 sh -c 'echo ready; exec sleep 600'
    out_has 1 ready
    kill -KILL "$(keeper)"
    await test -e second
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    clean
}

@test "a line that a lost agent's rank left unfinished stays a line of its own" {
    dtrun_start --max-restarts 1 -np 2 sh -c '[ $DTRUN_RANK = 1 ] || exec sleep 600
        [ $DTRUN_RESTART_COUNT = 0 ] || { echo again; exit 1; }
        printf "a line\nhalf a line"; exec sleep 600'
    out_has 1 '^\[1\] a line$' # and dtrun has the rest of what was written with it
    kill -KILL "$(keeper)"
    dtrun_wait
    grep -qx '\[1\] half a line' "$OUT"
    grep -qx '\[1\] again' "$OUT"
    clean
}

@test "a process whose main thread has ended is found and killed" {
    command -v flock >/dev/null || skip "needs flock"
    dtrun -np 1 "$RANK/headless" lock
    code_is 0
    flock -n lock true
}

@test "an agent reports a frame that it does not understand, and is silent if dtrun leaves before any rank runs" {
    printf 'this is no frame' | env "$TOKEN" "$DTRUN_AGENT" 2>"$ERR" | cat >"$OUT"
    RC=${PIPESTATUS[1]}
    code_is 125
    grep -qx 'dtrun-agent: lost the launcher (a frame is longer than 16 KiB)' "$ERR" || { show; false; }
    : | env "$TOKEN" "$DTRUN_AGENT" 2>"$ERR" | cat >"$OUT"
    RC=${PIPESTATUS[1]}
    code_is 125
    err_is_empty
    clean
}
