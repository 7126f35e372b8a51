# How dtrun connects to hosts: its options, many hosts at once, and hosts that do not answer.

load lib

setup_file() {
    cluster_up 2
    [ -z "$CLUSTER_SKIP" ] || return 0
    CLUSTER_STARTUPS=10:100:10 cluster_host 3 /bin/bash "Port 2222" "MaxAuthTries 3" "LoginGraceTime 0"
    # This host never completes a login.
    cluster_host 4 /bin/bash "AuthorizedKeysCommand /bin/sleep 300" "AuthorizedKeysCommandUser root" \
        "AuthorizedKeysFile none"
    _cluster_await_sshd 3
    _cluster_await_sshd 4
    # host1 accepts connections at port 2300 and then stays silent, and drops packets to ports 2301 and 53.
    cluster_on 1 python3 -c 'import socket, signal
s = socket.create_server(("", 2300), backlog=64)
signal.pause()' >/dev/null 2>&1 3>&- &
    echo $! >"$CLUSTER_DIR/silent"
    disown $!
    await takes_silent_calls
    ip netns exec "$CLUSTER_TAG-h1" nft 'add table inet silent
        add counter inet silent asked
        add chain inet silent in { type filter hook input priority 0; }
        add rule inet silent in udp dport 53 counter name asked drop
        add rule inet silent in tcp dport 2301 drop'
}

takes_silent_calls() {
    ip netns exec "$CLUSTER_TAG-h1" ss -Hltn 'sport = :2300' | grep -q .
}

teardown_file() {
    [ ! -e "${CLUSTER_DIR:-/nowhere}/silent" ] || kill "$(cat "$CLUSTER_DIR/silent")" || true
    cluster_down
}

setup() {
    cluster_require
    command -v nft >/dev/null || skip "needs nft"
    cluster_trust
    rm -f "$CLUSTER_HOME/.ssh/config" "$CLUSTER_HOME/.ssh"/extra*
}

teardown() {
    [ -z "$CLUSTER_SKIP" ] || return 0
    [ -z "${LOGINS-}" ] || kill "$LOGINS" 2>/dev/null || true
    cluster_on 2 rm -f /run/home/.bashrc
    cluster_on 3 rm -f /run/home/.bashrc
    [ ! -e "$CLUSTER_HOME/.ssh/kept" ] || mv "$CLUSTER_HOME/.ssh/kept" "$CLUSTER_HOME/.ssh/id_ed25519"
    [ ! -e "$CLUSTER_HOME/.ssh/kept.pub" ] || mv "$CLUSTER_HOME/.ssh/kept.pub" "$CLUSTER_HOME/.ssh/id_ed25519.pub"
    knows_names
    cluster_on 4 pkill -x sleep || true
    await _no_others || { _others; _cluster_kill "$(_others)"; return 1; }
}

# All processes but the silent listener.
_others() { cluster_processes | grep -v 'python3 -c'; }
_no_others() { ! _others >/dev/null; }

# From now on dtrun asks host1 for names, which never answers. knows_names undoes this.
asks_names() {
    printf 'hosts: files dns\npasswd: files\ngroup: files\nshadow: files\n' \
        >"/etc/netns/$CLUSTER_TAG-l/nsswitch.conf"
    printf 'nameserver %s\noptions timeout:30 attempts:5\n' $CLUSTER_NET.1 >"/etc/netns/$CLUSTER_TAG-l/resolv.conf"
    ip netns exec "$CLUSTER_TAG-h1" nft reset counter inet silent asked >/dev/null
}
knows_names() {
    printf 'hosts: files\npasswd: files\ngroup: files\nshadow: files\n' \
        >"/etc/netns/$CLUSTER_TAG-l/nsswitch.conf"
    rm -f "/etc/netns/$CLUSTER_TAG-l/resolv.conf"
}

was_asked() {
    ip netns exec "$CLUSTER_TAG-h1" nft list counter inet silent asked | grep -q 'packets [1-9]'
}

# Moves the key to where only an option can find it.
hide_key() {
    mv "$CLUSTER_HOME/.ssh/id_ed25519" "$CLUSTER_HOME/.ssh/kept"
    mv "$CLUSTER_HOME/.ssh/id_ed25519.pub" "$CLUSTER_HOME/.ssh/kept.pub"
    KEY=$CLUSTER_HOME/.ssh/kept
}

# Gives host3 many names. For its agents each of them is a host of its own.
aliases() {
    printf 'Host n*\n HostName host3\n Port 2222\n HostKeyAlias host3\n' >"$CLUSTER_HOME/.ssh/config"
    cluster_on 3 sh -c 'echo "export DTRUN_HOSTID=\$\$" >/run/home/.bashrc'
}

