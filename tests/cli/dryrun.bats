#!/usr/bin/env bats
# --dry-run prints the plan, as a table or as JSON, without connecting to any host.
bats_require_minimum_version 1.5.0

load ../await

setup() {
    cd "$BATS_TEST_TMPDIR"
    printf '#!/bin/sh\ntouch "%s/started"\n' "$BATS_TEST_TMPDIR" >agent
    chmod +x agent
    export DTRUN_AGENT=$BATS_TEST_TMPDIR/agent HOME=$BATS_TEST_TMPDIR
    unset CUDA_VISIBLE_DEVICES SLURM_JOB_NODELIST PBS_NODEFILE LSB_DJOB_HOSTFILE LSB_MCPU_HOSTS PE_HOSTFILE \
        OAR_NODEFILE
}

teardown() {
    [ ! -e "$BATS_TEST_TMPDIR/started" ]
}

dtrun() {
    "$TIMEOUT" 180 "$DTRUN_BUILD/cmd/dtrun" "$@"
}

need_jq() {
    command -v jq >/dev/null || skip "jq is not installed"
}

@test "--dry-run prints the placement table" {
    cat >nodes <<'END'
host1 slots=3 gpus=0,2,3 addr=10.0.0.1
host2 slots=1
[fe80::2]:2 gpus=
END
    cat >want <<'END'
rank  host     local  device  interface
   0  host1        0       0  10.0.0.1
   1  host1        1       2  10.0.0.1
   2  host1        2       3  10.0.0.1
   3  host2        0       ?  ?
   4  fe80::2      0    none  ?
   5  fe80::2      1    none  ?
END
    dtrun --hostfile nodes --dry-run ./train >got
    diff -u want got
}

@test "--dry-run does not contact the hosts, so they need not exist" {
    run --separate-stderr dtrun -np 4 -H no-such-host.invalid:2,192.0.2.1:2 --dry-run ./train
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [ "${#lines[@]}" -eq 5 ]
}

@test "16 ranks on 8 slots are placed 8 and 8, share devices, and cause one warning" {
    run --separate-stderr dtrun -np 16 -H host1:4,host2:4 --dry-run --json ./train
    [ "$status" -eq 0 ]
    [ "$stderr" = "dtrun: 16 ranks on 8 slots: 2 ranks per slot, devices are shared \
(--no-oversubscribe refuses this)" ]
    need_jq
    [ "$(jq -c '[.np, .slots, .nodes, .oversubscribed]' <<<"$output")" = "[16,8,2,true]" ]
    [ "$(jq -c '[.ranks[] | select(.host == "host1").local_rank]' <<<"$output")" = "[0,1,2,3,4,5,6,7]" ]
    [ "$(jq -c '[.ranks[] | select(.host == "host2").rank]' <<<"$output")" = \
        "[8,9,10,11,12,13,14,15]" ]
}

@test "--json lists every rank, with null for what only the host knows" {
    need_jq
    printf 'host1:2 gpus=5,GPU-8d addr=10.0.0.1\nhost2\n' >nodes
    dtrun --hostfile nodes --dry-run --json ./train 'a "b"' $'\xff' >got
    [ "$(jq -c .command got)" = '["./train","a \"b\"","�"]' ]
    [ "$(jq -c '.ranks[1]' got)" = '{"rank":1,"host":"host1","local_rank":1,"local_size":2,'\
'"node_rank":0,"device":"GPU-8d","interface":"10.0.0.1"}' ]
    [ "$(jq -c '.ranks[2]' got)" = '{"rank":2,"host":"host2","local_rank":0,"local_size":1,'\
'"node_rank":1,"device":null,"interface":null}' ]
    [ "$(jq '.ranks | length' got)" -eq 3 ]
}

# A terminal may take U+009B for ESC [.
@test "JSON escapes all control characters, and changes no others" {
    need_jq
    local texts=($'\e[1m' $'\xc2\x9b1m' $'\x7f' $'\xc2\xa0' $'\xc3\x9b' '\u009b' $'\xc2\x80\xc2\x9f')
    dtrun --dry-run --json true "${texts[@]}" >got
    LC_ALL=C run -1 grep -a $'\x1b\|\xc2[\x80-\x9f]\|\x7f' got
    [ "$(jq -r '.command[]' got)" = "$(printf '%s\n' true "${texts[@]}")" ]
}

@test "without hosts, all ranks run on localhost: one, or as many as -np says" {
    run dtrun --dry-run true
    [ "${#lines[@]}" -eq 2 ]
    run dtrun -np 3 --dry-run true
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 4 ]
    [[ "${lines[3]}" == *"2  localhost"*"2"*"?"*"-" ]]
}

