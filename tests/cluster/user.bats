# A few tests for users without root: two sshd of the user's own on 127.0.0.1 stand for two hosts, which
# agents tell apart by DTRUN_HOSTID. An `ssh` in front of the real one ignores ~/.ssh.

load ../await

setup_file() {
    export D=$BATS_FILE_TMPDIR WHY_NOT
    WHY_NOT=$(prepare)
}

setup() { [ -z "$WHY_NOT" ] || skip "$WHY_NOT"; }

# Starts the hosts, or prints why that is impossible.
prepare() {
    local i sshd ssh

    sshd=$(command -v sshd || echo /usr/sbin/sshd)
    [ "$(id -u)" != 0 ] || { echo "is for users without root, who lack the other suites"; return; }
    [ -x "$sshd" ] || { echo "needs sshd (openssh-server)"; return; }
    ssh=$(command -v ssh) || { echo "needs ssh"; return; }
    mkdir "$D/bin"
    printf '#!/bin/sh\nexec "%s" -F "%s" "$@"\n' "$ssh" "$D/config" >"$D/bin/ssh"
    chmod 755 "$D/bin/ssh"
    ssh-keygen -q -t ed25519 -N '' -f "$D/key"
    for i in 1 2; do
        ssh-keygen -q -t ed25519 -N '' -f "$D/host$i"
        start_sshd "$i" "$sshd" || { echo "sshd does not serve a user without root"; return; }
        printf 'Host host%d\n HostName 127.0.0.1\n Port %d\n HostKeyAlias host%d\n' \
            "$i" "$(cat "$D/port$i")" "$i" >>"$D/config"
        echo "host$i $(cut -d' ' -f1,2 "$D/host$i.pub")" >>"$D/known_hosts"
    done
    printf 'Host *\n UserKnownHostsFile %s\n GlobalKnownHostsFile none\n' "$D/known_hosts" >>"$D/config"
    printf ' IdentityFile %s\n IdentitiesOnly yes\n IdentityAgent none\n' "$D/key" >>"$D/config"
    "$D/bin/ssh" -o BatchMode=yes host1 true || echo "sshd does not let this user log in"
}

# Uses a free port.
start_sshd() { # NUMBER SSHD
    local port tries

    for port in $(shuf -i 20000-50000 -n 20); do
        printf '%s\n' "Port $port" "ListenAddress 127.0.0.1" "HostKey $D/host$1" "PidFile none" \
            "UsePAM no" "StrictModes no" "AuthorizedKeysFile $D/key.pub" "MaxStartups 100" \
            "SetEnv DTRUN_HOSTID=host$1" >"$D/sshd$1"
        "$2" -D -f "$D/sshd$1" -E "$D/log$1" >/dev/null 2>&1 3>&- &
        echo $! >"$D/pid$1"
        echo "$port" >"$D/port$1"
        for tries in {1..1000}; do
            grep -q "^Server listening" "$D/log$1" 2>/dev/null && return
            kill -0 $! 2>/dev/null || break
            sleep 0.02
        done
    done
    return 1
}

teardown_file() {
    local i

    for i in 1 2; do
        [ ! -e "$BATS_FILE_TMPDIR/pid$i" ] || kill "$(cat "$BATS_FILE_TMPDIR/pid$i")" || true
    done
}

nothing_runs() { [ -z "$(processes_with "DTRUN_TOKEN=$D")" ]; }

dtrun() {
    OUT=$BATS_TEST_TMPDIR/out ERR=$BATS_TEST_TMPDIR/err RC=0
    PATH=$D/bin:$PATH DTRUN_TOKEN=$D DTRUN_AGENT=$DTRUN_BUILD/cmd/dtrun-agent \
        timeout "$PATIENCE" "$DTRUN_BUILD/cmd/dtrun" --no-push "$@" </dev/null >"$OUT" 2>"$ERR" || RC=$?
    echo "--- dtrun $* -> $RC"
    cat "$OUT" "$ERR"
    await nothing_runs
}

@test "ranks run on two hosts, through both transports" {
    for t in auto libssh2 ssh; do
        dtrun --transport $t -np 4 -H host1:2,host2:2 sh -c 'echo $DTRUN_RANK on node $DTRUN_NODE_RANK'
        [ "$RC" = 0 ]
        [ "$(sort "$OUT")" = "[0] 0 on node 0
[1] 1 on node 0
[2] 2 on node 1
[3] 3 on node 1" ]
    done
}

@test "a failing rank ends the job, and nothing remains" {
    dtrun -np 4 -H host1:2,host2:2 sh -c '[ $DTRUN_RANK = 2 ] && exit 5; sleep 300 & setsid sleep 300 & wait'
    [ "$RC" = 5 ]
}

@test "an unknown host key is refused" {
    mv "$D/known_hosts" "$D/known_hosts.kept"
    dtrun -np 2 -H host1,host2 true
    mv "$D/known_hosts.kept" "$D/known_hosts"
    [ "$RC" = 125 ]
    grep -q '^dtrun: host1: host key: ED25519 SHA256:.* is not known' "$ERR"
}
