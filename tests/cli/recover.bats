#!/usr/bin/env bats
# Jobs of linked ranks: whatever dies, the job goes on from its newest checkpoint, and its result is that of
# an undisturbed run.

load common

# What "train STEPS" prints with this number of ranks if every step was done exactly once.
sum() { # RANKS STEPS
    echo "[0] sum $(($1 * ($1 + 1) / 2 * $2 * ($2 + 1) / 2))"
}

result_is() {
    code_is 0
    grep -qxF "$(sum "$1" "$2")" "$OUT" || { show; return 1; }
}

# A run that lasts until it is told to end: the ranks train until the file "go" exists.
endless() { # RANKS OPTIONS...: in the background; returns when there is a checkpoint
    local np="$1"
    shift
    dtrun_start --checkpoint-dir "$T/ckpt" "$@" -np "$np" "$RANK/train" 100000000 50 until "$T/go"
    await has_checkpoint
}

has_checkpoint() {
    [ -n "$(ls -d "$T"/ckpt/step_* 2>/dev/null)" ]
}

# A checkpoint that is newer than the last one before the failure shows that the job goes on.
goes_on() { # the newest step before
    [ "$(newest)" -gt "$1" ]
}

# Until the job has recovered, its old ranks may save.
recovers_and_goes_on() {
    await grep -q "^dtrun: recovered in " "$ERR"
    await goes_on "$(newest)"
}

newest() {
    ls "$T/ckpt" | sed -n 's/^step_0*\([0-9][0-9]*\)$/\1/p' | sort -n | tail -1
}

ends_well() {
    touch "$T/go"
    dtrun_wait
    code_is 0
    grep -q "sum is right" "$OUT" || { show; return 1; }
    clean
}

@test "a job whose rank is killed restarts from the newest checkpoint and has the same result" {
    dtrun -np 4 --report r.json --inject kill:rank=2,step=57 "$RANK/train" 100 10
    result_is 4 100
    grep -qE '^dtrun: rank 2 \(localhost, pid [0-9]+\) was killed by signal 9 \(SIGKILL\) \(--inject\) at step 57$' "$ERR"
    err_has "dtrun: restarting 4 ranks from the checkpoint of step 50"
    grep -qE '^dtrun: recovered in [0-9.]+ m?s, 7 steps lost$' "$ERR"
    grep -qE '^dtrun: done in .*; recovered from 1 failure, lost 7 steps, [0-9.]+ m?s \([0-9.]+ % of the time went into training\)$' "$ERR"
    report_has '[.exit_code, .restarts, .lost_steps, .cause, .recoveries[0].from_step, .recoveries[0].source, .recoveries[0].generation]' '[0,1,7,null,50,"checkpoint",2]'
    clean
}

@test "a restarted job that does not find the committed checkpoint says so" {
    local lose='[ "$DTRUN_RANK$DTRUN_GENERATION" != 02 ] || rm -r $GONE; exec "$@"'

    GONE=ckpt/step_000000000050 dtrun --checkpoint-dir ckpt -np 2 --inject kill:rank=1,step=57 \
        sh -c "$lose" sh "$RANK/train" 100 10
    result_is 2 100
    err_has "dtrun: restarting 2 ranks from the checkpoint of step 50"
    err_has "dtrun: continuing from step 40, although a checkpoint of step 50 was committed; do all hosts"
    err_has ", 17 steps lost"
    GONE=away dtrun --checkpoint-dir away -np 2 --inject kill:rank=1,step=57 \
        sh -c "$lose" sh "$RANK/train" 100 10
    result_is 2 100
    err_has "dtrun: starting from the beginning, although a checkpoint of step 50 was committed; do all hosts"
    err_has ", 57 steps lost"
    clean
}

@test "the loss of a checkpoint is reported once" {
    GONE=ckpt/step_000000000050 dtrun --checkpoint-dir ckpt -np 2 --report r.json --inject kill:rank=1,step=57 \
        --inject kill:rank=1,step=47,restart=1 \
        sh -c '[ "$DTRUN_RANK$DTRUN_GENERATION" != 02 ] || rm -r $GONE; exec "$@"' sh "$RANK/train" 100 10
    result_is 2 100
    [ "$(grep -c "dtrun: restarting 2 ranks from the checkpoint of step 50" "$ERR")" = 1 ]
    err_has "dtrun: restarting 2 ranks from the checkpoint of step 40"
    [ "$(grep -c "although a checkpoint of step 50 was committed" "$ERR")" = 1 ]
    err_has ", 7 steps lost"
    report_has '[.lost_steps, .recoveries[].from_step]' '[24,40,40]'
    clean
}

