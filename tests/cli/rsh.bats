#!/usr/bin/env bats
# Hosts that are reached by a command of the user's (--rsh): here two that run everything on this
# machine, each as one kind of such commands does.

load common

# Joins its arguments for a shell, as rsh does.
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

@test "--rsh with a command that takes a list of arguments" {
    as_list
    dtrun --rsh './on-list %h' --no-tag -H a:2,b:2 sh -c "$SAY"
    code_is 0
    each_host_ran
    clean
}

@test "--rsh with a command that joins its arguments for a shell" {
    as_shell
    dtrun --rsh './on-shell %h %c' --no-tag -H a:2,b:2 sh -c "$SAY"
    code_is 0
    each_host_ran
    clean
}

@test "--rsh carries large output, standard input and exit codes" {
    as_list
    head -c 3000000 /dev/urandom | base64 >big
    STDIN=big dtrun --rsh './on-list %h' --no-tag -H a:1,b:1 sh -c 'cat; [ "$RANK" = 0 ] || exit 0; exit 7'
    code_is 7
    cmp big "$OUT"
    clean
}

@test "a command that fails is told with its words, and nothing runs" {
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

@test "a command that is not there is told, and what to do" {
    dtrun --rsh './none %h' -H a true
    code_is 125
    err_has "./none: no such file or directory; install it, or choose another --rsh or --transport"
    clean
}

@test "a command that is killed in mid-job is a lost host" {
    as_list
    dtrun_start --rsh './on-list %h' -H a:1,b:1 sh -c 'echo up; exec sleep 600'
    await eval '[ "$(grep -c up "$OUT")" = 2 ]'
    kill -KILL "$(pgrep -P "$BACKGROUND" | head -1)"
    dtrun_wait
    [ "$RC" != 0 ]
    becomes_clean
}

@test "--rsh that is no command is refused before any host is reached" {
    dtrun --rsh 'ssh host1' -H a true
    code_is 2
    err_has "--rsh ssh host1: it says nowhere which host"
    dtrun --rsh 'ssh %h' --transport ssh -H a true
    code_is 2
    err_has "--rsh and --transport contradict each other"
    clean
}
