#!/usr/bin/env bats
# dtrun-perf prints the table of nccl-tests.
bats_require_minimum_version 1.5.0
load common
load ../standin/standin

# The program itself: libtool's script in its place starts five processes for each rank.
PERF="$DTRUN_BUILD/cmd/.libs/dtrun-perf"
if [ -x "$PERF" ]; then
    export LD_LIBRARY_PATH="$DTRUN_BUILD/runtime/.libs"
else
    PERF="$DTRUN_BUILD/cmd/dtrun-perf"
fi

# Prints the rows as scripts for nccl-tests find them: rows begin with a size, and columns are where theirs
# are.
rows() { # [FILE]
    awk '!/^#/ && NF' "${1:-$OUT}"
}

@test "check 54: the table has nccl-tests' columns, then percentiles and the bound" {
    dtrun -np 2 "$PERF" all_reduce -b 4 -e 64K -f 8 -n 20
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

@test "-d cuda puts buffers in the memory of GPUs, which the table names" {
    local name

    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || skip "built without shared libraries"
    use_standin 2
    for name in all_reduce reduce all_gather all_gatherv all_to_all all_to_allv reduce_scatter reduce_scatterv \
        gather gatherv scatter broadcast sendrecv; do
        dtrun -np 2 -x DTRUN_DEVICE=staging "$PERF" $name -d cuda -d int32 -b 4K -e 64K -f 16 -n 3
        code_is 0
        grep -q '^# Out of bounds values : 0 OK$' "$OUT"
        [ "$(rows | awk '{ print $3, $NF }' | sort -u)" = "int32 N/A" ]
        grep -qE '^#  Rank  1 .* device \[0000:02:00.0\] ' "$OUT"
    done
    clean
}

@test "--raw measures NCCL itself on the same buffers and prints the ratio" {
    local name

    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || skip "built without shared libraries"
    use_standin 2
    for name in all_reduce reduce broadcast all_gather reduce_scatter; do
        dtrun -np 2 -x DTRUN_DEVICE=nccl "$PERF" $name -d cuda --raw -b 4K -e 64K -f 16 -n 3
        code_is 0
        grep -q '^# Out of bounds values : 0 OK$' "$OUT"
        grep -q ' %bound     time   ratio$' "$OUT"
        rows | awk 'NF != 18 || $17 <= 0 { exit 1 }
            { r = $6 / $17 } $18 < r * 0.9 - 0.001 || $18 > r * 1.1 + 0.001 { exit 1 }' || { show; false; }
        [ "$(rows | wc -l)" = 2 ]
    done
    dtrun -np 2 "$PERF" all_reduce -d cuda --raw -d all -o band -b 4K -n 3 --json table
    code_is 0
    [ "$(rows | awk '{ print $(NF - 1), $NF }' | sort -u)" = "N/A N/A" ]
    [ "$(grep -c '"raw": null, "ratio": null' table)" = 8 ]
    dtrun -np 2 -H localhost:1 "$PERF" all_reduce -d cuda --raw -b 4K
    code_is 1
    grep -q 'dtrun-perf: --raw: ncclCommInitRank: ' "$ERR"
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH#*:} # without the stand-in
    dtrun -np 1 "$PERF" all_reduce --raw
    code_is 2
    grep -q 'add -d cuda' "$ERR"
    dtrun -np 1 "$PERF" all_to_all --raw -d cuda
    code_is 2
    grep -q -- '--raw: NCCL has no all_to_all of its own' "$ERR"
    clean
}

@test "--device cuda without a GPU says what is missing" {
    dtrun -np 1 "$PERF" all_reduce --device cuda
    code_is 1
    grep -q 'dtrun-perf: --device cuda: ' "$ERR"
    dtrun -np 1 "$PERF" all_reduce --device gpu
    code_is 2
    grep -q "dtrun-perf: --device: 'gpu' is not a value it takes" "$ERR"
    clean
}

@test "the table has labels only if --tag asks for them" {
    dtrun -np 2 --tag "$PERF" barrier -n 1
    code_is 0
    grep -q '^\[0\] # Out of bounds values' "$OUT"
    clean
}

@test "the head of the table is printed before the first row is measured" {
    local pid

    "$PERF" all_reduce -b 4M -n 1000000000 >table &
    pid=$!
    await grep -q '(GB/s)' table || true
    kill "$pid"
    wait "$pid" || true
    grep -q "^#  Rank  0 Group  0 Pid *$pid on " table
    grep -q '(GB/s)' table
    [ -z "$(rows table)" ]
    clean
}

@test "check 54: scripts for nccl-tests can read the table" {
    command -v python3 >/dev/null || skip "python3 is not installed"
    dtrun -np 2 "$PERF" all_gather -b 1M -e 64M -f 64 -n 2 -w 0 -d double
    code_is 0
    python3 "$DTRUN_SOURCE/tests/cli/nccl_tests.py" "$OUT" >parsed
    [ "$(cut -d' ' -f1-5 parsed | head -2 | tr '\n' ' ')" = "1048576 65536 double none -1 67108864 4194304 double none -1 " ]
    [ "$(tail -1 parsed)" = "rows 2 ranks 2 average True wrong 0 OK" ]
    [ "$(grep "Avg bus bandwidth" "$OUT" | awk '{ print ($NF > 0) }')" -eq 1 ]
    dtrun --transport local -H a,b "$PERF" broadcast_perf -b 4K -n 2 -c 0
    code_is 0
    python3 "$DTRUN_SOURCE/tests/cli/nccl_tests.py" "$OUT" >parsed
    [ "$(head -1 parsed | cut -d' ' -f1-5,9,13)" = "4096 1024 float none 0 N/A N/A" ]
    clean
}

# In place, #wrong is known for each of nccl-tests' collectives except sendrecv. All have times.
@test "check 54: scripts for nccl-tests can read the tables of all its collectives" {
    local name wrong

    command -v python3 >/dev/null || skip "python3 is not installed"
    for name in all_reduce reduce broadcast all_gather reduce_scatter alltoall gather scatter sendrecv; do
        dtrun -np 3 "$PERF" ${name}_perf -b 12K -n 2
        code_is 0
        python3 "$DTRUN_SOURCE/tests/cli/nccl_tests.py" "$OUT" >parsed || { cat parsed; false; }
        wrong=0
        [ "$name" != sendrecv ] || wrong=N/A
        [ "$(head -1 parsed | cut -d' ' -f9,13)" = "0 $wrong" ] || { cat parsed; false; }
    done
    clean
}

# measured ROWS COLLECTIVE [IN_PLACE]: every row is right. #wrong in place is IN_PLACE if that is given.
measured() {
    dtrun -np 3 "${where[@]}" "$PERF" "$2" -b 1000 -n 1 -w 0 -d all -o all -r all --link 1
    code_is 0
    awk -v rows="$1" -v in_place="${3:-0}" '/^[^#]/ { n++; if ($9 != "0" || $13 != in_place) bad++ }
        END { exit n != rows || bad }' "$OUT" || { show; false; }
}

measure_all() { # rows: types times operations times roots
    measured 84 all_reduce
    measured 252 reduce
    measured 36 broadcast
    measured 12 all-gather
    measured 12 allgatherv
    measured 84 reducescatter
    measured 12 all_to_all
    measured 12 all_to_allv N/A
    measured 36 gather_perf
    measured 36 gatherv
    measured 36 Scatter
    measured 36 scatterv
    measured 12 sendrecv N/A
    measured 1 barrier N/A
}

@test "checks 1, 18, 21: dtrun-perf measures every collective, type, operation and root with right results" {
    where=()
    measure_all
    clean
}

@test "checks 18, 21: dtrun-perf measures every collective with right results also between hosts" {
    where=(--transport local -H a:2,b)
    measure_all
    clean
}

# weighed WHERE...: four ranks measure Adasum of every floating-point type, and the results are right.
weighed() {
    dtrun -np 4 "$@" "$PERF" all_reduce -b 1000 -e 100K -f 100 -n 1 -w 0 -d all -o adasum --link 1
    code_is 0
    [ "$(rows | awk '{ print $3, $4, $9 + $13 }' | uniq -c | awk '{ print $1, $2, $3, $4 }' | tr '\n' ,)" = \
        "2 half adasum 0,2 bfloat16 adasum 0,2 float adasum 0,2 double adasum 0," ]
}

@test "check 23: dtrun-perf measures Adasum on request, with right results" {
    weighed
    weighed --transport local -H a:3,b
    clean
}

# Runs the program itself with all-reduces of f32 that are wrong on rank 1, and counted (tests/fake).
spoiled() { # OPTIONS
    local fake="$DTRUN_BUILD/tests/fake/.libs/libspoiled.so"

    [ -e "$fake" ] || skip "built without shared libraries"
    dtrun --no-tag ${where:--np 2} env LD_PRELOAD="$fake" "$PERF" "$@"
}

@test "wrong results are counted and fail the job, and -c 0 skips the check" {
    command -v jq >/dev/null || skip "jq is not installed"
    spoiled all_reduce -b 4 -e 16 -n 3 -J "$T/file"
    code_is 1
    [ "$(rows | awk '{ print $1, $9, $13 }' | tr '\n' ,)" = "4 0 0,8 1 1,16 1 1," ]
    grep -qx '# Out of bounds values : 4 FAILED' "$OUT"
    [ "$(jq -c '[.wrong, (.rows[] | .out_of_place.wrong, .in_place.wrong)]' file)" = "[4,0,0,1,1,1,1]" ]
    spoiled all_reduce -b 16 -n 3 -c 0
    code_is 0
    [ "$(rows | awk '{ print $9, $13 }')" = "N/A N/A" ]
    grep -qx '# Out of bounds values : 0 OK' "$OUT"
    clean
}

# For out of place and for in place there are warm-up calls, then -n calls back to back, then -n single ones,
# and one more with -c 1.
@test "-w and -n set numbers of calls, -i adds to the size, and -f multiplies it" {
    spoiled all_reduce -b 4 -n 3 -w 2 -c 0
    code_is 0
    [ "$(sort -u "$ERR")" = "$((2 * (2 + 3 + 3))) all-reduces of f32" ]
    spoiled all_reduce -b 4 -n 3 -w 0 -c 1
    code_is 0
    [ "$(sort -u "$ERR")" = "$((2 * (3 + 3 + 1))) all-reduces of f32" ]
    spoiled all_reduce -b 4 -e 13 -i 4 -n 1 -c 0
    [ "$(rows | awk '{ print $1 }' | tr '\n' ' ')" = "4 8 12 " ]
    spoiled all_reduce -b 4 -e 108 -f 3 -n 1 -c 0
    [ "$(rows | awk '{ print $1 }' | tr '\n' ' ')" = "4 12 36 108 " ]
    clean
}

@test "-a chooses whose time is printed" {
    command -v jq >/dev/null || skip "jq is not installed"
    [ -e "$DTRUN_BUILD/tests/fake/.libs/libspoiled.so" ] || skip "built without shared libraries"
    try prints_chosen_time 400 4000
    clean
}

# Rank 0 takes so much longer for each call.
prints_chosen_time() { # MILLISECONDS
    local a us slow=$(($1 * 1000))

    export TEST_SLOW_MS=$1
    for a in 0 1 2 3; do
        spoiled all_reduce -b 4 -n 1 -w 0 -c 0 -a $a -J "$T/file"
        code_is 0
        for us in $(jq '.rows[].out_of_place | .time_us, .p50_us, .p99_us' file); do
            case $a in
            0 | 3) awk -v us="$us" -v slow=$slow 'BEGIN { exit us < slow }' ;;
            1) awk -v us="$us" -v slow=$slow 'BEGIN { exit us < slow / 2 || us >= slow }' ;;
            2) awk -v us="$us" -v slow=$slow 'BEGIN { exit us >= slow / 2 }' ;;
            esac || { echo "-a $a: $us us"; false; }
        done
    done
}

