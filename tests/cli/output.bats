#!/usr/bin/env bats
# How dtrun relays the output of ranks: in whole lines, without loss, and without blocking the job.

load common

@test "when 64 ranks write 10 MiB each at once, every line stays whole and in order" {
    set -o pipefail
    RC=0
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 64 "$RANK/flood" 52429 </dev/null 2>"$ERR" |
        "$RANK/flood" check 64 52429 || RC=$?
    OUT=/dev/null code_is 0
    err_is_empty
    clean
}

@test "a line of 1 MiB and a last line without a newline are printed whole" {
    dtrun -np 2 sh -c '[ $DTRUN_RANK = 1 ] || exit 0; head -c 1048576 /dev/zero | tr "\0" y; echo; printf end'
    code_is 0
    [ "$(wc -c <"$OUT")" = $((4 + 1048576 + 1 + 4 + 3 + 1)) ]
    [ "$(cut -c1-8 "$OUT" | tr '\n' ' ')" = "[1] yyyy [1] end " ]
    dtrun -np 1 printf end
    out_is end
    dtrun --no-tag -np 2 sh -c '[ $DTRUN_RANK = 1 ] || exit 0; printf end'
    out_is end
    clean
}

@test "the output of a single rank passes through byte for byte" {
    head -c 300000 /dev/urandom >bytes
    dtrun -np 1 cat bytes
    code_is 0
    cmp bytes "$OUT"
    dtrun --no-tag -np 2 sh -c '[ $DTRUN_RANK = 1 ] || exec cat bytes'
    cmp bytes "$OUT"
    clean
}

@test "progress bars are shown at once, also with labels" {
    dtrun_start -np 2 sh -c '[ $DTRUN_RANK = 0 ] || exec sleep 600; printf "50%%\r"; exec sleep 600'
    await has_line '50%' "$OUT"
    [ "$(head -c 8 "$OUT" | tr '\r' R)" = "[0] 50%R" ]
    kill -TERM "$BACKGROUND"
    dtrun_wait
    clean
}

