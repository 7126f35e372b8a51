#include "runtime/gpu/fold/words.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "runtime/gpu/nvidia/cuda.h"

enum {
    APART = 128,         /* bytes between words, so that they share no cache line */
    FAR_AHEAD = 1 << 30, /* waits compare cyclically, so a word this far ahead ends them */
    WHOLE = 64 * 1024,   /* a multiple of the page size of every processor */
};

/* The first place holds the release. */
static size_t place_of(uint32_t rank, enum dt_gpu_word word)
{
    return (1 + (size_t)rank * DT_GPU_WORDS + (size_t)word) * APART;
}

static _Atomic uint32_t *word_at(const struct dt_gpu_words *w, size_t place)
{
    return (_Atomic uint32_t *)(void *)((uint8_t *)w->memory + place);
}

size_t dt_gpu_words_bytes(uint32_t ranks)
{
    return (place_of(ranks, DT_GPU_GIVEN) + WHOLE - 1) / WHOLE * WHOLE;
}

CUresult dt_gpu_words_open(struct dt_gpu_words *w, uint32_t ranks, int fd, const char **function)
{
    const struct dt_cuda *cuda = dt_cuda();
    size_t bytes = dt_gpu_words_bytes(ranks);
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    CUresult result;

    *function = "mmap";
    if (memory == MAP_FAILED)
        return DT_CUDA_NO_HOST_MEMORY;
    *function = "cuMemHostRegister";
    result = cuda->cuMemHostRegister_v2(memory, bytes,
                                        CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (result) {
        munmap(memory, bytes);
        return result;
    }
    *w = (struct dt_gpu_words){ .memory = memory, .bytes = bytes, .ranks = ranks };
    *function = "cuMemHostGetDevicePointer";
    result = cuda->cuMemHostGetDevicePointer_v2(&w->device, memory, 0);
    if (result)
        dt_gpu_words_close(w);
    return result;
}

void dt_gpu_words_close(struct dt_gpu_words *w)
{
    if (w->memory) {
        dt_cuda()->cuMemHostUnregister(w->memory);
        munmap(w->memory, w->bytes);
    }
    *w = (struct dt_gpu_words){ 0 };
}

CUresult dt_gpu_words_write(const struct dt_gpu_words *w, CUstream stream, uint32_t rank,
                            enum dt_gpu_word word, uint32_t step)
{
    return dt_cuda()->cuStreamWriteValue32_v2(stream, w->device + place_of(rank, word), step,
                                              CU_STREAM_WRITE_VALUE_DEFAULT);
}

CUresult dt_gpu_words_wait(const struct dt_gpu_words *w, CUstream stream, uint32_t rank,
                           enum dt_gpu_word word, uint32_t step)
{
    return dt_cuda()->cuStreamWaitValue32_v2(stream, w->device + place_of(rank, word), step,
                                             CU_STREAM_WAIT_VALUE_GEQ);
}

CUresult dt_gpu_words_try(const struct dt_gpu_words *w, CUstream stream, uint32_t rank,
                          const char **function)
{
    CUresult result = dt_gpu_words_write(w, stream, rank, DT_GPU_GIVEN, 0);

    *function = "cuStreamWriteValue32";
    if (result)
        return result;
    *function = "cuStreamWaitValue32";
    return dt_gpu_words_wait(w, stream, rank, DT_GPU_GIVEN, 0);
}

void dt_gpu_words_release(const struct dt_gpu_words *w, uint32_t step)
{
    atomic_store(word_at(w, 0), 1);
    for (uint32_t rank = 0; rank < w->ranks; rank++) {
        for (int word = 0; word < DT_GPU_WORDS; word++)
            atomic_store(word_at(w, place_of(rank, (enum dt_gpu_word)word)), step + FAR_AHEAD);
    }
}

bool dt_gpu_words_released(const struct dt_gpu_words *w)
{
    return atomic_load(word_at(w, 0));
}
