#!/usr/bin/env bats
# Random programs on GPU memory, on stand-ins for NVIDIA's libraries: short ones of those that tests/gpu/random makes.

load common

setup_file() {
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libcuda.so.1" ] || skip "built without shared libraries"
}

compute() { # SEED...
    for seed in "$@"; do
        env "$TOKEN" "$DTRUN_SOURCE/tests/gpu/random" --from "$seed" --seeds 1
    done
    clean
}

# In one of them, a rank sends nothing in an all-to-allv that is staged (223).
@test "random programs on GPU memory compute what they must" {
    compute 2 9 11 19 24 31 36 223
}

@test "random programs that are disturbed end with the bytes of undisturbed ones" { compute 17 30; }
