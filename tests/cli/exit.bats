#!/usr/bin/env bats
# How a job ends by itself, and what dtrun prints then.

load common

@test "a job whose ranks all exit with 0 prints nothing and exits with 0" {
    dtrun -np 4 true
    code_is 0
    err_is_empty
    out_is ""
    clean
}

@test "on a terminal a successful job prints one line at its start and one at its end" {
    type script >/dev/null || skip "script(1) is not installed"
    env "$TOKEN" timeout "$PATIENCE" script -qec "'$DTRUN' -np 2 true" "$T/typescript" </dev/null >"$OUT"
    grep -q "^dtrun: 2 ranks on 1 host: localhost 0-1" "$OUT"
    grep -q "^dtrun: done in [0-9.]* m*s" "$OUT"
    [ "$(grep -c ^dtrun: "$OUT")" = 2 ]
    clean
}

@test "when one rank fails, dtrun stops the others and exits with the failed rank's code" {
    dtrun -np 8 sh -c 'if [ $DTRUN_RANK = 3 ]; then exit 7; fi; exec sleep 600'
    code_is 7
    grep -qE '^dtrun: rank 3 \(localhost, pid [0-9]+\) exited with code 7; stopping the other 7 ranks$' "$ERR"
    err_lines 1
    clean
}

@test "the failure message quotes at most the last five lines of the failed rank" {
    dtrun -np 2 sh -c 'if [ $DTRUN_RANK = 1 ]; then for i in 1 2 3 4 5 6 7; do echo "word $i" >&2; done; exit 1; fi
        exec sleep 600'
    code_is 1
    [ "$(grep -c '^dtrun: | \[1\] word' "$ERR")" = 5 ]
    err_has "dtrun: | [1] word 3"
    err_has "dtrun: | [1] word 7"
    clean
}

@test "the failure message quotes the only rank if its output went to files alone" {
    dtrun -np 1 --output-dir files sh -c 'echo why >&2; exit 3'
    code_is 3
    err_has "dtrun: | [0] why"
    dtrun -np 1 --output-dir files --tee sh -c 'echo why >&2; exit 3'
    [ "$(grep -c why "$ERR")" = 1 ]
    dtrun -np 1 sh -c 'echo why >&2; exit 3'
    [ "$(grep -c why "$ERR")" = 1 ]
    clean
}

@test "a rank that chose a GPU it cannot see gets a hint that names the options" {
    local fails='if [ $DTRUN_RANK = 1 ]; then echo "CUDA error: invalid device ordinal" >&2
        echo "CUDA kernel errors might be asynchronous" >&2; exit 1; fi; exec sleep 600'

    dtrun -np 2 sh -c "$fails"
    code_is 1
    err_has "dtrun: hint: each rank sees one GPU"
    err_has "--virtual-local-rank"
    err_has "--gpu-bind host"
    dtrun -np 2 --gpu-bind host sh -c "$fails"
    code_is 1
    [ "$(grep -c hint: "$ERR")" = 0 ]
    clean
}

@test "a rank that lost a peer gets a hint that names the rank that had exited with 0" {
    dtrun -np 3 sh -c 'if [ $DTRUN_RANK = 1 ]; then echo $$ >pid; exit 0; fi
        [ $DTRUN_RANK = 0 ] || exec sleep 600
        until [ -s pid ] && ! kill -0 "$(cat pid)"; do sleep 0.02; done 2>/dev/null
        echo "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer" >&2; exit 4'
    code_is 4
    grep -qE '^dtrun: rank 0 \(localhost, pid [0-9]+\) exited with code 4; stopping the other rank$' "$ERR"
    err_has "dtrun: hint: rank 0 says that another rank closed its connection; before that, rank 1 had exited with code 0"
    clean
}

@test "a rank that waited too long for another gets a hint that names those that still run" {
    dtrun -np 2 sh -c '[ $DTRUN_RANK = 1 ] && exec sleep 600
        echo "RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 5000ms for recv" >&2; exit 4'
    code_is 4
    err_has 'says that it waited too long for another rank; see the output of those that still run: 1'
    clean
}