@test "--tag labels a single rank, too, and --timestamp prints the time before the label" {
    dtrun --tag -np 1 printf 'a\nb'
    code_is 0
    out_is "[0] a
[0] b
"
    export TZ=UTC-5
    begin="$(date '+%F %T')"
    dtrun --timestamp -np 2 sh -c 'echo "out $DTRUN_RANK"; echo "err $DTRUN_RANK" >&2'
    code_is 0
    [ "$(sort "$OUT" | sed -E 's/^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{3} //' | sort)" = "[0] out 0
[1] out 1" ]
    [ "$(sed -E 's/^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{3} //' "$ERR" | sort)" = "[0] err 0
[1] err 1" ]
    dtrun --timestamp --no-tag -np 2 sh -c 'echo x; printf x'
    code_is 0
    [ "$(wc -l <"$OUT")" = 4 ]
    end="$(date '+%F %T')z"
    while read -r day time text; do
        [ "$text" = x ]
        [[ ! "$day $time" < "$begin" && "$day $time" < "$end" ]]
    done <"$OUT"
    clean
}

# Runs dtrun with a terminal as standard output and standard error; both end up in $OUT.
on_terminal() {
    RC=0
    : >"$ERR"
    env "${SETTINGS[@]}" "$TOKEN" timeout "$PATIENCE" python3 -c \
        'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' \
        "$DTRUN" "$@" </dev/null >"$OUT" || RC=$?
}

@test "labels are coloured on a terminal only, and NO_COLOR and TERM=dumb turn colours off" {
    type python3 >/dev/null || skip "python3 is not installed"
    local esc=$'\033' setting
    SETTINGS=(-u NO_COLOR TERM=xterm)
    on_terminal -np 2 echo hello
    code_is 0
    [ "$(tr -d '\r' <"$OUT" | grep hello | sort)" = "${esc}[35m[1]${esc}[0m hello
${esc}[36m[0]${esc}[0m hello" ]
    for setting in NO_COLOR=1 TERM=dumb; do
        SETTINGS=(-u NO_COLOR TERM=xterm "$setting")
        on_terminal -np 2 echo hello
        [ "$(tr -d '\r' <"$OUT" | grep hello | sort)" = "[0] hello
[1] hello" ]
    done
    TERM=xterm dtrun -np 2 echo hello
    ! grep -q "$esc" "$OUT" || false
    clean
}

@test "while its reader blocks, dtrun still stops the other ranks after a death and keeps the exit code" {
    mkfifo slow
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" --max-restarts 0 -np 4 sh -c \
        '[ $DTRUN_RANK = 3 ] || exec yes; until [ -e go ]; do sleep 0.05; done; exit 9' \
        </dev/null >slow 2>"$ERR" 3>&- &
    BACKGROUND=$!
    exec 8<slow # not read yet
    await stalled yes 3
    touch go
    # Nobody reads, and yet the ranks end.
    await no_rank_runs
    await has_line "rank 3 .* exited with code 9" "$ERR"
    cat <&8 >"$OUT"
    exec 8<&-
    dtrun_wait
    code_is 9
    [ "$(grep -cv "^\[[0-2]\] y$" "$OUT")" -le 3 ] # a rank may have been killed in the middle of a line
    clean
}

no_rank_runs() {
    local pid
    for pid in $(left_behind); do
        case "$(cat "/proc/$pid/comm" 2>/dev/null)" in yes | sh) return 1 ;; esac
    done
}

@test "when the reader of its output leaves, dtrun stops the job silently and exits with 141" {
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 4 yes 2>"$ERR" | head -1 >"$OUT"
    RC="${PIPESTATUS[0]}"
    code_is 141
    out_is "[$(cut -c2 "$OUT")] y
"
    err_is_empty
    clean
}

@test "a slow reader makes ranks wait, dtrun's memory stays bounded, and nothing is lost" {
    mkfifo slow
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 4 "$RANK/flood" 50000 </dev/null >slow 2>"$ERR" 3>&- &
    BACKGROUND=$!
    exec 8<slow
    head -c 65536 <&8 >part
    # The ranks have 40 MB to write. Wait until they cannot go on.
    await stalled flood 4
    rss="$(awk '/VmRSS/ { s += $2 } END { print s }' $(for p in $(left_behind); do echo "/proc/$p/status"; done))"
    [ "$rss" -lt 60000 ] || { echo "all together have $rss KiB"; false; }
    cat part - <&8 >"$OUT"
    exec 8<&-
    dtrun_wait
    code_is 0
    "$RANK/flood" check 4 50000 <"$OUT"
    clean
}

@test "while 64 ranks write empty lines and the reader is blocked, dtrun stays below 64 MB" {
    mkfifo slow
    env --default-signal=INT "$TOKEN" "$DTRUN" -np 64 yes "" </dev/null >slow 2>"$ERR" 3>&- &
    BACKGROUND=$!
    exec 8<slow # and never read
    await stalled yes 64
    peak="$(awk '/VmHWM/ { print $2 }' "/proc/$BACKGROUND/status")"
    [ "$peak" -lt 64000 ] || { echo "dtrun had $peak KiB"; false; }
    kill -INT "$BACKGROUND"
    await has_line interrupted "$ERR"
    kill -INT "$BACKGROUND"
    dtrun_wait
    exec 8<&-
    OUT=/dev/null code_is 130
    clean
}

# Succeeds if RANKS processes of this name wait in a write to their pipe or terminal.
stalled() { # COMMAND RANKS
    local pid n=0
    for pid in $(left_behind); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] || continue
        case "$(cat "/proc/$pid/wchan" 2>/dev/null)" in *pipe* | *tty* | wait_woken) n=$((n + 1)) ;; esac
    done
    [ "$n" = "$2" ]
}

@test "a prompt without a newline is shown, labelled once, and the rank's next output continues its line" {
    dtrun_start -np 2 sh -c '[ $DTRUN_RANK = 0 ] || exec sleep 600
        printf "ready? "; until [ -e go ]; do sleep 0.05; done; echo yes; exec sleep 600'
    await has_line 'ready? ' "$OUT"
    out_is "[0] ready? "
    touch go
    await has_line 'yes' "$OUT"
    out_is "[0] ready? yes
"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    clean
}

@test "an unfinished line that another rank's line has cut off continues with a label of its own" {
    dtrun_start -np 2 sh -c 'if [ $DTRUN_RANK = 0 ]; then
            printf .; until [ -e go ]; do sleep 0.05; done; printf ".\\n"; exec sleep 600
        fi
        until [ -e between ]; do sleep 0.05; done; echo between; exec sleep 600'
    await has_line '\.' "$OUT"
    touch between
    await has_line between "$OUT"
    touch go
    out_has 3 '^.'
    out_is "[0] .
[1] between
[0] .
"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    clean
}

@test "half a line is not shown while its rest is still on its way" {
    local agent
    head -c 2000000 /dev/zero | tr '\0' y >line
    echo >>line
    dtrun_start --transport local -H here1:1,here2:1 --heartbeat 600 sh -c 'if [ $DTRUN_RANK = 0 ]; then
            echo $$ >rank; until [ -e write ]; do sleep 0.05; done
            dd if=line bs=4M count=1 status=none; exec sleep 600
        fi
        until [ -e ask ]; do sleep 0.05; done; printf "ready? "; exec sleep 600'
    await test -s rank
    agent="$(ps -o ppid= "$(cat rank)")"
    kill -STOP "$BACKGROUND"
    touch write
    await stalled dd 1
    kill -STOP $agent
    kill -CONT "$BACKGROUND" # it receives part of the line
    touch ask
    await has_line 'ready? ' "$OUT"
    out_is "[1] ready? "
    kill -CONT $agent
    (printf '[1] ready? \n[0] ' && cat line) >whole
    await cmp -s whole "$OUT"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    clean
}

@test "a prompt that follows a long text is shown" {
    dtrun_start -np 2 sh -c '[ $DTRUN_RANK = 0 ] || exec sleep 600
        printf "%060000d\\nready? " 0; exec sleep 600'
    await has_line 'ready? ' "$OUT"
    [ "$(tail -n 1 "$OUT")" = "[0] ready? " ]
    kill -TERM "$BACKGROUND"
    dtrun_wait
    clean
}

# Runs dtrun_start with writes to regular files blocked while the file $T/still exists.
dtrun_start_still() {
    preload="$DTRUN_BUILD/tests/fake/.libs/libstandstill.so"
    [ -e "$preload" ] || skip "built without shared libraries"
    : >still
    LD_PRELOAD="$preload" TEST_STANDSTILL="$T/still" dtrun_start --unset LD_PRELOAD "$@"
}

@test "when the file system of standard output hangs, output waits and the job runs on" {
    mkfifo in
    exec 7<>in
    STDIN=in dtrun_start_still -np 2 sh -c '[ $DTRUN_RANK = 0 ] || exec true
        echo waits; read line; touch heard; yes | head -n 300000'
    await test -e still.waits
    echo line >&7
    await test -e heard
    [ ! -s "$OUT" ]
    rm still
    dtrun_wait
    exec 7>&-
    code_is 0
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 1 [0] waits
 300000 [0] y" ]
    clean
}

@test "when the file system of --output-dir hangs, output waits and the job runs on" {
    mkfifo in
    exec 7<>in
    for tee in "" --tee; do
        STDIN=in dtrun_start_still --output-dir logs $tee -np 2 sh -c '[ $DTRUN_RANK = 0 ] || exec true
            echo waits; read line; touch heard; yes | head -n 300000'
        await test -e still.waits
        echo line >&7
        await test -e heard
        await stalled yes 1 # memory is bounded, so the rank that writes waits, too
        [ ! -s logs/rank.00000.out ]
        rm still
        dtrun_wait
        rm still.waits heard
        code_is 0
        [ "$(sort logs/rank.00000.out | uniq -c | tr -s ' ')" = " 1 waits
 300000 y" ]
        clean
    done
    exec 7>&-
}

@test "a job that is told to stop does not wait for a file system that hangs" {
    mkfifo "$ERR" # writes to a regular file would block, too
    exec 9<>"$ERR"
    dtrun_start_still --output-dir logs -np 2 sh -c 'echo waits; exec sleep 600' 9>&-
    await test -e still.waits
    kill -TERM "$BACKGROUND"
    dtrun_wait
    rm still
    read -ru 9 told
    read -ru 9 dropped
    ERR=/dev/null code_is 143
    [ "$dropped" = "dtrun: the last output was not written to --output-dir within 2 s and is dropped" ]
    clean
}

# Its main thread sleeps, and no signal is pending.
has_handled_signals() {
    [[ $(<"/proc/$BACKGROUND/status") == *State:?S*ShdPnd:?0000000000000000* ]]
}

@test "a signal while the report is written does not prevent it, and keeps a failed rank's exit code" {
    ERR=/dev/null # what dtrun says there does not wait
    for end in 0 7; do
        rm -f r.json
        dtrun_start_still --report r.json -np 1 sh -c "exit $end"
        await test -e still.waits
        kill -TERM "$BACKGROUND"
        await has_handled_signals
        rm still
        dtrun_wait
        rm still.waits # until dtrun ended, it could make the file anew
        grep -q "\"exit_code\":[[:space:]]*$end," r.json
        [ -z "$(ls -A | grep tmp)" ]
        [ $end = 7 ] || code_is 143
    done
    code_is 7
}

@test "a second signal ends dtrun even if its report cannot be written" {
    dtrun_start_still --report r.json -np 1 true
    await test -e still.waits
    kill -INT "$BACKGROUND"
    await eval 'kill -INT "$BACKGROUND"; gone "$BACKGROUND"'
    rm still
    dtrun_wait
    code_is 130
}

@test "standard output and standard error stay apart" {
    dtrun -np 2 sh -c 'echo out $DTRUN_RANK; echo err $DTRUN_RANK >&2'
    code_is 0
    sort "$OUT" | diff - <(echo "[0] out 0
[1] out 1")
    sort "$ERR" | diff - <(echo "[0] err 0
[1] err 1")
    clean
}

@test "standard output and standard error can share a file without cutting each other's lines" {
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 4 sh -c "'$RANK/flood' 3000; '$RANK/flood' 3000 >&2" \
        </dev/null >"$OUT" 2>&1
    [ "$(wc -l <"$OUT")" = 24000 ]
    [ "$(awk 'length($0) != 203' "$OUT" | wc -l)" = 0 ]
    clean
}

@test "--merge-stderr sends both streams to standard output in the order in which a rank wrote them" {
    dtrun --merge-stderr -np 2 sh -c 'i=0; while [ $i -lt 500 ]; do echo "$i out"; echo "$i err" >&2; i=$((i + 1)); done'
    code_is 0
    err_is_empty
    for rank in 0 1; do
        grep "^\[$rank\]" "$OUT" | diff - <(for i in {0..499}; do printf "[$rank] $i %s\n" out err; done)
    done
    clean
}

@test "with --merge-stderr the failure message still quotes the rank's last lines" {
    dtrun --merge-stderr -np 2 sh -c '[ $DTRUN_RANK = 1 ] || exec sleep 600; echo "the disk is on fire" >&2; exit 3'
    code_is 3
    [ "$(cat "$OUT")" = "[1] the disk is on fire" ]
    err_has "the disk is on fire"
    clean
}

@test "--output-dir writes the raw bytes of each rank and stream to a file that it empties first" {
    mkdir logs
    echo "of an earlier job" | tee logs/rank.00000.out >logs/rank.00001.err
    head -c 300000 /dev/urandom >bytes
    dtrun --output-dir logs -np 2 sh -c 'if [ $DTRUN_RANK = 0 ]; then cat bytes; else printf "oops\nend" >&2; fi'
    code_is 0
    out_is ""
    err_is_empty
    [ "$(ls logs | tr '\n' ' ')" = "rank.00000.err rank.00000.out rank.00001.err rank.00001.out " ]
    cmp bytes logs/rank.00000.out
    printf 'oops\nend' | cmp - logs/rank.00001.err
    [ ! -s logs/rank.00000.err ]
    [ ! -s logs/rank.00001.out ]
    clean
}

@test "--output-dir makes the directory, --tee also shows the output, --merge-stderr needs one file a rank" {
    dtrun --output-dir new --tee -np 2 sh -c 'echo "$DTRUN_RANK out"; echo "$DTRUN_RANK err" >&2'
    code_is 0
    [ "$(sort "$OUT")" = "[0] 0 out
[1] 1 out" ]
    [ "$(sort "$ERR")" = "[0] 0 err
[1] 1 err" ]
    [ "$(cat new/rank.*)" = "0 err
0 out
1 err
1 out" ]
    dtrun --output-dir merged --merge-stderr -np 1 sh -c 'echo a >&2; echo b; echo c >&2'
    code_is 0
    [ "$(cat merged/rank.00000.out)" = "a
b
c" ]
    [ ! -e merged/rank.00000.err ]
    clean
}

@test "the report may stand in a directory that --output-dir makes" {
    dtrun --output-dir new/logs --report new/r.json -np 1 echo hi
    code_is 0
    grep -q '"exit_code":[[:space:]]*0,' new/r.json
    rm -r new
    dtrun --check --output-dir new/logs --report new/r.json
    code_is 0
    dtrun --output-dir new/logs --report other/r.json -np 1 touch started
    code_is 2
    err_has "dtrun: --report other/r.json: No such file or directory"
    [ ! -e started ]
    clean
}

@test "--output-dir makes missing parent directories" {
    for dir in a/b/c "$T//x/y/" 'p/q/%h/%r'; do
        dtrun --output-dir "$dir" -np 1 echo plain
        code_is 0
    done
    [ "$(cat a/b/c/rank.00000.out x/y/rank.00000.out p/q/localhost/00000.out | uniq -c | tr -s ' ')" = " 3 plain" ]
    clean
}

@test "--output-dir puts NCCL's log beside the output of each rank" {
    local show='echo "$NCCL_DEBUG_FILE"'
    dtrun --output-dir logs/%h --tee --no-tag -np 2 -x NCCL_DEBUG=INFO sh -c "$show"
    code_is 0
    [ "$(sort "$OUT")" = "$T/logs/rank.00000.1.nccl
$T/logs/rank.00001.1.nccl" ]
    dtrun --output-dir logs --tee --no-tag -np 1 -x NCCL_DEBUG=INFO -x NCCL_DEBUG_FILE=/mine.%p sh -c "$show"
    out_is "/mine.%p
"
    dtrun --output-dir logs --tee --no-tag -np 1 sh -c "$show"
    out_is "
"
    clean
}

@test "%r and %h in --output-dir give each rank and host a path of its own" {
    dtrun --output-dir 'logs/%h/%%-%r' --merge-stderr -np 2 -H localhost:2 sh -c 'echo "$DTRUN_RANK"'
    code_is 0
    [ "$(cd logs && find . -type f | sort | tr '\n' ' ')" = "./localhost/%-00000.out ./localhost/%-00001.out " ]
    [ "$(cat logs/localhost/*)" = "0
1" ]
    mkdir byhost
    dtrun --output-dir "$T/byhost/%h" -np 1 true
    [ "$(ls byhost/localhost | tr '\n' ' ')" = "rank.00000.err rank.00000.out " ]
    dtrun --output-dir '%r' -np 1 echo plain
    [ "$(cat 00000.out)" = plain ]
    dtrun --output-dir 'logs/%n' -np 1 touch started
    code_is 2
    err_has "dtrun: --output-dir logs/%n: %n is unknown"
    dtrun --output-dir '%r/' -np 1 touch started
    code_is 2
    [ ! -e started ]
    clean
}

@test "for the files of many ranks dtrun raises its own limit of open files as far as it may" {
    (ulimit -Sn 64 && dtrun --output-dir logs -np 40 sh -c 'ulimit -Sn' && code_is 0)
    [ "$(cat logs/*.out | sort -u)" = 64 ]
    [ "$(cat logs/*.out | wc -l)" = 40 ]
    (ulimit -n 200 && dtrun --output-dir more -np 100 touch started; code_is 125)
    err_has "dtrun: --output-dir: 268 open files are needed, and ulimit -Hn allows 200"
    [ ! -e started ]
    [ ! -e more ]
    clean
}

@test "an output directory that cannot be written ends the job with 125 before any rank starts" {
    [ "$(id -u)" = 0 ] || skip "needs root to mount a read-only file system"
    mkdir locked
    unshare -m mount -t tmpfs -o ro none locked 2>/dev/null || skip "cannot mount"
    RC=0
    timeout "$PATIENCE" unshare -m sh -c 'mount -t tmpfs -o ro none locked && exec "$@"' \
        sh env "$TOKEN" "$DTRUN" --output-dir locked/logs -np 1 touch started </dev/null >"$OUT" 2>"$ERR" || RC=$?
    code_is 125
    err_has "dtrun: --output-dir: locked/logs: Read-only file system"
    [ ! -e started ]
    clean
}

@test "after a restart the output is appended to the files" {
    dtrun --output-dir logs --max-restarts 1 -np 2 sh -c 'echo "run $DTRUN_RESTART_COUNT"
        [ $DTRUN_RESTART_COUNT$DTRUN_RANK != 00 ]'
    code_is 0
    [ "$(head -1 logs/rank.00000.out)$(tail -1 logs/rank.00001.out)" = "run 0run 1" ]
    clean
}

@test "a file of --output-dir that is emptied meanwhile gets what follows at its beginning" {
    mkfifo go
    dtrun_start --output-dir logs -np 1 sh -c 'echo before; : <go; echo after'
    await test -s logs/rank.00000.out
    : >logs/rank.00000.out
    : >go
    dtrun_wait
    code_is 0
    [ "$(od -c logs/rank.00000.out)" = "$(echo after | od -c)" ]
    clean
}

@test "an output file that cannot be created ends the job with 125 before any rank starts" {
    : >file
    dtrun --output-dir file -np 2 touch started
    code_is 125
    err_has "dtrun: --output-dir: file/rank.00000.out: Not a directory"
    dtrun --output-dir /proc/no/where -np 2 touch started
    code_is 125
    err_has "dtrun: --output-dir: /proc/no: No such file or directory"
    mkdir logs
    mkfifo logs/rank.00001.out
    exec 7<>logs/rank.00001.out
    dtrun --output-dir logs -np 2 touch started
    exec 7>&-
    code_is 125
    err_has "logs/rank.00001.out: it exists and is not a regular file"
    rm logs/rank.00001.out
    echo kept >mine
    ln -s ../mine logs/rank.00001.out # as another user could, in a directory like /tmp
    dtrun --output-dir logs -np 2 touch started
    code_is 125
    err_has "logs/rank.00001.out: it exists and is not a regular file"
    [ "$(cat mine)" = kept ]
    [ ! -e started ]
    clean
}

@test "an output file that cannot be written ends the job with a message that names it" {
    type prlimit >/dev/null || skip "prlimit is not installed"
    dtrun_start --output-dir logs -np 2 sh -c '[ $DTRUN_RANK = 1 ] || exec sleep 600
        echo ready; until [ -e go ]; do sleep 0.05; done; yes'
    await grep -qs ready logs/rank.00001.out
    prlimit --pid "$BACKGROUND" --fsize=102400
    touch go
    dtrun_wait
    code_is 125
    err_has "dtrun: logs/rank.00001.out cannot be written: File too large"
    [ "$(stat -c %s logs/rank.00001.out)" = 102400 ]
    clean
}

@test "a full disk under --output-dir ends the job with a message" {
    [ "$(id -u)" = 0 ] || skip "needs root to mount a small file system"
    mkdir small
    unshare -m mount -t tmpfs -o size=64k none small 2>/dev/null || skip "cannot mount"
    RC=0
    timeout "$PATIENCE" unshare -m sh -c 'mount -t tmpfs -o size=64k none small && exec "$@"' \
        sh env "$TOKEN" "$DTRUN" --output-dir small/logs -np 2 sh -c '[ $DTRUN_RANK = 1 ] || exec sleep 600; exec yes' \
        </dev/null >"$OUT" 2>"$ERR" || RC=$?
    code_is 125
    err_has "dtrun: small/logs/rank.00001.out cannot be written: No space left on device; stopping the job"
    err_lines 1
    clean
}

@test "a full disk under standard output ends the job with a message" {
    [ -w /dev/full ] || skip "there is no /dev/full"
    RC=0
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" -np 2 sh -c 'echo x; exec sleep 600' </dev/null >/dev/full 2>"$ERR" || RC=$?
    OUT=/dev/null code_is 125
    OUT=/dev/null err_has "dtrun: standard output cannot be written: No space left on device"
    clean
}

@test "with --unbuffered standard output is a terminal, and a rank that crashes loses no line" {
    what='[ -t 0 ] && echo in; [ -t 1 ] && echo out; [ -t 2 ] && echo err; exit 0'
    dtrun -np 1 sh -c "$what"
    out_is ""
    dtrun --unbuffered -np 1 sh -c "$what"
    code_is 0
    out_is "out
"
    dtrun --unbuffered --merge-stderr -np 1 sh -c "$what"
    out_is "out
err
"
    dtrun --unbuffered -np 1 "$RANK/fds"
    out_has 1 "no terminal" # that controls it
    dtrun -np 2 "$RANK/lastline"
    code_is 139
    out_is ""
    dtrun --unbuffered -np 1 "$RANK/lastline"
    code_is 139
    out_is "the last line
"
    dtrun --unbuffered --output-dir logs -np 1 "$RANK/lastline"
    [ "$(cat logs/rank.00000.out)" = "the last line" ]
    clean
}

@test "--unbuffered changes no byte and loses none" {
    head -c 1048576 /dev/urandom >bytes
    for i in $(seq 0 255); do printf "\\$(printf %03o "$i")"; done >>bytes
    dtrun --unbuffered -np 1 cat bytes
    code_is 0
    cmp bytes "$OUT"
    dtrun --unbuffered --output-dir logs -np 8 cat bytes
    for i in 0 1 2 3 4 5 6 7; do
        cmp bytes logs/rank.0000$i.out
    done
    dtrun --unbuffered -np 64 "$RANK/flood" 1000
    "$RANK/flood" check 64 1000 <"$OUT"
    clean
}

@test "with --unbuffered a slow reader makes ranks wait, and nothing is lost" {
    mkfifo slow
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" --unbuffered -np 4 "$RANK/flood" 20000 </dev/null >slow 2>"$ERR" 3>&- &
    BACKGROUND=$!
    exec 8<slow
    head -c 65536 <&8 >part
    await stalled flood 4
    cat part - <&8 >"$OUT"
    exec 8<&-
    dtrun_wait
    code_is 0
    "$RANK/flood" check 4 20000 <"$OUT"
    clean
}

@test "with --unbuffered a prompt is shown even if its rank computes on" {
    dtrun_start --unbuffered -np 2 sh -c '[ $DTRUN_RANK = 0 ] || exec sleep 600
        printf "50%%"; while :; do :; done'
    await has_line '50%' "$OUT"
    out_is "[0] 50%"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    clean
}

@test "with --unbuffered neither a daemon nor a stranger that writes to the terminal makes dtrun hang" {
    dtrun --unbuffered -np 2 sh -c 'echo said; setsid sleep 600 & exit 0'
    code_is 0
    [ "$(grep -c said "$OUT")" = 2 ]
    dtrun --unbuffered -np 2 sh -c 'exec <&- >&- 2>&-; exit 0'
    code_is 0
    dtrun_start --unbuffered -np 1 sh -c 'echo $$ >rank; until [ -e go ]; do sleep 0.05; done; printf end'
    await test -s rank
    yes >"/proc/$(cat rank)/fd/1" 2>/dev/null 3>&- &
    await test -s "$OUT"
    touch go
    dtrun_wait
    code_is 0
    grep -q end "$OUT"
    wait $! || true # it ends with the terminal
    clean
}

@test "too few pseudo-terminals for --unbuffered are reported, and no rank runs" {
    limited='mount -t devpts -o max=1 none /dev/pts && exec "$@"'
    unshare --mount sh -c "$limited" sh true 2>/dev/null || skip "cannot mount devpts"
    RC=0
    timeout "$PATIENCE" unshare --mount sh -c "$limited" sh env "$TOKEN" "$DTRUN" --unbuffered -np 2 touch ran \
        </dev/null >"$OUT" 2>"$ERR" || RC=$?
    code_is 125
    err_has "dtrun: too few pseudo-terminals are left for 2 processes (--unbuffered): kernel.pty.max is "
    err_lines 1
    [ ! -e ran ]
    hide /dev/pts
    dtrun --unbuffered -np 2 touch ran
    code_is 125
    err_has "dtrun: a pseudo-terminal from /dev/ptmx and /dev/pts (--unbuffered): No such "
    [ ! -e ran ]
    clean
}