@test "a job that finds a checkpoint of which dtrun did not know says so" {
    dtrun --checkpoint-dir ckpt -np 2 "$RANK/train" 50 10
    result_is 2 50
    dtrun --checkpoint-dir ckpt --resume --max-restarts 1 -np 2 \
        sh -c '[ "$DTRUN_RANK$DTRUN_GENERATION" != 11 ] || exit 3; exec "$@"' sh "$RANK/train" 80 10
    result_is 2 80
    err_has "dtrun: restarting 2 ranks"
    err_has "dtrun: continuing from step 50: the ranks found a newer checkpoint"
    clean
}

@test "a job that finds a newer checkpoint than dtrun has announced says so" {
    local agent known

    endless 2 --transport local -H here1:1,here2:1 --heartbeat 600
    agent="$(ps -o ppid= "$(rank_pid 0)")"
    kill -STOP $agent
    known="$(newest)"
    await goes_on "$known"
    kill -KILL "$(rank_pid 1)"
    await grep -q "^dtrun: restarting 2 ranks from the checkpoint of step " "$ERR"
    kill -CONT $agent
    await grep -qE "^dtrun: continuing from step [0-9]+: the ranks found a newer checkpoint" "$ERR"
    ends_well
}

@test "dtrun reports at the end which --inject faults did not happen, and why" {
    dtrun -np 3 --inject kill:rank=2,step=500 --inject stop:rank=1,after=900 \
        --inject host:node=0,step=600 --inject exit:rank=1,step=9,restart=1 "$RANK/train" 20 10
    result_is 3 20
    err_lines 4
    err_has "dtrun: --inject kill:rank=2,step=500 did not happen: the last step of rank 2 was 20"
    err_has "dtrun: --inject stop:rank=1,after=900 did not happen: the job was over before"
    err_has "dtrun: --inject host:node=0,step=600 did not happen: the last step of rank 0 was 20"
    err_has "dtrun: --inject exit:rank=1,step=9,restart=1 did not happen: the job had no restart 1"
    dtrun --inject kill:rank=0,step=1 true
    code_is 0
    err_has "dtrun: --inject kill:rank=0,step=1 did not happen: rank 0 took no step (dt_step)"
    dtrun --inject kill:rank=0,step=1 sh -c 'exit 3'
    code_is 3
    err_lines 1
    clean
}

rank_pid() { # RANK
    for pid in $(left_behind); do
        ! grep -qzFx "RANK=$1" "/proc/$pid/environ" || echo "$pid"
    done
}

is_stopped() { # RANK
    grep -q '^State:.T' "/proc/$(rank_pid "$1")/status" 2>/dev/null
}

@test "each of several faults is triggered once, also one that only stops a rank" {
    dtrun -np 2 --inject kill:rank=0,step=25 --inject kill:rank=0,step=35 \
        --inject exit:rank=0,step=15,restart=1 "$RANK/train" 40 10
    result_is 2 40
    err_has "; recovered from 3 failures"
    dtrun_start -np 2 --inject stop:rank=1,step=25 "$RANK/train" 40 10
    await is_stopped 1
    kill -KILL "$(rank_pid 0)"
    dtrun_wait # rank 1 passes step 25 again
    code_is 0
    grep -q "sum is right" "$OUT"
    clean
}

@test "two faults cause two recoveries, and each is triggered once" {
    dtrun -np 3 --inject kill:rank=0,step=33 --inject exit:rank=1,step=71,code=5 "$RANK/train" 100 10
    result_is 3 100
    err_has "exited with code 5 (--inject) at step 71"
    err_has "; recovered from 2 failures, lost 4 steps, "
    clean
}

@test "check 44: a job whose ranks are killed 100 times, each time after a restart, has the same result" {
    local i kills=100 faults=()

    for ((i = 0; i < kills; i++)); do
        faults+=(--inject "kill:rank=$((i % 3)),step=$((10 * i + 8)),restart=$i")
    done
    dtrun -np 3 "${faults[@]}" "$RANK/train" $((10 * kills)) 5
    result_is 3 $((10 * kills))
    err_has "; recovered from $kills failures"
    clean
}