@test "the failure message quotes the reason and not the stack below it, as when PyTorch aborts after NCCL" {
    dtrun -np 2 sh -c '[ $DTRUN_RANK = 1 ] && exec sleep 600
        { echo "  what():  [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)"
            for i in 0 1 2 3 4 5 6 7; do echo "frame #$i: c10d::f() + 0x57 (0x7f94ddb56897 in libc10.so)"; done; } >&2
        kill -ABRT $$'
    code_is 134
    err_has "dtrun: | [0]   what():  [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)"
    [ "$(grep -c '^dtrun: |' "$ERR")" = 1 ]
    err_has "dtrun: hint: rank 0 says that it waited too long for another rank"
    clean
}

@test "the failure is named again at the end if other ranks then printed more than a screen" {
    for lines in 5 50; do
        dtrun -np 2 sh -c 'if [ $DTRUN_RANK = 1 ]; then until [ -e up ]; do sleep 0.02; done; exit 3; fi
            trap "seq '$lines'; exit 0" TERM; : >up; while :; do sleep 0.05; done'
        code_is 3
        [ "$(grep -c '^\[0\] ' "$OUT")" = $lines ]
        grep -qE '^dtrun: rank 1 \(localhost, pid [0-9]+\) exited with code 3; stopping the other rank$' "$ERR"
        [ $lines = 5 ] || tail -n 1 "$ERR" |
            grep -qE '^dtrun: the job has failed: rank 1 \(localhost, pid [0-9]+\) exited with code 3$'
        err_lines $((1 + lines / 50))
        rm up
    done
    clean
}

@test "the first failure sets the exit code, not a rank that fails while it is being stopped" {
    dtrun -np 6 sh -c 'case $DTRUN_RANK in 2) exit 3;; esac
        trap "exit 4" TERM; while :; do sleep 0.1; done'
    code_is 3
    err_lines 1
    clean
}

# Rank 2 dies of a signal. Ranks 0 and 1 read from it and exit as soon as it is dead.
one_of_many() {
    mkdir "$1"
    cd "$1"
    mkfifo pipe
    OUT=out ERR=err dtrun -np 3 sh -c 'if [ $DTRUN_RANK = 2 ]; then exec 3>pipe; kill -SEGV $$; fi
        cat pipe; exit 1'
    echo "$RC" >rc
}

