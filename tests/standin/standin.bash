# For bats files: lets the programs of a test find the stand-ins for libcuda.so.1 and libnccl.so.2, with
# DEVICES devices on each host. NCCL's is found as any libnccl.so.2 is, or through DTRUN_NCCL. Both have
# the real ABI and keep the rules of NVIDIA's documents, which stand at the head of each source file.
# Their other settings are variables of the environment:
#   STANDIN_DELAY_US       before each piece of a stream's work
#   STANDIN_QUEUE          so many pieces of work a stream takes ahead; then its driver makes all wait
#   STANDIN_STERN          1: calls that wait for the whole device on some drivers do so here
#   STANDIN_MEMORY         bytes of a device
#   STANDIN_LACKS          the number of a CUdevice_attribute that devices are not to have
#   STANDIN_MIG            1: devices have the name of MIG devices
#   STANDIN_HOST           a name, by which devices of "hosts" differ, and NCCL's hosts; else the host's
#                          name and network namespace. NCCL's hosts speak TCP with each other
#   STANDIN_LOG            a file for what happened: contexts, and the mistakes that NCCL's reports
#                          (launch orders that differ, calls that do not match), which else go to stderr
#   STANDIN_NCCL_VERSION   what ncclGetVersion says, 22809 by default
#   STANDIN_NCCL_FAULTS    what is to go wrong where, e.g. kernel-hang:1:3 (rank 1's third kernel never
#                          ends): see nccl/inject.h
# Of NCCL's own NCCL_HOSTID (two ranks can share a device then) and NCCL_COMM_BLOCKING are known. Two
# threads that use one communicator at once end the program with SIGABRT and a message.
use_standin() { # DEVICES
    export STANDIN_DEVICES=$1
    export LD_LIBRARY_PATH=$DTRUN_BUILD/tests/standin/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}