@test "--ssh-port, --ssh-user and --ssh-identity override ssh's settings, and settings of one host override them" {
    hide_key
    printf 'Host host3\n Port 1\n User nobody\n IdentityFile ~/.ssh/none\n' >"$CLUSTER_HOME/.ssh/config"
    printf 'host3 port=2222 user=root identity=%s\n' "$KEY" >"$BATS_TEST_TMPDIR/hosts"
    ssh-keygen -q -t ed25519 -N '' -f "$CLUSTER_HOME/.ssh/extra"
    for t in libssh2 ssh auto; do
        cluster_dtrun --transport $t --ssh-port 2222 --ssh-user root --ssh-identity "$KEY" \
            -np 1 -H host3 hostname
        [ "$RC" = 0 ]
        [ "$(cat "$OUT")" = host3 ]
        cluster_dtrun --transport $t --ssh-port 2 --ssh-user anna \
            --ssh-identity "$CLUSTER_HOME/.ssh/extra" --hostfile "$BATS_TEST_TMPDIR/hosts" hostname
        [ "$RC" = 0 ]
        cluster_dtrun --transport $t --ssh-port 2222 --ssh-user anna --ssh-identity "$KEY" \
            -np 1 -H root@host3 hostname
        [ "$RC" = 0 ]
        cluster_dtrun --transport $t --ssh-port 2222 --ssh-user anna --ssh-identity "$KEY" \
            -np 1 -H host3 hostname
        [ "$RC" = 125 ]
        cluster_err_has "dtrun: host3: authenticate as anna: "
    done
    cluster_dtrun --ssh-identity "$KEY.lost" -np 1 -H host2 touch "$CLUSTER_SHARED/ran"
    [ "$RC" = 2 ]
    cluster_err_has "dtrun: host2: the identity file $KEY.lost: No such file or directory"
    [ ! -e "$CLUSTER_SHARED/ran" ]
}

@test "a user without an entry in the password file, or without ssh, logs in by libssh2" {
    local home=$BATS_TEST_TMPDIR/home

    setpriv --reuid 54321 --regid 54321 --clear-groups test -x "$DTRUN_BUILD/cmd/dtrun" ||
        skip "other users may not read the build tree"
    mkdir -p "$home/.ssh"
    cp "$CLUSTER_HOME/.ssh/id_ed25519" "$CLUSTER_HOME/.ssh/known_hosts" "$home/.ssh"
    chown -R 54321 "$home"
    chmod 755 "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"
    as_nobody() {
        cluster_run setpriv --reuid 54321 --regid 54321 --clear-groups env HOME="$home" timeout -k 5 "$PATIENCE" \
            dtrun --wdir / -np 1 "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err"
    }
    as_nobody -H root@host2 hostname
    [ "$(cat "$BATS_TEST_TMPDIR/out")" = host2 ]
    [ ! -s "$BATS_TEST_TMPDIR/err" ]
    : >"$home/.ssh/config"
    as_nobody -H root@host2 hostname
    grep -q "^dtrun: ssh does not run, since the password file does not name this user: ~/.ssh/config is not read" \
        "$BATS_TEST_TMPDIR/err"
    ! as_nobody -H host2 hostname || false
    grep -q "^dtrun: host2: settings: this user (uid 54321) has no name here; name one as in -H USER@host2" \
        "$BATS_TEST_TMPDIR/err"
    : >"$CLUSTER_HOME/.ssh/config"
    cluster_dtrun --transport auto -np 1 -H host2 hostname
    [ ! -s "$ERR" ]
    cluster_run env PATH=/nowhere "$DTRUN_BUILD/cmd/dtrun" -np 1 -H host2 /bin/hostname >"$OUT" 2>"$ERR"
    [ "$(cat "$OUT")" = host2 ]
    cluster_err_has "dtrun: ssh is not installed here: ~/.ssh/config is not read"
}

