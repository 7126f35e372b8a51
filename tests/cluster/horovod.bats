# Horovod programs on several hosts. tests/rank/horovod looks for its peers as they do.

load lib

setup_file() {
    cluster_up 4
    [ -z "$CLUSTER_SKIP" ] || return 0
    cluster_second_network 2
}

teardown_file() { cluster_down; }

setup() {
    cluster_require
    cluster_trust
}

teardown() { cluster_await_quiet; }

# The line of rank R of N has the sums over all ranks, over its host, and over its local rank.
says() { # TIMES LINE
    [ "$(grep -cxF "$2" "$OUT")" = "$1" ] || { echo "not $1 times: $2"; cat "$OUT" "$ERR"; return 1; }
}

@test "16 Horovod ranks on 4 hosts find each other in every scope" {
    local rank host

    cluster_dtrun --no-tag -np 16 -H host1:4,host2:4,host3:4,host4:4 --env horovod horovod sets again
    [ "$RC" = 0 ]
    [ "$(wc -l <"$OUT")" = 48 ]
    for ((rank = 0; rank < 16; rank++)); do
        host=$((rank / 4))
        says 3 "rank $rank of 16: sums 136 $((16 * host + 10)) $((4 * (rank % 4) + 28))"
    done
}

@test "Horovod ranks run on hosts with different numbers of slots" {
    cluster_dtrun --no-tag -np 6 -H host1:3,host2:1,host3:2 --env horovod horovod
    [ "$RC" = 0 ]
    says 1 'rank 0 of 6: sums 21 6 10'
    says 1 'rank 1 of 6: sums 21 6 8'
    says 1 'rank 2 of 6: sums 21 6 3'
    says 1 'rank 3 of 6: sums 21 4 10'
    says 1 'rank 4 of 6: sums 21 11 10'
    says 1 'rank 5 of 6: sums 21 11 8'
}

@test "Horovod's interface is the one between the hosts, or the one that --iface names" {
    cluster_dtrun --no-tag -np 2 -H host1,host2 --env horovod \
        sh -c 'echo $HOROVOD_GLOO_RENDEZVOUS_ADDR $HOROVOD_GLOO_IFACE'
    [ "$RC" = 0 ]
    says 2 "$CLUSTER_NET.1 eth0"
    cluster_dtrun --no-tag -np 2 -H host1,host2 --iface eth1 --env horovod \
        sh -c 'echo $HOROVOD_GLOO_RENDEZVOUS_ADDR $HOROVOD_GLOO_IFACE; horovod'
    [ "$RC" = 0 ]
    says 2 "10.213.78.1 eth1"
    says 1 "rank 1 of 2: sums 3 2 3"
}

@test "when one of 16 Horovod ranks is killed on another host, all restart, and the sums are right" {
    local rank

    cluster_dtrun --no-tag -np 16 -H host1:4,host2:4,host3:4,host4:4 --map-by node --max-restarts 1 --env horovod \
        horovod die-once
    [ "$RC" = 0 ]
    cluster_err_has "dtrun: rank 1 (host2, pid "
    [ "$(wc -l <"$OUT")" = 16 ]
    for ((rank = 0; rank < 16; rank++)); do
        says 1 "rank $rank of 16: sums 136 $((4 * (rank % 4) + 28)) $((16 * (rank / 4) + 10))"
    done
}

@test "Horovod is refused where hosts reach each other by IPv6 only, with what to do" {
    local i

    [ -e /proc/sys/net/ipv6 ] || skip "needs IPv6"
    for i in 1 2; do
        cluster_on "$i" sh -c 'echo 0 >/proc/sys/net/ipv6/conf/eth1/disable_ipv6'
        cluster_on "$i" ip address add "fd77::$i/64" dev eth1 nodad
    done
    printf 'host1 addr=fd77::1\nhost2 addr=fd77::2\n' >"$CLUSTER_SHARED/hosts.txt"
    cluster_dtrun --hostfile "$CLUSTER_SHARED/hosts.txt" --env horovod touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 125 ]
    cluster_err_has "Horovod needs IPv4, and the other hosts reach host1 at fd77::1; --iface, or addr= in a hostfile, chooses an address; nothing was started"
    [ ! -e "$CLUSTER_SHARED/ran" ]
    cluster_dtrun --hostfile "$CLUSTER_SHARED/hosts.txt" true
    [ "$RC" = 0 ]
}

