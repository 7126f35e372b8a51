#!/usr/bin/env bats
# Calls that are enqueued on the program's own streams, and checkpoints of GPU memory, on stand-ins for
# NVIDIA's libraries. STANDIN_STERN makes every call of the driver wait for the GPU that does so on any real
# driver. So a test hangs if libdtrun makes such a call while a stream is held.

load common
load ../standin/standin

setup_file() {
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || export FILE_SKIPS="built without shared libraries"
}

stream() { # PROGRAM WHAT [dtrun option...]
    local program=$1 what=$2
    shift 2
    use_standin "${DEVICES:-4}"
    dtrun --no-tag -np 3 -x STANDIN_STERN=1 "$@" "$RANK/$program" "$what"
    unset LD_LIBRARY_PATH
}

# Checks that on each path all three ranks print LINE and nothing else is printed.
by_all_paths() { # LINE PROGRAM WHAT [dtrun option...]
    local line=$1
    shift
    for path in staging 'nccl -x NCCL_COMM_BLOCKING=0' 'nccl -x NCCL_COMM_BLOCKING=1'; do
        stream "$@" -x DTRUN_DEVICE=$path -x STANDIN_LOG="$T/log"
        all_say "$line"
        [ ! -s "$ERR" ] || { show; false; }
    done
    DEVICES=1 stream "$@" -H localhost:1 -x DTRUN_DEVICE=shared -x STANDIN_LOG="$T/log"
    all_say "$line"
    DEVICES=2 stream "$@" -H localhost:2 -x DTRUN_DEVICE=shared -x STANDIN_LOG="$T/log"
    all_say "$line"
    ! grep -i 'order\|match' "$T/log" || false
    clean
}

all_say() { # LINE
    code_is 0
    [ "$(sort "$OUT" | uniq -c | sed 's/^ *//')" = "3 $1" ] || { show; false; }
}

# Checks that all three ranks do WHAT on that path, and print nothing else on standard output.
does() { # WHAT PATH [dtrun option...]
    local what=$1 path=$2 devices=4
    shift 2
    [ "$path" != shared ] || { devices=1; set -- "$@" -H localhost:1; }
    DEVICES=$devices stream gpustream "$what" -x DTRUN_DEVICE="$path" "$@"
    all_say "$what: done"
}

@test "stream: every collective, type and operation has the results of host memory" {
    by_all_paths 'streamcalls: 645 comparisons' gpu streamcalls
}

@test "stream: factors and wire formats work" { by_all_paths 'streamfactors: 28 comparisons' gpu streamfactors; }

@test "stream: every collective works as a request" { by_all_paths 'streamrequests: 32 comparisons' gpu streamrequests; }

@test "stream: sends and receives work" { by_all_paths 'streampairs: 3 comparisons' gpu streampairs; }

@test "stream: calls keep their place on streams of every kind, and do not block the host" {
    by_all_paths 'order: done' gpustream order
    by_all_paths 'order: done' gpustream order -x STANDIN_DELAY_US=200
}

@test "stream: the legacy default stream waits for calls on a blocking stream" {
    by_all_paths 'legacy: done' gpustream legacy
}

@test "stream: ranks may use two communicators in different orders" { by_all_paths 'orders: done' gpustream orders; }

@test "stream: with DTRUN_PROGRAM_ORDER, the program's thread launches the calls of every communicator" {
    for delay in 0 300; do
        stream gpustream promised -x DTRUN_DEVICE=nccl -x DTRUN_PROGRAM_ORDER=1 -x STANDIN_DELAY_US=$delay \
            -x STANDIN_LOG="$T/log" -x DUMP="$T/dump"
        all_say 'promised: done'
        ! grep -i 'order\|match' "$T/log" || false
        [ "$(grep -c '^2\.2 .* nccl+stream .* on a stream$' "$T/dump")" = 40 ] || { cat "$T/dump"; false; }
    done
    clean
}

