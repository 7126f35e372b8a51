# Hosts that have nothing of dtrun: neither source nor build tree, nor an installation.

load lib

setup_file() {
    export CLUSTER_HIDE=hide
    cluster_up 2
}

teardown_file() { cluster_down; }
setup() {
    cluster_require
    cluster_examples
}

teardown() { cluster_await_quiet; }

# dtrun may end before the agents of other machines have removed their files.
files() { cluster_on 1 find /run/home /tmp -type f | sort; }
are_files() { [ "$(files)" = "$1" ]; } # LIST
await_files() { await are_files "$1" || { diff <(echo "$1") <(files); false; }; }

@test "hosts lack dtrun's files, and without --push a job fails there" {
    ! cluster_on 1 test -e "$CHARLM" || false
    ! cluster_on 1 test -e "$DTRUN_BUILD/cmd/dtrun-agent" || false
    cluster_dtrun -np 2 -H host1,host2 "$CHARLM"
    [ "$RC" = 127 ]
    cluster_err_has "No such file or directory; --push sends programs to the hosts (on host"
    cluster_dtrun -np 2 -H host1,host2 --wdir /none true
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: working directory /none: No such file or directory; --wdir names another (on host"
    cluster_dtrun --no-push -np 2 -H host1,host2 true
    [ "$RC" = 125 ]
    grep -q '^dtrun: host2: agent start: dtrun-agent was not found (looked for /' "$ERR"
}

@test "hello and charlm run on hosts that get them, libdtrun and the agent from dtrun" {
    for t in libssh2 ssh; do
        cluster_on 1 rm -rf /run/home/.cache
        cluster_dtrun --transport $t --push "$HELLO" -np 4 -H host1:2,host2:2 "$HELLO"
        [ "$RC" = 0 ]
        [ "$(grep -c 'of 4: all ranks add up to 6' "$OUT")" = 4 ]
    done
    cluster_dtrun --push "$CHARLM" --checkpoint-dir bare -np 4 -H host1:2,host2:2 \
        --inject kill:rank=3,step=30 "$CHARLM" --steps 60 --batch 64 --width 32 --checkpoint-every 20 "$TEXT"
    [ "$RC" = 0 ]
    grep -q 'step    60 of 60' "$OUT"
    cluster_err_has "recovered from 1 failure"
}

@test "with --keep a host gets only files that it lacks, and shares nothing with the others" {
    local before again

    mkdir -p "$CLUSTER_HOME/tree/sub"
    head -c 30000000 /dev/urandom >"$CLUSTER_HOME/tree/sub/data"
    printf '#!/bin/sh\ncd "${LD_LIBRARY_PATH%%%%:*}" && sha256sum <tree/sub/data\n' >"$CLUSTER_HOME/sum"
    chmod 755 "$CLUSTER_HOME/sum"
    for again in no yes; do
        before=$(cluster_run cat /sys/class/net/h2/statistics/tx_bytes)
        cluster_dtrun --keep --push "$CLUSTER_HOME/tree" --push "$CLUSTER_HOME/sum" -np 2 -H host1,host2 sum
        [ "$RC" = 0 ]
        [ "$(grep -cF "$(sha256sum <"$CLUSTER_HOME/tree/sub/data")" "$OUT")" = 2 ]
        before=$(($(cluster_run cat /sys/class/net/h2/statistics/tx_bytes) - before))
        [ $((before > 30000000)) = $([ $again = yes ]; echo $?) ]
    done
    [ "$before" -lt 10000000 ] || { echo "$before bytes were sent again"; false; }
    [ "$(cluster_on 2 ls /run/home/.cache/dtrun/kept | wc -l)" = 2 ]
    cluster_on 1 rm -r /run/home/.cache/dtrun/kept
    cluster_on 2 rm -r /run/home/.cache/dtrun/kept
}

@test "a full disk on one host is reported with the host's name, and nothing starts or remains" {
    has_no_data() { [ -z "$(cluster_on 1 find /run/home/.cache/dtrun -name data)" ]; }
    head -c 9000000 /dev/zero >"$CLUSTER_HOME/data"
    cluster_on 2 sh -c 'mkdir -p /run/home/.cache && mount -t tmpfs -o size=4m full /run/home/.cache'
    cluster_dtrun --push "$CLUSTER_HOME/data" -np 2 -H host1,host2 touch "$CLUSTER_SHARED/ran"
    cluster_on 2 umount -l /run/home/.cache
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: host2: "
    cluster_err_has "No space left on device"
    [ ! -e "$CLUSTER_SHARED/ran" ]
    await has_no_data
}

@test "pushed files are removed when the job ends" {
    local before

    before=$(files)
    cluster_dtrun --push "$HELLO" -np 2 -H host1,host2 "$HELLO"
    [ "$RC" = 0 ]
    await_files "$before"
    cluster_dtrun_start --push "$CHARLM" -np 2 -H host1,host2 "$CHARLM" --steps 100000 "$TEXT"
    cluster_out_has 1 "step"
    kill -9 "$DTRUN_PID"
    cluster_await_quiet
    wait "$DTRUN_PID" || true
    await_files "$before"
}

# PINGs wait in the buffers of TCP and ssh behind the files.
@test "files that come over a slow line for many heartbeats do not make the host count as dead" {
    [ -c /dev/net/tun ] || skip "needs /dev/net/tun"
    cluster_dtrun -H host2 true # this also sends the agent
    head -c 2000000 /dev/urandom >"$BATS_TEST_TMPDIR/large"
    cluster_far 2 20 4e6 0
    cluster_dtrun_leased --heartbeat 1 -H host2 --push "$BATS_TEST_TMPDIR/large" true
    [ "$RC" = 0 ]
    [ ! -s "$ERR" ]
    cluster_near 2
}
