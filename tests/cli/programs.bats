#!/usr/bin/env bats
# How programs that link or load libdtrun enter a job, and how they leave it.

load common

HELLO="$DTRUN_BUILD/examples/hello"

@test "dlclose leaves a library in memory whose threads still run" {
    [ -e "$DTRUN_BUILD/runtime/.libs/libdtrun.so.0" ] || skip "built without shared libraries"
    mkfifo fifo
    dtrun --no-tag -np 2 "$RANK/plugin" "$DTRUN_BUILD/runtime/.libs/libdtrun.so.0" "$T/fifo"
    code_is 0
    [ "$(sort "$OUT")" = "rank 0 is done
rank 1 is done" ] || { show; false; }
    clean
}

@test "no file or connection of libdtrun takes the number of a standard descriptor that a rank has closed" {
    dtrun -np 2 --checkpoint-dir "$T/checkpoints" "$RANK/closed"
    code_is 0
    [ -e "$T/checkpoints/step_000000000002" ]
    clean
}

@test "dt_init in a child of a rank says which process is the rank, and what to do" {
    dtrun --no-tag -np 1 "$RANK/parent" child "$HELLO"
    code_is 0
    parent="$(sed -n 's/^the child of process \([0-9]*\) exited with 1$/\1/p' "$OUT")"
    [ -n "$parent" ] || { show; false; }
    err_has "hello: rank 0: this process ("
    err_has ") is a child of process $parent, which has called dt_init and is the rank: a program that a rank starts is not a rank; with DTRUN_ALONE=1 in its environment it is a job of one rank"
    clean
}

@test "dt_init in a grandchild of a rank says which process is the rank" {
    dtrun --no-tag -np 1 "$RANK/parent" child /bin/sh -c '"$0"; exit 3' "$HELLO"
    code_is 0
    parent="$(sed -n 's/^the child of process \([0-9]*\) exited with 3$/\1/p' "$OUT")"
    err_has "is a child of process $parent, which has called dt_init"
    clean
}

@test "dt_init in a program that replaced a rank names both ways to lose the socket" {
    dtrun --no-tag -np 1 "$RANK/parent" exec "$HELLO"
    code_is 1
    err_has "is not the socket to dtrun-agent: either a wrapper between dtrun and the program has closed it, and must leave it open; or a program that has called dt_init"
    clean
}

@test "dt_init under a wrapper that closed the socket does not call the wrapper a rank" {
    dtrun --no-tag -np 1 bash -c 'eval "exec $DTRUN_AGENT_FD>&-"; "$0"; exit $?' "$HELLO"
    code_is 1
    err_has "either a wrapper between dtrun and the program has closed it"
    clean
}

@test "with DTRUN_ALONE=1 a child of a rank is a job of one rank" {
    dtrun --no-tag -np 2 "$RANK/parent" child /usr/bin/env DTRUN_ALONE=1 "$HELLO"
    code_is 0
    [ "$(grep -c 'rank 0 of 1' "$OUT")" = 2 ] || { show; false; }
    err_is_empty
    clean
}

@test "examples/halo waits for its first exchange when the second one fails" {
    fake="$DTRUN_BUILD/tests/fake/.libs/libthreadless.so"
    [ -e "$fake" ] || skip "built without shared libraries"
    dtrun --no-tag -np 3 env LD_LIBRARY_PATH="$DTRUN_BUILD/runtime/.libs" LD_PRELOAD="$fake" \
        "$DTRUN_BUILD/examples/.libs/halo"
    code_is 1
    err_has "requests that were not waited for: 0"
    ! grep 'not waited for: [1-9]' "$ERR" || { show; false; }
    clean
}

# Runs hello with the variables that another launcher sets.
foreign() { # NAME=VALUE...
    RC=0
    env -u DTRUN_ALONE "$TOKEN" timeout -k 5 "$PATIENCE" env "$@" "$HELLO" >"$OUT" 2>"$ERR" || RC=$?
}

refuses() { # LAUNCHER, NUMBER OF PROCESSES, VARIABLE
    code_is 1
    err_has "hello: dt_init: $1 started this process as number 1 of $2 ($3), but only dtrun makes them one job: start the program with 'dtrun -np $2 PROGRAM'; or set DTRUN_ALONE=1"
    [ ! -s "$OUT" ]
}

@test "dt_init fails where another launcher started several processes" {
    foreign OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1
    refuses "Open MPI's mpirun" 4 OMPI_COMM_WORLD_SIZE
    foreign PMI_SIZE=3 PMI_RANK=1 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_STEP_ID=0
    refuses mpiexec 3 PMI_SIZE
    foreign SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_STEP_ID=0
    refuses srun 2 SLURM_STEP_NUM_TASKS
    foreign DTRUN_ALONE=1 PMI_SIZE=3 PMI_RANK=1
    code_is 0
    has_line 'rank 0 of 1' "$OUT"
    foreign DTRUN_ALONE=0 PMI_SIZE=3 PMI_RANK=1
    refuses mpiexec 3 PMI_SIZE
    foreign DTRUN_ALONE=yes
    code_is 1
    err_has "hello: dt_init: DTRUN_ALONE=yes is neither 0 nor 1"
    clean
}

@test "a launcher's only process, and the shell of an allocation, are jobs of one rank" {
    foreign OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0
    code_is 0
    foreign PMI_SIZE=1 PMI_RANK=0
    code_is 0
    foreign SLURM_NTASKS=8 SLURM_PROCID=0 SLURM_JOB_ID=7
    code_is 0
    foreign SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_STEP_ID=0
    code_is 0
    err_is_empty
    clean
}

@test "dt_init under the real mpirun and mpiexec fails and names dtrun" {
    local found=

    if type mpirun.openmpi >/dev/null 2>&1; then
        found=1 RC=0
        env "$TOKEN" timeout -k 5 "$PATIENCE" mpirun.openmpi --allow-run-as-root --oversubscribe \
            -np 2 "$HELLO" >"$OUT" 2>"$ERR" </dev/null || RC=$?
        [ "$RC" != 0 ]
        err_has "Open MPI's mpirun started this process as number "
    fi
    if type mpiexec.hydra >/dev/null 2>&1; then
        found=1 RC=0
        env "$TOKEN" timeout -k 5 "$PATIENCE" mpiexec.hydra -np 2 "$HELLO" \
            >"$OUT" 2>"$ERR" </dev/null || RC=$?
        [ "$RC" != 0 ]
        err_has "mpiexec started this process as number "
    fi
    [ -n "$found" ] || skip "needs mpirun.openmpi or mpiexec.hydra"
    becomes_clean
}

@test "ranks of libdtrun that have lost their environment are warned of, unless they have DTRUN_ALONE" {
    local library="$DTRUN_BUILD/runtime/.libs/libdtrun.so"

    [ -e "$library" ] || skip "built without shared libraries"
    make_load
    is_not_warned -np 2 env -i DTRUN_ALONE=1 PATH="$PATH" python3 load.py "$library"
    rm end
    dtrun_start --no-tag -np 2 env -i PATH="$PATH" python3 load.py "$library"
    await has_line 'has loaded libdtrun (/.*/libdtrun\.so\.[0-9.]*), but has none of the rank.s environment: every rank that calls dt_init is a job of its own, of size 1; env -i, sudo and containers may remove it$' "$ERR" || { show; false; }
    : >end
    dtrun_wait
    code_is 0
    err_lines 1
    clean
}

@test "dtrun does not pass DTRUN_ALONE on to its ranks" {
    DTRUN_ALONE=1 dtrun --no-tag -np 2 "$HELLO"
    code_is 0
    [ "$(grep -c ' of 2' "$OUT")" = 2 ] || { show; false; }
    clean
}

@test "dt_wait_any ends at the deadline if none of the requests is ever done" {
    dtrun --no-tag -np 2 "$RANK/stuck" any
    code_is 124
    has_line '^rank [01]: timed out$' "$OUT" || { show; false; }
    err_has "recv of 1 i32 from rank "
    clean
}
