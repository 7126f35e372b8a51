# Unmodified MPI programs on several hosts.

load lib

setup_file() {
    cluster_up 2
    if [ -z "$CLUSTER_SKIP" ] && type mpicc.mpich >/dev/null 2>&1; then
        mpicc.mpich -o "$CLUSTER_SHARED/mpi" "$DTRUN_SOURCE/tests/rank/mpi.c"
    fi
}

teardown_file() { cluster_down; }

setup() {
    cluster_require
    type mpicc.mpich >/dev/null 2>&1 || skip "needs mpicc.mpich (mpich, libmpich-dev)"
    cluster_trust
}

teardown() { cluster_await_quiet; }

@test "an MPICH program on two hosts: right sums, neighbours share memory" {
    cluster_dtrun --no-tag -np 4 -H host1:2,host2:2 "$CLUSTER_SHARED/mpi" leave
    [ "$RC" = 0 ]
    [ "$(grep -c 'of 4: sum 10, 2 on this host' "$OUT")" = 4 ]
}

@test "ranks that are placed in turn find their neighbours" {
    cluster_dtrun --no-tag --map-by node -np 6 -H host1:4,host2:4 "$CLUSTER_SHARED/mpi" leave
    [ "$RC" = 0 ]
    [ "$(grep -c 'of 6: sum 21, 3 on this host' "$OUT")" = 6 ]
}

@test "MPI_Abort on one host ends the ranks of all" {
    cluster_dtrun -np 4 -H host1:2,host2:2 "$CLUSTER_SHARED/mpi" abort 7
    [ "$RC" = 7 ]
}

@test "a killed rank of an MPI job on two hosts: the restarted one sums right" {
    cluster_dtrun --no-tag --max-restarts 1 -np 4 -H host1:2,host2:2 "$CLUSTER_SHARED/mpi" die-once
    [ "$RC" = 0 ]
    [ "$(grep -c 'of 4: sum 10, 2 on this host' "$OUT")" = 4 ]
}
