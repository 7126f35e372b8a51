#!/usr/bin/env bats
# What --check prints on this machine, and which jobs it says would not start. tests/cluster/check.bats tests
# what happens between hosts.
bats_require_minimum_version 1.5.0
load common

json() { # a Python expression over the report o
    python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); h = o["hosts"]; print(eval(sys.argv[2]))' \
        "$OUT" "$1"
}

@test "--check needs no program and prints a line for each host" {
    dtrun --check
    code_is 0
    err_is_empty
    clean
    [ "$(wc -l <"$OUT")" = 2 ]
    [ "$(head -1 "$OUT" | tr -s ' ')" = \
        "host ssh agent cores physical memory load GPUs driver clock disk to next: rtt bandwidth" ]
    grep -q '^localhost  *local ' "$OUT"
}

@test "--check --json prints the same facts for scripts, as the host itself sees them" {
    dtrun -np 3 --check --json sh -c 'touch ran'
    code_is 0
    err_is_empty
    clean
    [ ! -e ran ]
    [ "$(json 'o["ready"], o["np"], len(h), h[0]["host"], h[0]["problem"], h[0]["transport"]')" = \
        "(True, 3, 1, 'localhost', None, 'local')" ]
    [ "$(json 'h[0]["kernel"], h[0]["machine"]')" = "('$(uname -r)', '$(uname -m)')" ]
    [ "$(json 'h[0]["disk_dir"]')" = "$T" ]
    [ "$(json 'h[0]["disk_writable"]')" = True ]
    [ "$(json 'abs(h[0]["clock_offset"]) <= h[0]["clock_error"] + 0.01')" = True ]
    [ "$(json 'h[0]["clock_error"] > 0')" = True ]
    [ "$(json '0 < h[0]["cores"] <= h[0]["cpus"]')" = True ]
}

@test "--check of a job that would not start exits with 125 and says why" {
    dtrun --check ./nosuch
    code_is 125
    err_lines 1
    err_has "dtrun: localhost: ./nosuch: No such file or directory"
    grep -q '^localhost !' "$OUT"
    echo 'int main;' >source.c
    dtrun --check ./source.c
    code_is 125
    err_has "./source.c: Permission denied"
    dtrun --check --wdir /no/such/dir true
    code_is 125
    err_has "working directory /no/such/dir"
    dtrun --check --transport local -H a,b,c ./nosuch
    code_is 125
    [ "$(grep -c nosuch "$ERR")" = 1 ]
    err_has "dtrun: a, b, c: ./nosuch: No such file or directory"
    err_has "dtrun: 3 of 3 hosts cannot be used; a job would not start"
    dtrun --check --json -H nowhere.invalid true
    code_is 125
    err_has "dtrun: nowhere.invalid: resolve: "
    [ "$(json 'o["ready"], h[0]["problem"][:8], h[0]["cores"]')" = "(False, 'resolve:', None)" ]
    clean
}

@test "a hostfile that is given with -H is recognised" {
    echo localhost >hosts.invalid
    for transport in libssh2 ssh; do
        dtrun --transport $transport -H hosts.invalid true
        code_is 125
        err_lines 1
        err_has "dtrun: hosts.invalid: resolve: "
        err_has "; hosts.invalid is a file here: --hostfile names a file with hosts"
    done
}

@test "--check prepares as many ranks as the job has, and so finds the limits of the host" {
    (ulimit -n 10 && dtrun --check -np 2 true; code_is 125)
    err_has "dtrun: only 10 open files are allowed (ulimit -n); dtrun needs at least 24"
    (ulimit -n 64 && dtrun --check -np 500 true; code_is 125)
    err_has "500 processes need"
    clean
}

@test "--check sends the files that --push names and removes them" {
    printf '#!/bin/sh\necho hello\n' >sent
    chmod +x sent
    mkdir other
    XDG_CACHE_HOME="$T/cache" HOME="$T/home" dtrun --check --push sent --wdir "$T/other" sent
    code_is 0
    err_is_empty
    [ -z "$(find "$T/home" -name 'check-*')" ]
    dtrun --check --wdir "$T/other" sent
    code_is 125
    clean
}

@test "--check prints a paragraph for each host if the terminal is too narrow for the table" {
    command -v script >/dev/null || skip "script is not installed"
    env "$TOKEN" script -qec "stty cols 200; $DTRUN --check" wide >/dev/null
    env "$TOKEN" script -qec "stty cols 40; $DTRUN --check" narrow >/dev/null
    clean
    grep -q '^host  *ssh  *agent' wide
    ! grep -q '^host  *ssh  *agent' narrow || false
    grep -q '^localhost' narrow
    grep -qE '^  memory  +[0-9.]+ [KMGT]iB' narrow
}

