#!/usr/bin/env bats
# Calls that are enqueued on streams of the program's, and checkpoints of GPU memory, on stand-ins for NVIDIA's
# libraries. STANDIN_STERN
# makes everything wait for the GPU that does so on any driver: what is made while a stream is held would
# wait for ever.

load common
load ../standin/standin

setup_file() {
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || skip "built without shared libraries"
}

stream() { # PROGRAM WHAT [dtrun option...]
    local program=$1 what=$2
    shift 2
    use_standin "${DEVICES:-4}"
    dtrun --no-tag -np 3 -x STANDIN_STERN=1 "$@" "$RANK/$program" "$what"
    unset LD_LIBRARY_PATH
}

# By each way all three ranks say LINE, and nothing else is said.
by_all_ways() { # LINE PROGRAM WHAT [dtrun option...]
    local line=$1
    shift
    for way in staging nccl; do
        stream "$@" -x DTRUN_DEVICE=$way -x STANDIN_LOG="$T/log"
        is_said "$line"
        [ ! -s "$ERR" ] || { show; false; }
    done
    DEVICES=1 stream "$@" -H localhost:1 -x DTRUN_DEVICE=shared -x STANDIN_LOG="$T/log"
    is_said "$line"
    DEVICES=2 stream "$@" -H localhost:2 -x DTRUN_DEVICE=shared -x STANDIN_LOG="$T/log"
    is_said "$line"
    ! grep -i 'order\|match' "$T/log" || false
    clean
}

is_said() { # LINE
    code_is 0
    [ "$(sort "$OUT" | uniq -c | sed 's/^ *//')" = "3 $1" ] || { show; false; }
}

@test "stream: every collective, type and operation has the results of host memory" {
    by_all_ways 'streamcalls: 1026 comparisons' gpu streamcalls
}

@test "stream: factors and wire formats" { by_all_ways 'streamfactors: 48 comparisons' gpu streamfactors; }

@test "stream: sends and receives" { by_all_ways 'streampairs: 3 comparisons' gpu streampairs; }

@test "stream: calls keep their place on streams of every kind, and hold up no host" {
    by_all_ways 'order: done' gpustream order
    by_all_ways 'order: done' gpustream order -x STANDIN_DELAY_US=200
}

@test "stream: the legacy default stream waits for the calls of a blocking one" {
    by_all_ways 'legacy: done' gpustream legacy
}

@test "stream: two communicators are used in different orders" { by_all_ways 'orders: done' gpustream orders; }

@test "stream: requests stand in one order with enqueued calls" { by_all_ways 'requests: done' gpustream requests; }

@test "stream: a barrier waits for the streams of all ranks" { by_all_ways 'barrier: done' gpustream barrier; }

@test "stream: views and communicators are freed, and the job left, with calls under way" {
    by_all_ways 'free: done' gpustream free
}

@test "stream: arguments that are refused" { by_all_ways 'args: done' gpustream args; }

@test "stream: a call in a graph capture is refused, and neither the capture nor a later call fails" {
    for way in staging nccl; do
        stream gpustream capture -x DTRUN_DEVICE=$way
        code_is 0
        [ "$(grep -c -- '^-8: dt_all_reduce: a graph is being captured' "$OUT")" = 3 ]
        [ "$(grep -c '^capture: done' "$OUT")" = 3 ]
    done
    clean
}

@test "stream: a device without stream memory operations is refused" {
    stream gpustream args -x STANDIN_LACKS=122
    code_is 1
    grep -q -- '^-8: dt_comm_on_stream: device 0 has no stream memory operations' "$OUT" || { show; false; }
    clean
}

# Ranks say LINE, N of them, by every way.
ends() { # CODE N LINE WHAT [dtrun option...]
    local code=$1 n=$2 line=$3 what=$4
    shift 4
    for way in staging nccl shared; do
        DEVICES=$([ $way = shared ] && echo 1 || echo 4) stream gpustream "$what" -x DTRUN_DEVICE=$way \
            $([ $way != shared ] || echo -H localhost:1) "$@"
        code_is "$code"
        [ "$(grep -c -- "$line" "$OUT")" = "$n" ] || { echo "by $way:"; show; false; }
        clean
    done
}

@test "stream: a rank that dies is blamed by those whose streams wait for it, and these go on" {
    ends 137 2 '^-4: .*rank 1 .*died or left (killed by signal 9)' die
}

@test "stream: dt_comm_abort lets streams go on" { ends 1 3 '^-13: .*rank 1 .*called dt_comm_abort' abort; }

@test "D26: NCCL is not freed under a thread that waits inside it, and the abort ends that wait" {
    stream gpustream abort -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=submit-hang:0:2
    code_is 1
    [ "$(grep -c -- '^-13: .*rank 1 .*called dt_comm_abort' "$OUT")" = 3 ] || { show; false; }
    [ "$(wc -l <"$OUT")" = 3 ] || { show; false; }
    clean
}

@test "stream: calls that do not match" {
    ends 1 3 '^-3: .*rank 1 .*all-reduce of 999 f32 (sum) in device memory' mismatch
}

@test "stream: a stream that does not come to a call is named when the limit is over" {
    ends 124 3 '^-5: .*timed out: .* for rank 1 .*, which is in a wait for its GPU' late
}

@test "stream: dt_stream_wait ends with the limit where the stream has work that never ends" {
    ends 124 3 '^-5: .*a wait for its GPU, .*timed out: ' endless
}

