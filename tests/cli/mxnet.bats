#!/usr/bin/env bats
# With --env mxnet the ranks are workers, and a scheduler and servers run beside them. tests/rank/pslite acts
# as a program that imports MXNet.

load common

# pid_of 'server 0': prints the process ID that a role has printed. Lines of other roles may precede it.
pid_of() {
    out_has 1 "^\[$1\] .*pid " >&2
    sed -n "s/^\[$1\] .*pid //p" "$OUT" | tail -1
}

# Two workers and two servers have found each other and work until they are killed.
start_forever() {
    dtrun_start -np 2 --env mxnet "$@" "$RANK/pslite" 0
    out_has 2 '^\[[01]\] sum 6$'
}

@test "workers, servers and a scheduler find each other, work, and end by themselves" {
    dtrun -np 2 --env mxnet "$RANK/pslite"
    code_is 0
    err_is_empty
    [ "$(sed 's/ pid.*//' "$OUT" | sort | paste -sd,)" = \
        "[0] sum 6,[0] worker,[1] sum 6,[1] worker,[scheduler] 2 workers and 2 servers have met,[scheduler] scheduler,[server 0] server,[server 1] server" ]
    dtrun -np 1 --env mxnet --num-servers 3 --no-tag "$RANK/pslite"
    code_is 0
    [ "$(grep -c '^server pid' "$OUT")" = 3 ]
    grep -qx 'sum 3' "$OUT"
    clean
}

@test "servers and the scheduler get no rank, no standard input and no socket to the agent" {
    echo words >in
    STDIN=in dtrun -np 2 --env mxnet,mpi --num-servers 1 --no-tag --stdin all sh -c \
        'cat; echo "$DMLC_ROLE ${RANK-none} ${DMLC_WORKER_ID-none} ${OMPI_COMM_WORLD_RANK-none} ${DTRUN_AGENT_FD-none}"'
    code_is 0
    [ "$(sort "$OUT" | paste -sd,)" = \
        "scheduler none none none none,server none none none none,words,words,worker 0 0 0 3,worker 1 1 1 3" ] ||
        { show; return 1; }
    clean
}

@test "a server that is killed ends the job, and the message names it" {
    start_forever --report report
    pid=$(pid_of 'server 1')
    kill -KILL "$pid"
    dtrun_wait
    code_is 137
    err_lines 1
    err_has "dtrun: server 1 (localhost, pid $pid) was killed by signal 9 (SIGKILL); stopping the 2 ranks"
    jq -e '.cause | .rank == null and .role == "server 1" and .signal == 9 and .host == "localhost"' report
    jq -e '[.auxiliaries[].role] == ["scheduler", "server 0", "server 1"]' report
    jq -e --argjson pid "$pid" '.auxiliaries[2].pid == $pid and .auxiliaries[2].exit_code == 137' report
    [ "$(jq '.ranks | length' report)" = 2 ]
    clean
}

@test "a scheduler that fails ends the job with its code, and the message quotes it" {
    dtrun -np 2 --env mxnet sh -c '[ $DMLC_ROLE = scheduler ] || exec sleep 600; echo no >&2; exit 7'
    code_is 7
    err_has "dtrun: scheduler (localhost, pid "
    err_has ") exited with code 7; stopping the 2 ranks"
    err_has "dtrun: | [scheduler] no"
    clean
}

@test "ranks that use libdtrun learn which server died" {
    try ranks_learn_of_server 1 1 1 1 1
}

# They have a second.
ranks_learn_of_server() { # how many servers there are
    dtrun_start -np 2 --env mxnet --num-servers "$1" sh -c \
        '[ $DMLC_ROLE = worker ] && exec "$0" hang; echo pid $$; exec sleep 600' "$RANK/steps"
    out_has 1 '^\[server 0\] pid'
    out_has 1 '^\[0\] .*4'
    kill -KILL "$(pid_of 'server 0')"
    dtrun_wait
    code_is 137
    grep -qE '^\[0\] rank 0 \(.*\): .*: server 0 died$' "$ERR" || { show; return 1; }
    clean
}

@test "when a worker is killed no process is left" {
    start_forever
    pid=$(pid_of 0)
    kill -KILL "$pid"
    dtrun_wait
    code_is 137
    err_has "dtrun: rank 0 (localhost, pid $pid) was killed by signal 9 (SIGKILL); stopping the other rank"
    clean
}

@test "--max-restarts restarts all roles, whichever of them was killed" {
    for who in scheduler 'server 0' 1; do
        start_forever --max-restarts 1
        kill -KILL "$(pid_of "$who")"
        dtrun_wait
        code_is 0
        err_has "dtrun: restarting 2 ranks"
        [ "$(grep -c '^\[scheduler\] scheduler pid' "$OUT")" = 2 ]
        [ "$(grep -c '^\[server [01]\] server pid' "$OUT")" = 4 ]
        [ "$(grep -c ' sum 6$' "$OUT")" = 4 ]
        clean
    done
}

@test "--timeout and Ctrl-C end auxiliaries, too" {
    dtrun_start_clock --timeout 600 -np 2 --env mxnet "$RANK/pslite" 0
    out_has 2 '^\[[01]\] sum 6$'
    expire_timer 600
    dtrun_wait
    code_is 124
    clean
    start_forever
    kill -INT "$BACKGROUND"
    dtrun_wait
    code_is 130
    err_has "dtrun: interrupted by SIGINT; stopping 2 ranks"
    clean
}

