/* Words in host memory by which the streams of ranks that share a GPU wait for each other. A rank
 * whose peer is lost can store in them what its streams wait for, which no word in the memory of
 * the peer's process would allow.
 *
 * Each rank of a host has its words there; each word is written by one rank, and only ever rises.
 */
#ifndef DT_GPU_FOLD_WORDS_H
#define DT_GPU_FOLD_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

enum dt_gpu_word {
    DT_GPU_GIVEN,  /* the step up to which this rank's data are in the arena, */
    DT_GPU_RESULT, /* up to which its results are, if it leads its group, */
    DT_GPU_TAKEN,  /* and up to which it has taken them */
    DT_GPU_WORDS
};

struct dt_gpu_words { /* all zero at first */
    void *memory;
    size_t bytes;
    CUdeviceptr device;
    uint32_t ranks;
};

size_t dt_gpu_words_bytes(uint32_t ranks);
/* Of so many ranks of this host, in a memory file of that many bytes, or in fresh memory where fd
 * is -1. In the context that is current. CUDA_ERROR_OUT_OF_MEMORY where it cannot be mapped. */
CUresult dt_gpu_words_open(struct dt_gpu_words *w, uint32_t ranks, int fd);
/* Nothing waits there any more. */
void dt_gpu_words_close(struct dt_gpu_words *w);

/* Queue on a stream: the word of a rank becomes step; wait until it is that or more. */
CUresult dt_gpu_words_write(const struct dt_gpu_words *w, CUstream stream, uint32_t rank,
                            enum dt_gpu_word word, uint32_t step);
CUresult dt_gpu_words_wait(const struct dt_gpu_words *w, CUstream stream, uint32_t rank,
                           enum dt_gpu_word word, uint32_t step);

/* Ends all waits for a step near this one, as long as no stream writes a word again. What streams
 * have brought since is not what it should be, as dt_gpu_words_released says from then on, on all
 * ranks. */
void dt_gpu_words_release(const struct dt_gpu_words *w, uint32_t step);
bool dt_gpu_words_released(const struct dt_gpu_words *w);

#endif
