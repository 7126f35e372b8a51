#!/usr/bin/env bats
# Collectives on GPU memory through all of libdtrun, on stand-ins for NVIDIA's libraries. tests/rank/gpu.c
# compares the results with those of host memory.

load common
load ../standin/standin

setup_file() {
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || export FILE_SKIPS="built without shared libraries"
}

gpu() { # WHAT [dtrun option...]
    local what=$1
    shift
    use_standin 4
    dtrun --no-tag -np 3 "$@" "$RANK/gpu" "$what"
    unset LD_LIBRARY_PATH
}

by_staging() { # WHAT [dtrun option...]
    gpu "$@" -x DTRUN_DEVICE=staging
    code_is 0
    [ "$(wc -l <"$OUT")" = 3 ]
    [ ! -s "$ERR" ]
    clean
}

@test "staging: every call works, and pins no more memory if the driver does not number allocations" {
    for numbers in 1 0; do
        rm -f "$T/log"
        by_staging calls -x STANDIN_NUMBERS=$numbers -x STANDIN_LOG="$T/log"
        [ "$(sort -u "$OUT")" = "calls: 645 comparisons" ]
        grep -c ' pins ' "$T/log" >"$T/pins.$numbers"
    done
    cmp "$T/pins.1" "$T/pins.0" || { cat "$T"/pins.*; false; }
}

@test "staging: four ranks that share two GPUs get the same results, also with Adasum" {
    gpu calls -np 4 -H localhost:2 -x DTRUN_DEVICE=staging
    code_is 0
    [ "$(sort -u "$OUT")" = "calls: 653 comparisons" ]
    clean
}

@test "calls on host memory leave no error in the driver's log" {
    by_staging smallcalls -x STANDIN_LOG="$T/log"
    grep -q ' pins ' "$T/log"
    ! grep 'memory that CUDA does not know' "$T/log" || false
    clean
}

@test "staging: sends and receives work, blocking and as requests" { by_staging pairs; }

@test "a call waits for work that the default streams already have" {
    by_staging later
    by_nccl later
}

@test "a call does not wait for work that the default streams get later" {
    by_staging sooner -x STANDIN_STERN=1
    by_nccl sooner -x STANDIN_STERN=1
}

@test "after a fault of the GPU, calls name it, and host memory still counts as such" {
    for path in staging 'nccl -x NCCL_COMM_BLOCKING=0' 'nccl -x NCCL_COMM_BLOCKING=1' 'shared -H localhost:1'; do
        gpu fault -x DTRUN_DEVICE=$path
        code_is 1
        [ "$(grep -c -- '^-10: rank . (localhost): .*(CUDA_ERROR_ILLEGAL_ADDRESS, 700): a kernel before this call failed: ' "$OUT")" = 5 ] || { show; false; }
        clean
    done
}

@test "managed memory is read only after the GPU has written it, wherever it lies" {
    by_staging managed
    by_staging managed -x STANDIN_MANAGED_ON_HOST=1
}

@test "staging: dt_join works between ranks with different numbers of calls" { by_staging join; }

@test "between dt_join_begin and dt_join, calls that differ in memory or size do not match" {
    local of_0 of_1 where
    gpu joinunlike -x DTRUN_DEVICE=staging
    code_is 0
    while read -r of_0 of_1 where; do
        [ "$(grep -c "^$of_0, $of_1 on the $where: -3: .*all-reduce of $of_0 f32 (sum) in device memory" "$OUT")" = 3 ]
        [ "$where" = GPU ] && where=' in device memory' || where='[,;]'
        [ "$(grep -c "^$of_0, $of_1 on the .*all-reduce of $of_1 f32 (sum)$where" "$OUT")" = 3 ]
    done <<'END'
1 1 host
2200000 2200000 host
2097152 1048576 host
2097152 1048576 GPU
END
    clean
}

@test "staging: factors, wire formats and buckets work" {
    by_staging factors
    by_staging buckets
}

@test "staging: communicators of some of the ranks work" {
    gpu split -x DTRUN_DEVICE=staging
    code_is 0
    [ "$(grep -c '^2 together$' "$OUT")" = 2 ]
    [ "$(grep -c '^1 together$' "$OUT")" = 1 ]
    clean
}

@test "a call during a graph capture is refused, and neither the capture nor a later call fails" {
    for path in staging nccl 'shared -H localhost:1'; do
        gpu capture -x DTRUN_DEVICE=$path
        code_is 0
        [ "$(grep -c -- '^-8: dt_all_reduce: a graph is being captured' "$OUT")" = 3 ]
        [ "$(grep -c '^capture: ' "$OUT")" = 3 ]
    done
    clean
}

@test "a call in the background does not disturb a graph capture" {
    by_staging beside
    for blocks in $MODES; do
        by_nccl beside -x NCCL_COMM_BLOCKING=$blocks
    done
}

@test "calls after an abort do not wait for a GPU that stands still" {
    for path in nccl staging; do
        gpu aborted -x DTRUN_DEVICE=$path -x STANDIN_STERN=1
        code_is 1
        [ "$(grep -c -- '^-13: ' "$OUT")" = 6 ] || { show; false; }
        clean
    done
}

@test "staging: when a GPU does not finish, the timeout names its rank" {
    gpu stuck -x DTRUN_DEVICE=staging
    code_is 124
    [ "$(grep -c -- '^-5: .*timed out: .*rank 1 [^;]*in a wait for its GPU' "$OUT")" = 3 ]
    grep -q 'a wait for its GPU, DT_ERR_TIMEOUT by cuda.*(rank 1)' "$ERR"
    clean
}

@test "when a rank exits during a request, nothing that the ending driver says is taken for the cause" {
    for path in staging nccl shared; do
        gpu leaves -x DTRUN_DEVICE=$path -x STANDIN_EXIT_MS=500 -H "localhost:$([ $path = shared ] && echo 1 || echo 3)"
        code_is 7
        [ "$(grep -c -- '^-4: .*rank 1 (localhost) died or left (exit status 7)' "$OUT")" = 2 ] || { show; false; }
        err_has 'exited with code 7'
        clean
    done
}

