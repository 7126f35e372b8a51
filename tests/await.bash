# Waiting for what is bound to happen, in black-box tests.

# In seconds: a watchdog for what takes a moment where nothing is wrong, however slow and busy the
# machine is. What must not be waited for (graces, leases, sleeping ranks) is set to more.
PATIENCE=180

# Tries a command until it succeeds.
await() { # COMMAND...
    local end=$((SECONDS + PATIENCE))

    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.02 # between two looks
    done
}
