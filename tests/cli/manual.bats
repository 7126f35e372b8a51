#!/usr/bin/env bats
# The manual pages agree with the programs, and the example files work.
bats_require_minimum_version 1.5.0

setup() {
    export HOME=$BATS_TEST_TMPDIR # without a configuration file
    cd "$DTRUN_SOURCE"
}

dtrun() {
    timeout 180 "$DTRUN_BUILD/cmd/dtrun" "$@"
}

options_of_help() {
    dtrun --help | sed -nE 's/^  (-.*)/\1/p' | sed -E 's/  .*//' | tr ',' '\n' |
        sed -nE 's/^ *(--?[a-zA-Z-]+).*/\1/p' | sort
}

options_of_page() {
    grep -E '^\.It Fl ' man/dtrun.1 | sed -E 's/^\.It //; s/ , /\n/g' |
        sed -nE 's/^Fl Fl ([a-zA-Z-]+).*/--\1/p; s/^Fl ([a-zA-Z-]+).*/-\1/p' | grep -v '^-Fl$' | sort
}

@test "dtrun(1) lists exactly the options of --help" {
    options_of_help >"$BATS_TEST_TMPDIR/help"
    options_of_page >"$BATS_TEST_TMPDIR/page"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/help")" -gt 25 ]
    diff "$BATS_TEST_TMPDIR/help" "$BATS_TEST_TMPDIR/page"
}

@test "dtrun-hostfile(5) lists exactly the keys of a hostfile" {
    run dtrun --hostfile - --dry-run true <<<"host nosuchkey=1"
    [ "$status" -eq 2 ]
    tr ' ' '\n' <<<"${output#*known are: }" | sort >"$BATS_TEST_TMPDIR/program"
    sed -nE 's/^\.It Cm ([a-z_]+) Ns = .*/\1/p' man/dtrun-hostfile.5 | sort >"$BATS_TEST_TMPDIR/page"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/page")" -eq 7 ]
    diff "$BATS_TEST_TMPDIR/program" "$BATS_TEST_TMPDIR/page"
}

@test "dtrun-tuning(5) lists exactly the thresholds of collectives" {
    sed -nE 's/^    KEY\(([a-z_]+),.*/\1/p' runtime/base/tuning.c | sort >"$BATS_TEST_TMPDIR/program"
    sed -nE 's/^\.It Cm ((shm|net)_[a-z_]+)$/\1/p' man/dtrun-tuning.5 | sort >"$BATS_TEST_TMPDIR/page"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/page")" -eq 8 ]
    diff "$BATS_TEST_TMPDIR/program" "$BATS_TEST_TMPDIR/page"
}

# section TITLE: prints that section of PROTOCOL.md.
section() {
    awk -v title="## $1" '/^## / { on = $0 == title } on' PROTOCOL.md
}

# messages PREFIX ENUM HEADER: prints names and numbers.
messages() {
    sed -nE "/^enum $2 /,/^}/s/^    $1([A-Z_]+) = ([0-9a-fA-Fx]+),.*/\\1 \\2/p" "runtime/wire/$3"
}

@test "PROTOCOL.md lists exactly the messages between launcher and agent, with their class" {
    sed -nE 's/^    ROW\(([A-Z_]+), (\w+), .*/\1 \2/p' runtime/wire/msg.h | while read -r name number; do
        echo "$name $([ $((number)) -lt 128 ] && echo control || echo data)"
    done | sort >"$BATS_TEST_TMPDIR/program"
    section "Launcher and agent" | sed -nE 's/^\| ([A-Z_]+) \| (control|data) \|.*/\1 \2/p' |
        sort >"$BATS_TEST_TMPDIR/page"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/page")" -gt 30 ]
    diff "$BATS_TEST_TMPDIR/program" "$BATS_TEST_TMPDIR/page"
}

