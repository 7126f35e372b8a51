# Random jobs on real hosts, disturbed at random moments: a few of those that tests/cluster/random runs.

setup() { cd "$BATS_TEST_TMPDIR"; }

@test "random jobs, disturbed at random moments, end as they must and leave nothing behind" {
    run timeout -k 5 600 "$DTRUN_SOURCE/tests/cluster/random" --from 1 --seeds 10
    [[ "$output" != SKIP:* ]] || skip "${output#SKIP: }"
    echo "$output"
    [ "$status" = 0 ]
    [ "${lines[-1]}" = "10 seeds, 0 failed" ]
}
