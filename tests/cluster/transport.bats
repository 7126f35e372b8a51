# How dtrun reaches hosts: both SSH transports, keys, known hosts, ssh's settings, and sending the agent.

load lib

setup_file() {
    CLUSTER_KEX=curve25519-sha256 # what libssh2 prefers
    cluster_up 1
    [ -z "$CLUSTER_SKIP" ] || return 0
    cluster_host 2 /bin/bash "Port 2222" "RekeyLimit 1M" "LogLevel VERBOSE" # which notes each refused key
    _cluster_await_sshd 2
    cluster_trust
}

teardown_file() { cluster_down; }

setup() {
    cluster_require
    cluster_trust
    rm -f "$CLUSTER_HOME"/.ssh/config
    cp "$CLUSTER_DIR/authorized_keys" "$BATS_TEST_TMPDIR/authorized"
}

teardown() {
    [ -z "$CLUSTER_SKIP" ] || return 0
    cp "$BATS_TEST_TMPDIR/authorized" "$CLUSTER_DIR/authorized_keys"
    if [ -d "$CLUSTER_HOME/.ssh.kept" ]; then
        rm -rf "$CLUSTER_HOME/.ssh"
        mv "$CLUSTER_HOME/.ssh.kept" "$CLUSTER_HOME/.ssh"
    fi
}

probe() { run cluster_run timeout "$PATIENCE" linkprobe "$@"; echo "--- $* -> $status"; echo "$output"; }
says() { [[ "$output" == *"$1"* ]] || { echo "not said: $1"; return 1; }; }
fails_with() { [ "$status" = 1 ] && says "closed: $1"; }

# Replaces the usual keys for this test.
own_keys() {
    cp -a "$CLUSTER_HOME/.ssh" "$CLUSTER_HOME/.ssh.kept"
    rm "$CLUSTER_HOME"/.ssh/id_*
}

@test "a command's output, standard error and exit code arrive" {
    for t in libssh2 ssh; do
        probe --transport $t host1 'hostname; echo oops >&2; exit 3'
        says "host1"
        says "noise: oops"
        fails_with "agent: the command there exited with code 3"
        probe --transport $t host1 'true'
        [ "$status" = 0 ]
        probe --transport $t host1 'kill -9 $$'
        says "closed: agent: "
        [ "$status" = 1 ]
    done
}

@test "20 MB go each way at once over a link that takes 4 KiB at a time, while keys are renewed" {
    local wmem=/proc/sys/net/ipv4/tcp_wmem

    cluster_run sh -c "echo 4608 4608 4608 >$wmem"
    for t in libssh2 ssh; do
        probe --transport $t --echo 20 host2 'echo; exec cat'
        [ "$status" = 0 ]
        says "echoed 20000000"
    done
    cluster_run sh -c "echo 4096 16384 4194304 >$wmem"
}

@test "an unknown name, a closed port and a host that is down are each reported" {
    for t in libssh2 ssh; do
        probe --transport $t hots1 true
        fails_with "resolve: Name or service not known"
        probe --transport $t --port 23 host1 true
        fails_with "connect: port 23"
        says "Connection refused; is the host up, and sshd running there?"
    done
    printf 'ConnectTimeout 1\n' >"$CLUSTER_HOME/.ssh/config"
    cluster_cut 1
    for t in libssh2 ssh; do
        probe --transport $t host1 true
        [ "$status" = 1 ]
        [[ "$output" =~ "closed: connect: port 22".*("no answer for 1 s"|"timed out"|"No route") ]]
    done
    cluster_mend 1
}

listens() { ip netns exec "$CLUSTER_TAG-h1" ss -Hltn "sport = :$1" | grep -q .; } # PORT

@test "a server that is no SSH server is reported with its port" {
    cluster_on 1 python3 -c 'import socket
server = socket.create_server(("", 2300))
peer = server.accept()[0]
peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
while peer.recv(1000): pass
peer = server.accept()[0]
peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
peer.close()
server.accept()[0].close()
peer = server.accept()[0]
peer.sendall(b"ready\r\n")
while peer.recv(1000): pass' 3>&- &
    await listens 2300
    for i in stays closes; do
        probe --transport libssh2 --port 2300 host1 true
        fails_with "handshake: what answers at port 2300 is no SSH server; see --ssh-port"
    done
    probe --transport libssh2 --port 2300 host1 true
    fails_with "handshake: what answers at port 2300 closed the connection without a word; if it is no"
    printf 'ConnectTimeout 5\n' >"$CLUSTER_HOME/.ssh/config" # the server may be slow to answer
    probe --transport libssh2 --port 2300 host1 true
    fails_with "handshake: what answers at port 2300 is no SSH server; see --ssh-port"
    wait
}

