#include "runtime/gpu/sharedopen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/comm/collective.h"
#include "runtime/gpu/device/life.h"
#include "runtime/gpu/device/order.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/gpu.h"
#include "runtime/gpu/nvidia/cuda.h"

/* A rank's result, which it shows to the others; made of whole words. */
struct report {
    uint64_t error; /* a CUresult, or an errno; 0: nothing has failed */
    uint64_t is_errno;
    uint64_t local_rank;
    char what[56]; /* the function that failed, or what the agent did not do */
};

struct opening {
    struct dt_comm *c;
    struct dt_shared *s;
    const struct dt_gpu_order *order;
    uint64_t call; /* number of the call in which all ranks open it */
    size_t bytes;  /* of the arena */
    struct report mine;
};

static bool note_failure(struct opening *o, const char *function, CUresult error)
{
    if (error) {
        o->mine.error = error;
        snprintf(o->mine.what, sizeof o->mine.what, "%s", function);
    }
    return error != CUDA_SUCCESS;
}

/* Reads errno. */
static bool note_errno(struct opening *o, const char *what, bool failed)
{
    if (failed) {
        o->mine.error = (uint64_t)errno;
        o->mine.is_errno = true;
        snprintf(o->mine.what, sizeof o->mine.what, "%s", what);
    }
    return failed;
}

/* ---- on every rank ---- */

static bool open_stream(struct opening *o)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_shared *s = o->s;
    const char *function;
    CUresult result;

    if (s->stream)
        return true;
    s->context = o->order->context;
    s->life = dt_gpu_life(s->context);
    s->device = o->order->device;
    result = dt_cuda_make_stream(&s->stream, &function);
    if (result)
        return !note_failure(o, function, result);
    function = "cuEventCreate";
    result = cuda->cuEventCreate(&s->begun, CU_EVENT_DISABLE_TIMING);
    if (!result)
        result = cuda->cuEventCreate(&s->done, CU_EVENT_DISABLE_TIMING);
    return !note_failure(o, function, result);
}

static bool open_words(struct opening *o)
{
    struct dt_comm *c = o->c;
    uint32_t ranks = (uint32_t)c->local_size;
    const char *function;
    uint64_t number;
    CUresult result;
    int fd = -1;

    if (o->s->words.memory)
        return true;
    if (ranks > 1) {
        fd = dt_agentlink_want_segment(&c->world->agent, c->id, o->call, dt_gpu_words_bytes(ranks),
                                       ranks, &number);
        if (note_errno(o, "dtrun-agent's memory", fd < 0))
            return false;
    }
    result = dt_gpu_words_open(&o->s->words, ranks, fd, &function);
    if (fd >= 0)
        close(fd);
    if (!result)
        result = dt_gpu_words_try(&o->s->words, o->s->stream, (uint32_t)c->local_rank, &function);
    return !note_failure(o, function, result);
}

/* ---- the arena ---- */

static struct dt_given arena_given(const struct opening *o, uint64_t giver)
{
    return (struct dt_given){ .comm = o->c->id,
                              .call = o->call,
                              .bytes = o->bytes,
                              .members = (uint32_t)o->c->local_size,
                              .giver = (uint32_t)giver,
                              .takers = (uint32_t)o->s->groups.members - 1 };
}

static bool give_arena(struct opening *o)
{
    struct dt_given g = arena_given(o, o->mine.local_rank);
    bool failed;
    int fd;

    if (o->s->groups.members == 1)
        return true;
    if (note_failure(o, "cuMemExportToShareableHandle", dt_gpu_arena_export(&o->s->arena, &fd)))
        return false;
    failed = note_errno(o, "giving a descriptor to dtrun-agent",
                        dt_agentlink_give(&o->c->world->agent, &g, fd) < 0);
    close(fd);
    return !failed;
}

static bool make_arena(struct opening *o)
{
    struct dt_shared *s = o->s;
    char call[sizeof o->mine.what];
    const char *function;
    CUresult result = dt_gpu_folder_load(s->context, s->life, &s->kernel, &function);

    if (note_failure(o, function, result))
        return false;
    result = dt_gpu_arena_make(&s->arena, s->device, o->bytes, &function);
    snprintf(call, sizeof call, "%s for %zu bytes", function, o->bytes);
    return !note_failure(o, call, result) && give_arena(o);
}

