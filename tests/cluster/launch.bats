# Jobs on several hosts: where ranks run, what they get, and what comes back.

load lib

setup_file() {
    cluster_up 3
}

teardown_file() { cluster_down; }

setup() {
    cluster_require
    cluster_trust
}

teardown() { cluster_await_quiet; }

@test "-np 16 on 8 slots runs 8 ranks on each host, two for each device, with one warning" {
    cluster_dtrun -np 16 -H host1:4,host2:4 \
        sh -c 'echo "$(hostname) $DTRUN_LOCAL_RANK $CUDA_VISIBLE_DEVICES"'
    [ "$RC" = 0 ]
    [ "$(wc -l <"$OUT")" = 16 ]
    for r in {0..15}; do
        grep -qx "\[$r\] host$((r / 8 + 1)) $((r % 8)) $((r % 4))" "$OUT"
    done
    cluster_err_lines 1
    cluster_err_has "dtrun: 16 ranks on 8 slots"
}

@test "--nproc-per-node 2 -H host1,host2 ./train runs two ranks on each host, as torchrun does" {
    printf '#!/bin/sh\necho "$(hostname) $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK"\n' \
        >"$CLUSTER_SHARED/train"
    chmod +x "$CLUSTER_SHARED/train"
    cluster_dtrun --no-tag --nproc-per-node 2 -H host1,host2 ./train
    [ "$RC" = 0 ]
    [ "$(sort "$OUT")" = "host1 0/4 0/2 0
host1 1/4 1/2 0
host2 2/4 0/2 1
host2 3/4 1/2 1" ]
}

@test "--no-oversubscribe refuses 16 ranks on 8 slots, and names both numbers" {
    cluster_dtrun --no-oversubscribe -np 16 -H host1:4,host2:4 touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 2 ]
    cluster_err_lines 1
    grep -q 'dtrun: .*16.*8' "$ERR"
    [ ! -e "$CLUSTER_SHARED/ran" ]
}

uneven() { # slot|node LOCAL-RANK/SIZE@HOST, one for each rank
    local by=$1 r=0 h

    cluster_dtrun --map-by "$by" -np 6 -H host1:3,host2:1,host3:2 sh -c \
        'echo "$(hostname) $DTRUN_LOCAL_RANK/$DTRUN_LOCAL_SIZE node $DTRUN_NODE_RANK/$DTRUN_NODES size $DTRUN_SIZE"'
    [ "$RC" = 0 ]
    shift
    for h; do
        grep -qx "\[$r\] host${h#*@} ${h%@*} node $((${h#*@} - 1))/3 size 6" "$OUT"
        r=$((r + 1))
    done
    [ ! -s "$ERR" ]
    cp "$OUT" "$BATS_TEST_TMPDIR/ran"
    cluster_dtrun --map-by "$by" --dry-run -np 6 -H host1:3,host2:1,host3:2 true
    [ "$(awk 'NR > 1 { print "[" $1 "] " $2 " " $3 }' "$OUT")" = \
        "$(sort "$BATS_TEST_TMPDIR/ran" | sed 's|/.*||')" ]
}

@test "uneven hosts are filled in block order, and ranks get what --dry-run prints" {
    uneven slot 0/3@1 1/3@1 2/3@1 0/1@2 0/2@3 1/2@3
}

@test "--map-by node takes uneven hosts in turn, and ranks get what --dry-run prints" {
    uneven node 0/3@1 0/1@2 0/2@3 1/3@1 1/2@3 2/3@1
}

@test "arguments and environment arrive byte for byte, and no command line of the host shows a value of -x" {
    local odd=$'a b\'c"d$HOME;`x`\n\tö\xff*'

    printf '%s\0' "$odd" '' '--' '-n' >"$BATS_TEST_TMPDIR/want"
    cluster_dtrun --no-tag -np 1 -H host2 sh -c 'printf "%s\0" "$@"' sh "$odd" '' -- -n
    [ "$RC" = 0 ]
    cmp "$OUT" "$BATS_TEST_TMPDIR/want"
    printf '%s' "$odd" >"$BATS_TEST_TMPDIR/want"
    cluster_dtrun --no-tag -np 1 -H host2 -x "ODD=$odd" -x "BIG=$(head -c 100000 /dev/zero | tr '\0' x)" \
        sh -c 'printf %s "$ODD"; [ ${#BIG} = 100000 ]'
    [ "$RC" = 0 ]
    cmp "$OUT" "$BATS_TEST_TMPDIR/want"
    cluster_dtrun --no-tag -np 1 -H host2 -x SECRET=squeamish \
        sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" "\n" | grep "s[q]ueamish"; echo "$SECRET"'
    [ "$RC" = 0 ]
    [ "$(cat "$OUT")" = squeamish ]
}

