# Collectives on GPU memory on several hosts, each with four stand-in devices.

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

@test "-np 16 -H host1:4,host2:4: collectives are right where two ranks share each GPU" {
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
        ${WRAPPER-} "$DTRUN_BUILD/tests/rank/gpushared" $what
}

# The stand-in for NCCL reports calls that do not match and launch orders that differ.
nccl_is_content() { ! grep -i 'differ\|nccl' "$ERR" || false; }

@test "-np 16 -H host1:4,host2:4: ranks reduce on each GPU, and NCCL reduces between the GPUs" {
    share "hosts 1" -np 16 -H host1:4,host2:4
    [ "$RC" = 0 ]
    [ "$(grep -c '^hosts: done$' "$OUT")" = 16 ]
    cluster_err_lines 1
    cluster_err_has "dtrun: 16 ranks on 8 slots"
    nccl_is_content
    gpu factors -np 16 -H host1:4,host2:4 -x DTRUN_DEVICE=shared
    [ "$RC" = 0 ]
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 16 factors: 28 comparisons" ]
    nccl_is_content
    gpu requests -np 16 -H host1:4,host2:4
    [ "$RC" = 0 ]
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 16 requests: 32 comparisons" ]
    cluster_err_lines 1
    nccl_is_content
}

@test "-np 16 -H host1:4,host2:4: DTRUN_DEVICE=staging causes no warning" {
    gpu factors -np 16 -H host1:4,host2:4 -x DTRUN_DEVICE=staging
    [ "$RC" = 0 ]
    [ "$(sort -u "$OUT")" = "factors: 28 comparisons" ]
    cluster_err_lines 1
    cluster_err_has "dtrun: 16 ranks on 8 slots"
}

@test "-np 8 -H host1:4,host2:4: NCCL makes every call between GPUs of two hosts" {
    gpu factors -np 8 -H host1:4,host2:4 -x DTRUN_DEVICE=nccl
    [ "$RC" = 0 ]
    [ "$(sort -u "$OUT")" = "factors: 28 comparisons" ]
    [ ! -s "$ERR" ]
}

@test "-np 8 -H host1:4,host2:4: NVIDIA's own NCCL makes every call between GPUs of two hosts" {
    local file

    file=$(find_nvidia_nccl) || skip "no libnccl.so.2 of NCCL 2.28 for x86-64 with symbols, or no readelf"
    gpu factors -np 8 -H host1:4,host2:4 -x DTRUN_DEVICE=nccl -x DTRUN_NCCL="$file" \
        -x LD_PRELOAD="$DTRUN_BUILD/tests/standin/.libs/libnvidia.so"
    [ "$RC" = 0 ]
    [ "$(sort -u "$OUT")" = "factors: 28 comparisons" ]
    [ ! -s "$ERR" ]
}

# Rank 8 leads the ranks of a GPU. Rank 15 does not.
@test "-np 16 -H host1:4,host2:4: a job whose rank dies names it and has the result of an undisturbed run" {
    share train -np 16 -H host1:4,host2:4 -x DTRUN_DEVICE=shared --checkpoint-dir "$CLUSTER_SHARED/calm"
    [ "$RC" = 0 ]
    calm=$(sort -u "$OUT" | grep weights)
    for victim in 8 15; do
        share train -np 16 -H host1:4,host2:4 -x DTRUN_DEVICE=shared \
            --checkpoint-dir "$CLUSTER_SHARED/again$victim" --inject "kill:rank=$victim,step=6"
        [ "$RC" = 0 ]
        [ "$(grep weights "$OUT" | sort | uniq -c | tr -s ' ')" = " 16 $calm" ]
        grep -q "rank $victim (host2, .*) was killed by signal 9" "$ERR"
    done
}

# In later generations host2 has no device.
@test "a rank whose host has lost its GPU is named, and moves to another host after three failures" {
    local program="$CLUSTER_SHARED/loses-gpu"

    share train -np 2 -H host1:2,host2:1 --map-by node --checkpoint-dir "$CLUSTER_SHARED/all-gpus"
    [ "$RC" = 0 ]
    calm=$(sort -u "$OUT" | grep weights)
    cat >"$program" <<'END'
#!/bin/sh
[ "$DTRUN_GENERATION" -eq 1 ] || [ "$(hostname)" != host2 ] || export STANDIN_DEVICES=0
exec "$@"
END
    chmod +x "$program"
    WRAPPER=$program share train -np 2 -H host1:2,host2:1 --map-by node --checkpoint-dir "$CLUSTER_SHARED/lost-gpu" \
        --inject "kill:rank=1,step=6"
    [ "$RC" = 0 ]
    [ "$(grep -c 'no CUDA-capable device is detected' "$OUT")" = 2 ]
    [ "$(grep -cE 'dtrun: rank 1 \(host2, pid [0-9]+\) exited with code 4' "$ERR")" = 2 ]
    cluster_err_has "dtrun: continuing without host2 "
    [ "$(grep weights "$OUT" | sort | uniq -c | tr -s ' ')" = " 2 $calm" ]
}

@test "-np 16 -H host1:4,host2:4: communicators of each host share the memory of its GPUs" {
    share hosts -np 16 -H host1:4,host2:4 -x DTRUN_DEVICE=shared
    [ "$RC" = 0 ]
    [ "$(grep -c '^hosts: done$' "$OUT")" = 16 ]
    cluster_err_lines 1
    cluster_err_has "dtrun: 16 ranks on 8 slots"
}

@test "without NCCL, ranks share the GPU of their host and stage calls between hosts, with one warning" {
    share "hosts 1" -np 6 -H host1:1,host2:1 -x DTRUN_NCCL=/none
    [ "$RC" = 0 ]
    [ "$(grep -c '^hosts: done$' "$OUT")" = 6 ]
    cluster_err_lines 2
    cluster_err_has "go through host memory"
}

# To the stand-in both hosts are one machine, as two containers on it are.
@test "hosts that see the same GPU stage calls between them, with one warning" {
    gpu factors -np 2 -H host1:1,host2:1 -x STANDIN_DEVICES=1 -x STANDIN_HOST=machine
    [ "$RC" = 0 ]
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 2 factors: 28 comparisons" ]
    cluster_err_lines 1
    cluster_err_has "rank 0 (host1) and rank 1 (host2) share a GPU"
    cluster_err_has "go through host memory"
}

@test "device memory on one host and host memory on another do not match" {
    gpu unlike -np 2 -H host1:1,host2:1 -x DTRUN_DEVICE=staging
    [ "$RC" = 1 ]
    grep -q -- '^-3: .*rank 0 .*in device memory.*; rank 1 .*called all-reduce of 1 f32 (sum), call 2' "$OUT"
}

@test "sends, requests and buckets on device memory work between hosts" {
    gpu pairs -np 3 -H host1:2,host2:1 -x DTRUN_DEVICE=staging
    [ "$RC" = 0 ]
    gpu later -np 3 -H host1:2,host2:1 -x DTRUN_DEVICE=staging
    [ "$RC" = 0 ]
    [ ! -s "$ERR" ]
}
