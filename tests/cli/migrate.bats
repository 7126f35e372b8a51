#!/usr/bin/env bats
# dtrun accepts command lines of horovodrun, torchrun, accelerate, deepspeed, mpirun, mpiexec and srun.
# tests/unit/cmd/foreign.c tests what dtrun-migrate(7) says of each option.
bats_require_minimum_version 1.5.0
load common

# Prints the options in a section of dtrun-migrate(7), without dashes.
page_options() { # SECTION
    awk -v title=".Sh $1" '/^\.Sh / { on = $0 == title } on' "$DTRUN_SOURCE/man/dtrun-migrate.7" |
        sed -nE 's/^\.It (Fl Fl|Fl) ([a-zA-Z-]+).*/\2/p' | sort -u
}

# Prints dtrun's plan for a command line: "rank host" for each rank.
plan() {
    dtrun "$@" --dry-run ./train
    code_is 0
    tail -n +2 "$OUT" | awk '{ print $1 " " $2 }' | paste -sd, -
}

@test "dtrun-migrate(7) lists every option of the installed mpirun" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    mpirun --allow-run-as-root --help all >help 2>&1 || true
    grep -q '^mpirun (Open MPI) 4' help || skip "this mpirun is not Open MPI 4"
    # "-c|-np|--np <arg0>  text": options begin the line, before two blanks.
    grep -E '^ *-' help | sed -E 's/^ *//; s/(<arg| {2}).*//' | tr '|' '\n' |
        sed -nE 's/^ *--?([a-zA-Z-]+) *$/\1/p' | sort -u >program
    [ "$(wc -l <program)" -gt 100 ]
    page_options MPIRUN >page
    [ -z "$(comm -23 program page)" ] || { comm -23 program page; return 1; }
}

@test "dtrun-migrate(7) lists every option of the installed mpiexec" {
    command -v mpiexec.hydra >/dev/null || skip "MPICH's mpiexec is not installed"
    mpiexec.hydra -help >help 2>&1 || true
    # "-n/-np {value}": options begin the line.
    grep -E '^ *-' help | sed -E 's/^ *(-[^ ]*).*/\1/' | tr '/' '\n' | sed 's/^-//' | sort -u >program
    [ "$(wc -l <program)" -gt 40 ]
    page_options MPIEXEC >page
    [ -z "$(comm -23 program page)" ] || { comm -23 program page; return 1; }
}

@test "torchrun's command line with -H starts the same number of ranks on each host" {
    [ "$(plan --nproc-per-node 2 -H host1,host2)" = "0 host1,1 host1,2 host2,3 host2" ]
    [ "$(plan --nnodes=2 --nproc_per_node=1 --rdzv-backend c10d --rdzv-endpoint host1:29400 \
        -H host1,host2,host3)" = "0 host1,1 host2" ]
    [ "$(plan --standalone --nproc-per-node 2)" = "0 localhost,1 localhost" ]
    err_is_empty
}

@test "command lines of horovodrun and mpirun place ranks as those launchers do" {
    [ "$(plan -np 3 -H host1:2,host2:1 -p 2222 -i key --disable-cache --gloo)" = \
        "0 host1,1 host1,2 host2" ]
    [ "$(plan -n 3 -bynode --oversubscribe -host host1:2,host2 --allow-run-as-root)" = \
        "0 host1,1 host2,2 host1" ]
    [ "$(plan -N 1 --map-by slot -H host1:4,host2:4 -q)" = "0 host1,1 host2" ]
    [ "$(plan --slots-per-host 2 -H host1,host2:1)" = "0 host1,1 host1,2 host2" ]
    err_is_empty
}

@test "command lines of accelerate and deepspeed place ranks as those do, and let them choose a GPU" {
    printf 'worker-1 slots=4\nworker-2 slots=4\n' >hostfile
    [ "$(plan --hostfile hostfile --num_nodes 1 --num_gpus 2)" = "0 worker-1,1 worker-1" ]
    [ "$(plan --mpirun_hostfile hostfile --num_machines 2 --num_processes 5 --machine_rank 0)" = \
        "0 worker-1,1 worker-1,2 worker-1,3 worker-1,4 worker-2" ]
    err_is_empty
    CUDA_VISIBLE_DEVICES=1,3 dtrun --num_processes 2 --mixed_precision bf16 --no-tag \
        sh -c 'echo "$LOCAL_RANK $CUDA_VISIBLE_DEVICES $ACCELERATE_MIXED_PRECISION"'
    code_is 0
    [ "$(sort "$OUT" | paste -sd';')" = "0 1,3 bf16;1 1,3 bf16" ] || { show; return 1; }
}

