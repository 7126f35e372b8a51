# Checkpoint directories that not all hosts see. (recover.bats tests recovery on several hosts.)

load lib

setup_file() {
    cluster_up 3
}

setup() {
    cluster_require
    CHARLM="$DTRUN_BUILD/examples/.libs/charlm"
    TEXT="$DTRUN_SOURCE/examples/charlm.c"
    export LD_LIBRARY_PATH="$DTRUN_BUILD/runtime/.libs"
    [ -x "$CHARLM" ] || skip "built without shared libraries"
}

teardown_file() { cluster_down; }
teardown() { cluster_await_quiet; }

save() { # OPTION...
    cluster_dtrun -np 4 -H host1:2,host2:1,host3:1 "$@" \
        "$CHARLM" --steps 3 --batch 8 --width 8 --sample 0 "$TEXT"
}

@test "a checkpoint directory that the hosts do not share is an error that names them, before the first step" {
    save --checkpoint-dir /tmp/mine # each host has a /tmp of its own
    [ "$RC" = 1 ]
    cluster_err_has "the checkpoint directory /tmp/mine is not shared: what rank 0 writes to /tmp cannot be seen on host2, host3;"
    ! grep step "$OUT" || false
    ! grep restarting "$ERR" || false
    for host in 1 2 3; do
        [ -z "$(cluster_on $host find /tmp -maxdepth 1 -name '.save-*' -o -name mine)" ]
    done
    for host in 1 2 3; do
        cluster_on $host mkdir /tmp/mine
    done
    save --checkpoint-dir /tmp/mine
    [ "$RC" = 1 ]
    cluster_err_has "is not shared: what rank 0 writes there cannot be seen on host2, host3;"
    ! grep step "$OUT" || false
    [ -z "$(cluster_on 1 ls -A /tmp/mine)" ]
}

@test "the default checkpoint directory need not be shared by hosts until the first save" {
    save --max-restarts 0 --wdir /tmp
    [ "$RC" = 1 ]
    cluster_err_has "is not shared: what rank 0 writes there cannot be seen on host2, host3;"
    grep "step     3 of 3" "$OUT"
}

@test "checkpoints that only the host of rank 0 sees need --resume or --fresh, too" {
    alone() {
        cluster_dtrun -np 1 -H host1 --checkpoint-dir /tmp/alone "$@" \
            "$CHARLM" --steps 3 --batch 8 --width 8 --sample 0 "$TEXT"
    }
    alone
    [ "$RC" = 0 ]
    alone
    [ "$RC" = 125 ]
    cluster_err_has "dtrun: checkpoint directory /tmp/alone holds checkpoints of an earlier job: --resume continues from the newest, --fresh starts afresh (on host1)"
    alone --resume
    [ "$RC" = 0 ]
    alone --fresh --max-restarts 1 --inject kill:rank=0,step=1
    [ "$RC" = 0 ]
}

@test "with --resume and checkpoints that only dtrun's host sees, the job says that it starts afresh" {
    anew() { # DIRECTORY [OPTION...]
        mkdir -p "$BATS_TEST_TMPDIR/$1/step_000000000003"
        cluster_on 1 test ! -e "$BATS_TEST_TMPDIR/$1"
        cluster_dtrun -np 1 -H host1 --checkpoint-dir "$BATS_TEST_TMPDIR/$1" --resume "${@:2}" \
            "$CHARLM" --steps 3 --batch 8 --width 8 --sample 0 "$TEXT"
        [ "$RC" = 0 ]
        cluster_err_has "dtrun: starting afresh: the host of rank 0 sees no checkpoint in $BATS_TEST_TMPDIR/$1, but this machine does"
    }
    anew here
    anew again --max-restarts 1 sh -c '[ $DTRUN_RESTART_COUNT = 1 ] && exec "$@"' sh
}

@test "a directory that only some hosts see is an error that names the others, and one that all see is used" {
    for host in 1 2; do
        cluster_on $host sh -c "mkdir -p /tmp/some && mount --bind $CLUSTER_SHARED /tmp/some"
    done
    save --checkpoint-dir /tmp/some
    [ "$RC" = 1 ]
    cluster_err_has "cannot be seen on host3;"
    save --checkpoint-dir "$CLUSTER_SHARED/all"
    [ "$RC" = 0 ]
    [ -e "$CLUSTER_SHARED/all/step_000000000003/rank_00003.shard" ]
}