@test "a job recovers from SIGSEGV, a failing exit, and a rank that leaves without dt_finalize" {
    for fault in segv fail leave; do
        dtrun -np 3 "$RANK/train" 60 10 $fault 1 35
        result_is 3 60
        err_has "dtrun: restarting 3 ranks from the checkpoint of step 30"
        clean
    done
}

@test "a job recovers when a rank is killed from outside" {
    endless 3
    kill -KILL "$(pgrep -P "$(worker)" -o train)"
    recovers_and_goes_on
    ends_well
    err_has "was killed by signal 9 (SIGKILL)"
    err_has "; recovered from 1 failure, "
}

@test "after kill -9 of the keeper a new agent brings the job to the same result" {
    endless 3
    kill -KILL "$(keeper)"
    recovers_and_goes_on
    ends_well
    err_has "its ranks 0-2 are taken as lost"
}

@test "after kill -9 of the worker a new agent brings the job to the same result" {
    endless 3
    kill -KILL "$(worker)"
    recovers_and_goes_on
    ends_well
    err_has "its ranks 0-2 are taken as lost"
}

@test "after kill -9 of dtrun, linked ranks under wrappers end at once" {
    dtrun_start --heartbeat 600 -np 3 sh -c "'$RANK/train' 100000000 50 until '$T/go' & setsid sleep 300 & wait"
    await test -d checkpoints
    kill -KILL "$BACKGROUND"
    wait "$BACKGROUND" || true
    BACKGROUND=
    becomes_clean
}

@test "a job that fails before its first checkpoint restarts from the beginning" {
    dtrun -np 3 --report r.json "$RANK/train" 100 10 fail 1 5
    result_is 3 100
    err_has "exited with code 9 at step 5"
    grep -qxF "dtrun: restarting 3 ranks from the beginning" "$ERR" || { show; false; }
    err_has "recovered from 1 failure (1 from the beginning), lost 5 steps"
    report_has '[.restarts, .lost_steps, .recoveries[0].from_step, .recoveries[0].source]' '[1,5,null,"none"]'
    clean
}

@test "a job whose rank is killed while another restores for the first time is restarted" {
    dtrun_start --verbose -np 2 -x ABSENT=1 "$RANK/train" 100 10
    await has_line "rank 0 begins to restore" "$ERR" || { show; return 1; }
    kill -KILL "$(pgrep -P "$(worker)" -n train)"
    ends_well
    err_has "dtrun: restarting 2 ranks from the beginning"
}

@test "--max-restarts overrides the limit of three restarts without progress" {
    dtrun --max-restarts 4 -np 3 "$RANK/train" 100 10 fail-always 1 25
    code_is 9
    [ "$(grep -c 'dtrun: restarting 3 ranks from the checkpoint of step 20' "$ERR")" = 4 ]
    err_has "dtrun: giving up after 4 restarts (--max-restarts 4)"
    clean
}

@test "three restarts without progress end the job with the failed rank's code" {
    dtrun -np 3 "$RANK/train" 100 10 fail-always 1 25
    code_is 9
    [ "$(grep -c 'dtrun: restarting 3 ranks from the checkpoint of step 20' "$ERR")" = 3 ]
    err_has "dtrun: giving up: 3 restarts without progress (no newer checkpoint), and each time rank 1 failed in the same way"
    clean
}

@test "--max-restarts 0 forbids a restart even if there is a checkpoint" {
    dtrun --max-restarts 0 -np 3 "$RANK/train" 100 10 fail 1 25
    code_is 9
    ! grep -q restarting "$ERR" || false
    clean
}

@test "--resume goes on where a job ended, and --fresh starts anew" {
    dtrun --checkpoint-dir ckpt -np 2 "$RANK/train" 50 10
    result_is 2 50
    dtrun --checkpoint-dir ckpt -np 2 "$RANK/train" 80 10
    code_is 2
    dtrun --checkpoint-dir ckpt --resume -np 2 --verbose "$RANK/train" 80 10
    result_is 2 80
    err_has "checkpoint of step 50 restored"
    dtrun --checkpoint-dir ckpt --fresh -np 2 --inject kill:rank=1,step=25 "$RANK/train" 40 10
    result_is 2 40
    err_has "from the checkpoint of step 20"
    clean
}

