#include "runtime/gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/checksum.h"
#include "runtime/base/reduceoptions.h"
#include "runtime/comm/collective.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/devicecall.h"
#include "runtime/gpu/fold/steps.h"
#include "runtime/gpu/launchorder.h"
#include "runtime/gpu/nccl.h"
#include "runtime/gpu/ncclcalls.h"
#include "runtime/gpu/ncclerror.h"
#include "runtime/gpu/ncclinit.h"
#include "runtime/gpu/nvidia/cuda.h"
#include "runtime/gpu/nvidia/ncclapi.h"
#include "runtime/gpu/operation.h"
#include "runtime/gpu/staging.h"
#include "runtime/kernels/dtype.h"

/* ---- choosing the path ---- */

/* NCCL takes ranks with different NCCL_HOSTIDs for ranks of different hosts, and then lets them
 * share a GPU. Their data goes through sockets, so dtrun heeds the variable only if the user
 * permits no other path. */
static uint64_t node_of(const struct dt_comm *c)
{
    const char *name = getenv("NCCL_HOSTID");
    struct dt_checksum sum;
    uint64_t node;

    if (c->world->settings.gpu_path != DT_GPU_NCCL || !name || !*name)
        return c->node;
    sum = dt_checksum(name, strlen(name));
    memcpy(&node, sum.bytes, sizeof node);
    return node;
}

/* Sets why to an error of the driver. Returns false. */
static bool refuse_nccl(char why[DT_GPU_WHY], const char *function, CUresult error)
{
    char text[DT_CUDA_TEXT];

    snprintf(why, DT_GPU_WHY, "%s", dt_cuda_describe(function, error, text));
    return false;
}

/* NCCL always launches in the device's primary context, even if another one is current. */
static bool is_primary(const struct dt_gpu_order *order, char why[DT_GPU_WHY])
{
    const struct dt_cuda *cuda = dt_cuda();
    CUcontext primary = NULL;
    unsigned flags;
    int active = 0;
    CUresult result = cuda->cuDevicePrimaryCtxGetState(order->device, &flags, &active);

    if (result)
        return refuse_nccl(why, "cuDevicePrimaryCtxGetState", result);
    result = active ? cuda->cuDevicePrimaryCtxRetain(&primary, order->device) : CUDA_SUCCESS;
    if (result)
        return refuse_nccl(why, "cuDevicePrimaryCtxRetain", result);
    if (active)
        cuda->cuDevicePrimaryCtxRelease_v2(order->device);
    if (primary != order->context)
        snprintf(why, DT_GPU_WHY,
                 "the program uses a context that it has created, but NCCL uses the device's "
                 "primary context (cuDevicePrimaryCtxRetain)");
    return primary == order->context;
}

/* libnccl contains a CUDA runtime, which needs a driver of its major version or a newer one.
 * Freeing nothing starts the runtime, and needs no other rank. */
static bool runtime_starts(const struct dt_ncclapi *api, const struct dt_gpu_order *order,
                           char why[DT_GPU_WHY])
{
    struct dt_cuda_scope scope;
    char text[DT_NCCL_TEXT];
    ncclResult_t result;
    CUresult entered;

    if (!api->ncclMemFree)
        return true;
    entered = dt_cuda_enter(&scope, order->context);
    if (entered)
        return refuse_nccl(why, scope.failed, entered);
    result = api->ncclMemFree(NULL);
    dt_cuda_leave(&scope);
    if (result)
        snprintf(why, DT_GPU_WHY, "its CUDA runtime does not start: %s",
                 dt_nccl_describe("ncclMemFree", result, text));
    return result == ncclSuccess;
}

/* If this rank cannot use NCCL, returns NULL and sets why. */
static const struct dt_ncclapi *usable_nccl(const struct dt_gpu_order *order, char why[DT_GPU_WHY])
{
    const char *lacks;
    const struct dt_ncclapi *api = dt_ncclapi(&lacks);

    if (!api)
        snprintf(why, DT_GPU_WHY, "%s", lacks);
    return api && is_primary(order, why) && runtime_starts(api, order, why) ? api : NULL;
}

static void fill_offer(struct dt_comm *c, const struct dt_gpu_order *order,
                       struct dt_gpu_offer *mine)
{
    char bus[DT_GPU_BUS + 1] = "";
    const struct dt_ncclapi *api = usable_nccl(order, c->gpu->no_nccl);
    CUuuid uuid = { 0 };
    CUresult asked;

