#!/usr/bin/env bats
# The kernels that libdtrun, the example and the GPU kit contain as PTX.

load common

SOURCES=$DTRUN_SOURCE/runtime/gpu/fold

carried() { sed -n 's/^    "\(.*\)\\n"$/\1/p' "$SOURCES/fold_ptx.c"; }

@test "the kernel's PTX works with the drivers and devices of CUDA 9" {
    [ "$(carried | head -n 2 | tr '\n' ' ')" = ".version 6.0 .target sm_50 " ]
    carried | grep -q '^\.visible \.entry dtrun_fold($'
    ! carried | grep 'fma\|approx\|\.ftz' || false
    clean
}

@test "ptxas compiles the kernel for the oldest GPUs that it knows, and for newer ones" {
    local arch

    command -v ptxas >/dev/null || skip "no ptxas here"
    carried >"$T/fold.ptx"
    for arch in sm_75 sm_80 sm_90; do
        ptxas -arch=$arch -o "$T/$arch" "$T/fold.ptx"
        [ -s "$T/$arch" ]
    done
    clean
}

@test "ptxas compiles the kernels of the example charlm, too" {
    local arch

    [ -e "$DTRUN_BUILD/examples/charlm.ptx" ] || skip "built without nvcc"
    command -v ptxas >/dev/null || skip "no ptxas here"
    for arch in sm_75 sm_90; do
        ptxas -arch=$arch -o "$T/$arch" "$DTRUN_BUILD/examples/charlm.ptx"
        [ -s "$T/$arch" ]
    done
    [ "$(grep -c '^\.visible \.entry charlm_' "$DTRUN_BUILD/examples/charlm.ptx")" = 8 ]
    clean
}

@test "ptxas compiles the kernels of the GPU kit that keep a GPU busy and let it fault, too" {
    local arch source

    command -v ptxas >/dev/null || skip "no ptxas here"
    for source in gpu/spin rank/gpu; do
        sed -n 's/^[^"]*"\(.*\)\\n";\{0,1\}$/\1/p' "$DTRUN_SOURCE/tests/$source.c" >"$T/kernel.ptx"
        grep -q '^\.visible \.entry \(spin\|fault\)(' "$T/kernel.ptx"
        for arch in sm_75 sm_90; do
            rm -f "$T/$arch"
            ptxas -arch=$arch -o "$T/$arch" "$T/kernel.ptx"
            [ -s "$T/$arch" ]
        done
    done
    clean
}

@test "the kernel's PTX is what nvcc makes of its source" {
    local made

    command -v nvcc >/dev/null || skip "no nvcc here"
    made=$(sed -n '1s/.* What nvcc \([0-9.]*\) .*/\1/p' "$SOURCES/fold_ptx.c")
    nvcc --version | grep -q "release $made," || skip "another nvcc than $made would make other PTX"
    sh "$SOURCES/fold_ptx.sh" "$DTRUN_SOURCE" >"$T/fold_ptx.c"
    diff "$SOURCES/fold_ptx.c" "$T/fold_ptx.c"
    clean
}
