#!/usr/bin/env bats
# Standard input: it goes to rank 0, at the speed at which rank 0 reads.

load common

@test "38: a large file reaches a rank 0 that begins to read late, in bounded memory" {
    head -c 100M /dev/zero | tr '\0' 'x' >big
    # rank 0 waits until the file "go" is there
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

@test "38: through a pipe too, byte for byte" {
    head -c 3M /dev/urandom >big
    RC=0
    cat big | env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 1 cat >"$OUT" 2>"$ERR" || RC=$?
    code_is 0
    cmp big "$OUT"
    clean
}

@test "39: standard input that nobody reads does not hold up the job" {
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

@test "39: a rank that stops reading does not end the job" {
    head -c 10M /dev/zero >big
    STDIN=big dtrun -np 1 sh -c 'head -c 100000 | wc -c; exec <&-; sleep 0.3; echo on'
    code_is 0
    grep -q 100000 "$OUT"
    grep -q on "$OUT"
    clean
}

@test "39: closed standard input is an empty one" {
    RC=0
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 2 sh -c 'cat; echo end' <&- >"$OUT" 2>"$ERR" || RC=$?
    code_is 0
    [ "$(grep -c end "$OUT")" = 2 ]
    err_is_empty
    clean
}

@test "39: all three closed" {
    RC=0
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 2 sh -c "echo x >>$T/said" <&- >&- 2>&- || RC=$?
    OUT=/dev/null ERR=/dev/null code_is 0
    [ "$(wc -l <"$T/said")" = 2 ]
    clean
}

@test "39: a terminal in the background: no stop, no spin" {
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

@test "40: ranks other than 0 see the end of standard input at once" {
    echo hello >in
    STDIN=in dtrun -np 3 sh -c 'echo "got $(cat)"'
    code_is 0
    sort "$OUT" | diff - <(echo "[0] got hello
[1] got 
[2] got ")
    clean
}

@test "40: --stdin: another rank reads, or none" {
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

@test "40: --stdin all: every rank reads all of it; one that leaves holds up nobody" {
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

@test "40: --stdin all: the slowest rank decides how far dtrun reads" {
    head -c 40M /dev/urandom >in
    STDIN=in dtrun_start --stdin all -np 3 sh -c 'if [ $DTRUN_RANK = 1 ]; then
            until [ -e go ]; do sleep 0.05; done; fi
        head -c 100 >/dev/null; echo ready; echo "got $(cksum)"'
    out_has 2 ready
    # all windows and pipes together hold less than that
    [ "$(awk '/^pos/ { print $2 }' "/proc/$BACKGROUND/fdinfo/0")" -lt 1000000 ]
    [ "$(grep -c got "$OUT")" = 0 ]
    touch go
    dtrun_wait
    code_is 0
    [ "$(grep -c "got $(tail -c +101 in | cksum)" "$OUT")" = 3 ]
    clean
}

@test "40: --stdin all: after a restart all ranks read on at the same place" {
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

@test "40: with --stdin none nothing is read" {
    printf 'for another program\n' >in
    RC=0
    { env "$TOKEN" timeout "$PATIENCE" "$DTRUN" --stdin none -np 1 cat 2>"$ERR" || RC=$?; head -1; } <in >"$OUT"
    code_is 0
    out_is "for another program
"
    clean
}

@test "after a restart rank 0 reads on where the one before it stopped" {
    seq 1 20000000 >big
    STDIN=big dtrun --max-restarts 1 -np 2 sh -c '[ $DTRUN_RANK = 0 ] || exec sleep 600
        read n; read n # the first may be the rest of a line, or of none but its end
        [ $DTRUN_RESTART_COUNT = 1 ] || { sleep 600 & kill -KILL $$; }; echo "now $n"; exit 1'
    read -r _ _ n <<<"$(grep -a "now" "$OUT")"
    # what the dead one had been given is lost: its pipe and the windows, not more
    [ "$n" -lt 200000 ] || { echo "went on with line $n"; false; }
    clean
}

@test "--stdin none: nothing is read, even if an agent gives credit for it" {
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
