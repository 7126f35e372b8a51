# Jobs inside an allocation of a real Slurm, whose nodes have no sshd.

load ../await
load slurm

readonly RANKS=4

setup_file() {
    SLURM_SKIP=$(slurm_missing)
    export SLURM_SKIP
    [ -n "$SLURM_SKIP" ] || slurm_up 2 4
}

teardown_file() { [ -n "$SLURM_SKIP" ] || slurm_down; }

setup() {
    [ -z "$SLURM_SKIP" ] || skip "$SLURM_SKIP"
    OUT=$BATS_TEST_TMPDIR/out ERR=$BATS_TEST_TMPDIR/err
    : >"$OUT" 2>"$ERR"
}

# An agent that was sent is called "dtrun-agent-x86_64-..."; pgrep sees its first 15 characters.
no_process() { ! in_lab pgrep '^dtrun|signals' >/dev/null; }

# Checks that no job leaves a process on any node.
teardown() {
    [ -z "$SLURM_SKIP" ] || return 0
    echo "--- output"
    cat "$OUT" "$ERR"
    # The jobs of a test that failed would hold the nodes of the next tests.
    [ -n "$BATS_TEST_COMPLETED" ] || in_lab scancel -u root
    no_job() { [ -z "$(in_lab squeue -h)" ]; }
    await no_process && await no_job
}

# Runs dtrun in an allocation of two nodes with four tasks, and sets RC to its exit code. (salloc's own
# differs when the job is cancelled.)
allocated() {
    RC=0
    in_lab salloc -Q -N2 -n4 sh -c \
        'dtrun "$@"; echo $? >"$0"' "$BATS_TEST_TMPDIR/rc" "$@" >"$OUT" 2>"$ERR" || true
    read -r RC <"$BATS_TEST_TMPDIR/rc"
}

allocated_start() {
    in_lab salloc -Q -N2 -n4 sh -c 'dtrun "$@"; echo $? >"$0"' "$BATS_TEST_TMPDIR/rc" "$@" \
        >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    await ranks_say up
}

allocated_wait() {
    await test -s "$BATS_TEST_TMPDIR/rc"
    wait "$BACKGROUND" || true
    read -r RC <"$BATS_TEST_TMPDIR/rc"
}

# A program that prints the signals it gets, and some time after SIGTERM exits with $CODE.
readonly SIGNALS=$DTRUN_BUILD/tests/rank/signals

ranks_say() { [ "$(grep -c " $1\$" "$OUT")" = "$RANKS" ]; }
each_rank_once() {
    local r

    for ((r = 0; r < RANKS; r++)); do
        [ "$(grep -cx "$r $1" "$OUT")" = 1 ] || { echo "rank $r: $1"; return 1; }
    done
}

@test "dtrun reaches all nodes of the allocation with srun and runs ranks there" {
    allocated -v --no-tag sh -c 'echo "$(hostname) $RANK of $WORLD_SIZE"'
    [ "$RC" = 0 ]
    grep -q '^node1 0 of 4$' "$OUT"
    grep -q '^node2 3 of 4$' "$OUT"
    [ "$(wc -l <"$OUT")" = 4 ]
    [ "$(grep -c 'connected in .* (srun, agent ' "$ERR")" = 2 ]
}

# Prints the node and GPUs of each rank in an allocation of two nodes, sorted, as "node1 0,...". EACH is
# --npernode.
gpus_in() { # OPTION OF salloc...
    in_lab salloc -Q -N2 "$@" dtrun ${EACH:+--npernode "$EACH"} --no-tag sh -c \
        'echo "$(hostname) $CUDA_VISIBLE_DEVICES"' >"$OUT" 2>"$ERR"
    sort "$OUT" | paste -sd,
}

@test "the ranks of a node share the GPUs that the allocation has there" {
    [ "$(gpus_in -n4 --gres=gpu:1)" = "node1 0,node1 0,node1 0,node2 0" ]
    grep -q 'node1: 3 ranks share 1 device (CUDA_VISIBLE_DEVICES)' "$ERR"
    [ "$(gpus_in -n4 --ntasks-per-node=2 --gres=gpu:2)" = "node1 0,node1 1,node2 0,node2 1" ]
    [ "$(EACH=2 gpus_in --ntasks-per-node=1 --gres=gpu:2)" = "node1 0,node1 1,node2 0,node2 1" ]
    [ "$(gpus_in -n4 --gpus-per-task=1)" = "node1 0,node1 1,node2 0,node2 1" ]
    [ "$(gpus_in -n4 --ntasks-per-gpu=1 --gpus=4)" = "node1 0,node1 1,node2 0,node2 1" ]
    [ "$(gpus_in -n4 --ntasks-per-node=2 --gpus=3)" = "node1 0,node1 1,node2 0,node2 0" ]
    [ "$(gpus_in -n4 --ntasks-per-node=2 --gpus=4 --gpu-bind=map_gpu:0)" = \
        "node1 0,node1 1,node2 0,node2 1" ]
}

