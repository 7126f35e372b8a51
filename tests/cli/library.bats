#!/usr/bin/env bats
# libdtrun as programs see it: its header, symbols, dependencies and manual pages.
bats_require_minimum_version 1.5.0

setup() {
    LIB="$DTRUN_BUILD/runtime/.libs/libdtrun.so.0"
    HEADER="$DTRUN_SOURCE/runtime/dtrun.h"
    CC="${CC:-cc}"
    export HOME=$BATS_FILE_TMPDIR # without settings of the user
    cd "$BATS_TEST_TMPDIR"
}

need() {
    command -v "$1" >/dev/null || skip "$1 is not installed"
}

declared() {
    sed -nE 's/^DT_API .*[ *](dt_[a-z_]+)\(.*/\1/p' "$HEADER" "${HEADER%.h}_tune.h" | sort
}

@test "the library exports exactly the functions that the header declares" {
    need nm
    declared >declared
    nm -D --defined-only "$LIB" | sed -nE 's/.* [A-Z] ([^@]+)@.*/\1/p' | grep -v '^DTRUN_' | sort >exported
    [ "$(wc -l <declared)" -ge 43 ] # fewer would mean that the pattern above misses some
    diff declared exported
}

@test "every symbol has the version of the header" {
    need nm
    version="$(sed -nE 's/^#define DT_VERSION_(MAJOR|MINOR) ([0-9]+)$/\2/p' "$HEADER" | paste -sd.)"
    nm -D --defined-only "$LIB" | sed -nE 's/.* [A-Z] dt_[^@]+@@?(.*)/\1/p' | sort -u >versions
    [ "$(cat versions)" = "DTRUN_$version" ] || { cat versions; false; }
}

@test "tests/unit/api/misuse makes every call of the header in wrong ways" {
    { cat "$DTRUN_SOURCE/tests/unit/api/misuse.c"; awk -f "$DTRUN_SOURCE/tests/unit/api/calls.awk" "$HEADER"; } |
        grep -oE 'dt_[a-z_]+' >misused
    declared | grep -vxFf misused >left || true
    [ ! -s left ] || { cat left; false; }
}

@test "the library needs nothing but libc" {
    need readelf
    readelf -d "$LIB" | sed -nE 's/.*NEEDED.*\[(.*)\]/\1/p' | grep -v '^ld-linux' >needed
    [ "$(cat needed)" = libc.so.6 ] || { cat needed; false; }
}

@test "the library needs no static TLS, of which dlopen has little" {
    need readelf
    readelf -d "$LIB" >dynamic
    grep -q NODELETE dynamic
    ! grep STATIC_TLS dynamic || false
}

# A source tree that is configured itself refuses to be configured elsewhere.
need_clean_source() {
    [ ! -e "$DTRUN_SOURCE/config.status" ] || skip "built in its source tree"
}

@test "configure refuses to make a static library" {
    for option in --enable-static --disable-shared; do
        run -1 "$DTRUN_SOURCE/configure" "$option"
        [[ $output == *"libdtrun is always a shared library: leave out --enable-static and --disable-shared" ]]
    done
}

@test "configure refuses a path with blanks, to which libtool cannot install" {
    run -1 "$DTRUN_SOURCE/configure" --prefix="$T/my root"
    [[ $output == *"dtrun cannot be installed to a path with blanks ($T/my root): choose another --prefix, or for ./quickstart another directory" ]]
}

@test "configure refuses CFLAGS that choose an older C" {
    need_clean_source
    need "$CC"
    run -1 "$DTRUN_SOURCE/configure" CFLAGS="-g -std=c99"
    [[ $output == *'dtrun is written in C11: leave -std=... out of CFLAGS ("-g -std=c99"), or use a newer compiler' ]]
}

@test "the header compiles without warnings as C99 and C++" {
    need "$CC"
    echo '#include "runtime/dtrun_tune.h"' >c.c
    echo 'dt_error_info_t e = DT_ERROR_INFO_INIT; dt_config_t f = DT_CONFIG_INIT;' >>c.c
    echo 'int main(void) { return DT_IN_PLACE == DT_WORLD || DT_WORLD == DT_COMM_NULL; }' >>c.c
    "$CC" -std=c99 -pedantic -Wall -Wextra -Werror -I"$DTRUN_SOURCE" -fsyntax-only c.c
    command -v c++ >/dev/null || skip "c++ is not installed"
    c++ -x c++ -std=c++98 -Wno-long-long -Wall -Wextra -Werror -I"$DTRUN_SOURCE" -fsyntax-only c.c
    c++ -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Wold-style-cast -Wzero-as-null-pointer-constant -Wconversion \
        -Werror -I"$DTRUN_SOURCE" -fsyntax-only c.c
}

