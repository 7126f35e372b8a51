# Training goes on after any part of a job has died, with the result of an undisturbed run.

load lib

setup_file() {
    cluster_up 3
}

teardown_file() { cluster_down; }

setup() {
    cluster_require
    cluster_examples
    SMALL="--steps 120 --batch 32 --width 16 --checkpoint-every 20 --sample 50"
    cd "$CLUSTER_SHARED"
}

teardown() {
    [ -z "$CLUSTER_SKIP" ] || return 0
    rm -f "$CLUSTER_HOME/.ssh/config"
    cluster_on 2 nft flush ruleset
    cluster_await_quiet
}

last_loss() { sed -n 's/.*\(step  *[0-9]* of .*bits\).*/\1/p' "$1" | tail -1; }

# The result of 4 ranks on 2 hosts that nothing disturbs, computed once.
undisturbed() {
    if [ ! -e undisturbed.loss ]; then
        cluster_dtrun -np 4 -H host1:2,host2:2 --checkpoint-dir undisturbed "$CHARLM" $SMALL "$TEXT"
        [ "$RC" = 0 ]
        last_loss "$OUT" >undisturbed.loss
    fi
    [ -s undisturbed.loss ]
}

same_as_undisturbed() {
    diff -r -x LINEAGE undisturbed "$1"
    last_loss "$OUT" | diff undisturbed.loss -
}

# Sums run in another order, so results are equal up to rounding only.
about() { # FILE
    paste <(last_loss "$OUT") "$1" | awk '{ d = $6 - $13; if (NF != 14 || d * d > 1e-4) exit 1 }'
}

# Starts the training so that it waits in step 50 until something happens: rank $STUCK, on host1, stops there.
start_stuck() { # OPTION...
    rm -rf disturbed
    cluster_dtrun_start -np "${NP:-4}" --checkpoint-dir disturbed --report report.json \
        --inject "stop:rank=${STUCK:-1},step=50,restart=0" "$@" "$CHARLM" $SMALL "$TEXT"
    await is_stuck || { cat "$OUT" "$ERR"; return 1; }
}

is_stuck() {
    [ -e disturbed/step_000000000040/MANIFEST ] && grep -qs '(charlm) T' "/proc/$(cluster_init 1)/root/proc"/[0-9]*/stat
}

recovered() {
    cluster_dtrun_wait
    [ "$RC" = 0 ]
    grep -q '"restarts":[[:space:]]*1,' report.json
    grep -q '"lost_steps":[[:space:]]*1[0-9],' report.json
    grep -q "^dtrun: restarting ${NP:-4} ranks from the checkpoint of step 40" "$ERR"
    cluster_await_quiet
}

agents() { cluster_on "$1" ps -eo pid=,ppid=,args= | awk '/dtrun-agent-/ { p[$1] = $2 } END { for (i in p) print (p[i] in p) ? "worker" : "keeper", i }'; }

@test "examples/hello on several hosts computes the sum of all ranks" {
    cluster_dtrun -np 6 -H host1:3,host2:1,host3:2 "$HELLO"
    [ "$RC" = 0 ]
    [ "$(grep -c 'of 6: all ranks add up to 15' "$OUT")" = 6 ]
}

@test "after a rank was killed, the last loss and all checkpoints are those of an undisturbed run, byte for byte" {
    undisturbed
    cluster_dtrun -np 4 -H host1:2,host2:2 --checkpoint-dir killed --report report.json \
        --inject kill:rank=2,step=50 "$CHARLM" $SMALL "$TEXT"
    [ "$RC" = 0 ]
    same_as_undisturbed killed
    grep -q '"restarts":[[:space:]]*1,' report.json
    grep -qE '^dtrun: rank 2 \(host2, pid [0-9]+\) was killed by signal 9' "$ERR"
    cluster_err_has "dtrun: restarting 4 ranks from the checkpoint of step 40"
    cluster_err_has "recovered from 1 failure"
}