@test "check 45: when a rank dies, the others' calls on device memory end" {
    gpu die -x DTRUN_DEVICE=staging
    code_is 137
    [ "$(grep -c -- '^-4: .*rank 1 .*died or left (killed by signal 9)' "$OUT")" = 2 ]
    grep -q 'rank 1 .*was killed by signal 9' "$ERR"
    clean
}

# ---- NCCL ----

# Values of NCCL_COMM_BLOCKING: failures end alike whether or not NCCL's calls block.
MODES='0 1'

by_nccl() { # WHAT [dtrun option...]
    gpu "$@" -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log"
    code_is 0
    [ "$(wc -l <"$OUT")" = 3 ]
    [ ! -s "$ERR" ]
    ! grep -i 'order\|match' "$T/log" || false
    clean
}

@test "NCCL: every collective, type and operation works, with staging for those that NCCL lacks" {
    by_nccl calls
    [ "$(sort -u "$OUT")" = "calls: 645 comparisons" ]
}

@test "NCCL: factors, buckets and joins work" {
    by_nccl factors
    by_nccl buckets
    by_nccl join
}

@test "every collective works as a request, by staging and NCCL" {
    by_staging requests
    [ "$(sort -u "$OUT")" = "requests: 32 comparisons" ]
    for blocks in $MODES; do
        by_nccl requests -x NCCL_COMM_BLOCKING=$blocks
        [ "$(sort -u "$OUT")" = "requests: 32 comparisons" ]
    done
}

@test "NCCL: communicators of some of the ranks work" {
    gpu split -x DTRUN_DEVICE=nccl -np 4
    code_is 0
    [ "$(grep -c '^2 together$' "$OUT")" = 4 ]
    clean
}

# Splits a communicator that NCCL serves, and counts ncclCommSplit's calls.
splits() { # COUNT WHAT [dtrun option...]
    local count=$1 what=$2
    shift 2
    rm -f "$T/log"
    use_standin 6
    dtrun --no-tag -np 6 -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log" "$@" "$RANK/gpu" "$what"
    unset LD_LIBRARY_PATH
    code_is 0
    [ "$(grep -c 'splits its communicator' "$T/log")" = "$count" ] || { cat "$T/log"; show; false; }
    ! grep -i 'order\|match\|outstanding' "$T/log" || false
    [ ! -s "$ERR" ] || { show; false; }
    clean
}

