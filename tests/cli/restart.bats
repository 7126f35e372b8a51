#!/usr/bin/env bats
# How dtrun restarts a job after a failure.

load common

@test "--max-restarts 1 allows one restart, and a second death ends the job with its code" {
    dtrun --max-restarts 1 -np 3 sh -c 'echo run $DTRUN_RESTART_COUNT $DTRUN_GENERATION
        [ $DTRUN_RANK = 1 ] && exit $((5 + DTRUN_RESTART_COUNT)); exec sleep 600'
    code_is 6
    [ "$(grep -c 'run 0 1' "$OUT")" -le 3 ]
    grep -q 'run 1 2' "$OUT"
    err_has "exited with code 5"
    grep -qxF "dtrun: restarting 3 ranks" "$ERR" || { show; false; }
    err_has "dtrun: all ranks run again after "
    err_has "exited with code 6; stopping the other 2 ranks"
    err_has "dtrun: giving up after 1 restart (--max-restarts 1)"
    clean
}

@test "a job that recovers exits with 0 and reports its restarts" {
    dtrun --max-restarts 3 --report r.json -np 2 sh -c '[ $DTRUN_RESTART_COUNT = 0 ] || exit 0
        [ $DTRUN_RANK = 0 ] && kill -KILL $$; exec sleep 600'
    code_is 0
    err_has "was killed by signal 9 (SIGKILL)"
    grep -qE '^dtrun: done in .*; restarted after 1 failure, without ranks for [0-9.]+ m?s$' "$ERR" ||
        { show; false; }
    report_has '[.exit_code, .restarts, .cause, .recoveries[0].generation, .recoveries[0].mode, .recoveries[0].source]' '[0,1,null,2,"restart","none"]'
    clean
}

@test "without --max-restarts and without a checkpoint a failed job is not restarted" {
    dtrun -np 2 sh -c 'echo run; exit 3'
    code_is 3
    ! grep -q restarting "$ERR" || false
    clean
}

@test "a lost agent is brought back on the same host" {
    dtrun_start --max-restarts 2 -np 2 sh -c '[ $DTRUN_RESTART_COUNT = 0 ] || { echo again; exit 0; }
        echo ready; exec sleep 600'
    out_has 2 ready
    kill -KILL "$(ps -o pid= --ppid "$BACKGROUND")"
    dtrun_wait
    code_is 0
    [ "$(grep -c again "$OUT")" = 2 ]
    err_has "its ranks 0-1 are taken as lost"
    clean
}

@test "restarts without progress wait longer each time, and dtrun says how long" {
    dtrun --max-restarts 2 --report r.json -np 2 sh -c '[ $DTRUN_RESTART_COUNT = 2 ] || exit 5'
    code_is 0
    grep -qxF "dtrun: restarting 2 ranks" "$ERR" || { show; false; }
    err_has "dtrun: restarting 2 ranks in 1 s (restart 2 without progress)"
    err_has "restarted after 2 failures, waited 1 s before restarts"
    report_has '[.recoveries[].delay_seconds]' '[0,1]'
    clean
}

@test "a signal ends the wait before a restart at once" {
    try ends_wait "4 s (restart 4" "16 s (restart 6"
}

ends_wait() { # SECONDS "s (restart" NUMBER
    dtrun_start --max-restarts 100 -np 2 sh -c 'echo run $DTRUN_RESTART_COUNT; exit 1'
    await grep -q "in $1 without progress)" "$ERR"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    ! grep -q "run ${1##* }" "$OUT" || { show; false; }
    clean
}

@test "a signal for ranks that comes before a restart is reported" {
    dtrun_start --max-restarts 100 -np 2 sh -c 'exit 1'
    await grep -q "in 8 s (restart 5 without progress)" "$ERR"
    kill -USR1 "$BACKGROUND"
    await grep -qx "dtrun: SIGUSR1 reaches no rank, because none runs now" "$ERR"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    clean
}

@test "after a restart MASTER_PORT is one to which no connection lingers" {
    dtrun --max-restarts 2 --no-tag -np 1 sh -c 'echo "port $MASTER_PORT"; exit $((DTRUN_RESTART_COUNT < 2))'
    code_is 0
    [ "$(grep '^port [1-9]' "$OUT" | sort -u | wc -l)" = 3 ]
}

@test "a host whose ranks keep failing is left out, and the job succeeds on the other" {
    make_on_list
    dtrun --rsh './on-list %h' --max-restarts 5 --report r.json --no-tag -H a:1,b:1 \
        sh -c '[ $DTRUN_HOSTID != b ] || exit 5; [ $DTRUN_RESTART_COUNT -lt 3 ] || exit 0; exec sleep 600'
    code_is 0
    grep -qxF "dtrun: continuing without b for 60 s at least, since failures begin there (3 in a row without progress): 2 ranks on the 1 slot of 1 host, devices are shared" "$ERR" ||
        { show; false; }
    grep -qE '^dtrun: done in .*; restarted after 3 failures, waited 3 s before restarts, left out b, ' "$ERR" ||
        { show; false; }
    report_has '[.restarts, .left_out, [.ranks[].host]]' '[3,[{"host":"b","from_generation":4,"until_generation":null}],["a","a"]]'
    clean
}