@test "stream: DTRUN_PROGRAM_ORDER counts if the ranks of all hosts have it" {
    make_on_list
    for hosts in 2 1; do
        use_standin 2
        dtrun -v --no-tag -np 3 -H a:2,b:1 --rsh './on-list %h' -x DTRUN_DEVICE=nccl -x DUMP="$T/dump" -x HOSTS=$hosts \
            sh -c 'export STANDIN_HOST=$DTRUN_NODE_RANK DTRUN_PROGRAM_ORDER=$((DTRUN_NODE_RANK < HOSTS))
                exec "$0" promised' "$RANK/gpustream"
        unset LD_LIBRARY_PATH
        all_say 'promised: done'
        for comm in '0\.1' '2\.2'; do
            ordered=$(grep -c "^$comm .* on a stream$" "$T/dump") || :
            [ $((ordered > 0)) = $((hosts == 2)) ] || { cat "$T/dump"; false; }
        done
        told=$(grep -c 'communicator [02]\.[12] .* in the order that the program has promised$' "$ERR") || :
        [ "$told" = $((hosts == 2 ? 2 : 0)) ] || { show; false; }
    done
    clean
}

@test "stream: with DTRUN_PROGRAM_ORDER, a call on a view does not match one without" {
    stream gpustream promiser -x DTRUN_DEVICE=nccl -x DTRUN_PROGRAM_ORDER=1
    code_is 1
    [ "$(grep -c -- '^-3: ' "$OUT")" = 3 ] || { show; false; }
    grep -q 'in device memory, on a stream' "$OUT" || { show; false; }
    clean
}

@test "stream: with DTRUN_PROGRAM_ORDER, a call that waits for an earlier one fills no queue of the driver" {
    stream gpustream patient -x DTRUN_DEVICE=nccl -x DTRUN_PROGRAM_ORDER=1 -x STANDIN_QUEUE=100 --collective-timeout 20
    all_say 'patient: done'
    clean
}

@test "stream: with DTRUN_PROGRAM_ORDER, a call waits until earlier ones are launched or have failed" {
    stream gpustream earlier -x DTRUN_DEVICE=nccl -x DTRUN_PROGRAM_ORDER=1 -x STANDIN_LOG="$T/log" --collective-timeout 20
    all_say 'earlier: done'
    ! grep -i 'order\|match' "$T/log" || false
    clean
}

@test "stream: calls of communicators whose streams share a hardware queue do not wait for each other" {
    by_all_paths 'orders: done' gpustream orders -x STANDIN_CONNECTIONS=1 --collective-timeout 20
    by_all_paths 'mixed: done' gpustream mixed -x STANDIN_CONNECTIONS=1 --collective-timeout 20
}

@test "stream: a call does not overtake an earlier one on another stream" { by_all_paths 'turns: done' gpustream turns; }

@test "stream: requests and enqueued calls share one order" { by_all_paths 'requests: done' gpustream requests; }

@test "stream: a barrier waits for the streams of all ranks" { by_all_paths 'barrier: done' gpustream barrier; }

@test "stream: views and communicators can be freed, and the job left, with calls under way" {
    by_all_paths 'free: done' gpustream free
}

@test "stream: wrong arguments are refused" { by_all_paths 'args: done' gpustream args; }

@test "stream: a thread that has no context makes a view of a stream" {
    for path in staging nccl shared; do
        does bare $path
    done
    clean
}

@test "stream: a call in a graph capture is refused, and neither the capture nor a later call fails" {
    for path in staging nccl 'shared -H localhost:1'; do
        stream gpustream capture -x DTRUN_DEVICE=$path
        code_is 0
        [ "$(grep -c -- '^-8: dt_all_reduce: a graph is being captured' "$OUT")" = 3 ]
        [ "$(grep -c '^capture: done' "$OUT")" = 3 ]
    done
    clean
}

@test "stream: a device without stream memory operations is refused" {
    stream gpustream args -x STANDIN_LACKS=92
    code_is 1
    grep -q -- '^-8: dt_comm_on_stream: device 0 has no stream memory operations' "$OUT" || { show; false; }
    clean
}

