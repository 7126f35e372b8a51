#!/usr/bin/env bats
# Runs the engine of a job in simulated worlds (tests/sim/run), and checks that the simulator catches mistakes
# in it.

readonly SIM="$DTRUN_BUILD/tests/sim/sim" WATCHDOG="timeout -k 5 300"

setup_file() {
    "$DTRUN_SOURCE/tests/sim/mutate" "$DTRUN_BUILD" "$BATS_FILE_TMPDIR"
}

# caught MISTAKE [ARGUMENTS]: an engine with that mistake breaks an invariant, and the simulator prints the seed.
caught() {
    run $WATCHDOG "$BATS_FILE_TMPDIR/$1" --first "${@:2}"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"# seed "* ]]
}

@test "a job keeps its invariants in 2,000 worlds" {
    $WATCHDOG "$SIM" --seeds 2000
}

@test "a seed replays the same events" {
    $WATCHDOG "$SIM" --seed 7 >"$BATS_TEST_TMPDIR/once"
    $WATCHDOG "$SIM" --seed 7 | diff "$BATS_TEST_TMPDIR/once" -
    [ "$(wc -l <"$BATS_TEST_TMPDIR/once")" -gt 20 ]
}

@test "a job of 1,000 hosts survives the deaths of a hundredth of its ranks" {
    $WATCHDOG "$SIM" --hosts 1000
}