@test "a host comes back if its rank fails elsewhere, too, and no other host is left out" {
    make_on_list
    dtrun --rsh './on-list %h' --max-restarts 4 --report r.json --no-tag -H a:1,b:1 \
        sh -c '[ $RANK != 1 ] || exit 5; exec sleep 600'
    code_is 5
    grep -qxF "dtrun: continuing with b again, since rank 1 fails elsewhere, too: 2 ranks on the 2 slots of 2 hosts" "$ERR" ||
        { show; false; }
    [ "$(grep -c 'continuing' "$ERR")" = 2 ] || { show; false; }
    report_has .left_out '[{"host":"b","from_generation":4,"until_generation":5}]'
    clean
}

@test "neither the only host nor any host under --on-host-loss stop is left out" {
    make_on_list
    for hosts in "-H b:2" "--on-host-loss stop -H a:1,b:1"; do
        dtrun --rsh './on-list %h' --max-restarts 3 $hosts sh -c '[ $RANK != 1 ] || exit 5; exec sleep 600'
        code_is 5
        err_has "giving up after 3 restarts (--max-restarts 3)"
        ! grep -q 'continuing' "$ERR" || { show; false; }
        clean
    done
}

# A host is dark while the file "dark" exists.
make_darkable() {
    cat >darkable <<'END'
#!/bin/sh
[ ! -e dark ] || { echo no route; exit 255; } >&2
export DTRUN_HOSTID=$1
shift
exec "$@"
END
    chmod +x darkable
}

no_child_runs() { ! pgrep -r R,S,D -P "$BACKGROUND" >/dev/null; }

@test "if no host is left, dtrun tries lost hosts again, and the job goes on when one is back" {
    make_darkable
    dtrun_start_clock --verbose --max-restarts 1 --rsh './darkable %h' -H a:2,b:2 sh -c 'echo run $DTRUN_GENERATION
        [ $DTRUN_GENERATION = 1 ] || exit 0
        exec sleep 600'
    out_has 4 'run 1'
    : >dark
    # After the loss of one host, dtrun would go on with the other. So it sees both losses at once.
    kill -STOP "$BACKGROUND"
    pkill -KILL -P "$BACKGROUND"
    await no_child_runs
    kill -CONT "$BACKGROUND"
    await grep -qxF "dtrun: a, b cannot be used now, and no host is left; trying again for 10 minutes" "$ERR" ||
        { show; false; }
    # the reason is told once, also with --verbose
    [ "$(grep -cxF "dtrun: a, b: agent start: ./darkable, or the command there, exited with code 255; its last line was: no route" "$ERR")" = 1 ]
    await_timer 10
    rm dark "$T/10000.started"
    expire_timer 10
    dtrun_wait
    code_is 0
    out_has 4 'run 2'
    err_has "dtrun: all ranks run again after "
    [ "$(grep -c 'trying again' "$ERR")" = 1 ]
    clean
}

@test "a signal ends the wait until a host comes back" {
    make_darkable
    dtrun_start --max-restarts 1 --rsh './darkable %h' -H a:2 sh -c 'cd "$1"
        echo run
        while [ ! -e dark ]; do sleep 0.1; done
        kill -KILL $PPID; exec sleep 600' sh "$PWD"
    out_has 2 run
    : >dark
    await grep -qF "trying again for 10 minutes" "$ERR"
    kill -INT "$BACKGROUND"
    dtrun_wait
    code_is 130
    clean
}

@test "a signal ends a job that is recovering" {
    dtrun_start --max-restarts 100 -np 2 sh -c 'echo run; exit 1'
    out_has 6 run
    kill -TERM "$BACKGROUND"
    dtrun_wait
    clean
}

@test "a checkpoint directory that holds checkpoints needs --resume or --fresh" {
    mkdir -p ckpt/step_10
    dtrun --checkpoint-dir ckpt -np 1 true
    code_is 2
    err_has "dtrun: --checkpoint-dir ckpt holds checkpoints of an earlier job: --resume continues from the newest, --fresh starts afresh"
    for how in --resume --fresh; do
        dtrun --checkpoint-dir ckpt $how -np 1 true
        code_is 0
    done
    mkdir -p empty replaced/.replaced-step_000000000010
    dtrun --checkpoint-dir empty -np 1 true
    code_is 0
    dtrun --checkpoint-dir replaced -np 1 true # a job that ended while it replaced a checkpoint leaves this
    code_is 2
    err_has "dtrun: --checkpoint-dir replaced holds checkpoints of an earlier job"
}
