# Unmodified MPI programs on several hosts, with every MPI that is installed.

load lib

setup_file() {
    local mpi

    cluster_up 2
    [ -z "$CLUSTER_SKIP" ] || return 0
    for mpi in mpich openmpi; do
        ! type "mpicc.$mpi" >/dev/null 2>&1 ||
            "mpicc.$mpi" -o "$CLUSTER_SHARED/$mpi" "$DTRUN_SOURCE/tests/rank/mpi.c"
    done
}

teardown_file() { cluster_down; }

setup() {
    cluster_require
    cluster_trust
}

teardown() { cluster_await_quiet; }

# Runs the function with each MPI. $MPI is the test program, built with it.
with_each() { # FUNCTION
    local mpi found=

    for mpi in mpich openmpi; do
        MPI="$CLUSTER_SHARED/$mpi"
        [ -x "$MPI" ] || continue
        [ "$mpi" = mpich ] || [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] || continue
        found=1
        "$1"
        no_files 1
        no_files 2
    done
    [ -n "$found" ] || skip "needs mpicc.mpich, or mpicc.openmpi and libpmix-dev"
}

# dtrun does not remove what MPICH leaves in /dev/shm without MPI_Finalize.
no_files() { # HOST
    [ -z "$(cluster_on "$1" sh -c 'ls -d /dev/shm/dtrun-mpi.* /tmp/dtrun-mpi.* /tmp/ompi.* 2>/dev/null')" ]
}

@test "an MPI program on two hosts computes right sums, and ranks of a host share memory" {
    check() {
        cluster_dtrun --no-tag -np 4 -H host1:2,host2:2 "$MPI" end
        [ "$RC" = 0 ]
        [ "$(grep -c 'of 4: sum 10, 2 on this host' "$OUT")" = 4 ]
    }
    with_each check
}

@test "MPI ranks that are placed with --map-by node find those of their host" {
    check() {
        cluster_dtrun --no-tag --map-by node -np 6 -H host1:4,host2:4 "$MPI" end
        [ "$RC" = 0 ]
        [ "$(grep -c 'of 6: sum 21, 3 on this host' "$OUT")" = 6 ]
    }
    with_each check
}

@test "the ranks of an mpi4py script on two hosts are one job" {
    /usr/bin/python3 -c 'import mpi4py' 2>/dev/null || skip "needs python3-mpi4py"
    [ -x "$CLUSTER_SHARED/openmpi" ] && [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] ||
        skip "needs mpicc.openmpi and libpmix-dev"
    printf '%s\n' 'from mpi4py import MPI' 'comm = MPI.COMM_WORLD' \
        'print(comm.size, sorted(set(comm.allgather(MPI.Get_processor_name()))), flush=True)' \
        >"$CLUSTER_SHARED/names.py"
    cluster_dtrun --no-tag -np 4 -H host1:2,host2:2 /usr/bin/python3 "$CLUSTER_SHARED/names.py"
    [ "$RC" = 0 ]
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 4 4 ['host1', 'host2']" ]
    no_files 1
    no_files 2
}

@test "ranks of Open MPI on two hosts find each other by a published name, and connect" {
    [ -x "$CLUSTER_SHARED/openmpi" ] && [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] ||
        skip "needs mpicc.openmpi and libpmix-dev"
    cluster_dtrun --no-tag -np 4 --timeout 120 -H host1:2,host2:2 "$CLUSTER_SHARED/openmpi" connect
    [ "$RC" = 0 ]
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 2 rank 0: sum 10
 2 rank 1: sum 10
 2 rank 2: sum 10
 2 rank 3: sum 10" ]
    no_files 1
    no_files 2
}

@test "sessions of Open MPI have communicators across hosts" {
    [ -x "$CLUSTER_SHARED/openmpi" ] && [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] ||
        skip "needs mpicc.openmpi and libpmix-dev"
    cluster_dtrun --no-tag -np 4 --timeout 120 -H host1:2,host2:2 "$CLUSTER_SHARED/openmpi" session
    [ "$RC" = 0 ]
    no_files 1
    no_files 2
    [ "$(sort -u "$OUT")" != "MPI has no sessions" ] || skip "needs Open MPI 5"
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 2 rank 0: sums 10 and 4
 2 rank 1: sums 10 and 6
 2 rank 2: sums 10 and 4
 2 rank 3: sums 10 and 6" ]
}

make_pmix() {
    [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] || skip "needs libpmix-dev"
    gcc -o "$CLUSTER_SHARED/pmix" "$DTRUN_SOURCE/tests/rank/pmix.c" -pthread $(pkg-config --cflags --libs pmix)
}

@test "groups of ranks on two hosts have ids, and know what their ranks have put" {
    make_pmix
    cluster_dtrun --no-tag -np 5 --timeout 60 -H host1:3,host2:2 "$CLUSTER_SHARED/pmix" group
    [ "$RC" = 0 ]
    [ "$(sort "$OUT" | uniq -c | tr -s ' ' | cut -d: -f1)" = " 5 all
 5 all
 3 even
 3 even
 2 odd 0
 2 odd 0" ]
    [ "$(cut -d: -f2 "$OUT" | sort -u | wc -l)" = 6 ]
    no_files 1
    no_files 2
}

@test "MPI knows the names of all hosts" {
    make_pmix
    cluster_dtrun --no-tag -np 3 -H host1:2,host2:1 "$CLUSTER_SHARED/pmix" hosts
    [ "$RC" = 0 ]
    [ "$(sort "$OUT")" = "$(for i in 0 1 2; do printf "$i: %s\n" '0 is on host1' '1 is on host1' '2 is on host2'; done)" ]
}

@test "MPI_Abort on one host ends the ranks of all" {
    check() {
        cluster_dtrun -np 4 -H host1:2,host2:2 "$MPI" abort 7
        [ "$RC" = 7 ]
    }
    with_each check
}

@test "an MPI job on two hosts computes right sums after a rank was killed and the job restarted" {
    check() {
        cluster_dtrun --no-tag --max-restarts 1 -np 4 -H host1:2,host2:2 "$MPI" die-once
        [ "$RC" = 0 ]
        [ "$(grep -c 'of 4: sum 10, 2 on this host' "$OUT")" = 4 ]
    }
    with_each check
}
