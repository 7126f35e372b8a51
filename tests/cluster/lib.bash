# Hosts for tests: network namespaces with an sshd each, joined by a bridge.
#
#     load lib
#     setup_file()    { cluster_up 4; }              # host1 ... host4, if that is possible
#     setup()         { cluster_require; }           # and a skip if it is not
#     teardown()      { cluster_await_quiet; }
#     teardown_file() { cluster_down; }
#     @test "..."     { cluster_dtrun -H host1,host2 ...; }
#
# Every host has its own processes, hostname, /tmp, /dev/shm, /run and home directory. Other files are the
# machine's. $CLUSTER_SHARED is a directory that all hosts share. The launching side is a namespace as well:
# nothing here touches the machine's own network, /etc/hosts or ~/.ssh. Names contain a random tag, so that
# suites can run side by side. cluster_down removes everything, and so does a guard if the test program dies
# first.

. "${BASH_SOURCE[0]%/*}/../await.bash"

# Without them, the tests would run another dtrun, which PATH names.
: "${DTRUN_BUILD:?must name the build tree}" "${DTRUN_SOURCE:?must name the source tree}"

CLUSTER_NET=10.213.77 # disturbs nobody: the bridge is not connected to the machine's own network

# Prints why there can be no hosts here, or nothing if there can.
_cluster_missing() {
    local tool

    [ "$(id -u)" = 0 ] || { echo "needs root (network namespaces)"; return; }
    for tool in ip unshare nsenter ssh ssh-keygen setsid; do
        command -v "$tool" >/dev/null || { echo "needs $tool"; return; }
    done
    [ -x "$(_cluster_sshd)" ] || { echo "needs sshd (openssh-server)"; return; }
    unshare --pid --fork --mount --net true 2>/dev/null ||
        echo "needs namespaces, which are not allowed here"
}

_cluster_sshd() { command -v sshd || echo /usr/sbin/sshd; }

# Call this in setup. (bats 1.8 takes a skip in setup_file for a failure.)
cluster_require() {
    trace_tests_only
    [ -z "$CLUSTER_SKIP" ] || skip "$CLUSTER_SKIP"
}

# Writes the password file of one namespace. A test chooses root's home and shell.
_cluster_etc() { # NAMESPACE HOME SHELL
    local dir=/etc/netns/$1

    mkdir -p "$dir"
    awk -F: -v OFS=: -v home="$2" -v shell="$3" \
        '$1 == "root" { $6 = home; $7 = shell } { print }' /etc/passwd >"$dir/passwd"
    printf 'root:*:19000:0:99999:7:::\n' >"$dir/shadow"
    printf 'hosts: files\npasswd: files\ngroup: files\nshadow: files\n' >"$dir/nsswitch.conf"
    cp "$CLUSTER_DIR/hosts" "$dir/hosts"
}

