#!/usr/bin/env bats
# dtrun answers a mistake in the request with one message and exit code 2, and starts nothing.
bats_require_minimum_version 1.5.0

setup() {
    dir=$BATS_TEST_TMPDIR
    cd "$dir"
    # This agent leaves a mark if it is started, which no test here may cause.
    printf '#!/bin/sh\ntouch "%s/started"\n' "$dir" >agent
    chmod +x agent
    export DTRUN_AGENT=$dir/agent HOME=$dir
}

teardown() {
    [ ! -e "$dir/started" ]
}

dtrun() {
    timeout 180 "$DTRUN_BUILD/cmd/dtrun" "$@"
}

# refuses TEXT ARGS...: dtrun ARGS... prints exactly "dtrun: TEXT".
refuses() {
    local text=$1
    shift
    run dtrun "$@"
    [ "$output" = "dtrun: $text" ] || { echo "said: $output"; return 1; }
    [ "$status" -eq 2 ] || { echo "exit code $status"; return 1; }
}

# mentions TEXT ARGS...: dtrun ARGS... prints one line that contains TEXT.
mentions() {
    local text=$1
    shift
    run dtrun "$@"
    [[ "$output" == "dtrun: "*"$text"* ]] || { echo "said: $output"; return 1; }
    [ "${#lines[@]}" -eq 1 ]
    [ "$status" -eq 2 ] || { echo "exit code $status"; return 1; }
}

@test "a command line without a program is refused" {
    refuses "no program was given; usage: dtrun [options] PROGRAM [ARGS...], see dtrun --help"
    mentions "no program was given" -np 4
    mentions "no program was given" -np 4 --
}

@test "unknown options and missing values are refused" {
    refuses "--bad is not an option; see dtrun --help, and dtrun-migrate(7) for those of other launchers" --bad true
    mentions "-np: a value (N) is missing" -np
    mentions "--dry-run takes no value" --dry-run=1 true
}

@test "-np refuses 0, abc, -1 and 99999999, and other options refuse fractions, too" {
    refuses "-np 0: a number from 1 to 1000000 was expected" -np 0 true
    refuses "-np abc: a number was expected" -np abc true
    refuses "-np -1: a whole number from 1 to 1000000 was expected" -np -1 true
    refuses "-np 99999999: a number from 1 to 1000000 was expected" -np 99999999 true
    refuses "-np 99999999999999999999: a number from 1 to 1000000 was expected" \
        -np 99999999999999999999 true
    refuses "--timeout 0.2: a whole number from 1 to 10000000 was expected" --timeout 0.2 true
}

@test "a blank before or after a comma in -H is recognised" {
    refuses '"host2:2" looks like a host, not like a program: is there a blank before or after a comma in -H?' \
        -np 4 -H host1:2, host2:2 ./train
    mentions "a host is missing before or after a comma" -np 4 -H host1:2, true
    mentions '"[fe80::2]:2" looks like a host' -H host1:2, [fe80::2]:2 true
    mentions '",host2" looks like a host' -H host1:2 ,host2 true
    mentions "hosts are given with -H" -np 4 host1:2 true
}

@test "a blank instead of a comma in -H is recognised" {
    printf '#!/bin/sh\n' >prog
    chmod +x prog
    refuses '"host2" is not found here, but "./prog" is: is there a blank instead of a comma in -H?'\
' If not, write -- before the program' -H localhost:1 host2 ./prog
    mentions '"u@host2.example" is not found here, but "true" is' -H host1 u@host2.example true
    # A word that may well be the program is taken as the program.
    for words in "-- host2 ./prog" "host ./prog" "-np 1 host2 ./prog" "host2" "host2 -x" "sh ./prog"; do
        run --separate-stderr dtrun --dry-run -H localhost:1 $words
        [ "$status" -eq 0 ] || { echo "$words: $stderr"; return 1; }
        [ -z "$stderr" ]
    done
    # Neither file is here, but both may be on the hosts. dtrun asks, and the job goes on.
    run --separate-stderr dtrun --dry-run -H localhost:1 host2 ./none
    [ "$status" -eq 0 ]
    [ "$stderr" = 'dtrun: "host2" is not found here: is there a blank instead of a comma in -H?'\
' If not, write -- before the program' ]
}

@test "a Python file that cannot be executed by itself is refused, with the command that runs it" {
    printf 'print(1)\n' >train.py
    refuses "train.py cannot be executed by itself: write python3 train.py" train.py
    refuses "./train.py cannot be executed by itself: write python3 ./train.py" -np 2 ./train.py -x
    chmod +x train.py
    refuses "train.py cannot be executed by itself: write python3 train.py" train.py
    printf '#!/usr/bin/env python3\nprint(1)\n' >train.py
    refuses "train.py is not in PATH: write ./train.py, or python3 train.py" train.py
    run dtrun --dry-run ./train.py
    [ "$status" -eq 0 ]
    PATH=$PWD:$PATH run dtrun --dry-run train.py
    [ "$status" -eq 0 ]
    # A file that is not here may be on the hosts.
    for words in "elsewhere.py" "--wdir /tmp train.py" "python3 train.py"; do
        run dtrun --dry-run $words
        [ "$status" -eq 0 ] || { echo "$words: $output"; return 1; }
    done
}

@test "blanks inside a quoted -H are accepted" {
    run dtrun -H " localhost:1 , localhost:2 " --dry-run true
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 4 ]
}

@test "an IPv6 address in -H must have brackets" {
    mentions "must stand in brackets" -H fe80::1:4 true
}

