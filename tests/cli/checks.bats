#!/usr/bin/env bats
# tests/checks maps the duties of collectives to their tests. These tests keep the map complete.

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
