/* By which way calls on the GPU memory of a communicator are made: what each rank offers, and what
 * all ranks conclude from all offers. Pure. */
#ifndef DT_GPU_OFFER_H
#define DT_GPU_OFFER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

enum dt_gpu_way {
    DT_GPU_AUTO, /* not chosen yet */
    DT_GPU_STAGING,
    DT_GPU_NCCL,
    DT_GPU_WAYS
};

/* As DTRUN_DEVICE has it: "auto". */
const char *dt_gpu_way_name(enum dt_gpu_way way);
/* DT_GPU_WAYS: it is none. */
enum dt_gpu_way dt_gpu_way_find(const char *name);

enum { DT_GPU_BUS = 16 };

struct dt_gpu_offer { /* in whole words, which one rank shows all others */
    uint64_t wish;    /* enum dt_gpu_way: the user's */
    uint64_t nccl;    /* its version; 0: this rank cannot use it */
    uint64_t node;
    char
        bus[DT_GPU_BUS]; /* where the GPU is on its host: MIG devices of one GPU are at one place */
};

enum dt_gpu_obstacle {
    DT_GPU_CLEAR,
    DT_GPU_WISHES_DIFFER, /* of ranks 0 and a: no way can be chosen */
    DT_GPU_NO_NCCL,       /* on rank a */
    DT_GPU_SHARED,        /* by ranks a and b */
};

struct dt_gpu_choice {
    enum dt_gpu_way way;
    enum dt_gpu_obstacle obstacle; /* to NCCL */
    int a, b;
};

/* The same for all ranks. */
struct dt_gpu_choice dt_gpu_choose(const struct dt_gpu_offer *offers, int size);

enum { DT_GPU_TEXT = 256 };

/* What stands in the way of NCCL, as a sentence. Returns text. */
const char *dt_gpu_obstacle_text(const struct dt_gpu_choice *choice,
                                 const struct dt_gpu_offer *offers, char text[DT_GPU_TEXT]);

#endif