# Before the measured calls there is another one in each round. Between hosts, messages are smaller.
@test "-n sets the number of measured calls, also for --tune" {
    local one three where="--transport local -H a,b"

    DTRUN_TUNING="$T/tuning" spoiled --tune -n 1
    code_is 0
    one=$(sed -n 's/ all-reduces of f32$//p' "$ERR" | sort -u)
    DTRUN_TUNING="$T/tuning" spoiled --tune -n 3
    code_is 0
    three=$(sed -n 's/ all-reduces of f32$//p' "$ERR" | sort -u)
    echo "$one calls, $three"
    [ "$one" -gt 0 ]
    [ "$three" -eq $((one * 2)) ]
    clean
}

# bound_by_network FILE: %bound follows from the network's rate and 1 MiB each way, as far as its digits go.
bound_by_network() {
    jq -e '.rows[0] as $r | ($r.percent_of_bound / 100 * $r.out_of_place.time_us)
        / ($r.bytes * 8e-3 / .network.gbits) | . > 0.99 and . < 1.01' "$1"
}

@test "between hosts the bound is the measured rate of their network, unless --link gives one" {
    command -v jq >/dev/null || skip "jq is not installed"
    dtrun --transport local -H a:2,b "$PERF" all_reduce -b 1M -n 2 -J "$T/measured"
    code_is 0
    [ "$(grep -cE '^# network: [0-9.e+]+ Gbit/s each way, measured$' "$OUT")" -eq 1 ]
    rows | awk '{ exit NF != 16 || $16 !~ /^[0-9.]+$/ || $16 <= 0 }'
    jq -e '.network.measured' measured
    bound_by_network measured
    dtrun --transport local -H a:2,b "$PERF" all_reduce -b 1M -n 2 -J "$T/told" --link 2.5
    code_is 0
    grep -qx '# network: 2.5 Gbit/s each way, as --link says' "$OUT"
    [ "$(jq -c .network told)" = '{"gbits":2.5,"measured":false}' ]
    bound_by_network told
    clean
}