@test "remote and local hosts get an argument of 100 KiB and 200 KiB of environment" {
    local long i want t

    long=$(head -c 76800 /dev/urandom | base64 -w 0) # 102400 characters
    for i in 1 2 3 4; do export BULK$i="${long:0:51200}$i"$'\n'"end"; done
    want=$(printf '%s\n' "$BULK1" "$BULK2" "$BULK3" "$BULK4" "$long" | cksum)
    for t in "auto -H localhost,host1" "ssh -H host1,host2"; do # auto: fork and libssh2
        cluster_dtrun --transport $t -np 2 \
            sh -c 'printf "%s\n" "$BULK1" "$BULK2" "$BULK3" "$BULK4" "$1" | cksum' sh "$long"
        [ "$RC" = 0 ]
        [ "$(sed 's/^\[[01]\] //' "$OUT")" = "$(printf '%s\n' "$want" "$want")" ]
    done
    unset BULK1 BULK2 BULK3 BULK4
}

@test "no command line, of ssh or any other process, shows the environment" {
    local t

    for t in libssh2 ssh; do
        SECRET=squeamish cluster_dtrun_start --transport $t -np 2 -H host1,host2 \
            sh -c 'echo "up $SECRET"; sleep 300'
        cluster_out_has 2 "up squeamish"
        ! cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep 's[q]ueamish' || false
        kill -TERM "$DTRUN_PID"
        cluster_dtrun_wait
    done
}

# Lists the processes of this cluster's ranks that have this name.
ranks_called() { # COMMAND
    local dir
    for dir in $(grep -lx "$1" /proc/[0-9]*/comm 2>/dev/null); do
        dir=${dir%/comm}
        grep -qzFx "CLUSTER_TAG=$CLUSTER_TAG" "$dir/environ" 2>/dev/null && echo "${dir#/proc/}"
    done
}

# Checks that each of the four waits for its pipe.
stalled() {
    local pid n=0
    for pid in $(ranks_called flood); do
        case "$(cat "/proc/$pid/wchan" 2>/dev/null)" in *pipe*) n=$((n + 1)) ;; esac
    done
    [ "$n" = 4 ]
}

# Checks this several times: before the pipes are full all ranks may wait for a moment.
stalled_for_good() {
    if stalled; then still=$((still + 1)); else still=0; fi
    [ "$still" = 10 ]
}

@test "a slow reader makes ranks on other hosts wait, while dtrun and agents stay small" {
    local t still pids pid

    mkfifo "$BATS_TEST_TMPDIR/slow"
    for t in libssh2 ssh; do
        _cluster_exec dtrun --transport $t -np 4 -H host1:2,host2:2 flood 100000 \
            </dev/null >"$BATS_TEST_TMPDIR/slow" 2>"$BATS_TEST_TMPDIR/err" &
        DTRUN_PID=$!
        exec 8<"$BATS_TEST_TMPDIR/slow"
        still=0
        await stalled_for_good
        pids=$(ps -o ppid= -p "$(ranks_called flood | paste -sd,)" | sort -u)
        [ "$(echo "$pids" | wc -l)" = 2 ] # the agents
        for pid in $DTRUN_PID $pids; do
            awk -v t=$t '/^Name|VmHWM/ { print t, $0 } /VmHWM/ && $2 > 20000 { exit 1 }' "/proc/$pid/status"
        done
        timeout "$PATIENCE" "$DTRUN_BUILD/tests/rank/flood" check 4 100000 <&8
        exec 8<&-
        wait "$DTRUN_PID"
    done
}

@test "standard input reaches rank 0 on its host, and the output of all ranks comes back whole" {
    head -c 5000000 /dev/urandom >"$BATS_TEST_TMPDIR/in"
    STDIN=$BATS_TEST_TMPDIR/in cluster_dtrun --no-tag -np 2 -H host2:1,host3:1 cat
    [ "$RC" = 0 ]
    cmp "$OUT" "$BATS_TEST_TMPDIR/in"
    STDIN=$BATS_TEST_TMPDIR/in cluster_dtrun --unbuffered --no-tag -np 2 -H host2:1,host3:1 sh -c '[ -t 1 ] && exec cat'
    [ "$RC" = 0 ]
    cmp "$OUT" "$BATS_TEST_TMPDIR/in"
    cluster_dtrun -np 4 -H host1:2,host2:2 sh -c 'seq -f "$DTRUN_RANK line %06.0f" 20000; echo done >&2'
    [ "$RC" = 0 ]
    for r in 0 1 2 3; do
        seq -f "[$r] $r line %06.0f" 20000 | cmp - <(grep "^\[$r\]" "$OUT")
        grep -qx "\[$r\] done" "$ERR"
    done
}

@test "--stdin all gives every rank all of standard input, and sends it to each host once" {
    local before after

    head -c 5000000 /dev/urandom >"$BATS_TEST_TMPDIR/in"
    before=$(cluster_run cat /sys/class/net/h1/statistics/tx_bytes)
    STDIN=$BATS_TEST_TMPDIR/in cluster_dtrun --stdin all -np 8 -H host1:4,host2:4 cksum
    after=$(cluster_run cat /sys/class/net/h1/statistics/tx_bytes)
    [ "$RC" = 0 ]
    [ "$(grep -c "\] $(cksum <"$BATS_TEST_TMPDIR/in")$" "$OUT")" = 8 ]
    [ $((after - before)) -gt 5000000 ]
    [ $((after - before)) -lt 7500000 ]
}