@test "an unknown host key is refused, with its fingerprint and the command that adds it" {
    local print

    print=$(ssh-keygen -lf "$CLUSTER_DIR/host1/key.pub" | awk '{ print $2 }')
    : >"$CLUSTER_HOME/.ssh/known_hosts"
    probe --transport libssh2 host1 true
    fails_with "host key: ED25519 $print is not known"
    says "ssh-keyscan -t ed25519 host1 >>$CLUSTER_HOME/.ssh/known_hosts"
    probe --transport ssh host1 true
    fails_with "host key: none is known"
    says "ssh-keyscan -t ed25519 host1 >>$CLUSTER_HOME/.ssh/known_hosts"
    [ ! -s "$CLUSTER_HOME/.ssh/known_hosts" ]
}

@test "--ssh-accept-new adds a host's key once" {
    for t in libssh2 ssh; do
        printf '# no newline at the end' >"$CLUSTER_HOME/.ssh/known_hosts"
        [ $t = libssh2 ] || : >"$CLUSTER_HOME/.ssh/known_hosts"
        probe --transport $t --accept-new host1 true
        [ "$status" = 0 ]
        [ "$(grep -c ssh-ed25519 "$CLUSTER_HOME/.ssh/known_hosts")" = 1 ]
        probe --transport $t --accept-new host1 true
        [ "$status" = 0 ]
        [ "$(grep -c ssh-ed25519 "$CLUSTER_HOME/.ssh/known_hosts")" = 1 ]
        probe host1 true
        [ "$status" = 0 ]
    done
}

@test "a new host key is accepted if StrictHostKeyChecking is no, wherever it is stored" {
    : >"$CLUSTER_HOME/.ssh/known_hosts"
    printf 'StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n' >"$CLUSTER_HOME/.ssh/config"
    for t in libssh2 ssh; do
        probe --transport $t host1 true
        [ "$status" = 0 ]
    done
    printf 'StrictHostKeyChecking no\nHashKnownHosts no\nUserKnownHostsFile "%s"\n' "$BATS_TEST_TMPDIR/a file" \
        >"$CLUSTER_HOME/.ssh/config"
    for t in auto ssh; do
        probe --transport $t host1 true
        [ "$status" = 0 ]
        [ "$(grep -c ssh-ed25519 "$BATS_TEST_TMPDIR/a file")" = 1 ]
    done
    [ ! -s "$CLUSTER_HOME/.ssh/known_hosts" ]
}

@test "--ssh-accept-new keeps HashKnownHosts" {
    local known=$CLUSTER_HOME/.ssh/known_hosts

    printf 'HashKnownHosts yes\n' >"$CLUSTER_HOME/.ssh/config"
    : >"$known"
    probe --accept-new host1 true
    [ "$status" = 0 ]
    grep -q '^|1|.* ssh-ed25519 ' "$known"
    ! grep -q host1 "$known" || false
    probe --transport libssh2 host1 true
    [ "$status" = 0 ]
}

@test "a changed host key is refused even with --ssh-accept-new" {
    local known=$CLUSTER_HOME/.ssh/known_hosts

    sed -i "s|^host1 .*|host1 $(cut -d' ' -f1,2 "$CLUSTER_DIR/host2/key.pub")|" "$known"
    cp "$known" "$BATS_TEST_TMPDIR/known"
    probe --transport libssh2 --accept-new host1 true
    fails_with "host key: ED25519 SHA256:"
    says "IS NOT THE ONE KNOWN FOR IT ($known:1)"
    probe --transport ssh --accept-new host1 true
    fails_with "host key: it HAS CHANGED (now SHA256:"
    cmp "$known" "$BATS_TEST_TMPDIR/known"
}

@test "a revoked host key is refused, even if another line lists it" {
    local known=$CLUSTER_HOME/.ssh/known_hosts

    echo "@revoked * $(cut -d' ' -f1,2 "$CLUSTER_DIR/host1/key.pub")" >>"$known"
    probe --transport libssh2 --accept-new host1 true
    fails_with "host key: ED25519"
    says "is marked @revoked in $known:3"
    probe --transport ssh host1 true
    fails_with "host key: it is marked as revoked"
}