    mine->wish = c->world->settings.gpu_path;
    mine->nccl = api ? (uint64_t)api->version : 0;
    mine->node = node_of(c);
    mine->ordered = c->world->settings.program_order && api && api->blocks;
    mine->split = dt_ncclinit_fits(c, order);
    asked = dt_cuda()->cuDeviceGetPCIBusId(bus, sizeof bus, order->device);
    if (asked) {
        mine->nccl = 0;
        refuse_nccl(c->gpu->no_nccl, "cuDeviceGetPCIBusId", asked);
    }
    memcpy(mine->bus, bus, sizeof mine->bus);
    mine->unable = dt_shared_unable(order->device);
    if (dt_cuda()->cuDeviceGetUuid_v2(&uuid, order->device))
        mine->unable = DT_GPU_NO_ATTRIBUTES;
    memcpy(mine->uuid, uuid.bytes, sizeof mine->uuid);
}

/* Collective: rank a tells all why it cannot use NCCL, which only it knows. */
static dt_result_t share_reason(struct dt_comm *c, const struct dt_gpu_choice *choice,
                                char why[DT_GPU_WHY])
{
    memset(why, 0, DT_GPU_WHY);
    if (choice->obstacle != DT_GPU_NO_NCCL)
        return DT_OK;
    if (choice->a == c->rank)
        snprintf(why, DT_GPU_WHY, "%s", c->gpu->no_nccl);
    return dt_comm_broadcast_bytes(c, DT_CALL_GPU_CHOICE, why, DT_GPU_WHY, choice->a);
}

/* Collective: describes the obstacle alike on all ranks. */
static dt_result_t describe_obstacle(struct dt_comm *c, const struct dt_gpu_choice *choice,
                                     const struct dt_gpu_offer *offers, char text[DT_GPU_TEXT])
{
    char a[DT_WORLD_NAME], b[DT_WORLD_NAME], why[DT_GPU_WHY];
    struct dt_gpu_details details = { .a = dt_world_name(c->world, c->ranks[choice->a], a),
                                      .b = dt_world_name(c->world, c->ranks[choice->b], b),
                                      .why = why };
    dt_result_t r = share_reason(c, choice, why);

    if (r == DT_OK)
        dt_gpu_obstacle_text(choice, offers, &details, text);
    return r;
}

enum { COLLECTIVES_TEXT = 64 + DT_COMM_NAME };

static const char *name_collectives(const struct dt_comm *c, char text[COLLECTIVES_TEXT])
{
    char id[DT_COMM_NAME];

    snprintf(text, COLLECTIVES_TEXT, "collectives%s%s on GPU memory",
             c->id ? " of communicator " : "", c->id ? dt_comm_name(c->id, id) : "");
    return text;
}

static void warn_of_staging(struct dt_comm *c, const char *obstacle)
{
    static _Atomic bool warned;
    char what[COLLECTIVES_TEXT], text[DT_RANK_NOTE_TEXT];

    snprintf(text, sizeof text,
             "warning: %.320s: %s go through host memory "
             "(DTRUN_DEVICE=staging does the same without this warning)",
             obstacle, name_collectives(c, what));
    dt_gpu_warn_once(c, &warned, text);
}

static dt_result_t refuse_staging_of_sharers(struct dt_comm *c, const char *obstacle)
{
    return dt_comm_fail(
        c, dt_fail(DT_ERR_CUDA, "%s, and DTRUN_DEVICE=shared permits no other path", obstacle));
}

/* Fails if the user permits only the path that the obstacle blocks, else warns. */
static dt_result_t accept_obstacle(struct dt_comm *c, const struct dt_gpu_choice *choice,
                                   enum dt_gpu_path wish, const char *obstacle)
{
    if (choice->obstacle == DT_GPU_WISHES_DIFFER)
        return dt_comm_fail(
            c, dt_fail(DT_ERR_MISMATCH, "%s: it must be the same on all ranks", obstacle));
    if (wish == DT_GPU_NCCL)
        return dt_comm_fail(
            c, dt_fail(DT_ERR_NCCL, "%s, and DTRUN_DEVICE=nccl permits no other path", obstacle));
    if (wish == DT_GPU_SHARED && choice->shares)
        return refuse_staging_of_sharers(c, obstacle);
    warn_of_staging(c, obstacle);
    return DT_OK;
}

