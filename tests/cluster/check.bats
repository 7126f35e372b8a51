# --check on several hosts finds hosts that cannot be used, or differ from the others.

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

json() { # a Python expression over the report o
    python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); h = o["hosts"]; print(eval(sys.argv[2]))' \
        "$OUT" "$1"
}

# Waits until dtrun has printed the text.
cluster_err_gets() {
    await grep -qF -- "$1" "$ERR" || cluster_err_has "$1"
}

# Lists the files of jobs, and of agents that were sent, on a host.
files_on() { # HOST
    cluster_on "$1" find /run/home /tmp -regextype posix-extended -path "$DTRUN_SOURCE" -prune -o \
        -regex '.*check-[0-9a-f]{8}[^/]*|.*\.part[^/]*' -print
}

# Agents remove their files only after dtrun has sent its last message.
is_tidy() { [ -z "$(files_on "$1")" ]; }
tidy() { # HOST
    await is_tidy "$1" || { files_on "$1"; return 1; }
}

@test "--check of usable hosts exits with 0, prints a line for each host, and leaves nothing behind" {
    for t in libssh2 ssh; do
        cluster_dtrun --transport $t --check -np 6 -H host1:2,host2:2,host3:2 touch "$CLUSTER_SHARED/ran"
        [ "$RC" = 0 ]
        [ "$(wc -l <"$OUT")" = 4 ]
        for i in 1 2 3; do
            grep -qE "^host$i +$t [0-9.]+ s +[0-9.]+( sent)? " "$OUT"
            tidy $i
        done
        ! grep -q 'cannot be used' "$ERR" || false
    done
    [ ! -e "$CLUSTER_SHARED/ran" ]
    cluster_await_quiet
}

@test "--check names every host that cannot be used, and shows the others" {
    cluster_on 2 mkdir -p /run/home/bin
    printf '#!/bin/sh\n' | cluster_on 2 sh -c 'cat >/run/home/bin/prog && chmod +x /run/home/bin/prog'
    sed -i '/^host3 /d' "$CLUSTER_HOME/.ssh/known_hosts"
    cluster_dtrun --check --json -H host1,host2,host3,hots4 /run/home/bin/prog
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: host1: /run/home/bin/prog: No such file or directory"
    cluster_err_has "dtrun: host3: host key: ED25519 SHA256:"
    cluster_err_has "dtrun: hots4: resolve: Name or service not known"
    cluster_err_has "dtrun: 3 of 4 hosts cannot be used; a job would not start"
    [ "$(json '[x["cores"] is not None for x in h], h[1]["problem"]')" = \
        "([True, True, False, False], None)" ]
    cluster_dtrun --check -H host1,host2,host3,hots4 /run/home/bin/prog
    [ "$RC" = 125 ]
    grep -qE '^host1 ! +libssh2' "$OUT"
    grep -qE '^host2  +libssh2' "$OUT"
    grep -qE '^host3 ! +failed: host key \(libssh2\) +- ' "$OUT"
    grep -qE '^hots4 ! +failed: resolve ' "$OUT"
}

@test "--check measures and names the slowest connection between neighbours" {
    cluster_on 2 tc qdisc add dev eth0 root tbf rate 40mbit burst 32k latency 100ms 2>/dev/null ||
        skip "the kernel lacks the tbf queueing discipline"
    cluster_dtrun --check -H host1,host2,host3
    cp "$OUT" "$BATS_TEST_TMPDIR/table"
    cluster_dtrun --check --json -H host1,host2,host3
    cluster_on 2 tc qdisc del dev eth0 root
    [ "$RC" = 0 ]
    grep -qE '^dtrun: host2: (.*; )?[0-9.]+ Mbit/s to host3 \(usual: ' "$ERR"
    [ "$(json '[x["next"] for x in h]')" = "['host2', 'host3', 'host1']" ]
    # no measurement is faster than what it measures
    [ "$(json 'h[1]["bits_per_second_to_next"] < 45e6 < h[2]["bits_per_second_to_next"]')" = True ]
    [ "$(json 'all(x["rtt_to_next"] > 0 for x in h)')" = True ]
    grep -qE '^host2 .* [0-9.]+ Mbit/s !$' "$BATS_TEST_TMPDIR/table"
}

@test "--check names hosts that cannot reach each other as a job does" {
    cluster_on 2 nft 'add table inet t; add chain inet t in { type filter hook input priority 0; };
        add rule inet t in tcp dport != 22 tcp flags syn / syn,ack reject with tcp reset'
    cluster_dtrun --check --json -H host1,host2,host3
    cluster_on 2 nft flush ruleset
    [ "$RC" = 125 ]
    grep -q "^dtrun: host1, host3: cannot reach host2 at $CLUSTER_NET.2:[0-9]* (eth0): connection refused" "$ERR"
    cluster_err_has "dtrun: 2 of 3 hosts cannot be used; a job would not start"
    [ "$(json '[x["next"] for x in h], [x["cores"] > 0 for x in h]')" = \
        "([None, 'host3', 'host1'], [True, True, True])" ]
    cluster_dtrun --check --iface nosuch0 -H host1,host2
    [ "$RC" = 125 ]
    grep -qE '^dtrun: host1(, host2)?: --iface nosuch0: no interface of this host fits' "$ERR"
}

@test "a host that is lost while others measure the connection to it does not hold up --check" {
    cluster_on 2 tc qdisc add dev eth0 root tbf rate 64kbit burst 4k latency 5s 2>/dev/null ||
        skip "the kernel lacks the tbf queueing discipline"
    cluster_dtrun_start --check --verbose --heartbeat 6 -H host1,host2,host3
    cluster_err_gets "trying the connections between 3 hosts"
    cluster_power_off 2
    cluster_dtrun_wait
    cluster_power_on 2
    cluster_trust
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: host2: agent: it has not answered for 6 s"
    grep -qE '^host1 .*libssh2' "$OUT"
}

@test "--check refuses two names for one machine" {
    sed -n 's/^host1 /twin /p' "$CLUSTER_HOME/.ssh/known_hosts" >"$BATS_TEST_TMPDIR/twin"
    cat "$BATS_TEST_TMPDIR/twin" >>"$CLUSTER_HOME/.ssh/known_hosts"
    cluster_dtrun --check -H host1,host2,twin
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: twin: it is the same machine as host1: name it once, with all its slots"
}