@test "stream: if the driver pins no memory, the error names the function" {
    stream gpu streamfactors -x STANDIN_REFUSES=cuMemHostAlloc:2
    code_is 1
    grep -q -- '^-10: rank . (localhost): dt_comm_on_stream: cuMemHostAlloc: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2): the host gives no more memory to pin: ' "$OUT" || { show; false; }
    clean
    stream gpu streamfactors -x STANDIN_REFUSES=cuMemHostAlloc:801
    code_is 1
    grep -q -- '^-10: rank . (localhost): dt_comm_on_stream: cuMemHostAlloc: .*(CUDA_ERROR_NOT_SUPPORTED, 801)$' "$OUT" || { show; false; }
    clean
}

# Checks that every call of WHAT returns DT_ERR_CUDA on all three ranks, and that each error says where, what
# and what to do.
refused() { # PATH WHAT CALLS REFUSED TEXT
    stream gpustream "$2" -x DTRUN_DEVICE="$1" -x STANDIN_REFUSES= -x REFUSED="$4" --collective-timeout 30
    code_is 0
    [ "$(grep -c -- "^-10: rank . (localhost): .*$5" "$OUT")" = $((3 * $3)) ] || { show; false; }
    [ "$(grep -vc ': done$' "$OUT")" = $((3 * $3)) ] || { show; false; }
    [ "$(grep -c -- "^-10: rank [02] (localhost): .*rank 1 (localhost): .*$5" "$OUT")" = $((2 * $3)) ] ||
        { show; false; }
    clean
}

@test "stream: if the driver refuses a call on one rank before it begins, all ranks learn that at once" {
    for path in staging nccl shared; do
        refused $path refused 4 cuEventCreate:2 \
            'dt_[a-z_]*: cuEventCreate: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2): the GPU is full: '
    done
}

@test "errors name the function of the driver that failed, not the step" {
    refused staging refused 4 cuThreadExchangeStreamCaptureMode:800 \
        'cuThreadExchangeStreamCaptureMode: operation not permitted (CUDA_ERROR_NOT_PERMITTED, 800)'
    refused staging refused 4 cuMemcpyDtoHAsync_v2:1 \
        'cuMemcpyDtoHAsync: invalid argument (CUDA_ERROR_INVALID_VALUE, 1)'
    refused staging refusedview 1 cuCtxGetStreamPriorityRange:801 \
        'cuCtxGetStreamPriorityRange: operation not supported (CUDA_ERROR_NOT_SUPPORTED, 801)'
    refused staging refusedview 1 cuStreamCreateWithPriority:2 \
        'cuStreamCreateWithPriority: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2): the GPU is full: '
    refused staging refusedview 1 cuEventCreate:2 'cuEventCreate: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2): '
    stream gpustream refusedview -x DTRUN_DEVICE=nccl -x STANDIN_REFUSES= -x REFUSED=cuDevicePrimaryCtxGetState:801
    [ "$(grep -c '^-11: rank 1 (localhost) cannot use NCCL (cuDevicePrimaryCtxGetState: .*, 801))' "$OUT")" = 3 ] ||
        { show; false; }
}

@test "if the GPU faults while ranks choose a path, the error names the fault" {
    for path in nccl auto; do
        refused $path refusedview 1 cuDevicePrimaryCtxGetState:700,cuEventCreate:700 \
            'cuEventCreate: an illegal memory access (CUDA_ERROR_ILLEGAL_ADDRESS, 700): a kernel before this call'
        ! grep 'warning: ' "$ERR" || false
    done
}

@test "stream: calls are staged on a device that has only 32-bit stream memory operations" {
    does order staging -x STANDIN_LACKS=122
    clean
}

