#include "runtime/gpu/nvidia/remedy.h"

#include <stddef.h>
#include <string.h>

enum { ANY = -1 };

/* Of the rows for an error, the first one counts whose word occurs in what is known. */
struct remedy {
    int error;
    const char *word;
    const char *text;
};

#define FAULT                                                                                      \
    "a kernel before this call failed: CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer shows which"
#define GPU_FULL  "the GPU is full: fewer ranks on it or a smaller batch help (see nvidia-smi)"
#define HARDWARE  "the GPU or its link is faulty: dtrun --check counts such errors"
#define NO_GPU    "see CUDA_VISIBLE_DEVICES, and nvidia-smi -L on this host"
#define NO_KERNEL "the driver cannot load libdtrun's kernel: update it, or set DTRUN_DEVICE=staging"

/* The word is of the name of the driver's function. */
static const struct remedy of_cuda[] = {
    { CUDA_ERROR_OUT_OF_MEMORY, "cuMemHost",
      "the host gives no more memory to pin: fewer ranks on it help" },
    { CUDA_ERROR_OUT_OF_MEMORY, "", GPU_FULL },
    { CUDA_ERROR_DEINITIALIZED, "", "the process is exiting: make the call before exit()" },
    { CUDA_ERROR_STUB_LIBRARY, "", "LD_LIBRARY_PATH leads to CUDA's stub instead of the driver" },
    { CUDA_ERROR_DEVICE_UNAVAILABLE, "",
      "another process may have the GPU to itself: nvidia-smi -c DEFAULT lets all use it" },
    { CUDA_ERROR_NO_DEVICE, "", NO_GPU },
    { CUDA_ERROR_INVALID_DEVICE, "", NO_GPU },
    { CUDA_ERROR_INVALID_IMAGE, "", NO_KERNEL },
    { CUDA_ERROR_NO_BINARY_FOR_GPU, "", NO_KERNEL },
    { CUDA_ERROR_INVALID_PTX, "", NO_KERNEL },
    { CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "", NO_KERNEL },
    { CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "",
      "install the driver's libnvidia-ptxjitcompiler.so.1, or set DTRUN_DEVICE=staging" },
    { CUDA_ERROR_ECC_UNCORRECTABLE, "", HARDWARE },
    { CUDA_ERROR_NVLINK_UNCORRECTABLE, "", HARDWARE },
    { CUDA_ERROR_ILLEGAL_ADDRESS, "", FAULT },
    { CUDA_ERROR_LAUNCH_TIMEOUT, "", FAULT },
    { CUDA_ERROR_ASSERT, "", FAULT },
    { CUDA_ERROR_HARDWARE_STACK_ERROR, "", FAULT },
    { CUDA_ERROR_ILLEGAL_INSTRUCTION, "", FAULT },
    { CUDA_ERROR_MISALIGNED_ADDRESS, "", FAULT },
    { CUDA_ERROR_INVALID_ADDRESS_SPACE, "", FAULT },
    { CUDA_ERROR_INVALID_PC, "", FAULT },
    { CUDA_ERROR_LAUNCH_FAILED, "", FAULT },
    { CUDA_ERROR_CONTEXT_IS_DESTROYED, "",
      "the program has reset the device: before that, free its communicators and views" },
    { CUDA_ERROR_SYSTEM_NOT_READY, "", "start nvidia-fabricmanager on this host" },
    { CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "",
      "the driver was updated, but not loaded again: restart this host" },
    { CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "",
      "LD_LIBRARY_PATH leads to CUDA's compat folder, which this GPU does not support" },
};

/* The word is of NCCL's own text, whichever its error is. */
static const struct remedy of_nccl[] = {
    { ANY, "Duplicate GPU", "give each rank a GPU of its own, or set DTRUN_DEVICE=auto" },
    { ANY, "Mismatched NCCL version", "install one version everywhere; DTRUN_NCCL names its file" },
    { ANY, "no socket interface", "NCCL_SOCKET_IFNAME must name an interface of this host" },
    { ANY, "onnect to ", "NCCL_SOCKET_IFNAME names the network to use; is there a firewall?" },
    { ANY, "shared memory segment", "/dev/shm is too small or full (Docker: --shm-size)" },
    { ANY, "ibv_reg_mr", "ulimit -l must be unlimited on this host" },
    { ANY, "driver version is insufficient",
      "update the driver, or let DTRUN_NCCL name an older NCCL" },
    { ANY, "'out of memory'", GPU_FULL },
    { ANY, "an illegal ", FAULT },
    { ANY, "unspecified launch failure", FAULT },
    { ANY, "misaligned address", FAULT },
    { ANY, "",
      "NCCL_DEBUG=INFO makes NCCL say more (with --output-dir in files); DTRUN_DEVICE=staging does "
      "without NCCL" },
};

static const char *find(const struct remedy *rows, size_t n, int error, const char *known)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].error == error && strstr(known, rows[i].word))
            return rows[i].text;
    }
    return "";
}

const char *dt_cuda_remedy(const char *function, CUresult error)
{
    return find(of_cuda, sizeof of_cuda / sizeof *of_cuda, (int)error, function);
}

const char *dt_nccl_remedy(const char *said)
{
    return find(of_nccl, sizeof of_nccl / sizeof *of_nccl, ANY, said);
}

const char *dt_nccl_error_name(ncclResult_t error)
{
    static const char *const names[] = {
        "ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
        "ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress",
    };

    return (unsigned)error < sizeof names / sizeof *names ? names[error] : "?";
}
