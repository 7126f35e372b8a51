#!/usr/bin/env bats
# The arithmetic on host memory is the same on all processors: tests/kernels/bytes prints its results.
bats_require_minimum_version 1.5.0

readonly SOURCES="tests/kernels/bytes.c runtime/kernels/dtype.c runtime/kernels/reduce.c
    runtime/kernels/wireformat.c runtime/kernels/neon.c runtime/kernels/plain.c"

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# same_bytes WIDTH COMMAND...: COMMAND prints the same bytes with each instruction set that it has. Their
# vectors have at most WIDTH bytes.
same_bytes() {
    local width=$1 set

    shift
    "$DTRUN_BUILD/tests/kernels/bytes" plain "$width" >plain
    [ "$(wc -l <plain)" -eq 94 ] # operations with their types, scaling, wire formats
    for set in $("$@"); do
        "$@" "$set" "$width" >bytes
        diff plain bytes || { echo "other bytes: $* $set"; return 1; }
    done
}

@test "checks 14, 15, 19: every instruction set of this processor gives the bytes of plain C" {
    same_bytes 64 "$DTRUN_BUILD/tests/kernels/bytes"
}

@test "checks 14, 15, 19: arm64 gives the bytes of this processor, with NEON and in plain C" {
    local cc=aarch64-linux-gnu-gcc run=qemu-aarch64

    command -v "$cc" >/dev/null || skip "$cc is not installed (gcc-aarch64-linux-gnu)"
    [ "$(uname -m)" != aarch64 ] || run=env
    command -v "$run" >/dev/null || skip "$run is not installed (qemu-user)"
    (cd "$DTRUN_SOURCE" && "$cc" -std=gnu11 -O2 -Wall -Wextra -Wshadow -Werror -ffp-contract=off \
        -I. -static -o "$BATS_TEST_TMPDIR/arm64" $SOURCES)
    [ "$("$run" ./arm64)" = "neon plain" ]
    same_bytes 16 "$run" ./arm64
}