@test "known_hosts may have hashed names, patterns, garbage and long lines" {
    local known=$CLUSTER_HOME/.ssh/known_hosts key1 key2

    key1=$(cut -d' ' -f1,2 "$CLUSTER_DIR/host1/key.pub")
    key2=$(cut -d' ' -f1,2 "$CLUSTER_DIR/host2/key.pub")
    ssh-keygen -q -H -f "$known" >/dev/null
    ! grep -q host1 "$known" || false
    probe --transport libssh2 host1 true
    [ "$status" = 0 ]

    {
        printf '# a comment\n\nhalf-a-line\n'
        printf 'host1,%s ssh-ed25519 %s\n' "$(printf 'x%.0s' {1..5000})" "${key2#* }"
        echo "h?st*,!host1 $key2"
        echo "*.example,hos?1 $key1"
    } >"$known"
    sed -i 4d "$known"
    probe --transport libssh2 host1 true
    [ "$status" = 0 ]
    says "$known:3: this line cannot be read and is ignored"
    probe --transport libssh2 host2 true
    [ "$status" = 0 ]

    printf 'other,%s,host1 %s\n' "$(printf 'x%.0s' {1..5000})" "$key1" >"$known"
    probe --transport libssh2 host1 true
    [ "$status" = 0 ]
}

@test "keys that are not accepted, encrypted or missing are each reported" {
    own_keys
    probe --transport libssh2 host1 true
    fails_with "authenticate as root: there is no key to offer"
    ssh-keygen -q -t ed25519 -N '' -f "$CLUSTER_HOME/.ssh/id_ed25519"
    probe --transport libssh2 host1 true
    fails_with "authenticate as root: the key was not accepted (id_ed25519); try: ssh-copy-id host1"
    ssh-keygen -q -t ecdsa -N '' -f "$CLUSTER_HOME/.ssh/id_ecdsa"
    probe --transport libssh2 host1 true
    fails_with "authenticate as root: none of the 2 keys was accepted (id_ecdsa, id_ed25519); try"
    probe --transport ssh host1 true
    fails_with "authenticate as root: ssh has no key that is accepted (the host accepts: publickey"
    rm "$CLUSTER_HOME"/.ssh/id_*
    ssh-keygen -q -t ed25519 -N secret -f "$CLUSTER_HOME/.ssh/id_ed25519"
    probe --transport libssh2 host1 true
    fails_with "authenticate as root: none of the keys can be used (id_ed25519 [encrypted: ssh-add"
}

@test "a host that accepts no keys, one that opens no session, and one that refuses further keys are reported" {
    cluster_host 3 /bin/bash "PubkeyAuthentication no" "KbdInteractiveAuthentication yes"
    cluster_host 4 /bin/bash "MaxAuthTries 1" "MaxSessions 0"
    _cluster_await_sshd 3
    _cluster_await_sshd 4
    cluster_trust
    probe --transport libssh2 host3 true
    fails_with "authenticate as root: the host accepts no keys (it accepts: keyboard-interactive); allow"
    probe --transport libssh2 host4 true
    fails_with "agent start: the host accepted the login, but opens no session; see MaxSessions in its"
    own_keys
    ssh-keygen -q -t ecdsa -N '' -f "$CLUSTER_HOME/.ssh/id_ecdsa"
    cp "$CLUSTER_HOME/.ssh.kept/id_ed25519" "$CLUSTER_HOME/.ssh"
    probe --transport libssh2 host4 true
    fails_with "authenticate as root: the host closed the connection after 1 of 2 keys; name the"
}

refused_keys() { grep -c "Failed publickey" "$CLUSTER_DIR/host2/sshd.log" || true; }

@test "an ECDSA key is accepted, and a key that is refused is offered once" {
    local before

    own_keys
    ssh-keygen -q -t ecdsa -N '' -f "$CLUSTER_HOME/.ssh/id_ecdsa"
    cat "$CLUSTER_HOME/.ssh/id_ecdsa.pub" >>"$CLUSTER_DIR/authorized_keys"
    before=$(refused_keys)
    probe --transport libssh2 host2 true
    [ "$status" = 0 ]
    [ "$(refused_keys)" = "$before" ]
    cp "$BATS_TEST_TMPDIR/authorized" "$CLUSTER_DIR/authorized_keys"
    probe --transport libssh2 host2 true
    [ "$status" = 1 ]
    [ "$(refused_keys)" = $((before + 1)) ]
}

