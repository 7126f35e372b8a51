#!/usr/bin/env bats
# Jobs on different machines, on stand-ins for NVIDIA's libraries: some ranks have no NCCL, or another version
# of it, or no GPU. All ranks choose one path together, and one warning says why.

load common
load ../standin/standin

setup_file() {
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || export FILE_SKIPS="built without shared libraries"
}

# Runs tests/rank/gpu, which does DOES or "factors", with a variable that only ranks that match a pattern
# have. Each host has DEVICES devices.
mixed() { # PATTERN VARIABLE=VALUE DEVICES RANKS [dtrun option...]
    local pattern=$1 variable=$2 devices=$3 ranks=$4
    shift 4
    use_standin "$devices"
    rm -f "$T/log"
    dtrun --no-tag -np "$ranks" -x STANDIN_LOG="$T/log" "$@" sh -c '
        case $DTRUN_RANK in '"$pattern"') export "$1" ;; esac
        export STANDIN_HOST="$DTRUN_NODE_RANK"
        exec "$0" "$2"' "$RANK/gpu" "$variable" "${DOES:-factors}"
    unset LD_LIBRARY_PATH
}

# Checks the results of all ranks, and which warnings there are.
computes() { # RANKS [WARNING]
    code_is 0
    [ "$(grep -c '^factors: 28 comparisons$' "$OUT")" = "$1" ] || { show; false; }
    [ "$(grep -c ' warning: ' "$ERR")" = $(($# - 1)) ] || { show; false; }
    grep -q " warning: ${2:-}" "$ERR" || [ $# = 1 ] || { show; false; }
    clean
}

starts_nccl() { grep -q 'a communicator that' "$T/log"; }

# The lowest rank that cannot use NCCL is named.
@test "if some ranks lack NCCL, all stage, and one warning names a rank" {
    mixed 1 DTRUN_NCCL=/none.so 3 3
    computes 3 'rank 1 (localhost) cannot use NCCL (/none.so: .*): collectives on GPU memory go through host memory'
    ! starts_nccl || false
    mixed '1|2' STANDIN_NCCL_VERSION=21701 3 3
    computes 3 'rank 1 (localhost) cannot use NCCL (libnccl.so.2 is older than NCCL 2.18):'
    ! starts_nccl || false
    mixed 0 DTRUN_NCCL=/none.so 3 3
    computes 3 'rank 0 (localhost) cannot use NCCL (/none.so: .*): collectives on GPU memory go through host memory'
    ! starts_nccl || false
    mixed none DTRUN_NCCL=/none.so 3 3
    computes 3
    starts_nccl
}

@test "if one of two hosts lacks NCCL, all stage, and one warning names a rank" {
    make_on_list
    mixed '2|3' DTRUN_NCCL=/none.so 2 4 --rsh './on-list %h' -H a:2,b:2
    computes 4 'rank 2 (b) cannot use NCCL (/none.so: .*):'
    ! starts_nccl || false
    mixed none DTRUN_NCCL=/none.so 2 4 --rsh './on-list %h' -H a:2,b:2
    computes 4
    starts_nccl
}

@test "if versions of NCCL differ, all stage, and one warning names them" {
    mixed 1 STANDIN_NCCL_VERSION=22105 3 3
    computes 3 'rank 0 (localhost) has NCCL 2.28.9 and rank 1 (localhost) NCCL 2.21.5, which do not work together (DTRUN_NCCL names the file to use):'
    ! starts_nccl || false
    mixed 1 STANDIN_NCCL_VERSION=22105 3 3 -x DTRUN_DEVICE=nccl
    code_is 1
    [ "$(grep -c -- '^-11: .*rank 1 (localhost) NCCL 2.21.5, which do not work together (DTRUN_NCCL names the file to use), and DTRUN_DEVICE=nccl' "$OUT")" = 3 ] ||
        { show; false; }
    clean
}

@test "if DTRUN_DEVICE permits only NCCL, every rank names the rank that cannot use it, and the reason" {
    local setting reason
    while read -r setting reason; do
        mixed 1 $setting 3 3 -x DTRUN_DEVICE=nccl
        code_is 1
        [ "$(grep -c -- "^-11: rank 1 (localhost) cannot use NCCL ($reason), and DTRUN_DEVICE=nccl permits" "$OUT")" = 3 ] ||
            { show; false; }
        clean
    done <<'END'
DTRUN_NCCL=/none.so /none.so: cannot open shared object file: No such file or directory; DTRUN_NCCL names the file
DTRUN_NCCL=/etc/passwd /etc/passwd: .*
DTRUN_NCCL=libm.so.6 libnccl.so.2 is older than NCCL 2.18: it lacks nccl[A-Za-z]*
STANDIN_NCCL_VERSION=21701 libnccl.so.2 is older than NCCL 2.18
NCCL_COMM_ID=127.0.0.1:9 NCCL_COMM_ID is set (in the environment), which fits only one communicator
END
}

# Ranks 0 and 2 are together, and so are ranks 1 and 3.
@test "ranks have the numbers of the job in what is said of another communicator, whose first rank warns" {
    DOES=split
    mixed 3 DTRUN_NCCL=/none.so 4 4
    code_is 0
    [ "$(grep -c '^2 together$' "$OUT")" = 4 ]
    [ "$(grep -c ' warning: ' "$ERR")" = 1 ] || { show; false; }
    grep -q ' warning: rank 3 .* cannot use NCCL (.*): collectives of communicator 1.1 on GPU memory go' "$ERR" ||
        { show; false; }
    clean
    mixed 3 STANDIN_NCCL_VERSION=22105 4 4
    code_is 0
    grep -q ' warning: rank 1 .* has NCCL 2.28.9 and rank 3 .* NCCL 2.21.5' "$ERR" || { show; false; }
    clean
}

# Ranks 0 and 2 share a GPU, and so do ranks 1 and 3.
@test "ranks that share GPUs need NCCL only on the first rank of each" {
    for variable in DTRUN_NCCL=/none.so STANDIN_NCCL_VERSION=22105; do
        mixed '2|3' $variable 2 4 -H localhost:2
        computes 4
        starts_nccl
    done
    mixed 1 DTRUN_NCCL=/none.so 2 4 -H localhost:2
    computes 4 'ranks share GPUs, and rank 1 (localhost) cannot use NCCL between them (/none.so: .*):'
    ! starts_nccl || false
    mixed 1 STANDIN_NCCL_VERSION=22105 2 4 -H localhost:2
    computes 4 'rank 0 (localhost) has NCCL 2.28.9 and rank 1 (localhost) NCCL 2.21.5, which do not work together (DTRUN_NCCL names the file to use):'
    ! starts_nccl || false
    mixed 1 DTRUN_NCCL=/none.so 2 4 -H localhost:2 -x DTRUN_DEVICE=shared
    code_is 1
    [ "$(grep -c -- '^-10: .*DTRUN_DEVICE=shared permits no other path' "$OUT")" = 4 ] || { show; false; }
    clean
}

# Rank 1 finds no driver, and rank 2 no device.
some_gpus() { # [dtrun option...]
    use_standin 4
    rm -f "$T/log"
    dtrun --no-tag -np 4 -x STANDIN_LOG="$T/log" "$@" sh -c '
        case $DTRUN_RANK in
            1) unset LD_LIBRARY_PATH ;;
            2) export STANDIN_DEVICES=0 ;;
        esac
        export STANDIN_HOST="$DTRUN_NODE_RANK"
        exec "$0"' "$RANK/gpusome"
    unset LD_LIBRARY_PATH
    code_is 0
    [ "$(grep -c '^2 with a GPU$' "$OUT")" = 2 ] || { show; false; }
    [ "$(grep -c '^2 without a GPU$' "$OUT")" = 2 ]
    ! grep -q warning "$ERR" || { show; false; }
    clean
}

@test "ranks with and without a GPU make calls whose counts differ, sends, and calls among their like" {
    make_on_list
    some_gpus
    starts_nccl
    some_gpus -x DTRUN_DEVICE=staging
    some_gpus --rsh './on-list %h' -H a:2,b:2
    starts_nccl
}

@test "a call with equal counts, for which a rank has no GPU, is an error on all ranks" {
    use_standin 4
    for path in auto staging; do
        dtrun --no-tag -np 3 -x DTRUN_DEVICE=$path "$RANK/gpu" unlike
        code_is 1
        [ "$(grep -c -- '^-3: .*rank 1 .* called all-reduce of 1 f32 (sum), call 2' "$OUT")" = 3 ] || { show; false; }
        clean
    done
    unset LD_LIBRARY_PATH
}
