#!/usr/bin/env bats
# How the user ends a job: by signals, Ctrl-C or --timeout. No process survives.

load common

# These ranks print "ready" and then each signal that they get.
PATIENT='trap "echo got INT; exit 0" INT; trap "echo got TERM; exit 0" TERM
    trap "echo got USR1" USR1; trap "echo got USR2" USR2
    echo ready; while :; do sleep 0.05; done'
STUBBORN='trap "" INT TERM HUP; echo ready; while :; do sleep 0.05; done'

@test "SIGINT to dtrun reaches every rank, and dtrun exits with 130" {
    dtrun_start --kill-grace 600 -np 3 sh -c "$PATIENT"
    out_has 3 ready
    kill -INT "$BACKGROUND"
    dtrun_wait
    code_is 130
    [ "$(grep -c 'got INT' "$OUT")" = 3 ]
    err_has "dtrun: interrupted by SIGINT; stopping 3 ranks"
    err_lines 1
    clean
}

@test "ranks that ignore SIGINT are killed after --kill-grace" {
    dtrun_start --kill-grace 1 -np 2 sh -c "$STUBBORN"
    out_has 2 ready
    kill -INT "$BACKGROUND"
    dtrun_wait
    code_is 130
    clean
}

# The freezer stands for a file system that hangs: SIGKILL, too, has to wait.
@test "a job ends although SIGKILL does not end one of its ranks" {
    local freezer=/sys/fs/cgroup/freezer/dtrun-test-$$ rank said=yes

    mkdir "$freezer" 2>/dev/null || skip "needs to make a cgroup of the freezer (version 1)"
    dtrun_start --kill-grace 1 --no-tag -np 2 sh -c '[ $DTRUN_RANK = 1 ] || { echo $$; exec sleep 600; }
        (trap "" INT TERM; exec sleep 600) & # is killed, although it waits for the ranks to end
        until [ -e "$0" ]; do sleep 0.05; done; exit 3' "$BATS_TEST_TMPDIR/go"
    out_has 1 '[0-9]'
    rank=$(cat "$OUT")
    echo "$rank" >"$freezer/cgroup.procs"
    echo FROZEN >"$freezer/freezer.state"
    touch "$BATS_TEST_TMPDIR/go"
    await grep -q "1 process of the job (pid $rank) was killed but does not end: it waits inside" "$ERR" || said=no
    echo THAWED >"$freezer/freezer.state"
    dtrun_wait
    clean
    rmdir "$freezer"
    [ $said = yes ]
    code_is 3
}

@test "Ctrl-C on a terminal reaches every rank, and dtrun dies of SIGINT" {
    type python3 >/dev/null || skip "python3 is not installed"
    env "$TOKEN" timeout "$PATIENCE" python3 "$DTRUN_SOURCE/tests/cli/keys.py" 3 ready ^C -- "$DTRUN" --kill-grace 600 -np 3 sh -c "$PATIENT" >"$OUT"
    out_has 3 "got INT"
    out_has 1 "exit code -2$" # killed by SIGINT, as shells expect
    out_has 1 "^terminal blocks"
    clean
}

@test "one Ctrl-C ends a shell loop of jobs" {
    type python3 >/dev/null || skip "python3 is not installed"
    env "$TOKEN" timeout "$PATIENCE" python3 "$DTRUN_SOURCE/tests/cli/keys.py" 2 ready ^C -- \
        bash -c 'for i in 1 2 3; do "$0" -np 2 sh -c "echo ready; exec sleep 600"; echo round; done' "$DTRUN" >"$OUT"
    out_has 2 ready
    ! grep -q round "$OUT" || { show; false; }
    out_has 1 "exit code -2$"
    clean
}

@test "after SIGTERM or SIGHUP dtrun dies of that signal" {
    type python3 >/dev/null || skip "python3 is not installed"
    for signal in 15 1; do
        env "$TOKEN" timeout "$PATIENCE" python3 -c 'import subprocess, sys
dtrun = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE)
dtrun.stdout.readline()
dtrun.send_signal(int(sys.argv[1]))
print(dtrun.wait())' $signal "$DTRUN" -np 1 sh -c 'echo ready; exec sleep 600' >"$OUT" 2>"$ERR"
        [ "$(cat "$OUT")" = "-$signal" ]
        clean
    done
}

