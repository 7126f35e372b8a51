# What ends a job in the middle of its collectives: all survivors learn of it soon, and nothing remains on any
# host. And what must not end it.

load lib

setup_file() {
    cluster_up 3
}

teardown_file() { cluster_down; }
setup() { cluster_require; }
teardown() {
    [ -z "$CLUSTER_SKIP" ] || return 0
    [ ! -e "$CLUSTER_DIR/host2/line.pid" ] || cluster_near 2
    cluster_await_quiet
}

# Starts six ranks on three hosts that reduce without end.
start() { # [dtrun option...]
    cluster_dtrun_start --heartbeat 600 --kill-grace 600 "$@" --no-tag -np 6 -H host1:2,host2:2,host3:2 \
        busy 65536 1000000000
    cluster_out_has 6 '^busy$'
}

# Checks that RANKS ranks printed this reason for the failure of their call.
were_told() { # RANKS PATTERN
    local who='rank [0-9] \(host[123]\)' call='all-reduce of 65536 f32 \(sum\), call [0-9]+'

    [ "$(grep -cE "^rank [0-9]: $who: $call: $2" "$OUT")" = "$1" ]
}

ends() { # CODE
    cluster_dtrun_wait
    [ "$RC" = "$1" ]
    cluster_await_quiet
}

on_host() { # N PATTERN: prints the oldest such process
    cluster_on "$1" pgrep -fo -- "$2"
}

@test "check 39: when a host is cut off, all ranks know it within the lease of --heartbeat" {
    cluster_loses 2 "start --heartbeat 2" "cluster_cut 2" "cluster_mend 2"
    [ "$RC" = 125 ]
    grep -q '^dtrun: host2 has not answered for 2 s' "$ERR"
    were_told 4 '(rank [23]|host2) '
}

@test "check 39: when what a host sends is lost, all ranks know it within the lease of --heartbeat" {
    command -v nft >/dev/null || skip "needs nft"
    cluster_loses 2 "start --heartbeat 2" "cluster_mute 2" "cluster_unmute 2"
    [ "$RC" = 125 ]
    grep -q '^dtrun: host2 has not answered for 2 s' "$ERR"
    were_told 4 '(rank [23]|host2) '
}

# Host 2 does this with what host 3 sends. Nobody else notices.
cut_pair() { # RULE...
    cluster_on 2 nft "add table inet t
        add chain inet t in { type filter hook input priority 0; }
        add rule inet t in ip saddr $CLUSTER_NET.3 $*"
}

@test "a connection between two hosts that breaks ends the job, after a minute if it just falls silent, and is named" {
    local how why

    command -v nft >/dev/null || skip "needs nft"
    while IFS=: read -r how why; do
        start
        cut_pair "$how"
        ends 3
        cluster_on 2 nft flush ruleset
        grep -qE "^rank [2-5]: .*: the connection with rank [2-5] \(host[23]\) broke: $why$" "$OUT"
        were_told 6 '(the connection with )?rank [0-5] \(host[123]\) '
    done <<'END'
meta l4proto tcp reject with tcp reset:Connection reset by peer
drop:Connection timed out
END
}

@test "check 40: when rank 0 is killed, all other ranks name it" {
    start
    cluster_on 1 kill -9 "$(on_host 1 '^busy 65536')"
    ends 137
    grep -qE '^dtrun: rank [01] \(host1, pid [0-9]+\) was killed by signal 9' "$ERR"
    were_told 5 'rank [01] \(host1\) died or left'
    grep -qE '^rank [01]: .* died or left \(killed by signal 9\)$' "$OUT"
}

@test "check 40: when an agent is killed, its ranks end and the others learn of it" {
    start
    cluster_on 2 kill -9 "$(on_host 2 'dtrun-agent-')"
    ends 125
    grep -q '^dtrun: host2.*2-3' "$ERR"
    were_told 4 '(rank [23]|host2) '
}

@test "check 40: when dtrun is killed, all ranks end" {
    start
    kill -9 "$DTRUN_PID"
    cluster_await_quiet
    wait "$DTRUN_PID" || true
}

# Checks that all four ranks printed within a second what rank 1 called, and what the others called.
all_told() { # KIND ODD OTHERS
    local at='rank [0-9] \(host[123]\) called' odd='rank 1 \(host[123]\) called'

    [ "$(grep -cE "^$1 [0-9]{1,3}: $odd $2, call [0-9]+ on .*; $at $3, call|^$1 [0-9]{1,3}: $at $3, call [0-9]+ on .*; (elsewhere .*)?$odd $2, call" "$OUT")" = 4 ] ||
        { echo "not all were told of $1"; cat "$OUT"; return 1; }
}