/* A warning tells of staging, unless the user has chosen it. */
static void tell_path(const struct dt_comm *c, uint64_t version)
{
    bool shares = c->gpu->path == DT_GPU_SHARED;
    char what[COLLECTIVES_TEXT], nccl[32] = "", text[DT_RANK_NOTE_TEXT];

    if (c->rank != 0 || c->gpu->path == DT_GPU_STAGING)
        return;
    if (!shares || c->gpu->shared.groups.n > 1)
        snprintf(nccl, sizeof nccl, "NCCL %d.%d.%d", (int)version / 10000, (int)version / 100 % 100,
                 (int)version % 100);
    snprintf(text, sizeof text, "%s go through %s%s%s%s", name_collectives(c, what),
             shares ? "memory of shared GPUs" : "", shares && *nccl ? " and " : "", nccl,
             c->gpu->program_order ? ", in the order that the program has promised" : "");
    dt_agentlink_detail(&c->world->agent, text);
}

static dt_result_t choose_from_offers(struct dt_comm *c, const struct dt_gpu_offer *offers)
{
    struct dt_gpu_choice choice = dt_gpu_choose(offers, c->size);
    char obstacle[DT_GPU_TEXT];
    dt_result_t r = DT_OK;

    if (choice.obstacle)
        r = describe_obstacle(c, &choice, offers, obstacle);
    if (r == DT_OK && choice.obstacle)
        r = accept_obstacle(c, &choice, c->world->settings.gpu_path, obstacle);
    if (r != DT_OK)
        return r;
    if (!choice.keeps_split)
        dt_ncclcomm_discard(c);
    c->gpu->path = choice.path;
    c->gpu->program_order = choice.ordered;
    if (choice.path == DT_GPU_SHARED)
        r = dt_shared_begin(c, offers);
    if (r == DT_OK)
        tell_path(c, offers[c->rank].nccl);
    return r;
}

/* After a fault of the GPU, the driver and NCCL may answer any question with that fault, so what
 * this rank offers would blame something else. */
static dt_result_t check_for_fault(struct dt_comm *c, const struct dt_gpu_order *order)
{
    const struct dt_cuda *cuda = dt_cuda();
    struct dt_cuda_scope scope;
    CUevent event;
    CUresult result = dt_cuda_enter(&scope, order->context);

    if (result)
        return dt_gpu_fail(c, scope.failed, result);
    result = cuda->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (!result)
        cuda->cuEventDestroy_v2(event);
    dt_cuda_leave(&scope);
    return result ? dt_gpu_fail(c, "cuEventCreate", result) : DT_OK;
}

/* Collective. */
static dt_result_t choose_path(struct dt_comm *c, const struct dt_gpu_order *order)
{
    struct dt_gpu_offer *offers = calloc((size_t)c->size, sizeof *offers);
    dt_result_t r;

    if (!offers)
        return dt_comm_fail_no_memory(c);
    fill_offer(c, order, &offers[c->rank]);
    r = check_for_fault(c, order);
    if (r == DT_OK)
        r = dt_comm_all_gather_table(c, DT_CALL_GPU_CHOICE, offers, sizeof *offers);
    if (r == DT_OK)
        r = choose_from_offers(c, offers);
    free(offers);
    return r;
}

/* ---- calls of all ranks ---- */

/* In its first all-to-all NCCL waits for all ranks. Before NCCL 2.22 nothing ends that wait without
 * freeing memory that the waiting thread uses. */
static bool nccl_makes(const struct dt_comm *c, const struct dt_operation *o)
{
    if (o->kind->call == DT_CALL_ALL_TO_ALL && dt_nccl()->version < DT_NCCL_ABORTS_IN_GROUPS)
        return false;
    return dt_ncclcalls_serves(o, c->size);
}

/* Whether the chosen path, or any path that can still be chosen, makes the operation without
 * staging. Between dt_join_begin and dt_join some ranks may have no GPU memory to take part
 * with. */
static bool can_make(const struct dt_comm *c, const struct dt_operation *o)
{
    if (c->world->settings.gpu_path == DT_GPU_STAGING || c->announce)
        return false;
    switch (c->gpu->path) {
    case DT_GPU_AUTO:
        return dt_ncclcalls_serves(o, c->size) || dt_gpu_steps_serve(o);
    case DT_GPU_NCCL:
        return nccl_makes(c, o);
    case DT_GPU_SHARED:
        return dt_shared_serves(c, o);
    default:
        return false;
    }
}

/* The device and context for which this rank has opened the path. A NULL context means none yet. */
static struct dt_gpu_order opened_for(const struct dt_comm *c)
{
    const struct dt_gpu *g = c->gpu;

    switch (g->path) {
    case DT_GPU_NCCL:
        return (struct dt_gpu_order){ .context = g->nccl.context, .device = g->nccl.device };
    case DT_GPU_SHARED:
        return (struct dt_gpu_order){ .context = g->shared.context, .device = g->shared.device };
    default:
        return (struct dt_gpu_order){ 0 };
    }
}