@test "a signal precedes the exits that it causes: 139 in 60 of 60 jobs (tests/cluster runs 40 more)" {
    for i in {1..60}; do
        one_of_many "$i" &
        [ $((i % 6)) != 0 ] || wait
    done
    [ "$(cat */rc | sort | uniq -c | tr -s ' ')" = " 60 139" ]
    [ "$(grep -c "^dtrun: rank 2 (localhost, pid .* was killed by signal 11" */err | grep -c :1)" = 60 ]
    clean
}

@test "a rank that dies of SIGSEGV ends the job with 139, and the message names the signal" {
    dtrun -np 2 sh -c '[ $DTRUN_RANK = 0 ] && kill -SEGV $$; exec sleep 600'
    code_is 139
    err_has "was killed by signal 11 (SIGSEGV: Segmentation fault)"
    clean
}

@test "the message says that a core was dumped" {
    bash -c 'ulimit -c unlimited; sh -c "kill -SEGV \$\$"; :' 2>said || true
    grep -q "core dumped" said || skip "no cores are dumped here"
    (ulimit -c unlimited && dtrun -np 2 sh -c '[ $DTRUN_RANK = 0 ] && kill -SEGV $$; exec sleep 600'; code_is 139)
    err_has "was killed by signal 11 (SIGSEGV: Segmentation fault), core dumped; stopping the other rank"
    clean
}

# Makes a cgroup with little memory and sets LITTLE to its path. A process that is to run in it moves itself
# there.
make_little() {
    for LITTLE in /sys/fs/cgroup/memory/little.$$ /sys/fs/cgroup/little.$$; do
        mkdir "$LITTLE" 2>/dev/null || continue
        for limit in memory.limit_in_bytes memory.max; do
            echo 80000000 >"$LITTLE/$limit" && return
        done 2>/dev/null
        rmdir "$LITTLE"
    done
    return 1
}

in_little() { # COMMAND...
    RC=0
    env "$TOKEN" timeout "$PATIENCE" sh -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' "$LITTLE" "$@" \
        </dev/null >"$OUT" 2>"$ERR" || RC=$?
}

dies_out_of_memory() { # WRAPPER...: it is in $LITTLE when dtrun runs
    in_little "$@" "$DTRUN" -np 2 sh -c '[ $DTRUN_RANK = 1 ] && x=$(yes); exec sleep 600'
    await rmdir "$LITTLE"
    code_is 137
    grep -qE '^dtrun: rank 1 \(localhost, pid [0-9]+\) was killed by the kernel: out of memory; stopping the other rank$' "$ERR" ||
        { show; return 1; }
    clean
}

@test "when the kernel kills a rank for memory, the job ends with 137 and the message says so" {
    make_little || skip "no cgroup with a memory limit can be made here"
    dies_out_of_memory
    err_has "dtrun: localhost: memory ran out; the control group of the ranks allows 76 MiB"
}

@test "an error that follows from a kill for memory is told from other deaths" {
    make_little || skip "no cgroup with a memory limit can be made here"
    in_little "$DTRUN" -np 1 --max-restarts 1 sh -c '[ $DTRUN_GENERATION = 1 ] || exit 6; sh -c "x=\$(yes)"; exit 5'
    code_is 6
    err_has "exited with code 5 after the kernel had killed a process there: out of memory"
    grep -q 'exited with code 6$' "$ERR" || { show; false; }
    in_little "$DTRUN" -np 1 sh -c 'kill -KILL $$'
    code_is 137
    ! grep -q memory "$ERR" || false
    await rmdir "$LITTLE"
    clean
}

@test "a rank that is killed where CPU time is limited gets a line that names the limit" {
    local limit="dtrun: localhost: a process that has used 1 s of CPU time is killed here (ulimit -t)"

    for how in 'kill -XCPU $$:152' 'kill -KILL $$:137' 'sh -c "kill -KILL \$\$"; exit $?:137'; do
        (ulimit -t 1 && dtrun -np 1 sh -c "${how%:*}" && code_is "${how##*:}")
        err_has "$limit"
    done
    for how in '1 TERM' '1000 KILL'; do
        (ulimit -t "${how% *}" && dtrun -np 1 sh -c "kill -${how#* } \$\$" && [ "$RC" -gt 128 ])
        ! grep -qF "ulimit" "$ERR" || false
    done
    # What other ranks have used does not count.
    mkfifo ends
    (ulimit -t 3 && dtrun -np 2 sh -c 'case $DTRUN_RANK in
        0) exec python3 -c "while __import__(\"time\").process_time() < 2: pass" >ends ;;
        1) cat <ends; kill -KILL $$ ;; esac' && code_is 137)
    ! grep -qF "ulimit" "$ERR" || false
    clean
}

@test "a rank that dies of SIGBUS where /dev/shm is small gets a line that says so" {
    local small='mount -t tmpfs -o size=1m none /dev/shm'
    local fill='head -c 2M /dev/zero >/dev/shm/fill; kill -BUS $$'

    unshare --mount sh -c "$small" 2>/dev/null || skip "needs root, to mount a small /dev/shm"
    dtrun_mounted() {
        RC=0
        unshare --mount sh -c "$small"' && exec "$@"' sh \
            env "$TOKEN" timeout "$PATIENCE" "$DTRUN" "$@" </dev/null >"$OUT" 2>"$ERR" || RC=$?
    }
    for how in "exec sh -c '$fill'" "sh -c '$fill'; exit \$?"; do
        dtrun_mounted -np 2 sh -c "[ \$DTRUN_RANK = 1 ] || exec sleep 600; $how"
        code_is 135
        err_has "dtrun: localhost: /dev/shm has 1 MiB, of which 0 are free: a process that finds no room there is killed by SIGBUS; --shm-size gives a container more"
    done
    dtrun_mounted -np 1 sh -c 'kill -SEGV $$'
    code_is 139
    ! grep -qF /dev/shm "$ERR" || false
    clean
}

reads_log() {
    dd if=/dev/kmsg of=/dev/null iflag=nonblock bs=8192 count=1 2>/dev/null || skip "the kernel's log may not be read here"
    [ "$(readlink /proc/self/ns/pid)" = "pid:[4026531836]" ] || skip "its process ids are others here"
}