# Rank 1 shares its host with other ranks in one placement, and is alone in the other.
@test "checks 27, 28, 29, 30, 31, 32: all ranks name calls that do not match within a second" {
    local hosts

    for hosts in host1:2,host2:2 host1:1,host2:1,host3:2; do
        try names_unlike_calls $hosts $hosts $hosts $hosts $hosts
    done
}

names_unlike_calls() { # HOSTS
    cluster_dtrun --no-tag -np 4 -H "$1" unlike
    [ "$RC" = 0 ]
    all_told count 'all-reduce of 9 f32 \(sum\)' 'all-reduce of 10 f32 \(sum\)'
    all_told type 'all-gather of 10 i32' 'all-gather of 10 f32'
    all_told op 'all-reduce of 10 f32 \(max\)' 'all-reduce of 10 f32 \(sum\)'
    all_told root 'scatter of 10 f32 from rank 1' 'scatter of 10 f32 from rank 0'
    all_told collective 'all-to-all of 10 f32' 'all-gather of 10 f32'
    all_told order barrier 'all-reduce of 10 f32 \(sum\)'
    all_told spread 'broadcast of 10 f32 from rank 1' 'broadcast of 10 f32 from rank 0'
    cluster_await_quiet
}

has_connections() { # N COUNT: connections of the rank there with other ranks, and with its own listener
    [ "$(cluster_on "$1" ss -tnpH state established | grep -c '"busy"')" = "$2" ]
}

@test "check 40: hosts of one rank use several connections for large calls, and a death ends all of them" {
    command -v ss >/dev/null || skip "needs ss"
    try ends_connections 1 1 1 1 1
    try ends_connections 3 3 3 3 3
}

# Ranks that notice the end of a connection have a second to learn how its rank ended.
ends_connections() { # STREAMS
    local host

    echo "net_streams = $1" >"$CLUSTER_SHARED/tuning"
    cluster_dtrun_start --kill-grace 600 --no-tag -np 3 -H host1,host2,host3 -x "DTRUN_TUNING=$CLUSTER_SHARED/tuning" \
        busy 2097152 1000000000
    cluster_out_has 3 '^busy$'
    for host in 1 2 3; do has_connections $host $((2 * $1)); done
    cluster_on 3 kill -9 "$(on_host 3 '^busy 2097152')"
    cluster_dtrun_wait
    [ "$RC" = 137 ]
    [ "$(grep -cE '^rank [01]: .* rank 2 \(host3\) died or left \(killed by signal 9\)$' "$OUT")" = 2 ]
    cluster_await_quiet
}

# Prints the seconds until host N has accepted a connection: one round trip.
there_and_back() {
    cluster_run python3 -c 'import socket, sys, time
began = time.monotonic()
socket.create_connection((sys.argv[1], 22))
print(time.monotonic() - began)' "$CLUSTER_NET.$1"
}

@test "check 41: on a line with 1 Mbit/s, 200 ms round trip and 1 % loss no host counts as dead" {
    [ -c /dev/net/tun ] || skip "needs /dev/net/tun"
    cluster_dtrun -H host2 true # this also sends the agent
    cluster_far 2 100 1e6 1
    there=$(there_and_back 2)
    cluster_dtrun_leased --no-tag --heartbeat 3 -np 2 -H host1,host2 busy 16384 6
    cluster_near 2 >"$BATS_TEST_TMPDIR/line"
    echo "$there s; $(cat "$BATS_TEST_TMPDIR/line")"
    [ "$RC" = 0 ]
    [ "$(grep -c '^done$' "$OUT")" = 2 ]
    [ ! -s "$ERR" ]
    awk -v there="$there" '{ carried += $2; lost += $4 }
        END { exit !(there >= 0.2 && carried > 500 && lost > 0) }' "$BATS_TEST_TMPDIR/line"
}

shm_is() { # COMMAND: runs on host1, to change /dev/shm, and /dev of its processes
    cluster_on 1 sh -c "$1"
    cluster_dtrun --no-tag -np 3 -H host1:2,host2:1 busy 1048576 3
    [ "$RC" = 0 ]
    [ "$(grep -c '^done$' "$OUT")" = 3 ]
}

@test "check 42: ranks of a host need no /dev/shm: it may be full or missing" {
    shm_is 'mount -t tmpfs -o size=4k small /dev/shm && head -c 4096 /dev/zero >/dev/shm/full'
    cluster_on 1 umount -l /dev/shm
    shm_is 'mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/zero c 1 5 &&
        mknod -m 666 /dev/urandom c 1 9 && mknod -m 666 /dev/random c 1 8'
    cluster_on 1 umount -l /dev # a process that ends may still use it
}
