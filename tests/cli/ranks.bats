#!/usr/bin/env bats
# What each rank gets (arguments, environment, devices, CPUs, descriptors), and that jobs do not disturb each
# other.

load common

@test "arguments reach the program byte for byte" {
    long="$(head -c 100000 /dev/zero | tr '\0' z)"
    set -- ' two  words ' "it's" '"' '$HOME `id` $(id)' ';&|<>' '' -- -np '*' $'new\nline' $'\xff\xfe' '\' "$long"
    dtrun -np 1 sh -c 'printf "%s\0" "$@"' sh "$@"
    code_is 0
    printf '%s\0' "$@" | cmp - "$OUT"
    clean
}

@test "a program may get as many arguments as Linux allows" {
    dtrun -np 1 sh -c 'echo $#' sh $(printf 'a %.0s' {1..110000})
    code_is 0
    out_is '110000
'
    clean
}

@test "ranks get the environment of dtrun as -x and --unset change it, and no command line shows it" {
    big="$(head -c 120000 /dev/zero | tr '\0' b)"
    env A_ONE=1 A_TWO=$'two\nlines' SECRET="s3cr3t-$$" BIG="$big" GONE=1 "$TOKEN" timeout "$PATIENCE" \
        "$DTRUN" -np 2 --no-tag -x A_ONE -x 'NEW=b c' -x 'A_*' --unset GONE \
        sh -c '[ $DTRUN_RANK = 0 ] || exit 0; cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" " " >cmdlines
            printf "%s|%s|%s|%s|%s|%s" "$A_ONE" "$A_TWO" "$NEW" "$SECRET" "${GONE-none}" "${#BIG}"' \
        </dev/null >"$OUT" 2>"$ERR"
    out_is "1|two
lines|b c|s3cr3t-$$|none|120000"
    grep -q "$DTRUN -np 2" cmdlines
    grep -q "$DTRUN_AGENT" cmdlines
    ! grep -q "s3cr3t-$$" cmdlines || false
    clean
}

@test "ranks run in dtrun's directory, under the name that PWD gives it" {
    mkdir "$T/there" && ln -s there "$T/link"
    cd "$T/link"
    dtrun --no-tag -np 1 sh -c 'pwd -L'
    [ "$(cat "$OUT")" = "$T/link" ] || { show; false; }
    for named in "$T" . /none; do
        PWD=$named dtrun --no-tag -np 1 sh -c 'pwd -L'
        [ "$(cat "$OUT")" = "$(realpath "$T/there")" ] || { show; false; }
    done
}

@test "too few open files are reported with the limit, by dtrun and by the agent" {
    (ulimit -n 10 && dtrun -np 2 touch ran; code_is 125)
    err_has "dtrun: only 10 open files are allowed (ulimit -n); dtrun needs at least 24"
    (ulimit -n 64 && dtrun -np 20 touch ran; code_is 125)
    err_has "dtrun: 20 processes need 148 open files, and 64 are allowed"
    (ulimit -n 30 && dtrun touch ran; code_is 125)
    err_has "dtrun: 1 process needs 53 open files, and 30 are allowed"
    err_lines 1
    [ ! -e ran ]
    clean
}

@test "dtrun and its agents run with a small stack" {
    (ulimit -S -s 56 && dtrun -np 2 "$RANK/steps" meet; code_is 0)
    out_has 2 '^\[[01]\] 9$' # the last step of each rank
    clean
}

