#!/usr/bin/env bats
# The GPU kit, on the stand-ins for NVIDIA's libraries.

load common

setup_file() {
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || export FILE_SKIPS="built without shared libraries"
}

# Runs the kit under a watchdog, with this test's token, in a folder that does not need the build. If the test
# fails, bats shows the whole table and the output of the failed rows.
kit() {
    (cd "$DTRUN_BUILD" && sh "$DTRUN_SOURCE/tests/gpu/assemble" "$DTRUN_SOURCE" "$T/kit")
    RC=0
    env -u DTRUN_BUILD -u DTRUN_AGENT "$TOKEN" timeout -k 5 480 "$T/kit/run" "$@" \
        </dev/null >"$OUT" 2>"$ERR" || RC=$?
    echo "exit code $RC"
    cat "$OUT" "$ERR"
}

verdicts() { # VERDICT
    grep -c "  $1\$" "$OUT" || true
}

@test "the kit: every row passes on the stand-ins, and the JSON equals the table" {
    command -v python3 >/dev/null || skip "no python3 here"
    kit --standin --json "$T/table.json"
    grep -qE '^charlm: loss, GPU against CPU  .*(  PASS|needs nvcc at build time .*SKIP)$' "$OUT"
    grep -q '^GPUs: 4 x dtrun' "$OUT"
    grep -q '^NCCL: 2.28.9' "$OUT"
    python3 - "$T/table.json" "$(verdicts PASS)" <<'PY'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert all(set(row) == {"check", "measured", "goal", "verdict"} for row in rows)
assert sum(row["verdict"] == "PASS" for row in rows) == int(sys.argv[2]), rows
PY
    ! grep 'SKIP$' "$OUT" | grep -v '^charlm: ' || false
    for try in 1 2 3 4; do # a crowded machine may miss goals of one second
        [ "$(verdicts FAIL)" != 0 ] || break
        mapfile -t missed < <(sed -n 's/  .*  FAIL$//p' "$OUT")
        kit --standin "${missed[@]}"
    done
    [ "$RC" = 0 ]
    [ "$(verdicts FAIL)" = 0 ]
    clean
}

@test "the kit: --json replaces no device and no folder" {
    mkfifo "$T/pipe"
    mkdir "$T/folder"
    for file in pipe folder; do
        kit --standin --json "$T/$file" kinds
        [ "$RC" = 2 ]
        [ ! -f "$T/$file" ]
        [ -z "$(ls -A "$T/folder")" ]
        grep -qx "run: --json $T/$file: this is not a regular file" "$ERR"
    done
    clean
}

@test "the kit: with one GPU, the rows for several report what they need" {
    STANDIN_DEVICES=1 kit --standin kinds opposite silent 'NCCL, 2 ranks'
    [ "$RC" = 0 ]
    grep -q '^kinds of pointers  *6 of 6  *PASS$' "$OUT"
    grep -q '^NCCL, 2 ranks on a GPU.* comparisons  *PASS$' "$OUT"
    [ "$(grep -c 'needs 2 GPUs .*SKIP$' "$OUT")" = 2 ]
    clean
}

@test "the kit: rows are left out if the GPU lacks what they need" {
    STANDIN_LACKS=83 kit --standin kinds managed 'shared GPU: d' # managed memory
    [ "$RC" = 0 ]
    grep -q '^kinds of pointers  *5 of 6  *PASS$' "$OUT"
    grep -q '^managed memory  *needs managed memory  *SKIP$' "$OUT"
    grep -q '^shared GPU: default streams .* PASS$' "$OUT"
    STANDIN_LACKS=122 kit --standin 'shared GPU: d' # stream memory operations
    grep -q '^shared GPU: default streams  *needs to share a GPU, but this one has no s.*SKIP$' "$OUT"
    STANDIN_MIG=1 kit --standin 'shared GPU: d'
    grep -q '^shared GPU: default streams  *needs to share a GPU, but this one is a MIG.*SKIP$' "$OUT"
    STANDIN_MEMORY=$((64 << 20)) kit --standin 'shared GPU: kill in'
    grep -q '^shared GPU: kill in a large call  *needs 96 MiB of GPU memory  .*SKIP$' "$OUT"
    clean
}