# Makes the shell script on standard input the nvidia-smi that dtrun's agent runs.
fake_smi() {
    mkdir -p fake
    { echo '#!/bin/sh'; cat; } >fake/nvidia-smi
    chmod +x fake/nvidia-smi
    PATH="$T/fake:$PATH"
    [ ! -e /proc/driver/nvidia ] || skip "there is a GPU here"
}

@test "--check prints driver, links and memory errors of GPUs as nvidia-smi reports them, and the version of NCCL" {
    fake_smi <<'END'
case $1 in
--query-gpu=*) printf 'NVIDIA H100 80GB HBM3, 580.65.06, 0\nNVIDIA H100 80GB HBM3, 580.65.06, 7\n' ;;
topo) printf '\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-47\nGPU1\tNV18\t X \t48-95\n' ;;
esac
END
    dtrun --check --json
    code_is 0
    [ "$(json 'h[0]["gpus"], h[0]["gpu_driver"], h[0]["gpu_links"], h[0]["gpu_ecc_errors"]')" = \
        "(['NVIDIA H100 80GB HBM3', 'NVIDIA H100 80GB HBM3'], '580.65.06', 'NV18', [0, 7])" ]
    err_has "dtrun: localhost: GPU 1 has 7 uncorrected memory errors"
    dtrun --check
    code_is 0
    [[ $(head -1 "$OUT" | tr -s ' ') == *" bandwidth GPU links NCCL GPU errors" ]]
    [[ $(tail -1 "$OUT" | tr -s ' ') == *" 2 x H100 80GB HBM3 580.65.06 "*" NV18 "*" 7 ECC, "* ]]
    clean
    [ -e "$DTRUN_BUILD/tests/standin/.libs/libnccl.so.2" ] || skip "built without shared libraries"
    DTRUN_NCCL="$DTRUN_BUILD/tests/standin/.libs/libnccl.so.2" dtrun --check
    code_is 0
    [[ $(tail -1 "$OUT" | tr -s ' ') == *" NV18 2.28.9 7 ECC, "* ]]
    clean
}

@test "--check reports an nvidia-smi that does not answer, and does not wait for it" {
    fake_smi <<'END'
[ "$1" != topo ] || exit 9
trap '' TERM
exec sleep 300
END
    try does_without_smi 1 8
}

does_without_smi() { # LEASE
    dtrun --check --heartbeat "$1"
    code_is 0
    err_has "dtrun: localhost: nvidia-smi does not answer"
    grep -q '^localhost  *local ' "$OUT"
    clean
}

# The facts come only when nvidia-smi has ended.
@test "--check knows the clock of a host whose nvidia-smi is slow" {
    fake_smi <<<'exec sleep 1'
    dtrun --check --json
    code_is 0
    [ "$(json 'h[0]["clock_error"] > 0')" = True ]
    clean
}

@test "--check reports a checkpoint directory that a job needs and cannot write, and makes none itself" {
    echo >file
    dtrun --check --checkpoint-dir file/run7
    code_is 125
    err_has "dtrun: localhost: checkpoint directory $T/file/run7: Not a directory"
    err_lines 1
    echo >checkpoints # a job need not save checkpoints
    dtrun --check
    code_is 0
    err_has "localhost: checkpoints cannot be written: $T/checkpoints: Not a directory"
    dtrun --check --checkpoint-dir new/run7
    code_is 0
    err_is_empty
    [ ! -e new ]
    clean
}

@test "--check finds out whether the files of --output-dir can be made, and leaves existing ones alone" {
    mkdir -p there
    echo kept >there/rank.00000.out
    for dir in there new 'new/%h/%r' new/a/b %r /tmp/%r; do
        dtrun --check -np 2 --output-dir "$dir"
        code_is 0
        err_is_empty
    done
    [ "$(ls -d new* rank* there/* 2>/dev/null) $(cat there/*)" = "there/rank.00000.out kept" ]
    mkfifo there/rank.00001.err
    echo >file
    mkdir linked
    ln -s ../file linked/rank.00000.out
    for case in 'linked:linked/rank.00000.out: it exists and is not a regular file' \
        'there:there/rank.00001.err: it exists and is not a regular file' \
        'file:file/rank.00000.out: Not a directory' \
        'file/a/%r:file/a/00000.out: Not a directory'; do
        dtrun --check -np 2 --output-dir "${case%%:*}"
        code_is 125
        err_has "dtrun: --output-dir: ${case#*:}"
        err_lines 1
    done
    clean
}

@test "Ctrl-C, SIGTERM, --timeout and --start-timeout end a check whose agent does not answer" {
    printf '#!/bin/sh\nexec cat >/dev/null\n' >agent
    chmod +x agent
    for case in INT:130 TERM:143; do
        DTRUN_AGENT=$T/agent dtrun_start --check
        await started_agent
        kill -"${case%:*}" "$BACKGROUND"
        dtrun_wait
        code_is "${case#*:}"
        err_lines 1
        [ ! -s "$OUT" ]
        becomes_clean
    done
    DTRUN_AGENT=$T/agent dtrun --check --timeout 1
    code_is 124
    err_has "dtrun: localhost: agent start: not done within the 1 s of --timeout"
    grep -q '^localhost !' "$OUT"
    becomes_clean
    DTRUN_AGENT=$T/agent dtrun --check --start-timeout 1
    code_is 125
    err_has "dtrun: localhost: agent start: not done within the 1 s of --start-timeout"
    becomes_clean
}