@test "dtrun and its agent get signals even if their parent has blocked these" {
    RC=0
    env "$TOKEN" --block-signal=CHLD timeout -k 5 "$PATIENCE" "$DTRUN" -np 1 true || RC=$?
    code_is 0
    env "$TOKEN" --block-signal=TERM "$DTRUN" -np 1 sh -c 'echo ready; exec sleep 600' >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    await has_line ready "$OUT"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    clean
}

@test "a job in the background may write to a terminal that stops background output" {
    env "$TOKEN" timeout "$PATIENCE" script -qec \
        "stty tostop; set -m; '$DTRUN' -np 1 echo hello & wait" "$T/typescript" </dev/null >"$OUT"
    out_has 1 hello
    clean
}

@test "a second SIGINT kills the ranks at once, and dtrun exits with 130" {
    dtrun_start --kill-grace 600 -np 3 sh -c "$STUBBORN"
    out_has 3 ready
    kill -INT "$BACKGROUND"
    await has_line interrupted "$ERR"
    kill -INT "$BACKGROUND"
    dtrun_wait
    code_is 130
    clean
}

@test "a second Ctrl-C on a terminal kills the ranks at once" {
    type python3 >/dev/null || skip "python3 is not installed"
    env "$TOKEN" timeout "$PATIENCE" python3 "$DTRUN_SOURCE/tests/cli/keys.py" 3 ready ^C 1 interrupted ^C -- "$DTRUN" --kill-grace 600 -np 3 sh -c "$STUBBORN" >"$OUT"
    out_has 1 "exit code -2$" # killed by SIGINT, as shells expect
    clean
}

@test "a second SIGINT ends dtrun even if nobody reads its output" {
    mkfifo slow
    env --default-signal=INT "$TOKEN" "$DTRUN" --verbose --kill-grace 600 -np 2 \
        sh -c 'trap "" INT; printf ready >>ready; exec yes' </dev/null >slow 2>"$ERR" 3>&- &
    BACKGROUND=$!
    exec 8<slow # and never read
    await has_line readyready ready
    await has_line "all 2 ranks run" "$ERR"
    kill -INT "$BACKGROUND"
    await has_line interrupted "$ERR"
    kill -INT "$BACKGROUND"
    dtrun_wait
    exec 8<&-
    OUT=/dev/null code_is 130
    clean
}

@test "SIGINT ends dtrun while a host has not answered yet" {
    printf '#!/bin/sh\necho waiting >>said\nexec sleep 600\n' >agent
    chmod +x agent
    DTRUN_AGENT="$T/agent" dtrun_start -np 2 true
    await has_line waiting said
    kill -INT "$BACKGROUND"
    dtrun_wait
    code_is 130
    clean
}

@test "SIGINT ends dtrun at the instant at which it has started an agent" {
    preload_into_libuv impatient
    printf '#!/bin/sh\nexec sleep 600\n' >agent # does not end when its channel closes
    chmod +x agent
    LD_PRELOAD="$preload" DTRUN_AGENT="$T/agent" dtrun_start -np 2 true
    dtrun_wait
    code_is 130
    err_has "dtrun: interrupted by SIGINT"
    clean
}

@test "SIGTERM to dtrun reaches every rank, and dtrun exits with 143" {
    dtrun_start --kill-grace 600 -np 3 sh -c "$PATIENT"
    out_has 3 ready
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    [ "$(grep -c 'got TERM' "$OUT")" = 3 ]
    clean
}

@test "SIGUSR1 and SIGUSR2 reach every rank, and the job goes on" {
    dtrun_start -np 2 sh -c "$PATIENT"
    out_has 2 ready
    kill -USR1 "$BACKGROUND"
    out_has 2 "got USR1"
    kill -USR2 "$BACKGROUND"
    out_has 2 "got USR2"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    clean
}

state_of() { # prints T for a stopped process
    sed 's/.*) \(.\).*/\1/' "/proc/$1/stat"
}

is_stopped() {
    local pid
    for pid; do
        [ "$(state_of "$pid")" = T ] || return 1
    done
}

# Prints its pid, and each SIGUSR1. It starts no program later: a shell that does so (vfork) does not count as stopped
# before that program does.
readonly PRINTS_USR1='trap "echo got USR1" USR1; sleep 600 & echo pid $$; while :; do wait; done'