@test "dtrun finds an out-of-memory kill in the kernel's log where no cgroup counts it" {
    reads_log
    make_little || skip "no cgroup with a memory limit can be made here"
    dies_out_of_memory unshare --mount sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"' sh
}

@test "an out-of-memory kill is found in the kernel's log if the rank has moved to a cgroup of its own" {
    reads_log
    make_little || skip "no cgroup with a memory limit can be made here"
    dtrun -np 2 sh -c '[ $DTRUN_RANK = 0 ] && exec sleep 600; echo $$ >"$0/cgroup.procs"; x=$(yes)' "$LITTLE"
    await rmdir "$LITTLE"
    code_is 137
    err_has "was killed by the kernel: out of memory; stopping the other rank"
    clean
}

@test "when a rank is killed from outside, dtrun stops the others and exits with 137" {
    dtrun_start -np 3 sh -c 'echo pid $$; exec sleep 600'
    out_has 3 pid
    kill -KILL "$(sed -n 's/^\[1\] pid //p' "$OUT")"
    dtrun_wait
    code_is 137
    err_has "dtrun: rank 1 (localhost, pid "
    err_has "was killed by signal 9 (SIGKILL); stopping the other 2 ranks"
    clean
}

@test "ranks that dtrun stops do not count as failures and do not set the exit code" {
    dtrun --kill-grace 1 -np 4 sh -c 'case $DTRUN_RANK in
        0) exit 5;; 1) trap "exit 77" TERM;; 2) trap "" TERM;; esac; while :; do sleep 0.1; done'
    code_is 5
    err_lines 1
    clean
}

@test "a program that does not exist ends the job with 127 and one message that names the host" {
    dtrun -np 4 ./trian
    code_is 127
    err_has "dtrun: ./trian: No such file or directory (on localhost)"
    err_lines 1
    dtrun -np 4 no-such-program-anywhere
    code_is 127
    err_lines 1
    clean
    dtrun --transport local -H a,b,c "$T/nosuch"
    code_is 127
    err_lines 1
    # The first host that reports it ends the start. Others may have reported it by then.
    grep -qE "^dtrun: $T/nosuch: No such file or directory; --push sends programs to the hosts \(on [abc](, [abc])*\)$" "$ERR"
}

@test "a program that is in the working directory, but not in PATH, is reported with ./" {
    printf '#!/bin/sh\n' >train
    chmod +x train
    dtrun -np 2 train
    code_is 127
    err_has "dtrun: train is not in PATH, but ./train exists: No such file or directory (on localhost)"
    dtrun -np 2 "python3 train.py"
    code_is 127
    err_has 'dtrun: "python3 train.py" is one word (are there quotes around all of it?): No such file or directory (on localhost)'
    dtrun -np 2 "DATA=/my data" train
    code_is 127
    err_has 'dtrun: DATA=/my data is not a program (write -x DATA=/my data to set a variable): No such file or directory'
    err_lines 1
    clean
}

@test "a program on a file system that is mounted noexec gets a message that says so" {
    mkdir noexec
    unshare --mount mount -t tmpfs -o noexec none noexec 2>/dev/null || skip "needs root, to mount"
    RC=0
    timeout "$PATIENCE" unshare --mount sh -c 'mount -t tmpfs -o noexec none noexec && cp /bin/true noexec && exec "$@"' \
        sh env "$TOKEN" "$DTRUN" -np 2 noexec/true </dev/null >"$OUT" 2>"$ERR" || RC=$?
    code_is 126
    err_has "dtrun: noexec/true is on a file system that is mounted noexec: Permission denied (on localhost)"
    clean
}

@test "a program that cannot be executed ends the job with 126 and one message" {
    echo data >plain
    dtrun -np 4 ./plain
    code_is 126
    err_has "dtrun: ./plain: Permission denied (on localhost)"
    err_lines 1
    printf '#!/no/such/interpreter\n' >script
    chmod +x script
    dtrun -np 4 ./script
    code_is 126
    err_lines 1
    dtrun -np 2 /tmp
    code_is 126
    err_lines 1
    clean
}

@test "a working directory that does not exist is named, and no rank starts" {
    dtrun -np 4 --wdir "$T/none" sh -c "echo started >>$T/started"
    code_is 125
    err_has "dtrun: working directory $T/none: No such file or directory (on localhost)"
    err_lines 1
    [ ! -e "$T/started" ]
    clean
}