@test "a resumed job that fails before its own first checkpoint recovers from the one it resumed" {
    dtrun --checkpoint-dir ckpt -np 2 "$RANK/train" 50 10
    dtrun --checkpoint-dir ckpt --resume -np 2 --inject kill:rank=1,step=55 "$RANK/train" 80 10
    result_is 2 80
    err_has "dtrun: restarting 2 ranks from the checkpoint of step 50"
    clean
}

# The layer of an image. Its upper directory must not be on overlayfs itself, as in a container.
@test "--fresh says why checkpoints that are part of an image cannot be set aside" {
    local mount='mount -t tmpfs none upper && mkdir upper/u upper/w &&
        mount -t overlay -o lowerdir=lower,upperdir=upper/u,workdir=upper/w,redirect_dir=off none image'

    mkdir lower upper image
    unshare --mount sh -c "$mount" 2>/dev/null || skip "needs root and overlayfs"
    dtrun -np 2 --checkpoint-dir lower/saved "$RANK/train" 1 1
    code_is 0
    printf '#!/bin/sh\nexec unshare --mount sh -c '\''%s && exec "$@"'\'' sh "%s" "$@"\n' "$mount" "$DTRUN" >mounted
    chmod +x mounted
    DTRUN="$T/mounted"
    dtrun -np 2 --max-restarts 0 --checkpoint-dir image/saved --fresh "$RANK/train" 1 1
    code_is 1
    err_has "image/saved/step_000000000001: rename (is it in a layer of the container's image? then use a copy, or another directory): Invalid cross-device link"
    clean
}

@test "a fresh job that fails before its first checkpoint does not restore an old one" {
    dtrun --checkpoint-dir ckpt -np 2 "$RANK/train" 50 10
    dtrun --checkpoint-dir ckpt --fresh --max-restarts 1 -np 2 --inject kill:rank=1,step=5 "$RANK/train" 40 10
    result_is 2 40
    err_has "dtrun: restarting 2 ranks from the beginning"
    clean
}

@test "--resume continues a --fresh job that was killed before it set the old checkpoints aside" {
    local fake="$DTRUN_BUILD/tests/fake/.libs/libunfinished.so"
    [ -e "$fake" ] || skip "built without shared libraries"
    dtrun --checkpoint-dir ckpt -np 2 "$RANK/train" 50 10
    result_is 2 50
    dtrun --checkpoint-dir ckpt --fresh --max-restarts 0 -np 2 env LD_PRELOAD="$fake" "$RANK/train" 40 10
    code_is 137
    [ "$(newest)" = 50 ]
    dtrun --checkpoint-dir ckpt --resume -np 2 --verbose "$RANK/train" 30 10
    result_is 2 30
    err_has "checkpoint of step 10 restored"
    [ "$(newest)" = 30 ]
    [ -n "$(ls -d "$T"/ckpt/earlier-*/step_000000000050)" ]
    clean
}

@test "when a rank ends without dt_init, the job ends instead of waiting for it forever" {
    local train="exec '$RANK/train' 60 10"

    # Rank 1 ends at any time, after the others have begun to wait, and before they begin.
    for ranks in "[ \$DTRUN_RANK = 1 ] || $train" "[ \$DTRUN_RANK = 1 ] || $train; sleep 0.5; exit 0" \
        "[ \$DTRUN_RANK = 1 ] || { sleep 0.3; $train; }"; do
        dtrun -np 3 sh -c "$ranks; exit 0"
        code_is 1
        err_has "dtrun: rank 1 (localhost, pid "
        err_has ") exited without dt_init (the other ranks wait for it)"
        clean
    done
}

@test "steps that an agent took and did not report before its death are not in the number of lost steps" {
    dtrun -np 3 --report r.json --inject agent:node=0,step=55 "$RANK/train" 100 10
    result_is 3 100
    grep -qE '^dtrun: recovered in [0-9.]+ m?s$' "$ERR" || { show; false; }
    grep -qE '^dtrun: done in .*; recovered from 1 failure, [0-9.]+ m?s \(' "$ERR" || { show; false; }
    grep -q '"lost_steps":[[:space:]]*null,' r.json
    dtrun -np 3 --inject kill:rank=1,step=33 --inject agent:node=0,step=55 "$RANK/train" 100 10
    result_is 3 100
    err_has "; recovered from 2 failures, lost at least 3 steps, "
    clean
}

