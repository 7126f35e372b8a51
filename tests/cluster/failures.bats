# Whatever dies, and however silently: at once, or when the lease expires, nothing of the job remains on any
# host, and dtrun reports what happened.

load lib

# A rank with children that outlive it unless they are killed: one waits, one has a session of its own.
RANK='echo up; (echo $DTRUN_RANK >/dev/null; exec sleep 301) & setsid sleep 302 & wait'

setup_file() {
    cluster_up 3
}

teardown_file() { cluster_down; }
setup() { cluster_require; }
teardown() { cluster_await_quiet; }

start() { # OPTION...: starts 4 ranks on host1 and host2 with a lease that does not expire during a test
    cluster_dtrun_start --heartbeat 600 "$@" -np 4 -H host1:2,host2:2 sh -c "$RANK"
    cluster_out_has 4 up
}

# Print process ids on a host: of the agent's outer process, and of its inner one.
keeper() { cluster_on "$1" ps -eo pid=,ppid=,args= | awk '/dtrun-agent-/ { p[$1] = $2 } END { for (i in p) if (!(p[i] in p)) print i }'; }
worker() { cluster_on "$1" ps -eo pid=,ppid=,args= | awk '/dtrun-agent-/ { p[$1] = $2 } END { for (i in p) if (p[i] in p) print i }'; }
rank_shell() { cluster_on "$1" pgrep -f "^sh -c echo up" | head -1; }
# The newest one: that of an earlier job may still be ending.
session() { cluster_on "$1" ps -eo pid=,args= | awk '/sshd(-session)?: root@notty/ { p = $1 } END { print p }'; }

# Checks that dtrun ended with CODE and has stopped the other ranks.
job_ends() { # CODE
    cluster_dtrun_wait
    [ "$RC" = "$1" ]
    cluster_await_quiet
}

@test "after kill -9 of dtrun all ranks on all hosts end at once" {
    for t in libssh2 ssh; do
        start --transport $t
        kill -9 "$DTRUN_PID"
        cluster_await_quiet
        wait "$DTRUN_PID" || true
    done
}

@test "kill -9 of a rank ends the job with 137" {
    start
    cluster_on 2 kill -9 "$(rank_shell 2)"
    job_ends 137
    grep -qE '^dtrun: rank [23] \(host2, pid [0-9]+\) was killed by signal 9' "$ERR"
}

@test "after kill -9 of an agent's keeper or worker its ranks die at once, and the job ends" {
    local which

    for which in keeper worker; do
        start
        cluster_on 2 kill -9 "$($which 2)"
        job_ends 125
        grep -q '^dtrun: host2.*2-3' "$ERR"
    done
}

@test "kill -9 of the ssh session counts as the loss of the host" {
    for t in libssh2 ssh; do
        start --transport $t
        cluster_on 2 kill -9 "$(session 2)"
        job_ends 125
        grep -q '^dtrun: host2.*2-3' "$ERR"
    done
}

one_of_many() { # NUMBER: the peers of rank 3, on its host and on others, exit as soon as it is dead
    mkfifo "pipe.$1"
    RC=0
    cluster_run timeout -k 5 "$PATIENCE" dtrun -np 4 -H host1,host2:1,host3:2 sh -c '
        if [ $DTRUN_RANK = 3 ]; then exec 3>"$0"; kill -SEGV $$; fi
        cat "$0"; exit 1' "$PWD/pipe.$1" </dev/null >/dev/null 2>"err.$1" || RC=$?
    echo "$RC" >"rc.$1"
}

@test "a rank's SIGSEGV, not the exits that it causes on other hosts, sets the code: 139 in 40 of 40 jobs" {
    local i

    mkdir "$CLUSTER_SHARED/many"
    cd "$CLUSTER_SHARED/many"
    for i in {1..40}; do
        one_of_many "$i" &
        [ $((i % 8)) != 0 ] || wait
    done
    grep -L "^139" rc.* | while read -r f; do echo "$f: $(cat "$f")"; cat "err.${f#rc.}"; done
    [ "$(cat rc.* | sort | uniq -c | tr -s ' ')" = " 40 139" ]
    [ "$(grep -c '^dtrun: rank 3 (host3, pid .* was killed by signal 11' err.* | grep -c :1)" = 40 ]
}

@test "a partition ends the ranks on both sides when the lease expires" {
    cluster_loses 2 "start --heartbeat 2" "cluster_cut 2" "cluster_mend 2"
    [ "$RC" = 125 ]
    grep -q '^dtrun: host2 has not answered for 2 s' "$ERR"
}