@test "--fanout, --ssh-port, --start-timeout, --ssh-user and --ssh-identity refuse unusable values" {
    for wrong in 0 65537; do
        mentions "--fanout $wrong: a number " --fanout $wrong true
        mentions "--ssh-port $wrong: a number " --ssh-port $wrong true
    done
    mentions "--fanout -1: a whole number from 1 to 65536 was expected" --fanout -1 true
    mentions "--fanout many: a number was expected" --fanout many true
    mentions "--start-timeout 0: a number from 1 " --start-timeout 0 true
    mentions "--ssh-user a b: a b cannot be a user's name" --ssh-user "a b" true
    mentions "--ssh-user -oX: -oX cannot be a user's name" --ssh-user=-oX true
    mentions "--ssh-identity : a value was expected" --ssh-identity "" true
}

@test "names that ssh would take for options are refused" {
    mentions "cannot be a host's name" -H -oProxyCommand=touch true
    mentions "cannot be a user's name" -H -oProxyCommand=touch@h true
}

@test "a mistake in a hostfile is reported with file and line" {
    printf 'host1 slots=2\n# fine\nhost2 slots=abc\n' >nodes
    refuses "nodes:3: slots=abc: a number was expected" -np 4 --hostfile nodes ./train
    printf 'host1\r\nhost2 slots=-1\r\n' >nodes
    refuses "nodes:2: slots=-1: a whole number from 0 to 1000000 was expected" --hostfile nodes true
    printf 'u@v@host1\n' >nodes
    refuses "nodes:1: u@v@host1: there is a second @" --hostfile nodes true
    printf 'host1\n\n  host2 slot=2' >nodes
    mentions "nodes:3: slot= is unknown; known are: slots " --hostfile nodes true
    printf 'node[1-2\n' >nodes
    refuses "nodes:1: node[1-2: a bracket is not matched" --hostfile nodes true
    printf 'host1\n^host2\n' >nodes
    refuses "nodes:2: ^host2: no line of this file names that host" --hostfile nodes true
}

@test "a hostfile that cannot be read is refused" {
    refuses "hostfile missing: No such file or directory" --hostfile missing true
    refuses "hostfile $dir: Is a directory" -hostfile "$dir" true
    : >empty
    refuses "empty: the file names no host" --machinefile empty true
}

@test "dtrun says so when the current directory is gone" {
    mkdir gone
    cd gone
    rmdir ../gone
    run -125 dtrun -np 1 true
    [ "$output" = "dtrun: the current directory: No such file or directory; start dtrun in another one" ]
}

@test "-H may not name a host that the hostfile lacks" {
    printf 'host1\nhost2\n' >nodes
    refuses "host3: -H names it, but the hostfile does not; -H selects hosts from there, and --hostfile replaces all of them" -H host1,host3 --hostfile nodes true
}

@test "--no-oversubscribe refuses more ranks than slots" {
    mentions "16 ranks do not fit on 8 slots" -np 16 -H localhost:4,localhost:4 --no-oversubscribe true
}

@test "-x refuses variables that dtrun sets itself" {
    mentions "-np decides it" -x WORLD_SIZE=4 true
    mentions "gpus= in a hostfile" -x CUDA_VISIBLE_DEVICES=0 true
    mentions "with --gpu-bind none, -x decides" -x CUDA_VISIBLE_DEVICES=0 true
    mentions "this cannot be the name of a variable" -x 9=1 true
}

@test "options that contradict each other are refused" {
    mentions "--resume and --fresh contradict each other" --resume --fresh --checkpoint-dir d true
    mentions "--resume needs --checkpoint-dir" --resume true
    mentions "--tag and --no-tag contradict each other" --tag --no-tag true
    mentions "--tee belongs to --output-dir" --tee true
    mentions "--virtual-local-rank and --gpu-bind host contradict each other" \
        --virtual-local-rank --gpu-bind host true
    mentions "--push and --no-push contradict each other" --push f --no-push true
}

@test "--stdin refuses a rank that the job does not have" {
    refuses "--stdin 2: the job has only 2 ranks, numbered from 0" -np 2 --stdin 2 true
    mentions "--stdin some: a number" --stdin some true
    mentions "--stdin -1: " --stdin -1 true
}

@test "--inject refuses a fault that can never be triggered" {
    mentions "the job has no rank 4, only 4 ranks" -np 4 --inject kill:rank=4,step=1 true
    mentions "unknown fault" --inject boom:rank=1 true
}

@test "several programs in one job are refused" {
    mentions "are not supported" -np 1 true : -np 2 false
}

@test "--help and --version print to standard output" {
    run --separate-stderr dtrun --help
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ "$output" == "usage: dtrun [options] PROGRAM [ARGS...]"* ]]
    run --separate-stderr dtrun --version
    [ "$status" -eq 0 ]
    [[ "$output" =~ ^"dtrun "[0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "help or a plan whose reader has left ends silently with 141" {
    mkfifo pipe
    exec 7<>pipe 8>pipe 7<&-
    for option in --help --version "--completion bash" "--dry-run true" "--dry-run --json true"; do
        # shellcheck disable=SC2086
        dtrun $option 2>err >&8 && return 1
        RC=$?
        [ "$RC" -eq 141 ] || { echo "$option: exit code $RC"; return 1; }
        [ ! -s err ] || { cat err; return 1; }
    done
}

@test "--help and --version fail if their output cannot be written" {
    [ -c /dev/full ] || skip "there is no /dev/full"
    for option in --help --version; do
        run bash -c '"$1" $2 >/dev/full' - "$DTRUN_BUILD/cmd/dtrun" $option
        [ "$status" -eq 125 ]
        [ "$output" = "dtrun: standard output cannot be written: No space left on device" ]
    done
}
