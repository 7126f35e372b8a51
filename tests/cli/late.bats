#!/usr/bin/env bats
# Ranks that are alive but do not join a call, on any communicator: dtrun says which rank waits for which, and
# no call waits for ever.

load common

@test "check 33: DT_ERR_TIMEOUT and dtrun name a rank that never joins a call, or the deadlock, for every call" {
    try names_every_kind 2 20
    clean
}

# All kinds run at once, because they only wait. Ranks begin to wait within half of the limit.
names_every_kind() { # LIMIT
    local each_other="they wait for each other: a deadlock, unless another of their threads ends it"
    local how pid kinds="never join send behind recv irecv free cross aside chain ring itself"
    declare -A pids
    for how in $kinds; do
        env "$TOKEN" timeout -k 5 "$PATIENCE" "$DTRUN" --transport local -H a:2,b:2 --collective-timeout "$1" \
            "$RANK/late" "$how" </dev/null >"$T/$how.out" 2>"$T/$how" 3>&- &
        pids[$how]=$!
    done
    for how in $kinds; do
        RC=0
        wait "${pids[$how]}" || RC=$?
        ERR="$T/$how" OUT="$T/$how.out" code_is 124
    done
    says never "^dtrun: warning: ranks 0-2 have waited .* in barrier \(call 2\) on communicator 0\.1 for rank 3 \(b, pid [0-9]+\), which was last in dt_comm_split \(call 1\)$"
    says never "^dtrun: ranks 0-2 have waited .* for rank 3 .* \(--collective-timeout $1\)"
    for rank in 0 1 2; do
        says never "^\[$rank\] rank $rank \([ab]\): barrier, call 2 on communicator 0\.1: timed out: ranks 0-2 have waited .* for rank 3 \(b, "
    done
    says join "^dtrun: warning: ranks 0-2 have waited .* in (barrier|dt_join) \(call 2\) on communicator 0\.1 for rank 3 \(b, "
    says join "^\[0\] rank 0 \(a\): dt_join, call 2 on communicator 0\.1: timed out: "
    says join "^\[[12]\] rank [12] \([ab]\): barrier, call 2 on communicator 0\.1, after dt_join_begin: timed out: "
    says send "rank 0 has waited .* in send to rank 3 \(call 1\) on communicator 0\.1 for rank 3 \(b, pid [0-9]+\), which was last in dt_comm_split"
    says send "^\[0\] rank 0 \(a\): send of 1 i32 to rank 3, call 1 on communicator 0\.1: timed out: "
    says recv "rank 0 has waited .* in recv from rank 3 \(call 1\) on communicator 0\.1 for rank 3 \(b, "
    says recv "^\[0\] rank 0 \(a\): recv of 1 i32 from rank 3, call 1 on communicator 0\.1: timed out: "
    says behind "rank 0 .* in send to rank 3 \(call 2\) on communicator 0\.1.* rank 3 \(b, "
    says behind "^\[0\] rank 0 \(a\): send of 1 i32 to rank 3, call 2 on communicator 0\.1: timed out: "
    says free "rank 0 has waited .* in recv from rank 3 \(call 1\) on communicator 0\.1 for rank 3 \(b, "
    says free "^\[0\] rank 0 \(a\): recv of 1 i32 from rank 3, call 1 on communicator 0\.1: timed out: "
    says irecv "rank 0 has waited .* in recv from rank 3 \(call 1\) on communicator 0\.1 for rank 3 \(b, "
    says irecv "^\[0\] rank 0 \(a\): recv of 1 i32 from rank 3, call 1 on communicator 0\.1: timed out: "
    says cross "^dtrun: warning: ranks 0-2 have waited .* in barrier \(call 2\) on communicator 0\.1 for rank 3 \(b, pid [0-9]+\), which is in dt_finalize \(call 3\) on DT_WORLD; $each_other$"
    says cross "^\[3\] rank 3 \(b\): dt_finalize, call 3: timed out: .*; $each_other "
    says aside "^dtrun: warning: ranks 0-2 have waited .* in barrier \(call 2\) on communicator 0\.1 for rank 3 \(b, pid [0-9]+\), which is in recv from rank 0 \(call 1\); $each_other$"
    says chain "rank 0 has waited .* for rank 1 \(a, pid [0-9]+\), which is in barrier \(call 2\) on communicator 1\.2; rank 2 .*; rank 3 \(b, pid [0-9]+\), which was last in "
    says itself "^dtrun: warning: rank 0 has waited .* in send to rank 0 \(call 1\) on communicator [0-9.]+ for rank 0 \(a, pid [0-9]+\), which is in send to rank 0 \(call 1\); it waits for itself: a deadlock, unless another of its threads ends it$"
    says itself "^\[0\] rank 0 \(a\): send of 1 i32 to rank 0, call 1 on communicator [0-9.]+: timed out: "
    says ring "^dtrun: warning: rank [0-3] has waited .* in send to rank [0-3] \(call 1\) .*; $each_other$"
    [ "$(grep -c '^dtrun: warning: ' "$T/ring")" = 1 ] || { cat "$T/ring"; false; } # whichever rank seems to be the first
}

says() { # FILE PATTERN
    grep -qE -- "$2" "$T/$1" && return
    echo "$1 lacks: $2"
    cat "$T/$1"
    return 1
}

