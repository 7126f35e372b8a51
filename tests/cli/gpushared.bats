#!/usr/bin/env bats
# Collectives on the memory of GPUs that ranks share, on stand-ins for NVIDIA's libraries. The programs
# compare the results with those of host memory.

load common
load ../standin/standin

setup_file() {
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || export FILE_SKIPS="built without shared libraries"
}

# Runs N ranks on DEVICES devices.
share() { # DEVICES N PROGRAM WHAT [dtrun option...] [-- ARGUMENT...]
    local devices=$1 n=$2 program=$3 what=$4 options=()
    shift 4
    while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
    [ $# = 0 ] || shift
    use_standin "$devices"
    dtrun --no-tag -np "$n" -H "localhost:$devices" "${options[@]}" "$RANK/$program" $what "$@"
    unset LD_LIBRARY_PATH
}

# Counts lines on stderr, except dtrun's note before the job that ranks share devices.
warnings() { grep -vc 'devices are shared' "$ERR" || true; }

shared() { # the arguments of share
    share "$@"
    code_is 0
    [ "$(warnings)" = 0 ]
    clean
}

@test "shared: two and four ranks on one GPU, without NCCL: all calls, types and operations work" {
    shared 1 2 gpu smallcalls -x DTRUN_DEVICE=shared -x DTRUN_NCCL=/none
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 2 smallcalls: 596 comparisons" ]
    shared 1 4 gpu calls -x DTRUN_DEVICE=shared -x DTRUN_NCCL=/none
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 4 calls: 653 comparisons" ]
}

@test "shared: ranks share several GPUs, and their leaders use NCCL" {
    shared 2 4 gpu smallcalls -x STANDIN_LOG="$T/log"
    [ "$(sort -u "$OUT")" = "smallcalls: 596 comparisons" ]
    shared 2 3 gpu calls -x STANDIN_LOG="$T/log"
    [ "$(sort -u "$OUT")" = "calls: 645 comparisons" ]
    ! grep -i 'order\|match' "$T/log" || false
}

@test "shared: the driver compiles the kernel once, however many communicators use it" {
    shared 1 3 gpu slots -x DTRUN_DEVICE=shared -x STANDIN_LOG="$T/log"
    [ "$(grep -c ' loads a module$' "$T/log")" = 1 ]
}

@test "shared: sums that are rounded have the same bytes as in host memory" { shared 1 3 gpushared bytes; }

@test "shared: factors, requests, buckets, default streams, joins, pairs, captures and managed memory work, mixed buffers do not" {
    for what in factors requests buckets later join pairs managed mixed capture beside; do
        shared 1 3 gpu $what -x DTRUN_DEVICE=shared
    done
    shared 2 4 gpu factors -x DTRUN_DEVICE=shared
}

@test "shared: a bucket's buffers in GPU memory are reduced as one" {
    for what in rounds large view mixed join; do
        shared 1 3 gpubucket $what -x DTRUN_DEVICE=shared -x STANDIN_STERN=1
    done
    shared 2 4 gpubucket large -x STANDIN_LOG="$T/log"
    [ "$(grep -c launches "$T/log")" = $((2 * (1 + 50))) ] || { sort "$T/log" | uniq -c; false; }
    ! grep -i 'order\|match' "$T/log" || false
}

@test "shared: communicators of some of the ranks work" {
    shared 1 3 gpu split -x DTRUN_DEVICE=shared
    [ "$(grep -c '^2 together$' "$OUT")" = 2 ]
    shared 2 4 gpu split -x DTRUN_DEVICE=shared
    [ "$(grep -c '^2 together$' "$OUT")" = 4 ]
}

@test "shared: hundreds of calls keep their order, however slow the GPU is" {
    shared 1 4 gpushared many
    shared 2 4 gpushared many
    shared 1 3 gpushared many -x STANDIN_DELAY_US=100
}

@test "shared: the arena grows as needed, and larger calls run in steps" {
    shared 1 2 gpushared grow -x STANDIN_MEMORY=100000000
    shared 2 4 gpushared grow
}

@test "shared: when a leader or another rank dies, all calls return and no stream is left waiting" {
    for victim in 0 1 3; do
        share 2 4 gpushared middle --collective-timeout 60 -- $victim
        code_is 137
        [ "$(grep -c -- "^-4: .* f32 (sum) in device memory, .*rank $victim .*died or left (killed by signal 9)" "$OUT")" = 3 ]
        grep -q 'in device memory, DT_ERR_PEER by shared+nccl' "$ERR"
        clean
    done
}

@test "shared: when a rank dies while the driver's queue is full of a large call, all calls return" {
    for victim in 0 1; do
        share 1 2 gpushared middle -x STANDIN_QUEUE=8 --collective-timeout 60 --kill-grace 60 -- $victim
        code_is 137
        grep -q -- "^-4: .* f32 (sum) in device memory, .*rank $victim .*died or left (killed by signal 9)" "$OUT"
        clean
    done
    for victim in 0 1 3; do
        share 2 4 gpushared middle -x STANDIN_QUEUE=8 --collective-timeout 60 --kill-grace 60 -- $victim
        code_is 137
        [ "$(grep -c -- "^-4: .* f32 (sum) in device memory, .*rank $victim .*died or left (killed by signal 9)" "$OUT")" = 3 ]
        clean
    done
}

# In the first launch, the ranks of NCCL wait for each other. The message is about the rank whose call exceeds the
# timeout first: one that is in the launch, or one that waits for it.
@test "a call that times out returns, even if the driver frees memory only when the GPU is idle" {
    for options in 'shared -x STANDIN_STERN=1 -- 0 1' 'staging -- 0 8000000'; do # pins 96 MB
        share 1 2 gpushared busy -x DTRUN_DEVICE=$options
        code_is 124
        [ "$(grep -c '^-5: .*timed out: ' "$OUT")" = 2 ] || { show; false; }
        clean
    done
}

@test "shared: when NCCL does not launch the first call between leaders, the timeout names them" {
    local launch='in a launch by NCCL'

    for blocks in 0 1; do
        share 2 4 gpu factors -x NCCL_COMM_BLOCKING=$blocks -x STANDIN_NCCL_FAULTS=launch-hang:1:1 --collective-timeout 3
        code_is 124
        [ "$(grep -cE -- "^-5: .*timed out: .*(ranks 0-1|rank 0 [^;]*$launch[^;]*; rank 1) [^;]*$launch" "$OUT")" = 4 ] ||
            { show; false; }
        grep -q 'in device memory, DT_ERR_TIMEOUT by shared+nccl.*(ranks 0-3)' "$ERR" || { show; false; }
        clean
    done
}

@test "shared: when NCCL does not launch a later call between leaders, the timeout names its rank" {
    for blocks in 0 1; do
        share 2 4 gpu factors -x NCCL_COMM_BLOCKING=$blocks -x STANDIN_NCCL_FAULTS=launch-hang:1:2 --collective-timeout 3
        code_is 124
        [ "$(grep -c -- '^-5: .*timed out: .*rank 1 [^;]*in a launch by NCCL' "$OUT")" = 4 ] || { show; false; }
        clean
    done
}

# The stream's queue is full once NCCL has launched its kernel, so the leaders block in the driver.
@test "shared: a leader that has launched and waits for its GPU's queue is not said to be in a launch" {
    share 2 4 gpu calls -x STANDIN_QUEUE=4 -x STANDIN_NCCL_FAULTS=kernel-hang:1:2 --collective-timeout 3
    code_is 124
    grep -q 'ranks 0-3 have waited .* in all-reduce (call 10), which every rank has entered' "$ERR" || { show; false; }
    ! grep 'in a launch' "$ERR" || false
    clean
}

@test "shared: an abort ends the calls of all ranks" {
    share 1 3 gpushared abort --collective-timeout 60 -- 1
    code_is 1
    [ "$(grep -c -- '^-13: .*rank 1 .*called dt_comm_abort' "$OUT")" = 3 ]
    grep -q 'in device memory, DT_ERR_ABORTED by shared' "$ERR"
    clean
}

@test "shared: an abort frees a rank whose own work delays a call that would fill the driver's queue" {
    for rank in 0 1; do
        share 1 2 gpushared abort -x STANDIN_QUEUE=20 --collective-timeout 60 --kill-grace 60 -- $rank 40000000
        code_is 1
        [ "$(grep -c -- "^-13: .*rank $rank .*called dt_comm_abort" "$OUT")" = 2 ]
        clean
    done
}

@test "shared: a large call that waits for its rank's own work delays no call of another communicator" {
    shared 1 2 gpushared beside --collective-timeout 20
}

@test "shared: after a failure, GPU memory of a bucket that a GPU may still use is not freed" {
    share 1 3 gpubucket die -x DTRUN_DEVICE=shared --collective-timeout 60
    code_is 137
    [ "$(grep -c '^the memory is kept$' "$OUT")" = 2 ] || { show; false; }
    clean
    share 1 3 gpubucket stuck -x DTRUN_DEVICE=shared
    code_is 124
    [ "$(grep -c '^the memory is kept$' "$OUT")" = 3 ] || { show; false; }
    clean
}

@test "shared: when a GPU does not reach a call, the timeout names its rank" {
    share 1 3 gpu stuck
    code_is 124
    [ "$(grep -c -- '^-5: .*timed out: .*rank 1 [^;]*in a wait for its GPU' "$OUT")" = 3 ]
    grep -q 'DT_ERR_TIMEOUT by shared.*(ranks 0-2)' "$ERR"
    clean
}

@test "shared: a restarted job computes the same bytes as an undisturbed one" {
    local calm

    shared 1 3 gpushared train --checkpoint-dir "$T/calm"
    calm=$(sort -u "$OUT" | grep weights)
    for victim in 0 2; do
        share 1 3 gpushared train --checkpoint-dir "$T/again$victim" --inject kill:rank=$victim,step=6
        code_is 0
        [ "$(grep weights "$OUT" | sort | uniq -c | tr -s ' ')" = " 3 $calm" ]
        grep -q "rank $victim .*was killed by signal 9" "$ERR"
        clean
    done
}

@test "if a GPU cannot be shared, data goes through host memory, and one warning says why" {
    share 1 2 gpu factors -x STANDIN_LACKS=102
    code_is 0
    [ "$(warnings)" = 1 ]
    grep -q "warning: .* cannot share its memory, because GPU 0000:.* of rank 0 (localhost) has no virtual memory management: .* go through host memory" "$ERR"
    clean
    share 1 2 gpu factors -x STANDIN_MIG=1
    code_is 0
    [ "$(warnings)" = 1 ]
    grep -q 'warning: .* is a MIG device' "$ERR"
    clean
}

@test "if a GPU has no memory left to share, data goes through host memory, with one warning" {
    share 1 2 gpushared many -x STANDIN_MEMORY=1500000
    code_is 0
    [ "$(warnings)" = 1 ]
    grep -q 'warning: rank 0 (localhost), which shares a GPU, has no memory to share: cuMemCreate for [0-9]* bytes: out of memory' "$ERR"
    clean
}

@test "if the driver refuses a rank what sharing needs, all ranks use host memory; one warning names it" {
    use_standin 1
    while read -r refused rank; do
        dtrun --no-tag -np 2 -H localhost:1 sh -c \
            '[ "$DTRUN_RANK" != "$1" ] || export STANDIN_REFUSES=$2; exec "$0" factors' "$RANK/gpu" "$rank" "$refused"
        code_is 0
        [ "$(sort -u "$OUT")" = "factors: 28 comparisons" ]
        [ "$(warnings)" = 1 ]
        refused=${refused%:*}
        grep -q "warning: rank $rank (localhost), which shares a GPU, has no memory to share: ${refused%_v2}[: ].*go through host memory" "$ERR"
        clean
    done <<'END'
cuMemHostRegister_v2:801 0
cuMemHostRegister_v2:801 1
cuMemHostGetDevicePointer_v2:1 1
cuStreamWriteValue32_v2:801 0
cuStreamWriteValue32_v2:801 1
cuStreamWaitValue32_v2:801 0
cuStreamWaitValue32_v2:801 1
cuModuleLoadData:200 0
cuModuleGetFunction:500 0
cuMemGetAllocationGranularity:801 0
cuMemCreate:801 0
cuMemAddressReserve:2 0
cuMemAddressReserve:2 1
cuMemMap:801 0
cuMemMap:801 1
cuMemSetAccess:101 0
cuMemSetAccess:101 1
cuMemExportToShareableHandle:801 0
cuMemImportFromShareableHandle:999 1
END
    unset LD_LIBRARY_PATH
}

@test "without NCCL between shared GPUs, data goes through host memory, with one warning" {
    share 2 4 gpu factors -x DTRUN_NCCL="$T/none.so"
    code_is 0
    [ "$(warnings)" = 1 ]
    grep -q 'warning: .*none.so.* go through host memory' "$ERR"
    clean
}

@test "DTRUN_DEVICE=shared permits no other path" {
    share 1 2 gpu calls -x DTRUN_DEVICE=shared -x STANDIN_LACKS=103
    code_is 1
    grep -q -- '^-10: .*cannot export memory to other processes, .*DTRUN_DEVICE=shared permits no other path' "$OUT"
    clean
    share 1 2 gpushared many -x DTRUN_DEVICE=shared -x STANDIN_MEMORY=1500000
    code_is 1
    grep -q -- '^-10: .*cuMemCreate for [0-9]* bytes: out of memory.*DTRUN_DEVICE=shared permits no other path' "$OUT"
    clean
    share 2 4 gpu calls -x DTRUN_DEVICE=shared -x DTRUN_NCCL="$T/none.so"
    code_is 1
    grep -q -- '^-10: .*DTRUN_DEVICE=shared permits no other path' "$OUT"
    clean
}