@test "command lines of srun place ranks as srun does, and resources are left to the allocation" {
    export SLURM_JOB_NODELIST=node[1-3] SLURM_TASKS_PER_NODE='2(x3)'
    [ "$(plan --nodes=2 --ntasks-per-node=2 --cpu-bind=none --export=ALL -u -K)" = \
        "0 node1,1 node1,2 node2,3 node2" ]
    [ "$(plan -w node[2-3] --ntasks 2 --distribution=cyclic)" = "0 node2,1 node3" ]
    err_is_empty
    [ "$(plan -n 1 --gres=gpu:2 --partition debug)" = "0 node1" ]
    err_lines 2
    err_has "dtrun: --gres gpu:2 has no effect: ranks share all that the allocation has on their node"
}

@test "--nproc-per-node gives each rank a GPU in a Slurm job that has one task on each node, as for torchrun" {
    export SLURM_JOB_NODELIST=node[1-2] SLURM_TASKS_PER_NODE='1(x2)'
    dtrun --transport local --nproc-per-node 2 --no-tag sh -c 'echo $RANK $CUDA_VISIBLE_DEVICES'
    code_is 0
    err_is_empty
    [ "$(sort "$OUT" | paste -sd,)" = "0 0,1 1,2 0,3 1" ] || { show; return 1; }
    dtrun -H node1:1,node2:1 --nproc-per-node 2 --dry-run ./train
    err_has "4 ranks on 2 slots"
    dtrun --no-oversubscribe --nproc-per-node 2 --dry-run ./train
    code_is 2
}

@test "a launcher as the program is reported, unless each host has one rank" {
    local launcher

    for launcher in mpirun /usr/bin/mpiexec srun; do
        dtrun -np 4 --dry-run "$launcher" ./train
        code_is 0
        err_lines 1
        err_has "dtrun: ${launcher##*/} is a launcher, and each of the 4 ranks starts a job of its own with it; dtrun takes its place: write the program instead, see dtrun-migrate(7)"
    done
    dtrun -H a:2,b --dry-run python3 -m torch.distributed.run train.py
    code_is 0
    err_lines 1
    err_has "dtrun: torch.distributed.run is a launcher, and each of the 3 ranks starts a job of its own with it; dtrun takes its place: write python3 SCRIPT instead"
    dtrun -H a,b --dry-run torchrun --nnodes 2 train.py
    code_is 0
    err_is_empty
    dtrun -np 4 --dry-run ./train torchrun
    code_is 0
    err_is_empty
}

@test "an option without effect is reported once, and the job runs" {
    dtrun -np 1 --mca plm_rsh_agent ssh --master-port 29500 sh -c 'echo "ran with $#"' sh --mca a b
    code_is 0
    out_is 'ran with 3
'
    err_lines 2
    err_has "dtrun: --mca plm_rsh_agent ssh has no effect: --rsh 'COMMAND %h %c' reaches hosts by such a command"
    err_has "dtrun: --master-port 29500 has no effect: "
}

@test "what --mca sets reaches Open MPI's library" {
    dtrun -np 1 --mca btl_tcp_if_include 'eth0, lo' sh -c 'echo "$OMPI_MCA_btl_tcp_if_include"'
    code_is 0
    out_is 'eth0, lo
'
    err_lines 0
}

@test "what horovodrun's options set reaches Horovod's library" {
    dtrun -np 1 --no-tag --cycle-time-ms 0.5 --timeline-filename /tmp/t.json --autotune --no-torus-allreduce \
        --gloo-timeout-seconds=90 --log-level DEBUG --fusion-threshold-mb 32 --no-stall-check \
        --stall-check-warning-time-seconds 7 --log-hide-timestamp --env horovod sh -c 'env | grep -E "^HOROVOD_(A|CY|F|GLOO_TIME|LOG|STALL|TI|TO)" | sort'
    code_is 0
    err_is_empty
    out_is 'HOROVOD_AUTOTUNE=1
HOROVOD_CYCLE_TIME=0.5
HOROVOD_FUSION_THRESHOLD=33554432
HOROVOD_GLOO_TIMEOUT_SECONDS=90
HOROVOD_LOG_HIDE_TIME=1
HOROVOD_LOG_LEVEL=DEBUG
HOROVOD_STALL_CHECK_DISABLE=1
HOROVOD_STALL_CHECK_TIME_SECONDS=7
HOROVOD_TIMELINE=/tmp/t.json
HOROVOD_TORUS_ALLREDUCE=0
'
    dtrun -np 1 --fusion-threshold-mb 1.5 true
    code_is 2
    err_has "dtrun: --fusion-threshold-mb 1.5: a whole number from 0 to "
    clean
}