@test "--npernode starts that many ranks on each host, numbered host by host" {
    need_jq
    dtrun --npernode 2 -H 'host1,host2:4' --dry-run --json true >got 2>warning
    [ ! -s warning ]
    [ "$(jq -c '[.ranks[] | [.host, .local_rank]]' got)" = \
        '[["host1",0],["host1",1],["host2",0],["host2",1]]' ]
    [ "$(jq -c '[.np, .slots, .oversubscribed]' got)" = '[4,6,false]' ]
    dtrun -np 2 -ppr 2 -H 'host[1-4]' --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["host1","host1"]' ]
    dtrun --npernode 3 --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["localhost","localhost","localhost"]' ]
}

@test "--gpu-bind decides which devices a rank sees" {
    need_jq
    devices() { dtrun "$@" --dry-run --json true >got; jq -c '[.ranks[].device]' got; }
    printf 'localhost slots=2 gpus=4,5,6\n' >nodes
    [ "$(devices --hostfile nodes)" = '["4","5"]' ]
    [ "$(devices --hostfile nodes --gpu-bind host)" = '["4,5","4,5"]' ]
    [ "$(devices --hostfile nodes --gpu-bind none)" = '[null,null]' ]
    export CUDA_VISIBLE_DEVICES=2,3
    [ "$(devices --hostfile nodes --gpu-bind none)" = '["2,3","2,3"]' ]
    [ "$(devices --hostfile nodes --gpu-bind none --unset CUDA_VISIBLE_DEVICES)" = '[null,null]' ]
    [ "$(devices -H host1:2 --gpu-bind host)" = '[null,null]' ]
    [ "$(devices -H host1:2 --gpu-bind none)" = '[null,null]' ]
    [ "$(devices -H host1:2 --gpu-bind none -x CUDA_VISIBLE_DEVICES)" = '["2,3","2,3"]' ]
    [ "$(devices -H host1:2 --gpu-bind none -x CUDA_VISIBLE_DEVICES=4)" = '["4","4"]' ]
}

@test "--dry-run prints the value of --bind-to" {
    need_jq
    dtrun -H a --dry-run --json true >got
    [ "$(jq -r .bind_to got)" = none ]
    dtrun -H a --dry-run --json --bind-to socket true >got
    [ "$(jq -r .bind_to got)" = socket ]
    dtrun -H a --dry-run --bind-to core true >got
    [ "$(tail -1 got)" = "each rank is bound to CPUs of its host: --bind-to core" ]
}

@test "--map-by node places one rank on each host in turn" {
    need_jq
    dtrun --map-by node -H a:3,b:1,c:2 --dry-run --json true >got
    [ "$(jq -c '[.ranks[] | [.rank, .host, .local_rank, .local_size, .node_rank]]' got)" = \
        '[[0,"a",0,3,0],[1,"b",0,1,1],[2,"c",0,2,2],[3,"a",1,3,0],[4,"c",1,2,2],[5,"a",2,3,0]]' ]
    dtrun --map-by node -H a:3,b:1,c:2 --dry-run true >got
    [ "$(awk 'NR > 1 { print $1, $2, $3 }' got | paste -sd, -)" = \
        "0 a 0,1 b 0,2 c 0,3 a 1,4 c 1,5 a 2" ]
    dtrun --map-by=node --npernode 2 -H a,b --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["a","b","a","b"]' ]
    dtrun --map-by slot -H a:2,b:2 --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["a","a","b","b"]' ]
}

@test "--npernode may exceed the slots, but not contradict -np" {
    run dtrun --npernode 4 -H a:8,b:2 --dry-run true
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "dtrun: 8 ranks on 10 slots: up to 2 ranks per slot, devices are shared \
(--no-oversubscribe refuses this)" ]
    run dtrun -np 6 --npernode 4 -H a,b --dry-run true
    [ "$status" -eq 2 ]
    [ "$output" = "dtrun: --npernode 4: 6 ranks cannot be placed with 4 on each host" ]
    run dtrun -np 16 --npernode 4 -H a,b --dry-run true
    [ "$status" -eq 2 ]
    [ "$output" = "dtrun: --npernode 4: 16 ranks are too many: 4 on each of 2 hosts are 8" ]
}