@test "NCCL: ncclCommSplit makes the communicators that are split from one in use" {
    for fewer in '' DTRUN_NCCL_SPLIT=0 NCCL_COMM_SPLIT_SHARE_RESOURCES=1 NCCL_COMM_BLOCKING=0; do
        splits $([ "$fewer" ] && echo 0 || echo 17) splitlater ${fewer:+-x $fewer}
        [ "$(grep members "$OUT" | sort | uniq -c | sed 's/^ *//')" = '1 members: 0
1 members: 1
3 members: 1 3 5
1 members: 2
2 members: 2 4
1 members: 3
1 members: 4
4 members: 4 2
1 members: 5
6 members: 5 3 1' ] || { show; false; }
    done
}

@test "NCCL: a duplicate, and a communicator that is split before the first call, connect by themselves" {
    splits 0 splitdup
    [ "$(grep -c 'members: 0 1 2 3 4 5$' "$OUT")" = 6 ] || { show; false; }
    splits 0 split
}

# A driver that is asked for memory while calls are under way may wait for them, and they for other ranks.
@test "NCCL: ncclCommSplit is called only while no other call is under way, and none begins meanwhile" {
    use_standin 3
    dtrun --no-tag -np 3 -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log" "$RANK/gpu" splitbeside
    unset LD_LIBRARY_PATH
    code_is 0
    ! grep outstanding "$T/log" || false
    [ "$(grep -c 'splits its communicator' "$T/log")" -ge 3 ]
    [ "$(grep -c 'members: 0 1 2$' "$OUT")" = 3 ] || { show; false; }
    clean
}

# A communicator that is split off has ranks of its own: rank 0 of the second one is rank 2 of the job.
@test "NCCL: a split that hangs, fails or loses a rank ends the job with the reason" {
    gpu splitfails -np 4 -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=init-hang:1:2 -x DTRUN_NCCL_INIT_TIMEOUT=1
    code_is 1
    grep -q -- '^-5: .*ncclCommSplit: NCCL has not connected the 4 ranks in 1 s (DTRUN_NCCL_INIT_TIMEOUT)' "$OUT" || { show; false; }
    [ "$(grep -c -- '^-5: .*DTRUN_NCCL_SPLIT=0 does without this call$' "$OUT")" = 4 ] || { show; false; }
    clean
    gpu splitfails -np 4 -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=init-error:1:2
    code_is 1
    [ "$(grep -c -- '^-11: .*ncclCommSplit: .*DTRUN_NCCL_SPLIT=0 does without this call$' "$OUT")" = 4 ] || { show; false; }
    clean
    gpu splitfails -np 4 -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=abort-hang:1,init-hang:1:2 -x DTRUN_NCCL_INIT_TIMEOUT=1
    code_is 1
    [ "$(grep -c -- '^-5: ' "$OUT")" = 4 ] || { show; false; }
    clean
    use_standin 4
    dtrun --no-tag -np 4 -x DTRUN_DEVICE=nccl -x HANGS="$T/hangs" sh -c '
        if [ $DTRUN_RANK = 1 ]; then
            export STANDIN_NCCL_FAULTS=init-hang:1:2 STANDIN_NCCL_HANGS="$HANGS"
            (until [ -e "$HANGS" ]; do kill -0 $$ || exit; sleep 0.01; done; kill -9 $$) &
        fi
        exec "$0" splitfails' "$RANK/gpu"
    unset LD_LIBRARY_PATH
    code_is 137
    [ "$(grep -c -- '^-4: .*rank 1 .*died or left (killed by signal 9)' "$OUT")" = 3 ] || { show; false; }
    clean
}

@test "--verbose and --report name the path of each communicator" {
    local via='on GPU memory go through'

    gpu split -v -np 4
    code_is 0
    [ "$(grep -c "^dtrun: localhost: collectives of communicator [01]\.1 $via NCCL 2.28.9$" "$ERR")" = 2 ] || { show; false; }
    gpu factors -v -np 4 -H localhost:2
    grep -q "collectives $via memory of shared GPUs and NCCL 2.28.9$" "$ERR" || { show; false; }
    gpu factors -v -np 2 -H localhost:1
    grep -q "collectives $via memory of shared GPUs$" "$ERR" || { show; false; }
    gpu factors -np 3 --report report.json
    ! grep "$via" "$ERR" || false
    [ "$(grep -c "\"text\":.*\"collectives $via NCCL 2.28.9\"" report.json)" = 1 ] || { cat report.json; false; }
    clean
}

@test "NCCL: versions from 2.18 on accept the configuration, and read no field that is not set" {
    for version in 21801 22105 22203 22304 22501 22602 22703 22809 22902 23007; do
        gpu split -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_VERSION=$version -x STANDIN_LOG="$T/log"
        code_is 0
        [ "$(grep -c together "$OUT")" = 3 ] || { echo "NCCL $version:"; show; false; }
        ! grep 'traffic class' "$T/log" || { echo "NCCL $version"; false; }
    done
    gpu split -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_VERSION=21701
    code_is 1
    grep -q 'libnccl.so.2 is older than NCCL 2.18' "$OUT" || { show; false; }
    clean
}

@test "NCCL: ranks share a GPU if NCCL_HOSTID tells them apart" {
    use_standin 1
    dtrun --no-tag -np 2 -H localhost:1 -x DTRUN_DEVICE=nccl sh -c 'NCCL_HOSTID=host$DTRUN_RANK exec "$0" smallcalls' "$RANK/gpu"
    unset LD_LIBRARY_PATH
    code_is 0
    [ "$(grep -c '^smallcalls: ' "$OUT")" = 2 ]
    clean
}

@test "NCCL: if it does not connect the ranks within its own time limit, they get an error" {
    for blocks in $MODES; do
        gpu die -x NCCL_COMM_BLOCKING=$blocks -x STANDIN_NCCL_FAULTS=init-hang:1 -x DTRUN_NCCL_INIT_TIMEOUT=1 --collective-timeout 600
        code_is 1
        grep -q -- '^-5: .*NCCL has not connected the 3 ranks in 1 s (DTRUN_NCCL_INIT_TIMEOUT)' "$OUT"
        clean
    done
}

@test "NCCL: an error has NCCL's own text and names the rank that it occurred on" {
    for blocks in $MODES; do
        gpu calls -x NCCL_COMM_BLOCKING=$blocks -x STANDIN_NCCL_FAULTS=init-error:1
        code_is 1
        [ "$(grep -c -- '^-11: .*rank 1 .*init-error was asked for: .*DTRUN_DEVICE=staging does without' "$OUT")" = 3 ] ||
            { show; false; }
        grep -q '^dtrun: rank 1 (localhost, pid [0-9]*) exited with code 1' "$ERR" || { show; false; }
        gpu calls -x NCCL_COMM_BLOCKING=$blocks -x STANDIN_NCCL_FAULTS=system-error:1:2
        code_is 1
        grep -q '^dtrun: rank 1 (localhost, pid [0-9]*) exited with code 1' "$ERR" || { show; false; }
        grep -q -- '^-11: rank . .*rank 1 .*ncclAllReduce: unhandled system error (ncclSystemError, 2)' "$OUT"
        grep -q 'in device memory, DT_ERR_NCCL by nccl' "$ERR"
        clean
    done
}

# Its failure alone says nothing of a rank that goes on and exits with 0.
@test "NCCL: a rank that exits with 0 after another's error is not taken for lost" {
    use_standin 4
    dtrun -np 3 -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=init-error:1 sh -c '"$0" calls; exit 0' "$RANK/gpu"
    unset LD_LIBRARY_PATH
    code_is 125
    grep -q 'all ranks exited with 0, although a call on DT_WORLD had failed for good (rank 1): rank 1 ' "$ERR"
    clean
}

# In the second job ranks 2 and 3 share the GPUs of others, and have no NCCL.
@test "NCCL: if rank 0 has no id for the others to meet at, all ranks say so" {
    gpu factors -x STANDIN_NCCL_FAULTS=id-error:0
    code_is 1
    [ "$(grep -c -- '^-11: .*rank 0 .* a start of NCCL.*ncclGetUniqueId: .*id-error was asked for' "$OUT")" = 3 ] ||
        { show; false; }
    clean
    use_standin 2
    dtrun --no-tag -np 4 -H localhost:2 -x STANDIN_NCCL_FAULTS=id-error:0 sh -c '
        case $DTRUN_RANK in 2 | 3) export DTRUN_NCCL=/none.so ;; esac
        exec "$0" factors' "$RANK/gpu"
    unset LD_LIBRARY_PATH
    code_is 1
    [ "$(grep -c -- '^-11: .*rank 0 .*id-error was asked for' "$OUT")" = 4 ] || { show; false; }
    clean
}

# Rank 1 is killed once NCCL reports an error on all others.
@test "NCCL: survivors blame the rank that died, although NCCL saw it first" {
    use_standin 4
    for blocks in $MODES; do
        dtrun --no-tag -np 3 -x DTRUN_DEVICE=nccl -x NCCL_COMM_BLOCKING=$blocks -x HANGS="$T/hangs$blocks" \
            -x STANDIN_NCCL_FAULTS=remote-error:0:2,kernel-hang:1:2,remote-error:2:2 sh -c '
                export STANDIN_NCCL_HANGS="$HANGS.$DTRUN_RANK"
                if [ "$DTRUN_RANK" = 1 ]; then
                    (until [ -e "$HANGS.0" ] && [ -e "$HANGS.2" ]; do sleep 0.01; done; kill -9 $$) &
                fi
                exec "$0" factors' "$RANK/gpu"
        code_is 137
        [ "$(grep -c -- '^-4: .*rank 1 .*died or left (killed by signal 9)' "$OUT")" = 2 ] || { show; false; }
        clean
    done
    unset LD_LIBRARY_PATH
}

