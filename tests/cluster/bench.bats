# The benches work: each runs one round, whose figures do not matter.

setup() { cd "$BATS_TEST_TMPDIR"; }

bench() { # NAME: skips the test if the bench says SKIP
    run timeout -k 5 300 "$DTRUN_SOURCE/tests/bench/$1" --quick
    [[ "$output" != SKIP:* ]] || skip "${output#SKIP: }"
    echo "$output"
    [ "$status" = 0 ]
}

@test "tests/bench/launch compares dtrun with ssh, mpirun, mpiexec.hydra and srun" {
    bench launch
    peers=4
    ! grep -q '^an MPI program by ssh, hosts: 2' <<<"$output" || peers=$((peers + 1))
    ! grep -q '^in a Slurm allocation, nodes: 2' <<<"$output" || peers=$((peers + 4))
    ! grep -q '^an MPI program in a Slurm allocation, nodes: 2' <<<"$output" || peers=$((peers + 1))
    [ "$(grep -cE '^[a-z.].* [0-9.]+ s .* [0-9.]+ of it$' <<<"$output")" = "$peers" ]
    [ "$peers" = 10 ] || grep -q ': SKIP: ' <<<"$output"
}

@test "tests/bench/save compares saves that the program waits for with those in the background" {
    bench save
    [ "$(grep -cE '^ +1 MiB per rank: save [0-9.]+ ms; isave returns after [0-9.]+ ms .* saved after [0-9.]+$' \
        <<<"$output")" = 2 ]
}

@test "tests/bench/agents prints time and memory for each agent" {
    bench agents
    [[ "${lines[1]}" =~ ^\ +20\ +[0-9.]+\ s\ +[0-9.]+\ ms\ .*KiB$ ]]
}

@test "check 50: tests/bench/overlap prints how much of the reduction computation hides" {
    bench overlap
    [ "$(grep -cE '^buckets .*: compute [0-9.]+ ms, reduce [0-9.]+ ms, both [0-9.]+ ms: -?[0-9]+ % hidden, at most -?[0-9]+$' \
        <<<"$output")" = 12 ]
}

@test "check 49: tests/bench/tcp compares all-reduce between hosts, and prints how much of a shaped link it uses" {
    bench tcp
    [ "$(grep -c '^hosts: 2, .*, reno' <<<"$output")" = 6 ]
    [ "$(grep -cE '^hosts: 2, connections: [124], each held at 1 Gbit/s, reno' <<<"$output")" = 3 ]
    [ "$(grep -cE '^ +1048576( +[0-9.]+ us){2} +[0-9.]+$' <<<"$output")" = 3 ]
    [ "$(grep -cE '^ +[0-9]+( +[0-9.]+ us){4} +[0-9.]+$' <<<"$output")" = 8 ]
    [ "$(grep -cE '^ +1 MiB, +2 calls, (dtrun|Open MPI) +[0-9.]+ %, +[0-9.]+ s of CPU for each GB$' <<<"$output")" = 2 ]
}

@test "tests/bench/wire prints how much time compressed formats save" {
    bench wire
    [ "$(grep -cE '^ +1 MiB (exact|f16|bf16|int8|2bit) +[0-9.]+ ms +[0-9.]+$' <<<"$output")" = 10 ]
}

@test "check 37: tests/bench/death prints how soon the survivors know of a death" {
    bench death
    [ "$(grep -cE '^dtrun +[a-z_]+( +[0-9.]+){6}$' <<<"$output")" = 1 ]
    [ "$(grep -cE '^(openmpi|mpich) +[a-z_]+ .* [0-9.]+ +[0-9.]+$' <<<"$output")" = 2 ]
}

@test "checks 47, 48, 52: tests/bench/shape prints cliffs, odd numbers of ranks, and costs of starting and waiting" {
    bench shape
    [ "$(grep -cE '^2\^1[02]( +[0-9.]+){7}' <<<"$output")" = 2 ]
    [ "$(grep -cE '^[3567] ranks +[0-9.]+, [48] ranks +[0-9.]+: [0-9.]+$' <<<"$output")" = 4 ]
    [ "$(grep -cE '^ *[28] ranks: dt_init [0-9.]+ ms, memory [0-9]+ KiB a rank, .* rank -?[0-9.]+ us$' <<<"$output")" = 2 ]
}

@test "checks 46, 47, 51: tests/bench/allreduce prints times and ratios beside other libraries, and costs of waiting" {
    bench allreduce
    [ "$(grep -A 1 '^a rank that waits 0.1 s for another uses, in per cent of them$' <<<"$output" |
        grep -cE '^ +dtrun [0-9.]+$')" = 1 ]
    [ "$(grep -cE '^ +[0-9]+( +[0-9]+\.[0-9]{3}){6}$' <<<"$output")" = 6 ]
    grep -qE '^ +bytes +dtrun +Open MPI ' <<<"$output"
    [ "$(grep -cE '^ +[0-9]+( +[0-9.]+ us){3,4} +[0-9.]+$' <<<"$output")" = 8 ]
    grep -qE '^ +bytes +dtrun +bare +' <<<"$output"
    [ "$(grep -cE '^ +[0-9]+( +[0-9.]+ us){2} +[0-9.]+$' <<<"$output")" = 16 ]
}
