# A real Slurm on this machine, for tests and benchmarks (see slurm_lab).
#
#     . slurm.bash
#     slurm_missing               # prints why Slurm cannot run here
#     slurm_up NODES CPUS [ssh]   # ssh: the nodes also have an sshd
#     in_lab salloc -N2 dtrun ...
#     slurm_power_off 2           # node2 does not come back
#     slurm_down

export PATH=$PATH:/usr/sbin
# Without them, the tests would run another dtrun, which PATH names.
: "${DTRUN_BUILD:?must name the build tree}" "${DTRUN_SOURCE:?must name the source tree}"

slurm_missing() {
    local tool

    [ "$(id -u)" = 0 ] || { echo "needs root (network namespaces)"; return; }
    for tool in slurmctld slurmd munged salloc ip unshare nsenter; do
        command -v "$tool" >/dev/null || { echo "needs $tool (slurmctld, slurmd, slurm-client)"; return; }
    done
    unshare --pid --fork --mount --net true 2>/dev/null ||
        echo "needs namespaces, which are not allowed here"
}

# Sets LAB to its directory, which all nodes see.
slurm_up() { # NODES CPUS [ssh]
    LAB=$(mktemp -d /var/tmp/dtrun-slurm.XXXXXX)
    export LAB
    unshare --net --mount --pid --fork --kill-child --mount-proc \
        "$DTRUN_SOURCE/tests/cluster/slurm_lab" "$LAB" "$@" >"$LAB/out" 2>&1 3>&- &
    echo $! >"$LAB/pid"
    disown $!
    await test -e "$LAB/ready" && return
    cat "$LAB"/out "$LAB"/*.out "$LAB"/*.log >&2
    return 1
}

# The network goes first, so that peers do not even learn of the end of the node's processes.
slurm_power_off() { # NODE
    in_lab ip link set "v$1" down
    in_lab sh -c 'kill -KILL "$(cat "$LAB/node$0")"' "$1"
}

_lab_is_gone() { ! grep -qs "$LAB" /proc/[0-9]*/cmdline; }

slurm_down() {
    local pid

    read -r pid <"$LAB/pid"
    kill -KILL "$pid" 2>/dev/null || true
    await _lab_is_gone
    rm -rf "$LAB"
}

# Runs a command inside the Slurm lab, under a watchdog because Slurm may leave a job pending for ever.
in_lab() {
    local pid

    read -r pid <"$LAB/pid"
    pid=$(tr -d ' ' <"/proc/$pid/task/$pid/children")
    timeout -k 5 "${LAB_PATIENCE:-$PATIENCE}" nsenter --net --mount --pid -t "$pid" \
        env SLURM_CONF="$LAB/slurm.conf" DTRUN_AGENT="$DTRUN_BUILD/cmd/dtrun-agent" \
        PATH="$DTRUN_BUILD/cmd:$PATH" "$@"
}