@test "the simulator catches a host with stuck processes that ends the job" {
    caught "a host with stuck processes ends the job"
}
@test "the simulator catches a process that cannot be killed and counts as stuck" {
    caught "a process that cannot be killed counts as stuck"
}
@test "the simulator catches other ranks that run on when a host with stuck processes is left" {
    caught "the other ranks run on when a host with stuck processes is left"
}
@test "the simulator catches a job that ends at once when no host is left" { caught "a job ends at once when no host is left"; }
@test "the simulator catches a job that waits for ever until a host comes back" {
    caught "a job waits for ever until a host comes back"
}
@test "the simulator catches a host that --inject has taken away and is tried again" {
    caught "a host that --inject has taken away is tried again"
}
@test "the simulator catches a restart that does not name hosts that are not back" {
    caught "a restart does not name hosts that are not back"
}
@test "the simulator catches a restart that names only one of the hosts that are not back" {
    caught "a restart names only one of the hosts that are not back"
}
@test "the simulator catches a restart that says of a host that is connected that it is not back" {
    caught "a restart says of a host that is connected that it is not back" --seeds 20000
}
@test "the simulator catches hosts in quarantine that are used in vain" {
    caught "hosts in quarantine are used, and that does not help" --from 11061673
}
@test "the simulator catches a host that others do not reach and that counts as usable" {
    caught "a host that others do not reach counts as usable" --from 11125302
}
@test "the simulator catches a dtrun that uses a host again after an outage and does not say so" {
    caught "a host is used again after an outage, and dtrun does not say so"
}
@test "the simulator catches a dtrun that says each time that it tries again that a host is used again" {
    caught "dtrun says each time that it tries again that a host is used again"
}
@test "the simulator catches a report that leaves a host out to the end although it is used again" {
    caught "a host that is used again is left out to the end" --from 11363160
}
@test "the simulator catches a timer that is early after Ctrl-Z" { caught "a timer that is delayed is early" --from 11115835; }
@test "the simulator catches a host that is back and gets no ranks" {
    caught "a host that is back gets no ranks"
}
@test "the simulator catches a host that is back and gets no ranks until another is missing" {
    caught "a host that is back gets no ranks while no other is missing"
}
@test "the simulator catches a host that is used before it is known to be back" {
    caught "a host is used before it is known to be back"
}
@test "the simulator catches a host that is back, lost again, and waited for" {
    caught "a host that is back and lost again is waited for"
}
@test "the simulator catches a lost host that is never tried again" {
    caught "a lost host is never tried again"
}
@test "the simulator catches a lost host that is tried again at once" {
    caught "a lost host is tried again at once"
}
@test "the simulator catches a lost host that is tried again at the same pace for ever" {
    caught "a lost host is tried again at the same pace for ever"
}
@test "the simulator catches a job that waits for its end until it has tried a lost host" {
    caught "a job waits for its end until it has tried a lost host"
}
@test "the simulator catches a restart that waits until an attempt to reach a lost host has ended" {
    caught "a restart waits until an attempt to reach a lost host has ended" --from 23500 # a rare one
}
@test "the simulator catches a host that is back, cannot start ranks, and ends the job" {
    caught "a host that is back and cannot start ranks ends the job" --from 2000
}
@test "the simulator catches a host that is back, late, and ends the job" {
    caught "a host that is back and late ends the job" --from 6100 # a rare one
}
@test "the simulator catches a host that is back and need not see the checkpoints" {
    caught "a host that is back need not see the checkpoints"
}
@test "the simulator catches another name of a host that comes back beside it" {
    caught "another name of a host comes back beside it"
}
@test "the simulator catches a job that waits for lost hosts although --on-host-loss stop was given" {
    caught "a job waits for lost hosts although --on-host-loss stop was given"
}
@test "the simulator catches a job that waits for hosts that would not suffice" {
    caught "a job waits for hosts that would not suffice"
}
@test "the simulator catches a second name of a host that counts while another host is missing" {
    caught "a second name of a host counts while another host is missing" --from 569194 # a rare one
}
@test "the simulator catches a job that waits for hosts and tells at each try what is wrong" {
    caught "a job that waits for hosts tells at each try what is wrong"
}
@test "the simulator catches a job that waits for hosts and claims at each try that it continues" {
    caught "a job that waits for hosts claims at each try that it continues" --from 20889 # a rare one
}
@test "the simulator catches a fence that is dropped" { caught "the fence is dropped"; }
@test "the simulator catches a generation that is not checked" {
    caught "the generation of a death is not checked"
}
@test "the simulator catches a death that is forgotten" { caught "a death is forgotten"; }
@test "the simulator catches an old checkpoint that counts as new" { caught "a checkpoint of an old generation counts"; }
@test "the simulator catches a restore that has begun and does not count" {
    caught "a restore that has begun does not count"
}
@test "the simulator catches a rank that exits in its first restore and is started again" {
    caught "a rank that exits in its first restore is started again"
}
@test "the simulator catches a host that is lost in the first restore and ends the job" {
    caught "a host that is lost in the first restore ends the job"
}
@test "the simulator catches a timer that is not stopped" { caught "a timer is not stopped"; }
@test "the simulator catches a STOP that is sent twice" { caught "STOP is sent twice"; }
@test "the simulator catches an exit code that belongs to a later death" { caught "the exit code is that of a later death"; }
@test "the simulator catches a host that is left out without a fence" {
    caught "a host that is left out is not fenced"
}
@test "the simulator catches a host that is fenced although it was never sent GO" {
    caught "a host that was never sent GO is fenced"
}
@test "the simulator catches a host that is fenced only if its ranks are known to run" {
    caught "a host is fenced only when its ranks are known to run"
}
@test "the simulator catches a job that ends with 125 instead of restarting" {
    caught "the job ends with 125 where a restart is due"
}
@test "the simulator catches ranks that have no time to save when they leave a host" {
    caught "ranks that leave a host that shuts down have no time to save"
}
@test "the simulator catches a host that gets ranks although it shuts down" {
    caught "a host that shuts down gets ranks again"
}
@test "the simulator catches a host that is left although no restart is allowed" {
    caught "a host that shuts down is left although no restart is allowed"
}
@test "the simulator catches a restart after all ranks have ended" {
    caught "a job whose host shuts down is restarted although all ranks have ended"
}
@test "the simulator catches hosts in quarantine that are forgotten" {
    caught "a job ends with a host although hosts in quarantine have room"
}
@test "the simulator catches ranks that start again when a signal is about to end the job" {
    caught "ranks start again although a signal is about to end the job"
}
@test "the simulator catches a host that shuts down and is said to come back" {
    caught "a host that shuts down is said to come back"
}
@test "the simulator catches a second signal to the same host that ends the job" {
    caught "a second signal to the same host ends the job"
}
@test "the simulator catches a host that is given up early" { caught "a host is given up early"; }
@test "the simulator catches a lost host that gets no new connection" {
    caught "a lost host gets no fresh connection"
}
@test "the simulator catches restarts that are not counted" { caught "restarts are never counted"; }
@test "the simulator catches one restart too many" {
    caught "one restart too many is allowed"
}
@test "the simulator catches a restart that does not wait" { caught "a restart does not wait"; }
@test "the simulator catches a stream that is dropped" { caught "a stream is dropped"; }
@test "the simulator catches the end of a stream that is dropped" {
    caught "the end of a stream is dropped"
}
@test "the simulator catches streams of a lost host that do not end" {
    caught "a lost host's streams do not end"
}
@test "the simulator catches standard input that is credited too early" {
    caught "standard input is credited too early"
}
@test "the simulator catches standard input that is read while ranks restart" {
    caught "standard input is read while ranks start again"
}
@test "the simulator catches restarted ranks that do not see the end of standard input" {
    caught "restarted ranks do not see the end of standard input"
}
@test "the simulator catches an echo of a batch system's signal that counts as a second one" {
    caught "an echo of a batch system's signal counts"
}
@test "the simulator catches a late report that counts as a second signal" {
    caught "a late report of a signal counts"
}
@test "the simulator catches a job that does not wait for a batch system's signal" {
    caught "a batch system's signal is not awaited"
}
@test "the simulator catches an exit grace that is forgotten" { caught "the exit grace is forgotten"; }
@test "the simulator catches a restart that does not leave hosts out" {
    caught "a restart does not leave hosts out"
}
@test "the simulator catches a failed output that ends the job with 0" {
    caught "a failed output ends the job with 0"
}
@test "the simulator catches a hanging rank that is given up early" {
    caught "a rank that hangs is given up early"
}
@test "the simulator catches a hanging rank that is not noticed" {
    caught "a rank that hangs is not noticed"
}
@test "the simulator catches an injected fault that is triggered again" {
    caught "an injected fault is triggered again"
}
@test "the simulator catches a host that is used again after a fault took it away" {
    caught "a host that a fault took away is used again"
}
@test "the simulator catches a rank that leaves others waiting without failing the job" {
    caught "a rank that leaves others waiting has not failed"
}
@test "the simulator catches a rank that leaves MPI and is not missed" {
    caught "a rank that leaves MPI is not missed"
}
@test "the simulator catches a rank that never comes to MPI and is not missed" {
    caught "a rank that never comes to MPI is not missed"
}
@test "the simulator catches a rank that is missed although no other waits in MPI" {
    caught "a rank is missed although no other waits in MPI"
}
@test "the simulator catches a rank that leaves MPI and is missed too early" {
    caught "a rank that leaves MPI is missed too early"
}
@test "the simulator catches a limit of a call that does not count" {
    caught "a limit that the program sets for a call does not count"
}
@test "the simulator catches a failure of DT_WORLD that ranks may ignore" {
    caught "a failure of DT_WORLD may be ignored"
}
@test "the simulator catches a failed call that other hosts do not hear of" {
    caught "a failed call is not passed on"
}
@test "the simulator catches a failed call of an old generation that aborts ranks" {
    caught "a failed call of an old generation is passed on"
}
@test "the simulator catches a failed call that is passed on after a death" {
    caught "a failed call is passed on after a death"
}
@test "the simulator catches a job that ends with 0 although ranks ignored failed calls" {
    caught "a job whose ranks ignore failed calls ends with 0"
}
@test "the simulator catches a fence of an old generation that counts" {
    caught "a fence of an old generation counts"
}
@test "the simulator catches a fence that is over before all hosts have come" {
    caught "a fence is over before all hosts have come"
}
@test "the simulator catches a fence that brings old data" {
    caught "a fence brings the data of the one before"
}
@test "the simulator catches a fence that goes on in the next generation" {
    caught "a fence goes on in the next generation"
}
@test "the simulator catches last calls that are dropped" { caught "last calls are dropped"; }
@test "the simulator catches last calls that belong to an old generation" {
    caught "last calls of an old generation are printed"
}
@test "the simulator catches a limit of an old generation that counts" {
    caught "a limit of an old generation counts"
}
@test "the simulator catches a limit of the program that changes nothing" {
    caught "a limit of the program changes nothing"
}
@test "the simulator catches a limit of the program that puts off the next look" {
    caught "a limit of the program puts off the next look"
}
@test "the simulator catches an unfinished line that is not shown" {
    caught "an unfinished line is not shown"
}
@test "the simulator catches hosts that are not asked for all addresses" {
    caught "hosts are not asked for all addresses"
}
@test "the simulator catches a machine with two names that is used twice" {
    caught "a machine with two names is used twice"
}
@test "the simulator catches an older checkpoint that is restored without a word" {
    caught "an older checkpoint is restored without a word"
}
@test "the simulator catches a defective host that is not left out" { caught "no host is left out"; }
@test "the simulator catches a host that is left out after two failures" {
    caught "a host is left out after two failures"
}
@test "the simulator catches a host that never comes back from quarantine" {
    caught "a host that was left out never comes back"
}
@test "the simulator catches a report that forgets that a host is back" {
    caught "the report forgets that a host is back"
}
@test "the simulator catches an auxiliary that fails the job as its ranks end" {
    caught "an auxiliary that fails as the ranks end fails the job"
}
@test "the simulator catches auxiliaries that are stopped early" {
    caught "auxiliaries are stopped early"
}
@test "the simulator catches auxiliaries that still run after the ranks" {
    caught "auxiliaries run on after the ranks"
}
@test "the simulator catches a job that fails because a host with only auxiliaries is lost" {
    caught "a host that only had auxiliaries left is needed"
}
@test "the simulator catches a time limit that fails a job whose ranks have ended" {
    caught "the time limit fails a job whose ranks have ended"
}
@test "the simulator catches agents whose answers are not awaited" {
    caught "agents that have not answered are not awaited"
}
@test "the simulator catches a consequence that counts before its cause is known" {
    caught "a consequence counts before the death that explains it"
}
@test "the simulator catches a preemption that gives ranks no time to end" {
    caught "a preemption gives ranks no time to end"
}
@test "the simulator catches a job that has recovered before it has restored" {
    caught "a job has recovered before it has restored"
}
@test "the simulator catches ranks that get too long to end" {
    caught "ranks get too long to end"
}
@test "the simulator catches a failed job that gives its ranks no time to end" {
    caught "a failed job gives its ranks no time to end"
}
@test "the simulator catches a second interrupt that waits for a reader" {
    caught "a second interrupt waits for a reader"
}
@test "the simulator catches a second interrupt that is ignored" {
    caught "a second interrupt is ignored"
}
@test "the simulator catches ranks that are sent SIGUSR1 before they run" {
    caught "ranks that do not run yet are sent SIGUSR1"
}
@test "the simulator catches ranks that are interrupted before they run" {
    caught "ranks that do not run yet are interrupted"
}
@test "the simulator catches output that is dropped before somebody reads it" {
    caught "output that nobody reads yet is dropped"
}
@test "the simulator catches ranks that wait for a reader although dtrun drops their output" {
    caught "ranks wait for a reader although dtrun drops what they print"
}
@test "the simulator catches output that is dropped while somebody reads it" {
    caught "output that is being read is dropped"
}
@test "the simulator catches a stream that is being read and is dropped with the other" {
    caught "a stream that is being read is dropped with the other"
}
@test "the simulator catches a stream that is being read and is not awaited at the end" {
    caught "a stream that is being read is not awaited at the end"
}
@test "the simulator catches too many hosts that connect at once" {
    caught "too many hosts connect at once"
}
@test "the simulator catches ranks that run before all hosts are ready" {
    caught "ranks run before all hosts are ready"
}
@test "the simulator catches ranks that run although one has failed" {
    caught "ranks run after one has failed"
}
@test "the simulator catches a PING to an agent that has not answered the last one" {
    caught "PING is sent to an agent that has not answered"
}
@test "the simulator catches a grace that runs on while Ctrl-Z stops the ranks" {
    caught "the time of Ctrl-Z counts for the grace of ranks"
}
@test "the simulator catches a dtrun that stops itself before its ranks" {
    caught "dtrun stops itself before its ranks"
}
@test "the simulator catches a report that names an older checkpoint" {
    caught "the report names an older checkpoint"
}
@test "the simulator catches a --resume that is passed on after the job has saved" {
    caught "--resume is passed on after the job has saved"
}
@test "the simulator catches moved ranks that share slots against the user's will" {
    caught "moved ranks share slots that were not to be shared"
}
@test "the simulator catches an ABORT that does not say how the rank has ended" {
    caught "ABORT does not say how the rank has ended"
}
