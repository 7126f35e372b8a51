/* Which path the calls on GPU memory of a communicator take: what each rank offers, and what
 * all ranks conclude from all offers. Pure. */
#ifndef DT_GPU_OFFER_H
#define DT_GPU_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/gpupath.h"
#include "runtime/dtrun.h"

enum { DT_GPU_BUS = 16, DT_GPU_UUID = 16 };

/* Why ranks cannot share the memory of a GPU. */
enum dt_gpu_unable {
    DT_GPU_ABLE,
    DT_GPU_NO_ATTRIBUTES, /* what it needs of the device cannot be asked for */
    DT_GPU_NO_VIRTUAL_MEMORY,
    DT_GPU_NO_DESCRIPTORS,
    DT_GPU_NO_STREAM_WORDS,
    DT_GPU_MIG
};

struct dt_gpu_offer { /* in whole words, which one rank shows all others */
    uint64_t wish;    /* enum dt_gpu_path: the user's */
    uint64_t nccl;    /* its version; 0: this rank cannot use it */
    uint64_t node;
    uint64_t unable; /* enum dt_gpu_unable */
    /* where the GPU is on its host: MIG devices of one GPU are at one place, but differ in UUID */
    char bus[DT_GPU_BUS];
    char uuid[DT_GPU_UUID];
};

enum dt_gpu_obstacle {
    DT_GPU_CLEAR,
    DT_GPU_WISHES_DIFFER,   /* of ranks 0 and a: no path can be chosen */
    DT_GPU_NO_NCCL,         /* on rank a */
    DT_GPU_IS_SHARED,       /* by ranks a and b */
    DT_GPU_NO_NCCL_BETWEEN, /* on rank a, though ranks share GPUs */
    DT_GPU_UNSHARABLE,      /* likewise, and the GPU of a cannot be */
};

struct dt_gpu_choice {
    enum dt_gpu_path path;
    enum dt_gpu_obstacle obstacle; /* to NCCL, and to sharing where ranks do share a GPU */
    int a, b;
};

/* Of one host and one device. */
bool dt_gpu_is_same(const struct dt_gpu_offer *a, const struct dt_gpu_offer *b);
/* The same for all ranks. */
struct dt_gpu_choice dt_gpu_choose(const struct dt_gpu_offer *offers, int size);

enum { DT_GPU_TEXT = 320 };

/* The obstacle as a sentence. Returns text. */
const char *dt_gpu_obstacle_text(const struct dt_gpu_choice *choice,
                                 const struct dt_gpu_offer *offers, char text[DT_GPU_TEXT]);

#endif