@test "check 22: the residual of 2-bit gradients is in the checkpoint, so a killed rank changes no result" {
    WIRE="--wire 2bit --threshold 0.004"
    cluster_dtrun -np 3 -H host1:2,host2:1 --checkpoint-dir whole "$CHARLM" $SMALL $WIRE "$TEXT"
    [ "$RC" = 0 ]
    last_loss "$OUT" >whole.loss
    awk '{ if (NF != 7 || $6 > 6) exit 1 }' whole.loss # it learns
    for rank in 0 1 2; do
        rm -rf killed
        cluster_dtrun -np 3 -H host1:2,host2:1 --checkpoint-dir killed --report report.json \
            --inject "kill:rank=$rank,step=50" "$CHARLM" $SMALL $WIRE "$TEXT"
        [ "$RC" = 0 ]
        grep -q '"restarts":[[:space:]]*1,' report.json
        diff -r -x LINEAGE whole killed
        last_loss "$OUT" | diff whole.loss -
    done
}

@test "a killed worker, keeper or ssh session of an agent changes no result" {
    undisturbed
    for t in libssh2 ssh; do
        for what in worker keeper session; do
            start_stuck --transport $t -H host1:2,host2:2
            case $what in
            session) victim=$(cluster_on 2 ps -eo pid=,args= | awk '/sshd(-session)?: root@notty/ { print $1; exit }') ;;
            *) victim=$(agents 2 | awk -v what=$what '$1 == what { print $2 }') ;;
            esac
            cluster_on 2 kill -9 "$victim"
            recovered
            same_as_undisturbed disturbed
        done
    done
}

@test "ranks of a host that loses power go on where there is room, and dtrun says so once" {
    undisturbed
    start_stuck --heartbeat 6 -H host1:2,host2:2,host3:2
    cluster_expect_loss 2
    cluster_power_off 2
    recovered
    cluster_power_on 2
    [ "$(grep -c '^dtrun: host2 has not answered for 6 s; its ranks 2-3 are taken as lost$' "$ERR")" = 1 ]
    [ "$(grep -c '^dtrun: continuing without host2: 4 ranks on the 4 slots of 2 hosts$' "$ERR")" = 1 ]
    [ "$(grep -c '^dtrun: .*host2' "$ERR")" -le 3 ]
    about undisturbed.loss
    for ((s = 100; s <= 120; s += 20)); do
        [ -e "$(printf 'disturbed/step_%012d/MANIFEST' $s)" ]
    done
}

is_back() { grep -q "^dtrun: host$1 is back, and the next restart may use it$" "$ERR"; }

@test "a host that is back after a power failure gets ranks at the next restart, and not before" {
    undisturbed
    for t in libssh2 ssh; do
        start_stuck --transport $t --heartbeat 6 --rejoin 1 --inject stop:rank=1,step=70,restart=1 -H host1:2,host2:2
        cluster_expect_loss 2
        cluster_power_off 2
        await is_moved
        cluster_power_on 2
        await is_back 2
        cluster_on 1 pkill -KILL charlm
        cluster_dtrun_wait
        [ "$RC" = 0 ]
        rm "$CLUSTER_HOME/.ssh/config"
        grep -q '"restarts":[[:space:]]*2,' report.json
        [ "$(grep -c '^dtrun: continuing without host2: 4 ranks on the 2 slots of 1 host' "$ERR")" = 1 ]
        [ "$(grep -c '^dtrun: host2 is back' "$ERR")" = 1 ]
        cluster_err_has "dtrun: continuing with host2 again: 4 ranks on the 4 slots of 2 hosts"
        [ "$(grep -o '"host[12]"' report.json | paste -sd' ')" = '"host1" "host1" "host2" "host2"' ]
        about undisturbed.loss
        cluster_await_quiet
    done
}

# All ranks run on host1, and one of them has stopped there in step 70.
is_moved() {
    grep -q '^dtrun: recovered in' "$ERR" && [ -e disturbed/step_000000000060/MANIFEST ] &&
        grep -qs '(charlm) T' "/proc/$(cluster_init 1)/root/proc"/[0-9]*/stat
}

# How often somebody has begun to log in on host N.
logins() { grep -c '\[preauth\]' "$CLUSTER_DIR/host$1/sshd.log"; }
tried_twice() { [ "$(logins 2)" -ge $((BEFORE + 2)) ]; }
is_being_tried() { cluster_run ss -Htn state syn-sent dst "$CLUSTER_NET.2" | grep -q .; }