@test "the failed rank's exit code is dtrun's, and the others are stopped on all hosts" {
    cluster_dtrun -np 4 -H host1:2,host2:2 \
        sh -c '[ $DTRUN_RANK = 3 ] && exit 7; sleep 300 & setsid sleep 300 & wait'
    [ "$RC" = 7 ]
    cluster_err_lines 1
    grep -qE '^dtrun: rank 3 \(host2, pid [0-9]+\) exited with code 7; stopping the other 3 ranks$' "$ERR"
    cluster_dtrun -np 2 -H host1,host2 sh -c '[ $DTRUN_RANK = 1 ] && kill -SEGV $$; sleep 300'
    [ "$RC" = 139 ]
    grep -q '^dtrun: rank 1 (host2, .*signal 11' "$ERR"
}

@test "all hosts that cannot be used are named, and nothing is started" {
    sed -i '/^host3 /d' "$CLUSTER_HOME/.ssh/known_hosts"
    cluster_dtrun -np 6 -H host1:2,hots2:2,host3:2 touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: hots2: resolve: Name or service not known"
    cluster_err_has "dtrun: host3: host key: ED25519 SHA256:"
    cluster_err_has "dtrun: 2 of 3 hosts cannot be used; nothing was started"
    [ ! -e "$CLUSTER_SHARED/ran" ]
}

@test "two names for one machine are an error that names both" {
    sed -n 's/^host1 /twin /p' "$CLUSTER_HOME/.ssh/known_hosts" >>"$CLUSTER_HOME/.ssh/known_hosts.twin"
    cat "$CLUSTER_HOME/.ssh/known_hosts.twin" >>"$CLUSTER_HOME/.ssh/known_hosts"
    cluster_dtrun -np 2 -H host1,twin touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 125 ]
    grep -q '^dtrun: .*host1.*twin' "$ERR"
    [ ! -e "$CLUSTER_SHARED/ran" ]
}

@test "a missing program or directory is reported in one message with host and path" {
    cluster_dtrun -np 4 -H host1:2,host2:2 ./trian
    [ "$RC" = 127 ]
    cluster_err_lines 1
    grep -q '^dtrun: ./trian: No such file or directory; --push sends programs to the hosts (on host' "$ERR"
    cluster_on 1 mkdir -p /run/home/work
    cluster_dtrun --wdir /run/home/work -np 2 -H host1,host2 touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 125 ]
    [ ! -e "$CLUSTER_SHARED/ran" ] # no rank runs before every host can run its ranks
    cluster_err_lines 1
    grep -q '^dtrun: .*host2' "$ERR"
    cluster_err_has /run/home/work
}

@test "a hostfile may name this machine and others, and both transports can be chosen" {
    printf 'localhost slots=1\nhost2 slots=2 user=root port=22 identity=%s\n' \
        "$CLUSTER_HOME/.ssh/id_ed25519" >"$BATS_TEST_TMPDIR/hosts"
    cluster_dtrun --hostfile "$BATS_TEST_TMPDIR/hosts" -np 3 sh -c 'echo $(hostname)'
    [ "$RC" = 0 ]
    grep -qx "\[0\] $(hostname)" "$OUT"
    grep -qx "\[2\] host2" "$OUT"
    for t in ssh libssh2; do
        cluster_dtrun --transport $t -np 4 -H host1:2,host2:2 sh -c 'echo $(hostname); exit $DTRUN_RANK'
        [[ "$RC" =~ ^[123]$ ]]
        cluster_dtrun --transport $t -np 4 -H host1:2,host2:2 sh -c 'echo $(hostname)'
        [ "$RC" = 0 ]
        [ "$(grep -c host1 "$OUT")" = 2 ]
    done
}

@test "output of a login shell is shown with --verbose and does no harm" {
    cluster_on 1 sh -c 'echo "echo welcome; echo careful >&2" >/run/home/.bashrc'
    cluster_dtrun --verbose --no-tag -np 2 -H host1,host2 echo hello
    cluster_on 1 rm /run/home/.bashrc
    [ "$RC" = 0 ]
    [ "$(cat "$OUT")" = "$(printf 'hello\nhello')" ]
    grep -q 'host1.*welcome' "$ERR"
    grep -q 'host1.*careful' "$ERR"
}

@test "an interrupt ends all ranks on all hosts, and a second one ends them at once" {
    for t in ssh libssh2; do
        cluster_dtrun_start --transport $t -np 4 -H host1:2,host2:2 sh -c 'echo up; sleep 300 & wait'
        cluster_out_has 4 up
        kill -INT "$DTRUN_PID"
        cluster_dtrun_wait
        [ "$RC" = 130 ]
        cluster_await_quiet
    done
    cluster_dtrun_start --kill-grace 600 -np 2 -H host1,host2 sh -c 'trap "" INT TERM; echo up; while :; do sleep 1; done'
    cluster_out_has 2 up
    kill -INT "$DTRUN_PID"
    await grep -q interrupted "$ERR" # two signals at the same time would count as one
    kill -INT "$DTRUN_PID"
    cluster_dtrun_wait
    [ "$RC" = 130 ]
}