@test "Ctrl-C while a host is cut off names the host that has not confirmed the end of its ranks" {
    # Where all are busy, host1 may be late as well, or the signal, until the lease ends.
    for try in 1 2 3 4 5; do
        start --heartbeat 8 --kill-grace 1
        cluster_cut 2
        kill -INT "$DTRUN_PID"
        cluster_dtrun_wait
        cluster_await_quiet
        cluster_mend 2
        [ "$RC" = 130 ]
        grep -qE "host1 has not|host2 has not answered" "$ERR" || break
    done
    cluster_err_has "dtrun: host2 has not confirmed that ranks 2-3 ended; its agent, if it still runs, ends"
    ! grep "host1 has not" "$ERR" || false
}

gone_from() { [ -z "$(rank_shell "$1")$(worker "$1")" ]; }
is_stopped() { grep -q '^State:[[:space:]]*T' "/proc/$1/status"; }
stopped_or_ended() { is_stopped "$DTRUN_PID" || _cluster_dtrun_ended; }

# Starts a job that Ctrl-Z holds: another one if its short lease ends first, as it may where all are busy.
start_and_hold() {
    for try in 1 2 3 4 5; do
        set -m # own process group: dtrun stops only where a shell could continue it
        start --heartbeat 1 || true
        set +m
        kill -TSTP "$DTRUN_PID" || true
        await stopped_or_ended
        ! is_stopped "$DTRUN_PID" || return 0
        cluster_dtrun_wait
    done
    return 1
}

@test "a connection that dies while Ctrl-Z holds the job frees its host" {
    start_and_hold
    cluster_on 2 sh -c 'echo 3 >/proc/sys/net/ipv4/tcp_retries2' # four retransmissions, in seconds
    cluster_cut 2
    await gone_from 2
    is_stopped "$DTRUN_PID"
    cluster_mend 2
    kill -KILL "$DTRUN_PID"
    cluster_dtrun_wait
    cluster_await_quiet
    cluster_on 2 sh -c 'echo 15 >/proc/sys/net/ipv4/tcp_retries2'
}

# Ranks save at SIGTERM, and go on from there after a restart.
SAVE='trap "echo $RANK >saved.$RANK; exit 75" TERM
[ $DTRUN_RESTART_COUNT = 0 ] || { echo "$RANK of $LOCAL_WORLD_SIZE here has saved $(cat saved.$RANK)"; exit 0; }
echo up; while :; do sleep 0.05; done'

@test "when the agent of a host is told to end, all ranks can save, and then leave that host" {
    cluster_dtrun_start --kill-grace 600 --max-restarts 1 --no-tag -np 4 -H host1:2,host2:2 sh -c "$SAVE"
    cluster_out_has 4 up
    cluster_on 2 sh -c 'kill -TERM $0 && { kill -HUP $0 || true; }' "$(keeper 2)" # it may already have ended
    job_ends 0
    [ "$(grep saved "$OUT" | sort)" = "$(printf '%s of 4 here has saved %s\n' 0 0 1 1 2 2 3 3)" ]
    [ "$(grep -c "dtrun: host2: dtrun-agent was sent SIGTERM; leaving this host" "$ERR")" = 1 ]
    grep -q "dtrun: continuing without host2: 4 ranks on the 2 slots of 1 host" "$ERR"
}

@test "when the agent of the last host is told to end, or no other has room, the job ends" {
    start --max-restarts 9
    cluster_on 1 kill -TERM "$(keeper 1)"
    cluster_out_has 8 up
    cluster_on 2 kill -TERM "$(keeper 2)"
    job_ends 143
    cluster_dtrun_start --kill-grace 600 --max-restarts 9 --no-tag --no-oversubscribe -np 4 -H host1:2,host2:2 sh -c "$SAVE"
    cluster_out_has 4 up
    cluster_on 1 kill -TERM "$(keeper 1)"
    job_ends 75
    grep -q "told to end by SIGTERM, which was sent to dtrun-agent on host1; stopping 4 ranks" "$ERR"
}