@test "keys of the SSH agent work, also encrypted ones, and IdentitiesOnly is kept" {
    own_keys
    ssh-keygen -q -t ed25519 -N secret -C 'anna@laptop' -f "$CLUSTER_HOME/.ssh/agentkey"
    cat "$CLUSTER_HOME/.ssh/agentkey.pub" >>"$CLUSTER_DIR/authorized_keys"
    eval "$(ssh-agent -a "$BATS_TEST_TMPDIR/agent" 3>&-)" >/dev/null
    printf '#!/bin/sh\necho secret\n' >"$BATS_TEST_TMPDIR/askpass"
    chmod +x "$BATS_TEST_TMPDIR/askpass"
    SSH_AUTH_SOCK=$BATS_TEST_TMPDIR/agent SSH_ASKPASS=$BATS_TEST_TMPDIR/askpass \
        SSH_ASKPASS_REQUIRE=force ssh-add -q "$CLUSTER_HOME/.ssh/agentkey"
    local used= only= named= public=
    for t in libssh2 ssh auto; do
        printf 'IdentityAgent %s\n' "$BATS_TEST_TMPDIR/agent" >"$CLUSTER_HOME/.ssh/config"
        probe --transport $t host1 true
        used+=$status
        printf 'IdentitiesOnly yes\n' >>"$CLUSTER_HOME/.ssh/config"
        probe --transport $t host1 true
        only+=$status
        printf 'IdentityFile ~/.ssh/agentkey\n' >>"$CLUSTER_HOME/.ssh/config"
        probe --transport $t host1 true
        named+=$status
        sed -i 's/agentkey$/agentkey.pub/' "$CLUSTER_HOME/.ssh/config"
        probe --transport $t host1 true
        public+=$status
    done
    cp "$BATS_TEST_TMPDIR/authorized" "$CLUSTER_DIR/authorized_keys"
    printf 'IdentityAgent %s\n' "$BATS_TEST_TMPDIR/agent" >"$CLUSTER_HOME/.ssh/config"
    probe --transport libssh2 host1 true
    kill "$SSH_AGENT_PID"
    [ $used = 000 ]
    [ $only = 111 ]
    [ $named = 000 ]
    [ $public = 000 ]
    fails_with "authenticate as root: the key was not accepted (agent: anna@laptop)"
    probe --transport libssh2 host1 true
    says "no SSH agent: $BATS_TEST_TMPDIR/agent"
}

@test "RSA keys work, also of the SSH agent, and a libssh2 that is too old for them says so" {
    own_keys
    ssh-keygen -q -t rsa -b 2048 -N '' -f "$CLUSTER_HOME/.ssh/id_rsa"
    cat "$CLUSTER_HOME/.ssh/id_rsa.pub" >>"$CLUSTER_DIR/authorized_keys"
    probe host1 hostname
    [ "$status" = 0 ]
    says host1
    probe --transport libssh2 host1 true
    [ "$status" = 0 ] || fails_with "authenticate as root: none of the keys can be used (id_rsa [RSA, \
for which this libssh2 is too old: use --transport ssh or an ed25519 key])"
    cluster_dtrun -np 1 -H host1 hostname
    [ "$RC" = 0 ]
    [ "$(cat "$OUT")" = host1 ]
    eval "$(ssh-agent -a "$BATS_TEST_TMPDIR/agent" 3>&-)" >/dev/null
    ssh-add -q "$CLUSTER_HOME/.ssh/id_rsa"
    rm "$CLUSTER_HOME/.ssh/id_rsa"
    printf 'IdentityAgent %s\n' "$BATS_TEST_TMPDIR/agent" >"$CLUSTER_HOME/.ssh/config"
    probe host1 hostname
    kill "$SSH_AGENT_PID"
    [ "$status" = 0 ]
    says host1
}

