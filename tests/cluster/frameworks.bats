#!/usr/bin/env bats
# Programs of other frameworks, as users have them, on hosts reached by SSH.

load lib

setup_file() { cluster_up 2; }

PATIENCE=300 # PyTorch loads slowly, and its threads slow each other down

setup() { cluster_require; }

teardown() { cluster_await_quiet; }

teardown_file() { cluster_down; }

# With HOLD=1 rank 0 waits in its third checkpoint, until it is restarted.
HOLD='import os, runpy, sys, time
replace, saves = os.replace, 0
def hold(*names):
    global saves
    saves += 1
    while saves == 3 and os.environ.get("HOLD") and os.environ["DTRUN_RESTART_COUNT"] == "0":
        time.sleep(0.1)
    replace(*names)
os.replace = hold
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")'

# Trains on both hosts. Debian's python3-torch belongs to Debian's python3.
ddp() { # FUNCTION CHECKPOINT [dtrun option...]
    local run=$1 checkpoint=$2

    shift 2
    # The hosts share their processors. Threads of both ranks would spin while they wait for each other.
    "$run" -H host1,host2 -x OMP_NUM_THREADS=1 -x USE_LIBUV=0 "$@" \
        /usr/bin/python3 hold.py "$DTRUN_SOURCE/examples/ddp.py" --steps 400 --every 50 --checkpoint "$checkpoint"
}

@test "PyTorch's DDP loses a rank and ends with the result of an undisturbed run" {
    local undisturbed pid

    /usr/bin/python3 -c 'import importlib.util as i, sys; sys.exit(not i.find_spec("torch"))' ||
        skip "needs python3-torch"
    echo "$HOLD" >"$CLUSTER_SHARED/hold.py"
    ddp cluster_dtrun undisturbed.pt
    [ "$RC" = 0 ]
    undisturbed=$(grep '^\[0\] step   400 of 400  loss 0\.' "$OUT")

    ddp cluster_dtrun_start disturbed.pt -x HOLD=1 --max-restarts 1
    cluster_out_has 1 'step   100 of 400'
    pid=$(cluster_on 2 pgrep -of ddp.py)
    cluster_on 2 kill -KILL "$pid"
    cluster_dtrun_wait
    [ "$RC" = 0 ]
    cluster_err_has "dtrun: rank 1 (host2, pid $pid) was killed by signal 9 (SIGKILL)"
    cluster_err_has "dtrun: restarting 2 ranks"
    grep -q '^\[0\] continuing after step 100$' "$OUT"
    [ "$(grep -c 'step    50 of 400' "$OUT")" = 1 ]
    [ "$(grep '^\[0\] step   400 of 400' "$OUT")" = "$undisturbed" ]
}

@test "TF_CONFIG gives TensorFlow's workers reachable addresses, each with a port of its own" {
    cluster_dtrun -H host1:2,host2 --map-by node --no-tag --env tensorflow \
        sh -c '[ $RANK = 1 ] || exit 0; printf %s "$TF_CONFIG"'
    [ "$RC" = 0 ]
    jq -e '.task == { type: "worker", index: 1 }' "$OUT"
    [ "$(jq -r '.cluster.worker[]' "$OUT" | cut -d: -f1 | paste -sd' ')" = \
        "$CLUSTER_NET.1 $CLUSTER_NET.2 $CLUSTER_NET.1" ]
    [ "$(jq -r '.cluster.worker[]' "$OUT" | sort -u | wc -l)" = 3 ]
}

@test "MXNet's scheduler, servers and workers find each other across hosts" {
    cluster_dtrun -H host1,host2 --env mxnet pslite
    [ "$RC" = 0 ]
    grep -qx '\[scheduler\] 2 workers and 2 servers have met' "$OUT"
    [ "$(grep -cx '\[[01]\] sum 6' "$OUT")" = 2 ]
    cluster_dtrun -H host1,host2 --env mxnet --num-servers 3 --no-tag \
        sh -c 'echo $DMLC_ROLE $DMLC_PS_ROOT_URI $DMLC_NODE_HOST $DMLC_INTERFACE'
    [ "$RC" = 0 ]
    diff - <(sort "$OUT") <<END
scheduler $CLUSTER_NET.1 $CLUSTER_NET.1 eth0
server $CLUSTER_NET.1 $CLUSTER_NET.1 eth0
server $CLUSTER_NET.1 $CLUSTER_NET.1 eth0
server $CLUSTER_NET.1 $CLUSTER_NET.2 eth0
worker $CLUSTER_NET.1 $CLUSTER_NET.1 eth0
worker $CLUSTER_NET.1 $CLUSTER_NET.2 eth0
END
}

@test "an MXNet server that is killed on another host restarts all roles, or ends the job" {
    local pid

    cluster_dtrun_start -H host1,host2 --env mxnet --max-restarts 1 pslite 0
    cluster_out_has 2 'sum 6'
    pid=$(sed -n 's/^\[server 1\] server pid //p' "$OUT")
    cluster_on 2 kill -KILL "$pid"
    cluster_dtrun_wait
    [ "$RC" = 0 ]
    cluster_err_has "dtrun: server 1 (host2, pid $pid) was killed by signal 9 (SIGKILL)"
    [ "$(grep -c 'sum 6' "$OUT")" = 4 ]

    cluster_dtrun_start -H host1,host2 --env mxnet pslite 0
    cluster_out_has 2 'sum 6'
    cluster_on 2 kill -KILL "$(sed -n 's/^\[server 1\] server pid //p' "$OUT")"
    cluster_dtrun_wait
    [ "$RC" = 137 ]
}

@test "MXNet's servers on a lost host move together with its ranks" {
    start() {
        cluster_dtrun_start -H host1,host2 --env mxnet --max-restarts 1 --heartbeat 2 pslite 0
        cluster_out_has 2 'sum 6'
    }
    lose() { cluster_expect_loss 2 && cluster_power_off 2; }
    mend() { rm "$CLUSTER_HOME/.ssh/config" && cluster_power_on 2; }
    cluster_loses 2 start lose mend
    [ "$RC" = 0 ]
    cluster_err_has "dtrun: continuing without host2: 2 ranks on the 1 slot of 1 host"
    [ "$(grep -c '^\[server [01]\] server pid' "$OUT")" = 4 ]
    [ "$(grep -c 'sum 6' "$OUT")" = 4 ]
}