started_agent() { [ -n "$(keeper)" ]; }

@test "--check gives up an agent that has been silent for as long as --heartbeat says" {
    : | "$DTRUN_AGENT" | cat >hello # it sends HELLO before it sees that nobody is there
    [ -s hello ]
    printf '#!/bin/sh\ncat %s\nexec cat >/dev/null\n' "$T/hello" >agent
    chmod +x agent
    DTRUN_AGENT=$T/agent dtrun --check --heartbeat 1
    code_is 125
    err_has "dtrun: localhost: agent: it has not answered for 1 s"
    grep -qE '^localhost ! +local ' "$OUT"
    becomes_clean
}

# Sets DTRUN_AGENT to an agent that finds a pipe in place of libnccl.so.2. Opening it blocks until somebody writes to
# it, as on a file system that does not respond.
stuck_agent() {
    unshare --mount true 2>/dev/null || skip "needs root, to put another file in the place of ld.so.cache"
    mkfifo libnccl.so.2
    printf '\0%s/libnccl.so.2\0' "$T" >cache
    printf '#!/bin/sh\nexec unshare --mount sh -c "mount --bind %s /etc/ld.so.cache && exec \\"\\$@\\"" sh %s "$@"\n' \
        "$T/cache" "$DTRUN_AGENT" >agent
    chmod +x agent
    DTRUN_AGENT="$T/agent"
}

@test "--check waits for a host whose file system does not respond, and does not call it silent" {
    stuck_agent
    try waits_for_file_system 3 3 3
}

# The line appears after five seconds.
waits_for_file_system() { # LEASE
    dtrun_start --check --heartbeat "$1"
    await eval 'grep -q "does not respond" "$ERR" || gone "$BACKGROUND"'
    err_has "dtrun: localhost: a file system that --check looks at (for checkpoints, NCCL or the system) does not respond; waiting for it"
    timeout "$PATIENCE" sh -c ': >../libnccl.so.2'
    dtrun_wait
    code_is 0
    err_lines 1
    grep -q '^localhost  *local ' "$OUT"
    clean
}

@test "--check gives up a host whose file system does not respond, and reports the others" {
    stuck_agent
    try gives_up_file_system 1 4
}

gives_up_file_system() { # LEASE
    dtrun --check --heartbeat "$1"
    code_is 125
    err_has "a file system that --check reads has not responded for $((6 * $1)) s"
    clean
}

@test "the time for which a whole check was frozen does not count as that of a file system" {
    stuck_agent
    try goes_on_with_facts 2 4
}

# The line appears after five seconds. Six leases without an answer would be too many.
goes_on_with_facts() { # LEASE
    local now

    dtrun_start --check --heartbeat "$1"
    await eval 'grep -q "does not respond; waiting for it" "$ERR" || gone "$BACKGROUND"'
    kill -STOP $(left_behind)
    read -r now _ </proc/uptime
    await has_passed $((${now%.*} + 5 * $1))
    kill -CONT $(left_behind)
    timeout "$PATIENCE" sh -c ': >../libnccl.so.2'
    dtrun_wait
    code_is 0
    err_lines 1
    clean
}

has_passed() { # TIME in seconds since boot
    local now
    read -r now _ </proc/uptime
    [ "${now%.*}" -ge "$1" ]
}

@test "--fanout 1 checks one host after the other" {
    dtrun --check --json --transport local --fanout 1 -H a,b,c,d,e
    code_is 0
    [ "$(json '[x["next"] for x in h]')" = "['b', 'c', 'd', 'e', 'a']" ]
    [ "$(json 'all(x["bits_per_second_to_next"] > 0 for x in h)')" = True ]
    clean
}

@test "--check in a configuration file needs no program either" {
    echo 'check = yes' >conf
    dtrun --config conf
    code_is 0
    grep -q '^localhost ' "$OUT"
    clean
}

@test "a check whose reader has left prints no message and exits with 141" {
    mkfifo "$T/pipe"
    exec 7<>"$T/pipe" 8>"$T/pipe" 7<&-
    RC=0
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" --check 2>"$ERR" >&8 || RC=$?
    code_is 141
    err_is_empty
    clean
}

@test "a check whose output cannot be written fails" {
    RC=0
    env "$TOKEN" timeout "$PATIENCE" "$DTRUN" --check >/dev/full 2>"$ERR" || RC=$?
    code_is 125
    err_has "standard output cannot be written"
    clean
}