@test "a key with a certificate goes through ssh, even if the SSH agent holds the key without it" {
    own_keys
    ssh-keygen -q -t ed25519 -N '' -f "$CLUSTER_DIR/authority"
    cluster_host 5 /bin/bash "TrustedUserCAKeys $CLUSTER_DIR/authority.pub" "AuthorizedKeysFile none"
    _cluster_await_sshd 5
    cluster_trust
    ssh-keygen -q -t ed25519 -N '' -f "$CLUSTER_HOME/.ssh/id_ed25519"
    eval "$(ssh-agent -a "$BATS_TEST_TMPDIR/agent" 3>&-)" >/dev/null
    ssh-add -q "$CLUSTER_HOME/.ssh/id_ed25519"
    ssh-keygen -q -s "$CLUSTER_DIR/authority" -I anna -n root "$CLUSTER_HOME/.ssh/id_ed25519.pub"
    local logins=
    for socket in none "$BATS_TEST_TMPDIR/agent"; do
        printf 'IdentityAgent %s\n' "$socket" >"$CLUSTER_HOME/.ssh/config"
        probe host5 hostname
        logins+=$status
    done
    kill "$SSH_AGENT_PID"
    [ $logins = 00 ]
}

@test "libssh2 keeps HostName, Port, User, IdentityFile, HostKeyAlias and UserKnownHostsFile" {
    own_keys
    cp "$CLUSTER_HOME/.ssh.kept/id_ed25519" "$CLUSTER_HOME/.ssh/key for work"
    sed -i 's/^host2 /work /' "$CLUSTER_HOME/.ssh/known_hosts"
    cat >"$CLUSTER_HOME/.ssh/config" <<CONFIG
Host big
    HostName host2
    Port 2222
    User root
    IdentityFile "~/.ssh/key for work"
    HostKeyAlias work
Host other
    HostName host2
    HostKeyAlias work
    User nobody
CONFIG
    for t in libssh2 ssh auto; do
        probe --transport $t big hostname
        [ "$status" = 0 ]
        says host2
    done
    probe --transport libssh2 other true
    fails_with "authenticate as nobody"
    probe --transport libssh2 --user root --port 2222 \
        --identity "$CLUSTER_HOME/.ssh/key for work" other hostname
    [ "$status" = 0 ]
    mv "$CLUSTER_HOME/.ssh/known_hosts" "$CLUSTER_HOME/.ssh/known_elsewhere"
    for t in libssh2 ssh; do
        probe --transport $t big true
        fails_with "host key: "
    done
    sed -i '1i UserKnownHostsFile ~/.ssh/none ~/.ssh/known_elsewhere' "$CLUSTER_HOME/.ssh/config"
    for t in libssh2 ssh; do
        probe --transport $t big hostname
        [ "$status" = 0 ]
    done
    sed -i '/UserKnownHostsFile/d' "$CLUSTER_HOME/.ssh/config"
    probe --transport libssh2 big true
    fails_with "host key: ED25519"
    says "ssh-keyscan -t ed25519 -p 2222 host2 | sed 's/^[^ ]*/work/' >>"
}

@test "hosts with ProxyJump or ProxyCommand are reached through ssh" {
    for way in "ProxyJump host1" "ProxyCommand ssh -W %h:%p host1"; do
        printf 'Host host2\n    %s\n' "$way" >"$CLUSTER_HOME/.ssh/config"
        probe host2 'echo from $SSH_CONNECTION'
        [ "$status" = 0 ]
        says "from $CLUSTER_NET.1 "
    done
}

@test "hosts with settings that libssh2 does not keep, such as Ciphers and SetEnv, are reached through ssh" {
    cluster_dtrun --verbose -np 1 -H host2 true
    [ "$RC" = 0 ]
    grep -q 'host2: transport libssh2$' "$ERR"
    # No server offers this cipher, so nobody who keeps this setting can log in.
    printf 'Ciphers 3des-cbc\n' >"$CLUSTER_HOME/.ssh/config"
    probe host2 true
    fails_with "agent: the command there was killed, or ssh failed and did not say why; try: ssh host2"
    printf 'SetEnv A=b\n' >"$CLUSTER_HOME/.ssh/config"
    cluster_dtrun --verbose -np 1 -H host2 true
    [ "$RC" = 0 ]
    grep -q 'host2: transport ssh: setenv is set$' "$ERR"
}

@test "settings that leave ssh without standard input or a command are overridden" {
    ssh -G host1 | grep -q '^stdinnull ' || skip "needs ssh 8.7"
    for setting in 'StdinNull yes' 'SessionType none'; do
        echo "$setting" >"$CLUSTER_HOME/.ssh/config"
        for t in ssh auto; do
            probe --echo 1 --transport $t host1 'echo; exec cat'
            [ "$status" = 0 ]
            says "echoed 1000000"
        done
    done
}