# Stops a job of two ranks that run PRINTS_USR1, continues it after COMMAND, and ends it.
stops_and_goes_on() { # [COMMAND...]
    local ranks

    out_has 2 pid
    ranks="$(sed -n 's/.* pid //p' "$OUT")"
    kill -TSTP "$BACKGROUND"
    await is_stopped "$BACKGROUND" $ranks
    "$@"
    is_stopped $ranks
    kill -CONT "$BACKGROUND"
    kill -USR1 "$BACKGROUND"
    out_has 2 "got USR1"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
}

wakings_of() {
    sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$1/status"
}

has_woken() { # PID TIMES
    [ "$(wakings_of "$1")" -ge "$2" ]
}

@test "SIGTSTP stops dtrun and its ranks, and SIGCONT continues them even after three leases" {
    try stops_for_three_leases 1 8
    clean
}

stops_for_three_leases() { # LEASE
    set -m # own process group, which the shell can continue; the kernel does not stop an orphaned one
    dtrun_start --heartbeat "$1" -np 2 sh -c "$PRINTS_USR1"
    set +m
    stops_and_goes_on await_three_leases
}

# Only the beats of its worker wake the keeper: four in each lease.
await_three_leases() {
    await has_woken "$(keeper)" $(($(wakings_of "$(keeper)") + 14))
}

@test "ranks that SIGTSTP stops while they save have the rest of their grace after SIGCONT" {
    for how in TERM INT; do
        try stops_while_ranks_save 1 8
        clean
    done
}

stops_while_ranks_save() { # LEASE
    set -m
    dtrun_start --heartbeat "$1" --kill-grace $((2 * $1)) -np 2 sh -c \
        'trap "echo saving; until [ -e go ]; do sleep 0.05; done; echo saved; exit" TERM INT
        echo pid $$; while :; do sleep 0.05; done'
    set +m
    out_has 2 pid
    kill -$how "$BACKGROUND"
    out_has 2 saving
    kill -TSTP "$BACKGROUND"
    await is_stopped "$BACKGROUND" $(sed -n 's/.* pid //p' "$OUT")
    await_three_leases # the grace would be over
    : >go
    kill -CONT "$BACKGROUND"
    dtrun_wait
    rm go
    out_has 2 saved
}

# As Grid Engine does with suspend_method SIGTSTP.
@test "SIGTSTP from a batch system, in a session without a terminal, stops the job until SIGCONT" {
    env "$TOKEN" setsid "$DTRUN" -np 2 sh -c "$PRINTS_USR1" </dev/null >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    stops_and_goes_on
    clean
}

@test "Ctrl-Z does not stop a job in a session without a shell, where nothing could continue it" {
    type python3 >/dev/null || skip "python3 is not installed"
    env "$TOKEN" timeout "$PATIENCE" python3 "$DTRUN_SOURCE/tests/cli/keys.py" 2 ready ^Z 2 "got CONT" ^C -- \
        "$DTRUN" --kill-grace 600 -np 2 sh -c "trap 'echo got CONT' CONT; $PATIENT" >"$OUT"
    out_has 2 "got INT"
    out_has 1 "exit code -2$"
    clean
}

@test "SIGHUP stops the job as SIGTERM does, and dtrun exits with 129" {
    dtrun_start --kill-grace 600 -np 2 sh -c "$PATIENT"
    out_has 2 ready
    kill -HUP "$BACKGROUND"
    dtrun_wait
    code_is 129
    [ "$(grep -c 'got TERM' "$OUT")" = 2 ]
    clean
}

@test "under nohup dtrun ignores SIGHUP" {
    env "$TOKEN" nohup "$DTRUN" -np 2 sh -c "$PATIENT" </dev/null >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    out_has 2 ready
    kill -HUP "$BACKGROUND"
    kill -USR1 "$BACKGROUND"
    out_has 2 "got USR1"
    ! grep -q "got TERM" "$OUT" || false
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    clean
}

@test "dtrun leaves SIGINT ignored where a script started it in the background" {
    env --ignore-signal=INT "$TOKEN" "$DTRUN" -np 2 sh -c "$PATIENT" </dev/null >"$OUT" 2>"$ERR" 3>&- &
    BACKGROUND=$!
    out_has 2 ready
    kill -INT "$BACKGROUND"
    kill -USR1 "$BACKGROUND"
    out_has 2 "got USR1"
    ! grep -q "got INT" "$OUT" || false
    err_lines 0
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    clean
}

