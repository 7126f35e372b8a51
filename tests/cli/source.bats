#!/usr/bin/env bats
# Rules that the source tree keeps: files and folders depend on each other in one direction, no folder holds too
# many files, tests/checks lists which tests show what collectives must do, and assertions of bats files can fail.

@test "no files or folders depend on each other in a circle, no folder is crowded, and no symbol is defined twice" {
    type python3 >/dev/null || skip "python3 is not installed"
    run python3 "$DTRUN_SOURCE/tests/circles.py" "$DTRUN_BUILD" "$DTRUN_SOURCE"
    echo "$output"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}

# Goes to an empty folder, in which the test makes a source tree and builds it.
enter_small_tree() {
    type python3 >/dev/null && type cc >/dev/null || skip "python3 or cc is not installed"
    cd "$BATS_TEST_TMPDIR"
}

circles_finds_something() {
    run python3 "$DTRUN_SOURCE/tests/circles.py" . .
    [ "$status" -eq 1 ]
}

@test "tests/circles.py finds and names a circle" {
    enter_small_tree
    mkdir -p launcher/{a,b}
    echo 'void b(void); void a(void) { b(); }' >launcher/a/a.c
    echo 'void a(void); void b(void) { a(); }' >launcher/b/b.c
    for f in a b; do cc -c -o launcher/$f/liblauncher_a-$f.o launcher/$f/$f.c; done
    circles_finds_something
    [ "${lines[0]}" = "a circle of files: launcher/a/a launcher/b/b" ]
    [ "${lines[1]}" = "a circle of folders: launcher/a launcher/b" ]
}

@test "tests/circles.py names a symbol that two files define" {
    enter_small_tree
    mkdir -p launcher/base runtime/base
    echo 'int dt_a(void) { return 0; }' | tee launcher/base/a.c >runtime/base/a.c
    for f in {launcher,runtime}/base; do cc -c -o $f/lib_a-a.o $f/a.c; done
    circles_finds_something
    [ "$output" = "defined twice: dt_a in launcher/base/a and in runtime/base/a" ]
}

@test "tests/circles.py names an include that goes against the layers" {
    enter_small_tree
    mkdir -p runtime/{api,coll,base}
    touch runtime/api/a.h runtime/coll/c.h runtime/base/b.h runtime/dtrun.h
    printf '#include "runtime/coll/c.h"\n#include "runtime/base/b.h"\n' >runtime/api/a.c
    printf '#include "runtime/dtrun.h"\n#include "runtime/api/a.h"\n' >runtime/coll/c.c
    cc -I. -c -o runtime/api/libruntime_a-a.o runtime/api/a.c
    circles_finds_something
    [ "$output" = "an include against the layers: runtime/coll/c.c includes runtime/api/a.h" ]
}

@test "in launcher, tests/circles.py also names includes of the runtime's own headers" {
    enter_small_tree
    mkdir -p launcher/{job/core,session,io,remote} runtime/{api,wire}
    touch launcher/job/j.h launcher/io/i.h runtime/api/a.h runtime/wire/w.h
    printf '#include "%s"\n' launcher/job/j.h runtime/wire/w.h >launcher/job/core/c.c
    printf '#include "%s"\n' launcher/io/i.h launcher/job/j.h >launcher/session/s.c
    printf '#include "%s"\n' launcher/io/i.h runtime/api/a.h >launcher/remote/r.c
    cc -I. -c -o launcher/job/core/libengine_a-c.o launcher/job/core/c.c
    circles_finds_something
    [ "${lines[0]}" = "an include against the layers: launcher/remote/r.c includes launcher/io/i.h" ]
    [ "${lines[1]}" = "an include against the layers: launcher/remote/r.c includes runtime/api/a.h" ]
    [ "${lines[2]}" = "an include against the layers: launcher/session/s.c includes launcher/job/j.h" ]
    [ "${#lines[@]}" -eq 3 ]
}

@test "tests/circles.py names a folder with more than 40 files, subfolders not counted" {
    enter_small_tree
    mkdir -p cmd tests/{cli/more,unit}
    touch cmd/a.c tests/cli/{1..38}.bats tests/cli/{a.c,b.h} tests/cli/more/c.c tests/unit/{1..41}.c
    cc -c -o cmd/dtrun-a.o cmd/a.c
    circles_finds_something
    [ "$output" = "a crowded folder: tests/unit has 41 files, 40 at most are allowed" ]
}

# ---- tests/checks ----

# Prints the numbers in the titles of tests, each once.
named() {
    grep -rhoE '(@test "|")checks? [0-9, ]+:|CHECKS[A-Z_]*\("[0-9, ]+"' \
        "$DTRUN_SOURCE"/tests/{unit,cli,cluster} --include='*.c' --include='*.bats' |
        grep -oE '[0-9]+' | sort -nu
}

# listed shown|not: prints the numbers of tests/checks that have no reason, or have one.
listed() {
    awk -v wanted="$1" '
        function tell() { if (number && (reason ? "not" : "shown") == wanted) print number }
        /^[0-9]+ / { tell(); number = $1; reason = 0 }
        /^-- / { reason = 1 }
        END { tell() }' "$DTRUN_SOURCE/tests/checks" | sort -n
}

@test "every check of collectives is named by a test or has a reason why none names it" {
    cd "$BATS_TEST_TMPDIR"
    named >named
    listed shown >shown
    listed not >not
    sort -n shown not | diff - <(seq 54) # none is missing or repeated
    comm -23 <(sort shown) <(sort named) >unshown
    comm -12 <(sort not) <(sort named) >excused
    comm -23 <(sort named) <(sort shown not) >unknown
    [ ! -s unshown ] || { echo "no test names: $(tr '\n' ' ' <unshown)"; false; }
    [ ! -s excused ] || { echo "tests name what tests/checks says none does: $(tr '\n' ' ' <excused)"; false; }
    [ ! -s unknown ] || { echo "tests name what tests/checks does not have: $(tr '\n' ' ' <unknown)"; false; }
}

# Prints the lines of bats files that bash's set -e passes over if they fail: commands that begin with "!", and
# conditions before "&&". Either may be the last line of a function.
without_effect() { # FILE...
    awk 'function tell() { if (line != "" && $0 != "}") print line; line = "" }
        { tell() }
        /\|\||; exit$/ { next }
        /^ +! / || /^ +\[.* && (\[|!|grep|cmp) / { line = FILENAME ": " $0 }' "$@"
}

@test "each assertion of a bats file can fail" {
    cd "$BATS_TEST_TMPDIR"
    printf '    %s\n' '! grep -q a b' '[ -e a ] && [ -e b ]' '! grep -q a b || false' '[ -e a ] && return' \
        '! grep -q a b' >bad.bats
    echo '}' >>bad.bats
    [ "$(without_effect bad.bats)" = "bad.bats:     ! grep -q a b
bad.bats:     [ -e a ] && [ -e b ]" ]
    without_effect "$DTRUN_SOURCE"/tests/{cli,cluster,sim}/*.bats "$DTRUN_SOURCE"/tests/{cli,cluster}/*.bash >bad
    [ ! -s bad ] || { cat bad; false; }
}

# ---- older systems ----

@test "nothing includes <sys/pidfd.h>, which glibc before 2.36 lacks" {
    run grep -rnE --include='*.[ch]' '#include <sys/pidfd\.h>' "$DTRUN_SOURCE"/{cmd,examples,launcher,runtime,tests}
    echo "$output"
    [ "$status" -eq 1 ]
}
