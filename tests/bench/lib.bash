# Shared by the benchmarks. Run each by hand, as root if it needs hosts:
#
#     . "$(dirname "$0")/lib.bash"
#     bench_begin "$@"             # options
#     bench_need mpirun            # prints a SKIP and exits if a program is missing
#     bench_hosts 4                # host1 ... host4 (tests/cluster/lib.bash), removed at the end
#     bench_title "2 hosts, labels"
#     bench_compare "dtrun=dtrun -H ... true" "mpirun=$BENCH_MPIRUN -H ... true"
#
# DTRUN_BUILD names the build tree (default: build). --quick runs one round of a small choice, to check that the
# benchmark works. Measurements on a busy machine mean little.

BENCH_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
DTRUN_SOURCE=${DTRUN_SOURCE:-$(cd "$BENCH_DIR/../.." && pwd)}
DTRUN_BUILD=${DTRUN_BUILD:-$DTRUN_SOURCE/build}
export DTRUN_SOURCE DTRUN_BUILD
. "$DTRUN_SOURCE/tests/cluster/lib.bash"

BENCH_ROUNDS=15
BENCH_QUICK=
CLUSTER_KEX=+curve25519-sha256 # what sshd offers by default

# The other launchers with their fastest settings here: no search for networks, and what they need to run as
# root. (Open MPI and Hydra start their daemons with one ssh each, all at once, up to 64 hosts.)
BENCH_MPIRUN="mpirun --allow-run-as-root --oversubscribe --bind-to none \
--mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include 10.213.77.0/24"
BENCH_HYDRA="mpiexec.hydra -launcher ssh -iface br0 -bind-to none"

# Open MPI 5 forks ranks in threads of its daemons. If a rank ends before the thread has noted its process id, mpirun
# waits for ever (openpmix/prrte pull request 2713). So its daemons fork in their main thread.
export PRTE_MCA_odls_base_max_threads=0

bench_begin() { # OPTIONS
    local option

    for option; do
        case $option in
        --quick) BENCH_QUICK=yes BENCH_ROUNDS=1 ;;
        --rounds=*) BENCH_ROUNDS=${option#*=} ;;
        *) echo "usage: ${0##*/} [--quick] [--rounds=N]" >&2; exit 2 ;;
        esac
    done
    [ -x "$DTRUN_BUILD/cmd/dtrun" ] || { echo "no dtrun in $DTRUN_BUILD: set DTRUN_BUILD" >&2; exit 1; }
    trap cluster_down EXIT
    trap 'exit 130' INT TERM
}

bench_skip() {
    echo "SKIP: $*"
    exit 0
}

# Ends the benchmark with a SKIP unless these programs exist.
bench_need() { # PROGRAM...
    local program

    for program; do
        command -v "$program" >/dev/null || bench_skip "needs $program"
    done
}

# Makes all use the same ciphers: ssh prefers a key exchange that libssh2 lacks and that takes longer than the
# rest of a login. With such settings dtrun would choose ssh, so its transport is fixed.
bench_ssh_config() { # HOME
    mkdir -p "$1/.config/dtrun"
    echo 'transport = libssh2' >"$1/.config/dtrun/config"
    cat >"$1/.ssh/config" <<'CONFIG'
KexAlgorithms curve25519-sha256
Ciphers aes128-ctr
MACs hmac-sha2-256
CONFIG
}

# Replaces the hosts of an earlier call.
bench_hosts() { # N
    cluster_down
    unset CLUSTER_DIR
    cluster_up "$1" || exit 1
    [ -z "$CLUSTER_SKIP" ] || bench_skip "$CLUSTER_SKIP"
    bench_ssh_config "$CLUSTER_HOME"
}

bench_list() { # N [SLOTS]: prints a list for -H
    local i list=

    for ((i = 1; i <= $1; i++)); do list="$list,host$i${2:+:$2}"; done
    echo "${list#,}"
}

bench_title() { printf '\n%s\n' "$*"; }

# Prints the machine on which the figures were measured.
bench_machine() {
    printf '%s, %s processors, Linux %s' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)" "$(uname -r)"
    printf ', %s\n' "$(ssh -V 2>&1)"
}

# Runs the commands in turns in the launching side's namespace: see compare.py.
bench_compare() { # NAME=COMMAND...
    cluster_run "$BENCH_DIR/compare.py" "$BENCH_ROUNDS" "$@" || exit 1
}