# The agent has told dtrun that the rank ended: it does so as soon as it has collected the process.
is_reported() { # PID
    [ ! -e "/proc/$1" ] && [ "$(state_of "$(worker)")" = S ]
}

@test "when a batch system ends the job, ranks that die of its signal do not count as failed" {
    local victim

    SLURM_JOB_ID=1 dtrun_start --heartbeat 600 --max-restarts 1 -H localhost:2 -np 2 sh -c 'echo "pid $$"; exec sleep 600'
    await eval '[ "$(grep -c pid "$OUT")" = 2 ]'
    victim=$(sed -n 's/^\[1\] pid //p' "$OUT")
    kill -STOP "$BACKGROUND" # so that it learns of both at once
    kill -TERM "$victim"
    await is_reported "$victim"
    kill -TERM "$BACKGROUND"
    kill -CONT "$BACKGROUND"
    dtrun_wait
    code_is 143
    err_has "dtrun: told to end by SIGTERM; stopping 1 rank"
    ! grep -q restarting "$ERR" || { show; false; }
    clean
}

@test "in a batch job a rank that is killed by a signal meant for it alone is restarted" {
    SLURM_JOB_ID=1 dtrun --max-restarts 1 -H localhost:2 -np 2 sh -c \
        '[ "$DTRUN_RESTART_COUNT" = 1 ] || [ "$RANK" = 0 ] || kill -TERM $$; exit 0'
    code_is 0
    err_has "was killed by signal 15 (SIGTERM)"
    err_has "restarting 2 ranks"
    clean
}

@test "a rank that ignores SIGTERM is killed after --kill-grace" {
    dtrun_start --kill-grace 1 -np 2 sh -c "$STUBBORN"
    out_has 2 ready
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    clean
}

# A shell runs it, and it outlives the shell: it ignores SIGTERM, and needs the other ranks when there is a file go.
start_under_shell() { # OPTION...
    dtrun_start --kill-grace 600 "$@" -np 3 sh -c 'echo pid $$
        sh -c '\''trap "" TERM; echo ready; until [ -e go ]; do sleep 0.05; done; exec "$0" meet'\'' "$0"
        exit 1' "$RANK/steps"
    out_has 3 ready
}

# The shells have been sent SIGTERM.
shells_die() {
    local pid

    for pid in $(sed -n 's/.*pid //p' "$OUT"); do
        await gone "$pid"
    done
}

ends_with_grace() {
    touch go
    dtrun_wait
    code_is 143
    [ "$(grep -c '\] 9$' "$OUT")" = 3 ]
    clean
}

@test "a program keeps its grace, and its ranks each other, when the shell that runs it dies of SIGTERM" {
    start_under_shell
    kill -TERM "$BACKGROUND"
    shells_die
    ends_with_grace
}

@test "a program keeps its grace if agent and shells get SIGTERM at once, as when their host shuts down" {
    start_under_shell --heartbeat 600
    kill -STOP "$BACKGROUND" # so that it does not stop the job before the shells have died
    kill -TERM "$(keeper)" "$(worker)"
    kill -TERM $(sed -n 's/.*pid //p' "$OUT")
    shells_die
    kill -CONT "$BACKGROUND"
    ends_with_grace
}

@test "a program whose shell has died of SIGTERM is killed after --kill-grace, or at once by SIGINT" {
    for grace in 1 600; do
        dtrun_start --kill-grace "$grace" -np 2 sh -c 'echo pid $$; sh -c "$0"; exit 1' "$STUBBORN"
        out_has 2 ready
        kill -TERM "$BACKGROUND"
        shells_die
        [ "$grace" = 1 ] || kill -INT "$BACKGROUND"
        dtrun_wait
        code_is 143
        clean
    done
}

