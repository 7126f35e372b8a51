#!/usr/bin/env bats
# ./quickstart, in a tree whose tools are stand-ins: what it runs, and how it ends.

load common

setup() {
    T=$BATS_TEST_TMPDIR OUT=$BATS_TEST_TMPDIR/out ERR=$BATS_TEST_TMPDIR/err
    TOKEN="DTRUN_TEST_TOKEN=$$.$BATS_TEST_NUMBER.$RANDOM$RANDOM"
    BACKGROUND=
    mkdir -p "$T/bin" "$T/tree/tests/unit" "$T/tree/tests/cli"
    cd "$T/tree"
    cp "$DTRUN_SOURCE/quickstart" .
    touch configure.ac Makefile.am tests/local.mk
    # All packages are there, whatever this machine lacks.
    for tool in gcc pkg-config automake autoconf make libtoolize bats; do
        stand_in "$tool" 'exit 0'
    done
}

# stand_in NAME SCRIPT
stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" >"$T/bin/$1"
    chmod +x "$T/bin/$1"
}

@test "D16: Ctrl-C ends the step that runs" {
    type python3 >/dev/null || skip "python3 is not installed"
    stand_in autoreconf 'trap "echo interrupted >/dev/tty; exit 130" INT
        echo ready >/dev/tty
        while :; do sleep 0.05; done'
    env "$TOKEN" PATH="$T/bin:$PATH" timeout -k 5 "$PATIENCE" \
        python3 "$DTRUN_SOURCE/tests/cli/ctrl_c.py" 1 1 ./quickstart >"$OUT"
    out_has 1 "interrupted$"
    out_has 1 "^exit code 130$"
    clean
}
