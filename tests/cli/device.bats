#!/usr/bin/env bats
# Collectives on device memory through the whole of libdtrun, with a CUDA driver and a backend that are
# stand-ins; and the real backend where there is no GPU.

load common

FAKES="$DTRUN_BUILD/tests/fake/.libs"

device() { # WHAT [dtrun option...]
    local what=$1
    shift
    dtrun --no-tag -np 3 -x DTRUN_NCCL_PLUGIN="$FAKES/libdtrun-nccl.so.0" "$@" \
        "$RANK/device" "$FAKES/libcuda.so.1" "$what"
}

@test "device and host memory take their own ways to the same sums" {
    device sum
    code_is 0
    [ "$(sort -u "$OUT")" = "device 6 host 6 from the last 3" ]
    [ "$(wc -l <"$OUT")" = 3 ]
    [ "$(grep -c '^fake plugin: closed$' "$ERR")" = 3 ]
    clean
}

@test "a rank without a device is named by all, and nobody waits for it" {
    device sum -x FAKE_PLUGIN=no-device-on-rank-1
    code_is 1
    grep -q -- '-10: .*rank 1: no device here' "$OUT"
    clean
}

@test "host memory in and device memory out is an error, not a crash" {
    device mixed
    code_is 1
    grep -q -- '-1: dt_all_reduce: one of in and out is GPU memory' "$OUT"
    clean
}

@test "check 45: a rank that dies ends what the others do on the device" {
    device die
    code_is 137
    [ "$(grep -c -- '^-4: ' "$OUT")" = 2 ]
    grep -q 'rank 1 .*was killed by signal 9' "$ERR"
    clean
}

@test "the real backend says on a host without a GPU what is missing" {
    local real="$DTRUN_BUILD/runtime/.libs/libdtrun-nccl.so.0"

    [ -e "$real" ] || skip "configure has found no CUDA and NCCL"
    device sum -x DTRUN_NCCL_PLUGIN="$real"
    code_is 1
    grep -q -- '-10: .*cudaGetDeviceCount failed' "$OUT"
    clean
}

@test "without a backend the error says how to get one" {
    device sum -x DTRUN_NCCL_PLUGIN="$T/none.so"
    code_is 1
    grep -q -- '-8: .*none.so.*configure finds CUDA and NCCL' "$OUT"
    clean
}
