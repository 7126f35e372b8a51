#!/usr/bin/env bats
# dtrun-perf: the table of nccl-tests.
bats_require_minimum_version 1.5.0
load common

perf() {
    dtrun --no-tag "$@"
}

# What scripts made for nccl-tests do: rows begin with a size, columns stand where theirs do.
rows() {
    awk '!/^#/ && NF' "$OUT"
}

@test "check 54: the table has nccl-tests' columns, then percentiles and the bound" {
    perf -np 2 "$DTRUN_BUILD/cmd/dtrun-perf" all_reduce -b 4 -e 64K -f 8 -n 20
    code_is 0
    [ "$(rows | wc -l)" -eq 5 ]
    rows | awk '
        { size = 4 * 8 ^ (NR - 1) }
        NF != 16 || $1 != size || $2 != size / 4 || $3 != "float" || $4 != "sum" || $5 != -1 { bad = 1 }
        $9 != 0 || $13 != 0 { bad = 1 }                    # wrong elements
        $6 <= 0 || $14 <= 0 || $15 < $14 { bad = 1 }       # time, p50 <= p99
        { expected = $1 / $6 / 1000 }                      # algbw, as far as its digits go
        $7 < expected * 0.9 - 0.01 || $7 > expected * 1.1 + 0.01 { bad = 1 }
        $8 != $7 { bad = 1 }                               # busbw of two ranks
        END { exit bad }' || { cat "$OUT"; false; }
    grep -qE '^#  Rank  1 Group  0 Pid +[0-9]+ on ' "$OUT"
    grep -q '^# Out of bounds values : 0 OK$' "$OUT"
    grep -qE '^# Avg bus bandwidth    : [0-9.e-]+$' "$OUT"
    clean
}

@test "checks 1, 21: every type and operation is measured and right" {
    for type in float double half bfloat16 int8 uint8 int16 uint16 int32 uint32 int64 uint64; do
        for op in sum prod min max avg band bor bxor; do
            case $type$op in float*b?* | double*b?* | half*b?* | bfloat16b?*) continue ;; esac
            echo "-d $type -o $op"
        done
    done >combinations
    [ "$(wc -l <combinations)" -eq 84 ]
    cat >all <<END
set -e
while read -r options; do
    "$DTRUN_BUILD/cmd/dtrun" --no-tag -np 3 "$DTRUN_BUILD/cmd/dtrun-perf" all_reduce -b 1000 -n 1 -w 0 \$options </dev/null |
        awk '!/^#/ && NF { n++; wrong += \$9 + \$13 } END { exit n != 1 || wrong }' || { echo "wrong: \$options"; exit 1; }
done
END
    run -0 env "$TOKEN" timeout -k 5 300 bash all <combinations
    clean
}

@test "--json is JSON with the same figures" {
    command -v jq >/dev/null || skip "jq is not installed"
    perf -np 2 "$DTRUN_BUILD/cmd/dtrun-perf" broadcast -b 1K -e 4K -f 2 -n 5 -d half -r 1 --json
    code_is 0
    [ "$(jq -r '"\(.collective) \(.type) \(.root) \(.ranks) \(.rows | length) \(.wrong)"' "$OUT")" = "broadcast half 1 2 3 0" ]
    jq -e '.rows | all(.count * 2 == .bytes and .out_of_place.time_us > 0 and .in_place.wrong == 0)' "$OUT"
    clean
}

@test "a wrong command line is told, and exits with 2" {
    while IFS='|' read -r options message; do
        run -2 timeout 60 "$DTRUN_BUILD/cmd/dtrun-perf" $options
        [ "$output" = "dtrun-perf: $message; --help lists everything" ] || { echo "$options: $output"; false; }
    done <<'END'
|name a collective: all_reduce or broadcast
all_gossip|there is no collective all_gossip
all_reduce broadcast|only one collective can be measured, not also broadcast
all_reduce -b 4X|--minbytes: '4X' is not a value it takes
all_reduce -b 8 -e 4|the greatest size (-e) is below the least (-b)
all_reduce -f 1|--stepfactor: '1' is not a value it takes
all_reduce -d float -o band|-o band folds the bits of integers, not float
all_reduce -g 2|--ngpus: '2' is not a value it takes
all_reduce --fast|there is no option --fast
all_reduce -n|-n needs a value
END
    perf -np 2 "$DTRUN_BUILD/cmd/dtrun-perf" broadcast -b 4 -r 2
    code_is 2
    [ "$(grep -c '^dtrun-perf: --root: there are ranks 0 to 1$' "$ERR")" -eq 1 ]
    clean
}

@test "every option of dtrun-perf's --help is in dtrun-perf(1), and none besides" {
    "$DTRUN_BUILD/cmd/dtrun-perf" --help | grep '^  ' | grep -oE -- '(^|[ ,])--?[a-z_]+' | tr -d ' ,' | sort -u >help
    sed -nE 's/^\.It (Fl .*)/\1/p' "$DTRUN_SOURCE/man/dtrun-perf.1" | grep -oE 'Fl Fl [a-z_]+|Fl [a-z]\b' |
        sed -E 's/Fl Fl /--/; s/Fl /-/' | sort -u >page
    [ "$(wc -l <page)" -gt 20 ]
    diff help page
}
