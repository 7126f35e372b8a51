#!/usr/bin/env bats
# --push sends the program and its files to the hosts. In tests/cluster the hosts lack them.

load common

@test "a pushed program runs with the pushed files beside it, and all are removed afterwards" {
    mkdir here
    head -c 3000001 /dev/urandom >here/data
    printf '#!/bin/sh\ncd "${LD_LIBRARY_PATH%%%%:*}" && pwd && sha256sum <data\n' >here/program
    : >here/empty
    chmod 755 here/program
    HOME="$T" dtrun -np 1 --push here/program --push here/data --push here/empty ./elsewhere/program
    code_is 0
    grep -qF "$(sha256sum <here/data)" "$OUT"
    [ ! -e "$(head -n 1 "$OUT")" ]
    [ -z "$(ls .cache/dtrun)" ]
    clean
}

@test "a program in a pushed directory runs, and finds what is beside it" {
    mkdir project
    printf '#!/usr/bin/env python3\nimport sys, beside\nprint(beside.__file__, sys.argv[1])\n' >project/train.py
    : >project/beside.py
    chmod 755 project/train.py
    HOME="$T" dtrun -np 1 --push project --wdir / project/train.py x
    code_is 0
    grep -q '^/.*/files/project/beside.py x$' "$OUT"
    dtrun -np 1 --push project --wdir / train.py
    code_is 127
    clean
}

@test "the path of a home directory may be long" {
    local part
    part=$(printf '%0250d' 0)
    mkdir -p "home/$part/$part/$part/$part/$part"
    printf '#!/bin/sh\necho "$0"\n' >program
    chmod 755 program
    HOME="$T/home/$part/$part/$part/$part/$part" dtrun -np 1 --push program ./program
    code_is 0
    [[ "$(cat "$OUT")" == "$T/home/$part/$part/$part/$part/$part/.cache/dtrun/"* ]]
    rmdir "home/$part/$part/$part/$part/$part/.cache/dtrun"
    clean
}

@test "--push also sends libdtrun if the program is linked with it" {
    printf '#!/bin/sh\n# libdtrun.so.0\nls "${LD_LIBRARY_PATH%%%%:*}"\n' >linked
    printf '#!/bin/sh\nls "${LD_LIBRARY_PATH%%%%:*}"\n' >plain
    chmod 755 linked plain
    dtrun -np 1 --push linked ./linked
    out_is $'libdtrun.so.0\nlinked\n'
    dtrun -np 1 --push plain ./plain
    out_is $'plain\n'
    clean
}

@test "pushed files may have the names that the agent itself uses: .part-0, incoming and files" {
    local name
    for name in .part-0 .part-1 incoming files; do
        echo "$name holds this" >"$name"
    done
    HOME="$T" dtrun -np 1 --push .part-0 --push .part-1 --push incoming --push files \
        sh -c 'cd "${LD_LIBRARY_PATH%%%%:*}" && cat .part-0 .part-1 incoming files'
    code_is 0
    out_is ".part-0 holds this
.part-1 holds this
incoming holds this
files holds this
"
    [ -z "$(ls .cache/dtrun)" ]
    clean
}