@test "the kit: jobs get only GPUs that the kit was given" {
    CUDA_VISIBLE_DEVICES=2,3 STANDIN_NCCL_FAULTS=init-error:1 kit --standin --logs "$T/logs" 'NCCL: two' 'NCCL, 2 ranks on a GPU: b'
    grep -q '^GPUs: 2 x ' "$OUT"
    grep -o '"device":[^,}]*' "$T/logs/rows.txt" | tr -dc "0-9\n" >"$T/devices"
    diff <(printf "%s\n" 2 2 2 3) "$T/devices" # of each rank
    clean
}

@test "the kit: a failed row is reported with its output, and the rest still run" {
    STANDIN_NCCL_FAULTS=init-error:1 kit --standin 'NCCL alone, 2' kinds 'NCCL: two'
    [ "$RC" = 1 ]
    [ "$(verdicts FAIL)" = 2 ]
    [ "$(verdicts PASS)" = 1 ]
    grep -q 'ncclCommInitRank' "$OUT"
    [ "$(grep -c '^  .*ncclCommInitRank.*; exit status 1 instead of 0$' "$OUT")" = 1 ]
    grep -q '^2 rows failed' "$OUT"
    clean
}

# Prints what the file rows.txt has of a row.
row_in() { # NAME
    sed -n "/^=== $1:/,/^=== /p" "$T/logs/rows.txt"
}

@test "the kit: three files explain a failed row without the machine" {
    STANDIN_NCCL_FAULTS=init-error:1 STANDIN_CUDA_LOG='said the driver' kit --standin --logs "$T/logs" kinds 'NCCL: two'
    [ "$RC" = 1 ]
    [ "$(ls "$T/logs")" = $'machine.txt\nrows.txt\ntable.txt' ]
    diff <(grep -E 'PASS$|FAIL$|^GPUs' "$OUT") <(grep -E 'PASS$|FAIL$|^GPUs' "$T/logs/table.txt")
    grep -q '^Seccomp:' "$T/logs/machine.txt"
    sed '1,/^--- dtrun --check$/d' "$T/logs/machine.txt" | grep -q localhost
    row_in 'NCCL: two starts, and a split' >"$T/row"
    grep -q 'said the driver' "$T/row"
    grep -q '"exit_code":' "$T/row" # the report of dtrun
    grep -q '^--- rank.00001.1.txt$' "$T/row" # the recorder's dump
    [ "$(row_in 'kinds of pointers' | grep -c '"exit_code":')" = 0 ]
    clean
}

@test "the kit: if it is killed, its files show the rows until then, and --from goes on" {
    try shows_rows_until_killed 5 20
}

shows_rows_until_killed() { # LIMIT
    (cd "$DTRUN_BUILD" && sh "$DTRUN_SOURCE/tests/gpu/assemble" "$DTRUN_SOURCE" "$T/kit")
    env -u DTRUN_BUILD -u DTRUN_AGENT "$TOKEN" TMPDIR="$T" STANDIN_NCCL_FAULTS=kernel-hang:1:1 GPU_KIT_ROW_S="$1" \
        "$T/kit/run" --standin --json "$T/table.json" --logs "$T/logs" kinds 'NCCL alone, 2' >"$OUT" 2>&1 3>&- &
    await grep -qs '^=== kinds of pointers: PASS$' "$T/logs/rows.txt"
    kill -KILL $!
    wait $! || true
    grep -q '^kinds of pointers .*PASS$' "$T/logs/table.txt"
    [ "$(verdicts FAIL)" = 0 ]
    grep -q '^{"gpus": .*"kinds of pointers".*}$' "$T/table.json"
    kit --standin --from 'NCCL alone, 2' kinds 'NCCL alone'
    [ "$RC" = 0 ]
    [ "$(grep -c '^kinds' "$OUT")" = 0 ]
    [ "$(verdicts PASS)" = 2 ]
    becomes_clean
}