# Checks on each path that dtrun exits with CODE and N ranks print LINE.
ends() { # CODE N LINE WHAT [dtrun option...]
    local code=$1 n=$2 line=$3 what=$4
    shift 4
    for path in staging 'nccl -x NCCL_COMM_BLOCKING=0' 'nccl -x NCCL_COMM_BLOCKING=1' shared; do
        DEVICES=$([ "$path" = shared ] && echo 1 || echo 4) stream gpustream "$what" -x DTRUN_DEVICE=$path \
            $([ "$path" != shared ] || echo -H localhost:1) "$@"
        code_is "$code"
        [ "$(grep -c -- "$line" "$OUT")" = "$n" ] || { echo "on $path:"; show; false; }
        clean
    done
}

@test "stream: ranks whose streams wait for a dead rank blame it, and their streams go on" {
    ends 137 2 '^-4: .*rank 1 .*died or left (killed by signal 9)' die
}

@test "stream: dt_comm_abort lets streams go on" { ends 1 3 '^-13: .*rank 1 .*called dt_comm_abort' abort; }

@test "NCCL is not freed while a thread waits inside it, and an abort ends that wait" {
    for blocks in 0 1; do
        stream gpustream abort -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=submit-hang:0:2
        code_is 1
        [ "$(grep -c -- '^-13: .*rank 1 .*called dt_comm_abort' "$OUT")" = 3 ] || { show; false; }
        [ "$(wc -l <"$OUT")" = 3 ] || { show; false; }
        clean
    done
}

@test "NCCL before 2.22: a communicator is not freed while a thread waits inside it" {
    stream gpustream abort -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_VERSION=22105 \
        -x STANDIN_NCCL_FAULTS=submit-hang:0:2 --kill-grace 1
    code_is 1
    [ "$(grep -c -- '^-13: rank [12] .*rank 1 .*called dt_comm_abort' "$OUT")" = 2 ] || { show; false; }
    ! grep -q 'stand-in' "$OUT" "$ERR" || { show; false; }
    clean
}

# While a kernel of one communicator hangs, a call that waits for the whole device would delay the other's abort.
@test "stream: kernels of two communicators that hang are both given up at the time limit" {
    for blocks in 0 1; do
        local start=$SECONDS
        stream gpustream orders -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl \
            -x STANDIN_NCCL_FAULTS=kernel-hang:1:0 --collective-timeout 3 --kill-grace 1000
        code_is 124
        [ $((SECONDS - start)) -lt 60 ] || { echo "it took $((SECONDS - start)) s"; false; }
        [ "$(grep -c -- '^-5: .*all-reduce of 1000 f32 (sum) in device memory.*timed out' "$OUT")" = 3 ] || { show; false; }
        [ "$(grep -c '^the GPU is free$' "$OUT")" = 3 ] || { show; false; }
        clean
    done
}

# Rank 0 ignores SIGTERM. Nothing frees a thread that waits in NCCL's queue for its proxy, nor, before 2.22,
# one in the driver.
dies_while_nccl_keeps_a_thread() { # FAULT NCCL_VERSION KILL_GRACE
    rm -f "$T/hangs"
    stream gpustream dielate -v -x DTRUN_DEVICE=nccl -x NCCL_COMM_BLOCKING=1 -x STANDIN_NCCL_VERSION="$2" \
        -x STANDIN_NCCL_FAULTS="$1:0:2" -x STANDIN_NCCL_HANGS="$T/hangs" --kill-grace "$3"
}