@test "with --transport local this machine plays several hosts, and the job survives the loss of one" {
    dtrun --transport local -H here1:2,here2:1 --inject agent:node=1,step=55 "$RANK/train" 100 10
    result_is 3 100
    err_has "dtrun: here2: agent: dtrun-agent was killed by signal 9 (Killed) (--inject); its rank 2 is taken as lost"
    err_has "from the checkpoint of step 50"
    clean
    dtrun --transport local -H here1,here1:1,here2 sh -c 'echo $DTRUN_RANK on node $DTRUN_NODE_RANK'
    code_is 0
    [ "$(sort "$OUT" | tr '\n' ',')" = "[0] 0 on node 0,[1] 1 on node 0,[2] 2 on node 1," ]
}

@test "--inject host takes a host away for good, and its ranks move" {
    dtrun --transport local -H here1:2,here2:1 --report r.json --inject host:node=1,step=55 "$RANK/train" 100 10
    result_is 3 100
    err_has " (--inject); its rank 2 is taken as lost"
    err_has "dtrun: continuing without here2: 3 ranks on the 2 slots of 1 host"
    ! grep -q '"here2"' r.json || { cat r.json; false; }
    clean
}

@test "--inject host with --on-host-loss stop ends the job" {
    dtrun --transport local -H here1:2,here2:1 --on-host-loss stop --inject host:rank=2,step=55 "$RANK/train" 100 10
    code_is 125
    err_has "dtrun: giving up: here2 cannot be used any more, and --on-host-loss stop was given"
    clean
}

@test "--inject agent loses a host that comes back" {
    dtrun --transport local -H here1:2,here2:1 --on-host-loss stop --inject agent:rank=2,step=55 "$RANK/train" 100 10
    result_is 3 100
    ! grep -q "continuing without" "$ERR" || { show; false; }
    clean
}

@test "check 38: a stopped rank is named, and its job goes on from the checkpoint" {
    try names_stopped_rank 2 20
}

names_stopped_rank() { # LIMIT
    endless 4 --collective-timeout "$1"
    before="$(newest)"
    kill -STOP "$(rank_pid 2)"
    await eval 'grep -q "^dtrun: recovered in " "$ERR" || gone "$BACKGROUND"'
    grep -qE '^dtrun: warning: rank.* (has|have) waited .* for rank 2 \(localhost, pid [0-9]+\), which is stopped by a signal and ' "$ERR"
    grep -qE '^dtrun: rank.* for rank 2 \(localhost, pid [0-9]+\), .* \(--collective-timeout '"$1"'\)$' "$ERR"
    await goes_on "$before"
    ends_well
}

@test "check 38: a stopped rank that continues before --collective-timeout costs no restart" {
    endless 3 --collective-timeout 12
    kill -STOP "$(rank_pid 1)"
    await grep -q '^dtrun: warning: ' "$ERR"
    kill -CONT "$(rank_pid 1)"
    await goes_on "$(newest)"
    ends_well
    [ "$(grep -c restarting "$ERR")" = 0 ]
}

@test "check 33: all ranks and hosts name a rank that never joins a call, and the job ends with 124" {
    try all_name_late_rank 2 2 2 2 2
    try restarts_without_late_rank 2 20
    clean
}

restarts_without_late_rank() { # LIMIT
    dtrun -np 3 --collective-timeout "$1" --max-restarts 1 "$RANK/steps" hang
    code_is 0
    err_has "dtrun: restarting 3 ranks from the beginning"
}

# Ranks have a second to do so.
all_name_late_rank() { # LIMIT
    DTRUN_COLLECTIVE_TIMEOUT="$1" dtrun --transport local -H a:2,b:2 "$RANK/steps" hang
    code_is 124
    for rank in 0 1 2; do
        grep -qE "^\[$rank\] rank $rank \([ab]\): barrier, call 7: timed out: ranks? .* for rank 3 \(b, pid [0-9]+\), which was last in barrier \(call 6\)" "$ERR" || { show; return 1; }
    done
    grep -qE '^dtrun: ranks? .* for rank 3 \(b, .* \(--collective-timeout '"$1"'\)' "$ERR"
}

@test "a DTRUN_COLLECTIVE_TIMEOUT that is not a number is refused" {
    DTRUN_COLLECTIVE_TIMEOUT=soon dtrun -np 1 true
    code_is 2
    err_has "dtrun: DTRUN_COLLECTIVE_TIMEOUT=soon: a number from 0 to 1000000 was expected"
    clean
}