# Rank 1 is killed while it hangs in its first launch, for which the others wait.
@test "NCCL: survivors blame a rank that died while they waited for it inside NCCL" {
    use_standin 4
    for blocks in $MODES; do
        dtrun --no-tag -np 3 -x DTRUN_DEVICE=nccl -x NCCL_COMM_BLOCKING=$blocks -x HANGS="$T/hangs$blocks" \
            --collective-timeout 60 sh -c '
                if [ "$DTRUN_RANK" = 1 ]; then
                    export STANDIN_NCCL_FAULTS=launch-hang:1:1 STANDIN_NCCL_HANGS="$HANGS"
                    (until [ -e "$HANGS" ]; do sleep 0.01; done; kill -9 $$) &
                fi
                exec "$0" factors' "$RANK/gpu"
        code_is 137
        [ "$(grep -c -- '^-4: .*rank 1 .*died or left (killed by signal 9)' "$OUT")" = 2 ] || { show; false; }
        clean
    done
    unset LD_LIBRARY_PATH
}

@test "dt_comm_abort ends the calls of all ranks, which return DT_ERR_ABORTED" {
    use_standin 3
    for path in 'nccl -x NCCL_COMM_BLOCKING=0' 'nccl -x NCCL_COMM_BLOCKING=1' staging; do
        dtrun --no-tag -np 3 -x DTRUN_DEVICE=$path --collective-timeout 60 "$RANK/gpushared" abort 1
        code_is 1
        [ "$(grep -c -- '^-13: .*rank 1 .*called dt_comm_abort' "$OUT")" = 3 ]
        grep -q 'in device memory, DT_ERR_ABORTED' "$ERR"
        clean
    done
    unset LD_LIBRARY_PATH
}

@test "NCCL: a kernel that never ends is given up at the time limit" {
    for blocks in $MODES; do
        gpu calls -x NCCL_COMM_BLOCKING=$blocks -x STANDIN_NCCL_FAULTS=kernel-hang:1:2 --collective-timeout 3
        code_is 124
        grep -q -- '^-5: .*all-reduce of 1000 i8 (sum) in device memory.*timed out' "$OUT"
        grep -q 'in device memory, DT_ERR_TIMEOUT by nccl' "$ERR"
        clean
    done
}

@test "NCCL: when a GPU does not reach a call, the timeout names its rank" {
    for blocks in $MODES; do
        gpu stuck -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl
        code_is 124
        [ "$(grep -c -- '^-5: .*timed out: .*rank 1 [^;]*in a wait for its GPU' "$OUT")" = 3 ]
        grep -q 'all-reduce of 1 f32 (sum) in device memory, DT_ERR_TIMEOUT by nccl.*(ranks 0-2)' "$ERR"
        clean
    done
}

@test "NCCL: when NCCL does not launch a call, the timeout names its rank" {
    for blocks in $MODES; do
        gpu calls -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=launch-hang:1:2 \
            --collective-timeout 3
        code_is 124
        [ "$(grep -c -- '^-5: .*timed out: .*rank 1 [^;]*in a launch by NCCL' "$OUT")" = 3 ] || { show; false; }
        clean
    done
}

# A rank that waited longer than the grace period for its abort would print nothing.
@test "NCCL: an abort that hangs delays no rank" {
    for blocks in $MODES; do
        gpu calls -x NCCL_COMM_BLOCKING=$blocks -x STANDIN_NCCL_FAULTS=kernel-hang:1:2,abort-hang:1 --collective-timeout 3 \
            --kill-grace 3
        code_is 124
        [ "$(grep -c -- '^-5: .*timed out' "$OUT")" = 3 ]
        clean
    done
}

@test "NCCL: after a death, no communicator waits for survivors that compute" {
    for blocks in $MODES; do
        gpu idle -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl --kill-grace 10
        code_is 137
        [ "$(grep -c '^left after [0-4] s' "$OUT")" = 1 ] || { show; false; }
        clean
    done
}

@test "NCCL: a communicator with an asynchronous error returns its memory" {
    for blocks in $MODES; do
        gpu leak -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_BROKEN="$T/broken$blocks"
        code_is 0
        [ "$(grep -c '^0 bytes lost' "$OUT")" = 3 ] || { show; false; }
        clean
    done
}

@test "NCCL: ranks launch the calls of several communicators in the same order" {
    use_standin 4
    dtrun --no-tag -np 3 -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log" "$DTRUN_BUILD/tests/gpu/probe" orders
    unset LD_LIBRARY_PATH
    code_is 0
    [ -e "$T/log" ]
    ! grep 'launch order differs' "$T/log" || false
    clean
}

@test "NCCL: ranks leave their communicators in the same order, wherever their tables hold them" {
    gpu slots -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log"
    code_is 0
    for rank in 0 1 2; do
        sed -n "s/^rank $rank leaves //p" "$T/log" >left.$rank
    done
    [ "$(wc -l <left.1)" = 2 ] || { cat log; false; }
    cmp left.0 left.1
    cmp left.1 left.2
    clean
}

@test "NCCL: a destroy that hangs does not keep a program from ending" {
    for blocks in $MODES; do
        gpu split -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=destroy-hang:0
        code_is 0
        [ "$(grep -c together "$OUT")" = 3 ]
        clean
    done
}

# ---- buckets of buffers in GPU memory ----

bucket() { # WHAT [dtrun option...]
    local what=$1
    shift
    use_standin 4
    rm -f "$T/log"
    dtrun --no-tag -np 3 -x STANDIN_STERN=1 -x STANDIN_LOG="$T/log" "$@" "$RANK/gpubucket" "$what"
    unset LD_LIBRARY_PATH
}

fills_buckets() { # WHAT LAUNCHES [dtrun option...]
    local what=$1 launches=$2
    shift 2
    bucket "$what" "$@"
    code_is 0
    [ "$(grep -c "^$what: done" "$OUT")" = 3 ] || { show; false; }
    [ "$(grep -c launches "$T/log")" = "$launches" ] || { sort "$T/log" | uniq -c; false; }
    ! grep -i 'order\|match' "$T/log" || false
    clean
}

