# What the black-box tests share. Each test runs dtrun under a watchdog with a token of its own in the
# environment. A process that still has the token at the end was left behind.

. "${BASH_SOURCE[0]%/*}/../await.bash"

setup() {
    trace_tests_only
    DTRUN="${DTRUN_BUILD:?make check sets it}/cmd/dtrun"
    RANK="$DTRUN_BUILD/tests/rank"
    export DTRUN_AGENT="$DTRUN_BUILD/cmd/dtrun-agent"
    # Tests ignore the settings of the user who runs them, but find the Python packages that this user installed.
    export PYTHONUSERBASE="${PYTHONUSERBASE:-$HOME/.local}" HOME="$BATS_FILE_TMPDIR/home"
    [ -d "$HOME" ] || mkdir "$HOME"
    TOKEN="DTRUN_TEST_TOKEN=$$.$BATS_TEST_NUMBER.$RANDOM$RANDOM"
    T="$BATS_TEST_TMPDIR"
    OUT="$T/out" ERR="$T/err"
    RC=
    BACKGROUND=
    cd "$T"
    # A setup_file that wants to skip sets it. With Bats 1.8, setup_file must not call skip: all tests would fail.
    [ -z "$FILE_SKIPS" ] || skip "$FILE_SKIPS"
}

teardown() {
    [ -z "$BACKGROUND" ] || kill -KILL "$BACKGROUND" 2>/dev/null || true
    is_clean || for pid in $(left_behind); do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

# Runs dtrun with these arguments. Sets RC to its exit code; its output is in $OUT and $ERR. Standard input is
# the file STDIN if that is set.
dtrun() {
    RC=0
    env "$TOKEN" "$TIMEOUT" -k 5 "$PATIENCE" "$DTRUN" "$@" \
        <"${STDIN:-/dev/null}" >"$OUT" 2>"$ERR" || RC=$?
}

# Runs dtrun in the background and sets BACKGROUND to its process id. (A process that bash starts there
# ignores SIGINT unless told otherwise, and under nohup SIGHUP.) Output of an earlier dtrun is removed before this one runs.
dtrun_start() {
    : >"$OUT" 2>"$ERR"
    env --default-signal=INT,HUP "$TOKEN" "$DTRUN" "$@" <"${STDIN:-/dev/null}" >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
}

# Makes ./on-list HOST COMMAND..., a command for --rsh that runs every host's agent on this machine. It takes a
# list of arguments, as kubectl exec does.
make_on_list() {
    cat >on-list <<'END'
#!/bin/sh
export DTRUN_HOSTID=$1
shift
exec "$@"
END
    chmod +x on-list
}

# From now on dtrun, run by COMMAND if that is given, finds the directory empty.
hide() { # DIRECTORY [COMMAND...]
    local directory="$1"

    shift
    unshare --mount true 2>/dev/null || skip "needs root, to hide $directory"
    printf '#!/bin/sh\nexec unshare --mount sh -c "mount -t tmpfs none %s && exec \\"\$@\\"" sh %s "%s" "$@"\n' \
        "$directory" "$*" "$DTRUN" >"$T/hidden"
    chmod +x "$T/hidden"
    DTRUN="$T/hidden"
}

# From now on dtrun can make no cgroup.
hide_cgroups() { # [COMMAND...]
    hide /sys/fs/cgroup "$@"
}

# Sets preload to the library of tests/fake that goes between dtrun and libuv.
preload_into_libuv() { # NAME
    preload="$DTRUN_BUILD/tests/fake/.libs/lib$1.so"
    [ -e "$preload" ] || skip "built without shared libraries"
    case "$(ldd "$DTRUN")" in *libuv*) ;; *) skip "dtrun has libuv inside" ;; esac
}

# Runs dtrun_start. dtrun's own time limits and graces of five seconds or more do not expire by themselves.
dtrun_start_clock() {
    preload_into_libuv clock
    LD_PRELOAD="$preload" TEST_CLOCK="$T" dtrun_start --unset LD_PRELOAD "$@"
}

# await_timer SECONDS: waits until such a limit has started. expire_timer SECONDS: lets it expire.
await_timer() {
    await test -e "$T/${1}000.started"
}

expire_timer() {
    : >"$T/${1}000"
}

# Waits for dtrun in the background.
dtrun_wait() {
    local pid="$BACKGROUND"
    await gone "$pid" || { echo "dtrun still runs"; show; return 1; }
    RC=0
    wait "$pid" || RC=$?
    BACKGROUND=
}