static const char *name_self(const struct dt_comm *c, char text[DT_WORLD_NAME])
{
    return dt_world_name(c->world, (uint32_t)c->world->rank, text);
}

dt_result_t dt_gpu_check_place(const struct dt_comm *c, const struct dt_operation *o)
{
    struct dt_gpu_order first = opened_for(c);
    char me[DT_WORLD_NAME];

    if (!first.context || !can_make(c, o))
        return DT_OK;
    if (o->order.device != first.device)
        return dt_fail(DT_ERR_ARG,
                       "%s: %s: the buffer is on device %d, but the first one of this "
                       "communicator was on device %d; DTRUN_DEVICE=staging serves both",
                       name_self(c, me), o->kind->name, o->order.device, first.device);
    if (!o->order.bound || o->order.context == first.context)
        return DT_OK;
    return dt_fail(DT_ERR_ARG,
                   "%s: %s: the buffer belongs to another context of device %d than the first "
                   "one of this communicator; DTRUN_DEVICE=staging serves both",
                   name_self(c, me), o->kind->name, first.device);
}

/* The path is chosen at the first call that some path makes without staging. */
static dt_result_t settle_path(struct dt_comm *c, const struct dt_operation *o)
{
    return c->gpu->path == DT_GPU_AUTO && can_make(c, o) ? choose_path(c, &o->order) : DT_OK;
}

/* If there is no memory to share (*why is set), falls back to staging for good. */
static dt_result_t accept_shared(struct dt_comm *c, dt_result_t r, const char *why)
{
    if (r != DT_OK || !*why)
        return r;
    if (c->world->settings.gpu_path == DT_GPU_SHARED)
        return refuse_staging_of_sharers(c, why);
    warn_of_staging(c, why);
    c->gpu->path = DT_GPU_STAGING;
    return DT_OK;
}

static dt_result_t prepare_shared(struct dt_comm *c, const struct dt_operation *o)
{
    char why[DT_GPU_TEXT] = "";
    dt_result_t r = dt_shared_prepare(c, o, why);

    return accept_shared(c, r, why);
}

/* Whether all ranks are certain to have GPU memory for the call. A rank whose block is empty may
 * have none, but in a reduction every rank has a buffer. */
static bool is_alike(const struct dt_comm *c, const struct dt_operation *o)
{
    unsigned traits = dt_call_traits(o->kind->call);

    return !c->announce && (!(traits & DT_CALL_VARIED) || traits & DT_CALL_TELLS_OP);
}

/* Once c has failed, no path may make its streams again: the driver might wait there for a stream
 * of the program that stands still. */
dt_result_t dt_gpu_make(struct dt_comm *c, const struct dt_operation *o)
{
    struct dt_call whole = dt_gpu_call(o);
    dt_result_t r;

    if (c->failed != DT_OK)
        return dt_error_restore(&c->error);
    if (o->memory == DT_MEMORY_MANAGED) {
        r = dt_gpu_await_order(c, &o->order);
        return r == DT_OK ? o->kind->make(c, o) : r;
    }
    r = dt_gpu_check_place(c, o);
    if (r == DT_OK)
        r = dt_gpu_await_gates(c, &o->order, o->gate);
    if (r == DT_OK)
        r = settle_path(c, o);
    if (r != DT_OK)
        return r;
    if (c->gpu->path == DT_GPU_SHARED && can_make(c, o))
        r = prepare_shared(c, o);
    if (r != DT_OK)
        return r;
    if (c->gpu->path == DT_GPU_SHARED && can_make(c, o))
        return dt_shared_make(c, o);
    if (c->gpu->path == DT_GPU_NCCL && can_make(c, o))
        return dt_nccl_make(c, o);
    dt_unlaunched_end(o->unlaunched);
    whole.kind = (uint8_t)o->kind->call;
    c->on_device = is_alike(c, o);
    c->whole = c->announce ? &whole : NULL;
    r = dt_staging_make(c, o);
    c->whole = NULL;
    c->on_device = false;
    return r;
}

/* ---- preparing for enqueued calls ---- */

static dt_result_t open_path(struct dt_comm *c, const struct dt_gpu_order *order)
{
    char why[DT_GPU_TEXT] = "";
    dt_result_t r;

    switch (c->gpu->path) {
    case DT_GPU_NCCL:
        return dt_ncclinit_open(c, order);
    case DT_GPU_SHARED:
        r = dt_shared_reserve(c, order, why);
        return accept_shared(c, r, why);
    default:
        return DT_OK;
    }
}