@test "ranks get no more GPUs than Slurm grants, even if it sets no mask" {
    echo 'echo unset CUDA_VISIBLE_DEVICES' >"$LAB/prolog"
    sed -i '1i #!/bin/sh' "$LAB/prolog"
    chmod +x "$LAB/prolog"
    export SLURM_TASK_PROLOG=$LAB/prolog
    [ "$(gpus_in -n4 --gres=gpu:1)" = "node1 0,node1 0,node1 0,node2 0" ]
    grep -q 'node1: 3 ranks share 1 device (SLURM_GPUS_ON_NODE)' "$ERR"
}

@test "srun's environment variables do not change the steps that start agents" {
    local variable

    for variable in SLURM_LABELIO=1 SLURM_STDOUTMODE=none SLURM_STDINMODE=none SLURM_EXCLUSIVE=1 \
        SLURM_EXPORT_ENV=NONE SLURM_GPUS=2; do
        in_lab salloc -Q -N2 -n4 env "$variable" dtrun --no-tag sh -c 'echo "$RANK up"' >"$OUT" 2>"$ERR"
        ranks_say up
    done
}

# Slurm 25.11.2 reads "PID (program" by a format with %39c, for which glibc 2.43 wants all 39 characters.
slurm_reads_no_memory() {
    local plugins

    plugins=$(in_lab scontrol show config | awk '$1 == "PluginDir" { print $3 }')
    grep -qsF '%d (%39c' "${plugins%%:*}/jobacct_gather_linux.so" || return
    python3 -c '
from ctypes import *
exit(CDLL(None).sscanf(b"1 (init", b"%d (%39c", byref(c_int()), create_string_buffer(40)) == 2)'
}

@test "ranks have the limits of their Slurm step, which accounts for their memory" {
    steps_have_memory() { # of the ranks: an agent alone takes a tenth of this
        in_lab sstat -n -P -a -j "$JOB" -o MaxRSS >"$BATS_TEST_TMPDIR/rss"
        [ "$(numfmt --from=iec <"$BATS_TEST_TMPDIR/rss" | awk '$1 > 50e6' | wc -l)" = 2 ]
    }
    in_lab salloc -Q -N2 -n4 bash -c 'ulimit -c 12; exec dtrun --no-tag python3 -c "$0"' '
import os, resource, time
block = bytearray(os.urandom(1 << 20)) * 64
print("core", resource.getrlimit(resource.RLIMIT_CORE)[0])
print(os.environ["RANK"], "up", flush=True)
while not os.path.exists(os.environ["LAB"] + "/measured"): time.sleep(0.1)
' >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    await ranks_say up
    JOB=$(in_lab squeue -h -o %i)
    [ "$(grep -cx 'core 12288' "$OUT")" = 4 ]
    slurm_reads_no_memory || await steps_have_memory
    touch "$LAB/measured"
    wait "$BACKGROUND"
    ! slurm_reads_no_memory || skip "this Slurm measures no memory with this glibc"
}

@test "dtrun exits with a failed rank's exit code, and the message names its node" {
    allocated sh -c '[ "$RANK" != 3 ] || exit 7'
    [ "$RC" = 7 ]
    grep -q 'rank 3 (node2, pid .* exited with code 7' "$ERR"
}

@test "if srun starts dtrun on each node, only the first one starts the job" {
    ! in_lab srun -Q -N2 -n2 dtrun --no-tag printenv RANK >"$OUT" 2>"$ERR" || false
    [ "$(sort "$OUT" | paste -sd' ')" = "0 1" ]
    grep -q 'dtrun: srun has started dtrun as task 1 of 2, and each would start the whole job' "$ERR"
}

@test "large output and standard input pass through srun unchanged" {
    head -c 3000000 /dev/urandom | base64 >"$LAB/big"
    in_lab salloc -Q -N2 -n2 dtrun --no-tag --stdin 1 -np 2 sh -c \
        '[ "$RANK" = 0 ] || cat' <"$LAB/big" >"$OUT" 2>"$ERR"
    cmp "$LAB/big" "$OUT"
    : >"$OUT"
}

