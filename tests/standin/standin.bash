# For bats files: lets a test's programs find the stand-ins for libcuda.so.1 and libnccl.so.2, with DEVICES
# devices on each host. NCCL's is found like any libnccl.so.2, or through DTRUN_NCCL. Both have the real ABI
# and keep the rules of NVIDIA's documents, which the head of each source file states. Variables of the
# environment set the rest:
#   STANDIN_DELAY_US       delays the start of each piece of a stream's work
#   STANDIN_QUEUE          how many pieces of work a stream queues; a call that adds more waits, and so does
#                          every other call of the driver
#   STANDIN_CONNECTIONS    how many hardware queues the streams that have a priority share; 0: each has its own
#   STANDIN_STERN          1: calls that wait for the whole device on some drivers do so here
#   STANDIN_LAZY           1: a thread that loads a kernel waits for the whole device, and every other call of the
#                          driver waits for that thread; not if CUDA_MODULE_LOADING is EAGER
#   STANDIN_EXIT_MS        how long the driver takes to end with the process
#   STANDIN_MEMORY         bytes of a device
#   STANDIN_LACKS          the number of a CUdevice_attribute that no device has; 92: no device has 32-bit
#                          stream memory operations
#   STANDIN_REFUSES        which functions of the driver fail with which errors, such as
#                          cuMemMap:801,cuModuleLoadData:221; with cuInit:hang it never returns. For functions
#                          that call standin_refused
#   STANDIN_NUMBERS        0: the driver does not tell apart allocations (CU_POINTER_ATTRIBUTE_BUFFER_ID)
#   STANDIN_MANAGED_ON_HOST  1: managed memory lies on the host, and has the type of host memory
#   STANDIN_CUDA_LOG       the driver's log of its errors, in words; without it there is none
#   STANDIN_MIG            1: devices have the name of MIG devices
#   STANDIN_HOST           a name that tells "hosts" apart, with devices and NCCL members of their own; the
#                          default is the host's name and network namespace. NCCL's hosts speak TCP
#   STANDIN_LOG            a file that records contexts, pinned memory, the kernels that NCCL's stand-in
#                          launches, the communicators that ranks leave, and the mistakes that it reports (launch
#                          orders that differ, calls that do not match); without it the mistakes go to stderr
#   STANDIN_NCCL_VERSION   what ncclGetVersion returns, 22809 by default
#   STANDIN_NCCL_STARTS    0: libnccl's CUDA runtime is too new for the driver, so that it cannot start
#   STANDIN_NCCL_FAULTS    which fault happens where, such as kernel-hang:1:3 (rank 1's third kernel never
#                          ends): see nccl/inject.h
# NCCL's own variables NCCL_HOSTID (with which two ranks can share a device) and NCCL_COMM_BLOCKING work. If
# two threads use one communicator at once, the program ends with SIGABRT and a message.
use_standin() { # DEVICES
    export STANDIN_DEVICES=$1
    export LD_LIBRARY_PATH=$DTRUN_BUILD/tests/standin/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# Whether tests/standin/nvidia can run this libnccl: version 2.28 with its symbol table.
is_nvidia_nccl() { # FILE
    [[ $1 == *libnccl.so* ]] && grep -qam1 'NCCL version 2\.28\.' "$1" && readelf -SW "$1" | grep -q ' \.symtab '
}

# Prints the file of such a libnccl: the one of DTRUN_NCCL, or the first that is installed.
find_nvidia_nccl() {
    local file installed

    [ "$(uname -m)" = x86_64 ] || return 1
    installed=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | sed -n 's/.* => \(.*\/libnccl\.so\.2\)$/\1/p')
    for file in "${DTRUN_NCCL:-}" $installed /usr/local/cuda*/lib*/libnccl.so.2; do
        if is_nvidia_nccl "$file" 2>/dev/null; then
            echo "$file"
            return
        fi
    done
    return 1
}

# Like use_standin, but ranks that have LD_PRELOAD=$NVIDIA use NVIDIA's NCCL, of which only the kernels and the
# CUDA runtime are ours. Of STANDIN_NCCL_FAULTS it knows kernel-hang and
#   init-hang       the start of NCCL never returns from the driver
#   init-error      the driver has no memory for it
#   launch-hang     a launch never returns from the driver
#   endless-kernel  a kernel never ends, whether or not the communicator is aborted
# With LD_PRELOAD and these variables in its environment, tests/gpu/random uses NVIDIA's NCCL, too.
use_nvidia_nccl() { # DEVICES FILE
    use_standin "$1"
    export DTRUN_NCCL=$2
    NVIDIA=$DTRUN_BUILD/tests/standin/.libs/libnvidia.so
}
