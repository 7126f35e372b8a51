#!/usr/bin/env bats
# Unmodified MPI programs on one machine: MPICH's, which speak PMI-1 with the agent, and Open MPI's, which
# speak PMIx. Each test runs with every MPI that is installed.

load common

setup_file() {
    local mpi

    # Open MPI 5 warns of some machines' addresses that it finds no pair of networks between its ranks.
    export OMPI_MCA_btl=^tcp
    for mpi in mpich openmpi; do
        ! type "mpicc.$mpi" >/dev/null 2>&1 ||
            "mpicc.$mpi" -o "$BATS_FILE_TMPDIR/$mpi" "$DTRUN_SOURCE/tests/rank/mpi.c"
    done
}

# Runs the function with each MPI. $MPI is the test program, built with it.
with_each() { # FUNCTION
    local mpi found=

    for mpi in mpich openmpi; do
        MPI="$BATS_FILE_TMPDIR/$mpi"
        [ -x "$MPI" ] || continue
        [ "$mpi" = mpich ] || [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] || continue
        found=1
        echo "--- with $mpi"
        "$1"
        clean
        await_no_mpi_dir
    done
    [ -n "$found" ] || skip "needs mpicc.mpich, or mpicc.openmpi and libpmix-dev"
}

# Other tests may run MPI programs at the same time.
await_no_mpi_dir() {
    local dirs

    dirs=$(compgen -G '/dev/shm/dtrun-mpi.*') || return 0
    mpi_dirs_are_gone() { [ -z "$(ls -d $dirs 2>/dev/null)" ]; }
    await mpi_dirs_are_gone
}

needs_openmpi() {
    [ -x "$BATS_FILE_TMPDIR/openmpi" ] || skip "needs mpicc.openmpi (libopenmpi-dev)"
    [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] || skip "built without PMIx (libpmix-dev)"
}

