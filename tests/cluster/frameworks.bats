#!/usr/bin/env bats
# Programs of other frameworks, as their users have them, on hosts over SSH.

load lib

setup_file() { cluster_up 2; }

PATIENCE=300 # PyTorch is slow to load, and its threads get into each other's way

setup() { cluster_require; }

teardown() { cluster_await_quiet; }

teardown_file() { cluster_down; }

# Trains on both hosts; Debian's python3-torch belongs to Debian's python3.
ddp() { # FUNCTION CHECKPOINT [dtrun option...]
    local run=$1 checkpoint=$2

    shift 2
    "$run" -H host1,host2 "$@" \
        /usr/bin/python3 "$DTRUN_SOURCE/examples/ddp.py" --steps 400 --every 50 --checkpoint "$checkpoint"
}

@test "PyTorch's DDP loses a rank, and ends where a run ends that was not disturbed" {
    local undisturbed pid

    /usr/bin/python3 -c 'import importlib.util as i, sys; sys.exit(not i.find_spec("torch"))' ||
        skip "needs python3-torch"
    ddp cluster_dtrun undisturbed.pt
    [ "$RC" = 0 ]
    undisturbed=$(grep '^\[0\] step   400 of 400  loss 0\.' "$OUT")

    ddp cluster_dtrun_start disturbed.pt --max-restarts 1
    cluster_out_has 1 'step   100 of 400'
    pid=$(cluster_on 2 pgrep -of ddp.py)
    cluster_on 2 kill -KILL "$pid"
    cluster_dtrun_wait
    [ "$RC" = 0 ]
    cluster_err_has "dtrun: rank 1 (host2, pid $pid) was killed by signal 9 (SIGKILL)"
    cluster_err_has "dtrun: restarting 2 ranks"
    grep -q '^\[0\] going on after step [1-3][05]0$' "$OUT"
    [ "$(grep -c 'step    50 of 400' "$OUT")" = 1 ]
    [ "$(grep '^\[0\] step   400 of 400' "$OUT")" = "$undisturbed" ]
}

@test "TensorFlow's workers are where the hosts can be reached, each with a port of its own" {
    cluster_dtrun -H host1:2,host2 --map-by node --no-tag --env tensorflow \
        sh -c '[ $RANK = 1 ] || exit 0; printf %s "$TF_CONFIG"'
    [ "$RC" = 0 ]
    jq -e '.task == { type: "worker", index: 1 }' "$OUT"
    [ "$(jq -r '.cluster.worker[]' "$OUT" | cut -d: -f1 | paste -sd' ')" = \
        "$CLUSTER_NET.1 $CLUSTER_NET.2 $CLUSTER_NET.1" ]
    [ "$(jq -r '.cluster.worker[]' "$OUT" | sort -u | wc -l)" = 3 ]
}