# 50 rounds of 20 buffers. One of them is larger than the bucket, and the others fill it twice.
@test "NCCL: a bucket's buffers in GPU memory are reduced as one" {
    fills_buckets rounds $((3 * (1 + 50 * 3))) -x DTRUN_DEVICE=nccl
    fills_buckets large $((3 * (1 + 50))) -x DTRUN_DEVICE=nccl
    fills_buckets view $((3 * (1 + 50 * 4))) -x DTRUN_DEVICE=nccl
}

@test "staging: a bucket's buffers in GPU memory are reduced as one" {
    for what in rounds large view mixed join; do
        fills_buckets $what 0 -x DTRUN_DEVICE=staging
    done
}

# One bucket of 20 buffers, and one of 20 of which every fifth is in host memory.
@test "NCCL: a bucket's buffers in host memory and in GPU memory are reduced apart" {
    fills_buckets mixed $((3 * (1 + 4))) -x DTRUN_DEVICE=nccl
}

@test "NCCL: between dt_join_begin and dt_join, a bucket's buffers in GPU memory are reduced one by one" {
    fills_buckets join $((3 * 3)) -x DTRUN_DEVICE=nccl
}

# CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED is 115.
@test "if one rank has no GPU memory for a bucket, all reduce its buffers one by one" {
    use_standin 4
    for lack in STANDIN_MEMORY=750000 STANDIN_LACKS=115; do
        rm -f "$T/log"
        dtrun --no-tag -np 3 -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log" -x LACK=$lack \
            sh -c '[ "$DTRUN_RANK" != 1 ] || export "$LACK"; exec "$0" large' "$RANK/gpubucket"
        code_is 0
        [ "$(grep -c '^large: done' "$OUT")" = 3 ] || { show; false; }
        [ "$(grep -c launches "$T/log")" = $((3 * (1 + 50 * 20))) ] || { sort "$T/log" | uniq -c; false; }
        [ "$(grep -c 'warning: rank 1 (localhost) gets no stream-ordered GPU memory for a bucket: ' "$ERR")" = 1 ] || { show; false; }
        clean
    done
    unset LD_LIBRARY_PATH
}

@test "buckets whose buffers have other sizes on one rank do not match" {
    for path in nccl staging; do
        bucket unlike -x DTRUN_DEVICE=$path
        code_is 1
        [ "$(grep -c -- '^-3: .*all-reduce of 7 f32 (sum) of a bucket in device memory.*with other counts' "$OUT")" = 3 ]
        clean
        bucket unlike-large -x DTRUN_DEVICE=$path
        code_is 1
        [ "$(grep -c -- '^-3: .*all-reduce of 1400000 f32 (sum) of a bucket in device memory.*with other counts' "$OUT")" = 3 ] || { show; false; }
        clean
    done
}

# A stream is given at most 100 pieces of work, and a buffer takes three.
@test "a bucket of many buffers whose GPU makes no progress ends with a timeout" {
    for path in nccl staging; do
        bucket crowd -x DTRUN_DEVICE=$path -x STANDIN_QUEUE=100
        code_is 124
        [ "$(grep -c -- '^-5: .*timed out: .*rank 1 [^;]*in a wait for its GPU' "$OUT")" = 3 ] || { show; false; }
        clean
    done
}

@test "when the wait for a bucket has failed, no copy into its buffers runs any more" {
    for path in nccl staging; do
        bucket abort -x DTRUN_DEVICE=$path -x STANDIN_DELAY_US=20000
        code_is 1
        [ "$(grep -c -- '^-13: ' "$OUT")" = 3 ] || { show; false; }
        ! grep 'after an abort' "$OUT" || false
        clean
    done
}

@test "a push after an abort does not wait for a GPU that stands still" {
    for path in nccl staging; do
        bucket aborted -x DTRUN_DEVICE=$path
        code_is 1
        [ "$(grep -c -- '^-13: ' "$OUT")" = 3 ] || { show; false; }
        clean
    done
}

@test "a bucket refuses buffers of another device or context than its earlier ones" {
    for path in shared staging; do
        for what in elsewhere contexts; do
            bucket $what --gpu-bind none -x DTRUN_DEVICE=$path
            code_is 0
            [ "$(grep -c -- '^-1: dt_bucket_push: the buffer belongs to another device or context' "$OUT")" = 3 ] || { show; false; }
            [ "$(grep -c "^$what: done" "$OUT")" = 3 ]
            clean
        done
    done
}

# The fourth kernel is the first one of the second round.
@test "after a failure, GPU memory of a bucket that a GPU may still use is not freed" {
    for path in nccl staging; do
        bucket die -x DTRUN_DEVICE=$path --collective-timeout 60
        code_is 137
        [ "$(grep -c -- '^-4: .*rank 1 .*died or left (killed by signal 9)' "$OUT")" = 2 ] || { show; false; }
        [ "$(grep -c '^the memory is kept$' "$OUT")" = 2 ] || { show; false; }
        clean
        bucket stuck -x DTRUN_DEVICE=$path
        code_is 124
        [ "$(grep -c -- '^-5: .*timed out: .*rank 1 [^;]*in a wait for its GPU' "$OUT")" = 3 ]
        [ "$(grep -c '^the memory is kept$' "$OUT")" = 3 ] || { show; false; }
        clean
    done
    for blocks in $MODES; do
        bucket after -x DTRUN_DEVICE=nccl -x NCCL_COMM_BLOCKING=$blocks -x STANDIN_NCCL_FAULTS=kernel-hang:1:4
        code_is 124
        [ "$(grep -c -- '^-5: .*of a bucket in device memory.*timed out' "$OUT")" = 3 ]
        [ "$(grep -c '^the memory is kept$' "$OUT")" = 3 ] || { show; false; }
        clean
    done
}

# ---- recovery ----

