/* A rank of a job in which only some ranks have a GPU: those that find a driver of CUDA with a
 * device. The others use host memory, in every call that allows this. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rank/device.h"

enum { MOST = 16, BLOCK = 300000 }; /* ranks; f32 in the largest block, which is several chunks */

static bool has_gpu;

static void find_gpu(void)
{
    int count = 0;

    if (!dlopen("libcuda.so.1", RTLD_NOW) || dt_cuda()->cuInit(0))
        return;
    DRIVE(cuDeviceGetCount(&count));
    has_gpu = count > 0;
    if (has_gpu)
        device_use(0);
}

/* ---- buffers in whichever memory the rank has ---- */

static float *own_new(size_t count)
{
    return has_gpu ? device_new(count * sizeof(float)) : calloc(count + 1, sizeof(float));
}

static void own_put(float *to, const float *from, size_t count)
{
    if (has_gpu)
        DRIVE(cuMemcpyHtoD_v2(address(to), from, count * sizeof *from));
    else
        memcpy(to, from, count * sizeof *from);
}

static void own_get(float *to, const float *from, size_t count)
{
    if (has_gpu)
        DRIVE(cuMemcpyDtoH_v2(to, address(from), count * sizeof *to));
    else
        memcpy(to, from, count * sizeof *to);
}

static void own_free(float *buf)
{
    if (has_gpu)
        DRIVE(cuMemFree_v2(address(buf)));
    else
        free(buf);
}

/* ---- blocks ---- */

/* Blocks of different sizes; rank 0's is empty. */
static size_t count_of(int rank)
{
    return (size_t)rank * (BLOCK / (size_t)(dt_size() - 1));
}

static float value_of(int from, int to)
{
    return (float)(100 * from + to + 1);
}

static float *here; /* host memory for the blocks of all ranks */

static float *new_blocks(int from, size_t counts[MOST])
{
    size_t at = 0;
    float *buf;

    for (int to = 0; to < dt_size(); to++) {
        counts[to] = count_of(to);
        for (size_t i = 0; i < counts[to]; i++)
            here[at++] = value_of(from, to);
    }
    buf = own_new(at);
    own_put(buf, here, at);
    return buf;
}

static void need_value(float got, float wanted, const char *what)
{
    if (got == wanted)
        return;
    printf("%s: %g and not %g\n", what, (double)got, (double)wanted);
    exit(6);
}

/* buf has the blocks of these sizes from all ranks. For to -1, each is for its sender. */
static void need_blocks(const float *buf, const size_t counts[MOST], int to, const char *what)
{
    size_t at = 0, all = 0;

    for (int from = 0; from < dt_size(); from++)
        all += counts[from];
    own_get(here, buf, all);
    for (int from = 0; from < dt_size(); from++) {
        for (size_t i = 0; i < counts[from]; i++)
            need_value(here[at++], value_of(from, to < 0 ? from : to), what);
    }
}

/* ---- calls in which ranks may use different memory ---- */

static void gather(const float *own, const size_t counts[MOST], int root)
{
    float *all = own_new((size_t)dt_size() * BLOCK);

    need(dt_gatherv(DT_WORLD, own, counts[dt_rank()], all, counts, DT_F32, root));
    if (dt_rank() == root)
        need_blocks(all, counts, -1, "dt_gatherv");
    need(dt_all_gatherv(DT_WORLD, own, all, counts, DT_F32));
    need_blocks(all, counts, -1, "dt_all_gatherv");
    own_free(all);
}

static void scatter(const float *blocks, const size_t counts[MOST], int root)
{
    size_t mine = counts[dt_rank()], same[MOST];
    float *all = own_new((size_t)dt_size() * BLOCK);

    need(dt_scatterv(DT_WORLD, blocks, counts, all, mine, DT_F32, root));
    own_get(here, all, mine);
    for (size_t i = 0; i < mine; i++)
        need_value(here[i], value_of(root, dt_rank()), "dt_scatterv");
    for (int rank = 0; rank < MOST; rank++)
        same[rank] = mine;
    need(dt_all_to_allv(DT_WORLD, blocks, counts, all, same, DT_F32));
    need_blocks(all, same, dt_rank(), "dt_all_to_allv");
    own_free(all);
}

static void pass_around(void)
{
    int next = (dt_rank() + 1) % dt_size(), before = (dt_rank() + dt_size() - 1) % dt_size();
    float *out = own_new(1), *in = own_new(1), got = value_of(dt_rank(), next);
    dt_request_t request;

    own_put(out, &got, 1);
    need(dt_irecv(DT_WORLD, in, 1, DT_F32, before, &request));
    need(dt_send(DT_WORLD, out, 1, DT_F32, next));
    need(dt_wait(&request));
    own_get(&got, in, 1);
    need_value(got, value_of(before, dt_rank()), "dt_send");
    own_free(out);
    own_free(in);
}

/* Ranks with a GPU, and those without, each have a communicator of their own. */
static void reduce_among_alike(void)
{
    float one = 1, *buf = own_new(1);
    dt_comm_t *alike;

    need(dt_comm_split(DT_WORLD, has_gpu, 0, &alike));
    own_put(buf, &one, 1);
    need(dt_all_reduce(alike, DT_IN_PLACE, buf, 1, DT_F32, DT_SUM));
    own_get(&one, buf, 1);
    need_value(one, (float)dt_comm_size(alike), "dt_all_reduce");
    printf("%g %s a GPU\n", (double)one, has_gpu ? "with" : "without");
    need(dt_comm_free(alike));
    own_free(buf);
}

int main(void)
{
    size_t counts[MOST];
    float *blocks, *own;

    need(dt_init());
    find_gpu();
    here = calloc((size_t)dt_size() * BLOCK, sizeof *here);
    blocks = new_blocks(dt_rank(), counts);
    own = blocks; /* this rank's block for itself */
    for (int rank = 0; rank < dt_rank(); rank++)
        own += counts[rank];
    for (int root = 0; root < dt_size(); root++) {
        gather(own, counts, root);
        scatter(blocks, counts, root);
    }
    pass_around();
    reduce_among_alike();
    own_free(blocks);
    free(here);
    need(dt_finalize());
    return 0;
}