# Like a program whose DataLoader has two workers, one of them forked, the other a Python of its own below a third: a
# worker dies of any signal, and then the program fails. With each signal it asks both whether they live. It leaves them.
make_saver() {
    type python3 >/dev/null || skip "python3 is not installed"
    cat >saver.py <<'END'
import os, signal, subprocess, sys

answer = "import os; print(os.getpid(), flush=True)\nwhile input(): print(os.getpid(), flush=True)"
if sys.argv[1:] == ["worker"]:
    sys.exit(subprocess.call([sys.executable, "-c", answer]))
got = os.pipe()
for number in signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2:
    signal.signal(number, lambda number, frame: os.write(got[1], signal.Signals(number).name.encode() + b"\n"))
ask, asked, told = os.pipe(), os.pipe(), os.fdopen(got[0])
if os.fork() == 0:
    for number in signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2:
        signal.signal(number, signal.SIG_DFL)
    os.close(asked[0])
    os.close(ask[1])
    while os.read(ask[0], 1):
        os.write(asked[1], b"y")
    while sys.argv[1:] == ["leave"]:
        signal.pause()
    os._exit(0)
os.close(asked[1])
other = subprocess.Popen([sys.executable, sys.argv[0], "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
other.stdout.readline()
print("ready", flush=True)
for name in told:
    os.write(ask[1], b"?")
    other.stdin.write("?\n")
    other.stdin.flush()
    lives = [os.read(asked[0], 1) == b"y", other.stdout.readline() != ""]
    print(name.strip(), "workers live" if all(lives) else "a worker has died", flush=True)
    if name == "SIGTERM\n":
        os._exit(0)
END
}

# After SIGTERM the programs of both ranks find their workers alive, and the job ends long before the grace is over.
ends_with_workers_alive() {
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    [ "$(grep -c 'SIGTERM workers live' "$OUT")" = 2 ]
    clean
}

@test "workers of a program that handles a signal do not get it, and do not delay the end" {
    make_saver
    dtrun_start --kill-grace 600 -np 2 python3 -S saver.py leave
    out_has 2 ready
    for signo in USR1 USR2; do
        kill -$signo "$BACKGROUND"
        out_has 2 "SIG$signo workers live"
    done
    ends_with_workers_alive
}

@test "workers do not get SIGTERM either if a shell runs their program" {
    make_saver
    dtrun_start --kill-grace 600 -np 2 sh -c 'python3 -S saver.py; exit 1'
    out_has 2 ready
    ends_with_workers_alive
}

@test "workers that outlive their program get SIGTERM, so that they do not use up the grace" {
    make_saver
    dtrun_start --kill-grace 600 -np 2 sh -c 'python3 -S saver.py leave; exit 1'
    out_has 2 ready
    ends_with_workers_alive
}

@test "a Python that SIGTERM ends at once leaves the Python that it has started time to save" {
    type python3 >/dev/null || skip "python3 is not installed"
    cat >wrapper.py <<'END'
import signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
subprocess.Popen([sys.executable, "-S", "save.py"]).wait()
END
    cat >save.py <<'END'
import os, signal, sys, time
wrapper = os.getppid()
def save(number, frame):
    while os.getppid() == wrapper:
        time.sleep(0.02)
    time.sleep(0.5) # much longer than it takes to kill what is left
    print("saved", flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True:
    signal.pause()
END
    dtrun_start --kill-grace 600 -np 2 python3 -S wrapper.py
    out_has 2 ready
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    [ "$(grep -c saved "$OUT")" = 2 ]
    clean
}

@test "what a shell with a trap runs gets SIGTERM, even if it is a shell" {
    for shell in sh ksh93 bash-static; do
        cp "$(command -v bash)" $shell
        dtrun_start --kill-grace 600 -np 2 ./$shell -c 'trap "echo got TERM" TERM
            "$0" -c "echo ready; while :; do sleep 0.05; done"; exit 0' ./$shell
        out_has 2 ready
        kill -TERM "$BACKGROUND"
        dtrun_wait
        code_is 143
        [ "$(grep -c 'got TERM' "$OUT")" = 2 ]
        clean
    done
}

@test "a stopped rank is continued so that it can end" {
    dtrun_start --kill-grace 600 -np 2 sh -c "echo pid \$\$; $PATIENT"
    out_has 2 ready
    kill -STOP "$(sed -n 's/^\[1\] pid //p' "$OUT")"
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    [ "$(grep -c 'got TERM' "$OUT")" = 2 ]
    clean
}

@test "a child that outlives its rank is killed and does not delay the end of the job" {
    dtrun -np 2 sh -c 'sleep 600 & exit 0'
    code_is 0
    clean
}

@test "shared memory of Python's multiprocessing is removed when its rank dies or is killed" {
    cat >share.py <<'END'
import os, re, signal, time
from multiprocessing import resource_tracker, shared_memory

print("name", shared_memory.SharedMemory(create=True, size=4096).name, flush=True)
status = f"/proc/{resource_tracker._resource_tracker._pid}/status"
while int(re.search(r"SigIgn:\s*(\w+)", open(status).read())[1], 16) & 0x4002 != 0x4002:
    time.sleep(0.01)  # until the tracker ignores SIGINT and SIGTERM, as always once it runs
open("up." + os.environ["RANK"], "w").close()
while not (os.path.exists("up.0") and os.path.exists("up.1")):
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL if os.environ["RANK"] == "0" else signal.SIGSTOP)
END
    dtrun --kill-grace 0 -np 2 python3 -S -W ignore share.py
    code_is 137
    [ "$(grep -c name "$OUT")" = 2 ]
    for name in $(sed -n 's/.*name //p' "$OUT"); do
        [ ! -e "/dev/shm/$name" ]
    done
    clean
}

# A rank's script starts torch_shm_manager by this, and goes on when it has that name.
readonly START_SHM_MANAGER='setsid ./torch_shm_manager & read -r name <"/proc/$!/comm"
    until [ "$name" = torch_shm_manag ]; do read -r name <"/proc/$!/comm"; done'

# It waits after the last process has ended, forks nothing, and needs setsid, as PyTorch's does.
make_shm_manager() { # SECONDS
    mkfifo never
    printf '#!%s\nread -t %s <>never\n: >removed.$RANK\n' "$BASH" "$1" >torch_shm_manager
    chmod +x torch_shm_manager
}

@test "PyTorch's torch_shm_manager has time to remove shared memory after its rank was killed" {
    make_shm_manager 1.5
    dtrun -np 2 sh -c "$START_SHM_MANAGER"'
        : >up.$RANK; until [ -e up.0 ] && [ -e up.1 ]; do sleep 0.02; done; kill -KILL $$'
    code_is 137
    [ -e removed.0 ]
    [ -e removed.1 ]
    clean
}

@test "a torch_shm_manager that does not end is killed nevertheless" {
    make_shm_manager 600
    dtrun -np 1 sh -c "$START_SHM_MANAGER"
    code_is 0
    err_is_empty
    clean
}

@test "what ignores SIGINT and SIGTERM and outlives its rank is killed nevertheless" {
    dtrun -np 2 sh -c '(trap "" INT TERM; exec sleep 600) & exit 0'
    code_is 0
    clean
}

@test "grandchildren in sessions of their own are found and killed" {
    dtrun -np 2 sh -c 'setsid sh -c "setsid sleep 600 & setsid sleep 600" & exit 0'
    code_is 0
    clean
    dtrun_start -np 2 sh -c 'setsid sh -c "setsid sleep 600 & setsid sleep 600" & echo ready; wait'
    out_has 2 ready
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    clean
}

@test "children and grandchildren are killed also where no cgroup can be made" {
    hide_cgroups
    dtrun -np 2 sh -c 'sleep 600 & exit 0'
    code_is 0
    clean
    dtrun -np 2 sh -c 'setsid sh -c "setsid sleep 600 & setsid sleep 600" & exit 0'
    code_is 0
    clean
    dtrun -np 2 sh -c 'setsid sh -c "setsid sleep 600 & exec sleep 600" & exit $DTRUN_RANK'
    code_is 1
    clean
}

@test "a process that belongs to another user and cannot be killed is named" {
    command -v setpriv >/dev/null || skip "needs setpriv"
    hide_cgroups setpriv --bounding-set=-kill --inh-caps=-kill
    dtrun -np 1 sh -c 'setpriv --reuid 64321 --clear-groups setsid sleep 600 & echo $! >child
        until grep -q sleep "/proc/$!/comm"; do sleep 0.05; done'
    code_is 0
    child="$(cat child)"
    err_has "dtrun: localhost: 1 process of the job (pid $child) still runs and cannot be killed: Operation not permitted; end it as the user to whom it belongs"
    err_lines 1
    kill -KILL "$child"
    becomes_clean
}

@test "without /proc, background processes are killed by process group" {
    hide /proc
    dtrun -np 2 sh -c 'sleep 600 & sh -c "sleep 600 & sleep 600" & exit 0'
    code_is 0
    err_is_empty
    clean
    dtrun_start -np 2 sh -c 'trap "" TERM; sleep 600 & echo ready; wait'
    out_has 2 ready
    kill -KILL "$BACKGROUND"
    wait "$BACKGROUND" || true
    becomes_clean
}

@test "without /proc, dtrun reports what may still run" {
    hide /proc
    mkfifo away # ensures that sleep leaves the rank's process group before the rank ends
    dtrun -np 1 sh -c 'setsid sh -c ": >away; exec sleep 600" & : <away'
    code_is 0
    err_has "dtrun: localhost: dtrun-agent: processes that its ranks started in process groups of their own may still run; to find them dtrun-agent needs the /proc of its PID namespace: mount it"
    await eval 'pid="$(left_behind)"; [ "$(cat "/proc/$pid/comm")" = sleep ]' # for a moment it has no environment
    kill -KILL "$pid"
    becomes_clean
}

# There, the numbers of processes are those of others.
@test "the /proc of another PID namespace counts as none" {
    hide_cgroups unshare --pid --fork --kill-child
    mkfifo away
    dtrun -np 1 sh -c 'setsid sh -c ": >away; exec sleep 600" & : <away'
    code_is 0
    err_has "may still run; to find them dtrun-agent needs the /proc of its PID namespace: mount it"
    becomes_clean
}

# Sets init to the process that is the first one of dtrun's PID namespace.
find_first_process() {
    init="$(cat "/proc/$BACKGROUND/task/$BACKGROUND/children")"
    [ -n "$init" ]
}

has_children() { # N
    [ "$(wc -w <"/proc/$init/task/$init/children")" = "$1" ]
}

@test "as the first process of a container dtrun passes signals on and reaps orphans of others" {
    local init

    hide_cgroups unshare --pid --fork --kill-child --mount-proc
    [ -e "/proc/$$/task/$$/children" ] || skip "the kernel does not list children"
    mkfifo away
    dtrun_start -np 1 sh -c 'trap "exit 75" TERM; echo up; while :; do sleep 0.05; done'
    await grep -q up "$OUT"
    await find_first_process
    nsenter --target "${init% }" --pid sh -c 'sh -c ": >away" &'
    init="${init% }"
    await has_children 2
    : <away
    await has_children 1
    kill -TERM "$init"
    dtrun_wait
    code_is 75
    becomes_clean
}

@test "--timeout ends the job with 124 and names the ranks that still ran" {
    dtrun_start_clock --timeout 600 --exit-grace 700 -np 4 sh -c '[ $DTRUN_RANK = 1 ] && exit 0; exec sleep 600'
    await_timer 700 # starts when a rank has ended
    expire_timer 600
    dtrun_wait
    code_is 124
    err_has "dtrun: the time limit of 600 s is over; stopping the ranks that are still running: 0,2-3"
    err_lines 1
    clean
}

@test "--timeout does not disturb a job that ends in time" {
    dtrun --timeout 600 -np 2 true
    code_is 0
    err_is_empty
}

only_dtrun_is_left() {
    [ "$(left_behind)" = "$BACKGROUND" ]
}

@test "a signal while the last output waits for its reader is reported and keeps a failed rank's exit code" {
    mkfifo "$OUT"
    exec 9<>"$OUT"
    head -c 65536 /dev/zero >&9 # the pipe is full
    for end in 0 7; do
        dtrun_start -np 1 sh -c "echo last; : >ran; exit $end" 9>&-
        await test -e ran # dtrun is also alone before its agent has started
        await only_dtrun_is_left
        rm ran
        kill -TERM "$BACKGROUND"
        dtrun_wait
        err_lines 1
        [ $end = 7 ] || code_is 143
    done
    code_is 7
}

@test "--timeout ends a job whose last output nobody reads, and keeps a failed rank's exit code" {
    mkfifo "$OUT"
    exec 9<>"$OUT"
    head -c 65536 /dev/zero >&9 # the pipe is full
    for end in 0 7; do
        dtrun_start_clock --timeout 600 -np 1 sh -c "echo last; : >ran; exit $end" 9>&-
        await test -e ran
        await only_dtrun_is_left
        expire_timer 600
        dtrun_wait
        rm ran "$T/600000" "$T/600000.started"
        err_has "the time limit of 600 s is over; the last output has 2 s to be read"
        err_has "the last output on standard output was not read within 2 s and is dropped"
        [ $end = 7 ] || code_is 124
    done
    code_is 7
}

@test "Ctrl-C while ranks wait for those of another host ends the job without using the grace" {
    command -v python3 >/dev/null || skip "needs python3"
    export NOGO_AGENT="$DTRUN_AGENT" NOGO_SEEN="$T/seen"
    DTRUN_AGENT="$DTRUN_SOURCE/tests/cli/nogo.py"
    dtrun_start --kill-grace 600 -np 2 echo never
    await test -e seen
    kill -INT "$BACKGROUND"
    dtrun_wait
    code_is 130
    out_is ""
    clean
}

@test "ranks that are told to stop while nobody reads their output still save their state" {
    mkfifo "$OUT"
    exec 9<>"$OUT"
    head -c 65536 /dev/zero >&9 # the pipe is full
    for how in TERM INT; do
        dtrun_start --kill-grace 600 -np 2 python3 -c '
import os, signal, sys
def save(signo, frame):
    os.write(1, b"x" * 400000)  # more than any queue takes
    open("saved." + os.environ["DTRUN_RANK"], "w")
    os._exit(3)
for s in signal.SIGTERM, signal.SIGINT:
    signal.signal(s, save)
open("ready." + os.environ["DTRUN_RANK"], "w")
while True:
    signal.pause()' 9>&-
        await test -e ready.0
        await test -e ready.1
        kill -$how "$BACKGROUND"
        dtrun_wait
        test -e saved.0 -a -e saved.1
        [ $how = INT ] || code_is 143
        grep "the last output on standard output was not read within 2 s and is dropped" "$ERR" || { cat "$ERR"; false; }
        ! grep "has not confirmed" "$ERR" || false
        clean
        rm ready.? saved.?
    done
    code_is 130
}

@test "a job that is told to stop drops only the output of the stream that nobody reads" {
    mkfifo "$ERR"
    exec 9<>"$ERR"
    head -c 65536 /dev/zero >&9 # the pipe is full
    dtrun_start --kill-grace 600 -np 2 python3 -c '
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
open("ready." + os.environ["DTRUN_RANK"], "w")
os.write(2, b"e" * 400000)  # more than any queue takes: ends once dtrun drops it
for i in range(20000):
    os.write(1, b"%08d\n" % i)
os._exit(0)' 9>&-
    await test -e ready.0
    await test -e ready.1
    kill -TERM "$BACKGROUND"
    dtrun_wait
    code_is 143
    for rank in 0 1; do
        sed -n "s/^\[$rank] //p" "$OUT" | cmp - <(seq -f %08.f 0 19999)
    done
    exec 9>&-
    clean
}

@test "a job that is told to stop waits for a reader that is slow but not stuck" {
    mkfifo "$OUT"
    exec 9<>"$OUT"
    dtrun_start --kill-grace 600 -np 1 python3 -c '
import os, signal, time
def save(signo, frame):
    while not os.path.exists("read"):
        time.sleep(0.05)
    os.write(1, b"saved\n")
    os._exit(0)
signal.signal(signal.SIGTERM, save)
os.write(1, b"x" * 150000)  # more than a pipe takes, less than dtrun takes
open("ready", "w")
while True:
    signal.pause()' 9>&-
    await test -e ready
    exec 8<"$OUT" 9>&- # from now on the end of dtrun ends what is read
    BACKGROUND=$BACKGROUND python3 -c '
import os, signal, time
text = os.read(8, 8192)
os.kill(int(os.environ["BACKGROUND"]), signal.SIGTERM)
end = time.monotonic() + 3
while time.monotonic() < end:
    time.sleep(0.3)
    text += os.read(8, 8192)
open("read", "w")
text += open(8, "rb").read()
assert text == b"x" * 150000 + b"saved\n", text[-20:]'
    dtrun_wait
    code_is 143
    ! grep "is dropped" "$ERR" || false
    clean
}

@test "a reader that takes no output does not hold up a job that is told to stop" {
    mkfifo "$OUT"
    exec 9<>"$OUT"
    head -c 65536 /dev/zero >&9 # the pipe is full
    for how in TERM INT TIMEOUT; do
        dtrun_start_clock --kill-grace 1 --timeout 600 -np 2 sh -c 'echo y; : >written; exec yes' 9>&-
        await test -e written
        [ $how = TIMEOUT ] && expire_timer 600 || kill -$how "$BACKGROUND"
        dtrun_wait
        case $how in TERM) code_is 143 ;; INT) code_is 130 ;; TIMEOUT) code_is 124 ;; esac
        grep "the last output on standard output was not read within 2 s and is dropped" "$ERR" || { cat "$ERR"; false; }
        ! grep "has not confirmed" "$ERR" || false
        clean
        rm written
    done
}