@test "a mistake in ssh's settings is reported with file and line" {
    printf 'Prot 22\n' >"$CLUSTER_HOME/.ssh/config"
    probe host1 true
    fails_with "settings: ssh -G host1 failed: $CLUSTER_HOME/.ssh/config: line 1: Bad configuration"
}

@test "a broken connection is reported" {
    local out

    for t in libssh2 ssh; do
        out="$BATS_TEST_TMPDIR/out.$t" # the shell in the background creates it at some time
        cluster_run timeout "$PATIENCE" linkprobe --transport $t host1 'echo $PPID; exec sleep 600' >"$out" 3>&- &
        await grep -qx '[0-9][0-9]*' "$out"
        cluster_on 1 kill -9 "$(grep -x '[0-9]*' "$out")"
        wait $! || true
        cat "$out"
        grep -q '^closed: connection: it was lost' "$out"
        cluster_on 1 pkill -x sleep || true
    done
}

# Slurm, PBS and LSF do that, with SIGUSR1 as a warning and SIGTERM at the end.
@test "ssh outlives the signals that a batch system sends to every process of a job" {
    local out="$BATS_TEST_TMPDIR/out" go="go.$$.$BATS_TEST_NUMBER" ssh

    cluster_run timeout "$PATIENCE" linkprobe --transport ssh host1 \
        "echo begun; until [ -e /run/$go ]; do sleep 0.05; done; echo still there; exit 3" >"$out" 3>&- &
    await grep -qx begun "$out"
    ssh=$(pgrep -f "^ssh .*/run/$go")
    for signal in HUP INT TERM USR1 USR2; do kill -$signal "$ssh"; done
    cluster_on 1 touch "/run/$go"
    wait $! || true
    cat "$out"
    grep -qx "still there" "$out"
    grep -q "^closed: agent: the command there exited with code 3" "$out"
}

# ---- sending the agent ----

agent=$DTRUN_BUILD/cmd/dtrun-agent

cached() { cluster_on 1 sh -c "ls -i ${1:-/run/home/.cache/dtrun}"; }
forget() { cluster_on 1 sh -c 'umount /run/home/.cache 2>/dev/null; rm -rf /run/home/.cache /run/home/.[b-z]* /tmp/dtrun-0'; }