@test "no network is measured if none is used" {
    local -a where

    while read -r -a where; do
        dtrun "${where[@]:1}" "$PERF" "${where[0]}" -b 4K -n 1 --link 1 -J "$T/file"
        code_is 0
        ! grep -q '^# network' "$OUT" || { show; false; }
        grep -qF '"network": null' file
    done <<'END'
barrier --transport local -H a,b
all_reduce -np 2
END
    clean
}

@test "--json writes the same figures as JSON, beside the table or instead of it" {
    command -v jq >/dev/null || skip "jq is not installed"
    dtrun -np 2 "$PERF" broadcast -b 1K -e 4K -f 2 -n 5 -d half -r 1 --json -
    code_is 0
    [ "$(jq -r '"\(.collective) \(.ranks) \(.rows | length) \(.wrong)"' "$OUT")" = "broadcast 2 3 0" ]
    jq -e '.rows | all(.count * 2 == .bytes and .type == "half" and .op == "none" and .root == 1)' "$OUT"
    jq -e '.rows | all(.out_of_place.time_us > 0 and .in_place.wrong == 0)' "$OUT"
    dtrun -np 2 "$PERF" all_to_allv -b 8K -n 5 -J "$T/file" -c 0
    code_is 0
    [ "$(rows | awk '{ print $1, $2 }')" = "$(jq -r '.rows[0] | "\(.bytes) \(.count)"' file)" ]
    jq -e '.rows[0] | .in_place == null and .out_of_place.wrong == null and .root == -1' file
    dtrun -np 2 "$PERF" barrier --json "$T/nowhere/file"
    [ "$RC" -ne 0 ]
    [ "$(grep -c "^dtrun-perf: --json $T/nowhere/file: No such file or directory" "$ERR")" -eq 1 ]
    clean
}