# Checks that training over NCCL with a fault in the first generation saves the same bytes as training without
# one, and that dtrun reports the fault.
recovers() { # MESSAGE WHAT FAULTS [dtrun option...]
    local message=$1 what=$2 faults=$3
    shift 3
    use_standin 4
    export STANDIN_LOG="$T/log"
    dtrun -np 3 -x DTRUN_DEVICE=nccl --checkpoint-dir "$T/calm" "$RANK/gpu" train
    code_is 0
    for blocks in $MODES; do
        dtrun -np 3 -x DTRUN_DEVICE=nccl -x NCCL_COMM_BLOCKING=$blocks --checkpoint-dir "$T/disturbed$blocks" \
            -x FAULTS="$faults" "$@" \
            sh -c '[ "$DTRUN_GENERATION" != 1 ] || export STANDIN_NCCL_FAULTS="$FAULTS"; exec "$0" "$@"' \
            "$RANK/gpu" "$what"
        code_is 0
        grep -q -- "$message" "$ERR" "$OUT" || { echo "NCCL_COMM_BLOCKING=$blocks:"; show; false; }
        grep -q 'recovered from 1 failure' "$ERR" || { echo "NCCL_COMM_BLOCKING=$blocks:"; show; false; }
        diff -r -x LINEAGE "$T/calm" "$T/disturbed$blocks"
        clean
    done
    unset LD_LIBRARY_PATH STANDIN_LOG
}

@test "recovery with NCCL: from a killed rank" {
    recovers 'rank 1 .* was killed by signal 9' train '' --inject kill:rank=1,step=7
}

@test "recovery with NCCL: from a stopped rank" {
    recovers 'for rank 1 ' train '' --inject stop:rank=1,step=7 --collective-timeout 3
}

@test "recovery with NCCL: from an asynchronous error" {
    recovers 'rank 1 .*ncclAllReduce: unhandled system error' train system-error:1:7
}

@test "recovery with NCCL: from an initialisation that hangs" {
    recovers 'NCCL has not connected the 3 ranks in 1 s' train init-hang:1 -x DTRUN_NCCL_INIT_TIMEOUT=1
}

@test "recovery with NCCL: from a kernel and an abort that hang" {
    recovers 'all-reduce of 1000 f32 (avg) in device memory, DT_ERR_TIMEOUT by nccl' train \
        kernel-hang:1:7,abort-hang:0,abort-hang:1,abort-hang:2 --collective-timeout 3
}

@test "recovery with NCCL: from a launch that hangs" {
    recovers 'all-reduce of 1000 f32 (avg) in device memory, DT_ERR_TIMEOUT by nccl' train \
        launch-hang:1:7 --collective-timeout 3
}

@test "recovery with NCCL: from a GPU that does not finish earlier work" {
    recovers 'rank 1 [^;]*in a wait for its GPU' stucktrain '' --collective-timeout 3
}

# Checks the same for training without NCCL, in which rank 1 is at fault.
recovers_without_nccl() { # PATH DEVICES MESSAGE WHAT [dtrun option...]
    local path=$1 devices=$2 message=$3 what=$4
    shift 4
    use_standin "$devices"
    dtrun -np 3 -H "localhost:$devices" -x DTRUN_DEVICE=$path --checkpoint-dir "$T/calm" "$RANK/gpu" train
    code_is 0
    dtrun -np 3 -H "localhost:$devices" -x DTRUN_DEVICE=$path --collective-timeout 3 \
        --checkpoint-dir "$T/disturbed" "$@" "$RANK/gpu" "$what"
    code_is 0
    grep -q "rank 1 .*$message" "$ERR" || { show; false; }
    grep -q 'recovered from 1 failure' "$ERR" || { show; false; }
    diff -r -x LINEAGE "$T/calm" "$T/disturbed"
    rm -r "$T/calm" "$T/disturbed"
    unset LD_LIBRARY_PATH
    clean
}

@test "recovery by staging and on a shared GPU: from a killed rank" {
    for path in 'staging 3' 'shared 1'; do
        recovers_without_nccl $path 'was killed by signal 9' train --inject kill:rank=1,step=7
    done
}

@test "recovery by staging and on a shared GPU: from a stopped rank" {
    for path in 'staging 3' 'shared 1'; do
        recovers_without_nccl $path 'is stopped by a signal and was last in all-reduce (call ' train --inject stop:rank=1,step=7
    done
}

@test "recovery by staging and on a shared GPU: from a GPU that does not finish earlier work" {
    for path in 'staging 3' 'shared 1'; do
        recovers_without_nccl $path 'in a wait for its GPU' stucktrain
    done
}

# Nothing frees a thread that waits in NCCL's queue for its proxy, nor, before 2.22, one in the driver.
# Rank 1 is killed once NCCL keeps the thread of rank 0. Its death explains the exit (flag 4 of struct dt_death).
@test "NCCL: a rank whose call NCCL keeps for good exits, and the rank that died first is to blame" {
    use_standin 4
    dtrun -v --no-tag -np 3 -x DTRUN_DEVICE=nccl -x NCCL_COMM_BLOCKING=1 -x STANDIN_NCCL_FAULTS=queue-hang:0:2 \
        -x STANDIN_NCCL_HANGS="$T/hangs" --kill-grace 1000 sh -c '
            if [ "$DTRUN_RANK" = 1 ]; then
                (until [ -e "$STANDIN_NCCL_HANGS" ]; do sleep 0.01; done; kill -9 $$) &
            fi
            exec "$0" factors' "$RANK/gpu"
    unset LD_LIBRARY_PATH
    code_is 137
    grep -q '^dtrun: rank 1 (.*) was killed by signal 9 (SIGKILL); stopping' "$ERR" || { show; false; }
    grep -qE '^dtrun: rank 0 ended: code 123, signal 0, step -1, flags 0x[0-9a-f]*[4-7c-f]$' "$ERR" || { show; false; }
    clean
}

