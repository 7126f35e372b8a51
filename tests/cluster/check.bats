# --check on several hosts: who cannot be used, who is unlike the others.

load lib

setup_file() {
    cluster_up 3
}

teardown_file() { cluster_down; }

setup() {
    cluster_require
    cluster_trust
}

teardown() { cluster_await_quiet 2; }

json() { # a Python expression over the report o
    python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); h = o["hosts"]; print(eval(sys.argv[2]))' \
        "$OUT" "$1"
}

# Waits until an agent runs on host N.
cluster_until_agent() {
    local end=$(($(date +%s%N) + 10000000000))

    until cluster_processes | grep -q "^host$1 .*dtrun-agent"; do
        [ "$(date +%s%N)" -lt "$end" ] || { echo "no agent runs on host$1"; return 1; }
        sleep 0.02
    done
}

# What hosts keep of jobs, or of agents that were sent.
files_on() { cluster_on "$1" find /run/home /tmp -name '*check-*' -o -name '*.part*'; }

@test "hosts on which all is well: 0, a line for each, nothing is left" {
    for t in libssh2 ssh; do
        cluster_dtrun --transport $t --check -np 6 -H host1:2,host2:2,host3:2 touch "$CLUSTER_SHARED/ran"
        [ "$RC" = 0 ]
        [ "$(wc -l <"$OUT")" = 4 ]
        for i in 1 2 3; do
            grep -qE "^host$i +$t [0-9.]+ s +[0-9.]+( sent)? " "$OUT"
            [ -z "$(files_on $i)" ]
        done
        ! grep -q 'cannot be used' "$ERR"
    done
    [ ! -e "$CLUSTER_SHARED/ran" ]
    cluster_await_quiet 0
}

@test "one host without the program, one unknown, one unreachable: each is named, the rest is shown" {
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

@test "two names for one machine" {
    sed -n 's/^host1 /twin /p' "$CLUSTER_HOME/.ssh/known_hosts" >"$BATS_TEST_TMPDIR/twin"
    cat "$BATS_TEST_TMPDIR/twin" >>"$CLUSTER_HOME/.ssh/known_hosts"
    cluster_dtrun --check -H host1,host2,twin
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: twin: it is the same machine as host1: name it once, with all its slots"
}

@test "Ctrl-C during a check: 130 at once, no process is left" {
    cluster_cut 2
    cluster_dtrun_start --check -H host1,host2 true
    cluster_until_agent 1
    kill -INT "$DTRUN_PID"
    cluster_dtrun_wait 5
    cluster_mend 2
    [ "$RC" = 130 ]
    [ ! -s "$OUT" ]
    cluster_err_lines 1
}
