#!/usr/bin/env bats
# The GPU kit, on the stand-ins for NVIDIA's libraries.

load common

setup_file() {
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || skip "built without shared libraries"
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
    [ "$RC" = 0 ]
    [ "$(verdicts PASS)" -ge 23 ]
    [ "$(verdicts FAIL)" = 0 ]
    grep -qE '^charlm: loss, GPU against CPU  .*(  PASS|needs nvcc at build time .*SKIP)$' "$OUT"
    grep -q '^GPUs: 4 x dtrun' "$OUT"
    grep -q '^NCCL: 2.28.9' "$OUT"
    python3 - "$T/table.json" "$(verdicts PASS)" <<'PY'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert all(set(row) == {"check", "measured", "goal", "verdict"} for row in rows)
assert sum(row["verdict"] == "PASS" for row in rows) == int(sys.argv[2]), rows
PY
    clean
}

@test "the kit: with one GPU, the rows for several report what they need" {
    STANDIN_DEVICES=1 kit --standin kinds opposite silent 'NCCL, 2 ranks'
    [ "$RC" = 0 ]
    grep -q '^kinds of pointers  *5 of 5  *PASS$' "$OUT"
    grep -q '^NCCL, 2 ranks on a GPU.* comparisons  *PASS$' "$OUT"
    [ "$(grep -c 'needs 2 GPUs .*SKIP$' "$OUT")" = 2 ]
    clean
}

@test "the kit: a failed row is reported with its output, and the rest still run" {
    STANDIN_NCCL_FAULTS=init-error:1 kit --standin 'NCCL alone, 2' kinds 'NCCL: first'
    [ "$RC" = 1 ]
    [ "$(verdicts FAIL)" = 2 ]
    [ "$(verdicts PASS)" = 1 ]
    grep -q 'ncclCommInitRank' "$OUT"
    grep -q '^2 rows failed' "$OUT"
    clean
}

@test "the kit: a row that does not end fails, and leaves nothing running" {
    STANDIN_NCCL_FAULTS=kernel-hang:1:1 GPU_KIT_ROW_S=2 kit --standin 'NCCL alone, 2' kinds
    [ "$RC" = 1 ]
    grep -q '^NCCL alone, 2 ranks  *.*FAIL$' "$OUT"
    grep -q 'the kit ended it after 2 s' "$OUT"
    grep -q '^kinds of pointers .*PASS$' "$OUT"
    becomes_clean
}

@test "the kit: without a GPU the kit says so, and succeeds" {
    [ ! -e /dev/nvidia0 ] || skip "there is a GPU here"
    kit
    [ "$RC" = 0 ]
    grep -q '^SKIP: no GPU: ' "$OUT"
    clean
}