@test "a second job that saves in a checkpoint directory is refused, and told which job uses it" {
    endless 2
    OUT=second.out ERR=second.err dtrun -np 2 --checkpoint-dir "$T/ckpt" --resume --max-restarts 0 \
        "$RANK/train" 200000000 50
    code_is 1
    ERR=second.err err_has "the checkpoint directory $T/ckpt is in use by job $(sed -n 's/^job //p' "$T/ckpt/OWNER") (generation 1; rank 0 is process"
    ends_well
    [ ! -e "$T/ckpt/OWNER" ]
    dtrun -np 2 --checkpoint-dir "$T/ckpt" --resume "$RANK/train" 10 10
    code_is 0
    clean
}

# Runs a job that only restores, under COMMAND if that is given (as root: without a capability, or with a
# mount of its own).
evaluates() { # DIRECTORY [COMMAND...]
    local dir="$1" rc=0
    shift
    env "$TOKEN" timeout "$PATIENCE" "$@" "$DTRUN" -np 2 --checkpoint-dir "$dir" --resume "$RANK/train" 1 1 \
        >second.out 2>second.err || rc=$?
    [ "$rc" = 0 ] && grep -q "sum is right" second.out || { cat second.out second.err; return 1; }
}

@test "a job that only restores runs beside the training job, also where it may not write" {
    unshare -m true 2>/dev/null && command -v setpriv >/dev/null || skip "needs root and setpriv"
    endless 2
    evaluates "$T/ckpt"
    ! grep "cannot be written to" second.err || false
    mkdir ro
    evaluates "$T/ro" unshare -m sh -c "mount --bind ckpt ro && mount -o remount,ro,bind ro && exec \"\$@\"" sh
    ERR=second.err err_has "dtrun: localhost: $T/ro cannot be written to (Read-only file system): this job restores from it, and can save nothing there"
    chown 65534 ckpt
    chmod 755 ckpt
    evaluates "$T/ckpt" setpriv --bounding-set=-dac_override --inh-caps=-dac_override
    ERR=second.err err_has "dtrun: localhost: $T/ckpt cannot be written to (Permission denied)"
    ends_well
}

@test "a job whose working directory cannot be written to learns in its restore that it can save nothing" {
    mkdir ro
    local mount='mount --bind ro ro && mount -o remount,ro,bind ro && cd ro'
    unshare -m sh -c "$mount" 2>/dev/null || skip "needs root, to mount"
    RC=0
    timeout "$PATIENCE" unshare -m sh -c "$mount && exec \"\$@\"" sh env "$TOKEN" "$DTRUN" -np 2 "$RANK/train" 3 4 \
        </dev/null >"$OUT" 2>"$ERR" || RC=$?
    code_is 0
    grep -qx "dtrun: localhost: $T/ro/checkpoints/train-[0-9a-f]* cannot be written to (Read-only file system): this job can save nothing there; --checkpoint-dir names another directory" "$ERR" ||
        { show; false; }
    err_lines 1
    clean
}

@test "continuing another job's checkpoints by hand needs DTRUN_RESUME=1" {
    export DTRUN_CHECKPOINT_DIR="$T/ckpt"
    timeout "$PATIENCE" "$RANK/train" 20 10 >"$OUT"
    local line job
    line=$(sed -n 's/^lineage //p' ckpt/LINEAGE)
    job=$(sed -n 's/^job //p' ckpt/LINEAGE)
    ! timeout "$PATIENCE" "$RANK/train" 40 10 >"$OUT" 2>"$ERR" || false
    err_has "restore: $T/ckpt holds checkpoints of job $job (lineage $line, host "
    err_has "DTRUN_RESUME=1"
    DTRUN_RESUME=1 timeout "$PATIENCE" "$RANK/train" 40 10 >"$OUT"
    grep -qxF "sum is right" "$OUT"
    [ "$(sed -n 's/^lineage //p' ckpt/LINEAGE)" = "$line" ]
    [ "$(sed -n 's/^job //p' ckpt/LINEAGE)" != "$job" ]
    DTRUN_FRESH=1 timeout "$PATIENCE" "$RANK/train" 20 10 >"$OUT"
    [ "$(sed -n 's/^lineage //p' ckpt/LINEAGE)" != "$line" ]
    [ -e ckpt/earlier-*/step_000000000040 ]
}