@test "a checkpoint directory that cannot be created or written is reported before any rank starts" {
    : >file
    mkdir mine
    dtrun -np 2 --checkpoint-dir mine/sub/dir touch ran
    code_is 0
    [ -e ran ]
    [ -z "$(ls -A mine)" ] # it is made when it is needed
    rm ran
    dtrun -np 4 --checkpoint-dir file/sub touch ran
    code_is 125
    err_has "dtrun: checkpoint directory $T/file/sub: Not a directory (on localhost)"
    err_lines 1
    [ ! -e ran ]
    unshare --mount true 2>/dev/null || skip "a read-only mount needs root"
    RC=0
    env "$TOKEN" timeout "$PATIENCE" unshare --mount sh -c 'mount --bind mine mine && mount -o remount,ro,bind mine &&
        exec "$@"' sh "$DTRUN" -np 2 --checkpoint-dir mine/sub/dir touch ran </dev/null >"$OUT" 2>"$ERR" || RC=$?
    code_is 125
    err_has "dtrun: checkpoint directory $T/mine/sub/dir: Read-only file system (on localhost)"
    [ ! -e ran ]
    clean
}

@test "when a rank's wrapper is killed, dtrun kills the program under it" {
    dtrun_start -np 2 sh -c 'echo pid $$; sleep 600; true'
    out_has 2 pid
    kill -KILL "$(sed -n 's/^\[0\] pid //p' "$OUT")"
    dtrun_wait
    code_is 137
    clean
}

