#!/usr/bin/env bats
# Hosts that a command of the user's reaches (--rsh). Here two commands run everything on this machine, each
# as one kind of such commands does.

load common

# Makes a command that joins its arguments for a shell, as rsh does.
as_shell() {
    cat >on-shell <<'END'
#!/bin/sh
DTRUN_HOSTID=$1
export DTRUN_HOSTID
shift
exec /bin/sh -c "$*"
END
    chmod +x on-shell
}

each_host_ran() {
    [ "$(sort "$OUT")" = "a 0 of 4
a 1 of 4
b 2 of 4
b 3 of 4" ]
}

readonly SAY='echo "$DTRUN_HOSTID $RANK of $WORLD_SIZE"'

@test "--rsh works with a command that takes a list of arguments" {
    make_on_list
    dtrun --rsh './on-list %h' --no-tag -H a:2,b:2 sh -c "$SAY"
    code_is 0
    each_host_ran
    clean
}

@test "--rsh works with a command that joins its arguments for a shell" {
    as_shell
    dtrun --rsh './on-shell %h %c' --no-tag -H a:2,b:2 sh -c "$SAY"
    code_is 0
    each_host_ran
    clean
}

@test "--rsh works without PATH if it names a file" {
    printf '#!/bin/sh\nPATH=/none\nexport PATH\nexec "%s" "$@"\n' "$DTRUN" >no-path
    printf '#!/bin/sh\nPATH=%s\nexport PATH\nshift\nexec "$@"\n' "$PATH" >logs-in
    chmod +x no-path logs-in
    DTRUN=./no-path dtrun --rsh './logs-in %h' -H a /bin/echo ran
    code_is 0
    out_is $'ran\n'
    clean
}

@test "--rsh carries large output, standard input and exit codes" {
    make_on_list
    head -c 3000000 /dev/urandom | base64 >big
    STDIN=big dtrun --rsh './on-list %h' --no-tag -H a:1,b:1 sh -c 'cat; [ "$RANK" = 0 ] || exit 0; exit 7'
    code_is 7
    cmp big "$OUT"
    clean
}

# Slurm, PBS and LSF do that, with SIGUSR1 as a warning and SIGTERM at the end.
@test "an --rsh command outlives the signals that a batch system sends to every process of a job" {
    cat >stays <<'END'
#!/bin/bash
echo "$$" >pid
shift
"$@"
END
    chmod +x stays
    dtrun_start --rsh './stays %h' --no-tag -H a:1 sh -c 'echo up; until [ -e go ]; do sleep 0.05; done; exit 7'
    out_has 1 up
    for signal in HUP INT TERM USR1 USR2; do kill -$signal "$(cat pid)"; done
    touch go
    dtrun_wait
    code_is 7
    clean
}

@test "ranks behind an --rsh command do not ignore signals" {
    make_on_list
    dtrun --rsh './on-list %h' --no-tag -H a:1 grep SigIgn /proc/self/status
    code_is 0
    grep -qx 'SigIgn:[[:space:]]*0*' "$OUT" || { show; false; }
    clean
}

@test "hosts without a boot id are told apart by their names" {
    unshare --mount --uts true 2>/dev/null || skip "needs root, to hide the boot id"
    cat >no-boot-id <<'END'
#!/bin/sh
exec unshare --mount --uts sh -c '
    mount --bind /dev/null /proc/sys/kernel/random/boot_id && hostname "$0" && exec "$@"' "$@"
END
    chmod +x no-boot-id
    dtrun --rsh './no-boot-id %h' --no-tag -H a:2,b:2 sh -c 'DTRUN_HOSTID=$(uname -n); '"$SAY"
    code_is 0
    each_host_ran
    printf '#!/bin/sh\nexec ./no-boot-id same "$@"\n' >same
    chmod +x same
    dtrun --rsh './same env NAME=%h' -H a:2,b:2 true
    code_is 125
    err_has "a and b are one machine"
    clean
}

@test "a failed --rsh command is reported with what it printed, and nothing runs" {
    cat >broken <<'END'
#!/bin/sh
echo "broken: no such pod: $1" >&2
exit 3
END
    chmod +x broken
    dtrun --rsh './broken %h' -H a,b touch ran
    code_is 125
    err_has "broken: no such pod: a"
    err_has "dtrun: a: "
    [ ! -e ran ]
    clean
}

# Each of these commands lacks an option or a mark, as users write them.
@test "an --rsh command that carries no input, makes a terminal or joins its arguments is reported with what to do" {
    make_on_list
    as_shell
    printf '#!/bin/sh\nexec ./on-list "$@" </dev/null\n' >no-input
    printf '#!/bin/sh\n: | ./on-list "$@"\n' >ended-input
    printf '#!/usr/bin/env python3\nimport pty, sys\npty.spawn(sys.argv[2:])\n' >terminal
    chmod +x no-input ended-input terminal
    HOME=$T dtrun --rsh './ended-input %h' -H a:1 true
    code_is 125
    err_has "dtrun: a: agent start: nothing arrived at its standard input, which has ended"
    for push in --push=./no-input --no-push; do
        dtrun $push --rsh './no-input %h' -H a:1 true
        code_is 125
        err_has "dtrun: a: agent start: its standard input is a device such as /dev/null"
        err_has "kubectl exec and docker exec need -i"
        dtrun $push --rsh './terminal %h' -H a:1 true
        code_is 125
        err_has "dtrun: a: agent start: its standard input is a terminal"
        err_has "leave out the option that asks for one, such as -t"
        dtrun $push --rsh './on-shell %h' -H a:1 true
        code_is 125
        err_has "dtrun: a: agent start: ./on-shell exited with code 0, and nothing came back"
        err_has "--rsh needs %c"
    done
    clean
}

@test "a login shell that exits before it starts the agent is reported with what to look for" {
    dtrun --rsh 'sh -c "exit 0" %h %c' -H a true
    code_is 125
    err_has "dtrun: a: agent start: the login shell there exited with code 0 and did not start dtrun-agent; does one \
of its start-up files, such as ~/.bashrc, exit?"
    clean
}

@test "a missing --rsh command is reported with what to do" {
    dtrun --rsh './none %h' -H a true
    code_is 125
    err_has "./none: no such file or directory; install it, or choose another --rsh or --transport"
    clean
}

@test "an --rsh command that is killed during the job counts as a lost host" {
    make_on_list
    dtrun_start --rsh './on-list %h' -H a:1,b:1 sh -c 'echo up; exec sleep 600'
    await eval '[ "$(grep -c up "$OUT")" = 2 ]'
    kill -KILL "$(pgrep -P "$BACKGROUND" | head -1)"
    dtrun_wait
    [ "$RC" != 0 ]
    becomes_clean
}

@test "the name that Grid Engine gives to this host in HOSTNAME means this host" {
    printf '%s\n' "n1.cluster.test 2 all.q@n1.cluster.test UNDEFINED" >hosts
    PE_HOSTFILE=hosts HOSTNAME=n1.cluster.test dtrun --rsh 'false %h' --no-tag sh -c 'echo "$RANK"'
    code_is 0
    [ "$(sort "$OUT")" = "0
1" ]
    PE_HOSTFILE=hosts HOSTNAME=n2.cluster.test dtrun --rsh 'false %h' true
    code_is 125
    clean
}

# Sets a home directory that keeps agents for the next job, as on a host.
own_home() {
    export HOME=$T/home
    mkdir "$HOME"
    make_on_list
}

cached_agent() { echo "$HOME"/.cache/dtrun/dtrun-agent-*; }

@test "a damaged or incomplete agent that an earlier job left is replaced" {
    local size

    own_home
    dtrun --rsh './on-list %h' -H a:1 true
    code_is 0
    size=$(stat -c %s "$(cached_agent)")
    for kept in 0 64 4096; do # bytes that are still right; the rest are zeros
        truncate -s "$kept" "$(cached_agent)"
        truncate -s "$size" "$(cached_agent)"
        dtrun -v --rsh './on-list %h' -H a:1 echo done
        code_is 0
        grep -q done "$OUT"
        err_has "dtrun: a: start-up output: $(cached_agent) did not start; it is sent again"
        cmp "$DTRUN_AGENT" "$(cached_agent)"
    done
    truncate -s 4096 "$(cached_agent)" # sent again before it is run
    for run in 1 2; do
        dtrun -v --rsh './on-list %h' -H a:1 true
        code_is 0
        ! grep -q "did not start" "$ERR" || false
        cmp "$DTRUN_AGENT" "$(cached_agent)"
    done
    clean
}

@test "the agent is sent elsewhere if another user can replace what is in the home directory" {
    local dir

    [ "$(id -u)" = 0 ] || skip "needs root, to make directories of another user"
    own_home
    mkdir -m 700 run
    export XDG_RUNTIME_DIR=$T/run
    for dir in home home/.cache home/.cache/dtrun; do
        dtrun --rsh './on-list %h' --no-tag -H a:1 sh -c 'readlink /proc/$PPID/exe'
        code_is 0
        [ "$(cat "$OUT")" = "$(cached_agent)" ]
        chown 65534 "$dir"
        dtrun --rsh './on-list %h' --no-tag -H a:1 sh -c 'readlink /proc/$PPID/exe'
        code_is 0
        grep -q "^$T/run/dtrun/dtrun-agent-" "$OUT"
        chown 0 "$dir"
    done
    clean
}

@test "an agent that does not start even after it was replaced is sent once, not for ever" {
    own_home
    printf '#!/bin/sh\necho start >>"%s/starts"\nexit 3\n' "$T" >broken-agent
    chmod +x broken-agent
    DTRUN_AGENT=$T/broken-agent dtrun --rsh './on-list %h' -H a:1 true
    code_is 125
    [ "$(wc -l <starts)" = 1 ]
    DTRUN_AGENT=$T/broken-agent dtrun --rsh './on-list %h' -H a:1 true
    code_is 125
    [ "$(wc -l <starts)" = 3 ]
    err_has "dtrun: a: agent start: ./on-list, or the command there, exited with code 3"
    clean
}

@test "the agent can be sent to a host whose head reads more than it prints, like that of BusyBox" {
    mkdir bin home
    cat >bin/head <<'END'
#!/usr/bin/env python3
import sys
sys.stdout.buffer.write(sys.stdin.buffer.read(int(sys.argv[2])))
END
    chmod +x bin/head
    make_on_list
    HOME=$T/home PATH=$T/bin:$PATH dtrun --rsh './on-list %h' -H a:1 true
    code_is 0
    ls home/.cache/dtrun/dtrun-agent-*
    clean
}

# Each read makes room for another block, so the time limit starts anew.
@test "sending the agent may take long, as long as it goes on" {
    cat >slow <<'END'
#!/bin/sh
echo "DTRUN-NEED $(uname -m)"
for part in 1 2; do
    while [ ! -e "read.$part" ]; do sleep 0.05; done
    head -c 205000 >/dev/null
    : >"took.$part"
done
exec sleep 300
END
    chmod +x slow
    dtrun_start_clock --rsh './slow %h' -H a:1 true
    for part in 1 2; do
        await_timer 60
        rm "$T/60000.started"
        : >"read.$part"
        await test -e "took.$part" # now so much has been sent, whatever dtrun still does
    done
    await_timer 60
    expire_timer 60
    dtrun_wait
    code_is 125
    grep -qE '^dtrun: a: agent start: [45][0-9]{2} KiB of dtrun-agent were sent, then nothing moved for 60 s; is the network slow or down\?' "$ERR"
    clean
}

@test "a command of --rsh that says nothing has not connected" {
    printf '#!/bin/sh\nexec sleep 600\n' >silent
    chmod +x silent
    dtrun --rsh './silent %h' --start-timeout 1 -H a:1 true
    code_is 125
    err_has "dtrun: a: connection: not done within the 1 s of --start-timeout"
    clean
}

@test "an agent that says why it cannot start is not sent again" {
    own_home
    printf '#!/bin/sh\necho "dtrun-agent: no room" >&2\nexit 125\n' >broken-agent
    chmod +x broken-agent
    for run in 1 2; do
        DTRUN_AGENT=$T/broken-agent dtrun -v --rsh './on-list %h' -H a:1 true
        code_is 125
        err_has "dtrun: a: agent start: "
        err_has "dtrun-agent: no room"
        ! grep -q "sent again" "$ERR" || false
    done
    clean
}

@test "an agent is not sent to a home directory that does not exist" {
    make_on_list
    dtrun --rsh "./on-list %h env HOME=$T/home XDG_RUNTIME_DIR=$T/run" -H a true
    code_is 0
    [ ! -e home ]
    [ ! -e run ]
    mkdir home
    dtrun --rsh "./on-list %h env HOME=$T/home" -H a true
    code_is 0
    [ -d home/.cache/dtrun ]
    clean
}

@test "agents of other versions that have not been used for a month are removed" {
    own_home
    (umask 077 && mkdir -p "$HOME/.cache/dtrun/kept")
    cd "$HOME/.cache/dtrun"
    touch -d '40 days ago' dtrun-agent-x86_64-old kept/dtrun-agent-x86_64-mine
    touch -d '20 days ago' dtrun-agent-x86_64-recent
    touch -m -d '40 days ago' dtrun-agent-x86_64-used
    cd "$T"
    dtrun --rsh './on-list %h' -H a:1 true
    code_is 0
    [ ! -e "$HOME/.cache/dtrun/dtrun-agent-x86_64-old" ]
    for name in dtrun-agent-x86_64-recent dtrun-agent-x86_64-used kept/dtrun-agent-x86_64-mine; do
        [ -e "$HOME/.cache/dtrun/$name" ]
    done
    clean
}

@test "a value of --rsh that is no command is refused before any host is contacted" {
    dtrun --rsh 'ssh host1' -H a true
    code_is 2
    err_has "--rsh ssh host1: it does not say which host"
    dtrun --rsh 'ssh %h' --transport ssh -H a true
    code_is 2
    err_has "--rsh and --transport contradict each other"
    clean
}
