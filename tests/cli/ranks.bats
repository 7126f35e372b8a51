#!/usr/bin/env bats
# What a rank is given, and that jobs do not get into each other's way.

load common

@test "48: arguments arrive byte for byte" {
    long="$(head -c 100000 /dev/zero | tr '\0' z)"
    set -- ' two  words ' "it's" '"' '$HOME `id` $(id)' ';&|<>' '' -- -np '*' $'new\nline' $'\xff\xfe' '\' "$long"
    dtrun -np 1 sh -c 'printf "%s\0" "$@"' sh "$@"
    code_is 0
    printf '%s\0' "$@" | cmp - "$OUT"
    clean
}

@test "49: the environment arrives as the options say, and shows in no command line" {
    big="$(head -c 120000 /dev/zero | tr '\0' b)"
    env A_ONE=1 A_TWO=$'two\nlines' SECRET="s3cr3t-$$" BIG="$big" GONE=1 "$TOKEN" timeout 30 \
        "$DTRUN" -np 2 --no-tag -x A_ONE -x 'NEW=b c' -x 'A_*' --unset GONE \
        sh -c '[ $DTRUN_RANK = 0 ] || exit 0; tr "\0" " " </proc/$PPID/cmdline >cmdline
            printf "%s|%s|%s|%s|%s|%s" "$A_ONE" "$A_TWO" "$NEW" "$SECRET" "${GONE-none}" "${#BIG}"' \
        </dev/null >"$OUT" 2>"$ERR"
    out_is "1|two
lines|b c|s3cr3t-$$|none|120000"
    ! grep -q s3cr3t cmdline
    clean
}

@test "57: a rank that closes its standard descriptors ends the job as it should" {
    LIMIT=10 dtrun -np 2 sh -c 'exec <&- >&- 2>&-; exit 0'
    code_is 0
    err_is_empty
    clean
}

@test "57: a daemon that keeps the output open does not hang dtrun" {
    LIMIT=10 dtrun -np 2 sh -c 'echo said; setsid sleep 600 & exit 0'
    code_is 0
    [ "$(grep -c said "$OUT")" = 2 ]
    clean
}

@test "58: ranks see descriptors 0, 1, 2 and their socket, default signals, a session of their own" {
    dtrun -np 1 "$RANK/fds"
    code_is 0
    out_is "fds 0 1 2 agent
SigBlk 0000000000000000
SigIgn 0000000000000000
session own
"
    clean
}

@test "62: two jobs at once; killing one leaves the other" {
    mkdir one two
    (cd one && exec env "$TOKEN" "$DTRUN" -np 2 sh -c 'echo ready; exec sleep 600' </dev/null >out 2>err 3>&-) &
    one=$!
    dtrun_start -np 2 sh -c 'echo ready; until [ -e go ]; do sleep 0.05; done; echo end'
    out_has 2 ready
    OUT=one/out out_has 2 ready
    kill -KILL "$one"
    wait "$one" || true
    touch go
    dtrun_wait
    code_is 0
    [ "$(grep -c end "$OUT")" = 2 ]
    clean 2
}

# Names in shared places that dtrun could have left there; other jobs of this machine come and go.
traces() {
    ls -A "$TMPDIR" 2>/dev/null
    for f in /dev/shm/* /tmp/* /run/*; do
        case "$f" in *dtrun*) [ ! "$f" -nt "$T/before" ] || echo "$f" ;; esac
    done | grep -v -e "$BATS_RUN_TMPDIR" || true
}

@test "63: no file, socket or shared memory is left, however the job ends" {
    export TMPDIR="$T/tmp"
    mkdir "$TMPDIR" empty
    cd empty
    touch "$T/before"
    dtrun -np 2 true
    dtrun -np 2 false
    dtrun -np 2 ./none
    dtrun_start -np 2 sh -c 'echo ready; exec sleep 600'
    out_has 2 ready
    kill -KILL "$BACKGROUND"
    wait "$BACKGROUND" || true
    BACKGROUND=
    clean 2
    [ -z "$(ls -A .)" ]
    [ -z "$(ls -A "$TMPDIR")" ]
}
