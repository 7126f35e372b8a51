#!/usr/bin/env bats
# Unmodified MPI programs on one machine: MPICH, whose library asks the agent by PMI-1.

load common

setup_file() {
    ! type mpicc.mpich >/dev/null 2>&1 ||
        mpicc.mpich -o "$BATS_FILE_TMPDIR/mpich" "$DTRUN_SOURCE/tests/rank/mpi.c"
}

# mpich DTRUN-ARGUMENT... -- WHAT...: the program of the tests, built with MPICH.
mpich() {
    local -a options=()

    [ -x "$BATS_FILE_TMPDIR/mpich" ] || skip "needs mpicc.mpich (libmpich-dev)"
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    dtrun "${options[@]}" "$BATS_FILE_TMPDIR/mpich" "$@"
}

@test "an MPICH program is one job of all ranks, which share memory" {
    mpich --no-tag -np 4 -- sum
    code_is 0
    [ "$(sort "$OUT")" = "rank 0 of 4: sum 10, 4 on this host
rank 1 of 4: sum 10, 4 on this host
rank 2 of 4: sum 10, 4 on this host
rank 3 of 4: sum 10, 4 on this host" ]
    err_is_empty
    clean
}

@test "the code of MPI_Abort is dtrun's exit code, and no rank is left" {
    mpich -np 4 -- abort 3
    code_is 3
    err_has "rank 1 (localhost, pid "
    err_has "exited with code 3; stopping the other 3 ranks"
    clean
}

@test "MPI_Abort with 0 is a failure all the same" {
    mpich -np 2 -- abort 0
    code_is 1
    clean
}

@test "a rank of an MPI program that is killed ends the job with 137" {
    mpich -np 4 -- die
    code_is 137
    clean
}

@test "a restarted MPI job has a key-value space of its own" {
    mpich --no-tag --max-restarts 1 -np 3 -- die-once
    code_is 0
    [ "$(grep -c 'sum 6, 3 on this host' "$OUT")" = 3 ]
    clean
}

@test "MPI_Comm_spawn fails, and the job goes on" {
    mpich --no-tag -np 2 -- spawn
    code_is 0
    out_is "spawn refused
"
    clean
}

@test "more MPI ranks than slots" {
    mpich --no-tag -H localhost:2 -np 6 -- sum
    code_is 0
    [ "$(grep -c 'of 6: sum 21, 6 on this host' "$OUT")" = 6 ]
    clean
}

@test "a rank that writes nonsense to its PMI-1 socket is told so, and the job goes on" {
    dtrun -np 1 bash -c 'echo hello >&$PMI_FD; read -t 10 -u $PMI_FD || exit 0'
    code_is 0
    err_has "rank 0 (localhost): what it writes to PMI_FD is no PMI-1: it asks before it has said init"
    clean
}
