#!/usr/bin/env bats
# ./quickstart in a tree with stand-ins for the tools: what it runs, and how it ends.

load common

setup() {
    T=$BATS_TEST_TMPDIR OUT=$BATS_TEST_TMPDIR/out ERR=$BATS_TEST_TMPDIR/err
    TOKEN="DTRUN_TEST_TOKEN=$$.$BATS_TEST_NUMBER.$RANDOM$RANDOM"
    BACKGROUND=
    mkdir -p "$T/bin" "$T"/tree/tests/{cli,unit/{job,remote}}
    cd "$T/tree"
    cp "$DTRUN_SOURCE/quickstart" .
    cp "$DTRUN_SOURCE"/tests/{await.bash,watched} tests
    cp "$DTRUN_SOURCE/tests/unit/run" tests/unit
    touch configure.ac Makefile.am
    printf 'UNIT_TESTS = \\\n\ttests/unit/remote/boot \\\n\ttests/unit/job/stop\n' >tests/local.mk
    touch tests/unit/remote/boot.c tests/unit/job/stop.c tests/unit/helper.c tests/cli/stop.bats
    # All packages count as installed, whatever this machine lacks.
    for tool in gcc pkg-config automake autoconf make libtoolize bats; do
        stand_in "$tool" 'exit 0'
    done
}

# stand_in NAME SCRIPT
stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" >"$T/bin/$1"
    chmod +x "$T/bin/$1"
}

@test "Ctrl-C ends the step that is running" {
    type python3 >/dev/null || skip "python3 is not installed"
    # timeout(1), which starts the step, passes on no signal until it waits. Before that it would exit alone,
    # and the terminal with it.
    stand_in autoreconf 'trap "echo interrupted >/dev/tty; exit 130" INT
        until grep -q "^State:.S" /proc/$PPID/status; do sleep 0.02; done
        echo ready >/dev/tty
        while :; do sleep 0.05; done'
    env "$TOKEN" PATH="$T/bin:$PATH" timeout -k 5 "$PATIENCE" \
        python3 "$DTRUN_SOURCE/tests/cli/keys.py" 1 ready ^C -- ./quickstart >"$OUT"
    out_has 1 "interrupted$"
    out_has 1 "^exit code 130$"
    clean
}

# Makes a configured tree and a make that makes what it is asked for. Each test prints its name.
configured() {
    printf '#!/bin/sh\ntouch config.status\n' >configure
    chmod +x configure
    stand_in make 'for target; do :; done
        echo "$target" >>made
        [ "$target" = helpers ] && exit
        mkdir -p "build/${target%/*}"
        printf "#!/bin/sh\necho I am %s in \$PWD, \$DTRUN_BUILD\nexit $CODE\n" "$target" >"build/$target"
        chmod +x "build/$target"'
    stand_in bats 'echo "I am bats for $1"'
    export CODE=0
}

quickstart() {
    RC=0
    env "$TOKEN" PATH="$T/bin:$PATH" timeout -k 5 "$PATIENCE" ./quickstart "$@" \
        </dev/null >"$OUT" 2>"$ERR" || RC=$?
}

@test "quickstart test NAME builds and runs the unit test of that name" {
    configured
    quickstart test boot
    code_is 0
    out_has 1 "^I am tests/unit/remote/boot in $PWD/build, $PWD/build$"
    [ "$(cat made)" = tests/unit/remote/boot ]
    CODE=3 quickstart test tests/unit/remote/boot.c
    code_is 1
    out_has 1 "^I am tests/unit/remote/boot"
}

@test "a test that hangs is ended with all that it has started, and its processes are shown" {
    configured
    stand_in make 'mkdir -p build/tests/unit/remote
        printf "#!/bin/sh\nsleep 600 &\nsetsid sleep 700 &\nexec sleep 800\n" >build/tests/unit/remote/boot
        chmod +x build/tests/unit/remote/boot'
    DTRUN_TEST_SECONDS=5 quickstart test boot # they must all have started
    code_is 1
    for seconds in 600 700 800; do
        out_has 1 "^# .* sleep $seconds$"
    done
    out_has 1 "^Bail out! tests/unit/remote/boot still ran after 5 s$"
    becomes_clean
}

@test "quickstart test NAME runs every test of that name, and quickstart test PATH only one" {
    configured
    quickstart test stop
    code_is 0
    out_has 1 "^I am tests/unit/job/stop"
    out_has 1 "^I am bats for ../tests/cli/stop.bats"
    [ "$(tr '\n' ' ' <made)" = "tests/unit/job/stop helpers " ]
    quickstart test tests/cli/stop.bats
    code_is 0
    [ "$(grep -c "I am" "$OUT")" = 1 ]
}

