#!/usr/bin/env bats
# NVIDIA's own NCCL 2.28 on the stand-in for the driver: its starts, connections, threads, aborts and ends are real,
# only its kernels and the CUDA runtime are ours. Programs compare results with those of host memory.

load common
load ../standin/standin

setup_file() {
    export FILE FILE_SKIPS

    FILE=$(find_nvidia_nccl) ||
        FILE_SKIPS="no libnccl.so.2 of NCCL 2.28 for x86-64 with symbols, or no readelf"
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libnvidia.so" ] || FILE_SKIPS="built without shared libraries"
}

nccl() { # PROGRAM WHAT [dtrun option...]
    local program=$1 what=$2
    shift 2
    use_nvidia_nccl 4 "$FILE"
    dtrun --no-tag -np 3 -x LD_PRELOAD="$NVIDIA" -x DTRUN_DEVICE=nccl "$@" \
        ${WRAPPER:+"$WRAPPER"} "$RANK/$program" $what
    unset LD_LIBRARY_PATH DTRUN_NCCL
}

# Ranks on hosts of their own speak through NCCL's sockets.
on_hosts() {
    printf '#!/bin/sh\nSTANDIN_HOST=host$DTRUN_RANK exec "$@"\n' >"$T/on-host"
    chmod +x "$T/on-host"
    WRAPPER="$T/on-host"
}

works() { # LINE PROGRAM WHAT [dtrun option...]
    local line=$1
    shift
    nccl "$@"
    code_is 0
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 3 $line" ] || { show; false; }
    [ ! -s "$ERR" ] || { show; false; }
    clean
}

@test "every call computes the same as in host memory, whether or not NCCL's calls block" {
    works 'calls: 645 comparisons' gpu calls
    works 'factors: 28 comparisons' gpu factors -x NCCL_COMM_BLOCKING=0
}

@test "every call computes the same as in host memory over NCCL's sockets" {
    on_hosts
    works 'calls: 645 comparisons' gpu calls
}

@test "calls on a stream compute the same as in host memory" {
    works 'streamfactors: 28 comparisons' gpu streamfactors
    works 'orders: done' gpustream orders
}

@test "communicators are made, used and left in any order" {
    nccl gpu split
    code_is 0
    [ "$(grep together "$OUT" | sort | uniq -c | tr -s ' ')" = "$(printf ' 1 1 together\n 2 2 together')" ]
    clean
    works 'slots: 0 comparisons' gpu slots
}

