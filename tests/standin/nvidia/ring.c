#include "tests/standin/nvidia/ring.h"

#include <stdlib.h>
#include <string.h>

#include "tests/standin/nccl/elements.h"

struct ring {
    const struct standin_block *block;
    const struct nccl_ring *nccl;
    const int *ranks; /* from this one on */
    int size;
    struct standin_connection in, out;
    unsigned steps, slices; /* steps for each slice, slices for each chunk */
    const char *input;
    char *output;
    size_t count, first, part, chunk; /* elements: of the call, and this channel's */
    size_t slice;                     /* the most elements of a slice */
    ncclDataType_t type;
    size_t width;
    enum standin_operator op;
    ncclRedOp_t fold;
    uint64_t scalar;
    char *scratch;
    bool aborted;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t rounded(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* The type of the same width, if it is an integer. */
static ncclDataType_t with_sign(ncclDataType_t type, bool is_signed)
{
    if (type == ncclInt8 || type == ncclUint8)
        return is_signed ? ncclInt8 : ncclUint8;
    if (type == ncclInt32 || type == ncclUint32)
        return is_signed ? ncclInt32 : ncclUint32;
    if (type == ncclInt64 || type == ncclUint64)
        return is_signed ? ncclInt64 : ncclUint64;
    return type;
}

/* The scalar of integers has all bits inverted for the maximum, and then the sign's for signed
 * ones. That of floating-point types is odd for the maximum. */
static void choose_min_max(struct ring *ring)
{
    uint64_t all = UINT64_MAX >> (64 - 8 * ring->width), sign = all ^ (all >> 1);
    bool is_max = ring->scalar & 1;

    if (with_sign(ring->type, true) != with_sign(ring->type, false))
        ring->type = with_sign(ring->type, ((ring->scalar ^ (is_max ? all : 0)) & sign) != 0);
    ring->fold = is_max ? ncclMax : ncclMin;
}

static void choose_operator(struct ring *ring, const struct nccl_collective *work)
{
    ring->fold = ncclSum;
    ring->scalar = work->scalar;
    if (work->scalar_is_pointer) {
        ring->scalar = 0;
        memcpy(&ring->scalar, standin_must_view((void *)(uintptr_t)work->scalar, ring->width),
               ring->width);
    }
    if (ring->op == STANDIN_PRODUCT)
        ring->fold = ncclProd;
    else if (ring->op == STANDIN_MIN_MAX)
        choose_min_max(ring);
    else if (ring->op == STANDIN_DIVIDED_SUM)
        ring->type = with_sign(ring->type, ring->scalar & 1);
}

/* NCCL gives the first and the last channel other counts than those between. A chunk is counted in
 * grains of 512 bytes. */
static void choose_part(struct ring *ring, const struct nccl_collective *work)
{
    size_t between = (size_t)work->last_channel - work->first_channel - 1, grains;
    int channel = ring->block->channel;

    ring->count = work->first_count + work->middle_count * between + work->last_count;
    if (channel == (int)work->first_channel) {
        ring->first = 0;
        ring->part = work->first_count;
        grains = work->first_grains;
    } else if (channel == (int)work->last_channel) {
        ring->first = work->first_count + between * work->middle_count;
        ring->part = work->last_count;
        grains = work->last_grains;
    } else {
        ring->first = work->first_count +
                      (size_t)(channel - (int)work->first_channel - 1) * work->middle_count;
        ring->part = work->middle_count;
        grains = work->middle_grains;
    }
    ring->chunk = grains * (512 / ring->width);
}

/* Puts a slice into scratch memory: the input's, the one that is received, or both reduced. */
static void fill_slice(struct ring *ring, bool receives, const char *input, size_t count)
{
    size_t bytes = count * ring->width;

    memcpy(ring->scratch, input ? input : standin_slot(&ring->in), bytes);
    if (input && ring->op == STANDIN_SCALED_SUM)
        standin_fold(ring->type, ncclProd, ring->scratch, &ring->scalar, 0, count);
    if (input && receives)
        standin_fold(ring->type, ring->fold, ring->scratch, standin_slot(&ring->in), 1, count);
}

static bool await_slice(struct ring *ring, bool receives, bool sends)
{
    unsigned naps = 0;

    while (!ring->aborted && ((receives && !standin_can_receive(&ring->in, ring->steps)) ||
                              (sends && !standin_can_send(&ring->out, ring->steps)))) {
        ring->aborted = *ring->block->abort;
        standin_nap(&naps);
    }
    return !ring->aborted;
}

enum {
    RECEIVE = 1,
    SEND = 2,
    FROM_INPUT = 4, /* what is received, if anything, is reduced with it */
    TO_OUTPUT = 8,
    IS_RESULT = 16, /* has been reduced by all ranks */
};

static void move_slice(struct ring *ring, unsigned what, size_t from, size_t to, size_t count)
{
    fill_slice(ring, what & RECEIVE, what & FROM_INPUT ? ring->input + from * ring->width : NULL,
               count);
    if (what & IS_RESULT && ring->op == STANDIN_DIVIDED_SUM)
        standin_divide(ring->type, ring->scratch, count, (int)(ring->scalar >> 1));
    if (what & TO_OUTPUT)
        memcpy(ring->output + to * ring->width, ring->scratch, count * ring->width);
    if (what & SEND)
        memcpy(standin_slot(&ring->out), ring->scratch, count * ring->width);
}

/* What NCCL calls a primitive: a chunk comes from the previous rank, from the input or from both,
 * and goes to the next rank, to the output or to both. NCCL cuts it into slices of a multiple of 16
 * elements, which may be empty. */
static void move_chunk(struct ring *ring, unsigned what, size_t from, size_t to, size_t count)
{
    size_t slice = rounded(count, 16 * ring->slices) / ring->slices, at = 0;

    if (slice < ring->slice / 32)
        slice = ring->slice / 32;
    for (unsigned i = 0; i < ring->slices; i++) {
        slice = least(slice, count - at);
        if (!await_slice(ring, what & RECEIVE, what & SEND))
            return;
        if (what & SEND)
            standin_set_size(&ring->out, slice * ring->width);
        if (slice > 0)
            move_slice(ring, what, from + at, to + at, slice);
        if (what & RECEIVE)
            standin_received(&ring->in, ring->steps);
        if (what & SEND)
            standin_sent(&ring->out, ring->steps);
        at += slice;
    }
}

/* Elements that are left from `at` on, a chunk at most. */
static size_t chunk_at(size_t at, size_t end, size_t chunk)
{
    return at < end ? least(chunk, end - at) : 0;
}

static void all_reduce(struct ring *ring)
{
    size_t chunk = ring->chunk, round = chunk * (size_t)ring->size;

    for (size_t begin = 0; begin < ring->part; begin += round) {
        size_t left = ring->part - begin;

        if (left < round)
            chunk = rounded((left + (size_t)ring->size - 1) / (size_t)ring->size, 16 / ring->width);
        for (int i = 1; i < 2 * ring->size; i++) {
            size_t block = (size_t)((ring->nccl->index + 2 * ring->size - i) % ring->size);
            size_t at = ring->first + begin + block * chunk;
            unsigned what = i < ring->size    ? FROM_INPUT | SEND
                            : i == ring->size ? FROM_INPUT | SEND | TO_OUTPUT | IS_RESULT
                                              : SEND | TO_OUTPUT;

            if (i > 1)
                what |= RECEIVE;
            if (i == 2 * ring->size - 1)
                what &= ~(unsigned)SEND;
            move_chunk(ring, what, at, at, chunk_at(block * chunk, left, chunk));
        }
    }
}

static void reduce_scatter(struct ring *ring)
{
    for (size_t begin = 0; begin < ring->part; begin += ring->chunk) {
        size_t count = chunk_at(begin, ring->part, ring->chunk), at = ring->first + begin;

        for (int i = 1; i <= ring->size; i++)
            move_chunk(ring,
                       FROM_INPUT | (i > 1 ? RECEIVE : 0) |
                           (i < ring->size ? SEND : TO_OUTPUT | IS_RESULT),
                       at + (size_t)ring->ranks[ring->size - i] * ring->count, at, count);
    }
}

static void all_gather(struct ring *ring)
{
    for (size_t begin = 0; begin < ring->part; begin += ring->chunk) {
        size_t count = chunk_at(begin, ring->part, ring->chunk), at = ring->first + begin;

        for (int i = 0; i < ring->size; i++) {
            int rank = ring->ranks[(ring->size - i) % ring->size];

            move_chunk(ring,
                       TO_OUTPUT | (i > 0 ? RECEIVE : FROM_INPUT) | (i < ring->size - 1 ? SEND : 0),
                       at, at + (size_t)rank * ring->count, count);
        }
    }
}

/* Along the ring, from the rank after `last` to `last`, or from the root to the rank before it. */
static void along(struct ring *ring, unsigned first, unsigned between, unsigned last, int end)
{
    unsigned what = ring->ranks[0] == end                ? last
                    : ring->ranks[ring->size - 1] == end ? first
                                                         : between;

    for (size_t begin = 0; begin < ring->part; begin += ring->chunk)
        move_chunk(ring, what, ring->first + begin, ring->first + begin,
                   chunk_at(begin, ring->part, ring->chunk));
}

static void run_collective(struct ring *ring, enum standin_collective collective, int root)
{
    int before = 0;

    switch (collective) {
    case STANDIN_ALL_REDUCE:
        all_reduce(ring);
        break;
    case STANDIN_REDUCE_SCATTER:
        reduce_scatter(ring);
        break;
    case STANDIN_ALL_GATHER:
        all_gather(ring);
        break;
    case STANDIN_REDUCE:
        along(ring, FROM_INPUT | SEND, FROM_INPUT | RECEIVE | SEND,
              FROM_INPUT | RECEIVE | TO_OUTPUT | IS_RESULT, root);
        break;
    case STANDIN_BROADCAST:
        while (ring->ranks[(before + 1) % ring->size] != root)
            before++;
        along(ring, FROM_INPUT | SEND | TO_OUTPUT, RECEIVE | SEND | TO_OUTPUT, RECEIVE | TO_OUTPUT,
              ring->ranks[before]);
        break;
    }
}

bool standin_run_ring(const struct standin_block *block, struct standin_function function,
                      const struct nccl_collective *work)
{
    struct nccl_ring *nccl = &block->comm->channels[block->channel].ring;
    int size = block->comm->ranks;
    bool in_slices = function.collective > STANDIN_REDUCE;
    struct ring ring = {
        .block = block,
        .nccl = nccl,
        .ranks = standin_must_view(nccl->ranks, (size_t)size * sizeof(*nccl->ranks)),
        .size = size,
        .steps = in_slices ? 2 : 1,
        .slices = in_slices ? 2 : 1,
        .type = function.type,
        .width = standin_element_size(function.type),
        .op = function.op,
    };
    size_t in_blocks = function.collective == STANDIN_REDUCE_SCATTER ? (size_t)size : 1;
    size_t out_blocks = function.collective == STANDIN_ALL_GATHER ? (size_t)size : 1;
    bool is_root = block->comm->rank == work->root;

    choose_operator(&ring, work);
    choose_part(&ring, work);
    ring.slice =
        (size_t)block->comm->buffer_sizes[NCCL_SIMPLE] / NCCL_STEPS / ring.width * ring.steps;
    if (function.collective != STANDIN_BROADCAST || is_root)
        ring.input = standin_must_view(work->in, ring.count * in_blocks * ring.width);
    if (function.collective != STANDIN_REDUCE || is_root)
        ring.output = standin_must_view(work->out, ring.count * out_blocks * ring.width);
    ring.in = standin_open_receive(block, nccl->previous, 0, ring.steps * ring.slices);
    ring.out = standin_open_send(block, nccl->next, 0, ring.steps * ring.slices);
    ring.scratch = malloc(ring.chunk * ring.width + 1);
    run_collective(&ring, function.collective, work->root);
    free(ring.scratch);
    standin_close(&ring.in);
    standin_close(&ring.out);
    return !ring.aborted;
}