@test "recovery with NCCL: from threads of all ranks that NCCL keeps for good" {
    use_standin 4
    dtrun -np 3 -x DTRUN_DEVICE=nccl --checkpoint-dir "$T/calm" "$RANK/gpu" train
    code_is 0
    for fault in '22105 submit-hang' '22809 queue-hang'; do
        rm -rf "$T/again" "$T/hangs"
        dtrun -np 3 -x DTRUN_DEVICE=nccl -x NCCL_COMM_BLOCKING=1 -x STANDIN_NCCL_VERSION=${fault% *} \
            -x STANDIN_NCCL_HANGS="$T/hangs" -x FAULT=${fault#* } --checkpoint-dir "$T/again" \
            sh -c '[ "$DTRUN_GENERATION" != 1 ] || export STANDIN_NCCL_FAULTS="$FAULT:0:7,$FAULT:1:7,$FAULT:2:7"
                   exec "$0" watchedtrain' "$RANK/gpu"
        code_is 0
        grep -q '^dtrun: rank [012] (.*) exited with code 123' "$ERR" || { show; false; }
        grep -q 'recovered from 1 failure' "$ERR" || { show; false; }
        diff -r -x LINEAGE "$T/calm" "$T/again"
        clean
    done
    unset LD_LIBRARY_PATH
}

@test "every call refuses host memory and device memory together, and later calls work" {
    by_staging mixed
    by_nccl mixed
}

@test "reductions refuse buffers in GPU memory that are not aligned for their type" {
    by_staging misaligned
    by_nccl misaligned
}

@test "host memory on one rank and device memory on another do not match" {
    gpu unlike -x DTRUN_DEVICE=staging
    code_is 1
    grep -q -- '^-3: .*rank 1 .*all-reduce of 1 f32 (sum), call 2' "$OUT"
    grep -q -- '^-3: .*all-reduce of 1 f32 (sum) in device memory' "$OUT"
    clean
}

@test "without NCCL, data goes through host memory, and one warning says why" {
    gpu split -x DTRUN_NCCL="$T/none.so"
    code_is 0
    [ "$(grep -c together "$OUT")" = 3 ]
    [ "$(wc -l <"$ERR")" = 1 ]
    grep -q 'warning: .*none.so.* go through host memory (DTRUN_DEVICE=staging does the same' "$ERR"
    clean
}

@test "calls are staged if the CUDA runtime in libnccl is too new for the driver, and NCCL is never started" {
    gpu smallcalls -x STANDIN_NCCL_STARTS=0
    code_is 0
    [ "$(sort -u "$OUT")" = "smallcalls: 588 comparisons" ]
    [ "$(wc -l <"$ERR")" = 1 ]
    grep -q 'warning: rank 0 .* cannot use NCCL (its CUDA runtime does not start: ncclMemFree: .*ncclUnhandledCudaError, 1): Cuda failure 35 .*: update the driver' "$ERR"
    gpu calls -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_STARTS=0
    code_is 1
    grep -q -- '^-11: .* cannot use NCCL (its CUDA runtime does not start' "$OUT"
    clean
}

@test "memory of a context that the program has created goes through host memory" {
    use_standin 4
    dtrun --no-tag -np 2 --gpu-bind host "$DTRUN_BUILD/tests/gpu/probe" contexts own
    unset LD_LIBRARY_PATH
    code_is 0
    [ "$(grep -c '^= 1$' "$OUT")" = 2 ]
    [ "$(grep -c 'warning: rank 0 .* cannot use NCCL (the program uses a context that it has created' "$ERR")" = 1 ]
    clean
}

@test "DTRUN_DEVICE=nccl names the ranks that share a GPU" {
    gpu calls -H localhost:1 -x DTRUN_DEVICE=nccl
    code_is 1
    grep -q -- '-11: rank 0 (localhost) and rank 1 (localhost) share a GPU (0000:.*), which NCCL does not support, and DTRUN_DEVICE=nccl' "$OUT"
    clean
}

@test "NCCL from pip is found beside another NVIDIA package while a thread is opening a library" {
    local libraries="$DTRUN_BUILD/tests/standin/.libs"
    local loading="$DTRUN_BUILD/tests/fake/.libs/libloading.so"
    use_standin 2
    mkdir -p "$T/driver" "$T/nvidia/cuda_runtime/lib" "$T/nvidia/nccl/lib"
    cp -L "$libraries/libcuda.so.1" "$T/driver"
    cp -L "$libraries/libnccl.so.2" "$T/nvidia/nccl/lib"
    cp -L "$libraries/libcharlm.so" "$T/nvidia/cuda_runtime/lib/libcudart.so.13"
    LD_LIBRARY_PATH=$T/driver
    dtrun --no-tag -np 2 -H localhost:2 -x DTRUN_DEVICE=nccl \
        -x LD_PRELOAD="$T/nvidia/cuda_runtime/lib/libcudart.so.13:$loading" "$RANK/gpu" factors
    code_is 0
    [ "$(sort -u "$OUT")" = "factors: 28 comparisons" ]
    unset LD_LIBRARY_PATH
    clean
}

# Succeeds if the ranks have loaded this file, and no other, as NCCL.
loads() { # FILE
    dtrun --no-tag -np 2 -H localhost:2 -x DTRUN_DEVICE=nccl -x VIRTUAL_ENV="$T/venv" -x LD_DEBUG=files "$RANK/gpu" factors
    code_is 0
    [ "$(grep -o 'calling init: .*/libnccl.so.2' "$ERR" | sort -u)" = "calling init: $1" ]
}

@test "NCCL in LD_LIBRARY_PATH comes before NCCL from pip, and that before the system's" {
    local libraries="$DTRUN_BUILD/tests/standin/.libs" pip="$T/venv/lib/python3.11/site-packages/nvidia/nccl/lib"
    use_standin 2
    mkdir -p "$T/driver" "$T/nccl" "$pip"
    cp -L "$libraries/libcuda.so.1" "$T/driver"
    for folder in "$T/nccl" "$pip"; do
        cp -L "$libraries/libnccl.so.2" "$folder"
    done
    LD_LIBRARY_PATH=$T/driver
    loads "$pip/libnccl.so.2"
    LD_LIBRARY_PATH=$T/driver:$T/nccl
    loads "$T/nccl/libnccl.so.2"
    unset LD_LIBRARY_PATH
    clean
}

@test "settings that break NCCL are found wherever NCCL reads them" {
    echo '# NCCL_COMM_ID=commented' >"$T/nccl.conf"
    gpu split -x DTRUN_DEVICE=nccl -x NCCL_CONF_FILE="$T/nccl.conf"
    code_is 0
    echo 'NCCL_COMM_ID=10.0.0.1:9999' >"$T/nccl.conf"
    gpu calls -x DTRUN_DEVICE=nccl -x NCCL_CONF_FILE="$T/nccl.conf"
    code_is 1
    grep -q -- "^-11: .* cannot use NCCL (NCCL_COMM_ID is set (in $T/nccl.conf), which fits only one communicator" "$OUT"
    mkdir "$T/home"
    mv "$T/nccl.conf" "$T/home/.nccl.conf"
    gpu split -x DTRUN_DEVICE=nccl -x HOME="$T/home" -x STANDIN_NCCL_VERSION=22907
    code_is 0
    gpu calls -x DTRUN_DEVICE=nccl -x HOME="$T/home" -x STANDIN_NCCL_VERSION=23003
    code_is 1
    grep -q -- "^-11: .* cannot use NCCL (NCCL_COMM_ID is set (in $T/home/.nccl.conf)" "$OUT"
    gpu calls -x DTRUN_DEVICE=nccl -x NCCL_COMM_ID=10.0.0.1:9999
    code_is 1
    grep -q -- '^-11: .* cannot use NCCL (NCCL_COMM_ID is set (in the environment)' "$OUT"
    clean
}

# Checks in which mode communicators are created.
creates() { # blocks|'does not block' [dtrun option...]
    local mode=$1
    shift
    rm -f "$T/log"
    gpu split -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log" "$@"
    code_is 0
    [ "$(grep -o 'a communicator that .*' "$T/log" | sort -u)" = "a communicator that $mode" ] ||
        { cat "$T/log"; false; }
}

@test "NCCL_COMM_BLOCKING chooses whether NCCL's calls block, wherever NCCL reads it" {
    creates blocks
    creates 'does not block' -x NCCL_COMM_BLOCKING=0
    creates blocks -x NCCL_COMM_BLOCKING=1
    creates blocks -x NCCL_COMM_BLOCKING=
    echo 'NCCL_COMM_BLOCKING=0' >"$T/nccl.conf"
    creates 'does not block' -x NCCL_CONF_FILE="$T/nccl.conf"
    creates blocks -x NCCL_COMM_BLOCKING=1 -x NCCL_CONF_FILE="$T/nccl.conf"
    clean
}

@test "NCCL before 2.27: calls block, as otherwise NCCL would use memory of threads that have ended" {
    creates blocks -x STANDIN_NCCL_VERSION=22606
    creates blocks -x STANDIN_NCCL_VERSION=21801 -x NCCL_COMM_BLOCKING=1
    creates 'does not block' -x STANDIN_NCCL_VERSION=22703 -x NCCL_COMM_BLOCKING=0
    gpu calls -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_VERSION=22606 -x NCCL_COMM_BLOCKING=0
    code_is 1
    grep -q -- '^-11: .* cannot use NCCL (NCCL_COMM_BLOCKING=0 (in the environment) makes NCCL before 2.27 use memory' "$OUT"
    clean
}

@test "NCCL before 2.22: every call has the right result, and none makes NCCL send" {
    local what=calls
    for version in 21801 22105 22203; do
        by_nccl $what -x STANDIN_NCCL_VERSION=$version
        grep -q "^$what: [0-9]* comparisons$" "$OUT"
        [ "$(grep -c 'sends are connected' "$T/log")" = $([ $version = 22203 ] && echo 3 || echo 0) ]
        rm "$T/log"
        what=smallcalls
    done
}

@test "DTRUN_DEVICE=nccl permits no other path" {
    gpu calls -x DTRUN_DEVICE=nccl -x DTRUN_NCCL="$T/none.so"
    code_is 1
    grep -q -- '-11: rank 0 (localhost) cannot use NCCL (.*none.so: .*), and DTRUN_DEVICE=nccl' "$OUT"
    clean
}

@test "if DTRUN_DEVICE differs between ranks, the error names them" {
    use_standin 4
    dtrun --no-tag -np 2 sh -c '[ $DTRUN_RANK = 1 ] || export DTRUN_DEVICE=nccl; exec "$0" calls' "$RANK/gpu"
    unset LD_LIBRARY_PATH
    code_is 1
    grep -q -- '-3: DTRUN_DEVICE is nccl on rank 0 (localhost) and auto on rank 1 (localhost): it must' "$OUT"
    clean
}

@test "dt_init refuses an unknown DTRUN_DEVICE" {
    gpu calls -x DTRUN_DEVICE=gpu
    code_is 1
    grep -q -- '-1: dt_init: DTRUN_DEVICE=gpu is not one of auto, nccl, shared, staging' "$OUT"
    clean
}

@test "a bucket's buffers in GPU memory are reduced as one although the driver does not number allocations" {
    fills_buckets large $((3 * (1 + 50))) -x DTRUN_DEVICE=nccl -x STANDIN_NUMBERS=0
}

@test "libdtrun uses no function of the CUDA runtime, whose last error is the program's, nor needs its library" {
    ! grep -aoE '(^|[^A-Za-z_])(cuda[A-Z][A-Za-z]+|libcudart)' "$DTRUN_BUILD/runtime/.libs/libdtrun.so" || false
}

@test "a program that loads no CUDA loads no NVIDIA library" {
    use_standin 4
    export STANDIN_LOG="$T/log"
    dtrun -np 2 "$RANK/steps" meet
    unset LD_LIBRARY_PATH STANDIN_LOG
    code_is 0
    [ ! -e "$T/log" ]
    clean
}

# Short ones of the programs that tests/gpu/random makes.
random() { # SEED...
    for seed in "$@"; do
        env "$TOKEN" "$DTRUN_SOURCE/tests/gpu/random" --from "$seed" --seeds 1
    done
    clean
}

# In one of them, a rank sends nothing in an all-to-allv that is staged (223).
@test "random programs on GPU memory compute what they must" {
    random 2 9 11 19 24 31 36 223
}

@test "random programs that are disturbed end with the bytes of undisturbed ones" { random 17 30; }
