# Collectives on GPU memory on several hosts, each with four devices that are stand-ins.

load lib
load ../standin/standin

setup_file() {
    cluster_up 2
}

teardown_file() { cluster_down; }

setup() {
    cluster_require
    cluster_trust
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || skip "built without shared libraries"
}

teardown() { cluster_await_quiet; }

gpu() { # WHAT [dtrun option...]
    local what=$1
    shift
    cluster_dtrun --no-tag -x STANDIN_DEVICES=4 -x LD_LIBRARY_PATH="$DTRUN_BUILD/tests/standin/.libs" "$@" \
        "$DTRUN_BUILD/tests/rank/gpu" "$what"
}

@test "-np 16 -H host1:4,host2:4: every collective is right where two ranks share each GPU" {
    gpu calls -np 16 -H host1:4,host2:4 -x DTRUN_NCCL=/none
    [ "$RC" = 0 ]
    [ "$(wc -l <"$OUT")" = 16 ]
    [ "$(sort -u "$OUT" | wc -l)" = 1 ]
    cluster_err_lines 2
    cluster_err_has "dtrun: 16 ranks on 8 slots"
    cluster_err_has "go through host memory"
}

share() { # WHAT [dtrun option...]
    local what=$1
    shift
    cluster_dtrun --no-tag -x STANDIN_DEVICES=4 -x LD_LIBRARY_PATH="$DTRUN_BUILD/tests/standin/.libs" "$@" \
        "$DTRUN_BUILD/tests/rank/gpushared" $what
}

@test "-np 16 -H host1:4,host2:4: communicators of each host share the memory of its GPUs" {
    share hosts -np 16 -H host1:4,host2:4 -x DTRUN_DEVICE=shared
    [ "$RC" = 0 ]
    [ "$(grep -c '^hosts: done$' "$OUT")" = 16 ]
    cluster_err_lines 1
    cluster_err_has "dtrun: 16 ranks on 8 slots"
}

@test "without NCCL ranks share the GPU of each host, and stage what concerns both, with one warning" {
    share "hosts 1" -np 6 -H host1:1,host2:1 -x DTRUN_NCCL=/none
    [ "$RC" = 0 ]
    [ "$(grep -c '^hosts: done$' "$OUT")" = 6 ]
    cluster_err_lines 2
    cluster_err_has "go through host memory"
}

@test "device and host memory do not fit between hosts either" {
    gpu unlike -np 2 -H host1:1,host2:1 -x DTRUN_DEVICE=staging
    [ "$RC" = 1 ]
    grep -q -- '^-3: .*rank 0 .*in device memory.*; rank 1 .*called all-reduce of 1 f32 (sum), call 2' "$OUT"
}

@test "sends, requests and buckets pass between hosts on device memory" {
    gpu pairs -np 3 -H host1:2,host2:1 -x DTRUN_DEVICE=staging
    [ "$RC" = 0 ]
    gpu later -np 3 -H host1:2,host2:1 -x DTRUN_DEVICE=staging
    [ "$RC" = 0 ]
    [ ! -s "$ERR" ]
}
