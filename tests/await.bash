# Waiting for events that are bound to happen, and finding processes, in black-box tests.

# A watchdog in seconds, for what takes a moment if nothing is wrong, however slow and busy the machine is.
# Set times that a test must not wait for (graces, leases, sleeping ranks) to more.
PATIENCE=180

# timeout of the uutils refuses arguments that are not UTF-8.
TIMEOUT=$(command -v gnutimeout || echo timeout)

# Call this in setup. bats notes each command of a test and of all functions that it calls, so that it can name the
# line that failed. In functions this takes a millisecond a command; from now on it names the line of the test.
trace_tests_only() { set +T; }

# Waits without a process: nobody writes to this socket, and only this command has it. Without a network, it waits for a
# pipe, which costs a short process. (A sleep would outlive a script that is killed, and hold its output open.)
nap() { # SECONDS
    { read -rt "$1" _ </dev/udp/127.0.0.1/9; } 2>/dev/null || [ $? -gt 128 ] ||
        read -rt "$1" _ <> <(:) || [ $? -gt 128 ]
}

# Tries a command until it succeeds: often at first, later 10 times a second, because a try may cost several
# processes.
await() { # COMMAND...
    local end=$((SECONDS + PATIENCE)) pause=20 # milliseconds

    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        nap "0.0$pause"
        [ "$pause" -ge 90 ] || pause=$((pause + 5))
    done
}

# Runs "BODY LIMIT"; if that fails, again with the next limit. A crowded machine may stop a process for seconds, and so
# break a test with a short limit. Who calls this defines begin_try, which prepares a try, and end_failed_try.
try() { # BODY LIMIT...
    local limit

    for limit in "${@:2}"; do
        ( # with an if or || after it, set -e would have no effect
            set -e
            begin_try "$1"
            "$1" "$limit"
        ) &
        ! wait $! || return 0
        echo "$1 $limit has failed"
        echo "# $1 $limit has failed: $BATS_TEST_DESCRIPTION" >&3
        end_failed_try
    done
    return 1
}

# Prints the ids of all processes that have this in the environment.
processes_with() { # NAME=VALUE
    grep -lzFx "$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 || true
}