_cluster_host_script() {
    cat <<'SCRIPT'
set -e
name=$1 dir=$2 hide=$3
hostname "$name"
mount --make-rprivate /
keep() { # makes a directory that a new tmpfs will cover appear in it again
    local at=$dir/keep/$name/$2
    case $1/ in /tmp/* | /run/* | /dev/shm/*)
        mkdir -p "$at"; mount --bind "$1" "$at"; kept="$kept $2 $1" ;;
    esac
}
kept=
[ "$hide" = hide ] || { keep "$DTRUN_SOURCE" source; keep "$DTRUN_BUILD" build; }
for d in /tmp /dev/shm /run; do mount -t tmpfs -o mode=1777 dtrun-test "$d"; done
set -- $kept
while [ $# -gt 0 ]; do
    mkdir -p "$2"; mount --bind "$dir/keep/$name/$1" "$2"; shift 2
done
if [ "$hide" = hide ]; then
    for d in "$DTRUN_BUILD" "$DTRUN_SOURCE" /usr/libexec/dtrun /usr/local/libexec/dtrun; do
        [ ! -d "$d" ] || mount -t tmpfs dtrun-test "$d"
    done
fi
mkdir -p /run/sshd /run/home
chmod 700 /run/home
cd /run/home
exec "$CLUSTER_SSHD" -D -f "$dir/$name/sshd_config" -E "$dir/$name/sshd.log"
SCRIPT
}

# Starts a host: cluster_host NUMBER [SHELL] [SSHD-LINE...]. With CLUSTER_HIDE=hide it sees neither source nor
# build tree. CLUSTER_STARTUPS is MaxStartups of its sshd, whose last line counts. CLUSTER_KEX are its key exchanges:
# what ssh and sshd choose by default takes ten times as long as the rest of a login. From OpenSSH 9.8 on, sshd shuts
# out for a while whoever failed to log in, as tests do.
cluster_host() {
    local i=$1 shell=${2:-/bin/bash} ns=$CLUSTER_TAG-h$1 dir=$CLUSTER_DIR/host$1 pid

    shift $(($# > 2 ? 2 : $#))
    mkdir -p "$dir"
    [ -e "$dir/key" ] || ssh-keygen -q -t ed25519 -N '' -C "host$i" -f "$dir/key"
    _cluster_etc "$ns" /run/home "$shell"
    cat >"$dir/sshd_config" <<CONFIG
$(printf '%s\n' "$@")
Port 22
ListenAddress 0.0.0.0
HostKey $dir/key
PidFile none
UsePAM no
UseDNS no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
MaxStartups ${CLUSTER_STARTUPS:-500}
KexAlgorithms ${CLUSTER_KEX:-ecdh-sha2-nistp256}
$(! grep -qai PerSourcePenalties "$CLUSTER_SSHD" || echo "PerSourcePenalties no")
AuthorizedKeysFile $CLUSTER_DIR/authorized_keys
CONFIG
    ip netns add "$ns"
    ip link add eth0 netns "$ns" type veth peer name "h$i" netns "$CLUSTER_TAG-l"
    ip -n "$ns" -batch - <<BATCH
link set lo up
address add $CLUSTER_NET.$i/24 dev eth0
link set eth0 up
BATCH
    ip -n "$CLUSTER_TAG-l" link set "h$i" master br0 up
    ip netns exec "$ns" unshare --pid --fork --mount --mount-proc --ipc --uts --kill-child \
        bash -c "$(_cluster_host_script)" host "host$i" "$CLUSTER_DIR" "${CLUSTER_HIDE:-show}" \
        </dev/null >"$dir/log" 2>&1 3>&- &
    echo $! >"$dir/pid"
    disown $! # tests kill it on purpose, which the shell must not report
}

_cluster_listens() { # N
    timeout 5 ip netns exec "$CLUSTER_TAG-l" bash -c "exec 9<>/dev/tcp/$CLUSTER_NET.$1/22" 2>/dev/null
}

_cluster_await_sshd() { # N
    await _cluster_listens "$1" && return
    echo "sshd of host$1 does not answer:" >&2
    cat "$CLUSTER_DIR/host$1/log" "$CLUSTER_DIR/host$1/sshd.log" >&2
    return 1
}

cluster_up() { # N
    local n=$1 i

    trace_tests_only
    CLUSTER_SKIP=$(_cluster_missing)
    CLUSTER_SSHD=$(_cluster_sshd)
    export CLUSTER_SKIP CLUSTER_SSHD
    [ -z "$CLUSTER_SKIP" ] || return 0
    CLUSTER_TAG=dt$(od -An -N4 -tx1 /dev/urandom | tr -d ' ')
    CLUSTER_DIR=$(mktemp -d "/var/tmp/$CLUSTER_TAG.XXXXXX")
    CLUSTER_HOME=$CLUSTER_DIR/home
    CLUSTER_SHARED=$CLUSTER_DIR/shared
    export CLUSTER_TAG CLUSTER_DIR CLUSTER_HOME CLUSTER_SHARED
    chmod 755 "$CLUSTER_DIR"
    setsid bash -c 'tail --pid="$1" -f /dev/null; . "$2"; cluster_remove' guard \
        "$$" "${BASH_SOURCE[0]}" </dev/null >/dev/null 2>&1 3>&- &
    echo $! >"$CLUSTER_DIR/guard"
    mkdir -p "$CLUSTER_HOME/.ssh" "$CLUSTER_SHARED"
    chmod 700 "$CLUSTER_HOME" "$CLUSTER_HOME/.ssh"
    ssh-keygen -q -t ed25519 -N '' -C "dtrun test" -f "$CLUSTER_HOME/.ssh/id_ed25519"
    cp "$CLUSTER_HOME/.ssh/id_ed25519.pub" "$CLUSTER_DIR/authorized_keys"
    {
        echo "127.0.0.1 localhost"
        echo "$CLUSTER_NET.254 launcher"
        echo "$CLUSTER_NET.1 twin"
        for ((i = 1; i <= 64; i++)); do echo "$CLUSTER_NET.$i host$i"; done
    } >"$CLUSTER_DIR/hosts"
    _cluster_etc "$CLUSTER_TAG-l" "$CLUSTER_HOME" /bin/bash
    ip netns add "$CLUSTER_TAG-l"
    ip -n "$CLUSTER_TAG-l" -batch - <<BATCH
link set lo up
link add br0 type bridge
address add $CLUSTER_NET.254/24 dev br0
link set br0 up
BATCH
    for ((i = 1; i <= n; i++)); do cluster_host "$i"; done
    for ((i = 1; i <= n; i++)); do _cluster_await_sshd "$i"; done
    cluster_trust
}

# Writes known_hosts with every host's key and nothing else.
cluster_trust() {
    local key

    for key in "$CLUSTER_DIR"/host*/key.pub; do
        [ -e "$key" ] || continue # there are no hosts
        read -r type blob name <"$key"
        echo "$name $type $blob"
    done >"$CLUSTER_HOME/.ssh/known_hosts"
}

# Replaces this process by a command on the launching side, with the build's programs in PATH. (A process that
# bash starts in the background ignores SIGINT unless told otherwise.)
_cluster_exec() {
    cd "$CLUSTER_SHARED" || exit
    exec ip netns exec "$CLUSTER_TAG-l" env -u SSH_AUTH_SOCK --default-signal=INT,QUIT \
        HOME="$CLUSTER_HOME" CLUSTER_TOKEN="$CLUSTER_TAG" \
        PATH="${CLUSTER_PATH:+$CLUSTER_PATH:}$DTRUN_BUILD/cmd:$DTRUN_BUILD/tests/rank:$PATH" "$@" 3>&-
}

cluster_run() { (_cluster_exec "$@"); }

# Prints the process id that the first process of a host has on this machine.
cluster_init() { # N
    local pid init=

    read -r pid <"$CLUSTER_DIR/host$1/pid"
    { read -r init <"/proc/$pid/task/$pid/children" || true; } 2>/dev/null
    echo "$init"
}

# Runs dtrun on the launching side, under a watchdog. Sets RC to its exit code; its output is in $OUT and
# $ERR.
cluster_dtrun() {
    OUT=$BATS_TEST_TMPDIR/out ERR=$BATS_TEST_TMPDIR/err RC=0
    cluster_run "$TIMEOUT" -k 5 "$PATIENCE" dtrun "$@" <"${STDIN:-/dev/null}" >"$OUT" 2>"$ERR" ||
        RC=$?
    echo "--- dtrun $* -> $RC"
    head -c 2000 "$OUT"
    head -c 4000 "$ERR"
}

# Runs dtrun in the background and sets DTRUN_PID.
cluster_dtrun_start() {
    OUT=$BATS_TEST_TMPDIR/out ERR=$BATS_TEST_TMPDIR/err
    : >"$OUT" 2>"$ERR"
    _cluster_exec dtrun "$@" <"${STDIN:-/dev/null}" >"$OUT" 2>"$ERR" &
    DTRUN_PID=$!
}

_cluster_dtrun_ended() {
    [ ! -e "/proc/$DTRUN_PID" ] || grep -q '^State:.Z' "/proc/$DTRUN_PID/status"
}

# Waits for dtrun in the background.
cluster_dtrun_wait() {
    if ! await _cluster_dtrun_ended; then
        echo "dtrun still runs"
        cat "$OUT" "$ERR"
        return 1
    fi
    RC=0
    wait "$DTRUN_PID" || RC=$?
    echo "--- dtrun -> $RC"
    head -c 4000 "$OUT"
    head -c 4000 "$ERR"
}

_cluster_out_enough() { [ "$(grep -c -- "$2" "$OUT")" -ge "$1" ]; }
_cluster_out_decided() { _cluster_out_enough "$@" || _cluster_dtrun_ended; }

# Waits until N lines of the output of dtrun in the background match.
cluster_out_has() { # N PATTERN
    await _cluster_out_decided "$@" && _cluster_out_enough "$@" && return
    echo "standard output never had $1 lines that match: $2"
    cat "$OUT" "$ERR"
    return 1
}

cluster_err_has() {
    grep -qF -- "$1" "$ERR" || { echo "dtrun did not print: $1"; return 1; }
}

# Checks that dtrun printed exactly this many lines of its own.
cluster_err_lines() {
    [ "$(grep -c '^dtrun: ' "$ERR")" = "$1" ] || { echo "dtrun did not print exactly $1 lines of its own"; return 1; }
}

# Finds the example programs themselves, because libtool's scripts cannot be started side by side.
cluster_examples() {
    CHARLM=$DTRUN_BUILD/examples/.libs/charlm
    HELLO=$DTRUN_BUILD/examples/.libs/hello
    [ -x "$CHARLM" ] || skip "built without shared libraries"
    export LD_LIBRARY_PATH=$DTRUN_BUILD/runtime/.libs
    TEXT=$CLUSTER_SHARED/text
    cp "$DTRUN_SOURCE/examples/charlm.c" "$TEXT"
}

cluster_on() { # N COMMAND...: runs the command on the host, without SSH
    local pid

    pid=$(cluster_init "$1")
    shift
    nsenter -t "$pid" -a -- "$@" 3>&-
}

# Lists what runs on the hosts except those of sshd, "host2 PID ARGS" in each line, and what is left of cluster_run.
# It reads each host's own /proc, because a ps on each would take several times as long.
cluster_processes() {
    local host process p name

    for host in "$CLUSTER_DIR"/host*/; do
        host=${host%/} host=${host##*/}
        for process in "/proc/$(cluster_init "${host#host}")/root/proc"/[0-9]*; do
            { read -r name <"$process/comm"; } 2>/dev/null && [[ $name != sshd* ]] || continue
            echo "$host ${process##*/} $(tr '\0\n' ' ' <"$process/cmdline")"
        done
    done
    for p in $(processes_with "CLUSTER_TOKEN=$CLUSTER_TAG"); do
        echo "launcher $p $(tr '\0' ' ' <"/proc/$p/cmdline")"
    done 2>/dev/null || true
}

_cluster_kill() { # LINES of cluster_processes
    local where pid rest

    while read -r where pid rest; do
        if [ "$where" = launcher ]; then
            kill -9 "$pid"
        else
            cluster_on "${where#host}" kill -9 "$pid"
        fi
    done <<<"$1" 2>/dev/null || true
}

_cluster_is_quiet() { [ -z "$(cluster_processes)" ]; }

# Waits until nothing of a job is left. If something stays, prints it, ends it, and fails.
cluster_await_quiet() {
    local left

    [ -z "$CLUSTER_SKIP" ] || return 0
    await _cluster_is_quiet && return
    left=$(cluster_processes)
    printf 'still running:\n%s\n' "$left" >&2
    _cluster_kill "$left"
    return 1
}

# Adds a second network for hosts 1 to N that the launching side is not in: 10.213.78.N on eth1.
cluster_second_network() { # N
    local i

    ip -n "$CLUSTER_TAG-l" link add br1 type bridge
    ip -n "$CLUSTER_TAG-l" link set br1 up
    for ((i = 1; i <= $1; i++)); do
        ip link add eth1 netns "$CLUSTER_TAG-h$i" type veth peer name "s$i" netns "$CLUSTER_TAG-l"
        ip -n "$CLUSTER_TAG-l" link set "s$i" master br1 up
        ip -n "$CLUSTER_TAG-h$i" address add "10.213.78.$i/24" dev eth1
        ip -n "$CLUSTER_TAG-h$i" link set eth1 up
    done
}

cluster_cut() { ip -n "$CLUSTER_TAG-l" link set "h$1" down; } # N: drops packets in both directions, silently
cluster_mend() { # N: also forgets failed neighbours, which the host would not look for again at once
    ip -n "$CLUSTER_TAG-l" link set "h$1" up
    ip -n "$CLUSTER_TAG-h$1" neighbour flush dev eth0
}

# N: drops what the host sends. What is sent to it arrives.
cluster_mute() {
    ip netns exec "$CLUSTER_TAG-h$1" nft \
        'add table inet mute; add chain inet mute out { type filter hook output priority 0; policy drop; }'
}
cluster_unmute() { ip netns exec "$CLUSTER_TAG-h$1" nft delete table inet mute; }

_cluster_has_card() { ip -n "$CLUSTER_TAG-l" link show "$1" >/dev/null 2>&1; }

# Puts host N at the other end of a line that takes MILLISECONDS each way, carries BITS a second, and loses
# PERCENT of all packets. (Few kernels have netem, which would do the same.)
cluster_far() { # N MILLISECONDS BITS PERCENT
    local i=$1 ns=$CLUSTER_TAG-h$1 lan=$CLUSTER_TAG-l mac

    mac=$(ip netns exec "$ns" cat /sys/class/net/eth0/address)
    shift
    ip netns exec "$lan" python3 "$DTRUN_SOURCE/tests/cluster/far.py" "near$i" "far$i" "$@" \
        >"$CLUSTER_DIR/host$i/line" 2>&1 3>&- &
    echo $! >"$CLUSTER_DIR/host$i/line.pid"
    await _cluster_has_card "far$i" || { cat "$CLUSTER_DIR/host$i/line"; return 1; }
    ip -n "$ns" link set eth0 down
    ip -n "$ns" address flush dev eth0
    ip -n "$lan" -batch - <<BATCH
link set h$i down
link set near$i master br0 up
link set far$i netns $ns
BATCH
    ip -n "$ns" -batch - <<BATCH
link set far$i address $mac
address add $CLUSTER_NET.$i/24 dev far$i
link set far$i up
BATCH
}

# Undoes cluster_far, and prints how many packets the line carried and lost, towards the host and back. Only
# the shell that called cluster_far can wait for the line's end.
cluster_near() { # N
    local pid

    read -r pid <"$CLUSTER_DIR/host$1/line.pid"
    kill "$pid" # its network cards end with it
    wait "$pid"
    rm "$CLUSTER_DIR/host$1/line.pid"
    ip -n "$CLUSTER_TAG-h$1" address add "$CLUSTER_NET.$1/24" dev eth0
    ip -n "$CLUSTER_TAG-h$1" link set eth0 up
    ip -n "$CLUSTER_TAG-l" link set "h$1" up
    cat "$CLUSTER_DIR/host$1/line"
}

# A try needs nothing of its own, and what it leaves disturbs no other.
begin_try() { :; }
end_failed_try() { :; }

# Runs a job with a short lease. Where all are busy, an agent or the line may stand still for that long, and the job
# loses the host. Then another job runs, five at most.
cluster_dtrun_leased() {
    local try

    for try in 1 2 3 4 5; do
        cluster_dtrun "$@"
        [ "$RC" = 125 ] || break
    done
}

# Runs a job that loses host N. START starts it, with a short lease, and succeeds when all ranks run; FAULT makes the host
# silent; MEND is done when nothing of the job is left. Where all are busy, any agent may be silent for as long as such
# a lease lasts: if the job has lost a host without this fault, runs another one, five at most.
cluster_loses() { # N START FAULT MEND
    local try early

    for try in 1 2 3 4 5; do
        $2 || { cluster_dtrun_wait; continue; }
        early=$(_cluster_lost)
        $3 || true # the job may just have ended
        cluster_dtrun_wait
        cluster_await_quiet
        $4
        [ -n "$early" ] || _cluster_lost | grep -qv "^dtrun: host$1[: ]" || return 0
    done
    echo "five jobs have lost hosts without this fault"
    return 1
}

# Prints what dtrun has said of hosts that were silent.
_cluster_lost() { grep -E '^dtrun: host[0-9]+[:, ].*(answered for|was stuck for)' "$ERR" || true; }

# N: cuts the host off, then kills everything on it, so that no packet reports the deaths.
cluster_power_off() {
    local pid

    cluster_cut "$1"
    read -r pid <"$CLUSTER_DIR/host$1/pid"
    kill -9 "$pid"
}

# N: from now on dtrun gives up soon on this host if it does not answer: for the attempt to reach it again when it is
# lost. Call this when the job runs, because a busy host that lives may need longer.
cluster_expect_loss() { printf 'Host host%s\n    ConnectTimeout 1\n' "$1" >>"$CLUSTER_HOME/.ssh/config"; }

cluster_power_on() { # N
    ip -n "$CLUSTER_TAG-l" link del "h$1"
    ip netns del "$CLUSTER_TAG-h$1"
    cluster_host "$1"
    ip -n "$CLUSTER_TAG-l" neighbour flush dev br0 # the host's card has a new address
    _cluster_await_sshd "$1"
}

cluster_remove() {
    local ns

    for ns in $(ip netns list | awk '{ print $1 }' | grep "^$CLUSTER_TAG-"); do
        ip netns pids "$ns" | xargs -r kill -9 2>/dev/null
        ip netns del "$ns"
    done
    umount "$CLUSTER_SHARED"/* 2>/dev/null || true # what a test has mounted there
    rm -rf /etc/netns/"$CLUSTER_TAG"-* "$CLUSTER_DIR"
    rmdir /etc/netns 2>/dev/null || true
}

cluster_down() {
    local guard

    [ -n "${CLUSTER_DIR:-}" ] || return 0
    guard=$(cat "$CLUSTER_DIR/guard")
    cluster_remove
    kill -- "-$guard" 2>/dev/null || true
}