@test "quickstart test NAME suggests similar names if no test has this one" {
    configured
    quickstart test oot
    code_is 2
    err_has "quickstart: there is no test oot in tests/unit, fuzz, cli, cluster, sim; near it are: tests/unit/remote/boot.c"
    quickstart test helper
    code_is 2
    err_has "near it are: tests/unit/helper.c"
    quickstart test
    code_is 2
    [ ! -e made ]
}

# Makes a tree for "check", with stand-ins for all that it runs. Files tell make and cppcheck what to do.
checked() {
    local tool
    configured
    mkdir -p man cmd launcher runtime examples tests/fuzz
    echo page >man/dtrun.1
    for tool in autoreconf mandoc clang clang-format-14 setarch apt-get aarch64-linux-gnu-gcc qemu-aarch64 valgrind; do
        stand_in "$tool" 'exit 0'
    done
    stand_in setarch 'shift; exec "$@"'
    stand_in cppcheck 'echo "cppcheck has looked"; [ ! -e "$T/bad" ]'
    printf '#!/bin/sh\n' >tests/fuzz/libfuzzer
    chmod +x tests/fuzz/libfuzzer
    stand_in make 'for target; do :; done
        echo "$*" >>"$T/made"
        case "$target" in
        check) [ ! -e "$T/hang" ] || { touch "$T/tests-run"; exec sleep 600; }; echo "# PASS: 5" ;;
        check-unit | CHECKED_UNITS*) echo "# PASS: 2" ;;
        runtime-libraries) [ ! -e "$T/hang" ] || { touch "$T/built-beside"; exec sleep 600; } ;;
        esac'
    export T
}

check_tree() {
    quickstart check
    ! grep -q "^quickstart: missing" "$ERR" || skip "what the tests need is not installed"
}

@test "quickstart check counts the checks that run beside the tests" {
    checked
    check_tree
    [ "$RC" = 0 ]
    # mandoc, clang-format, cppcheck, clang, libfuzzer, distcheck; and three suites
    [ "$(tail -n 1 "$OUT")" = "15 passed, 0 failed" ]
    clean
}

# All of /usr/bin except some commands.
without() {
    mkdir "$T/usr"
    ln -s /usr/bin/* "$T/usr"
    (cd "$T/usr" && rm -f "$@")
    rm -f "${@/#/$T/bin/}"
    PATH=$T/usr
}

@test "a test file leaves no process where there is no network" {
    unshare -rn true 2>/dev/null || skip "needs a network namespace"
    env "$TOKEN" unshare -rn tests/watched true
    await is_clean
}

@test "quickstart check skips the format where no package has clang-format-14" {
    checked
    stand_in apt-cache '[ "$1" = show ]' # as for a name that another package mentions
    stand_in apt-get '! echo "$*" | grep install'
    without clang-format-14
    check_tree
    [ "$RC" = 0 ]
    out_has 1 "^SKIP: clang-format # SKIP clang-format-14 is not installed$"
    [ "$(tail -n 1 "$OUT")" = "14 passed, 0 failed, 1 skipped" ]
    clean
}

@test "quickstart check says that it skips the black-box tests where configure found bats too old" {
    checked
    mkdir -p build
    echo 'BATS = ' >build/Makefile
    check_tree
    out_has 1 "^SKIP: black-box-tests # SKIP bats is older than 1.7$"
    [ "$(tail -n 1 "$OUT")" = "15 passed, 0 failed, 1 skipped" ]
    clean
}

@test "quickstart check installs clang-format-14 where a package has it" {
    checked
    stand_in apt-cache 'echo "$2 | 1 | here"'
    stand_in apt-get 'case "$*" in
        *install*clang-format-14) printf "#!/bin/sh\n" >"$T/bin/clang-format-14"; chmod +x "$T/bin/clang-format-14" ;;
        esac'
    [ "$(id -u)" = 0 ] || stand_in sudo 'exec "$@"'
    without clang-format-14
    check_tree
    [ "$(tail -n 1 "$OUT")" = "15 passed, 0 failed" ]
    clean
}

@test "quickstart check reports and counts a check that fails beside the tests" {
    checked
    touch "$T/bad"
    check_tree
    [ "$RC" = 1 ]
    out_has 1 "^FAIL: cppcheck$"
    out_has 1 "^cppcheck has looked$"
    [ "$(tail -n 1 "$OUT")" = "14 passed, 1 failed" ]
    clean
}

@test "a quickstart check that is ended also ends what runs beside the tests" {
    checked
    touch "$T/hang"
    env "$TOKEN" PATH="$T/bin:$PATH" ./quickstart check </dev/null >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    await test -e "$T/built-beside" -a -e "$T/tests-run" -o -s "$ERR"
    ! grep -q "^quickstart: missing" "$ERR" || skip "what the tests need is not installed"
    kill -TERM $(pgrep -P "$BACKGROUND" -f 'make -j[0-9]+ check$') "$BACKGROUND"
    dtrun_wait
    [ "$RC" != 0 ]
    becomes_clean
}