# Runs dtrun as a user that has no other process, in a directory that the user can reach: $there.
dtrun_with_processes() { # LIMIT ARGUMENT...
    [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || skip "needs root and setpriv"
    there="$(mktemp -d /tmp/dtrun-test.XXXXXX)"
    cp "$DTRUN" "$DTRUN_AGENT" "$there"
    chmod 755 "$there"
    RC=0
    (
        cd "$there"
        ulimit -u "$1"
        shift
        DTRUN_AGENT="$there/dtrun-agent" exec env "$TOKEN" timeout "$PATIENCE" \
            setpriv --reuid $((10000 + $$ % 50000)) --clear-groups ./dtrun "$@"
    ) <"${STDIN:-/dev/null}" >"$OUT" 2>"$ERR" || RC=$?
    rm -rf "$there"
}

@test "too few processes are reported with the limit, and no forked rank is left" {
    dtrun_with_processes 9 -np 20 true
    code_is 125
    grep -qE "^dtrun: fork of 20 processes, where 9 are allowed: .*ulimit -u" "$ERR"
    err_lines 1
    clean
}

@test "where dtrun can start no thread, its messages are printed all the same" {
    dtrun_with_processes 3 true # dtrun and an agent's two
    code_is 125
    grep -qE "^dtrun: fork of 1 process, where 3 are allowed: .*ulimit -u" "$ERR" || { show; false; }
    err_lines 1
    clean
}

@test "where no thread can be started that feeds standard input to a rank, no rank runs" {
    local input

    mkfifo "$T/input"
    exec {input}<>"$T/input" # for a file, dtrun itself would start a thread, sooner or later than the agent
    STDIN="$T/input" dtrun_with_processes 4 echo ran # dtrun, an agent's two and the rank
    exec {input}>&-
    code_is 125
    err_has "dtrun: a thread for standard input: Resource temporarily unavailable; a limit of the host (ulimit -u, -d or -v, pids.max) is too low for its ranks (on localhost)"
    err_lines 1
    [ ! -s "$OUT" ]
    clean
}

@test "paths below the working directory / begin with one slash" {
    (cd / && dtrun -np 1 --no-tag sh -c 'echo $DTRUN_CHECKPOINT_DIR')
    grep -q '^/checkpoints/sh-' "$OUT" || { show; false; }
    (cd / && dtrun -np 1 --no-tag --checkpoint-dir some/dir sh -c 'echo $DTRUN_CHECKPOINT_DIR')
    out_is '/some/dir
'
    clean
}

@test "where there is no memory for the stack of a thread, its limits are named, too" {
    (ulimit -Ss 2000000 -d 1000000 && dtrun -np 2 touch ran; code_is 125)
    err_has "dtrun: a thread for standard input: Resource temporarily unavailable; a limit of the host (ulimit -u, -d or -v, pids.max) is too low for its ranks (on localhost)"
    err_lines 1
    [ ! -e ran ]
    clean
}

# From now on dtrun runs under a filter that refuses a system call with EPERM, as old versions of Docker do.
filter_call() { # NUMBER
    type python3 >/dev/null || skip "needs python3"
    cat >docker <<'END'
#!/usr/bin/env python3
import ctypes, os, struct, sys
class Program(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("code", ctypes.c_char_p)]
code = (0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)
program = Program(len(code), b"".join(struct.pack("HBBI", *line) for line in code))
prctl = ctypes.CDLL(None).prctl
if prctl(38, 1, 0, 0, 0) or prctl(22, 2, ctypes.byref(program)):
    sys.exit(99)
os.execvp(sys.argv[2], sys.argv[2:])
END
    printf '#!/bin/sh\nexec "%s/docker" %s "%s" "$@"\n' "$T" "$1" "$DTRUN" >filtered
    chmod +x docker filtered
    ./docker "$1" true || skip "no filter of system calls can be made here"
    DTRUN="$T/filtered"
}

@test "where a filter of system calls forbids threads, the message names it" {
    filter_call 435 # clone3
    dtrun echo ran
    [ "$RC" != 0 ] || skip "threads are started without clone3 here"
    code_is 125
    err_has "dtrun: a thread for standard input: does a filter of system calls (seccomp) there forbid clone3, as that of Docker before 20.10.10 does? (on localhost)"
    err_lines 1
    [ ! -s "$OUT" ]
    clean
}

@test "where a filter of system calls forbids faccessat2, reports and checkpoints are made" {
    filter_call 439
    dtrun --report report --checkpoint-dir saved -np 1 "$RANK/train" 1 1
    code_is 0
    err_is_empty
    [ -s report ] && [ -d saved/step_000000000001 ]
}

# Makes a cgroup with a limit and sets GROUP to its path. The file has another name in version 1 than in version 2.
make_group() { # CONTROLLER FILE-1 VALUE-1 FILE-2 VALUE-2
    GROUP=/sys/fs/cgroup/$1/few.$$
    mkdir "$GROUP" 2>/dev/null && echo "$3" 2>/dev/null >"$GROUP/$2" && return
    rmdir "$GROUP" 2>/dev/null || true
    GROUP=/sys/fs/cgroup/few.$$
    mkdir "$GROUP" 2>/dev/null && echo "$5" 2>/dev/null >"$GROUP/$4" && return
    rmdir "$GROUP" 2>/dev/null || true
    return 1
}

# Runs dtrun, which first moves itself into that group.
dtrun_in_group() {
    RC=0
    env "$TOKEN" timeout -k 5 "$PATIENCE" sh -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' "$GROUP" "$DTRUN" "$@" \
        </dev/null >"$OUT" 2>"$ERR" || RC=$?
}

@test "a cgroup that allows too few processes is named, and no other limit" {
    make_group pids pids.max 12 pids.max 12 || skip "no cgroup with a limit of processes can be made here"
    dtrun_in_group -np 20 touch ran
    await rmdir "$GROUP"
    code_is 125
    err_has "dtrun: fork of 20 processes: the cgroup $GROUP allows 12 processes and threads (pids.max); raise that, or start fewer ranks here"
    err_lines 1
    ! grep -q ulimit "$ERR" || { show; false; }
    [ ! -e ran ]
    clean
}

@test "ranks keep the limit of file sizes, and it is named where it is too low for dtrun-agent" {
    (ulimit -Sf 100 && dtrun -np 1 sh -c 'ulimit -f >limit' && code_is 0)
    [ "$(cat limit)" = "$(ulimit -Sf 100; sh -c 'ulimit -f')" ]
    (ulimit -f 8 && dtrun -np 2 touch ran; code_is 125)
    err_has "dtrun: cannot prepare 2 ranks: File too large; the limit of a file's size (ulimit -f) is too low"
    err_lines 1
    [ ! -e ran ]
    clean
}

@test "too little memory for the ranks, and more ranks than a host may have, are reported with the limit" {
    (ulimit -v 100000 && dtrun -np 64 touch ran; code_is 125)
    err_has "dtrun: cannot prepare 64 ranks: Cannot allocate memory; the host has too little memory, or its limit (ulimit -v)"
    err_lines 1
    dtrun -np 100000 touch ran
    code_is 125
    err_has "dtrun: 100000 ranks are more than the 32768 that a host may have (on localhost)"
    err_lines 1
    [ ! -e ran ]
    clean
}

@test "--gpu-bind and --virtual-local-rank decide which devices a rank sees" {
    while IFS='|' read -r mask gpus options want; do
        unset CUDA_VISIBLE_DEVICES
        [ "$mask" = unset ] || export CUDA_VISIBLE_DEVICES="$mask"
        echo "localhost slots=2 $gpus" >nodes
        dtrun --hostfile nodes --no-tag $options \
            sh -c 'echo "$RANK:$LOCAL_RANK:${CUDA_VISIBLE_DEVICES-unset}"'
        code_is 0
        echo "mask $mask $gpus $options"
        [ "$(sort "$OUT" | paste -sd' ')" = "$want" ] || { show; return 1; }
    done <<'END'
2,3|||0:0:2 1:1:3
GPU-8d,MIG-9e|||0:0:GPU-8d 1:1:MIG-9e
|||0:0: 1:1:
-1|||0:0: 1:1:
2,3|gpus=5,GPU-8d||0:0:5 1:1:GPU-8d
2,3|gpus=||0:0: 1:1:
2,3||--virtual-local-rank|0:0:2 1:0:3
2,3,4||--gpu-bind host|0:0:2,3 1:1:2,3
2,3|gpus=6,7,8|--gpu-bind=host|0:0:6,7 1:1:6,7
2,3|gpus=6,7|--gpu-bind none|0:0:2,3 1:1:2,3
2,3||-x CUDA_VISIBLE_DEVICES=5 --gpu-bind none|0:0:5 1:1:5
2,3||--gpu-bind none --unset CUDA_VISIBLE_DEVICES|0:0:unset 1:1:unset
2,3||--gpu-bind none -x CUDA_VISIBLE_DEVICES|0:0:2,3 1:1:2,3
2,3||-x CUDA_*|0:0:2 1:1:3
unset|gpus=6,7|--gpu-bind none|0:0:unset 1:1:unset
END
    dtrun -np 2 --gpu-bind host --report report true
    code_is 0
    [ "$(python3 -c 'import json; print([r["device"] for r in json.load(open("report"))["ranks"]])')" = \
        "['0,1', '0,1']" ]
    dtrun -np 2 --gpu-bind none -x CUDA_VISIBLE_DEVICES=4,5 --report report true
    [ "$(python3 -c 'import json; print([r["device"] for r in json.load(open("report"))["ranks"]])')" = \
        "['4,5', '4,5']" ]
    clean
}

@test "-x warns of a variable that is not set, and the job runs" {
    unset DT_TEST_NONE
    DT_TEST_SET=1 dtrun -np 1 -x DT_TEST_NONE -x DT_TEST_SET --no-tag \
        sh -c 'echo "${DT_TEST_NONE-unset} $DT_TEST_SET"'
    code_is 0
    [ "$(cat "$OUT")" = "unset 1" ]
    err_lines 1
    err_has "dtrun: -x DT_TEST_NONE: the variable is not set here, so it is not passed on; to set it: -x DT_TEST_NONE=VALUE"
    clean
}

@test "a device that its host does not have is named" {
    mkdir fake dev
    printf '#!/bin/sh\necho "GPU 0: A"; echo "GPU 1: B"\n' >fake/nvidia-smi
    chmod +x fake/nvidia-smi
    touch dev/nvidiactl
    unshare -m mount -t overlay -o lowerdir="$T/dev":/dev overlay /dev 2>/dev/null || skip "cannot mount"
    [ ! -e /proc/driver/nvidia ] || skip "there is a GPU here"
    while IFS='|' read -r mask hostfile options want; do
        echo "localhost slots=4 $hostfile" >nodes
        timeout "$PATIENCE" env PATH="$T/fake:$PATH" CUDA_VISIBLE_DEVICES="$mask" unshare -m sh -c \
            'mount -t overlay -o lowerdir="$0/dev":/dev overlay /dev && exec "$@"' "$T" \
            "$DTRUN" --hostfile nodes -np 1 $options true 2>"$ERR" || false
        [ "$(cat "$ERR")" = "$want" ] || { show; false; }
    done <<'END'
0,1|||
1,GPU-8d,MIG-1f4a|||
0,2||--gpu-bind none|
0,2||--gpu-bind host|dtrun: localhost: there is no GPU 2 (CUDA_VISIBLE_DEVICES): this host has 2 GPUs, from 0
0,2|||dtrun: localhost: there is no GPU 2 (CUDA_VISIBLE_DEVICES): this host has 2 GPUs, from 0
0|gpus=1,9||dtrun: localhost: there is no GPU 9 (gpus= in the hostfile): this host has 2 GPUs, from 0
END
    clean
}

@test "ranks that outnumber their devices share them in turn, and one line says so" {
    export CUDA_VISIBLE_DEVICES=2,3
    dtrun -H localhost:3 --no-tag sh -c 'echo "$RANK:$CUDA_VISIBLE_DEVICES"'
    code_is 0
    [ "$(sort "$OUT" | paste -sd' ')" = "0:2 1:3 2:2" ]
    err_lines 1
    err_has "dtrun: localhost: 3 ranks share 2 devices (CUDA_VISIBLE_DEVICES)"
    echo "localhost slots=2 gpus=7" >nodes
    dtrun --hostfile nodes true
    err_lines 1
    err_has "dtrun: localhost: 2 ranks share 1 device (gpus= in the hostfile)"
    dtrun --hostfile nodes -np 3 true
    err_lines 1
    err_has "3 ranks on 2 slots"
    dtrun -H localhost:2 true
    err_is_empty
    CUDA_VISIBLE_DEVICES= dtrun -H localhost:2 true
    err_is_empty
    clean
}

@test "--env tells ranks their place in the variables of other launchers" {
    dtrun -np 3 --no-tag --env horovod,mpi --env tensorflow sh -c 'python3 - <<\END
import json, os, socket
e = os.environ
assert e["HOROVOD_RANK"] == e["OMPI_COMM_WORLD_LOCAL_RANK"] == e["RANK"]
assert e["HOROVOD_SIZE"] == e["OMPI_UNIVERSE_SIZE"] == "3"
assert e["HOROVOD_CROSS_RANK"] == "0" and e["HOROVOD_CROSS_SIZE"] == "1"
tf = json.loads(e["TF_CONFIG"])
workers = tf["cluster"]["worker"]
assert len(set(workers)) == 3
assert "127.0.0.1:" + e["MASTER_PORT"] not in workers
assert tf["task"] == {"type": "worker", "index": int(e["RANK"])}
host, port = workers[tf["task"]["index"]].split(":")
s = socket.socket()
s.bind((host, int(port)))
s.listen()
print("listens")
END'
    code_is 0
    [ "$(grep -c listens "$OUT")" = 3 ]
    dtrun -np 1 sh -c 'env | grep -E "^(HOROVOD_|OMPI_|TF_CONFIG)"'
    code_is 1
    out_is ""
    clean
}

@test "each job has an NCCL_RAS_ADDR of its own, unless the user sets one" {
    local show='echo "$NCCL_RAS_ADDR"'
    mkfifo hold
    exec 7<>hold
    dtrun_start --no-tag -np 2 sh -c "$show; read -r _ <hold"
    out_has 2 '^localhost:[0-9]'
    first=$(sort -u "$OUT")
    [ "$(wc -l <<<"$first")" = 1 ]
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" --no-tag -np 1 sh -c "$show" >second
    grep -q '^localhost:[0-9]' second
    [ "$(cat second)" != "$first" ]
    printf 'a\na\n' >&7
    dtrun_wait
    code_is 0
    echo NCCL_RAS_ADDR=localhost:8 >conf
    dtrun --no-tag -np 1 -x NCCL_CONF_FILE="$T/conf" sh -c "$show"
    out_is "
"
    dtrun --no-tag -np 1 -x NCCL_RAS_ADDR=localhost:7 sh -c "$show"
    out_is "localhost:7
"
    clean
}

# Each rank prints the CPUs it may use and its OMP_NUM_THREADS.
cpus() {
    dtrun --no-tag "$@" sh -c 'echo "$(grep Cpus_allowed_list /proc/self/status | cut -f2) $OMP_NUM_THREADS"'
    code_is 0
}

@test "--bind-to binds a rank to its cores and sets OMP_NUM_THREADS to their number" {
    local mine=$(grep Cpus_allowed_list /proc/self/status | cut -f2)
    local cores

    cores=$(cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list | sort -u | wc -l)
    [ "$(nproc)" = "$(cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list | wc -l)" ] ||
        skip "not all CPUs may be used here"
    cpus -np 2
    [ "$(grep -c "^$mine " "$OUT")" = 2 ]
    cpus -np "$cores" --bind-to core
    err_is_empty
    [ "$(cut -d' ' -f1 "$OUT" | sort -u | wc -l)" = "$cores" ]
    [ "$(cut -d' ' -f2 "$OUT" | sort -u)" = 1 ]
    cpus -np 1 --bind-to core
    out_is "$mine $cores
"
    cpus -np 1 --bind-to core -x OMP_NUM_THREADS=77
    out_is "$mine 77
"
    cpus -np $((cores + 1)) --bind-to core
    err_lines 1
    err_has "dtrun: localhost: $((cores + 1)) ranks are bound to $cores core"
    sockets=$(cat /sys/devices/system/cpu/cpu*/topology/package_cpus_list | sort -u)
    cpus -np "$(wc -l <<<"$sockets")" --bind-to socket
    [ "$(cut -d' ' -f1 "$OUT" | sort -u)" = "$sockets" ]
    clean
}

@test "OMP_NUM_THREADS respects the CPU time that the control group grants" {
    [ "$(nproc)" -ge 2 ] || skip "needs two CPUs"
    make_group cpu cpu.cfs_quota_us 100000 cpu.max "100000 100000" || skip "no cgroup with a limit of CPU time can be made here"
    for to in none socket hwthread; do
        dtrun_in_group -np 1 --bind-to $to sh -c 'echo $OMP_NUM_THREADS'
        code_is 0
        out_is "1
"
    done
    dtrun_in_group -np 1 -x OMP_NUM_THREADS=7 sh -c 'echo $OMP_NUM_THREADS'
    out_is "7
"
    await rmdir "$GROUP"
    clean
}

@test "--npernode cpu respects the CPU time that the control group grants" {
    [ "$(nproc)" -ge 2 ] || skip "needs two CPUs"
    make_group cpu cpu.cfs_quota_us 100000 cpu.max "100000 100000" || skip "no cgroup with a limit of CPU time can be made here"
    dtrun_in_group --npernode cpu sh -c 'echo $LOCAL_WORLD_SIZE'
    code_is 0
    out_is "1
"
    await rmdir "$GROUP"
    clean
}

@test "--bind-to uses only CPUs that the agent may use" {
    type taskset >/dev/null || skip "taskset(1) is not installed"
    local one=$(grep Cpus_allowed_list /proc/self/status | grep -oE '[0-9]+$')

    printf '#!/bin/sh\nexec taskset -c %s "%s" "$@"\n' "$one" "$DTRUN_BUILD/cmd/dtrun" >with_one
    chmod +x with_one
    DTRUN=./with_one
    for to in core socket; do
        cpus -np 2 --bind-to $to
        out_is "$one 1
$one 1
"
        err_lines 1
    done
    clean
}

@test "256 ranks run on one host" {
    dtrun -np 256 -H localhost:256 sh -c 'echo "$DTRUN_LOCAL_RANK"'
    code_is 0
    err_is_empty
    [ "$(sort -u "$OUT" | wc -l)" = 256 ]
    clean
}

@test "to fork all ranks may take longer than an agent may be silent" {
    try forks_slowly 3 10
}

# To fork a rank takes 0.6 s.
forks_slowly() { # LEASE
    DTRUN_AGENT="$DTRUN_BUILD/tests/fake/slowagent" dtrun --heartbeat "$1" -np $((2 * $1)) true
    code_is 0
    clean
}

@test "to look for what an earlier generation left may take longer than an agent may be silent" {
    try looks_slowly 3 3 3
}

# To look takes four seconds.
looks_slowly() { # LEASE
    DTRUN_AGENT="$DTRUN_BUILD/tests/fake/slowagent" dtrun --heartbeat "$1" --max-restarts 1 -np 2 \
        sh -c '[ $DTRUN_RESTART_COUNT = 1 ] || kill -KILL $$'
    code_is 0
    clean
}

@test "a rank may close its standard descriptors without failing the job" {
    dtrun -np 2 sh -c 'exec <&- >&- 2>&-; exit 0'
    code_is 0
    err_is_empty
    clean
}

@test "a daemon that keeps the output open does not hang dtrun" {
    dtrun -np 2 sh -c 'echo said; setsid sleep 600 & exit 0'
    code_is 0
    [ "$(grep -c said "$OUT")" = 2 ]
    clean
}

@test "a rank has its sockets, default signals, and a process group of its own" {
    dtrun -np 1 "$RANK/fds"
    code_is 0
    out_is "fds 0 1 2 agent pmi
SigBlk 0000000000000000
SigIgn 0000000000000000
group own, session the agent's, no terminal
"
    # A terminal of dtrun's own is not passed on to ranks either.
    env "$TOKEN" timeout "$PATIENCE" python3 "$DTRUN_SOURCE/tests/cli/keys.py" -- "$DTRUN" -np 1 "$RANK/fds" >"$OUT"
    out_has 1 "group own, session the agent's, no terminal"
    out_has 1 "exit code 0"
    clean
}

@test "an agent listens only if the job has other hosts" {
    cat >listeners <<'END'
#!/bin/sh
# Prints how many sockets this rank's agent listens at.
ls -l /proc/$PPID/fd | sed -n 's/.*socket:\[\([0-9]*\)\]$/\1/p' >sockets.$RANK
cat /proc/net/tcp /proc/net/tcp6 |
    awk -v mine="sockets.$RANK" 'BEGIN { while ((getline inode <mine) > 0) own[inode]; n = 0 }
        $4 == "0A" && $10 in own { n++ }
        END { print n }'
END
    chmod +x listeners
    make_on_list
    dtrun --no-tag -np 1 ./listeners
    code_is 0
    out_is $'0\n'
    dtrun --no-tag --rsh './on-list %h' -H a:1 ./listeners
    code_is 0
    out_is $'0\n'
    dtrun --no-tag --rsh './on-list %h' -H a:1,b:1 ./listeners
    code_is 0
    out_is $'1\n1\n'
    clean
}

@test "two jobs run side by side, and killing one leaves the other alone" {
    mkdir one two
    (cd one && exec env "$TOKEN" "$DTRUN" -np 2 sh -c 'echo ready; exec sleep 600' </dev/null >out 2>err 3>&-) &
    one=$!
    dtrun_start -np 2 sh -c 'echo ready; until [ -e go ]; do sleep 0.05; done; echo end'
    out_has 2 ready
    OUT=one/out out_has 2 ready
    kill -KILL "$one"
    wait "$one" || true
    touch go
    dtrun_wait
    code_is 0
    [ "$(grep -c end "$OUT")" = 2 ]
    becomes_clean
}

# From now on dtrun has $T/tmp, $T/shm and $T/run for /tmp (by TMPDIR), /dev/shm and /run.
use_places_of_its_own() {
    mkdir tmp shm run
    export TMPDIR="$T/tmp"
    unshare --mount true 2>/dev/null || skip "needs root, to give dtrun a /dev/shm and a /run of its own"
    cat >private <<END
#!/bin/sh
exec unshare --mount sh -c 'mount --bind "$T/shm" /dev/shm && mount --bind "$T/run" /run && exec "\$@"' sh "$DTRUN" "\$@"
END
    chmod +x private
    DTRUN="$T/private"
}

@test "a job leaves no file, socket or shared memory behind, however it ends" {
    use_places_of_its_own
    mkdir empty
    cd empty
    dtrun -np 2 sh -c 'exec >/dev/shm/rank.$DTRUN_RANK'
    code_is 0
    rm ../shm/rank.0 ../shm/rank.1 # what dtrun had left would be there
    dtrun -np 2 "$RANK/steps" meet
    code_is 0
    dtrun -np 2 false
    code_is 1
    dtrun -np 2 ./none
    code_is 127
    dtrun_start -np 2 "$RANK/steps" hang
    out_has 2 ' 4$'
    kill -KILL "$BACKGROUND"
    wait "$BACKGROUND" || true
    BACKGROUND=
    becomes_clean
    left="$(find . ../tmp ../shm ../run -mindepth 1)"
    [ -z "$left" ] || { echo "$left"; false; }
}

@test "the message of a failed call names rank, host and call, and dtrun prints the last calls" {
    try prints_last_calls 1 1 1 1 1
    DTRUN_RECORDER=off dtrun -np 2 "$RANK/steps" hang 1
    code_is 124
    ! grep -q 'last calls' err || false
    clean
}

# Ranks have a second to report them.
prints_last_calls() { # LIMIT
    dtrun --transport local -H a:2,b:1 "$RANK/steps" hang "$1"
    code_is 124
    err_has "[0] rank 0 (a): barrier, call 7: timed out: "
    err_has "dtrun: the last calls on DT_WORLD:"
    err_has "dtrun: | call 4: barrier, ok by shm+tcp"
    err_has "dtrun: | call 7: barrier, DT_ERR_TIMEOUT by shm+tcp, up to "
    [ "$(grep -c '^dtrun: | call' err)" -eq 4 ]
    [ "$(grep -c 's (ranks 0-1)$' err)" -ge 1 ]
    [ "$(ls)" = "$(printf '%s\n' err out)" ] # no file unless the user asks for one
}

@test "dtrun does not print the last calls if a rank has left or the job restarts" {
    dtrun -np 2 --max-restarts 1 sh -c '[ $DTRUN_GENERATION = 1 ] || exec "$0" meet
        if [ $DTRUN_RANK = 0 ]; then "$0" hang; exec sleep 600; fi # the call takes a second to give up
        { "$0" hang & } | sed 5q >seen' "$RANK/steps"
    code_is 0
    err_has "dtrun: restarting 2 ranks from the beginning"
    err_has "call 7: rank 1 (localhost) died or left (exit status 0)"
    ! grep -q 'last calls' err || false
    clean
}

@test "a record of last calls that cannot be written is reported once for each host" {
    try reports_unwritten_records 1 1 1 1 1
    clean
}

@test "a record of last calls is not written through a link that another user may have made" {
    mkdir records
    echo kept >mine
    ln -s ../mine records/rank.00000.1.txt
    DTRUN_RECORDER=records dtrun -np 2 "$RANK/steps" hang 1
    code_is 124
    err_has "records/rank.00000.1.txt: Too many levels of symbolic links"
    [ "$(cat mine)" = kept ]
    clean
}

# Ranks have a second to report this.
reports_unwritten_records() { # LIMIT
    DTRUN_RECORDER=/proc/none/x dtrun --transport local -H a:2,b:2 "$RANK/steps" hang "$1"
    code_is 124
    for host in a b; do
        [ "$(grep -c "^dtrun: $host: /proc/none: cannot be created: No such file or directory; the recorded calls were \
not written: name another directory with DTRUN_RECORDER\$" err)" -eq 1 ]
    done
}

@test "the records of last calls are beside the output in --output-dir" {
    dtrun -np 2 --output-dir 'o/%h.%r' "$RANK/steps" hang 1
    code_is 124
    grep -q '^failure: rank 0 (localhost): barrier, call 7: timed out: ' o/rank.00000.1.txt
    err_has "dtrun: all recorded calls are in localhost:$PWD/o"
    DTRUN_RECORDER= DTRUN_OUTPUT_DIR=/proc/outer dtrun -np 2 --output-dir p "$RANK/steps" hang 1
    err_has "dtrun: all recorded calls are in localhost:$PWD/p"
    DTRUN_RECORDER=off dtrun -np 2 --output-dir off "$RANK/steps" hang 1
    [ "$(ls off)" = "$(printf '%s\n' rank.0000{0,1}.{err,out})" ]
    clean
}

@test "DTRUN_RECORDER names the directory of the records of last calls" {
    DTRUN_RECORDER=calls dtrun --transport local -H a:1,b:1 "$RANK/steps" hang 1
    code_is 124
    err_has "rank 0 (a): barrier, call 7: timed out: rank 0 has waited"
    grep -q '^dtrun flight recorder: rank 0 of 2 (a), process .*, generation 1, ' calls/rank.00000.1.txt
    grep -q '^failure: rank 0 (a): barrier, call 7: timed out: ' calls/rank.00000.1.txt
    grep -qE '^world +7 .* DT_ERR_TIMEOUT .* barrier$' calls/rank.00000.1.txt
    [ "$(ls calls)" = "$(printf '%s\n' rank.00000.1.jsonl rank.00000.1.txt)" ]
    [ "$(python3 -c 'import json; print(*[(c := json.loads(line)).get("kind", c.get("host")) for line in open("calls/rank.00000.1.jsonl")])' |
        tr ' ' '\n' | sort | uniq -c | tr -s ' \n' ' ')" = " 1 a 6 barrier 1 dt_init " ]
    clean
}

# Rank 0 writes its record into a pipe that nobody reads until rank 1 has been told to end.
@test "a rank of several threads that is writing its record is told to end after it has written it" {
    mkdir calls
    mkfifo calls/rank.00000.1.txt
    DTRUN_RECORDER=calls dtrun_start -np 2 --kill-grace 600 "$RANK/late" told
    out_has 1 "told to end"
    timeout "$PATIENCE" grep -q '^failure: rank 0 .*barrier, call 4: timed out: ' calls/rank.00000.1.txt
    dtrun_wait
    code_is 124
    grep -q '"result":"DT_ERR_TIMEOUT"' calls/rank.00000.1.jsonl
    clean
}

@test "a wrapper whose rank dies while it writes its record is told to end" {
    local wrapper='[ "$DTRUN_RANK" = 0 ] || exec "$0" told
        trap "echo wrapper told; exit" TERM
        sleep infinity &
        "$0" told &
        echo "rank $!"
        wait'

    mkdir calls
    mkfifo calls/rank.00000.1.txt
    DTRUN_RECORDER=calls dtrun_start -np 2 --kill-grace 600 \
        sh -c "$wrapper" "$RANK/late"
    out_has 1 "told to end"
    out_has 1 'rank [0-9]' # the wrapper says it at some time
    kill -9 "$(sed -n 's/.*rank //p' "$OUT")"
    out_has 1 "wrapper told"
    dtrun_wait
    code_is 124
    clean
}

@test "ranks that learn of a death have time to report it and exit before dtrun ends them" {
    for where in world dup recv; do
        try learn_of_death $where $where $where $where $where
    done
    dtrun -np 4 --inject kill:rank=1,step=4 "$RANK/steps" idle # a rank outside any call is ended at once
    code_is 137
    grep -q '; stopping the other rank' "$ERR" || { show; false; }
    err_has "dtrun: | rank 0: ended before it reported its last calls"
    clean
}

# They have a second.
learn_of_death() { # WHERE
    dtrun -np 4 --inject kill:rank=1,step=5 "$RANK/steps" slow "$1"
    code_is 137
    [ "$(grep -cE '^\[[023]\] rank [023] \(localhost\): .*, call [0-9]+.*: rank 1 \(localhost\) died or left \(killed by signal 9\)$' "$ERR")" = 3 ] ||
        { show; false; }
    grep -qE '^dtrun: rank 1 \(localhost, pid [0-9]+\) was killed by signal 9 \(SIGKILL\)[^;]*$' "$ERR" ||
        { show; false; }
}

@test "a job whose ranks ignore that DT_WORLD has failed ends with 125" {
    dtrun -np 3 --report r.json "$RANK/unlike" world
    code_is 125
    err_has "dtrun: all ranks exited with 0, although a call on DT_WORLD had failed for good (rank "
    err_has "rank 1 (localhost) called all-reduce of 9 f32 (sum), call 2"
    grep -q '"message":.*a call on DT_WORLD had failed for good' r.json || { cat r.json; false; }
    clean
}

@test "a job whose ranks ignore that another communicator has failed ends with 125" {
    dtrun -np 3 --report r.json "$RANK/unlike" keep
    code_is 125
    err_has "dtrun: all ranks exited with 0, although a call on communicator "
    err_has ") and no rank has freed it: "
    err_has "rank 1 (localhost) called all-reduce of 9 f32 (sum), call "
    grep -q '"message":.*had failed for good' r.json || { cat r.json; false; }
    dtrun -np 3 "$RANK/unlike" pair
    code_is 125
    err_has " and no rank has freed it: rank "
    clean
}

@test "a job whose ranks ignore that a communicator has timed out ends with 125" {
    dtrun -np 3 "$RANK/unlike" late
    code_is 125
    err_has "dtrun: all ranks exited with 0, although a call on communicator 0.1 had failed for good (rank 1) and no rank has freed it: ranks 0,2 have waited "
    clean
}

@test "a job whose ranks free or abort a failed communicator ends with the exit code of the ranks" {
    for how in "" abort drop end; do
        dtrun -np 3 "$RANK/unlike" $how
        code_is 0
        ! grep -q "all ranks exited" "$ERR" || { show; false; }
        clean
    done
}
