#include "launcher/agent/rankmessages.h"

#include "launcher/agent/generationstate.h"

static void on_detail(void *arg, const char *text)
{
    const struct dt_generation *g = arg;
    struct dt_msg_log m = { .text = (char *)(uintptr_t)text, .detail = true };

    dt_channel_send(g->host->channel, DT_MSG_LOG, &m);
}

static void on_rank_hello(void *arg, uint32_t rank, uint16_t port)
{
    struct dt_generation *g = arg;
    struct dt_msg_rank_hello m = { g->start.generation, rank, port };

    dt_channel_send(g->host->channel, DT_MSG_RANK_HELLO, &m);
}

static void on_commit(void *arg, int64_t step, uint8_t kind)
{
    struct dt_generation *g = arg;
    struct dt_msg_commit m = { g->start.generation, step, kind };

    dt_channel_send(g->host->channel, DT_MSG_COMMIT, &m);
}

static void on_step(void *arg, uint32_t rank, int64_t step)
{
    struct dt_generation *g = arg;

    dt_injector_step(g->faults, (uint32_t)dt_u32s_find(&g->start.ranks, rank), step);
}

static void on_call_failed(void *arg, uint64_t comm, uint32_t culprit, int code, const char *text)
{
    struct dt_generation *g = arg;
    struct dt_msg_failed m = { g->start.generation, comm, culprit, code, (char *)(uintptr_t)text };

    dt_channel_send(g->host->channel, DT_MSG_FAILED, &m);
}

static void on_limit(void *arg, uint32_t ms)
{
    struct dt_generation *g = arg;
    struct dt_msg_limit m = { g->start.generation, ms };

    dt_channel_send(g->host->channel, DT_MSG_LIMIT, &m);
}

static void on_last_calls(void *arg, const struct dt_msg_last_calls *m)
{
    const struct dt_generation *g = arg;

    dt_channel_send(g->host->channel, DT_MSG_LAST_CALLS, m);
}

static bool has_room(void *arg)
{
    const struct dt_generation *g = arg;

    return dt_channel_has_room(g->host->channel);
}

const struct dt_ranksock_events dt_rankmessages_events = {
    .hello = on_rank_hello,
    .commit = on_commit,
    .step = on_step,
    .log = dt_generation_on_log,
    .detail = on_detail,
    .failed = on_call_failed,
    .limit = on_limit,
    .last_calls = on_last_calls,
    .has_room = has_room,
};