@test "a key that --ssh-identity names is offered before all others of the SSH agent" {
    local i

    hide_key
    eval "$(ssh-agent -a "$BATS_TEST_TMPDIR/agent" 3>&-)" >/dev/null
    for i in 1 2 3 4; do
        ssh-keygen -q -t ed25519 -N '' -f "$CLUSTER_HOME/.ssh/extra$i"
        ssh-add -q "$CLUSTER_HOME/.ssh/extra$i"
    done
    ssh-add -q "$KEY"
    printf 'IdentityAgent %s\n' "$BATS_TEST_TMPDIR/agent" >"$CLUSTER_HOME/.ssh/config"
    cluster_dtrun --transport libssh2 --ssh-port 2222 -np 1 -H host3 hostname
    local unnamed=$RC
    cp "$ERR" "$BATS_TEST_TMPDIR/unnamed"
    cluster_dtrun --transport libssh2 --ssh-port 2222 --ssh-identity "$KEY" -np 1 -H host3 hostname
    kill "$SSH_AGENT_PID"
    [ "$RC" = 0 ]
    [ $unnamed = 125 ] # host3 disconnects after three attempts
    grep -q "^dtrun: host3: authenticate as root: " "$BATS_TEST_TMPDIR/unnamed"
}

@test "a job on 129 hosts never connects to more at once than --fanout says" {
    aliases
    # MaxStartups of host3 refuses the eleventh connection that has not yet logged in.
    PATIENCE=300 cluster_dtrun --verbose --fanout 8 -np 129 -H "n[001-129]" sh -c 'echo $DTRUN_NODE_RANK'
    [ "$RC" = 0 ]
    ! grep "trying again" "$ERR" || false
    [ "$(sed 's/.* //' "$OUT" | sort -n)" = "$(seq 0 128)" ]
}

_occupied() { grep -q '^occupied' "$BATS_TEST_TMPDIR/logins"; }
# The ssh of OpenSSH 10 does not say why it failed.
_tries_again() { grep -qE 'host3: (handshake: .*|agent: .*ssh host3 true); trying again$' "$ERR"; }

# Ten others begin to log in to host3, which turns all further clients away. It may turn away these, too, while
# it still counts earlier ones.
occupy() {
    : >"$BATS_TEST_TMPDIR/logins" # what an earlier call printed
    _cluster_exec python3 -c 'import socket, signal
def login():
    while True:
        other = socket.create_connection(("host3", 2222))
        try:
            if other.recv(100).startswith(b"SSH-"):
                return other
        except ConnectionResetError:
            pass
others = [login() for i in range(10)]
print("occupied", flush=True)
signal.pause()' >"$BATS_TEST_TMPDIR/logins" &
    LOGINS=$!
    await _occupied
}

@test "a host that turns clients away because too many log in at once is tried again, but not for ever" {
    # Where all are busy, dtrun may have given up before the others or dtrun itself are killed.
    for t in libssh2 ssh; do
        for try in 1 2 3 4 5; do
            occupy
            cluster_dtrun_start --verbose --transport $t --ssh-port 2222 -np 1 -H host3 echo up
            await _tries_again
            kill "$LOGINS"
            cluster_dtrun_wait
            [ "$RC" != 0 ] || break
        done
        [ "$RC" = 0 ]
        grep -q up "$OUT"
    done
    occupy
    for try in 1 2 3 4 5; do
        cluster_dtrun_start --verbose --ssh-port 2222 -np 1 -H host3 echo up
        await _tries_again
        kill -INT "$DTRUN_PID" || true
        cluster_dtrun_wait
        [ "$RC" = 125 ] || break
    done
    [ "$RC" = 130 ]
    cluster_dtrun --verbose --ssh-port 2222 -np 1 -H host3 echo up
    kill "$LOGINS"
    [ "$RC" = 125 ]
    [ "$(grep -c 'trying again$' "$ERR")" = 5 ]
    cluster_err_has "host3: handshake: the host closed the connection; look at its sshd's log; if many logins"
}

@test "jobs run on one host fewer than --fanout says, as many, and one more" {
    aliases
    for n in 2 3 4; do
        cluster_dtrun --fanout 3 -np $n -H "n[1-$n]" echo up
        [ "$RC" = 0 ]
        [ "$(grep -c up "$OUT")" = $n ]
    done
}

names_late_hosts() { # SECONDS
    local late="not done within the $1 s of --start-timeout"

    cluster_dtrun --fanout 7 --start-timeout "$1" -np 9 --report "$BATS_TEST_TMPDIR/report" \
        -H host1,lost.example,dropped,silent1,host4,host2,silent2,silent3,silent4 \
        touch "$CLUSTER_SHARED/ran"
    cluster_on 2 pkill -x sleep
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: lost.example: resolve: $late"
    cluster_err_has "dtrun: dropped: connect: $late"
    cluster_err_has "dtrun: silent1, silent2, silent3: handshake: $late"
    cluster_err_has "dtrun: host4: authenticate: $late"
    cluster_err_has "dtrun: host2: agent start: $late"
    cluster_err_has "dtrun: silent4: wait for its turn (--fanout): $late"
    cluster_err_has "dtrun: 8 of 9 hosts are not ready after $1 s (--start-timeout); nothing was started"
    cluster_err_lines 7
    grep -q "\"message\":.*\"8 of 9 hosts were not ready within $1 s\"" "$BATS_TEST_TMPDIR/report"
    [ ! -e "$CLUSTER_SHARED/ran" ]
}

