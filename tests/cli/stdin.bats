#!/usr/bin/env bats
# Standard input reaches rank 0 no faster than rank 0 reads it.

load common

@test "a large file reaches a rank 0 that starts reading late, and dtrun's memory stays bounded" {
    head -c 100M /dev/zero | tr '\0' 'x' >big
    # Rank 0 waits until the file "go" exists.
    STDIN=big dtrun_start -np 2 sh -c '[ $DTRUN_RANK = 0 ] || exit 0
        echo ready; until [ -e go ]; do sleep 0.05; done; cksum'
    out_has 1 ready
    peak="$(awk '/VmRSS/ { print $2 }' "/proc/$BACKGROUND/status")"
    [ "$peak" -lt 40000 ] || { echo "dtrun has $peak KiB"; false; }
    touch go
    dtrun_wait
    code_is 0
    [ "$(sed -n 's/^\[0\] \([0-9]* [0-9]*\).*/\1/p' "$OUT")" = "$(cksum <big | cut -d' ' -f1,2)" ]
    clean
}

@test "standard input from a pipe arrives byte for byte" {
    head -c 3M /dev/urandom >big
    RC=0
    cat big | env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 1 cat >"$OUT" 2>"$ERR" || RC=$?
    code_is 0
    cmp big "$OUT"
    clean
}

# The rank holds the lock of its pipe while it waits for the terminal, which the agent reads. This is how cat of the
# uutils works.
@test "a rank may splice standard input to its terminal" {
    python3 -c 'import os; os.splice' 2>/dev/null || skip "needs os.splice of python3"
    yes "some line" | head -c 5M >big
    STDIN=big dtrun --unbuffered -np 1 python3 -c 'import os
while os.splice(0, 1, 65536): pass'
    code_is 0
    cmp big "$OUT"
    clean
}

@test "standard input that no rank reads does not hold up the job" {
    head -c 10M /dev/zero >big
    STDIN=big dtrun -np 2 true
    code_is 0
    mkfifo never
    exec 7<>never
    STDIN=/dev/fd/7 dtrun -np 2 true
    exec 7>&-
    code_is 0
    clean
}

@test "a rank may stop reading standard input without ending the job" {
    head -c 10M /dev/zero >big
    STDIN=big dtrun -np 1 sh -c 'head -c 100000 | wc -c; exec <&-; sleep 0.3; echo on'
    code_is 0
    grep -q 100000 "$OUT"
    grep -q on "$OUT"
    clean
}

@test "standard input that cannot be read ends the job" {
    STDIN=/ dtrun -np 2 sh -c 'cat; exec sleep 1000'
    code_is 125
    diff "$ERR" - <<<"dtrun: standard input cannot be read: Is a directory; stopping the job"
    clean
}

@test "when the file system of standard input hangs, the job runs on" {
    preload="$DTRUN_BUILD/tests/fake/.libs/libstandstill.so"
    [ -e "$preload" ] || skip "built without shared libraries"
    head -c 1M /dev/urandom >in
    : >still
    STDIN=in LD_PRELOAD="$preload" TEST_STANDSTILL="$T/still" dtrun_start --unset LD_PRELOAD --tag -np 1 \
        sh -c 'exec 8<&0; trap "" USR1; cksum <&8 & trap "touch heard" USR1; touch runs; wait; wait'
    await test -e still.waits
    await test -e runs
    kill -USR1 "$BACKGROUND"
    await eval 'test -e heard || gone "$BACKGROUND"'
    [ -e heard ]
    rm still
    dtrun_wait
    code_is 0
    out_is "[0] $(cksum <in)
"
    clean
}

@test "closed standard input reads as empty" {
    RC=0
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 2 sh -c 'cat; echo end' <&- >"$OUT" 2>"$ERR" || RC=$?
    code_is 0
    [ "$(grep -c end "$OUT")" = 2 ]
    err_is_empty
    clean
}