# described PAGE: prints the functions that its synopsis declares.
described() {
    sed -nE '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/s/^\.F[no] (dt_[a-z_]+).*/\1/p' "$1"
}

@test "every function of the header is on exactly one page of section 3, and no other function is" {
    declared >declared
    for page in "$DTRUN_SOURCE"/man/*.3; do
        described "$page" | sort >synopsis
        sed -nE 's/^\.Nm (dt_[a-z_]+)( ,)?$/\1/p' "$page" | sort | diff - synopsis || { echo "$page"; false; }
        cat synopsis
    done | sort >described
    diff declared described
}

@test "dt_error(3) explains exactly the results of the header" {
    grep -oE 'DT_(OK|ERR_[A-Z]+)' "$HEADER" | sort -u >results
    sed -nE '/^\.Sh RETURN VALUES/,$s/^\.It Dv (DT_.*)/\1/p' "$DTRUN_SOURCE/man/dt_error.3" |
        sed 's/ , /\n/g' | sort >explained
    diff results explained
}

@test "make install installs a page for every function" {
    need make
    (umask 077 && make -s -C "$DTRUN_BUILD" install-man install-data-hook DESTDIR="$PWD/root") >out 2>&1 ||
        { cat out; false; }
    [ -z "$(find root -type f ! -perm 644)" ] # all users may read the pages
    pages="$(find root -name man3)"
    declared | while read -r name; do
        read -r request page <"$pages/$name.3"
        case $request in
        .Dd) described "$pages/$name.3" ;;
        .so) described "${pages%/*}/$page" ;;
        esac | grep -qx "$name" || { echo "no page for $name"; false; }
    done
    make -s -C "$DTRUN_BUILD" uninstall-man uninstall-hook DESTDIR="$PWD/root" >out 2>&1 || { cat out; false; }
    [ -z "$(find root -type f)" ]
}

@test "--program-prefix renames commands and their pages, but no page of a function; uninstall removes all" {
    need make
    make -s -C "$DTRUN_BUILD" install program_transform_name='s,^,my-,' DESTDIR="$PWD/root" >out 2>&1 ||
        { cat out; false; }
    find root -name '*my-*' -printf '%f\n' | sort | diff - <(printf 'my-dtrun%s\n' '' -perf -perf.1 .1)
    env -u DTRUN_AGENT "$(find root -name my-dtrun)" true
    make -s -C "$DTRUN_BUILD" uninstall program_transform_name='s,^,my-,' DESTDIR="$PWD/root" >out 2>&1 ||
        { cat out; false; }
    [ -z "$(find root -type f)" ]
}

@test "the programs of an installation that was moved find its own library" {
    need make
    need ldd
    make -s -C "$DTRUN_BUILD" install-binPROGRAMS install-examplesPROGRAMS DESTDIR="$PWD/root" >out 2>&1 ||
        { cat out; false; }
    [ ! -d root/usr/bin ] || skip "built for /usr, where the dynamic linker finds the library"
    mv "$(dirname "$(find root -name bin)")" moved
    for program in moved/bin/dtrun-perf moved/libexec/dtrun/examples/*; do
        ldd "$program" | grep -q "libdtrun.so.0 => $PWD/moved/" || { echo "$program"; ldd "$program"; false; }
    done
    moved/libexec/dtrun/examples/hello
}

@test "these programs also find it in lib64; configure says what the build does without" {
    need_clean_source
    need "$CC"
    ac_cv_prog_BATS= "$DTRUN_SOURCE/configure" --no-create --prefix=/opt/x --libdir='${exec_prefix}/lib64' \
        >out 2>&1 || { tail -2 out; false; }
    grep -q 'without bats >= 1.7: make check leaves out tests/cli, .*: apt-get install bats$' out
    grep -F "\$ORIGIN/../lib64'" config.status
    grep -F "\$ORIGIN/../../../lib64'" config.status
}

# examples PAGE: writes each program to N.c, and each command that runs it, with its output, to N.M.run.
examples() {
    awk '/^\.Sh / { on = 0; examples = /EXAMPLES/ }
         /^\.Bd -literal/ { on = examples; first = 1; next }
         /^\.Ed/ { on = 0 }
         on && first { file = /^\$ / ? n "." ++runs ".run" : /^#include/ ? ++n ".c" : "/dev/null" }
         on { first = 0; print > file }' "$1"
    sed -i 's/\\e/\\/g' -- *.c
}

# An example without main is part of a program.
@test "the examples on every page of section 3 compile and print what the page says" {
    need "$CC"
    mkdir include bin && cp "$HEADER" "${HEADER%.h}_tune.h" include/
    ln -s "$DTRUN_BUILD/cmd/dtrun" bin/
    export DTRUN_AGENT="$DTRUN_BUILD/cmd/dtrun-agent" PATH="$PWD/bin:$PATH"
    for page in "$DTRUN_SOURCE"/man/*.3; do
        mkdir "${page##*/}" && cd "${page##*/}"
        examples "$page"
        flags=(-Wall -Wextra -Wpedantic -Werror -I../include -L"${LIB%/*}" -ldtrun -Wl,-rpath,"${LIB%/*}")
        for program in *.c; do
            ! command -v c++ >/dev/null || c++ -x c++ -fsyntax-only "${flags[@]:0:5}" "$program"
            grep -q '^int main' "$program" || { "$CC" -c "$program" "${flags[@]}"; continue; }
            for run in "${program%.c}".*.run; do
                read -r _ command <"$run"
                [ -e "${command##* }" ] || "$CC" "$program" -o "${command##* }" "${flags[@]}"
                timeout 180 bash -c "$command" >out 2>err || { echo "$command"; cat err; false; }
                sed 1d "$run" | sort | diff - <(sort out) || { echo "${page##*/}"; cat err; false; }
            done
        done
        cd ..
    done
}