@test "an option that dtrun does not support is refused in one line that says what to do" {
    dtrun --xml -np 1 true
    code_is 2
    err_lines 1
    err_has "dtrun: --xml: --report FILE writes JSON"
    dtrun --use_fsdp --fsdp_sharding_strategy FULL_SHARD python3 train.py
    code_is 2
    err_lines 1
    err_has "dtrun: --use_fsdp: accelerate gives it to ranks in variables; dtrun-migrate(7), ACCELERATE"
}

@test "--nproc-per-node gpu, cpu and auto use the given slots, or else what this machine has" {
    [ "$(plan --nproc-per-node gpu -H host1:2,host2:1)" = "0 host1,1 host1,2 host2" ]
    CUDA_VISIBLE_DEVICES=0,3 dtrun --nproc-per-node gpu --dry-run ./train
    [ "$(tail -n +2 "$OUT" | wc -l)" -eq 2 ]
    CUDA_VISIBLE_DEVICES=0,3,5 dtrun --nproc-per-node auto --dry-run ./train
    [ "$(tail -n +2 "$OUT" | wc -l)" -eq 3 ]
    CUDA_VISIBLE_DEVICES='' dtrun --nproc-per-node auto --dry-run ./train
    [ "$(tail -n +2 "$OUT" | wc -l)" -eq "$(nproc)" ]
    dtrun --nproc_per_node=cpu --dry-run ./train
    [ "$(tail -n +2 "$OUT" | wc -l)" -eq "$(nproc)" ]
    CUDA_VISIBLE_DEVICES='' dtrun --nproc-per-node gpu --dry-run ./train
    code_is 2
    err_has "--npernode gpu: this machine has no NVIDIA GPU"
    dtrun --nproc-per-node auto -H host1 --dry-run ./train
    code_is 2
    err_has "dtrun does not know what host1 has before it connects: write host1:N"
}

@test "torchrun's command line runs two ranks on each of two hosts" {
    dtrun --nproc-per-node 2 -H host1,host2 --transport local --no-tag \
        sh -c 'echo "$RANK $GROUP_RANK $LOCAL_RANK $LOCAL_WORLD_SIZE"'
    code_is 0
    [ "$(sort "$OUT" | paste -sd,)" = "0 0 0 2,1 0 1 2,2 1 0 2,3 1 1 2" ] || { show; return 1; }
    clean
}

@test "--nnodes refuses more hosts than are given" {
    dtrun --nnodes 3 -H host1,host2 --dry-run ./train
    code_is 2
    err_has "--nnodes 3: only 2 hosts are given"
}

@test "ROLE_RANK and ROLE_WORLD_SIZE have the values that torchrun sets" {
    dtrun --nproc-per-node 2 --no-tag sh -c 'echo "$RANK $ROLE_RANK $WORLD_SIZE $ROLE_WORLD_SIZE"'
    code_is 0
    [ "$(sort "$OUT")" = "0 0 2 2
1 1 2 2" ]
    dtrun -x ROLE_RANK=3 true
    code_is 2
    clean
}

@test "--display-map prints the plan and runs the job" {
    dtrun --display-map -np 2 --no-tag echo ran
    code_is 0
    out_is 'ran
ran
'
    dtrun -np 2 --dry-run true
    dtrun -np 2 --display-map true 2>/dev/null
    grep -q '^rank  host' "$ERR"
    [ "$(grep -c localhost "$ERR")" -eq 2 ]
}

@test "--report-bindings prints which CPUs each rank may use" {
    dtrun -np 2 --bind-to hwthread --report-bindings --no-tag \
        grep Cpus_allowed_list /proc/self/status
    code_is 0
    [ "$(grep -c '^dtrun: rank [01] on localhost may use CPUs ' "$ERR")" -eq 2 ]
    # The report agrees with the CPUs that the program has.
    [ "$(cut -f2 "$OUT" | sort)" = "$(sed -E 's/.*CPUs //' "$ERR" | sort)" ]
    dtrun -np 1 --bind-to numa --report-bindings true
    err_has "rank 0 on localhost may use CPUs "
    dtrun -np 1 --bind-to l3 true
    code_is 0
    err_is_empty
    clean
}

@test "--output-filename writes a file for each rank and shows the output" {
    dtrun -np 1 --output-filename logs echo hello
    code_is 0
    out_is 'hello
'
    [ "$(cat logs/rank.00000.out)" = hello ]
}

@test "--check-build lists every library with its version, yes or no" {
    dtrun --check-build
    code_is 0
    for library in libssh2 libuv cJSON libsodium NCCL CUDA PMI-1 PMIx; do
        grep -qE "^  $library +([0-9][0-9.]*|yes|no) " "$OUT" || { echo "$library"; show; return 1; }
    done
    dtrun -cb
    code_is 0
}
