#include "runtime/shm/call_match.h"

#include <string.h>

#include "runtime/shm/rounds.h"

/* Copies field by field. The call was stored field by field a moment ago, and a load that spans
 * several recent stores would wait until they are in the cache. */
static void copy_call(volatile struct dt_call *to, const struct dt_call *from)
{
    to->number = from->number;
    to->count = from->count;
    to->kind = from->kind;
    to->dtype = from->dtype;
    to->op = from->op;
    to->device = from->device;
    to->root = from->root;
    to->options = from->options;
}

void dt_call_match_post(struct dt_shm *s, const struct dt_call *call, const void *data,
                        size_t bytes)
{
    struct dt_hostshm_post *post = dt_round_post(s, s->me);

    s->signature = dt_call_signature(call);
    copy_call(&s->map.ranks[s->me].calls[s->round & 1], call);
    if (bytes)
        memcpy(post->data, data, bytes);
    post->signature = s->signature;
}

/* The first rank that made another call than this one; s->n: none. Does not read this rank's own
 * post: see dt_call_match_told. */
static uint32_t find_other(const struct dt_shm *s)
{
    uint32_t i = 0;

    while (i < s->n && (i == s->me || dt_round_post(s, i)->signature == s->signature))
        i++;
    return i;
}

bool dt_call_match_agrees(const struct dt_shm *s)
{
    return find_other(s) == s->n;
}

static dt_result_t check(struct dt_shm *s)
{
    uint32_t other = find_other(s);

    if (other == s->n)
        return DT_OK;
    dt_coll_error(s->coll_error, DT_ERR_MISMATCH, s->ranks[other]);
    s->coll_error->theirs = s->map.ranks[other].calls[s->round & 1];
    return DT_ERR_MISMATCH;
}

dt_result_t dt_call_match_others(struct dt_shm *s, bool first)
{
    dt_result_t r = dt_round_await_all(s, DT_IN);

    return r == DT_OK && first ? check(s) : r;
}

dt_result_t dt_call_match(struct dt_shm *s, bool first)
{
    dt_round_publish(s, DT_IN);
    return dt_call_match_others(s, first);
}

dt_result_t dt_call_match_and_tell(struct dt_shm *s, const struct dt_call *call, const void *data,
                                   size_t bytes)
{
    dt_result_t r = dt_round_begin(s, 0);

    if (r != DT_OK)
        return r;
    dt_call_match_post(s, call, data, bytes);
    return dt_call_match(s, true);
}
