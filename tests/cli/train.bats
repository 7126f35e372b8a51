#!/usr/bin/env bats
# A real training program under dtrun: its results, and that failures do not change them.

load common
load ../standin/standin

# Runs the programs themselves. Four of libtool's scripts cannot be started at the same time.
training() {
    CHARLM="$DTRUN_BUILD/examples/.libs/charlm"
    HELLO="$DTRUN_BUILD/examples/.libs/hello"
    TEXT="$DTRUN_SOURCE/examples/charlm.c"
    export LD_LIBRARY_PATH="$DTRUN_BUILD/runtime/.libs"
    SMALL="--steps 100 --batch 64 --width 32 --checkpoint-every 20 --sample 50"
    [ -x "$CHARLM" ] || skip "built without shared libraries"
}

# Prints the lines with losses, without their speed.
losses() {
    sed -n 's/.*\(step  *[0-9]* of .*bits\).*/\1/p' "$1"
}

@test "every rank of examples/hello learns the sum of all ranks" {
    training
    dtrun -np 4 "$HELLO"
    code_is 0
    [ "$(sort "$OUT")" = "[0] rank 0 of 4: all ranks add up to 6
[1] rank 1 of 4: all ranks add up to 6
[2] rank 2 of 4: all ranks add up to 6
[3] rank 3 of 4: all ranks add up to 6" ]
    err_is_empty
    clean
}

@test "a program started by hand is a job of one rank" {
    training
    [ "$(timeout "$PATIENCE" "$HELLO")" = "rank 0 of 1: all ranks add up to 0" ]
    timeout "$PATIENCE" "$CHARLM" $SMALL "$TEXT" >"$OUT"
    out_has 1 "step   100 of 100"
    [ -e checkpoints/charlm/step_000000000100/MANIFEST ]
    DTRUN_RESUME=1 timeout "$PATIENCE" "$CHARLM" $SMALL --steps 120 "$TEXT" >"$OUT"
    out_has 1 "continuing after step 100"
    DTRUN_FRESH=1 timeout "$PATIENCE" "$CHARLM" $SMALL "$TEXT" >"$OUT"
    ! grep "continuing" "$OUT" || false
    DTRUN_CHECKPOINT_DIR="$T/elsewhere/deep" timeout "$PATIENCE" "$CHARLM" $SMALL "$TEXT" >"$OUT"
    [ -e elsewhere/deep/step_000000000080/rank_00000.shard ]
    run env DTRUN_CHECKPOINT_DIR="cut$(printf '%*s' 5000 '' | tr ' ' /)off" timeout "$PATIENCE" "$CHARLM" $SMALL "$TEXT"
    [ "$status" = 1 ]
    [[ $output == *"...: the name is too long"* ]]
    [ ! -e cut ]
}

@test "charlm --help names every option" {
    training
    "$CHARLM" --help >help
    sed -n 's/^        { "\([a-z-]*\)", [01], .*/\1/p' "$TEXT" | grep -vx help >options
    [ "$(wc -l <options)" -gt 10 ]
    while read -r option; do grep -q "^  --$option " help; done <options
    [ "$(grep -c '^  --' help)" -eq "$(wc -l <options)" ]
}

@test "examples/charlm learns to write" {
    training
    dtrun -np 2 "$CHARLM" --steps 250 --batch 128 --checkpoint-every 0 "$TEXT"
    code_is 0
    show
    grep -q '^\[0\] step     1 of 250  loss [78]\.' "$OUT"
    grep -q '^\[0\] step   250 of 250  loss [12]\.' "$OUT"
    grep -q '^\[0\] --- a sample ---' "$OUT"
    ! grep -q '^\[1\]' "$OUT" || false
    clean
}

@test "charlm has the same losses with 1, 2 and 4 ranks, up to rounding" {
    training
    for np in 1 2 4; do
        dtrun -np $np "$CHARLM" $SMALL "$TEXT"
        code_is 0
        losses "$OUT" >losses.$np
        [ "$(wc -l <losses.$np)" = 2 ]
    done
    for np in 2 4; do
        paste losses.1 losses.$np | awk '{ d = $6 - $13; if (d * d > 1e-6 || $2 != $9) exit 1 }' || {
            paste losses.1 losses.$np
            false
        }
    done
}

@test "charlm's results are the same from run to run, bit for bit" {
    training
    for run in a b; do
        dtrun -np 3 --checkpoint-dir $run "$CHARLM" $SMALL "$TEXT"
        code_is 0
        cp "$OUT" $run.out
    done
    diff -r -x LINEAGE a b
    [ "$(losses a.out)" = "$(losses b.out)" ]
    diff <(sed '1,/a sample/d' a.out) <(sed '1,/a sample/d' b.out)
}

# charlm on the stand-in for CUDA's driver, in which C functions replace its kernels.
gpu_training() {
    training
    grep -q charlm_gpu "$CHARLM" || skip "built without nvcc"
    use_standin 2
    GPU="-x LD_PRELOAD=$DTRUN_BUILD/tests/standin/.libs/libcharlm.so"
    SMALL="--steps 20 --batch 24 --width 16 --checkpoint-every 10 --sample 0"
}

# The losses of two runs differ by at most TOLERANCE bits a byte.
losses_agree() { # FILE FILE TOLERANCE
    losses "$1" >a.losses
    losses "$2" >b.losses
    [ -s a.losses ]
    paste a.losses b.losses | awk -v most="$3" '{ d = $6 - $13; if (d > most || d < -most || $2 != $9) exit 1 }' || {
        paste a.losses b.losses
        false
    }
}

@test "charlm --device cuda has the losses of the processor, within 0.001 bits a byte" {
    gpu_training
    dtrun -np 2 --checkpoint-dir h "$CHARLM" $SMALL "$TEXT"
    code_is 0
    cp "$OUT" host
    for way in nccl staging; do
        dtrun -np 2 --checkpoint-dir $way -x STANDIN_LOG="$T/$way.log" -x DTRUN_DEVICE=$way $GPU \
            "$CHARLM" --device cuda $SMALL "$TEXT"
        code_is 0
        err_is_empty
        losses_agree host "$OUT" 0.001
        [ "$(grep -c context "$way.log")" -ge 2 ] # each rank has used its device
    done
    clean
}

@test "charlm --device cuda has the same result after a rank was killed" {
    gpu_training
    dtrun -np 2 --checkpoint-dir undisturbed -x DTRUN_DEVICE=staging $GPU "$CHARLM" --device cuda $SMALL "$TEXT"
    code_is 0
    dtrun -np 2 --checkpoint-dir disturbed -x DTRUN_DEVICE=staging $GPU --inject kill:rank=1,step=15 \
        "$CHARLM" --device cuda $SMALL "$TEXT"
    code_is 0
    err_has "dtrun: restarting 2 ranks from the checkpoint of step 10"
    diff -r -x LINEAGE undisturbed disturbed
    clean
}

@test "charlm --device cuda has the same result if it saves in the background, also after a rank was killed" {
    gpu_training
    dtrun -np 2 --checkpoint-dir undisturbed -x DTRUN_DEVICE=staging $GPU "$CHARLM" --device cuda $SMALL "$TEXT"
    code_is 0
    for fault in '' '--inject kill:rank=1,step=15'; do
        dtrun -np 2 --checkpoint-dir behind -x DTRUN_DEVICE=staging $GPU $fault \
            "$CHARLM" --device cuda --isave $SMALL "$TEXT"
        code_is 0
        diff -r -x LINEAGE undisturbed behind
        rm -r behind
    done
    grep -qE '^dtrun: restarting 2 ranks from the (beginning|checkpoint of step 10)' "$ERR" || { show; false; }
    clean
}

@test "charlm on host and GPU can continue from each other's checkpoints" {
    gpu_training
    for first in host cuda; do
        for second in host cuda; do
            dtrun -np 2 --checkpoint-dir $first.$second $GPU "$CHARLM" --device $first $SMALL "$TEXT"
            code_is 0
            dtrun -np 2 --checkpoint-dir $first.$second --resume $GPU \
                "$CHARLM" --device $second $SMALL --steps 40 "$TEXT"
            code_is 0
            out_has 1 "continuing after step 20"
            cp "$OUT" out.$first.$second
        done
    done
    for pair in host.cuda cuda.host cuda.cuda; do losses_agree out.host.host out.$pair 0.001; done
    clean
}

@test "charlm --device reports what is wrong" {
    training
    dtrun -np 1 "$CHARLM" --device gpu
    code_is 1
    err_has "gpu: --device takes host or cuda"
    [ ! -e /dev/nvidiactl ] || skip "there is a GPU here"
    dtrun -np 1 "$CHARLM" --device cuda --steps 1 "$TEXT"
    code_is 1
    grep -qE 'built where there was no CUDA compiler: install nvcc|--device cuda: libcuda.so.1: ' "$ERR"
    clean
}

@test "charlm has the same result after a rank was killed" {
    training
    dtrun -np 4 --checkpoint-dir undisturbed "$CHARLM" $SMALL "$TEXT"
    code_is 0
    losses "$OUT" | tail -1 >undisturbed.loss
    for rank in 0 2; do
        rm -rf disturbed
        dtrun -np 4 --checkpoint-dir disturbed --report r.json --inject kill:rank=$rank,step=50 \
            "$CHARLM" $SMALL "$TEXT"
        code_is 0
        diff -r -x LINEAGE undisturbed disturbed
        losses "$OUT" | tail -1 | diff undisturbed.loss -
        grep -q '"restarts":[[:space:]]*1,' r.json
        grep -q '"lost_steps":[[:space:]]*10,' r.json
        err_has "dtrun: restarting 4 ranks from the checkpoint of step 40"
        clean
    done
}

@test "charlm has the same result if it saves in the background, also after a rank was killed" {
    training
    dtrun -np 4 --checkpoint-dir undisturbed "$CHARLM" $SMALL "$TEXT"
    code_is 0
    dtrun -np 4 --checkpoint-dir behind "$CHARLM" $SMALL --isave "$TEXT"
    code_is 0
    diff -r -x LINEAGE undisturbed behind
    for rank in 0 2; do
        rm -rf disturbed
        dtrun -np 4 --checkpoint-dir disturbed --inject kill:rank=$rank,step=41 \
            "$CHARLM" $SMALL --isave "$TEXT"
        code_is 0
        diff -r -x LINEAGE undisturbed disturbed
        [ "$(ls -A disturbed | tr '\n' ' ')" = "LINEAGE step_000000000080 step_000000000100 " ]
        grep -q "^dtrun: restarting 4 ranks from the checkpoint of step [24]0$" "$ERR"
        clean
    done
}

# Rank 1 syncs its file in the save of step 5, and hangs in that of step 10.
hung() { # OPTION...
    dtrun -np 3 --checkpoint-dir "$T/hung" -x ISAVE=1 -x HUNGDISK_AFTER=1 \
        -x LD_PRELOAD="$DTRUN_BUILD/tests/fake/.libs/libhungdisk.so" "$@" "$DTRUN_BUILD/tests/rank/train" 20 5
    code_is 0
    out_has 1 "sum is right"
    err_has "dtrun: restarting 3 ranks from the checkpoint of step 5"
    [ "$(ls -A "$T/hung" | tr '\n' ' ')" = "LINEAGE step_000000000015 step_000000000020 " ]
    rm -r "$T/hung"
    clean
}

@test "a rank killed while it saves in the background leaves the checkpoint before" {
    for rank in 0 1 2; do
        hung --inject kill:rank=$rank,step=13
    done
}

@test "a save in the background that hangs ends the job after --collective-timeout, which names the rank" {
    try times_out_when_hung 1 10
}

times_out_when_hung() { # LIMIT
    hung --collective-timeout "$1"
    err_has "for rank 1 "
}

@test "if training goes on meanwhile, a save that hangs is still rank 1's fault" {
    try blames_rank_1 1 4
}

blames_rank_1() { # LIMIT
    dtrun -np 3 --checkpoint-dir hung --collective-timeout "$1" --max-restarts 0 -x ISAVE=idle -x SLOW=2 -x HUNGDISK_AFTER=1 \
        -x LD_PRELOAD="$DTRUN_BUILD/tests/fake/.libs/libhungdisk.so" "$DTRUN_BUILD/tests/rank/train" 500 5
    code_is 124
    grep -qE '^dtrun: ranks 0,2 have waited .* in dt_checkpoint_isave \(call [0-9]+\) on the communicator of checkpoints for rank 1 \([^()]*\), which was last in dt_checkpoint_isave \(call [0-9]+\) \(--collective-timeout '"$1"'\)$' "$ERR" || { show; false; }
    clean
}

@test "--resume leads to the result of an unbroken run, and skips a damaged checkpoint" {
    training
    dtrun -np 2 --checkpoint-dir unbroken "$CHARLM" $SMALL "$TEXT"
    code_is 0
    dtrun -np 2 --checkpoint-dir broken --inject exit:rank=1,step=70 "$CHARLM" $SMALL "$TEXT"
    code_is 0 # the job recovered by itself
    rm -r broken/step_000000000100
    printf x | dd of=broken/step_000000000080/rank_00001.shard bs=1 seek=5000 conv=notrunc status=none
    dtrun -np 2 --checkpoint-dir broken --resume "$CHARLM" $SMALL "$TEXT"
    code_is 1
    err_has "rank 0: dt_checkpoint_restore(&restored): a file or socket failed: rank 0: no checkpoint in"
    err_has "can be used; the last one tried: rank 1: $PWD/broken/step_000000000080/rank_00001.shard: is damaged: its checksum differs"

    rm -rf broken
    cp -r unbroken broken
    truncate -s -1 broken/step_000000000100/rank_00000.shard
    dtrun -np 2 --checkpoint-dir broken --resume "$CHARLM" $SMALL "$TEXT"
    code_is 0
    err_has "the checkpoint of step 100 cannot be used: rank 0: $PWD/broken/step_000000000100/rank_00000.shard: is damaged"
    out_has 1 "continuing after step 80"
    diff -r -x LINEAGE unbroken broken
    clean
}

@test "--resume with another number of ranks is refused, and --fresh sets old checkpoints aside" {
    training
    dtrun -np 2 --checkpoint-dir c "$CHARLM" $SMALL "$TEXT"
    code_is 0
    cp -r c before
    dtrun -np 3 --checkpoint-dir c --resume "$CHARLM" $SMALL "$TEXT"
    code_is 1
    err_has "was saved by 2 ranks and cannot be restored by 3: start 2 ranks, or begin afresh (--fresh)"
    diff -r -x OWNER -x LINEAGE before c # the ranks have left without dt_finalize
    dtrun -np 3 --checkpoint-dir c --fresh --inject kill:rank=1,step=70 "$CHARLM" $SMALL "$TEXT"
    code_is 0
    out_has 1 "continuing after step 60"
    diff -r -x LINEAGE before c/earlier-charlm-*
    [ "$(ls -A c | wc -l)" = 4 ] # two checkpoints, LINEAGE, and the old ones that were set aside
    clean
}

@test "a checkpoint directory that has become a file fails all ranks, with the reason" {
    training
    dtrun -np 2 --checkpoint-dir c sh -c '[ $DTRUN_RANK != 0 ] || { rm -rf c; echo >c; }
        exec "$@"' sh "$CHARLM" $SMALL "$TEXT"
    code_is 1
    err_has "/c: Not a directory"
    clean
}