gone() {
    local stat

    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    [[ ${stat##*) } == Z* ]]
}

left_behind() {
    processes_with "$TOKEN"
}

is_clean() {
    ! grep -qzFx "$TOKEN" /proc/[0-9]*/environ 2>/dev/null
}

# Checks that nothing of the job is left after a dtrun that ended by itself.
clean() {
    is_clean && return
    for pid in $(left_behind); do
        echo "left behind: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    done
    return 1
}

# Waits until nothing of the job is left, as after a dtrun that was killed.
becomes_clean() {
    await is_clean || clean
}

# Each try has a directory of its own.
begin_try() { # BODY
    cd "$(mktemp -d "$1.XXXXXX")"
    T="$PWD" OUT="$PWD/out" ERR="$PWD/err"
}

end_failed_try() {
    local pid

    for pid in $(left_behind); do
        kill -KILL "$pid" 2>/dev/null || true
    done
}

# Makes load.py, which loads the libraries that its arguments name, after "--" once ./more exists, and waits for ./end.
# Also makes libraries that look like Horovod's, horovod/mpi_lib.so, and like those of Open MPI, in openmpi/.
make_load() {
    type gcc >/dev/null || skip "needs gcc"
    cat >load.py <<'END'
import ctypes, os, sys, time
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.02)
for name in sys.argv[1:]:
    if name == "--":
        wait_for("more")
    else:
        ctypes.CDLL(name)
print("loaded", flush=True)
wait_for("end")
END
    mkdir -p horovod openmpi
    echo 'int f(void) { return 0; }' | gcc -shared -fPIC -o horovod/mpi_lib.so -xc -
    cp horovod/mpi_lib.so openmpi/libmpi.so.40
    cp horovod/mpi_lib.so openmpi/libpmix.so.2
}

# Waits until agents have looked at the libraries that the ranks now running have loaded: starts another job, and waits
# for two looks at its ranks, because the first look at the others may have been too early. Then makes ./end.
await_look() {
    local pid

    rm -f more
    env "$TOKEN" "$DTRUN" -np 2 sh -c '[ $RANK = 0 ] && exec python3 load.py "$PWD/horovod/mpi_lib.so"
        exec python3 load.py -- "$PWD"/openmpi/*' </dev/null >look.out 2>look.err 3>&- &
    pid=$!
    await has_line 'has loaded Horovod' look.err || { cat look.*; return 1; }
    : >more
    await has_line 'has loaded Open MPI' look.err || { cat look.*; return 1; }
    : >end
    wait "$pid"
}

# Checks that ranks that print "loaded" and wait for ./end run without a warning.
is_not_warned() { # OPTION-OR-WORD...
    rm -f end
    dtrun_start --no-tag "$@"
    out_has 1 '^loaded$'
    await_look
    dtrun_wait
    code_is 0
    err_is_empty
}

# The next functions print what they saw if they fail.
code_is() {
    [ "$RC" = "$1" ] && return
    echo "exit code $RC instead of $1"
    show
    return 1
}

err_has() {
    grep -qF -- "$1" "$ERR" && return
    echo "standard error lacks: $1"
    show
    return 1
}

err_is_empty() {
    [ ! -s "$ERR" ] && return
    show
    return 1
}

# Checks what jq -c FILTER prints of the report r.json. Without jq, bats says that it was not checked.
report_has() { # FILTER VALUE
    local value

    type jq >/dev/null || { echo "# not checked, since jq is not installed: $1 of the report" >&3; return 0; }
    value="$(jq -c "$1" r.json)"
    [ "$value" = "$2" ] && return
    echo "the report has $value instead of $2"
    return 1
}

# Checks that dtrun printed exactly this many lines of its own.
err_lines() {
    [ "$(grep -c '^dtrun: ' "$ERR")" = "$1" ] && return
    echo "dtrun did not print exactly $1 lines of its own"
    show
    return 1
}

out_is() {
    printf %s "$1" | cmp -s - "$OUT" && return
    echo "expected output: $1"
    show
    return 1
}

show() {
    echo "--- standard output"
    head -c 2000 "$OUT"
    echo "--- standard error"
    head -c 2000 "$ERR"
}

has_line() {
    grep -q -- "$1" "$2" 2>/dev/null
}

# Waits until $1 lines of standard output match $2.
out_has() {
    await enough "$1" "$2" || { echo "standard output never had $1 lines that match: $2"; show; return 1; }
}

enough() {
    [ "$(grep -c -- "$2" "$OUT" 2>/dev/null)" -ge "$1" ]
}

# The agent of the dtrun in the background: keeper is the process that dtrun started, worker is the keeper's
# child.
keeper() {
    ps -o pid= --ppid "$BACKGROUND" | tr -d ' '
}

worker() {
    ps -o pid=,comm= --ppid "$(keeper)" | awk '$2 ~ /dtrun-agent/ { print $1 }'
}