@test "the agent is sent where it is missing, and reused where it is not" {
    forget
    for t in libssh2 ssh; do
        probe --transport $t --agent "$agent" host1
        [ "$status" = 0 ]
        says "host1 $CLUSTER_NET.1"
    done
    run cached
    [[ "$output" == *"dtrun-agent-$(uname -m)-"* ]]
    [ "${#lines[@]}" = 1 ]
    local before=$output
    probe --agent "$agent" host1
    [ "$status" = 0 ]
    [ "$(cached)" = "$before" ]
    [ "$(cluster_on 1 stat -c %a /run/home/.cache/dtrun "/run/home/.cache/dtrun/${before#* }" | tr '\n' ' ')" = "700 700 " ]
}

@test "a damaged cached agent of the right size is replaced by every transport" {
    for t in libssh2 ssh auto; do
        forget
        probe --transport $t --agent "$agent" host1
        [ "$status" = 0 ]
        cluster_on 1 sh -c 'for f in /run/home/.cache/dtrun/*; do
            size=$(stat -c %s "$f"); truncate -s 100 "$f"; truncate -s "$size" "$f"; done'
        probe --transport $t --agent "$agent" host1
        [ "$status" = 0 ]
        says "did not start; it is sent again"
        says "host1 $CLUSTER_NET.1"
        probe --transport $t --agent "$agent" host1
        [ "$status" = 0 ]
        [[ "$output" != *"sent again"* ]] || false
    done
}

@test "a cached agent that others may have put there is not run" {
    forget
    probe --agent "$agent" host1
    cluster_on 1 chmod 770 /run/home/.cache/dtrun
    probe --agent "$agent" host1
    [ "$status" = 0 ]
    cached /tmp/dtrun-0 | grep -q dtrun-agent
    cluster_on 1 rm -rf /tmp/dtrun-0
    forget
}

@test "many hosts can share one home directory without disturbing each other" {
    local i pids=()

    forget
    for i in {1..8}; do
        cluster_run timeout "$PATIENCE" linkprobe --agent "$agent" host1 >"$BATS_TEST_TMPDIR/out$i" 3>&- &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    [ "$(cached | wc -l)" = 1 ]
    [ -z "$(cluster_on 1 find /run/home/.cache/dtrun -name '.*' -type f)" ]
}

@test "without room in the home directory the agent goes to /tmp, and without any room an error says so" {
    forget
    cluster_on 1 sh -c 'mkdir -p /run/home/.cache && mount -t tmpfs -o noexec x /run/home/.cache'
    probe --agent "$agent" host1
    [ "$status" = 0 ]
    cached /tmp/dtrun-0 | grep -q dtrun-agent
    cluster_on 1 sh -c 'rm -rf /tmp/dtrun-0; mkdir -m 777 /tmp/elsewhere; ln -s elsewhere /tmp/dtrun-0'
    probe --agent "$agent" host1
    fails_with "agent start: there is no place for dtrun-agent: /run/home/.cache/dtrun is mounted noexec, /tmp/dtrun-0 is not yours alone"
    cluster_on 1 sh -c 'umount /run/home/.cache; mount -t tmpfs -o size=16k x /run/home/.cache'
    probe --agent "$agent" host1
    fails_with "agent start: there is no place for dtrun-agent: /run/home/.cache/dtrun has no room, /tmp/dtrun-0 is not yours alone"
    [ -z "$(cached)" ]
    cluster_on 1 rm -rf /tmp/dtrun-0 /tmp/elsewhere
    probe --agent "$agent" host1
    [ "$status" = 0 ]
    cached /tmp/dtrun-0 | grep -q dtrun-agent
    cluster_on 1 rm -rf /tmp/dtrun-0
    forget
}

@test "an agent for another kind of processor is not sent" {
    cp "$agent" "$BATS_TEST_TMPDIR/agent"
    printf '\xb7' | dd of="$BATS_TEST_TMPDIR/agent" bs=1 seek=18 conv=notrunc status=none
    [ "$(uname -m)" != aarch64 ] || skip "this is an aarch64 machine"
    probe --agent "$BATS_TEST_TMPDIR/agent" host1
    fails_with "agent start: this host is $(uname -m), but the dtrun-agent to be sent is for aarch64"
}

@test "bash, csh and fish may be login shells and may print output" {
    local shell

    for shell in /bin/bash "$(command -v csh)" "$(command -v fish)"; do
        [ -n "$shell" ] || continue
        forget
        cluster_on 1 sh -c 'mkdir -p /run/home/.config/fish
            echo "echo welcome to bash; printf half" >/run/home/.bashrc
            echo "echo welcome to csh; printf half" >/run/home/.cshrc
            echo "echo welcome to fish; printf half" >/run/home/.config/fish/config.fish'
        awk -F: -v OFS=: -v shell="$shell" '$1 == "root" { $7 = shell } { print }' \
            "/etc/netns/$CLUSTER_TAG-h1/passwd" >"$BATS_TEST_TMPDIR/passwd"
        cat "$BATS_TEST_TMPDIR/passwd" >"/etc/netns/$CLUSTER_TAG-h1/passwd"
        for t in libssh2 ssh; do
            probe --transport $t --agent "$agent" host1
            [ "$status" = 0 ]
            says "noise: welcome to ${shell##*/}"
            says "noise: half"
            says "ready "
        done
    done
    awk -F: -v OFS=: '$1 == "root" { $7 = "/bin/bash" } { print }' "$BATS_TEST_TMPDIR/passwd" \
        >"/etc/netns/$CLUSTER_TAG-h1/passwd"
    forget
}

@test "--no-push runs the installed agent, names where it looked, and refuses another version" {
    probe --no-push --agent "$agent" host1
    [ "$status" = 0 ]
    probe --no-push --agent /nowhere/dtrun-agent host1
    fails_with "agent start: dtrun-agent was not found (looked for /nowhere/dtrun-agent and in PATH="
    probe --no-push --agent "$DTRUN_BUILD/tests/rank/oldagent" host1
    fails_with "version: its dtrun-agent is version 0.0.1 (protocol 1), this dtrun is version "
}

@test "the tests of this file leave no process behind" {
    cluster_await_quiet
}