@test "all ranks of an MPI program are one job and share memory" {
    check() {
        dtrun --no-tag -np 4 "$MPI" sum
        code_is 0
        [ "$(sort "$OUT")" = "rank 0 of 4: sum 10, 4 on this host
rank 1 of 4: sum 10, 4 on this host
rank 2 of 4: sum 10, 4 on this host
rank 3 of 4: sum 10, 4 on this host" ]
        err_is_empty
    }
    with_each check
}

@test "Open MPI programs run where /dev/shm has too little room" {
    needs_openmpi
    unshare --mount true 2>/dev/null || skip "needs root, to make /dev/shm small"
    cat >small-shm <<'END'
#!/bin/sh
exec unshare --mount sh -c 'mount -t tmpfs -o size=4m none /dev/shm && exec "$@"' sh "$REAL" "$@"
END
    chmod +x small-shm
    REAL="$DTRUN" DTRUN="$T/small-shm"
    export REAL
    dtrun --no-tag -np 2 "$BATS_FILE_TMPDIR/openmpi" sum
    code_is 0
    [ "$(sort "$OUT" | tail -n 1)" = "rank 1 of 2: sum 3, 2 on this host" ]
    err_is_empty
    clean
    await eval '! compgen -G "/tmp/dtrun-mpi.*" >/dev/null'
}

@test "the code of MPI_Abort is dtrun's exit code, and no rank is left" {
    check() {
        dtrun -np 4 "$MPI" abort 3
        code_is 3
        err_has "dtrun: rank 1 (localhost, pid "
        err_has "exited with code 3; stopping the other 3 ranks"
    }
    with_each check
}

@test "MPI_Abort with 0 is a failure, too" {
    check() {
        dtrun -np 2 "$MPI" abort 0
        code_is 1
    }
    with_each check
}

@test "what MPI says of an error is output of the rank that made it, also with --merge-stderr" {
    check() {
        dtrun -np 2 "$MPI" error
        [ "$RC" -gt 0 ]
        grep -qi '^\[1\] .*invalid rank' "$ERR" || { show; false; }
        ! grep -q 'PMI' "$ERR" || { show; false; }
        dtrun --merge-stderr -np 2 "$MPI" error
        [ "$RC" -gt 0 ]
        grep -qi '^\[1\] .*invalid rank' "$OUT" || { show; false; }
    }
    with_each check
}

@test "a killed rank of an MPI program ends the job with 137" {
    check() {
        dtrun -np 4 "$MPI" die
        code_is 137
    }
    with_each check
}

@test "a restarted MPI job starts afresh" {
    check() {
        dtrun --no-tag --max-restarts 1 -np 3 "$MPI" die-once
        code_is 0
        [ "$(grep -c 'sum 6, 3 on this host' "$OUT")" = 3 ]
    }
    with_each check
}

@test "MPI and libdtrun work in one process, in any order of starting and ending" {
    local lib="$DTRUN_BUILD/runtime/.libs"

    [ -e "$lib/libdtrun.so" ] || skip "built without shared libraries"
    check() {
        local order

        "mpicc.${MPI##*/}" -I"$DTRUN_SOURCE" -o both "$DTRUN_SOURCE/tests/rank/both.c" \
            -L"$lib" -ldtrun -Wl,-rpath,"$lib"
        for order in 'mpi mpi' 'mpi dt' 'dt mpi' 'dt dt'; do
            dtrun --no-tag -np 3 ./both $order
            code_is 0
            [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 3 sums 6 and 6 of 3 ranks" ] || { show; false; }
        done
    }
    with_each check
}

@test "MPI_Comm_spawn fails, and the job goes on" {
    check() {
        dtrun --no-tag -np 2 "$MPI" spawn
        code_is 0
        out_is "spawn refused
"
        # Debian's MPICH refuses by itself, and also under its own mpiexec.
        [ "${MPI##*/}" = mpich ] || err_has "localhost: rank 0 (localhost): MPI_Comm_spawn fails: dtrun starts all processes of a job at once; see dtrun-frameworks(7)"
        [ "${MPI##*/}" = mpich ] || err_lines 1
    }
    with_each check
}

@test "ranks of Open MPI find each other by a published name, and connect" {
    needs_openmpi
    dtrun --no-tag -np 3 --timeout 120 "$BATS_FILE_TMPDIR/openmpi" connect
    code_is 0
    [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 2 rank 0: sum 6
 2 rank 1: sum 6
 2 rank 2: sum 6" ] || { show; false; }
    err_is_empty
    clean
}

# Makes ./pmix, which speaks PMIx itself.
make_pmix() {
    [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] || skip "built without PMIx (libpmix-dev)"
    gcc -o pmix "$DTRUN_SOURCE/tests/rank/pmix.c" -pthread $(pkg-config --cflags --libs pmix)
}

@test "ranks of MPI can use sessions" {
    check() {
        dtrun --no-tag -np 4 --timeout 60 "$MPI" session
        code_is 0
        [ "$(sort -u "$OUT")" != "MPI has no sessions" ] || return 0
        [ "$(sort "$OUT" | uniq -c | tr -s ' ')" = " 2 rank 0: sums 10 and 4
 2 rank 1: sums 10 and 6
 2 rank 2: sums 10 and 4
 2 rank 3: sums 10 and 6" ] || { show; false; }
        err_is_empty
    }
    with_each check
}

@test "the PMIx server gives each group of ranks an id of its own" {
    make_pmix
    dtrun --no-tag -np 4 --timeout 60 ./pmix group
    code_is 0
    [ "$(sort "$OUT" | uniq -c | tr -s ' ' | cut -d: -f1)" = " 4 all
 4 all
 2 even
 2 even
 2 odd 0
 2 odd 0" ] || { show; false; }
    [ "$(cut -d: -f2 "$OUT" | sort -u | wc -l)" = 6 ] || { show; false; }
    err_is_empty
    clean
}

@test "threads of a rank publish and look up names at the same time" {
    make_pmix
    dtrun --no-tag -np 2 --timeout 60 ./pmix threads
    code_is 0
    [ "$(sort "$OUT")" = "rank 0: all names
rank 1: all names" ] || { show; false; }
    clean
}

@test "a value that is too large to be published is refused, and the PMIx server goes on" {
    make_pmix
    dtrun --no-tag -np 2 --timeout 60 ./pmix large
    code_is 0
    [ "$(sort "$OUT")" = "rank 0: too large
rank 1: too large" ] || { show; false; }
    err_is_empty
    clean
}

@test "a PMIx server that is to pass on too much says so" {
    make_pmix
    make_on_list
    dtrun --no-tag --no-push --rsh './on-list %h' -np 24 --timeout 60 -H a:23,b:1 ./pmix fence
    [ "$RC" != 0 ]
    err_has "dtrun: a: the MPI ranks of this host exchange more than 64 MiB at a time, which dtrun cannot pass on: let each publish less"
    clean
}

@test "the PMIx server prints what ranks ask it to" {
    make_pmix
    dtrun --no-tag -np 2 --timeout 60 ./pmix log
    code_is 0
    [ "$(sort -V "$OUT")" = "$(for rank in 0 1; do printf "rank $rank: line %d\n" {0..99}; done)" ] || { show; false; }
    clean
}

@test "MPI knows hosts whose names are long words and large numbers" {
    local first=i9876543210 second

    second=$(printf 'longname%.0s' 1 2 3 4 5 6 7)
    make_pmix
    make_on_list
    dtrun --no-tag --no-push --rsh './on-list %h' -np 2 --timeout 60 -H $first,$second ./pmix hosts
    code_is 0
    [ "$(sort "$OUT")" = "$(for rank in 0 1; do printf "$rank: %s\n" "0 is on $first" "1 is on $second"; done)" ] ||
        { show; false; }
    err_is_empty
    clean
}

@test "MPI_INFO_ENV describes the job, also inside a job of mpirun" {
    needs_openmpi
    mkdir there
    export OMPI_COMMAND=outer OMPI_ARGV=outer OMPI_MCA_initial_wdir=/ OMPI_NUM_APP_CTX=9 OMPI_FIRST_RANKS=9 \
        OMPI_APP_CTX_NUM_PROCS=9
    dtrun --no-tag -np 2 --wdir there "$BATS_FILE_TMPDIR/openmpi" info 'a b'
    code_is 0
    out_is "command: $BATS_FILE_TMPDIR/openmpi
argv: info a b
maxprocs: 2
soft: 2
wdir: $T/there
ompi_np: 2
ompi_num_apps: 1
ompi_first_rank: 0
"
    dtrun --no-tag -np 1 -x OMPI_COMMAND=mine "$BATS_FILE_TMPDIR/openmpi" info $(printf 'a %.0s' {1..70000})
    code_is 0
    # Open MPI 5 takes these from PMIx.
    out_has 1 "^command: \(mine\|$BATS_FILE_TMPDIR/openmpi\)$"
    out_has 1 '^argv: \(not set\|info a a.*\)$'
    clean
}

@test "more MPI ranks than slots can run" {
    check() {
        dtrun --no-tag -H localhost:2 -np 6 "$MPI" sum
        code_is 0
        [ "$(grep -c 'of 6: sum 21, 6 on this host' "$OUT")" = 6 ]
    }
    with_each check
}

@test "ranks of Open MPI yield if the CPUs that they may use are fewer" {
    [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] || skip "built without PMIx (libpmix-dev)"
    type taskset >/dev/null || skip "taskset(1) is not installed"
    local one=$(grep Cpus_allowed_list /proc/self/status | grep -oE '[0-9]+$')

    printf '#!/bin/sh\nexec taskset -c %s "%s" "$@"\n' "$one" "$DTRUN_BUILD/cmd/dtrun" >with_one
    chmod +x with_one
    DTRUN=./with_one
    dtrun --no-tag --env mpi -np 2 printenv OMPI_MCA_mpi_yield_when_idle
    code_is 0
    out_is "1
1
"
    clean
}

@test "an MPI rank that exits with 7 ends the job with 7" {
    check() {
        dtrun -np 2 "$MPI" exit 7
        code_is 7
    }
    with_each check
}

@test "a rank that exits with 0 without MPI_Finalize fails if others wait for it" {
    check() {
        dtrun -np 2 --timeout 120 "$MPI" desert # ranks of MPI that wait use a CPU each
        code_is 1
        err_has "dtrun: rank 1 (localhost, pid "
        err_has ") exited without MPI_Finalize (the other ranks wait for it); stopping the other rank"
        err_lines 1
    }
    with_each check
}

@test "a rank that exits with 0 without MPI_Init fails if others wait for it" {
    check() {
        dtrun -np 3 --timeout 120 "$MPI" absent
        code_is 1
        err_has "dtrun: rank 1 (localhost, pid "
        err_has ") exited without MPI_Init (the other ranks wait for it); stopping the other 2 ranks"
        err_lines 1
    }
    with_each check
}

@test "ranks that all exit with 0 without MPI_Finalize have not failed" {
    check() {
        dtrun --no-tag -np 2 "$MPI" leave
        code_is 0
        err_is_empty
    }
    with_each check
}

@test "a rank that writes nonsense to its PMI-1 socket is reported, and the job goes on" {
    dtrun -np 1 bash -c 'echo hello >&$PMI_FD; read -t 10 -u $PMI_FD || exit 0'
    code_is 0
    err_has "rank 0 (localhost): what it writes to PMI_FD is not PMI-1: it sends a request before init"
    clean
}

@test "a script can use mpi4py under a Python that is not linked with MPI" {
    /usr/bin/python3 -c 'import mpi4py' 2>/dev/null || skip "needs python3-mpi4py"
    needs_openmpi
    cat >sum.py <<'END'
from mpi4py import MPI
comm = MPI.COMM_WORLD
print(comm.size, comm.allreduce(comm.rank + 1), flush=True)
END
    dtrun --no-tag -np 3 /usr/bin/python3 sum.py
    code_is 0
    [ "$(sort -u "$OUT")" = "3 6" ]
    clean
}

@test "the module mpi4py can be run, and used by the text of python3 -c" {
    /usr/bin/python3 -c 'import mpi4py' 2>/dev/null || skip "needs python3-mpi4py"
    needs_openmpi
    dtrun --no-tag -np 2 /usr/bin/python3 -m mpi4py.bench helloworld
    code_is 0
    [ "$(grep -c 'process [01] of 2' "$OUT")" = 2 ] || { show; false; }
    dtrun --no-tag -np 2 /usr/bin/python3 -c 'from mpi4py import MPI; print("of", MPI.COMM_WORLD.size)'
    code_is 0
    [ "$(grep -c 'of 2' "$OUT")" = 2 ] || { show; false; }
    clean
}

@test "a script that starts an Open MPI program can read the variables of Open MPI's ranks" {
    needs_openmpi
    printf '#!/bin/sh\necho "I am $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE"\nexec "$@"\n' >script
    chmod +x script
    dtrun --no-tag -np 2 ./script "$BATS_FILE_TMPDIR/openmpi" sum
    code_is 0
    grep -qx 'I am 0 of 2' "$OUT" && grep -qx 'I am 1 of 2' "$OUT" || { show; false; }
    clean
}

@test "an Open MPI program can be started by a shell, by a script or by another program" {
    needs_openmpi
    one_job() { # COMMAND...
        dtrun --no-tag -np 2 "$@"
        code_is 0
        [ "$(grep -c 'of 2: sum 3, 2 on this host' "$OUT")" = 2 ] || { show; return 1; }
        clean
    }
    ln -s "$BATS_FILE_TMPDIR/openmpi" program
    printf '#!/bin/sh\nexec ./program sum\n' >script
    printf 'exec "$PWD/program" sum\n' >hidden
    chmod +x script
    one_job sh -c 'exec ./program sum'
    one_job ./script
    one_job env WHICH=this ./program sum
    one_job --env mpi sh hidden
}

@test "a program that uses Open MPI through other libraries is one job" {
    needs_openmpi
    mkdir lib near
    sed 's/^int main(/int work(/' "$DTRUN_SOURCE/tests/rank/mpi.c" >work.c
    mpicc.openmpi -shared -fPIC -o lib/libwork.so work.c
    echo 'int work(int, char **); int outer(int c, char **v) { return work(c, v); }' |
        gcc -shared -fPIC -o near/libouter.so -xc - -xnone -Llib -lwork -Wl,-rpath,'$ORIGIN/../lib'
    echo 'int outer(int, char **); int main(int c, char **v) { return outer(c, v); }' |
        gcc -o program -xc - -xnone -Lnear -louter -Wl,-rpath-link,lib
    one_job() {
        dtrun --no-tag -np 2 "$@"
        code_is 0
        [ "$(grep -c 'of 2: sum 3, 2 on this host' "$OUT")" = 2 ] || { show; return 1; }
    }
    LD_LIBRARY_PATH="$T/near" one_job ./program sum
    LD_LIBRARY_PATH="$T/near" one_job sh -c './program sum'
    clean
}

# Makes train.py, which uses mpi4py through an installed package only, so that dtrun does not recognise it.
detour() {
    /usr/bin/python3 -c 'import mpi4py' 2>/dev/null || skip "needs python3-mpi4py"
    needs_openmpi
    make_load
    mkdir site
    echo 'from mpi4py import MPI' >site/package.py
    sed 's/^import/import package,/' load.py >train.py
    export PYTHONPATH="$T/site"
}

# What dtrun says about a program that uses Open MPI and was not recognised.
warning='dtrun: localhost: rank [01] (localhost): process [0-9]* has loaded Open MPI (/.*/libmpi\.so\.[0-9.]*), but there is no PMIx server for it: every rank that calls MPI_Init is an MPI job of its own, of size 1; --env mpi starts the server'

@test "a program that uses Open MPI only through an installed package is warned of once" {
    detour
    dtrun_start --no-tag -np 2 /usr/bin/python3 train.py
    await has_line "^$warning$" "$ERR" || { show; false; }
    await_look
    dtrun_wait
    code_is 0
    err_lines 1
    clean
}

@test "a program that a script starts through another script is warned of, with its process" {
    needs_openmpi
    local pid

    printf '#!/bin/sh\nsh inner\n' >outer
    printf '"%s" wait\nexit\n' "$BATS_FILE_TMPDIR/openmpi" >inner
    chmod +x outer
    dtrun_start -np 2 ./outer
    await has_line "^$warning$" "$ERR" || { show; false; }
    pid=$(sed -n 's/.*: process \([0-9]*\) has loaded.*/\1/p' "$ERR")
    [ "$(readlink "/proc/$pid/exe")" = "$BATS_FILE_TMPDIR/openmpi" ]
    kill -TERM "$BACKGROUND"
    dtrun_wait
    clean
}

@test "Open MPI that is served, or a job of one rank, gets no warning" {
    detour
    is_not_warned -np 2 --env mpi /usr/bin/python3 train.py
    is_not_warned -np 1 /usr/bin/python3 train.py
    is_not_warned -np 2 mpirun.openmpi --allow-run-as-root --bind-to none -np 1 /usr/bin/python3 train.py
    clean
}

@test "Open MPI that is loaded but not started gets no warning" {
    needs_openmpi
    local pmix

    pmix=$(ldd "$BATS_FILE_TMPDIR/openmpi" | sed -n 's/.*libpmix[^ ]* => \([^ ]*\) .*/\1/p')
    ldd "$BATS_FILE_TMPDIR/openmpi" | grep -q libopen-rte ||
        [ -e "$(dirname "$(readlink -f "$pmix")")/pmix/pmix_mca_pcompress_zlib.so" ] ||
        skip "needs Open MPI 4, or PMIx with plugins in files"
    make_load
    is_not_warned -np 2 python3 load.py libmpi.so.40
    clean
}

@test "Open MPI 5 is started if PMIx has loaded its plugin, or if the plugin is not in a file" {
    local library

    make_load
    mkdir pmix
    for library in libmpi.so.40 libpmix.so.2 pmix/pmix_mca_pcompress_zlib.so; do
        cp horovod/mpi_lib.so "$library"
    done
    is_not_warned -np 2 python3 load.py ./libmpi.so.40 ./libpmix.so.2
    is_warned() {
        rm -f end
        dtrun_start --no-tag -np 2 python3 load.py "$@"
        await has_line "^$warning$" "$ERR" || { show; false; }
        : >end
        dtrun_wait
        code_is 0
        err_lines 1
    }
    is_warned ./libmpi.so.40 ./libpmix.so.2 ./pmix/pmix_mca_pcompress_zlib.so
    rm -r pmix
    is_warned ./libmpi.so.40 ./libpmix.so.2
    clean
}

@test "a job of MPI leaves nothing in the directory for temporary files" {
    check() {
        mkdir "tmp-$mpi"
        TMPDIR=$T/tmp-$mpi dtrun -np 2 "$MPI"
        code_is 0
        [ -z "$(ls -A "tmp-$mpi")" ] || { ls -A "tmp-$mpi"; false; }
    }
    with_each check
}

@test "an MPI program whose ranks have lost their environment is warned of, also if dtrun serves it" {
    check() {
        local keep=() # Open MPI searches PATH for ssh, and version 5 needs HOME; MPICH needs no variable
        [ "$mpi" = mpich ] || keep=("PATH=$PATH" "HOME=$HOME")
        dtrun_start -np 2 env -i "${keep[@]}" "$MPI" wait
        await has_line "^dtrun: localhost: rank [01] (localhost): process [0-9]* has loaded .*MPI (/.*/libmpi[^/]*), but has none of the rank's environment: every rank that calls MPI_Init is an MPI job of its own, of size 1; env -i, sudo and containers may remove it\$" "$ERR" || { show; false; }
        kill -TERM "$BACKGROUND"
        dtrun_wait
        [ "$(grep -c 'has loaded' "$ERR")" = 1 ] || { show; false; }
    }
    with_each check
}

@test "a rank that hides its MPI from another MPI program gets no warning" {
    make_load
    ldconfig -p | grep -q 'libmpich\.so\.12' || skip "needs libmpich12"
    is_not_warned -np 2 env -u PMI_FD -u PMI_RANK -u PMI_SIZE python3 load.py libmpich.so.12
    is_not_warned -np 2 python3 load.py libmpich.so.12
    clean
}

# Makes a dtrun-pmix that runs the given shell command, and an agent beside it.
fake_pmix() {
    mkdir bin
    cp "$DTRUN_AGENT" bin/dtrun-agent
    printf '#!/bin/sh\n%s\n' "$1" >bin/dtrun-pmix
    chmod +x bin/dtrun-pmix
    export DTRUN_AGENT="$T/bin/dtrun-agent"
}

@test "a job of --env mpi does not start without a PMIx server" {
    fake_pmix 'exit 3'
    dtrun -np 2 --env mpi touch started
    code_is 125
    [ ! -e started ]
    err_lines 1
    err_has "dtrun: touch may use MPI (--env mpi), but there is no PMIx server for it: every rank would be an MPI job of its own, of size 1. dtrun-pmix (pid "
    err_has ") exited with code 3 (on localhost)"
    dtrun -np 2 --env mpi --check touch started
    code_is 125
    err_has "dtrun: localhost: touch may use MPI (--env mpi), but there is no PMIx server for it"
    clean
}

@test "a job of --env mpi does not restart without a PMIx server" {
    [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] || skip "built without PMIx (libpmix-dev)"
    fake_pmix "[ ! -e started ] || exit 3; exec '$DTRUN_BUILD/cmd/dtrun-pmix' \"\$@\""
    dtrun -np 2 --env mpi --max-restarts 1 sh -c 'echo $RANK >>started; exit 1'
    code_is 125
    [ "$(wc -l <started)" -le 2 ]
    err_has "dtrun: sh may use MPI (--env mpi), but there is no PMIx server for it"
    clean
}

@test "one rank needs no PMIx server" {
    fake_pmix 'exit 3'
    dtrun -np 1 --env mpi true
    code_is 0
    err_lines 0
    clean
}

@test "a host without PMIx is reported with the packages that it needs" {
    type gcc >/dev/null || skip "needs gcc"
    local libexec

    mkdir bin
    cp "$DTRUN_AGENT" bin/dtrun-agent
    libexec=$(grep -aoEm1 '/[[:graph:]]+/libexec/dtrun' "$DTRUN_AGENT")
    [ ! -e "$libexec" ] || hide "$libexec"
    DTRUN_AGENT="$T/bin/dtrun-agent" dtrun -np 2 --env mpi true
    code_is 125
    err_lines 1
    err_has "dtrun-pmix is missing: install PMIx (in Debian the package libpmix-dev) and build dtrun again"

    echo 'int f(void) { return 0; }' | gcc -shared -Wl,-soname,libpmix.so.0 -o libpmix.so.0 -xc -
    echo 'int f(void); int main(void) { return f(); }' | gcc -o bin/dtrun-pmix -xc - -xnone libpmix.so.0
    rm libpmix.so.0
    DTRUN_AGENT="$T/bin/dtrun-agent" dtrun -np 2 --env mpi true
    code_is 125
    err_has "dtrun: localhost: dtrun-pmix: error while loading shared libraries: libpmix.so.0"
    err_has "dtrun-pmix cannot run on this host: install PMIx there (in Debian the package libpmix2)"
    clean
}

@test "any host that has no PMIx server says so" {
    [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] || skip "built without PMIx (libpmix-dev)"
    make_on_list
    fake_pmix "[ \"\$DTRUN_HOSTID\" = b ] || exec '$DTRUN_BUILD/cmd/dtrun-pmix' \"\$@\"; exit 127"
    dtrun --no-push --rsh './on-list %h' -H a,b --env mpi true
    code_is 125
    err_lines 1
    err_has "dtrun: true may use MPI (--env mpi), but there is no PMIx server for it"
    err_has "(on b)"
    clean
}

@test "a killed PMIx server is reported with its host and signal" {
    needs_openmpi
    local server

    dtrun_start -np 2 "$BATS_FILE_TMPDIR/openmpi" wait
    await grep -q 'rank 1 waits' "$OUT"
    server=$(pgrep -x dtrun-pmix -P "$(worker)")
    kill -KILL "$server"
    dtrun_wait
    err_has "dtrun: localhost: dtrun-pmix (pid $server) was killed by signal 9 (Killed); if nobody killed it, memory may have run out there (see dmesg). MPI ranks of a host end with its PMIx server; --max-restarts lets dtrun start the job again"
    err_lines 2 # and which rank ended
    [ "$RC" -gt 0 ]
    clean
}

@test "a killed PMIx server ends ranks before MPI_Init, but not those after MPI_Finalize" {
    needs_openmpi
    dtrun_start -np 1 --env mpi sh -c 'echo waits; exec sleep 1000'
    await grep -q waits "$OUT"
    kill -KILL "$(pgrep -x dtrun-pmix -P "$(worker)")"
    dtrun_wait
    code_is 137
    dtrun_start -np 1 "$BATS_FILE_TMPDIR/openmpi" after sh -c 'echo waits; until [ -e go ]; do sleep 0.1; done'
    await grep -q waits "$OUT"
    kill -KILL "$(pgrep -x dtrun-pmix -P "$(worker)")"
    await grep -q 'dtrun-pmix (pid .* was killed' "$ERR"
    touch go
    dtrun_wait
    code_is 0
    clean
}

# As Slurm and Grid Engine do. The ranks go on, and need the server in MPI_Finalize.
@test "the PMIx server survives a signal that a batch system sends to every process" {
    needs_openmpi
    local server signal

    for signal in HUP INT TERM USR1 USR2; do
        dtrun_start -np 2 "$BATS_FILE_TMPDIR/openmpi" catch
        await grep -q 'rank 0 waits' "$OUT"
        await grep -q 'rank 1 waits' "$OUT"
        server=$(pgrep -x dtrun-pmix -P "$(worker)")
        kill "-$signal" "$server"
        kill -USR1 "$BACKGROUND"
        dtrun_wait
        code_is 0
        err_is_empty
        clean
    done
}

@test "the files of Open MPI are removed when a job is stopped" {
    needs_openmpi
    local dirs

    dtrun_start -np 2 "$BATS_FILE_TMPDIR/openmpi" wait
    await grep -q 'rank 1 waits' "$OUT"
    dirs=$(sed -n 's/^\[1\] rank 1 waits, files in //p' "$OUT")
    [ -d "$dirs" ]
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    [ ! -e "$dirs" ]
    clean
}

@test "the files of Open MPI are removed when dtrun or a process of its agent is killed" {
    needs_openmpi
    local victim dirs

    for victim in dtrun keeper worker; do
        dtrun_start -np 2 "$BATS_FILE_TMPDIR/openmpi" wait
        await grep -q 'rank 1 waits' "$OUT"
        dirs=$(sed -n 's/^\[1\] rank 1 waits, files in //p' "$OUT")
        [ -d "$dirs" ]
        case $victim in dtrun) kill -KILL "$BACKGROUND" ;; *) kill -KILL "$($victim)" ;; esac
        dtrun_wait
        becomes_clean
        [ ! -e "$dirs" ]
    done
}

@test "a PMIx server serves an MPI library that was built with PMIx" {
    type gcc >/dev/null || skip "needs gcc"
    [ -x "$DTRUN_BUILD/cmd/dtrun-pmix" ] || skip "built without PMIx (libpmix-dev)"
    # The same soname as that of an MPICH that speaks PMI-1.
    echo 'int f(void) { return 0; }' | gcc -shared -Wl,-soname,libpmix.so.9 -o libpmix.so.9 -xc -
    echo 'int f(void); int MPI_Init(void) { return f(); }' |
        gcc -shared -Wl,-soname,libmpi.so.12 -o libmpi.so.12 -xc - -xnone libpmix.so.9
    printf '#include <stdio.h>\n#include <stdlib.h>\nint MPI_Init(void);
        int main(void) { MPI_Init(); puts(getenv("PMIX_RANK")); }' |
        gcc -o mpi -xc - -xnone -Wl,-rpath,"$T" -Wl,-rpath-link,"$T" libmpi.so.12
    LD_LIBRARY_PATH=$T dtrun --no-tag -np 1 ./mpi
    code_is 0
    err_is_empty
    [ "$(cat "$OUT")" = 0 ]
    clean
}

@test "without a PMIx server one line says that each Open MPI rank is a job of its own" {
    type gcc >/dev/null || skip "needs gcc"
    # A program counts as one of Open MPI's if it names this library.
    echo 'int MPI_Init(void) { return 0; }' | gcc -shared -Wl,-soname,libmpi.so.40 -o libmpi.so.40 -xc -
    echo 'int MPI_Init(void); int main(void) { return MPI_Init(); }' |
        gcc -o mpi -xc - -xnone -Wl,-rpath,"$T" libmpi.so.40
    fake_pmix 'exit 3'
    dtrun -np 2 ./mpi
    code_is 0
    err_lines 1
    err_has "dtrun: localhost: ./mpi uses MPI (libmpi.so.40), but there is no PMIx server for it: every rank will be an MPI job of its own, of size 1. dtrun-pmix (pid "
    err_has ") exited with code 3"
    clean
}