@test "MPI programs run in an allocation" {
    local mpi found=

    for mpi in mpich openmpi; do
        type "mpicc.$mpi" >/dev/null 2>&1 || continue
        [ "$mpi" = mpich ] || [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] || continue
        found=1
        "mpicc.$mpi" -o "$LAB/$mpi" "$DTRUN_SOURCE/tests/rank/mpi.c"
        allocated --no-tag -H node1:2,node2:2 "$LAB/$mpi" end
        [ "$RC" = 0 ]
        [ "$(grep -c 'of 4: sum 10, 2 on this host' "$OUT")" = 4 ]
        allocated -H node1:2,node2:2 "$LAB/$mpi" abort 3
        [ "$RC" = 3 ]
    done
    [ -n "$found" ] || skip "needs mpicc.mpich, or mpicc.openmpi and libpmix-dev"
}

@test "under srun without dtrun, dt_init says how to start the program" {
    local hello="$DTRUN_BUILD/examples/hello"

    if in_lab srun -Q -n2 --mpi=none "$hello" >"$OUT" 2>"$ERR"; then
        return 1
    fi
    [ ! -s "$OUT" ]
    for i in 0 1; do
        grep -q "hello: dt_init: srun started this process as number $i of 2 (SLURM_STEP_NUM_TASKS), but only dtrun makes them one job: start the program with 'dtrun -np 2 PROGRAM'; or set DTRUN_ALONE=1" "$ERR"
    done
    in_lab srun -Q -n1 "$hello" >"$OUT" 2>"$ERR"
    grep -q 'rank 0 of 1' "$OUT"
    in_lab salloc -Q -N2 -n4 "$hello" >"$OUT" 2>"$ERR" # the shell of an allocation is not a step of it
    grep -q 'rank 0 of 1' "$OUT"
    in_lab salloc -Q -N2 -n4 dtrun --no-tag "$hello" >"$OUT" 2>"$ERR"
    [ "$(grep -c 'rank [0-3] of 4' "$OUT")" = 4 ]
}

@test "scancel sends every rank SIGTERM once and leaves it its grace period" {
    allocated_start --no-tag "$SIGNALS"
    in_lab scancel "$(in_lab squeue -h -o %i)"
    allocated_wait
    [ "$RC" = 143 ]
    each_rank_once TERM
    grep -q 'told to end by SIGTERM' "$ERR"
}

@test "scancel -s USR1 reaches each rank once" {
    allocated_start --no-tag "$SIGNALS"
    in_lab scancel -s USR1 "$(in_lab squeue -h -o %i)"
    await ranks_say USR1
    in_lab scancel "$(in_lab squeue -h -o %i)"
    allocated_wait
    each_rank_once USR1
    each_rank_once TERM
}

@test "ranks go on when salloc is killed, and scancel then gives them SIGTERM and their grace period" {
    allocated_start --no-tag "$SIGNALS"
    in_lab sh -c 'kill -KILL "$(pgrep -x salloc)"'
    wait "$BACKGROUND" || true
    in_lab scancel -s USR1 "$(in_lab squeue -h -o %i)"
    await ranks_say USR1
    in_lab scancel "$(in_lab squeue -h -o %i)"
    await test -s "$BATS_TEST_TMPDIR/rc"
    read -r RC <"$BATS_TEST_TMPDIR/rc"
    [ "$RC" = 143 ]
    each_rank_once TERM
}

@test "ranks of a cancelled batch job that exit with 75 count as preempted, not as failed" {
    in_lab sbatch -Q -W -N2 -n4 -o "$OUT" --wrap \
        "trap : TERM; CODE=75 dtrun --no-tag -x CODE $SIGNALS; echo code \$?" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    await ranks_say up
    in_lab scancel -s TERM -f "$(in_lab squeue -h -o %i)" || true
    wait "$BACKGROUND" || true
    await grep -qx 'code 75' "$OUT" # "sbatch -W" does not wait for the end of the script
    each_rank_once TERM
    grep -q 'told to end by SIGTERM' "$OUT"
}

# At the time limit and for preemption, slurmd sends SIGTERM twice to each step of srun. With
# proctrack/linuxproc, which the lab uses, every process of the step gets both.
each_rank_is_told() {
    local r

    for ((r = 0; r < RANKS; r++)); do
        grep -qx "$r TERM" "$OUT" || { echo "rank $r: no TERM"; return 1; }
    done
}

# Starts a requeueable batch job of four ranks, and sets JOB to its number.
batch_start() {
    JOB=$(in_lab sbatch --parsable --requeue --open-mode=append -N2 -n4 -o "$OUT" \
        --wrap "dtrun --no-tag $SIGNALS")
    await ranks_say up
}