struct wanted {     /* one rank's request, made of whole words */
    uint64_t other; /* whether it differs from the context that the communicator uses */
    uint64_t used;  /* the communicator's device */
    uint64_t device;
};

static dt_result_t refuse_other(struct dt_comm *c, int rank, const struct wanted *w)
{
    char name[DT_WORLD_NAME];

    dt_world_name(c->world, c->ranks[rank], name);
    if (w->used != w->device)
        return dt_fail(DT_ERR_ARG,
                       "dt_comm_on_stream: on %s the stream is on device %d, but the communicator "
                       "uses device %d: make another communicator with dt_comm_dup, or use "
                       "DTRUN_DEVICE=staging, which serves both",
                       name, (int)w->device, (int)w->used);
    return dt_fail(DT_ERR_ARG,
                   "dt_comm_on_stream: on %s the stream belongs to another context of device %d "
                   "than the one that the communicator uses: use a stream of that context, or "
                   "DTRUN_DEVICE=staging, which serves both",
                   name, (int)w->device);
}

/* Collective: if one rank cannot do this, all refuse. */
static dt_result_t check_device(struct dt_comm *c, const struct dt_gpu_order *order)
{
    struct dt_gpu_order used = opened_for(c);
    struct wanted *all;
    dt_result_t r;

    if (!used.context)
        return DT_OK;
    all = calloc((size_t)c->size, sizeof *all);
    if (!all)
        return dt_comm_fail_no_memory(c);
    all[c->rank] =
        (struct wanted){ .other = used.device != order->device || used.context != order->context,
                         .used = (uint64_t)used.device,
                         .device = (uint64_t)order->device };
    r = dt_comm_all_gather_table(c, DT_CALL_GPU_CHOICE, all, sizeof *all);
    for (int rank = 0; r == DT_OK && rank < c->size; rank++) {
        if (all[rank].other)
            r = refuse_other(c, rank, &all[rank]);
    }
    free(all);
    return r;
}

dt_result_t dt_gpu_prepare(struct dt_comm *c, const struct dt_gpu_order *order,
                           struct dt_gpu_copies **copies)
{
    bool open = c->world->settings.gpu_path != DT_GPU_STAGING && c->gpu->path == DT_GPU_AUTO;
    dt_result_t r = check_device(c, order);

    if (r == DT_OK && open && !c->announce)
        r = choose_path(c, order);
    if (r == DT_OK)
        r = open_path(c, order);
    return r == DT_OK ? dt_staging_open(c, order, copies) : r;
}

/* With several communicators, ranks must agree on one order of launches (launchorder.h), or keep
 * the one that the program has promised. For an all-to-all, only the communicator's thread may take
 * the memory that sets blocks aside. */
bool dt_gpu_goes_direct(const struct dt_comm *c, const struct dt_operation *o, bool *must)
{
    bool several = dt_nccl_needs_agreement(c);
    bool direct = c->gpu->path == DT_GPU_NCCL && atomic_load(&c->gpu->directs.open) &&
                  o->memory == DT_MEMORY_DEVICE && can_make(c, o) &&
                  o->kind->call != DT_CALL_ALL_TO_ALL && (!several || c->gpu->program_order);

    *must = direct && several;
    return direct;
}

bool dt_gpu_is_staged(const struct dt_comm *c, const struct dt_operation *o, size_t *bytes)
{
    *bytes = dt_staging_bytes(c, o);
    return o->memory == DT_MEMORY_DEVICE && !can_make(c, o);
}

/* The ranks have chosen the path together, so all return here, or none. */
dt_result_t dt_gpu_split(struct dt_comm *parent, struct dt_comm *child, int color)
{
    dt_result_t r;

    if (parent->gpu->path != DT_GPU_NCCL)
        return DT_OK;
    r = dt_ncclinit_split(parent, child, color);
    if (r != DT_OK)
        dt_ncclcomm_abort(parent);
    return r;
}

dt_result_t dt_gpu_open(struct dt_comm *c)
{
    char me[DT_WORLD_NAME];

    c->gpu = calloc(1, sizeof *c->gpu);
    if (c->gpu)
        return DT_OK;
    return dt_fail(DT_ERR_NOMEM, "%s: out of memory for a communicator", name_self(c, me));
}

void dt_gpu_close(struct dt_comm *c)
{
    if (!c->gpu)
        return;
    dt_shared_close(c);
    dt_ncclcomm_close(c);
    dt_direct_close(c);
    dt_gpu_copies_close_all(&c->gpu->all_copies);
    free(c->gpu);
    c->gpu = NULL;
}