@test "--tune writes what it measured to the file that the runtime reads" {
    mkdir home home/.config home/.config/dtrun
    printf '# mine\nshm_direct[7] = 3\nshm_huge[2] = 5\n' >home/.config/dtrun/tuning
    HOME="$T/home" dtrun -np 2 "$PERF" --tune -n 1
    code_is 0
    [ ! -s "$ERR" ] || { show; false; }
    file=home/.config/dtrun/tuning
    [ "$(head -2 "$file")" = "$(printf '# mine\nshm_direct[7] = 3')" ]
    [ "$(grep -cE '^shm_direct\[2\] = [0-9]+ # measured on ' "$file")" -eq 1 ]
    [ "$(grep -cE '^shm_huge\[2\] = [0-9]+ # measured on ' "$file")" -eq 1 ]
    [ "$(grep -cE '^shm_direct_reduce\[2\] = [1-9][0-9]* # measured on ' "$file")" -eq 1 ]
    [ "$(grep -cE '^shm_small\[2\] = [0-9]+ # measured on ' "$file")" -eq 1 ]
    sed 's/ #.*//' "$file" | tail -n +3 >written # each line was also printed
    grep ' = ' "$OUT" | sed -E 's/ (as before|instead of .*)//' | diff - written
    grep -qE '^shm_huge\[2\] = [0-9]+ (as before|instead of 5: )' "$OUT"
    grep -qx "written to $T/$file" "$OUT"
    [ "$(ls home/.config/dtrun)" = tuning ]
    HOME="$T/home" dtrun -np 2 "$PERF" all_reduce -b 4 -e 64K -f 16 -n 5
    code_is 0
    [ ! -s "$ERR" ] || { show; false; }
    dtrun -np 1 "$PERF" --tune
    code_is 1
    grep -q 'a job of one rank has no thresholds to measure: start more ranks' "$ERR"
    clean
}

