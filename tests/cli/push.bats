#!/usr/bin/env bats
# --push: the program and its files travel to the hosts. (tests/cluster has hosts that lack them.)

load common

@test "a pushed program runs, with pushed files beside it, and both are gone afterwards" {
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

@test "libdtrun goes along with a program that is linked with it" {
    printf '#!/bin/sh\n# libdtrun.so.0\nls "${LD_LIBRARY_PATH%%%%:*}"\n' >linked
    printf '#!/bin/sh\nls "${LD_LIBRARY_PATH%%%%:*}"\n' >plain
    chmod 755 linked plain
    dtrun -np 1 --push linked ./linked
    out_is $'libdtrun.so.0\nlinked\n'
    dtrun -np 1 --push plain ./plain
    out_is $'plain\n'
    clean
}

@test "a file that cannot be sent is refused before anything starts" {
    mkdir dir
    : >file
    : >dir/file
    dtrun -np 1 --push missing touch started
    code_is 2
    err_has "--push missing: No such file or directory"
    dtrun -np 1 --push dir touch started
    code_is 2
    err_has "--push dir: it is not a regular file"
    dtrun -np 1 --push file --push dir/file touch started
    code_is 2
    err_has "--push dir/file: file is already sent under that name"
    [ ! -e started ]
}

@test "a host without room for the file says so" {
    [ "$(id -u)" = 0 ] || skip "needs root to mount a small file system"
    mkdir small
    unshare -m sh -c 'mount -t tmpfs -o size=64k none small 2>/dev/null' || skip "cannot mount"
    head -c 200000 /dev/zero >data
    RC=0
    timeout 20 unshare -m sh -c 'mount -t tmpfs -o size=64k none small && HOME=$PWD/small exec "$@"' \
        sh env "$TOKEN" "$DTRUN" -np 1 --push data touch started >"$OUT" 2>"$ERR" </dev/null || RC=$?
    code_is 125
    err_has "dtrun: localhost: push data: "
    err_has "No space left on device"
    [ ! -e started ]
    clean
}