@test "inside an allocation, hosts and slots come from the scheduler" {
    need_jq
    export SLURM_JOB_NODELIST='node[01-02],gpu7' SLURM_TASKS_PER_NODE='2(x2),1'
    dtrun --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["node01","node01","node02","node02","gpu7"]' ]
    dtrun -H gpu7,node01:1 --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["node01","gpu7"]' ]
    run dtrun -H node03 --dry-run true
    [ "$status" -eq 2 ]
    [ "$output" = "dtrun: node03: -H names it, but the Slurm allocation does not; -H selects hosts from there, and --hostfile replaces all of them" ]
    dtrun --hostfile - --dry-run --json true <<<"other" >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["other"]' ]
    SLURM_TASKS_PER_NODE=2 run dtrun --dry-run true
    [ "$status" -eq 2 ]
    [[ "$output" == "dtrun: SLURM_TASKS_PER_NODE=2: it has slots for 1 host, but "* ]]
    unset SLURM_JOB_NODELIST

    printf 'a\na\nb\n' >nodes
    PBS_NODEFILE=nodes dtrun --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["a","a","b"]' ]
    PBS_NODEFILE=gone run dtrun --dry-run true
    [ "$status" -eq 2 ]
    [ "$output" = "dtrun: PBS_NODEFILE=gone: No such file or directory" ]
    LSB_MCPU_HOSTS="a 1 b 2" dtrun --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["a","b","b"]' ]
}

@test "options on the command line override those in a configuration file" {
    need_jq
    printf '# mine\n; too\n\n hosts = a:2, b:2 \r\nhostfile=\nno-oversubscribe = yes' >bad
    run dtrun --config bad --dry-run true
    [ "$status" -eq 2 ]
    [ "$output" = "dtrun: bad:5: hostfile : a value was expected" ]
    printf 'np = 2\nhosts = a:2,::1' >bad
    run dtrun --config bad --dry-run true
    [ "$status" -eq 2 ]
    [[ "$output" = "dtrun: bad:2: -H: ::1: an IPv6 address must stand in brackets, as in "* ]]
    printf '\xef\xbb\xbf# mine\n; too\n\n hosts = a:2, b:2 \r\nno-oversubscribe = yes\nfresh = yes' >config
    dtrun --config config --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["a","a","b","b"]' ]
    dtrun --config config -H c --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["c"]' ]
    dtrun --config config --hostfile - --dry-run --json true <<<"d" >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["d"]' ]
    dtrun --config config --resume --checkpoint-dir d --dry-run true
    run dtrun --config config -np 5 --dry-run true
    [ "$status" -eq 2 ]
    [[ "$output" == *"--no-oversubscribe was given" ]]
    mkdir -p .config/dtrun
    echo 'np = 3' >.config/dtrun/config
    dtrun --dry-run --json true >got
    [ "$(jq .np got)" -eq 3 ]
    dtrun -np 2 --dry-run --json true >got
    [ "$(jq .np got)" -eq 2 ]
    dtrun --config /dev/null --dry-run --json true >got
    [ "$(jq .np got)" -eq 1 ]
}

# It may name commands, as with --rsh.
@test "a configuration file that any user can write to is refused, unless it is named" {
    local why="another user may write to it; make it yours, with mode 644"

    mkdir -p .config/dtrun
    echo 'np = 3' >.config/dtrun/config
    refused() {
        run dtrun --dry-run true
        [ "$status" -eq 2 ]
        [ "$output" = "dtrun: configuration file $HOME/.config/dtrun/config: $why" ]
        dtrun --config .config/dtrun/config --dry-run true
    }
    chmod 646 .config/dtrun/config
    refused
    chmod 664 .config/dtrun/config # as with umask 002
    dtrun --dry-run true
    [ "$(id -u)" = 0 ] || skip "the rest needs root, to make another user's file"
    chown 65534 .config/dtrun/config
    refused
}

@test "a relative path in a configuration file starts at the current directory, ~/ at the home directory" {
    need_jq
    mkdir -p work elsewhere
    echo a >nodes
    echo b >work/nodes
    echo c >elsewhere/nodes
    echo 'hostfile = nodes' >elsewhere/config
    (cd work && dtrun --config ../elsewhere/config --dry-run --json true) >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["b"]' ]
    echo 'hostfile = ~/nodes' >elsewhere/config
    (cd work && dtrun --config ../elsewhere/config --dry-run --json true) >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["a"]' ]
}

