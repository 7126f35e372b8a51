#!/usr/bin/env bats
# --completion: what the shells offer while the user types a command line.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR"
    export HOME=$BATS_TEST_TMPDIR
    mkdir -p .ssh sub/inner
    printf 'Host gpu-a gpu-b *.example\n  User me\nhost=gpu-c\n' >.ssh/config
    printf 'known1,10.0.0.1 ssh-ed25519 AAAA\n|1|hashed= ssh-ed25519 AAAA\n' >.ssh/known_hosts
    printf '# nodes\nlisted1 slots=2\n  listed2:4\n' >nodes
    touch notes
    printf '#!/bin/sh\n' >train
    chmod +x train
    dtrun --completion bash >script
}

dtrun() {
    timeout 180 "$DTRUN_BUILD/cmd/dtrun" "$@"
}

# Prints the words that bash offers after the line, one a line, as it hands them to readline.
offered() { # LINE
    timeout 180 bash -c '
        source ./script
        COMP_WORDBREAKS="${3:-$COMP_WORDBREAKS}" COMP_LINE=$1 COMP_POINT=${#1}
        COMPREPLY=()
        ${2:-_dtrun}
        [ ${#COMPREPLY[@]} = 0 ] || printf "%s\n" "${COMPREPLY[@]}"' bash "$1" "" "${2:-}" | sort
}

offers() { # LINE WORD...
    local line=$1

    shift
    offered "$line" >got
    [ $# = 0 ] || printf '%s\n' "$@" | sort >want
    [ $# != 0 ] || : >want
    echo "after: $line"
    diff want got
}

@test "bash offers every option of --help, with one dash and with two" {
    dtrun --help | sed -nE 's/^  (-.*)/\1/p' | sed -E 's/  .*//' | tr ',' '\n' |
        sed -nE 's/^ *(--?[a-zA-Z-]+).*/\1/p' | sort >want
    [ "$(wc -l <want)" -gt 25 ]
    offered 'dtrun -' | diff want -
    offered 'dtrun -np 4 --' | diff <(sed -E 's/^--?//' want | grep .. | sed 's/^/--/' | sort) -
    offers 'dtrun --hos' --host --hosts --hostfile
    offers 'dtrun -hos' -host -hosts -hostfile
    offers 'dtrun --nothing-like-it'
}

@test "bash offers words, files, directories, variables and hosts where an option takes them" {
    offers 'dtrun --map-by ' node slot
    offers 'dtrun --transport l' libssh2 local
    offers 'dtrun -np 4 --stdin ' all none
    offers 'dtrun --npernode ' auto cpu gpu
    offers 'dtrun --hostfile n' nodes notes
    offers 'dtrun --wdir ' .ssh sub
    offers 'dtrun --wdir sub/' sub/inner
    offers 'dtrun --push no' nodes notes
    [ ! -e /sys/class/net/lo ] || offered 'dtrun --iface eth9,l' | grep -qx eth9,lo
    DTRUN_SEEN=1 offers 'dtrun -x DTRUN_SEE' DTRUN_SEEN
    offers 'dtrun -H ' gpu-a gpu-b gpu-c known1
    offers 'dtrun --hostfile nodes -H l' listed1 listed2
    offers 'dtrun --hostfile=nodes -H l' listed1 listed2
    offers 'dtrun -np '
    offered 'dtrun --ssh-user ro' | grep -qx root
}

@test "after = or a comma bash replaces only the part of the word that readline completes" {
    offers 'dtrun --map-by=' node slot
    offers 'dtrun --map-by=n' node
    offers 'dtrun -H gpu-b,gpu-' gpu-b,gpu-a gpu-b,gpu-b gpu-b,gpu-c
    offers 'dtrun -H gpu-b:4,gpu-a' 4,gpu-a
    offers 'dtrun --inject kill' kill:rank=
    offers 'dtrun --inject kill:' rank=
    [ "$(offered 'dtrun --map-by=n' ' ')" = --map-by=node ]
    [ "$(offered 'dtrun -H gpu-b:4,gpu-a' ' ')" = gpu-b:4,gpu-a ]
}

@test "bash offers the program, and leaves the program's arguments alone" {
    offered 'dtrun -np 4 sle' | grep -qx sleep
    offered 'dtrun -- sle' | grep -qx sleep
    offered 'dtrun ./tra' | grep -qx ./train
    offered 'dtrun s' | grep -qx sub
    offers 'dtrun -np 4 ./train --'
    offers 'dtrun -np 4 ./train --map-by '
    offers 'dtrun -- ./train -'
    offers 'dtrun --wrong 4 '
}

@test "the script for zsh has every option with its values" {
    dtrun --completion zsh >zscript
    dtrun --help | sed -nE 's/^  (-.*)/\1/p' | sed -E 's/  .*//' | tr ',' '\n' |
        sed -nE 's/^ *(--?[a-zA-Z-]+).*/\1/p' | sort >want
    sed -nE "s/^    '\*(--?[a-zA-Z-]+)=?\[.*/\1/p" zscript | sort >got
    [ -z "$(comm -23 want got)" ]
    grep -qF -- "--map-by=[fill host after host" zscript
    grep -qF -- ":slot|node:(slot node)'" zscript
    grep -qF -- ":COUNT:(gpu cpu auto)'" zscript
    grep -qF -- ' agent\:node= agent\:rank=)' zscript
    grep -qF -- ":HOSTS:_sequence _hosts'" zscript
    grep -q -- "--hostfile=\[.*:FILE:_files'" zscript
    [ "$(head -1 zscript)" = "#compdef dtrun" ]
    command -v zsh >/dev/null || skip "zsh is not installed: its syntax was not checked"
    zsh -n zscript
}

@test "the script for fish has every option with its values" {
    dtrun --completion fish >fishscript
    dtrun --help | sed -nE 's/^  (-.*)/\1/p' | sed -E 's/  .*//' | tr ',' '\n' |
        sed -nE 's/^ *--?([a-zA-Z-]+).*/\1/p' | sort >want
    grep '^complete -c dtrun -n' fishscript | grep -oE ' -[sl] [a-zA-Z-]+' | cut -d' ' -f3 | sort >got
    diff want got
    grep -q -- "-l map-by -o map-by -r -f -a 'slot node' -d" fishscript
    grep -q -- "-l hostfile -o hostfile -l machinefile -o machinefile -r -d" fishscript
    command -v fish >/dev/null || skip "fish is not installed: its syntax was not checked"
    fish --no-execute fishscript
    fish_offers 'dtrun --map-by ' node slot
    fish_offers 'dtrun --npernode ' auto cpu gpu
    fish_offers 'dtrun -np 2 --hea' --heartbeat # fish 4 also offers what has these letters in this order
    fish_offers 'dtrun --hostfile=no' --hostfile=nodes --hostfile=notes
    fish_offers 'dtrun -np 2 ./tra' ./train
    fish_offers 'dtrun -- ./tra' ./train
    fish_offers 'dtrun -np 2 ./train --map'
}

fish_offers() { # LINE WORD...
    timeout 180 fish -c 'source fishscript; complete -C $argv[1]' "$1" | cut -f1 | sort >got
    shift
    [ $# = 0 ] || printf '%s\n' "$@" | sort >want
    [ $# != 0 ] || : >want
    diff want got
}

@test "the shells offer dtrun's own options only, not those of other launchers" {
    for shell in bash zsh fish; do
        run ! grep -qE -- '(nproc-per-node|rdzv|allow-run-as-root|timestamp-output)' \
            <(dtrun --completion "$shell")
    done
}

@test "--completion needs no program and no configuration, and fails if its output cannot be written" {
    run dtrun --config gone --completion bash
    [ "$status" -eq 0 ]
    run bash -c "'$DTRUN_BUILD/cmd/dtrun' --completion zsh >/dev/full"
    [ "$status" -eq 125 ]
    run dtrun --completion csh
    [ "$status" -eq 2 ]
    [ "$output" = "dtrun: --completion csh: bash, zsh or fish was expected" ]
}