# Runs after those that need the second network, because host1 comes back without it.
@test "when Horovod's first host is lost, another one serves the rendezvous" {
    start() {
        cluster_dtrun_start -np 2 -H host1,host2 --max-restarts 1 --heartbeat 2 --env horovod sh -c \
            'horovod && echo met; [ "$DTRUN_RESTART_COUNT" != 0 ] || exec sleep 600'
        cluster_out_has 2 'met'
    }
    lose() { cluster_expect_loss 1 && cluster_power_off 1; }
    mend() { rm "$CLUSTER_HOME/.ssh/config" && cluster_power_on 1; }
    cluster_loses 1 start lose mend
    [ "$RC" = 0 ]
    cluster_err_has "dtrun: continuing without host1: 2 ranks on the 1 slot of 1 host"
    [ "$(grep -cx '\[[01]\] met' "$OUT")" = 4 ]
}

@test "a script that imports Horovod works across hosts without --env horovod" {
    printf 'import os\nif 0:\n    import horovod.torch\nos.execvp("horovod", ["horovod"])\n' \
        >"$CLUSTER_SHARED/train.py"
    cluster_dtrun --no-tag -np 4 -H host1:2,host2:2 python3 "$CLUSTER_SHARED/train.py"
    [ "$RC" = 0 ]
    says 1 'rank 0 of 4: sums 10 3 4'
    says 1 'rank 3 of 4: sums 10 7 6'
}

@test "a program that uses Horovod only through an installed package is warned of once for all hosts" {
    local first site=$CLUSTER_SHARED/site

    type gcc >/dev/null || skip "needs gcc"
    mkdir -p "$site/horovod"
    echo 'int f(void) { return 0; }' | gcc -shared -fPIC -o "$site/horovod/mpi_lib.so" -xc -
    printf 'import ctypes\nctypes.CDLL(__path__[0] + "/mpi_lib.so")\n' >"$site/horovod/__init__.py"
    echo 'import horovod' >"$site/package.py"
    printf 'import package, os, time\nprint("loaded", flush=True)\nwhile not os.path.exists("%s/end"):\n    time.sleep(0.02)\n' \
        "$CLUSTER_SHARED" >"$CLUSTER_SHARED/package_user.py"
    cluster_dtrun_start -H host1,host2 -x "PYTHONPATH=$site" python3 "$CLUSTER_SHARED/package_user.py"
    cluster_out_has 2 loaded
    first=$DTRUN_PID
    mv "$ERR" "$BATS_TEST_TMPDIR/first_err"
    # When this one is warned of, all agents of the first have had the time to look.
    cluster_dtrun_start -H host2,host1 -x "PYTHONPATH=$site" python3 "$CLUSTER_SHARED/package_user.py"
    await grep -q 'dtrun: host2: rank 0 (host2): process [0-9]* has loaded Horovod' "$ERR"
    await grep -q 'has loaded' "$BATS_TEST_TMPDIR/first_err" # on a busy machine it may still be to come
    : >"$CLUSTER_SHARED/end"
    cluster_dtrun_wait
    [ "$RC" = 0 ]
    DTRUN_PID=$first ERR=$BATS_TEST_TMPDIR/first_err
    cluster_dtrun_wait
    [ "$RC" = 0 ]
    [ "$(grep -c 'has loaded' "$ERR")" = 1 ]
    cluster_err_has "dtrun: host1: rank 0 (host1): process "
}