static void take_arena(struct opening *o, uint64_t leader)
{
    struct dt_given g = arena_given(o, leader);
    int fd = dt_agentlink_want_given(&o->c->world->agent, &g);
    const char *function;
    CUresult result;

    if (note_errno(o, "dtrun-agent's descriptor", fd < 0))
        return;
    result = dt_gpu_arena_import(&o->s->arena, o->s->device, o->bytes, fd, &function);
    note_failure(o, function, result);
    close(fd);
}

/* ---- all ranks together ---- */

static void describe_report(const struct opening *o, const struct report *r, int rank,
                            char why[DT_GPU_TEXT])
{
    char text[DT_CUDA_TEXT], name[DT_WORLD_NAME];

    if (r->is_errno)
        snprintf(text, sizeof text, "%s: %s", r->what, strerror((int)r->error));
    else
        dt_cuda_describe(r->what, (CUresult)r->error, text);
    snprintf(why, DT_GPU_TEXT, "%s, which shares a GPU, has no memory to share: %s",
             dt_world_name(o->c->world, o->c->ranks[rank], name), text);
}

/* Shows this rank's result to all. If any rank's part has failed, sets why. */
static dt_result_t compare_reports(struct opening *o, struct report *reports, char why[DT_GPU_TEXT])
{
    int size = o->c->size;
    dt_result_t r;

    memset(reports, 0, (size_t)size * sizeof *reports);
    reports[o->c->rank] = o->mine;
    r = dt_comm_all_gather_table(o->c, DT_CALL_GPU_CHOICE, reports, sizeof *reports);
    for (int rank = 0; r == DT_OK && rank < size && !*why; rank++) {
        if (reports[rank].error)
            describe_report(o, &reports[rank], rank, why);
    }
    return r;
}

static dt_result_t open_with(struct opening *o, struct report *reports, char why[DT_GPU_TEXT])
{
    const struct dt_gpu_groups *g = &o->s->groups;
    dt_result_t r;

    if (open_stream(o) && open_words(o) && dt_gpu_groups_leads(g))
        make_arena(o);
    r = compare_reports(o, reports, why);
    if (r != DT_OK || *why)
        return r;
    if (!dt_gpu_groups_leads(g))
        take_arena(o, reports[g->mine[0]].local_rank);
    return compare_reports(o, reports, why);
}

/* Leaks the words if the stream may still write there (dt_gpu_words_try). */
static void free_unused(struct dt_shared *s)
{
    if (s->words.memory && !dt_gpu_settles(s->stream))
        s->words = (struct dt_gpu_words){ 0 };
    dt_shared_free(s);
}

dt_result_t dt_shared_open(struct dt_comm *c, const struct dt_gpu_order *order, size_t slot,
                           char why[DT_GPU_TEXT])
{
    struct dt_shared *s = &c->gpu->shared;
    struct opening o = { .c = c, .s = s, .order = order, .call = c->calls };
    struct report *reports = calloc((size_t)c->size, sizeof *reports);
    dt_result_t r;

    if (!reports)
        return dt_comm_fail_no_memory(c);
    o.bytes = slot * (size_t)s->groups.members;
    o.mine.local_rank = (uint64_t)c->world->local_rank;
    dt_gpu_arena_close(&s->arena);
    r = open_with(&o, reports, why);
    free(reports);
    if (r == DT_OK && !*why)
        s->slot = slot;
    else
        free_unused(s);
    return r;
}

void dt_shared_free(struct dt_shared *s)
{
    const struct dt_cuda *cuda = dt_cuda();

    dt_gpu_arena_close(&s->arena);
    dt_gpu_words_close(&s->words);
    if (s->done)
        cuda->cuEventDestroy_v2(s->done);
    if (s->begun)
        cuda->cuEventDestroy_v2(s->begun);
    if (s->stream)
        cuda->cuStreamDestroy_v2(s->stream);
    *s = (struct dt_shared){ .groups = s->groups };
}
