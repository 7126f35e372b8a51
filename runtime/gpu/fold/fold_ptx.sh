#!/bin/sh
# usage: fold_ptx.sh SOURCE-FOLDER > fold_ptx.c
# Prints runtime/gpu/fold/fold_ptx.c: what nvcc makes of fold.cu. The PTX is marked for the oldest version and
# devices that have all its instructions, so that every driver that libdtrun works with takes it.
set -eu
cd "$1"
release=$(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
echo "/* What nvcc $release makes of fold.cu, for libdtrun to give to the driver: \`make fold-ptx\`. */"
cat <<'TEXT'
#include "runtime/gpu/fold/folder.h"

/* clang-format off */
const char dti_fold_ptx[] =
TEXT
nvcc -ptx -arch=compute_75 -fmad=false -I. -o /dev/stdout runtime/gpu/fold/fold.cu |
    sed -e 's/^\.version .*/.version 6.0/; s/^\.target .*/.target sm_50/; s://.*::; s/[[:blank:]]\+/ /g
            s/^ //; s/ $//; /^$/d; s/.*/    "&\\n"/'
echo '    ;'