@test "a mistake in a configuration file is reported with its line number" {
    while IFS='|' read -r line want; do
        printf 'np = 2\n%s\n' "$line" >config
        run dtrun --config config --dry-run true
        [ "$status" -eq 2 ]
        echo "$output"
        [ "$output" = "dtrun: config:2: $want" ]
    done <<'END'
heartbeet = 3|heartbeet is not an option; see dtrun --help
np = x|np x: a number was expected
np|np: option = value was expected
= 3|= 3: option = value was expected
[main]|[main]: option = value was expected
verbose = true|verbose true: yes or no was expected
help = yes|help belongs on the command line
config = other|config belongs on the command line
END
    run dtrun --config gone --dry-run true
    [ "$status" -eq 2 ]
    [ "$output" = "dtrun: configuration file gone: No such file or directory" ]
}

@test "two names of this machine count as one host" {
    need_jq
    dtrun -H "localhost:2,host2:1,127.0.0.1:1" --dry-run --json true >got
    [ "$(jq -c '[.ranks[] | [.host, .local_rank]]' got)" = \
        '[["localhost",0],["localhost",1],["localhost",2],["host2",0]]' ]
}

@test "--dry-run knows this machine's CUDA_VISIBLE_DEVICES" {
    need_jq
    CUDA_VISIBLE_DEVICES=2,3 dtrun -np 3 -H localhost:2 --dry-run --json true >got 2>/dev/null
    [ "$(jq -c '[.ranks[].device]' got)" = '["2","3","2"]' ]
}

@test "-H filters the hosts of a hostfile" {
    need_jq
    printf 'node[01-04] slots=2\n^node02\n' >nodes
    dtrun -H node01,node03:1 --hostfile nodes --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["node01","node01","node03"]' ]
}

@test "hostfiles may have comments, CRLF, tabs, duplicates, ranges, removals and no last newline" {
    need_jq
    printf '# nodes\r\n\r\n\ta\tslots = 2 # two\r\nb:1\nA slots=1\n  n[08-10]:1 max_slots =2\n^n09\n\n^b\nme@[fe80::7]' >nodes
    dtrun --hostfile nodes --dry-run --json true >got
    [ "$(jq -c '[.ranks[].host]' got)" = '["a","a","a","n08","n10","fe80::7"]' ]
}

@test "--hostfile - reads the hostfile from standard input" {
    run dtrun --hostfile - --dry-run true <<<"a slots=2"
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 3 ]
    run dtrun --hostfile - --dry-run true <<<"a slots=x"
    [ "$output" = "dtrun: standard input:1: slots=x: a number was expected" ]
}

@test "a hostfile line of 60,000 ranges is refused without using much memory" {
    printf '[0]%.0s' {1..60000} >nodes
    run bash -c 'ulimit -v 500000; timeout 180 "$DTRUN_BUILD/cmd/dtrun" --hostfile nodes --dry-run true'
    [ "$status" -eq 2 ]
    [[ "$output" == "dtrun: nodes:1: [0][0]"*": the name is longer than 255 bytes" ]]
}

@test "a host with 0 slots gets no ranks" {
    need_jq
    hosts() { dtrun "$@" --dry-run --json true 2>/dev/null | jq -c '[.ranks[].host]'; }
    printf 'head slots=0\nnode01 slots=2\nnode02:0\n' >nodes
    [ "$(hosts --hostfile nodes)" = '["node01","node01"]' ]
    [ "$(hosts --hostfile nodes -np 3)" = '["node01","node01","node01"]' ]
    [ "$(hosts --hostfile nodes -H head:1,node01:0)" = '["head"]' ]
    [ "$(hosts -H a:0,b:2 --npernode 1)" = '["b"]' ]
    [ "$(hosts -H a:0,b,c --slots-per-host 2 --nnodes 1)" = '["b","b"]' ]
    run dtrun -H a:0 --dry-run true
    [ "$status" -eq 2 ]
    [ "$output" = "dtrun: no host has slots: a host with 0 slots takes no ranks" ]
}

@test "a hostfile may have 10,000 lines, and a job a million ranks" {
    seq -f 'node%.0f slots=4' 0 9999 >nodes
    dtrun -np 1000000 --hostfile nodes --dry-run true >got 2>warning
    [ "$(wc -l <got)" -eq 1000001 ]
    dtrun -np 1000000 --map-by node --hostfile nodes --dry-run true >got 2>/dev/null
    [ "$(tail -1 got | awk '{ print $1, $2, $3 }')" = "999999 node9999 99" ]
    grep -q "1000000 ranks on 40000 slots: 25 ranks per slot" warning
}

@test "--dry-run fails if its output cannot be written" {
    run bash -c "timeout 180 '$DTRUN_BUILD/cmd/dtrun' --dry-run true >/dev/full"
    [ "$status" -eq 125 ]
    [ "$output" = "dtrun: standard output cannot be written: No space left on device" ]
}