@test "--tune says before it measures that its file cannot be written" {
    : >plain
    for case in "$T/plain/tuning: Not a directory" "/dev/null is not a regular file: name one with DTRUN_TUNING"; do
        DTRUN_TUNING=${case%%[: ]*} dtrun -np 2 "$PERF" --tune
        code_is 1
        [ "$(grep -cx "dtrun-perf: $case" "$ERR")" -eq 1 ] || { show; false; }
        ! grep -q ' = ' "$OUT" || { show; false; }
    done
    mkdir home
    HOME="$T/home" dtrun -np 1 "$PERF" --tune
    code_is 1
    [ -z "$(ls home/.config/dtrun)" ]
    clean
}

@test "--tune measures the thresholds between hosts" {
    export DTRUN_TUNING="$T/tuning" # which does not exist yet
    dtrun --transport local -H a,b,c "$PERF" --tune -n 1 # the test looks at which thresholds are written, not at their values
    code_is 0
    [ ! -s "$ERR" ] || { show; false; }
    for name in exchange direct streams; do
        [ "$(grep -c "^net_$name\[3\] = " tuning)" -eq 1 ]
    done
    [ "$(grep -c ^shm tuning)" -eq 0 ]
    clean
}

@test "--tune measures the thresholds for several ranks on every host" {
    export DTRUN_TUNING="$T/tuning"
    : >tuning
    dtrun --transport local -H a:2,b:2 "$PERF" --tune -n 1
    code_is 0
    for name in exchange leader streams; do
        [ "$(grep -c "^net_$name\[2\] = " tuning)" -eq 1 ]
    done
    [ "$(grep -c '^shm_small\[2\] = ' tuning)" -eq 1 ]
    clean
}