@test "PROTOCOL.md lists exactly the messages between agent and rank, with their direction" {
    messages DT_RANK_ dt_rankmsg_type rankmsg.h | while read -r name number; do
        echo "$name $([ "$number" -lt 65 ] && echo "to the agent" || echo "to the rank")"
    done | sort >"$BATS_TEST_TMPDIR/program"
    section "Agent and rank" | sed -nE 's/^    ([A-Z_]+) +->.*/\1 to the agent/p
        /^ +<- /{ s/, or ([A-Z_]+)/\n    <-     \1/; s/(^|\n) +<- +([A-Z_]+)[^\n]*/\1\2 to the rank/g; p; }' |
        sort -u >"$BATS_TEST_TMPDIR/page"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/page")" -gt 15 ]
    diff "$BATS_TEST_TMPDIR/program" "$BATS_TEST_TMPDIR/page"
}

@test "the manual pages are clean mdoc" {
    command -v mandoc >/dev/null || skip "mandoc is not installed"
    # Pages may refer to pages that are not installed here.
    mandoc -T lint man/*.[1-9] 2>/dev/null | grep -v "referenced manual not found" \
        >"$BATS_TEST_TMPDIR/lint" || true
    cat "$BATS_TEST_TMPDIR/lint"
    [ ! -s "$BATS_TEST_TMPDIR/lint" ]
}

# groff takes the author "G. Li" for a macro, and then leaves out the rest of the page.
@test "groff, which formats pages on most systems, reports no errors" {
    command -v groff >/dev/null || skip "groff is not installed"
    # Words that are too long for a line are no error.
    run groff -mdoc -Tutf8 -z -Wbreak man/*.[1-9]
    echo "$output"
    [ -z "$output" ]
}

@test "every hostfile example begins with a comment and works" {
    for file in hostfile-examples/*; do
        [[ $file != */train.* ]] || continue # cli/lost and cluster/slurm run these
        head -1 "$file" | grep -q '^# [A-Z]'
        dtrun --hostfile "$file" --dry-run true >"$BATS_TEST_TMPDIR/out"
        [ "$(wc -l <"$BATS_TEST_TMPDIR/out")" -gt 2 ]
    done
}

@test "the hostfile examples in dtrun-hostfile(5) work" {
    awk '/^\.Bd -literal/ { n++; on = 1; next }
         /^\.Ed/ { on = 0 }
         on { print > (dir "/" n) }' dir="$BATS_TEST_TMPDIR" man/dtrun-hostfile.5
    for n in 1 2 3 4; do
        dtrun --hostfile "$BATS_TEST_TMPDIR/$n" --dry-run true
    done
}

@test "the example file in dtrun-tuning(5) has no mistakes" {
    awk '/^\.Bd -literal/ { on = 1; next } /^\.Ed/ { on = 0 } on' man/dtrun-tuning.5 >"$BATS_TEST_TMPDIR/tuning"
    [ "$(grep -c = "$BATS_TEST_TMPDIR/tuning")" -eq 3 ]
    export DTRUN_AGENT="$DTRUN_BUILD/cmd/dtrun-agent" DTRUN_TUNING="$BATS_TEST_TMPDIR/tuning"
    dtrun -np 1 "$DTRUN_BUILD/examples/hello" 2>"$BATS_TEST_TMPDIR/err"
    [ ! -s "$BATS_TEST_TMPDIR/err" ] || { cat "$BATS_TEST_TMPDIR/err"; false; }
    echo 'net_stream = 4' >>"$DTRUN_TUNING"
    dtrun -np 1 "$DTRUN_BUILD/examples/hello" 2>"$BATS_TEST_TMPDIR/err"
    [ -s "$BATS_TEST_TMPDIR/err" ]
}

@test "each document keeps to its maximum number of lines" {
    while read -r document most; do
        [ "$(wc -l <"$document")" -le "$most" ] || { echo "$document has more than $most lines"; false; }
    done <<'END'
README.md 150
ARCHITECTURE.md 200
NEWS.md 40
CONTRIBUTING.md 80
docs/performance.md 150
docs/collectives.md 150
docs/tuning.md 80
END
}
