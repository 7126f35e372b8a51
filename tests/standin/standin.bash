# For bats files: lets the programs of a test find the stand-in for libcuda.so.1, with DEVICES devices on
# each host. Its other settings are variables of the environment:
# STANDIN_DELAY_US (before each piece of a stream's work), STANDIN_MEMORY (bytes of a device),
# STANDIN_HOST (a name, by which devices of "hosts" differ), STANDIN_LOG (a file for what happened).
use_standin() { # DEVICES
    export STANDIN_DEVICES=$1
    export LD_LIBRARY_PATH=$DTRUN_BUILD/tests/standin/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