@test "examples/halo computes the same bytes with any number of ranks" {
    halo="$DTRUN_BUILD/examples/halo"
    "$halo" >alone
    [ "$(wc -l <alone)" = 50 ]
    [ "$(head -1 alone | cut -c1-5)" = '0 97.' ] || { head -1 alone; false; }
    for np in 2 5; do
        DTRUN_AGENT="$DTRUN_BUILD/cmd/dtrun-agent" timeout 180 \
            "$DTRUN_BUILD/cmd/dtrun" -np $np -H localhost:$np --no-tag "$halo" 2>err | diff alone - || { cat err; false; }
    done
}

@test "error texts and dumps have decimal points in every locale" {
    need "$CC"
    need localedef
    localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 || skip "localedef does not know de_DE"
    cat >c.c <<'EOF'
#include <locale.h>
#include <stdio.h>
#include "runtime/dtrun.h"
int main(void)
{
    dt_request_t request = { 0 };
    int done;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") || dt_init() || dt_barrier(DT_WORLD) || dt_recorder_dump("calls.txt"))
        return 1;
    dt_wait_for(&request, -0.5, &done);
    printf("%g: %s\n", 0.5, dt_last_error());
    return dt_finalize();
}
EOF
    "$CC" -I"$DTRUN_SOURCE" c.c -o c "$LIB" -Wl,-rpath,"${LIB%/*}"
    run -0 env LOCPATH="$PWD" ./c
    [ "$output" = "0,5: dt_wait_for: -0.5 is not a number of seconds from 0 to 1000000000" ]
    grep -qE '^world +1 .* 0\.[0-9]{6}  ok ' calls.txt || { cat calls.txt; false; }
}

@test "dt_init refuses an unknown DTRUN_WIRE, and a format that needs memory of the program" {
    hello="$DTRUN_BUILD/examples/hello"
    run -0 env DTRUN_WIRE=f16 "$hello"
    run -1 env DTRUN_WIRE=fp16 "$hello"
    [ "$output" = "hello: dt_init: DTRUN_WIRE=fp16 is not one of exact, f16, bf16, int8" ]
    run -1 env DTRUN_WIRE=2bit "$hello"
    [[ $output == "hello: dt_init: DTRUN_WIRE=2bit is not possible: "*"with dt_all_reduce_with; use exact, f16, bf16 or int8" ]]
}

@test "DTRUN_ISA chooses the kernels, and dt_init refuses one that this processor lacks" {
    hello="$DTRUN_BUILD/examples/hello"
    run -0 env DTRUN_ISA=plain "$hello"
    run -1 env DTRUN_ISA=mmx "$hello"
    [[ $output == "hello: dt_init: DTRUN_ISA=mmx is not an instruction set of this processor, which has "*plain ]]
}

# What its objects may use: memory, strings, JSON, and helpers of dtrun that print through a sink.
@test "the engine of a job does no input or output and reads no clock" {
    need nm
    engine="$DTRUN_BUILD/launcher/libengine.a"
    nm -u "$engine" | awk '$1 == "U" { print $2 }' | sort -u >used
    nm --defined-only "$engine" | awk 'NF == 3 { print $3 }' | sort -u >defined
    comm -23 used defined | grep -vE -e '^_?(mem|str)[a-z]+(_r|_l)?$' -e '^(v?snprintf|qsort|free)$' \
        -e '^(inet_pton|basename|sigabbrev_np)$' -e '^__' -e '^_GLOBAL_OFFSET_TABLE_$' -e '^cJSON_' \
        -e '^dt_(error|hostshm|inject|log|mpimap|msg|put|role|say|strbuf|strs|u32s|utf8|verbose|x)' \
        >foreign || true
    [ ! -s foreign ] || { cat foreign; false; }
    [ "$(wc -l <used)" -gt 20 ] # fewer would mean that nm failed
}