@test "dtrun-perf says so if memory does not suffice" {
    for options in "all_reduce -b 1G" --tune; do
        run -1 timeout "$PATIENCE" bash -c 'ulimit -v 120000; exec "$@"' - "$PERF" $options
        [[ $output == "dtrun-perf: out of memory; "* ]] || { echo "$options: $output"; false; }
    done
}

@test "dtrun-perf reports a wrong command line and exits with 2" {
    while IFS='|' read -r options message; do
        run -2 timeout "$PATIENCE" "$PERF" $options
        [ "$output" = "dtrun-perf: $message; --help lists everything" ] || { echo "$options: $output"; false; }
    done <<'END'
|name a collective, such as all_reduce
all_gossip|there is no collective all_gossip
all_reduce broadcast|only one collective can be measured, not also broadcast
all_reduce -b 4X|--minbytes: '4X' is not a value it takes
all_reduce -b 8 -e 4|the largest size (-e) is below the smallest (-b)
all_reduce -f 1|--stepfactor: '1' is not a value it takes
all_reduce -d float -o band|-o band works on the bits of integers, not on float
all_reduce -d int8 -o adasum|-o adasum is for floats, not int8
reduce -o adasum|-o adasum is for all_reduce, not for reduce
all_reduce -g 2|--ngpus: '2' is not a value it takes
all_reduce --fast|there is no option --fast
all_reduce -qb 4|there is no option -q
all_reduce -b4 -q|there is no option -q
all_reduce --tune=1|there is no option --tune=1
all_reduce --iters|--iters needs a value
all_reduce -G 1|--cudagraph: '1' is not a value it takes
reduce -r all1|--root: 'all1' is not a value it takes
all_reduce --tune|--tune chooses the collectives itself: leave out all_reduce
--tune -n 1 -e 1G|--tune chooses what to measure: leave out --maxbytes
--tune --link 10|--tune chooses what to measure: leave out --link
all_reduce -n|-n needs a value
END
    dtrun -np 2 "$PERF" broadcast -b 4 -r 2
    code_is 2
    [ "$(grep -c '^dtrun-perf: --root: there are ranks 0 to 1$' "$ERR")" -eq 1 ]
    dtrun -np 3 "$PERF" all_reduce -b 4 -o adasum
    code_is 2
    [ "$(grep -c '^dtrun-perf: --op adasum: 3 ranks are not a power of two$' "$ERR")" -eq 1 ]
    clean
}

@test "dtrun-perf(1) lists exactly the options of dtrun-perf --help" {
    "$PERF" --help | grep '^  ' | grep -v 'dtrun-perf' | grep -oE -- '(^|[ ,])--?[A-Za-z_]+' | tr -d ' ,' | sort -u >help
    sed -nE 's/^\.It (Fl .*)/\1/p' "$DTRUN_SOURCE/man/dtrun-perf.1" | grep -oE 'Fl Fl [a-z_]+|Fl [A-Za-z]\b' |
        sed -E 's/Fl Fl /--/; s/Fl /-/' | sort -u >page
    [ "$(wc -l <page)" -gt 20 ]
    diff help page
}

# (quickstart runs the unit tests with each sanitizer.)
@test "check 53: valgrind finds no error, neither within a host nor between two" {
    local check="valgrind -q --read-inline-info=no --error-exitcode=9 $PERF"

    command -v valgrind >/dev/null || skip "valgrind is not installed"
    dtrun --no-tag -np 3 $check all_reduce -b 4 -e 64K -f 64 -n 1 -w 0
    code_is 0
    [ "$(rows | wc -l)" -eq 3 ]
    dtrun --no-tag --transport local -H here:2,there:1 $check all_to_all -b 4 -e 64K -f 64 -n 1 -w 0
    code_is 0
    [ "$(rows | wc -l)" -eq 3 ]
    clean
}