gone_from_slurm() { [ -z "$(in_lab squeue -h -j "$JOB" 2>/dev/null)" ]; }
job_is() { [ "$(in_lab squeue -h -j "$JOB" -o %T)" = "$1" ]; }

@test "ranks of a requeued batch job get SIGTERM once and their grace period" {
    batch_start
    in_lab scontrol requeue "$JOB"
    await job_is PENDING
    in_lab scancel "$JOB"
    await no_process # Slurm kills the script, but not dtrun
    each_rank_once TERM
    grep -q 'told to end by SIGTERM' "$OUT"
}

@test "ranks of a preempted batch job get SIGTERM and their grace period" {
    batch_start
    in_lab srun -Q -p urgent -N2 -n8 true
    in_lab scancel "$JOB"
    await no_process
    each_rank_is_told
    grep -q 'told to end by SIGTERM' "$OUT"
}

@test "ranks of a batch job at its time limit get SIGTERM and their grace period" {
    batch_start
    await in_lab scontrol update JobId="$JOB" EndTime=now # refused if the second ends on the way
    await grep -q 'DUE TO TIME LIMIT' "$OUT"
    await gone_from_slurm
    await no_process
    each_rank_is_told
    grep -q 'told to end by SIGTERM' "$OUT"
}

@test "a requeued job goes on from its checkpoint" {
    local checkpoints="$LAB/checkpoints" first soon

    newest() { ls "$checkpoints" 2>/dev/null | grep -x 'step_[0-9]*' | sort | tail -1; }
    has_saved_twice() { [ "$(newest)" != "$first" ]; }
    # Slurm delays the next start by two minutes, and may do so again while it cleans up after the job. But slurmd
    # refuses to start the job in the second in which it ended.
    ends_well() {
        in_lab scontrol update JobId="$JOB" StartTime="$soon" 2>/dev/null || true
        grep -q 'sum is right' "$OUT"
    }
    first=
    JOB=$(in_lab env -C "$LAB" CHECKPOINTS="$checkpoints" sbatch --parsable -n4 --ntasks-per-node=2 -o "$OUT" \
        "$DTRUN_SOURCE/hostfile-examples/train.sbatch" "$DTRUN_BUILD/tests/rank/train" 100000000 100 \
        until "$LAB/trained")
    await has_saved_twice
    first=$(newest)
    await has_saved_twice
    in_lab scontrol requeue "$JOB"
    await job_is PENDING
    soon=$(date -d '1 second' +%FT%T)
    ! grep -q 'restarting' "$OUT" || false
    touch "$LAB/trained" # a job that started from the beginning would end at its first checkpoint
    await ends_well
    [[ "$(newest)" > "$first" ]]
}

@test "the batch script of hostfile-examples trains on all nodes" {
    in_lab env -C "$LAB" sbatch -Q -W -n4 --ntasks-per-node=2 -o "$OUT" \
        "$DTRUN_SOURCE/hostfile-examples/train.sbatch" \
        sh -c 'echo "$RANK of $WORLD_SIZE on $(hostname)"' 2>"$ERR"
    grep -q '0 of 4 on node1' "$OUT"
    grep -q '3 of 4 on node2' "$OUT"
}

@test "a host outside the allocation is reached by SSH" {
    printf 'node1\nelsewhere.invalid\n' >"$LAB/hosts.txt"
    allocated -v --hostfile "$LAB/hosts.txt" true
    [ "$RC" = 125 ]
    grep -q 'elsewhere.invalid: resolve' "$ERR"
}

@test "--transport srun outside an allocation prints the error of srun" {
    in_lab dtrun --transport srun -H nowhere true >"$OUT" 2>"$ERR" && return 1
    grep -q 'srun: error' "$ERR"
}

# This test must be the last one, since its node does not come back.
@test "with --no-kill a job goes on without a lost node" {
    in_lab salloc -Q --no-kill -N2 -n4 sh -c 'dtrun "$@"; echo $? >"$0"' "$BATS_TEST_TMPDIR/rc" \
        --no-tag --heartbeat 6 --max-restarts 1 sh -c 'echo "$RANK up on $(hostname)"
            until [ -e "$LAB/ended" ]; do sleep 0.1; done' >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    all_run() { [ "$(grep -c 'up on node' "$OUT")" = "$1" ]; }
    await all_run 4
    slurm_power_off 2
    await all_run 8
    [ "$(grep -c 'up on node1' "$OUT")" -ge 6 ]
    in_lab scontrol update NodeName=node2 State=DOWN Reason=lost # as Slurm would find out later
    touch "$LAB/ended"
    allocated_wait
    [ "$RC" = 0 ]
    grep -q 'continuing without node2' "$ERR"
}