# Lists every name in a directory with type, mode, content and target.
list() {
    (cd "$1" && find . -mindepth 1 -printf '%p %y %m %l\0' | sort -z | tr '\0' '\n'
        find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

@test "a directory arrives whole, with blanks, links, modes and empty directories, and is removed again" {
    mkdir -p "a dir/sub/deep" "a dir/empty"
    printf '#!/bin/sh\n' >"a dir/sub/run me"
    chmod 751 "a dir/sub/run me"
    head -c 100000 /dev/urandom >"a dir/sub/deep/"$'new\nline'
    : >"a dir/-x"
    chmod 400 "a dir/-x"
    ln -s "sub/run me" "a dir/link"
    ln -s /no/where "a dir/dangling"
    ln -s sub "a dir/linked dir"
    chmod 550 "a dir/sub/deep"
    printf '#!/bin/sh\ncd "${LD_LIBRARY_PATH%%%%:*}" && pwd && echo left >"a dir/empty/behind" && rm "a dir/empty/behind" && cp -a "a dir" "$1" && mkdir more && : >more/file\n' >copy
    chmod 755 copy
    export HOME="$T"
    (cd "a dir" && dtrun -np 1 --push ../copy --push . ./copy "$T/got" && code_is 0)
    chmod 750 "a dir/sub/deep" # so that the owner can remove it
    diff <(list "a dir") <(list got)
    [ ! -e "$(head -n 1 "$OUT")" ]
    [ -z "$(ls .cache/dtrun)" ]
    dtrun -np 1 --push "a dir/" --push copy ./copy "$T/again"
    diff <(list "a dir") <(list again)
    clean
}

@test "--keep links a file that is already there into place, unless it is damaged" {
    head -c 3000000 /dev/urandom >data
    printf '#!/bin/sh\ncd "${LD_LIBRARY_PATH%%%%:*}" && pwd && stat -c "inode %%i" data && sha256sum <data\n' >program
    chmod 755 program
    export HOME="$T"
    dtrun -np 1 --push program --push data ./program
    [ ! -e .cache/dtrun/kept ]
    dtrun -np 1 --keep --push program --push data ./program
    code_is 0
    [ "$(ls .cache/dtrun)" = kept ]
    [ "$(ls .cache/dtrun/kept | wc -l)" = 2 ]
    first="$(grep inode "$OUT")"
    dtrun -np 1 --keep --push program --push data ./program
    code_is 0
    [ "$(grep inode "$OUT")" = "$first" ]
    printf damaged. | dd of="$(find .cache/dtrun/kept -size +1000k)" bs=1 seek=2000000 conv=notrunc status=none
    dtrun -np 1 --keep --push program --push data ./program
    code_is 0
    [ "$(grep inode "$OUT")" != "$first" ]
    grep -qF "$(sha256sum <data)" "$OUT"
    [ "$(ls .cache/dtrun/kept | wc -l)" = 2 ]
    clean
}

# The file system of ~/.cache has this size, and one page is taken.
limit_cache() { # SIZE
    unshare --mount true 2>/dev/null || skip "needs root, to mount a file system"
    mkdir -p .cache
    printf '#!/bin/sh\nexec unshare --mount sh -c "mount -t tmpfs -o size=%s none %s && echo >%s/taken && exec \\"\$@\\"" sh "%s" "$@"\n' \
        "$1" "$T/.cache" "$T/.cache" "$DTRUN_BUILD/cmd/dtrun" >limited
    chmod +x limited
    DTRUN="$T/limited"
}

@test "files are pushed elsewhere if the home directory is full, and one that fills it is reported" {
    head -c 100000 /dev/urandom >data
    export HOME="$T"
    limit_cache 4k
    mkdir -m 700 run
    XDG_RUNTIME_DIR="$T/run" dtrun -np 1 --push data sh -c 'cd "${LD_LIBRARY_PATH%%:*}" && pwd && sha256sum <data'
    code_is 0
    grep -q "^$T/run/dtrun-" "$OUT"
    grep -qF "$(sha256sum <data)" "$OUT"
    limit_cache 64k
    dtrun -np 1 --push data touch started
    code_is 125
    [ ! -e started ]
    grep -Eq "^dtrun: localhost: push data: $T/.cache/dtrun/.*: No space left on device; make room there, or make ~/.cache a link to another file system$" "$ERR"
    clean
}

@test "files are pushed elsewhere if another user can replace what is in the home directory" {
    [ "$(id -u)" = 0 ] || skip "needs root, to make directories of another user"
    printf '#!/bin/sh\necho "${LD_LIBRARY_PATH%%%%:*}"\n' >program
    chmod 755 program
    mkdir -p home/.cache/dtrun
    mkdir -m 700 run
    export HOME="$T/home" XDG_RUNTIME_DIR="$T/run"
    for dir in home home/.cache home/.cache/dtrun; do
        chown 65534 "$dir"
        dtrun -np 1 --push program ./program
        code_is 0
        grep -q "^$T/run/dtrun-" "$OUT"
        chown 0 "$dir"
    done
    chown 65534 home/.cache run
    dtrun -np 1 --push program ./program
    code_is 0
    grep -q "^/tmp/dtrun-" "$OUT"
    clean
}

@test "a cleaner of temporary files leaves the pushed files alone that a restart needs" {
    mkdir -m 700 run
    mkfifo go
    printf '#!/bin/sh\n[ "$DTRUN_RESTART_COUNT" = 1 ] || { echo runs; : <"%s/go"; exit 1; }\n' "$T" >once
    chmod +x once
    HOME=/dev/null XDG_RUNTIME_DIR="$T/run" dtrun_start --max-restarts 1 -np 1 --push once once
    out_has 1 runs
    ! flock --nonblock run/dtrun-* true || false
    if command -v systemd-tmpfiles >/dev/null; then
        echo "e $T/run - - - 0" >clean.conf
        systemd-tmpfiles --clean "$T/clean.conf"
    fi
    : >go
    dtrun_wait
    code_is 0
    [ -z "$(ls run)" ]
    clean
}

@test "pushing a large file takes little memory, and a push that is cut off leaves no partial file" {
    truncate -s 1G big # a small file would be sent completely before the test looks
    export HOME="$T"
    dtrun_start -np 1 --keep --push big touch started
    await sent 50000000
    for pid in "$BACKGROUND" "$(keeper)" "$(worker)"; do
        awk '/VmHWM/ { print; exit $2 > 20000 }' "/proc/$pid/status"
    done
    kill -KILL "$BACKGROUND"
    await cleaned
    becomes_clean
    [ ! -e started ]
}

# Pushes data to a home directory that hangs: opening the kept file blocks until somebody writes to it, as on
# a file system that does not respond.
push_to_stuck_home() { # LEASE
    head -c 100000 /dev/urandom >data
    export HOME="$T"
    dtrun -np 1 --keep --push data true
    code_is 0
    kept=$(echo .cache/dtrun/kept/*)
    rm "$kept"
    mkfifo "$kept"
    dtrun_start --heartbeat "$1" -np 1 --keep --push data sh -c 'sha256sum <"${LD_LIBRARY_PATH%%:*}/data"'
    await eval 'grep -q "does not respond" "$ERR" || gone "$BACKGROUND"'
    err_has "dtrun: localhost: the file system for pushed files (HOME, XDG_RUNTIME_DIR or /tmp) does not respond; waiting for it"
}

# A FIFO takes the place of the pushed file, and blocks whoever opens it.
@test "dtrun goes on while it cannot read a pushed file" {
    cat >swap <<'END'
#!/bin/sh
[ -p data ] || { rm data && mkfifo data; }
shift
exec "$@"
END
    chmod 755 swap
    seq 10000 >data
    cp data copy
    dtrun_start --verbose --rsh './swap %h' -H a --push data touch ran
    await has_line "a: connected" "$ERR"
    kill -INT "$BACKGROUND"
    dtrun_wait
    code_is 130
    [ ! -e ran ]
    rm data
    cp copy data
    dtrun_start --verbose --rsh './swap %h' -H a --push data sh -c 'cat "${LD_LIBRARY_PATH%%:*}/data"'
    await has_line "a: connected" "$ERR"
    cat copy >data
    dtrun_wait
    code_is 0
    cmp copy "$OUT"
    clean
}

@test "dtrun waits many heartbeats for a home directory that hangs" {
    try waits_for_home 1 1 1 1 1
}

# The line appears after five seconds.
waits_for_home() { # LEASE
    push_to_stuck_home "$1"
    timeout "$PATIENCE" sh -c ': >"$1"' sh "$kept"
    dtrun_wait
    code_is 0
    grep -qF "$(sha256sum <data)" "$OUT"
    [ "$(grep -c "does not respond" "$ERR")" = 1 ]
    clean
}

@test "a job that ends while a home directory hangs leaves nothing behind" {
    push_to_stuck_home 600
    kill -KILL "$BACKGROUND"
    becomes_clean
}

sent() { # BYTES
    [ "$(stat -c %s .cache/dtrun/*/incoming/0 2>/dev/null || echo 0)" -ge "$1" ]
}

cleaned() {
    [ "$(ls -A .cache/dtrun)" = kept ] && [ -z "$(ls -A .cache/dtrun/kept)" ]
}

@test "a file that cannot be sent is refused before any rank starts" {
    mkdir dir other
    : >file
    : >dir/file
    mkfifo other/fifo
    dtrun -np 1 --push missing touch started
    code_is 2
    err_has "--push missing: No such file or directory"
    dtrun -np 1 --push other touch started
    code_is 2
    err_has "--push other/fifo: it is neither a regular file nor a directory"
    dtrun -np 1 --push / touch started
    code_is 2
    err_has "--push /: a whole file system is not sent"
    dtrun -np 1 --keep touch started
    code_is 2
    err_has "--keep belongs to --push"
    dtrun -np 1 --push file --push dir/file touch started
    code_is 2
    err_has "--push dir/file: file is already sent under that name"
    [ ! -e started ]
}