@test "Ctrl-C when only auxiliaries are left ends them without reporting each" {
    dtrun_start -np 1 --env mxnet "$RANK/pslite" 1 stay
    out_has 1 '^\[0\] worker pid'
    await gone "$(pid_of 0)"
    kill -INT "$BACKGROUND"
    dtrun_wait
    code_is 130
    err_lines 1
    err_has "dtrun: interrupted by SIGINT"
    clean
}

@test "SIGUSR1 and SIGUSR2 reach ranks only" {
    dtrun_start -np 2 --env mxnet --num-servers 1 sh -c \
        '[ $DMLC_ROLE = worker ] || exec sleep 600
        trap "echo got" USR1 USR2; while :; do sleep 600 & echo here; wait; done'
    out_has 2 '^\[[01]\] here'
    kill -USR1 "$BACKGROUND"
    out_has 2 '^\[[01]\] got'
    kill -USR2 "$BACKGROUND"
    out_has 4 '^\[[01]\] got'
    kill -INT "$BACKGROUND"
    dtrun_wait
    code_is 130
    err_lines 1
    clean
}

@test "auxiliaries that outlive the ranks are stopped" {
    dtrun -np 1 --env mxnet "$RANK/pslite" 1 stay
    code_is 0
    err_lines 1
    err_has "stopping what still runs beside them: server 0"
    clean
}

@test "a time limit that ends only auxiliaries is no failure" {
    dtrun_start_clock -np 1 --timeout 600 --env mxnet "$RANK/pslite" 1 stay
    await_timer 5 # starts when all ranks have ended
    expire_timer 600
    dtrun_wait
    code_is 0
    err_lines 1
    err_has "the time limit of 600 s is over, and all ranks have ended; stopping what still runs beside them: server 0"
    clean
}

@test "a time limit that expires while auxiliaries are being stopped gives them no more time" {
    dtrun_start_clock -np 1 --env mxnet --num-servers 1 --timeout 600 --kill-grace 4 sh -c \
        '[ $DMLC_ROLE = server ] || exit 0; trap "" TERM; echo up; while :; do sleep 0.1; done'
    out_has 1 up
    await_timer 5
    expire_timer 5
    await has_line "stopping what" "$ERR"
    expire_timer 600
    dtrun_wait
    code_is 0
    err_lines 1
    err_has "all ranks ended 5 s ago; stopping what still runs beside them: server 0"
    clean
}

@test "output of auxiliaries after the end of the ranks is complete" {
    dtrun -np 1 --env mxnet sh -c '[ $DMLC_ROLE = worker ] || { seq 20000; printf last; }'
    code_is 0
    out_has 2 '^\[[a-z0-9 ]*\] last'
    out_has 2 '^\[[a-z0-9 ]*\] 20000'
    [ "$(wc -l <"$OUT")" = 40002 ]
    clean
}

@test "an auxiliary that fails while the ranks end does not fail the job" {
    dtrun -np 2 --env mxnet --num-servers 1 "$RANK/pslite" 1 fall
    code_is 0
    err_lines 1
    err_has ") exited with code 3; all ranks have exited with 0, so this is not a failure"
    clean
}

@test "an agent that is lost when only auxiliaries are left does not fail the job" {
    dtrun_start -np 1 --env mxnet --max-restarts 1 --verbose "$RANK/pslite" 1 stay
    await grep -q "rank 0 ended: code 0" "$ERR"
    kill -KILL "$(ps -o ppid= -p "$(pid_of 'server 0')" | tr -d ' ')"
    dtrun_wait
    code_is 0
    err_has "; all ranks have exited with 0, so this is not a failure"
    ! grep -q restarting "$ERR" || { show; false; }
    becomes_clean
}

@test "after kill -9 of dtrun no auxiliary is left" {
    start_forever
    kill -KILL "$BACKGROUND"
    wait "$BACKGROUND" || true
    BACKGROUND=
    becomes_clean
}

@test "--output-dir has a file of each auxiliary" {
    dtrun -np 2 --env mxnet --num-servers 1 --output-dir logs "$RANK/pslite"
    code_is 0
    out_is ""
    [ "$(cd logs && echo *)" = "rank.00000.err rank.00000.out rank.00001.err rank.00001.out scheduler.err scheduler.out server.00000.err server.00000.out" ]
    grep -qx '2 workers and 1 servers have met' logs/scheduler.out
    grep -q '^server pid' logs/server.00000.out
    dtrun -np 1 --env mxnet --output-dir 'o/%h-%r' "$RANK/pslite"
    [ "$(cd o && echo *.out)" = "localhost-00000.out localhost-scheduler.out localhost-server.00000.out" ]
    clean
}

@test "--dry-run prints where auxiliaries will run" {
    dtrun -np 3 -H a:2,b --env mxnet --dry-run train
    code_is 0
    grep -qx 'beside the ranks: scheduler on a, server 0 on a, server 1 on b, server 2 on a' "$OUT"
    dtrun -np 3 -H a:2,b --env mxnet --num-servers 1 --dry-run --json train
    jq -e '.auxiliaries == [{ role: "scheduler", host: "a" }, { role: "server 0", host: "a" }]' "$OUT"
    dtrun -np 3 -H a:2,b --dry-run --json train
    jq -e 'has("auxiliaries") | not' "$OUT"
}

@test "a program that cannot be run is reported once" {
    dtrun -np 2 --env mxnet ./none
    code_is 127
    err_lines 1
    clean
}
