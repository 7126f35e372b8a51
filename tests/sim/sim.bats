#!/usr/bin/env bats
# The engine of a job in model worlds (tests/sim/run), and mistakes of the engine that they catch.

readonly SIM="$DTRUN_BUILD/tests/sim/sim" WATCHDOG="timeout -k 5 300"

# caught MISTAKE: an engine with that mistake breaks an invariant, and the simulator names the seed.
caught() {
    "$DTRUN_SOURCE/tests/sim/mutate" "$DTRUN_BUILD" "$BATS_TEST_TMPDIR" "$1"
    run $WATCHDOG "$BATS_TEST_TMPDIR/sim" --first
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"# seed "* ]]
}

@test "a job keeps its invariants in 2,000 worlds" {
    $WATCHDOG "$SIM" --seeds 2000
}

@test "a seed repeats itself, event by event" {
    $WATCHDOG "$SIM" --seed 7 >"$BATS_TEST_TMPDIR/once"
    $WATCHDOG "$SIM" --seed 7 | diff "$BATS_TEST_TMPDIR/once" -
    [ "$(wc -l <"$BATS_TEST_TMPDIR/once")" -gt 20 ]
}

@test "a job of 1,000 hosts survives the deaths of a hundredth of its ranks" {
    $WATCHDOG "$SIM" --hosts 1000
}

@test "worlds show that the fence is dropped" { caught "the fence is dropped"; }
@test "worlds show that the generation is not checked" {
    caught "the generation of a death is not checked"
}
@test "worlds show that a death is forgotten" { caught "a death is forgotten"; }
@test "worlds show that an old checkpoint counts" { caught "a checkpoint of an old generation counts"; }
@test "worlds show that a timer is not stopped" { caught "a timer is not stopped"; }
@test "worlds show that STOP is sent twice" { caught "STOP is sent twice"; }
@test "worlds show that a later death decides" { caught "the exit code is that of a later death"; }
@test "D12: worlds show that a host that is left out is not fenced" {
    caught "a host that is left out is not fenced"
}
@test "D23: worlds show that a host that was never sent GO is fenced" {
    caught "a host that was never sent GO is fenced"
}
@test "D23: worlds show that a host is fenced only when its ranks are known to run" {
    caught "a host is fenced only when its ranks are known to run"
}
@test "D19: worlds show that the job ends with 125 where a restart is due" {
    caught "the job ends with 125 where a restart is due"
}
@test "D19: worlds show that a host is given up early" { caught "a host is given up early"; }
@test "D19: worlds show that a lost host gets no fresh connection" {
    caught "a lost host gets no fresh connection"
}
@test "D20: worlds show that restarts are never counted" { caught "restarts are never counted"; }
@test "D20: worlds show that one restart too many is allowed" {
    caught "one restart too many is allowed"
}
@test "D20: worlds show that a restart does not wait" { caught "a restart does not wait"; }
@test "D21: worlds show that a stream is dropped" { caught "a stream is dropped"; }
@test "D21: worlds show that the end of a stream is dropped" {
    caught "the end of a stream is dropped"
}
@test "D21: worlds show that a lost host's streams do not end" {
    caught "a lost host's streams do not end"
}
@test "D22: worlds show that standard input is credited too early" {
    caught "standard input is credited too early"
}
@test "D22: worlds show that standard input is read while ranks start again" {
    caught "standard input is read while ranks start again"
}
@test "D22: worlds show that restarted ranks do not see the end of standard input" {
    caught "restarted ranks do not see the end of standard input"
}
@test "D22: worlds show that an echo of a batch system's signal counts" {
    caught "an echo of a batch system's signal counts"
}
@test "D22: worlds show that a batch system's signal is not awaited" {
    caught "a batch system's signal is not awaited"
}
@test "D22: worlds show that the exit grace is forgotten" { caught "the exit grace is forgotten"; }
@test "D22: worlds show that a restart does not leave hosts out" {
    caught "a restart does not leave hosts out"
}
@test "D22: worlds show that a failed output ends the job with 0" {
    caught "a failed output ends the job with 0"
}
@test "D22: worlds show that a rank that hangs is given up early" {
    caught "a rank that hangs is given up early"
}
@test "D22: worlds show that a rank that hangs is not noticed" {
    caught "a rank that hangs is not noticed"
}
@test "D22: worlds show that an injected fault strikes again" {
    caught "an injected fault strikes again"
}
@test "D22: worlds show that a host that a fault took away is used again" {
    caught "a host that a fault took away is used again"
}