@test "NCCL splits a communicator that is in use" {
    nccl gpu splitlater -np 4 -x NCCL_DEBUG=INFO -x NCCL_DEBUG_SUBSYS=INIT
    code_is 0
    [ "$(grep -c 'ncclCommSplit comm .* Init COMPLETE' "$OUT")" = 4 ] || { show; false; }
    [ "$(grep '^members' "$OUT" | sort | uniq -c | sed 's/^ *//')" = '1 members: 0
1 members: 1
2 members: 1 3
4 members: 2
1 members: 3
4 members: 3 1' ] || { show; false; }
    clean
}

@test "NCCL reduces between GPUs that ranks share" {
    use_nvidia_nccl 2 "$FILE"
    dtrun --no-tag -np 4 -H localhost:2 -x LD_PRELOAD="$NVIDIA" -x DTRUN_DEVICE=shared "$RANK/gpu" factors
    unset LD_LIBRARY_PATH DTRUN_NCCL
    code_is 0
    [ "$(sort -u "$OUT")" = "factors: 28 comparisons" ]
    clean
}

@test "NCCL listens for ncclras on the job's port, and logs to a file for each rank" {
    nccl gpu smallcalls -x NCCL_DEBUG=INFO --output-dir "$T/files"
    code_is 0
    for rank in 0 1 2; do
        grep -q 'NCCL INFO .*Init COMPLETE' "$T/files/rank.0000$rank.1.nccl"
        grep -o 'RAS client listening socket at .*' "$T/files/rank.0000$rank.1.nccl" >>"$T/ports"
    done
    [ "$(sort -u "$T/ports" | wc -l)" = 1 ]
    ! grep -q '<28028>' "$T/ports" || false
    clean
}

@test "dt_comm_abort ends the calls of all ranks" {
    for blocks in 0 1; do
        nccl gpushared "abort 1" -x NCCL_COMM_BLOCKING=$blocks
        code_is 1
        [ "$(grep -c -- '^-13: .*rank 1 .*called dt_comm_abort' "$OUT")" = 3 ] || { show; false; }
        clean
    done
}

# Rank 1 hangs in the driver until it is killed.
@test "survivors blame a rank that died while they waited for it in NCCL's start" {
    cat >"$T/dies" <<'END'
#!/bin/sh
export STANDIN_HOST=host$DTRUN_RANK
if [ "$DTRUN_RANK" = 1 ]; then
    export STANDIN_NCCL_FAULTS=init-hang:1
    (until [ -e "$STANDIN_NCCL_HANGS" ]; do kill -0 $$ || exit; sleep 0.01; done; kill -9 $$) &
fi
exec "$@"
END
    chmod +x "$T/dies"
    WRAPPER="$T/dies"
    nccl gpu factors -x STANDIN_NCCL_HANGS="$T/hangs"
    code_is 137
    [ "$(grep -c -- '^-4: .*rank 1 .*died or left (killed by signal 9)' "$OUT")" = 2 ] || { show; false; }
    clean
}

@test "a start that never returns is given up at its time limit" {
    nccl gpu factors -x STANDIN_NCCL_FAULTS=init-hang:1 -x DTRUN_NCCL_INIT_TIMEOUT=1
    code_is 1
    grep -q -- '^-5: .*NCCL has not connected the 3 ranks in 1 s (DTRUN_NCCL_INIT_TIMEOUT)' "$OUT" || { show; false; }
    clean
}

@test "a driver without memory for NCCL is named by all ranks" {
    nccl gpu factors -x STANDIN_NCCL_FAULTS=init-error:1
    code_is 1
    [ "$(grep -c -- "^-11: .*rank 1 .*ncclCommInitRankConfig: unhandled cuda error .*out of memory" "$OUT")" = 3 ] ||
        { show; false; }
    clean
}

# Checks that a job goes on after a fault of its first generation, and ends with the bytes of a calm one.
recovers() { # MESSAGE FAULTS [dtrun option...]
    local message=$1
    cat >"$T/once" <<'END'
#!/bin/sh
[ "$DTRUN_GENERATION" = 1 ] || unset STANDIN_NCCL_FAULTS
[ -z "$HOSTS" ] || export STANDIN_HOST=host$DTRUN_RANK
exec "$@"
END
    chmod +x "$T/once"
    WRAPPER="$T/once"
    if [ ! -e "$BATS_FILE_TMPDIR/calm" ]; then
        nccl gpu train --checkpoint-dir "$T/calm"
        code_is 0
        mv "$T/calm" "$BATS_FILE_TMPDIR"
    fi
    rm -rf "$T/disturbed"
    nccl gpu train --checkpoint-dir "$T/disturbed" -x STANDIN_NCCL_FAULTS="$2" "${@:3}"
    code_is 0
    grep -q -- "$message" "$ERR" || { show; false; }
    grep -q 'recovered from 1 failure' "$ERR" || { show; false; }
    diff -r -x LINEAGE "$BATS_FILE_TMPDIR/calm" "$T/disturbed"
    clean
}

@test "recovery from a killed rank, on one host and over NCCL's sockets" {
    recovers 'rank 1 .* was killed by signal 9' '' --inject kill:rank=1,step=7 -x NCCL_COMM_BLOCKING=0
    recovers 'rank 1 .* was killed by signal 9' '' --inject kill:rank=1,step=7 -x HOSTS=yes
}

@test "recovery from a stopped rank" {
    recovers 'for rank 1 .* is stopped by a signal' '' --inject stop:rank=1,step=7 --collective-timeout 3
}

@test "recovery from a kernel that ends only by an abort, and from one that never ends" {
    recovers 'all-reduce of 1000 f32 (avg) in device memory, DT_ERR_TIMEOUT by nccl' kernel-hang:1:7 \
        --collective-timeout 3
    recovers 'all-reduce of 1000 f32 (avg) in device memory, DT_ERR_TIMEOUT by nccl' endless-kernel:1:7 \
        --collective-timeout 3
}

@test "recovery from a launch that never returns" {
    for blocks in 0 1; do
        recovers 'for rank 1 .*, which is in a launch by NCCL' launch-hang:1:7 --collective-timeout 3 -x NCCL_COMM_BLOCKING=$blocks
        grep -q 'all-reduce of 1000 f32 (avg) in device memory, DT_ERR_TIMEOUT by nccl' "$ERR"
    done
}
