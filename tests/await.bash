# Waiting for what is bound to happen, in black-box tests.

# In seconds: a watchdog for what takes a moment where nothing is wrong, however slow and busy the
# machine is. What must not be waited for (graces, leases, sleeping ranks) is set to more.
PATIENCE=180

# Tries a command until it succeeds: at first often, then 10 times a second, as each look costs several
# processes.
await() { # COMMAND...
    local end=$((SECONDS + PATIENCE)) pause=20 # milliseconds

    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep "0.0$pause"
        [ "$pause" -ge 90 ] || pause=$((pause + 5))
    done
}