@test "a timeout of a communicator ends its calls alone, and communicators made from it inherit it" {
    try times_out_alone 1 10
    clean
}

times_out_alone() { # LIMIT
    dtrun --transport local -H a:2,b:1 "$RANK/late" own "$1"
    code_is 0
    [ "$(grep -cE '^\[[01]\] -5: rank [01] \(a\): barrier, call 2 on communicator 0\.2: timed out: ranks 0-1 .* for rank 2 \(b, .* \(dt_comm_set_timeout '"$1"'\)$' "$ERR")" = 2 ] || { show; false; }
    [ "$(grep -cx '\[[01]\] again: timed out' "$OUT")" = 2 ] || { show; false; }
    [ "$(grep -c '^dtrun: warning: ' "$ERR")" = 1 ] || { show; false; }
    err_has "dtrun: | call 1: dt_comm_dup, ok " # the call that made it, as the program wrote it
}

# If a call took the timeout that was set last, the third would end at once, or the first never. If setting a
# timeout waited for the calls under way, the last rank would never be told to join.
@test "check 33: each of several calls under way keeps the timeout that was set when it was made" {
    try keeps_timeouts several several several several several
    clean
}

# Ranks begin to wait within a second of each other.
keeps_timeouts() { # several
    dtrun --transport local -H a:2,b:1 "$RANK/late" "$1"
    code_is 0
    local late="timed out: ranks? 0(-1)? ha(ve|s) waited .* for rank 2 \\(b, .*"
    for rank in 0 1; do
        for call in first second; do
            said "$rank" "$call: -5: rank $rank \\(a\\): all-reduce.* on communicator 0\\.2: $late \\(dt_comm_set_timeout 2\\)"
        done
        said "$rank" "fourth: -5: rank $rank \\(a\\): barrier, call 3 on communicator 0\\.3: $late \\(dt_comm_set_timeout 1\\)"
    done
    said 0 "fifth: -5: rank 0 \\(a\\): recv of 1 i32 from rank 2, call 1 on communicator 0\\.1: $late \\(dt_comm_set_timeout 1\\)"
    grep -qx '\[0\] third: 0, then 3' "$OUT" || { show; false; }
    grep -qx '\[1\] third: [01], then 3' "$OUT" || { show; false; } # rank 0 may already have told the last rank
}

# dtrun watches four threads at once.
@test "check 33: a call with a timeout ends even if more threads than are watched wait without one" {
    dtrun --transport local -H a:2,b:1 "$RANK/late" crowd
    code_is 0
    said 0 "last: -5: rank 0 \\(a\\): recv of 1 i32 from rank 2, call 1 on communicator 0\\.1: timed out: rank 0 has waited .* in recv from rank 2 .* for rank 2 \\(b, .* \\(dt_comm_set_timeout 1\\)"
    out_has 1 "all: 1"
    clean
}

said() { # RANK PATTERN
    grep -qE -- "^\[$1\] $2\$" "$ERR" || { echo "rank $1 has not said: $2"; show; false; }
}

# There are so many ranks that not all pairs are connected. They would wait for connections that the others
# never make.
@test "checks 27, 30: ranks on many hosts find calls that do not match by themselves" {
    dtrun --transport local -H "$(seq -s, -f 'h%g:1' 18)" --collective-timeout 30 "$RANK/late" differ
    code_is 3
    grep -qE "^\[[0-8]\] rank [0-8] \(h[1-9]\) called all-reduce of 65536 f32 \(sum\) as f16, call 3; .*rank [0-9]+ \(h[0-9]+\) called barrier, call 3" "$ERR" || { show; false; }
    ! grep -q "elsewhere ranks " "$ERR" || { show; false; }
    clean
}

@test "dt_wait waits no longer than its timeout, and the request goes on" {
    dtrun -np 3 "$RANK/late" request
    code_is 0
    [ "$(grep -cx '\[[01]\] done: 0' "$OUT")" = 2 ] || { show; false; }
    [ "$(grep -cx '\[[012]\] done: 1, 3, none: 1' "$OUT")" = 3 ] || { show; false; }
    clean
}

@test "check 38: a rank stopped in a call of some ranks is named, and one that continues in time loses nothing" {
    try names_stopped_rank 6 20
    clean
}

names_stopped_rank() { # LIMIT
    dtrun_start -np 3 --collective-timeout "$1" "$RANK/late" loop
    await grep -q . "$OUT"
    local pid=$(grep -lzFx "DTRUN_RANK=1" $(for p in $(left_behind); do echo "/proc/$p/environ"; done) | cut -d/ -f3)
    kill -STOP "$pid"
    await grep -qE "^dtrun: warning: .* in barrier \(call [0-9]+\) on communicator 0\.1 for rank 1 \(localhost, pid $pid\), which is stopped by a signal and " "$ERR"
    kill -CONT "$pid"
    local seen="$(wc -l <"$OUT")"
    out_has $((seen + 3)) .
    kill -STOP "$pid"
    dtrun_wait
    code_is 124
    grep -qE "^dtrun: ranks 0,2 have waited .* for rank 1 \(localhost, pid $pid\), which is stopped by a signal and .* \(--collective-timeout $1\)" "$ERR" || { show; false; }
}