@test "stream: a call whose peer does not come ends with the limit, though the driver makes all threads wait" {
    ends 124 3 '^-5: .*timed out: ' ahead -x STANDIN_QUEUE=100
}

@test "stream: a kernel of NCCL's that hangs, and an abort that does" {
    stream gpustream order -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=kernel-hang:1:2,abort-hang:1 --collective-timeout 1
    code_is 124
    grep -q -- '^-5: .*all-reduce of 1000 f32 (sum) in device memory.*timed out' "$OUT" || { show; false; }
    grep -q 'in device memory, DT_ERR_TIMEOUT by nccl' "$ERR" || { show; false; }
    clean
}

@test "D1: a view is freed only when its sends and receives are over" { by_all_ways 'pending: done' gpustream pending; }

@test "D2: a second view on another device is refused on all ranks alike, and the first one works on" {
    stream gpustream devices -x DTRUN_DEVICE=nccl --gpu-bind host
    is_said 'devices: done'
    clean
}

@test "D3: pinned memory is not freed while there is a view, however much is given back" {
    stream gpustream pool -x DTRUN_DEVICE=staging
    is_said 'pool: done'
    clean
}

@test "D4: a view in the context that comes after a reset of the device" {
    stream gpustream reset -x DTRUN_DEVICE=staging
    is_said 'reset: done'
    clean
}

@test "D5: views of two contexts on one device, and a buffer of another context than its stream's" {
    stream gpustream contexts -x DTRUN_DEVICE=staging
    is_said 'contexts: done'
    clean
}

@test "D7: an all-to-all in place by NCCL on a device without stream-ordered memory" {
    for what in calls streamcalls; do
        stream gpu $what -x DTRUN_DEVICE=nccl -x STANDIN_LACKS=115
        code_is 0
        [ "$(grep -c ': 1026 comparisons$' "$OUT")" = 3 ] || { show; false; }
        [ ! -s "$ERR" ] || { show; false; }
        clean
    done
}

@test "D7: the thread that enqueues a call on DT_WORLD hands it to NCCL, and launches keep one order" {
    stream gpustream endless -x DTRUN_DEVICE=nccl
    code_is 124
    grep -q 'in device memory, ok by nccl+stream' "$ERR" || { show; false; }
    clean
    stream gpustream mixed -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log"
    is_said 'mixed: done'
    ! grep -i 'order\|match' "$T/log" || false
    stream gpustream mixed -x DTRUN_DEVICE=nccl -x STANDIN_LOG="$T/log" -x STANDIN_DELAY_US=200
    is_said 'mixed: done'
    ! grep -i 'order\|match' "$T/log" || false
    clean
}

@test "stream: a call is over, and ended, while NCCL launches a later one" {
    stream gpustream launching -x DTRUN_DEVICE=nccl -x STANDIN_NCCL_FAULTS=launch-hang:0:2 \
        -x STANDIN_NCCL_HANGS="$T/hangs" --collective-timeout 10
    code_is 1
    [ "$(grep -c '^over$' "$OUT")" = 1 ] || { show; false; }
    [ "$(grep 'called dt_comm_abort' "$OUT" | grep -o '^-13: rank [0-2] ' | sort -u | wc -l)" = 3 ] || { show; false; }
    clean
}

@test "stream: dt_finalize a second time is refused" {
    for way in staging nccl; do
        stream gpustream twice -x DTRUN_DEVICE=$way
        is_said 'twice: done'
    done
    clean
}

@test "stream: the job is left after a reset of the device" {
    for way in staging nccl; do
        stream gpustream gone -x DTRUN_DEVICE=$way
        is_said 'gone: done'
    done
    clean
}

@test "D6: a forked child asks for a view's rank while another thread of the rank had the lock" {
    stream gpustream fork -x DTRUN_DEVICE=staging
    is_said 'fork: done'
    clean
}

@test "D6: dt_finalize is refused while another thread is inside a call on a view" {
    for way in staging nccl; do
        stream gpustream beside -x DTRUN_DEVICE=$way -x STANDIN_QUEUE=8
        is_said 'beside: done'
    done
    clean
}

# ---- checkpoints of GPU memory ----

@test "checkpoint: device memory has the bytes of host memory, and a disturbed run those of a calm one" {
    use_standin 4
    dtrun -np 3 --checkpoint-dir "$T/host" "$RANK/gpu" hosttrain
    code_is 0
    dtrun -np 3 -x STANDIN_DELAY_US=200 --checkpoint-dir "$T/calm" "$RANK/gpu" devicetrain
    code_is 0
    dtrun -np 3 --checkpoint-dir "$T/disturbed" --inject kill:rank=1,step=7 "$RANK/gpu" devicetrain
    code_is 0
    unset LD_LIBRARY_PATH
    grep -q 'recovered 1 failure' "$ERR" || { show; false; }
    diff -r -x LINEAGE "$T/host" "$T/calm"
    diff -r -x LINEAGE "$T/calm" "$T/disturbed"
    clean
}

@test "checkpoint: a buffer that is not device memory as a whole is refused, one that was freed fails the save" {
    stream gpu registerwrong
    code_is 0
    [ "$(grep -c 'dt_checkpoint_register: "part" begins in the memory of a GPU' "$OUT")" = 3 ] || { show; false; }
    [ "$(grep -c -- '^-10: .*dt_checkpoint_save: ' "$OUT")" = 3 ] || { show; false; }
    clean
}