@test "a lost host with another key stays out without a word, and a signal ends the job while it is tried" {
    for t in libssh2 ssh; do
        start_stuck --transport $t --heartbeat 6 --rejoin 1 --inject stop:rank=1,step=70,restart=1 -H host1:2,host2:2
        cluster_expect_loss 2
        cluster_power_off 2
        await is_moved
        said=$(cat "$ERR")
        rm "$CLUSTER_DIR"/host2/key*
        cluster_power_on 2
        BEFORE=$(logins 2) || true
        await tried_twice
        printf 'Host host2\n    ConnectTimeout 600\n' >"$CLUSTER_HOME/.ssh/config"
        cluster_mute 2
        await is_being_tried
        [ "$(cat "$ERR")" = "$said" ]
        kill -TERM "$DTRUN_PID"
        cluster_dtrun_wait
        [ "$RC" = 143 ]
        cluster_err_has "dtrun: told to end by SIGTERM; stopping 4 ranks"
        rm "$CLUSTER_HOME/.ssh/config"
        cluster_unmute 2
        cluster_trust
        cluster_await_quiet
    done
}

@test "dtrun says why it leaves a lost host, and each restart and the report why that is not back" {
    for t in libssh2 ssh; do
        start_stuck --transport $t --heartbeat 6 --rejoin 1 --inject stop:rank=1,step=70,restart=1 -H host1:2,host2:2
        cluster_expect_loss 2
        cluster_power_off 2
        await is_moved
        [ "$(grep -cE '^dtrun: host2(: connect: | did not connect again within 6 s )' "$ERR")" = 1 ]
        rm "$CLUSTER_DIR"/host2/key*
        cluster_power_on 2
        BEFORE=$(logins 2) || true
        await tried_twice
        cluster_on 1 pkill -KILL charlm
        cluster_dtrun_wait
        cluster_trust
        [ "$RC" = 0 ]
        [ "$(grep -c '^dtrun: not back: host2: .*[kK]ey' "$ERR")" = 1 ]
        [ "$(grep -c '^dtrun: not back' "$ERR")" = 1 ]
        grep -A3 '"lost_hosts"' report.json | tr -d '\n\t' |
            grep -q '"lost_hosts":\[{"host":"host2","message":".*[kK]ey.*"}\]'
        cluster_await_quiet
    done
}

@test "a host that is back and lacks the working directory is left again, and used when it has one" {
    cluster_on 1 mkdir -p /tmp/w
    cluster_on 2 mkdir -p /tmp/w
    cluster_dtrun_start -np 2 --heartbeat 6 --rejoin 1 --max-restarts 9 --wdir /tmp/w -H host1,host2 \
        sh -c 'echo "up on $(hostname)"; exec sleep 1000'
    cluster_out_has 1 "up on host1"
    cluster_out_has 1 "up on host2"
    cluster_expect_loss 2
    cluster_power_off 2
    cluster_out_has 3 "up on host1"
    cluster_power_on 2
    await is_back 2
    cluster_on 1 pkill -KILL sleep
    cluster_out_has 5 "up on host1"
    cluster_err_has "dtrun: host2: working directory /tmp/w: No such file or directory; leaving this host"
    cluster_on 2 mkdir /tmp/w
    await is_back_again 2
    cluster_on 1 pkill -KILL sleep
    cluster_out_has 6 "up on host1"
    cluster_out_has 2 "up on host2"
    kill -TERM "$DTRUN_PID"
    cluster_dtrun_wait
    [ "$RC" = 143 ]
}

is_back_again() { [ "$(grep -c "^dtrun: host$1 is back, and the next restart may use it$" "$ERR")" = 2 ]; }

