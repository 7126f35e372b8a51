# What the benches share. Each is run by hand, as root where it needs hosts:
#
#     . "$(dirname "$0")/lib.bash"
#     bench_begin "$@"             # options; a skip, told on standard output, where a need is absent
#     bench_hosts 4                # host1 ... host4 (tests/cluster/lib.bash), gone at the end
#     bench_title "2 hosts, labels"
#     bench_compare "dtrun=dtrun -H ... true" "mpirun=$BENCH_MPIRUN -H ... true"
#
# DTRUN_BUILD names the build tree (default: build); --quick makes one round of everything, to see
# that the bench works. Figures of a machine that does something else meanwhile mean little.

BENCH_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
DTRUN_SOURCE=${DTRUN_SOURCE:-$(cd "$BENCH_DIR/../.." && pwd)}
DTRUN_BUILD=${DTRUN_BUILD:-$DTRUN_SOURCE/build}
export DTRUN_SOURCE DTRUN_BUILD
. "$DTRUN_SOURCE/tests/cluster/lib.bash"

BENCH_ROUNDS=15
BENCH_QUICK=

# The peers as they are fastest here: no search for networks, and what root needs. (Open MPI starts
# its daemons with one ssh each, all at once, up to 64 hosts; so does Hydra.)
BENCH_MPIRUN="mpirun --allow-run-as-root --oversubscribe --bind-to none \
--mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include 10.213.77.0/24"
BENCH_HYDRA="mpiexec.hydra -launcher ssh -iface br0 -bind-to none"

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

# The programs must be there, or nothing is measured.
bench_need() { # PROGRAM...
    local program

    for program; do
        command -v "$program" >/dev/null || bench_skip "needs $program"
    done
}

# Everybody has to encrypt alike: ssh prefers a key exchange that libssh2 does not know, and that costs
# more time than all the rest of a login. Such settings would make dtrun choose ssh, too.
bench_ssh_config() { # HOME
    mkdir -p "$1/.config/dtrun"
    echo 'transport = libssh2' >"$1/.config/dtrun/config"
    cat >"$1/.ssh/config" <<'CONFIG'
KexAlgorithms curve25519-sha256
Ciphers aes128-ctr
MACs hmac-sha2-256
CONFIG
}

# Replaces the hosts there are.
bench_hosts() { # N
    cluster_down
    unset CLUSTER_DIR
    cluster_up "$1" || exit 1
    [ -z "$CLUSTER_SKIP" ] || bench_skip "$CLUSTER_SKIP"
    bench_ssh_config "$CLUSTER_HOME"
}

bench_list() { # N [SLOTS]: for -H
    local i list=

    for ((i = 1; i <= $1; i++)); do list="$list,host$i${2:+:$2}"; done
    echo "${list#,}"
}

bench_title() { printf '\n%s\n' "$*"; }

# What the figures belong to.
bench_machine() {
    printf '%s, %s processors, Linux %s' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)" "$(uname -r)"
    printf ', %s\n' "$(ssh -V 2>&1)"
}

# In the launching side's namespace, rounds by turns: see compare.py.
bench_compare() { # NAME=COMMAND...
    cluster_run "$BENCH_DIR/compare.py" "$BENCH_ROUNDS" "$@" || exit 1
}