ssh_is_late() { # SECONDS
    cluster_dtrun --transport ssh --start-timeout "$1" -H silent1 true
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: silent1: connect or authenticate (ssh does not tell which): not done within the $1 s"
}

@test "--start-timeout names every host that is not ready, and the phase it is in" {
    cat >"$CLUSTER_HOME/.ssh/config" <<CONFIG
Host silent*
    HostName host1
    Port 2300
Host dropped
    HostName host1
    Port 2301
Host lost.example
    HostKeyAlias host1
CONFIG
    asks_names
    cluster_on 2 sh -c 'echo "exec sleep 300" >/run/home/.bashrc'
    try names_late_hosts 8 40
    try ssh_is_late 3 20
}

# Cuts off host N as soon as COMMAND succeeds there, and waits for dtrun.
cut_when() { # N COMMAND...
    await cluster_on "$@" >/dev/null
    cluster_cut "$1"
    cluster_dtrun_wait
    cluster_mend "$1"
    cluster_on "$1" pkill -x sleep || true
    [ "$RC" = 125 ]
}

gives_up_silent_hosts() { # ConnectTimeout
    echo "ConnectTimeout $1" >"$CLUSTER_HOME/.ssh/config"
    cluster_dtrun_start --transport libssh2 -H host4 true
    cut_when 4 pgrep -x sleep
    cluster_err_has "dtrun: host4: authenticate: the connection broke: Connection timed out"
    cluster_on 2 sh -c "echo 'sleep $(($1 * 2))' >/run/home/.bashrc"
    cluster_dtrun --transport libssh2 -H host2 true
    [ "$RC" = 0 ]
    cluster_on 2 sh -c 'echo "sleep 300" >/run/home/.bashrc'
    cluster_dtrun_start --transport libssh2 -H host2 true
    cut_when 2 pgrep -x sleep
    cluster_err_has "dtrun: host2: connection: it was lost (Connection timed out)"
}

@test "dtrun gives up a host that falls silent while connecting, but not a slow one" {
    try gives_up_silent_hosts 3 20
}

login_takes_three() { # ConnectTimeout
    echo "ConnectTimeout $1" >"$CLUSTER_HOME/.ssh/config"
    cluster_dtrun --transport libssh2 -H host4 true
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: host4: authenticate: no answer for $(($1 * 3)) s; try: ssh host4 true"
}

@test "a host that answers while dtrun is stopped is not given up" {
    try is_stopped_while_it_calls 2 10
}

is_stopped_while_it_calls() { # ConnectTimeout
    echo "ConnectTimeout $1" >"$CLUSTER_HOME/.ssh/config"
    cluster_mute 2
    cluster_dtrun_start --transport libssh2 -np 1 -H host2 echo done
    await has_connections syn-sent
    kill -STOP "$DTRUN_PID"
    cluster_unmute 2
    await has_connections established
    sleep $(($1 + 1)) # the time for the connection is over, and more
    kill -CONT "$DTRUN_PID"
    cluster_dtrun_wait
    cat "$ERR"
    [ "$RC" = 0 ]
    [ "$(cat "$OUT")" = done ]
}

has_connections() { # STATE
    cluster_run ss -Htn state "$1" dst "$CLUSTER_NET.2" | grep -q .
}

@test "a login may take three times ConnectTimeout" {
    try login_takes_three 1 10
}

starts_in_time() { # SECONDS
    cluster_dtrun --start-timeout "$1" -np 2 -H host1,host2 sleep $(($1 + 1))
    [ "$RC" = 0 ]
    [ ! -s "$ERR" ]
}

@test "--start-timeout does not disturb a job that starts in time, however long it runs" {
    try starts_in_time 9 30
}

@test "Ctrl-C and --start-timeout end dtrun at once while a name server is silent" {
    for t in libssh2 ssh; do
        asks_names
        cluster_dtrun_start --transport $t -np 2 -H host2,lost.example true
        await was_asked
        kill -INT "$DTRUN_PID"
        cluster_dtrun_wait
        [ "$RC" = 130 ]
    done
    cluster_dtrun_start --start-timeout 1 -np 2 -H host2,lost.example true
    cluster_dtrun_wait
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: lost.example: resolve: not done"
}