@test "a host that is back and does not see the checkpoints is left again, and the job continues from the newest" {
    undisturbed
    start_stuck --heartbeat 6 --rejoin 1 --inject stop:rank=1,step=70,restart=1 -H host1:2,host2:2
    cluster_expect_loss 2
    cluster_power_off 2
    await is_moved
    cluster_power_on 2
    cluster_on 2 mount -t tmpfs dtrun-test "$CLUSTER_SHARED/disturbed"
    await is_back 2
    cluster_on 1 pkill -KILL charlm
    cluster_dtrun_wait
    [ "$RC" = 0 ]
    cluster_err_has "dtrun: host2: checkpoint directory $CLUSTER_SHARED/disturbed holds no checkpoint, but the job has saved some"
    [ "$(grep -c '^dtrun: continuing without host2: 4 ranks on the 2 slots of 1 host' "$ERR")" = 2 ]
    [ "$(grep -c '^dtrun: recovered in .*, 10 steps lost' "$ERR")" = 2 ]
    about undisturbed.loss
    cluster_on 2 umount "$CLUSTER_SHARED/disturbed"
}

@test "a host that is cut off ends its ranks itself, and the job goes on, but not on a second name of another host" {
    undisturbed
    printf 'Match host twin\n    HostKeyAlias host1\nMatch all\n' >"$CLUSTER_HOME/.ssh/config"
    start_stuck --heartbeat 6 -H host1:2,host2:2,twin:2
    cluster_expect_loss 2
    cluster_cut 2
    recovered
    cluster_err_has "dtrun: host1 and twin are one machine"
    cluster_err_has "dtrun: continuing without twin: 4 ranks on the 2 slots of 1 host"
    cluster_await_quiet
    cluster_mend 2
}

# Host N rejects what it sends to host TO, and what it receives from there.
cut_pair() { # N TO
    cluster_on "$1" nft "add table inet t
        add chain inet t in { type filter hook input priority 0; }
        add chain inet t out { type filter hook output priority 0; }
        add rule inet t in ip saddr $CLUSTER_NET.$2 meta l4proto tcp reject with tcp reset
        add rule inet t out ip daddr $CLUSTER_NET.$2 meta l4proto tcp reject with tcp reset"
}

@test "if two hosts cannot reach each other when ranks restart, the job goes on without one, or ends if told to" {
    undisturbed
    for how in move stop; do
        start_stuck --on-host-loss $how -H host1:2,host2:2
        cut_pair 2 1
        cluster_on 1 pkill -KILL charlm
        if [ $how = move ]; then
            recovered
            cluster_err_has "dtrun: continuing without host2: 4 ranks on the 2 slots of 1 host"
            about undisturbed.loss
        else
            cluster_dtrun_wait
            [ "$RC" = 125 ]
            cluster_err_has "dtrun: the hosts cannot reach each other; --iface, or addr= in a hostfile, chooses"
        fi
        grep -qE "^dtrun: host1 cannot reach host2 at $CLUSTER_NET.2:[0-9]+ " "$ERR"
        cluster_on 2 nft flush ruleset
    done
}

@test "with --map-by node on uneven hosts a kill changes no result, and ranks of a lost host move" {
    local in_turn=(--map-by node -H host1:3,host2:1,host3:2) NP=6 STUCK=3

    cluster_dtrun -np 6 "${in_turn[@]}" "$HELLO"
    [ "$(grep -c 'of 6: all ranks add up to 15' "$OUT")" = 6 ]
    cluster_dtrun -np 6 "${in_turn[@]}" --checkpoint-dir in_turn "$CHARLM" $SMALL "$TEXT"
    [ "$RC" = 0 ]
    last_loss "$OUT" >in_turn.loss
    [ -s in_turn.loss ]
    cluster_dtrun -np 6 "${in_turn[@]}" --checkpoint-dir killed_in_turn \
        --inject kill:rank=4,step=50 "$CHARLM" $SMALL "$TEXT"
    [ "$RC" = 0 ]
    grep -qE '^dtrun: rank 4 \(host3, pid [0-9]+\) was killed by signal 9' "$ERR"
    diff -r -x LINEAGE in_turn killed_in_turn
    last_loss "$OUT" | diff in_turn.loss -

    start_stuck --heartbeat 6 "${in_turn[@]}"
    cluster_expect_loss 3
    cluster_power_off 3
    recovered
    cluster_power_on 3
    cluster_err_has "its ranks 2,4 are taken as lost"
    [ "$(grep -o '"host[12]"' report.json | paste -sd' ')" = \
        '"host1" "host2" "host1" "host2" "host1" "host1"' ]
    about in_turn.loss
}