@test "the kit: a row that does not end fails, and leaves nothing running" {
    try reports_endless_row 6 20
}

reports_endless_row() { # LIMIT
    STANDIN_NCCL_FAULTS=kernel-hang:1:1 GPU_KIT_ROW_S="$1" kit --standin --logs "$T/logs" 'NCCL alone, 2' 'NCCL: two' kinds
    [ "$RC" = 1 ]
    grep -q '^NCCL alone, 2 ranks  *.*FAIL$' "$OUT"
    grep -q "the kit ended it after $1 s" "$OUT"
    grep -q '^kinds of pointers .*PASS$' "$OUT"
    row_in 'NCCL: two starts, and a split' >"$T/row" # libdtrun makes this call, so dtrun says what hangs
    grep -q "timed out after $(($1 * 2 / 3)) s\|DT_ERR_TIMEOUT" "$T/row"
    grep -q 'exit status 124 instead of 0' "$T/row"
    grep -q 'libdtrun.so.0+0x' "$T/row"
    row_in 'NCCL alone, 2 ranks' >"$T/row"
    grep -q '^process .*/probe raw' "$T/row" # what its threads did
    grep -q 'libcuda.so.1+0x' "$T/row"
    becomes_clean
}

# Makes the shell script on standard input a command that the kit finds first.
fake() { # COMMAND
    mkdir -p "$T/fake"
    { echo '#!/bin/sh'; cat; } >"$T/fake/$1"
    chmod +x "$T/fake/$1"
}

# Without the limit, the row would take 60 s and nvidia-smi 20 s more. The last line tells how long the kit ran.
@test "the kit: all rows together have a limit, to which what explains a failed row keeps, too" {
    fake nvidia-smi <<'END'
trap '' TERM
while :; do sleep 0.1; done
END
    PATH=$T/fake:$PATH STANDIN_NCCL_FAULTS=kernel-hang:1:1 GPU_KIT_TOTAL_S=15 \
        kit --standin kinds 'NCCL alone, 2' 'NCCL: two' charlm
    [ "$RC" = 1 ]
    grep -q '^kinds of pointers .*PASS$' "$OUT"
    grep -q '^NCCL alone, 2 ranks  .*FAIL$' "$OUT"
    [ "$(grep -c 'the kit has run out of time .*SKIP$' "$OUT")" = 2 ]
    [ "$(sed -n '$s/^1 rows failed; \([0-9]*\) s$/\1/p' "$OUT")" -lt 35 ]
    becomes_clean
}

@test "the kit: commands that tell of the machine have a limit, and none is left behind" {
    fake nvidia-smi <<'END'
trap '' TERM
while :; do sleep 0.1; done
END
    PATH=$T/fake:$PATH GPU_KIT_TOTAL_S=3 GPU_KIT_END_S=100 kit --standin --logs "$T/logs" kinds
    [ "$RC" = 0 ]
    grep -q '^kinds of pointers .*the kit has run out of time .*SKIP$' "$OUT"
    [ "$(grep -c '^--- nvidia-smi' "$T/logs/machine.txt")" = 3 ]
    grep -q '^--- dtrun --check$' "$T/logs/machine.txt"
    becomes_clean
}