@test "a job runs with all three standard descriptors closed" {
    RC=0
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 2 sh -c "echo x >>$T/said" <&- >&- 2>&- || RC=$?
    OUT=/dev/null ERR=/dev/null code_is 0
    [ "$(wc -l <"$T/said")" = 2 ]
    clean
}

@test "a job in the background of a terminal neither stops nor spins" {
    type python3 >/dev/null || skip "python3 is not installed"
    env "$TOKEN" timeout "$PATIENCE" python3 "$DTRUN_SOURCE/tests/cli/background.py" "$DTRUN" -np 1 \
        sh -c 'echo ready; sleep 1.5; echo end' >"$OUT"
    cat "$OUT"
    grep -q "^end" "$OUT"
    grep -q "^exit code 0" "$OUT"
    grep -q "^was not stopped" "$OUT"
    grep -q "^took less than 0.5 s" "$OUT"
    clean
}

@test "ranks other than 0 see the end of standard input at once" {
    echo hello >in
    STDIN=in dtrun -np 3 sh -c 'echo "got $(cat)"'
    code_is 0
    sort "$OUT" | diff - <(echo "[0] got hello
[1] got 
[2] got ")
    clean
}

@test "--stdin names another rank as the reader, or none" {
    head -c 1M /dev/urandom >in
    STDIN=in dtrun --stdin 2 -np 3 sh -c 'echo "got $(cksum)"'
    code_is 0
    sort "$OUT" | diff - <(echo "[0] got $(cksum </dev/null)
[1] got $(cksum </dev/null)
[2] got $(cksum <in)")
    exec 7<in
    STDIN=/dev/fd/7 dtrun --stdin none -np 2 wc -c
    code_is 0
    [ "$(sort "$OUT")" = "[0] 0
[1] 0" ]
    clean
}

@test "--stdin all gives every rank all of standard input, and a rank that leaves holds up no other" {
    head -c 20M /dev/urandom >in
    STDIN=in dtrun --stdin all -np 4 sh -c 'case $DTRUN_RANK in
        0 | 1) echo "got $(cksum)" ;;
        2) head -c 100000 >/dev/null; exec <&-; until [ -e read.0 ] && [ -e read.1 ]; do sleep 0.05; done ;;
        3) head -c 1000000 >/dev/null ;;
        esac; : >read.$DTRUN_RANK'
    code_is 0
    sort "$OUT" | diff - <(for r in 0 1; do echo "[$r] got $(cksum <in)"; done)
    STDIN=/dev/null dtrun --stdin all -np 2 wc -c
    [ "$(sort "$OUT")" = "[0] 0
[1] 0" ]
    clean
}

@test "with --stdin all the slowest rank decides how far dtrun reads" {
    head -c 40M /dev/urandom >in
    STDIN=in dtrun_start --stdin all -np 3 sh -c 'if [ $DTRUN_RANK = 1 ]; then
            until [ -e go ]; do sleep 0.05; done; fi
        head -c 100 >/dev/null; echo ready; echo "got $(cksum)"'
    out_has 2 ready
    # All windows and pipes together hold less than this.
    [ "$(awk '/^pos/ { print $2 }' "/proc/$BACKGROUND/fdinfo/0")" -lt 1000000 ]
    [ "$(grep -c got "$OUT")" = 0 ]
    touch go
    dtrun_wait
    code_is 0
    [ "$(grep -c "got $(tail -c +101 in | cksum)" "$OUT")" = 3 ]
    clean
}

@test "with --stdin all every rank reads on at the same place after a restart" {
    seq 1 20000000 >big
    STDIN=big dtrun --stdin all --max-restarts 1 -np 3 sh -c 'read n; read n
        [ $DTRUN_RESTART_COUNT = 0 ] || { echo "now $n"; exit 0; }
        [ $DTRUN_RANK = 2 ] || exec cat >/dev/null; exit 1'
    code_is 0
    [ "$(grep -c now "$OUT")" = 3 ]
    [ "$(sed 's/^.* now //' "$OUT" | sort -u | wc -l)" = 1 ]
    [ "$(sed -n 's/^.* now //p;q' "$OUT")" -gt 2 ]
    clean
}

@test "with --stdin none dtrun leaves standard input to other programs" {
    printf 'for another program\n' >in
    RC=0
    { env "$TOKEN" timeout "$PATIENCE" "$DTRUN" --stdin none -np 1 cat 2>"$ERR" || RC=$?; head -1; } <in >"$OUT"
    code_is 0
    out_is "for another program
"
    clean
}

# What the dead rank had been given is lost: what was in its pipe and in the windows, and no more.
@test "after a restart rank 0 reads on where its predecessor stopped" {
    seq 1 20000000 >big
    STDIN=big dtrun --max-restarts 1 -np 2 sh -c '[ $DTRUN_RANK = 0 ] || exec sleep 600
        read n; read n # the first line may be incomplete
        [ $DTRUN_RESTART_COUNT = 1 ] || { sleep 600 & kill -KILL $$; }; echo "now $n"; exit 1'
    read -r _ _ n <<<"$(grep -a "now" "$OUT")"
    [ "$n" -lt 200000 ] || { echo "went on with line $n"; false; }
    clean
}

@test "after a restart a line says that standard input does not begin again" {
    printf 'a whole input\n' >in
    STDIN=in dtrun --no-tag --max-restarts 2 -np 2 sh -c '[ $DTRUN_RANK = 0 ] || exec sleep 600
        cat; [ $DTRUN_RESTART_COUNT = 2 ] || exit 1; kill $$'
    code_is 143
    out_is "a whole input
"
    line="dtrun: standard input continues after its first 14 bytes, which ranks were given before the restart; a program that must read them again needs them in a file"
    [ "$(grep -cxF "$line" "$ERR")" = 1 ] || { show; false; }
    : >in
    STDIN=in dtrun --max-restarts 1 -np 1 sh -c '[ $DTRUN_RESTART_COUNT = 1 ]'
    code_is 0
    ! grep -F 'standard input' "$ERR" || { show; false; }
    clean
}

# After the restart the agent first ends what the rank has left behind. Meanwhile it gets what is in the file.
restart_with_leftovers() { # FILE
    STDIN="$1" dtrun_start --no-tag --max-restarts 1 -np 1 sh -c '
        [ $DTRUN_RESTART_COUNT = 0 ] || { read n; read n; echo "now $n"; tail -1; exit 0; }
        setsid sleep 600 & echo up; wait'
    out_has 1 up
    agent="$(keeper) $(worker)"
    kill -STOP $agent # else one of them could end the ranks before it is killed
    kill -KILL $agent
    dtrun_wait
    code_is 0
}

@test "a restarted rank gets standard input and its end also if processes of a killed agent are ended first" {
    hide_cgroups
    : >empty
    restart_with_leftovers empty
    seq 1 100000 >big
    restart_with_leftovers big
    [ "$(tail -1 "$OUT")" = 100000 ]
    n="$(sed -n 's/^now //p' "$OUT")"
    [ "$n" -lt 30000 ] || { echo "went on with line $n"; false; } # 128 KiB were given to the dead rank
    clean
}

@test "--stdin none reads nothing even if an agent grants credit" {
    command -v python3 >/dev/null || skip "needs python3"
    export OVERPAID_AGENT="$DTRUN_AGENT"
    DTRUN_AGENT="$DTRUN_SOURCE/tests/cli/overpaid.py"
    printf 'for another program\n' >in
    RC=0
    { env "$TOKEN" timeout "$PATIENCE" "$DTRUN" --stdin none true 2>"$ERR" || RC=$?; head -1; } <in >"$OUT"
    code_is 0
    out_is "for another program
"
    clean
}