@test "each rank finds its rank, local rank, node and device in its environment" {
    dtrun -np 3 sh -c 'echo $DTRUN_RANK $DTRUN_SIZE $DTRUN_LOCAL_RANK $DTRUN_LOCAL_SIZE \
        $DTRUN_NODE_RANK $DTRUN_NODES $RANK $WORLD_SIZE $CUDA_VISIBLE_DEVICES'
    code_is 0
    sort "$OUT" | diff - <(echo "[0] 0 3 0 3 0 1 0 3 0
[1] 1 3 1 3 0 1 1 3 1
[2] 2 3 2 3 0 1 2 3 2")
}

# Rank 0 ends. The others run until the file "end" exists.
UNEVEN='[ $DTRUN_RANK != 0 ] || exit 0; echo up; until [ -e end ]; do sleep 0.05; done; exit $((DTRUN_RANK / 2))'

@test "--exit-grace stops ranks that still run after one has exited with 0, and dtrun exits with 124" {
    dtrun --exit-grace 1 --report r.json -np 4 sh -c "$UNEVEN"
    code_is 124
    err_has "dtrun: a rank exited with 0 1 s ago (--exit-grace); stopping the ranks that are still running: 1-3"
    err_lines 1
    grep -q '"message":.*ranks still ran 1 s after the first had exited with 0' r.json
    clean
}

@test "within --exit-grace a rank may still fail, and ranks that end in time are left alone" {
    dtrun_start --exit-grace 60 -np 4 sh -c "$UNEVEN"
    out_has 3 up
    touch end
    dtrun_wait
    code_is 1
    dtrun --exit-grace 60 -np 4 true
    code_is 0
    err_is_empty
    clean
}

# A whole list would push the hint behind it out of the message in a large job.
@test "a long list of ranks that have exited or still run is shortened" {
    ten_have_ended() { [ "$(grep -c 'ended: code 0' "$ERR")" = 10 ]; }
    dtrun_start_clock --verbose -np 20 sh -c '[ $((DTRUN_RANK % 2)) = 0 ] || exec sleep 600'
    await ten_have_ended
    expire_timer 60
    await has_line "a rank exited" "$ERR"
    err_has "exited: 0,2,4,6,8,10,12,14,...,18; still running: 1,3,5,7,9,11,13,15,...,19 (--exit-grace SECONDS ends such a job)"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    clean
}

@test "a minute after the first rank has exited with 0, dtrun reports once which ranks have exited" {
    dtrun_start_clock -np 4 sh -c "$UNEVEN"
    out_has 3 up # the hosts' minute for their start is no longer looked at
    expire_timer 60
    await has_line "a rank exited" "$ERR"
    err_has "dtrun: a rank exited with 0 60 s ago; exited: 0; still running: 1-3 (--exit-grace SECONDS ends such a job)"
    err_lines 1
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    # Ranks that use libdtrun do not wait for a rank that has ended, so the next limit to expire is --timeout.
    rm 60000
    dtrun_start_clock --timeout 600 -np 2 sh -c '"$0"; echo up; [ $DTRUN_RANK = 0 ] || exec sleep 600
        until [ -e end ]; do sleep 0.05; done' "$RANK/steps"
    out_has 2 up
    rm 60000.started
    touch end
    await_timer 60
    expire_timer 60
    expire_timer 600
    dtrun_wait
    code_is 124
    err_lines 1
    err_has "the time limit of 600 s is over"
    clean
}

@test "--report writes how the job ended, also when it failed" {
    type jq >/dev/null || skip "jq is not installed"
    dtrun -np 2 --report r.json true
    code_is 0
    [ "$(jq -c '[.np, .exit_code, .cause, .restarts, (.ranks | map(.exit_code))]' r.json)" = '[2,0,null,0,[0,0]]' ]
    dtrun -np 2 --report r.json sh -c 'exit $((DTRUN_RANK * 6))'
    code_is 6
    [ "$(jq -c '[.exit_code, .cause.rank, .cause.host, .cause.code, .cause.signal, .ranks[1].exit_code]' r.json)" = '[6,1,"localhost",6,null,6]' ]
    dtrun -np 2 --report r.json ./none
    code_is 127
    [ "$(jq -r .cause.message r.json)" = "./none: No such file or directory" ]
    [ "$(ls)" = "err
out
r.json" ]
}

@test "the report is valid UTF-8 even if the command line is not" {
    dtrun -np 1 --report r.json sh -c 'exit 3' $'caf\xe9'
    code_is 3
    python3 -c 'import json; assert json.load(open("r.json", encoding="utf-8"))["command"][3] == "caf\ufffd"'
    dtrun -np 1 --report r.json ./$'caf\xe9'
    code_is 127
    python3 -c 'import json; assert json.load(open("r.json", encoding="utf-8"))["cause"]["message"].startswith("./caf\ufffd: ")'
}

@test "a report file that cannot be written is reported before any rank starts" {
    for path in "$T/none/r.json" "$T/dir" "$T/$(printf '%0256d' 1)"; do
        mkdir -p "$T/dir"
        dtrun -np 1 --report "$path" touch ran
        code_is 2
        err_has "dtrun: --report $path: "
        [ ! -e ran ]
    done
}

@test "a report does not replace what a link of another user names" {
    [ "$(id -u)" = 0 ] || skip "needs root, to make another user's link"
    echo kept >mine
    ln -s mine link
    chown -h 65534 link
    dtrun --report link -np 1 touch started
    code_is 2
    err_has "dtrun: --report link: it is a symbolic link of another user"
    [ ! -e started ]
    dtrun --report later -np 1 sh -c 'ln -s mine later && chown -h 65534 later'
    code_is 125
    err_has "dtrun: --report later: it is a symbolic link of another user"
    [ "$(cat mine)" = kept ]
    clean
}

@test "a report that cannot be written at the end fails a successful job and keeps a failed job's code" {
    dtrun -np 1 --report /dev/full true
    code_is 125
    err_has "dtrun: --report /dev/full: No space left on device"
    dtrun -np 1 --report /dev/full sh -c 'exit 7'
    code_is 7
}

@test "a path that is longer than hosts allow is refused" {
    long=$(printf 'a/%.0s' {1..3000})
    dtrun --wdir "$long" -np 1 true
    code_is 2
    err_has "dtrun: working directory $T/a/a/"
    err_has "...: the path is longer than 4000 bytes"
    dtrun --checkpoint-dir "$long" -np 1 true
    code_is 2
    err_has "dtrun: --checkpoint-dir $T/a/a/"
}

@test "where /dev/null is missing, the message names it" {
    unshare --mount true 2>/dev/null || skip "an empty /dev needs root"
    RC=0
    timeout "$PATIENCE" unshare --mount sh -c 'mount -t tmpfs none /dev && exec "$@"' \
        sh env "$TOKEN" "$DTRUN" -np 2 true </dev/null >"$OUT" 2>"$ERR" || RC=$?
    code_is 125
    err_lines 1
    err_has "dtrun: /dev/null: No such file or directory (on localhost)"
    clean
}

@test "a file that is not a program ends the job with 126; ranks need no output, home or large stack" {
    : >empty
    chmod +x empty
    mkdir dir
    ln -s loop2 loop1
    ln -s loop1 loop2
    for case in 'empty: is neither a program for this machine nor a script' 'dir: Is a directory' \
        'loop1: Too many levels of symbolic links'; do
        dtrun -np 3 "./${case%%:*}"
        code_is 126
        err_lines 1
        err_has "${case#*: }"
    done
    for how in 'exec >&- 2>&-; exit 3:3' 'setsid sleep 600 & exit 0:0'; do
        dtrun -np 2 sh -c "${how%:*}"
        code_is "${how##*:}"
        clean
    done
    for with in "-u HOME" "HOME=/nonexistent" "HOME=$T/empty TMPDIR=/nonexistent"; do
        RC=0
        env $with "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 1 echo ok </dev/null >"$OUT" 2>"$ERR" || RC=$?
        code_is 0
        out_is "ok
"
    done
    (ulimit -s 256 && dtrun -np 2 true && code_is 0)
    printf "x = A=%090000d\nx = B=%090000d\n" 0 0 >config # more than the 128 KiB that this limit allows
    (ulimit -s 256 && dtrun --config config -np 2 true && code_is 126)
    err_has "its arguments and environment exceed the limit of the host (ulimit -s); --unset removes variables: Arg"
    clean
}

@test "--report never replaces a device, a FIFO, a symbolic link or dtrun's own output" {
    type jq >/dev/null || skip "jq is not installed"
    mkfifo fifo
    dtrun -np 1 --report fifo true # nobody reads
    code_is 125
    err_lines 1
    exec 7<>fifo 8<fifo 7>&-
    dtrun -np 1 --report fifo true
    timeout "$PATIENCE" cat <&8 >got
    exec 8<&-
    [ -p fifo ]
    [ "$(jq .exit_code got)" = 0 ]
    : >r.json
    ln -s r.json link
    dtrun -np 1 --report link true
    dtrun -np 1 --report link true
    dtrun -np 1 --report "$T/link" sh -c 'exit 3'
    [ -L link ]
    dtrun -np 1 --report /dev/stdout echo hello
    [ "$(head -1 "$OUT")" = hello ]
    [ "$(sed 1d "$OUT" | jq .exit_code)" = 0 ]
    [ "$(id -u)" = 0 ] && mknod null c 1 3 && : >null || skip "devices cannot be made here"
    dtrun -np 1 --report null true
    code_is 0
    [ -c null ]
}

@test "--report /dev/stdout into a file is not overwritten by what the shell writes next" {
    {
        env "$TOKEN" timeout "$PATIENCE" "$DTRUN" --report /dev/stdout echo hello
        echo after
    } >both
    [ "$(head -1 both)" = hello ]
    [ "$(tail -1 both)" = after ]
    python3 -c 'import json, sys; json.loads("".join(open("both").readlines()[1:-1]))'
    clean
}

@test "a rank that exits with 75 counts as preempted: it has not failed and is not restarted" {
    dtrun --max-restarts 3 --no-tag -np 3 sh -c '
        trap "exit 0" TERM; echo begun; [ "$RANK" != 1 ] || exit 75; while :; do sleep 0.05; done'
    code_is 75
    [ "$(grep -c begun "$OUT")" -le 3 ]
    err_lines 1
    grep -qE '^dtrun: preempted: rank 1 \(localhost, pid [0-9]+\) exited with code 75; stopping the other 2 ranks$' "$ERR" ||
        { show; return 1; }
    clean
}

@test "if ranks exit with 75 after dtrun was told to end, dtrun exits with 75, too" {
    dtrun_start --kill-grace 600 -np 2 sh -c 'trap "exit 75" TERM; echo ready; while :; do sleep 0.05; done'
    await eval '[ "$(grep -c ready "$OUT")" = 2 ]'
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 75
    clean
}