# Nothing kills a process that hangs in the kernel. Here timeout kills no job.
@test "the kit: it ends even if a job cannot be killed, and its files are whole" {
    fake timeout <<END
[ "\$1" = --preserve-status ] || exec $(command -v timeout) "\$@"
shift 4
exec "\$@"
END
    PATH=$T/fake:$PATH TMPDIR="$T" STANDIN_NCCL_FAULTS=kernel-hang:1:1 GPU_KIT_TOTAL_S=14 GPU_KIT_END_S=16 \
        kit --standin --json "$T/table.json" --logs "$T/logs" kinds 'NCCL alone, 2' charlm
    [ "$RC" = 137 ]
    grep -qE '^the kit ended itself after 1[67] s: a program could not be killed$' "$OUT"
    grep -q '^kinds of pointers .*PASS$' "$OUT"
    grep -q '^{"gpus": .*"kinds of pointers".*}$' "$T/table.json"
    grep -q '^the kit ended itself' "$T/logs/table.txt"
    becomes_clean
    ! ls -d "$T"/gpu-kit.* || false
}

@test "the kit: without a GPU the kit says so, and succeeds" {
    [ ! -e /dev/nvidia0 ] || skip "there is a GPU here"
    kit
    [ "$RC" = 0 ]
    grep -q '^SKIP: no GPU: ' "$OUT"
    clean
}

@test "the kit: a driver that does not start is no machine without a GPU" {
    STANDIN_REFUSES=cuInit:999 kit --standin kinds
    [ "$RC" = 1 ]
    grep -qx 'FAIL: the driver does not start: .*cuInit.*(CUDA_ERROR_UNKNOWN, 999)' "$OUT"
    STANDIN_DEVICES=0 kit --standin kinds
    [ "$RC" = 0 ]
    grep -q '^SKIP: no GPU: .*(CUDA_ERROR_NO_DEVICE, 100)' "$OUT"
    clean
}

@test "the kit: a driver that does not answer is reported, with what its threads did" {
    STANDIN_REFUSES=cuInit:hang GPU_KIT_ROW_S=4 kit --standin --logs "$T/logs" kinds
    [ "$RC" = 1 ]
    [ "$(cat "$OUT")" = 'FAIL: the driver has not answered within 4 s' ]
    grep -q '^process .*/probe found' "$T/logs/rows.txt"
    grep -q 'libcuda.so.1+0x' "$T/logs/rows.txt"
    clean
}

@test "the kit: rows with two hosts put no agent anywhere, so /tmp may be noexec and HOME missing" {
    mkdir "$T/home"
    HOME=$T/home XDG_RUNTIME_DIR='' kit --standin 'kill, another host, staging'
    [ "$RC" = 0 ]
    [ "$(verdicts PASS)" = 1 ]
    [ -z "$(ls -A "$T/home")" ]
    clean
}

# The stand-ins pass for a real driver here.
@test "the kit: an NCCL that cannot be used is named, with the reason" {
    [ ! -e /dev/nvidia0 ] || skip "there is a GPU here"
    echo 'no library' >"$T/junk.so"
    LD_LIBRARY_PATH=$T/kit/standin DTRUN_NCCL=$T/junk.so kit kinds
    [ "$RC" = 0 ]
    grep -q "^NCCL: cannot be used ($T/junk.so: .*), $T/junk.so$" "$OUT"
    grep -q '^kinds of pointers  *6 of 6  *PASS$' "$OUT"
    clean
}

@test "the kit: an NCCL that is too new for the driver is not used" {
    [ ! -e /dev/nvidia0 ] || skip "there is a GPU here"
    (cd "$DTRUN_BUILD" && sh "$DTRUN_SOURCE/tests/gpu/assemble" "$DTRUN_SOURCE" "$T/kit")
    STANDIN_NCCL_STARTS=0 LD_LIBRARY_PATH=$T/kit/standin DTRUN_NCCL=$T/kit/standin/libnccl.so.2 kit 'NCCL alone, 1'
    [ "$RC" = 0 ]
    grep -q '^NCCL: cannot be used (2.28.9 does not start: Cuda failure 35 ' "$OUT"
    grep -q '^NCCL alone, 1 rank  *needs NCCL  *SKIP$' "$OUT"
    clean
}