@test "NCCL: a rank whose thread NCCL keeps for good exits long before the grace period is over" {
    for fault in '22105 submit-hang' '22809 queue-hang'; do
        local start=$SECONDS
        dies_while_nccl_keeps_a_thread ${fault#* } ${fault% *} 1000
        code_is 137
        [ $((SECONDS - start)) -lt 60 ] || { echo "it took $((SECONDS - start)) s"; false; }
        grep -q '^dtrun: rank 1 (.*) was killed by signal 9 (SIGKILL); stopping' "$ERR" || { show; false; }
        grep -q '^dtrun: localhost: rank 0 exits with status 123: .*a thread is still stuck in NCCL' "$ERR" || { show; false; }
        grep -q '^dtrun: rank 0 ended: code 123, signal 0' "$ERR" || { show; false; }
        clean
    done
}

# The rank has half a second to say so. On a crowded machine it may be killed first.
@test "NCCL: with a short grace period, such a rank exits before it is killed" {
    for try in 1 2 3 4 5 6; do
        dies_while_nccl_keeps_a_thread queue-hang 22809 2
        code_is 137
        clean
        ! grep -q '^dtrun: rank 0 ended: code 123, signal 0' "$ERR" || break
    done
    grep -q '^dtrun: localhost: rank 0 exits with status 123: the job failed [12]\.[0-9] s ago' "$ERR" || { show; false; }
}

@test "stream: calls that do not match are an error" {
    ends 1 3 '^-3: .*rank 1 .*all-reduce of 999 f32 (sum) in device memory' mismatch
}

@test "NCCL: if it refuses a call on one rank, that rank's next call is not taken for the one that is missing" {
    for blocks in 0 1; do
        stream gpustream unlaunched -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=submit-error:0
        code_is 1
        [ "$(grep -c -- '^-11: .*rank 0 .*ncclAllReduce: .*submit-error was asked for' "$OUT")" = 3 ] || { show; false; }
        clean
    done
}

@test "stream: when a stream does not reach a call, the timeout names its rank" {
    ends 124 3 '^-5: .*timed out: .*rank 1 [^;]*in a wait for its GPU' late
}

@test "stream: dt_stream_wait times out if the stream's work never ends" {
    ends 124 3 '^-5: .*a wait for its GPU, .*timed out: ' endless
}

@test "stream: a call whose peer never comes times out, even if the driver makes all threads wait" {
    ends 124 3 '^-5: .*timed out: ' ahead -x STANDIN_QUEUE=100
}

# dt_comm_on_stream(3) warns of this.
@test "stream: a call times out if the driver loads a kernel behind it, but not if kernels are loaded eagerly" {
    for path in staging shared; do
        use_standin 1
        dtrun --no-tag -np 2 -H localhost:1 -x STANDIN_LAZY=1 -x DTRUN_DEVICE=$path "$DTRUN_BUILD/tests/gpu/probe" kernel 2
        code_is 124
        [ "$(grep -c '^-5: .*timed out: ' "$OUT")" = 2 ] || { show; false; }
        dtrun --no-tag -np 2 -H localhost:1 -x STANDIN_LAZY=1 -x CUDA_MODULE_LOADING=EAGER -x DTRUN_DEVICE=$path \
            "$DTRUN_BUILD/tests/gpu/probe" kernel
        code_is 0
        unset LD_LIBRARY_PATH
    done
    clean
}

@test "a bucket whose thread the driver blocks times out" {
    stream gpustream jam -x DTRUN_DEVICE=staging -x STANDIN_QUEUE=100 --collective-timeout 3
    code_is 124
    grep -q 'rank 0 has waited [0-9.]* s in a wait for its GPU .* on communicator 0.1' "$ERR" || { show; false; }
    [ "$(grep -c -- '^-5: .*rank 0 [^;]*in a wait for its GPU' "$OUT")" = 2 ] || { show; false; }
    clean
}

@test "dt_comm_on_stream times out if the driver makes no stream" {
    ends 124 2 '^-5: .*rank 0 [^;]*in a wait for its GPU' another --collective-timeout 3 --kill-grace 1
}

@test "no call waits for a driver that gives memory and streams only to an idle GPU" {
    for what in pinning sendbehind streambehind; do
        by_all_paths "$what: done" gpustream $what --collective-timeout 20
    done
}

@test "stream: a kernel of NCCL that hangs is given up at the time limit, even if the abort hangs too" {
    for blocks in 0 1; do
        stream gpustream order -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=kernel-hang:1:2,abort-hang:1 --collective-timeout 3
        code_is 124
        grep -q -- '^-5: .*all-reduce of 1000 f32 (sum) in device memory.*timed out' "$OUT" || { show; false; }
        grep -q 'in device memory, DT_ERR_TIMEOUT by nccl' "$ERR" || { show; false; }
        clean
    done
}

@test "a view is freed only once its sends and receives are over" { by_all_paths 'pending: done' gpustream pending; }

@test "all ranks refuse a second view on another device, and the first view still works" {
    does devices nccl --gpu-bind host
    clean
}

@test "pinned memory is not freed while a view exists, however much is returned" {
    does pool staging
    clean
}

@test "stream: a thousand calls may wait on a stream" {
    for path in staging shared; do
        does queue $path
    done
    clean
}

@test "after a reset of the device, a view in the new context works" {
    does reset staging
    clean
}

@test "after a reset of the device, NCCL and a shared GPU fail, but use nothing that is gone" {
    for what in resetview resetcall; do
        stream gpustream "$what" -x DTRUN_DEVICE=nccl
        all_say_destroyed "$what: done"
        DEVICES=1 stream gpustream "$what" -H localhost:1 -x DTRUN_DEVICE=shared
        all_say_destroyed "$what: done"
    done
    clean
}

# dt_finalize returns the failure.
all_say_destroyed() { # LINE
    code_is 1
    [ "$(grep -cx "$1" "$OUT")" = 3 ] || { show; false; }
    grep -q '^-10: .*(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709): the program has reset the device: ' "$OUT" || { show; false; }
}

@test "two contexts on one device can have views, and a buffer of another context is refused" {
    does contexts staging
    does outlive staging
    clean
}

@test "NCCL: a buffer of another device or context than the first is refused, and the next call works" {
    for blocks in 0 1; do
        does strays nccl --gpu-bind host -x NCCL_COMM_BLOCKING=$blocks
        clean
    done
}

@test "NCCL: calls of a communicator that was split off may be on another device than its parent's" {
    does swap nccl --gpu-bind host -x STANDIN_LOG="$T/log"
    [ "$(grep -c 'splits its communicator' "$T/log")" = 3 ]
    [ "$(grep -c 'a communicator that blocks' "$T/log")" = 6 ] || { cat "$T/log"; false; }
    clean
}

@test "no path serves buffers of two contexts in one call" { by_all_paths 'apart: done' gpustream apart; }

@test "NCCL's all-to-all in place works without stream-ordered memory, even if only the driver says so" {
    for what in smallcalls streamcalls; do
        [ $what = smallcalls ] && lack=STANDIN_LACKS=115 || lack=STANDIN_REFUSES=cuMemAllocAsync:801
        stream gpu $what -x DTRUN_DEVICE=nccl -x $lack
        code_is 0
        [ "$(grep -c "^$what: [0-9]* comparisons$" "$OUT")" = 3 ] || { show; false; }
        [ ! -s "$ERR" ] || { show; false; }
        clean
    done
}

# CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED is 115.
@test "NCCL's all-to-all in place does not wait for a stream that never ends" {
    for lack in '' 'STANDIN_LACKS=115'; do
        does aside nccl ${lack:+-x $lack}
        clean
    done
}

@test "the thread that enqueues a call on DT_WORLD launches it with NCCL, in the same order on all ranks" {
    for blocks in 0 1; do
        stream gpustream endless -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl
        code_is 124
        grep -q 'in device memory, ok by nccl+stream' "$ERR" || { show; false; }
        clean
        stream gpustream mixed -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log"
        all_say 'mixed: done'
        ! grep -i 'order\|match' "$T/log" || false
        stream gpustream mixed -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log" -x STANDIN_DELAY_US=200
        all_say 'mixed: done'
        ! grep -i 'order\|match' "$T/log" || false
        clean
    done
}

@test "stream: a call completes while NCCL launches a later one" {
    for blocks in 0 1; do
        stream gpustream launching -x NCCL_COMM_BLOCKING=$blocks -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=launch-hang:0:2 \
            -x STANDIN_NCCL_HANGS="$T/hangs$blocks" --collective-timeout 10
        code_is 1
        [ "$(grep -c '^over$' "$OUT")" = 1 ] || { show; false; }
        [ "$(grep 'called dt_comm_abort' "$OUT" | grep -o '^-13: rank [0-2] ' | sort -u | wc -l)" = 3 ] || { show; false; }
        clean
    done
}

@test "stream: a second dt_finalize is refused" {
    for path in staging nccl; do
        does twice $path
    done
    clean
}

@test "stream: a rank can leave the job after a reset of the device" {
    for path in staging nccl shared; do
        does gone $path
    done
    clean
}

@test "stream: a rank can leave the job after it has destroyed a context that it had created" {
    for path in staging shared; do
        does destroyed $path
    done
    clean
}

@test "a forked child can ask for a view's rank although another thread held the lock" {
    does fork staging
    clean
}

@test "dt_finalize is refused while another thread is inside a call on a view" {
    for path in staging nccl; do
        does beside $path -x STANDIN_QUEUE=8
    done
    clean
}

# ---- checkpoints of GPU memory ----

@test "checkpoint: device and host memory save the same bytes, also after a failure" {
    use_standin 4
    dtrun -np 3 --checkpoint-dir "$T/host" "$RANK/gpu" hosttrain
    code_is 0
    dtrun -np 3 -x STANDIN_DELAY_US=200 --checkpoint-dir "$T/calm" "$RANK/gpu" devicetrain
    code_is 0
    diff -r -x LINEAGE "$T/host" "$T/calm"
    for registers in 1 0; do # 0: the copies for a save in the background cannot be pinned
        dtrun -np 3 -x STANDIN_DELAY_US=200 -x ISAVE=1 -x STANDIN_LOG="$T/log" -x STANDIN_REGISTERS=$registers \
            --checkpoint-dir "$T/behind" "$RANK/gpu" devicetrain
        code_is 0
        # three ranks save three times; what is pinned once stays so
        [ "$(grep -c ' registers 9[0-9]* bytes' "$T/log")" = $((registers ? 3 : 18)) ] || { cat "$T/log"; false; }
        diff -r -x LINEAGE "$T/host" "$T/behind"
        rm -r "$T/behind" "$T/log"
    done
    for isave in '' '-x ISAVE=1'; do
        dtrun -np 3 --checkpoint-dir "$T/disturbed" --inject kill:rank=1,step=7 $isave "$RANK/gpu" devicetrain
        code_is 0
        grep -q 'recovered from 1 failure' "$ERR" || { show; false; }
        diff -r -x LINEAGE "$T/host" "$T/disturbed"
        rm -r "$T/disturbed"
    done
    unset LD_LIBRARY_PATH
    clean
}

@test "checkpoint: when a GPU does not finish, the timeout ends the save in the background and names its rank" {
    stream gpu stucksave --checkpoint-dir "$T/stuck" --max-restarts 0
    code_is 124
    [ "$(grep -c -- '^-5: .*rank 1' "$OUT")" = 6 ] || { show; false; }
    [ "$(grep -cx -- -5 "$OUT")" = 3 ] || { show; false; }
    [ "$(ls "$T/stuck" | tr '\n' ' ')" = "LINEAGE step_000000000001 " ] || { ls -A "$T/stuck"; false; }
    clean
}

@test "checkpoint: a buffer only partly in device memory is refused, and a freed one fails the save" {
    stream gpu registerwrong
    code_is 0
    [ "$(grep -c 'dt_checkpoint_register: "part" lies in the memory of a GPU only in part' "$OUT")" = 3 ] || { show; false; }
    [ "$(grep -c -- '^-10: rank 1 (localhost): dt_checkpoint_isave: cuPointerGetAttribute: ' "$OUT")" = 3 ] || { show; false; }
    [ "$(grep -c -- '^-10: .*dt_checkpoint_save: ' "$OUT")" = 3 ] || { show; false; }
    clean
}