# The freezer stands for a file system that hangs: SIGKILL, too, has to wait.
@test "while ranks are stuck inside the kernel of a host, the job goes on elsewhere, or ends if no host has room" {
    local freezer=/sys/fs/cgroup/freezer/dtrun-test-$$ said rank
    mkdir "$freezer" 2>/dev/null || skip "needs to make a cgroup of the freezer (version 1)"
    for room in '' --no-oversubscribe; do
        rm -f "$CLUSTER_SHARED/go"
        cluster_dtrun_start --max-restarts 1 --no-tag $room -np 2 -H host1:1,host2:1 sh -c '
            [ $DTRUN_RESTART_COUNT = 0 ] || { echo "again $RANK"; exit 0; }
            echo up; [ $RANK = 0 ] || exec sleep 600; until [ -e "$0" ]; do sleep 0.05; done; exit 3' \
            "$CLUSTER_SHARED/go"
        cluster_out_has 2 up
        await in_host 2 sleep
        rank=$(in_host 2 sleep)
        echo "$rank" >"$freezer/cgroup.procs"
        echo FROZEN >"$freezer/freezer.state"
        : >"$CLUSTER_SHARED/go"
        said=yes
        await grep -qE "host2: 1 process from before the restart waits inside the kernel \(pid [0-9]+\); leaving this host$|the job cannot restart there" "$ERR" ||
            said=no
        [ -n "$room" ] || await grep -q again "$OUT" || said=no
        echo THAWED >"$freezer/freezer.state"
        [ $said = yes ] || { cat "$ERR"; rmdir "$freezer"; false; }
        [ -n "$room" ] || job_ends 0
        [ -z "$room" ] || job_ends 125
    done
    rmdir "$freezer"
    cluster_err_has "1 process from before the restart waits inside the kernel (pid "
    cluster_err_has "; the job cannot restart there (on host2)"
}

# in_host N NAME: prints the id that the process has outside of the host.
in_host() {
    local pid
    for pid in $(pgrep -x "$2"); do
        [ "$(readlink "/proc/$pid/ns/pid")" != "$(readlink "/proc/$(cluster_init "$1")/ns/pid")" ] || { echo "$pid"; return; }
    done
    return 1
}

@test "with --on-host-loss stop a job ends when a host does not come back, even if it could go on elsewhere" {
    cluster_loses 2 "start --heartbeat 1 --max-restarts 3 --on-host-loss stop" "cluster_cut 2" "cluster_mend 2"
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: giving up: host2 cannot be used any more, and --on-host-loss stop was given"
    [ "$(grep -c up "$OUT")" = 4 ]
}

@test "a host whose packets are lost ends the job when the lease expires" {
    command -v nft >/dev/null || skip "needs nft"
    cluster_loses 2 "start --heartbeat 2" "cluster_mute 2" "cluster_unmute 2"
    [ "$RC" = 125 ]
    grep -q '^dtrun: host2 has not answered for 2 s' "$ERR"
}

@test "the keeper of a frozen agent ends its ranks, and the job ends" {
    freeze() { cluster_on 2 kill -STOP "$(worker 2)"; }
    cluster_loses 2 "start --heartbeat 2" freeze :
    [ "$RC" = 125 ]
    grep -qE '^dtrun: host2(: dtrun-agent: its worker was stuck for| has not answered for) 2' "$ERR"
}

@test "a power failure of a host ends the job when the lease expires" {
    cluster_loses 2 "start --heartbeat 2" "cluster_power_off 2" "cluster_power_on 2"
    [ "$RC" = 125 ]
    grep -q '^dtrun: host2 has not answered for 2 s' "$ERR"
}

@test "a host that is dead when the job starts is reported in time" {
    printf 'Host host3\n    ConnectTimeout 5\n' >"$CLUSTER_HOME/.ssh/config" # the others may be busy
    cluster_mute 3 # not cut off: a host that finds no neighbour knows that sooner
    cluster_dtrun -np 3 -H host1,host2,host3 touch "$CLUSTER_SHARED/ran"
    rm "$CLUSTER_HOME/.ssh/config"
    cluster_unmute 3
    [ "$RC" = 125 ]
    grep -q '^dtrun: host3: connect: port 22 at .*: no answer for 5 s' "$ERR"
    cluster_err_has "dtrun: 1 of 3 hosts cannot be used; nothing was started"
    [ ! -e "$CLUSTER_SHARED/ran" ]
}

# (A child that a rank's shell has forked is called like the shell until it calls exec.)
has_two_ranks() { [ "$(cluster_on "$1" pgrep -fc "^sh -c echo up")" = 2 ]; }

@test "two jobs on the same hosts do not disturb each other" {
    local first

    start
    first=$DTRUN_PID
    cluster_dtrun -np 4 -H host1:2,host2:2 sh -c 'kill -9 $$'
    [ "$RC" = 137 ]
    [ -e "/proc/$first" ]
    await has_two_ranks 1
    kill -TERM "$first"
    DTRUN_PID=$first
    cluster_dtrun_wait
    [ "$RC" = 143 ]
}
