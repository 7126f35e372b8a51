/* Words in host memory by which the streams of ranks that share a GPU wait for each other. If a
 * peer is lost, a rank can store the values that its streams wait for. It could not store them in
 * the memory of the peer's process.
 *
 * Each rank of a host has its own words there. Each word has one writer and only ever rises. */
#ifndef DT_GPU_FOLD_WORDS_H
#define DT_GPU_FOLD_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/gpu/nvidia/abi_cuda.h"

enum dt_gpu_word {
    DT_GPU_GIVEN,  /* the step up to which this rank's data is in the arena */
    DT_GPU_RESULT, /* the step up to which the results are, if it leads its group */
    DT_GPU_TAKEN,  /* the step up to which it has taken the results */
    DT_GPU_WORDS
};

struct dt_gpu_words { /* all zero at first */
    void *memory;
    size_t bytes;
    CUdeviceptr device;
    uint32_t ranks;
};

size_t dt_gpu_words_bytes(uint32_t ranks);
/* Opens words for this many ranks of this host, in a memory file of dt_gpu_words_bytes(ranks)
 * bytes, or in new memory if fd is -1. Uses the current context. Returns an error with the
 * function that failed in *function. */
CUresult dt_gpu_words_open(struct dt_gpu_words *w, uint32_t ranks, int fd, const char **function);
/* Queues a write to a word of this rank, which changes nothing as long as no step has been made,
 * and a wait that is over at once. Returns an error likewise. */
CUresult dt_gpu_words_try(const struct dt_gpu_words *w, CUstream stream, uint32_t rank,
                          const char **function);
/* Nothing may wait there any more. */
void dt_gpu_words_close(struct dt_gpu_words *w);

/* Queue on a stream: set the rank's word to step; wait until it is at least step. */
CUresult dt_gpu_words_write(const struct dt_gpu_words *w, CUstream stream, uint32_t rank,
                            enum dt_gpu_word word, uint32_t step);
CUresult dt_gpu_words_wait(const struct dt_gpu_words *w, CUstream stream, uint32_t rank,
                           enum dt_gpu_word word, uint32_t step);

/* Ends all waits for a step near this one, as long as no stream writes a word again. What the
 * streams have copied since is wrong. From now on dt_gpu_words_released says so on all ranks. */
void dt_gpu_words_release(const struct dt_gpu_words *w, uint32_t step);
bool dt_gpu_words_released(const struct dt_gpu_words *w);

#endif
