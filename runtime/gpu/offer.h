/* Which path a communicator's calls on GPU memory take: what each rank offers, and what all ranks
 * conclude from all offers. Pure. */
#ifndef DT_GPU_OFFER_H
#define DT_GPU_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/gpupath.h"
#include "runtime/dtrun.h"

enum { DT_GPU_BUS = 16, DT_GPU_UUID = 16 };

/* Why the memory of a GPU cannot be shared. */
enum dt_gpu_unable {
    DT_GPU_ABLE,
    DT_GPU_NO_ATTRIBUTES, /* the driver does not report the device's attributes */
    DT_GPU_NO_VIRTUAL_MEMORY,
    DT_GPU_NO_DESCRIPTORS,
    DT_GPU_NO_STREAM_WORDS,
    DT_GPU_MIG
};

struct dt_gpu_offer { /* made of whole words; each rank shows its own to all others */
    uint64_t wish;    /* enum dt_gpu_path; the user's choice */
    uint64_t nccl;    /* NCCL's version; 0: this rank cannot use NCCL */
    uint64_t node;
    uint64_t unable;  /* enum dt_gpu_unable */
    uint64_t ordered; /* whether the program has promised an order that NCCL can keep */
    uint64_t split;   /* whether a split has made an NCCL communicator that fits the call */
    /* the GPU's place on its host; MIG devices of one GPU have the same place but different
     * UUIDs */
    char bus[DT_GPU_BUS];
    char uuid[DT_GPU_UUID]; /* zeros: unknown */
};

enum dt_gpu_obstacle {
    DT_GPU_CLEAR,
    DT_GPU_WISHES_DIFFER, /* those of ranks a and b, so no path can be chosen */
    DT_GPU_NO_NCCL,       /* on rank a */
    DT_GPU_NCCL_DIFFERS,  /* ranks a and b have different versions */
    DT_GPU_IS_SHARED,     /* ranks a and b share a GPU */
    DT_GPU_UNSHARABLE,    /* ranks share GPUs, and that of rank a cannot be shared */
};

struct dt_gpu_choice {
    enum dt_gpu_path path;
    enum dt_gpu_obstacle obstacle; /* to NCCL, or, if ranks share a GPU, to sharing */
    int a, b;
    bool shares;      /* whether sharing was considered, because ranks share a GPU */
    bool ordered;     /* with path NCCL: whether all ranks have promised the order */
    bool keeps_split; /* with path NCCL: whether the one that a split has made serves all ranks */
};

/* Whether both use the same device of the same host. */
bool dt_gpu_is_same(const struct dt_gpu_offer *a, const struct dt_gpu_offer *b);
/* Gives all ranks the same choice. */
struct dt_gpu_choice dt_gpu_choose(const struct dt_gpu_offer *offers, int size);

enum { DT_GPU_TEXT = 480, DT_GPU_WHY = 304 };

struct dt_gpu_details { /* what the offers do not tell of an obstacle */
    const char *a, *b;  /* names of the ranks */
    const char *why;    /* why rank a cannot use NCCL; only the start may fit */
};

/* Writes the obstacle as a clause. Returns text. */
const char *dt_gpu_obstacle_text(const struct dt_gpu_choice *choice,
                                 const struct dt_gpu_offer *offers, const struct dt_gpu_details *d,
                                 char text[DT_GPU_TEXT]);

#endif
