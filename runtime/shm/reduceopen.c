#include "runtime/shm/reduceopen.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#include "runtime/base/min.h"
#include "runtime/shm/call_match.h"
#include "runtime/shm/cma.h"
#include "runtime/shm/rounds.h"
#include "runtime/shm/stream.h"

static_assert(sizeof(struct dt_reduceopen_terms) <= DT_HOSTSHM_INLINE,
              "travels with the signature");

enum { CROWDED_STAGES_MAX = 4 * 1024 }; /* bytes that ranks which share CPUs rather stage */

/* ---- terms ---- */

/* Oversubscribed ranks lose more by a second synchronisation than they gain for small data. */
bool dt_reduceopen_may_map(const struct dt_shm *s, size_t bytes, bool small)
{
    return bytes >= DT_SEGMENT_LEAST && !(s->crowded && small && bytes <= CROWDED_STAGES_MAX);
}

/* Whether the kernel lets this rank access the memory of all other ranks. */
static bool reaches_all(struct dt_shm *s)
{
    for (uint32_t i = 0; s->reach == DT_CMA_UNTRIED && i < s->n; i++) {
        if (i != s->me && !dt_cma_reaches(&s->map, s->me, i))
            s->reach = DT_CMA_REFUSED;
    }
    if (s->reach == DT_CMA_UNTRIED)
        s->reach = DT_CMA_REACHED;
    return s->reach == DT_CMA_REACHED;
}

/* Whether the data are of a size for which ranks access each other's memory through the kernel. */
static bool may_copy(const struct dt_shm *s, const struct dt_chunk *whole)
{
    return s->n > 1 && !whole->small && whole->bytes >= s->tuning->shm_direct_reduce;
}

/* A result that should bypass the caches does so only if its own rank stores it. */
struct dt_reduceopen_terms dt_reduceopen_offer(struct dt_shm *s, const struct dt_chunk *whole)
{
    bool collects = dt_chunk_is_for(whole, s->me);
    struct dt_reduceopen_terms t = { 0 };

    if (dt_reduceopen_may_map(s, whole->bytes, whole->small)) {
        t.in = dt_segment_place(s->comm, whole->in, whole->bytes);
        t.out = collects ? dt_segment_place(s->comm, whole->out, whole->bytes) : t.in;
    }
    if (may_copy(s, whole) && !whole->huge && reaches_all(s)) {
        t.in_at = (uintptr_t)whole->in;
        t.out_at = collects ? (uintptr_t)whole->out : 0;
    }
    return t;
}

static bool is_mapped(const struct dt_reduceopen_terms *t)
{
    return t->in.segment && t->out.segment;
}

bool dt_reduceopen_offers(const struct dt_reduceopen_terms *mine)
{
    return is_mapped(mine) || mine->in_at;
}

struct offers {
    uint32_t mapped; /* number of ranks that offer it */
    uint32_t copied;
    uint32_t any;
    bool in_place; /* some rank's result overwrites its own data */
};

static struct offers count_offers(const struct dt_shm *s, const struct dt_chunk *whole,
                                  const struct dt_reduceopen_terms *mine,
                                  struct dt_reduceopen_terms *terms)
{
    struct offers o = { 0 };

    if (!dt_reduceopen_may_map(s, whole->bytes, whole->small) && !may_copy(s, whole))
        return o;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct dt_reduceopen_terms *t = &terms[i];

        memcpy(&terms[i], dt_call_match_told(s, i, mine), sizeof *terms);
        o.mapped += is_mapped(t);
        o.copied += t->in_at != 0;
        o.any += dt_reduceopen_offers(t);
        o.in_place = o.in_place || t->in_at == t->out_at;
    }
    return o;
}

/* If the kernel refuses a copy, the rest is staged. A rank then takes the blocks that it has
 * reduced from its own result or, if it gets none, reduces them again, for which no data may have
 * been overwritten. */
static bool may_all_copy(const struct dt_shm *s, const struct dt_chunk *whole,
                         const struct offers *o)
{
    return o->copied == s->n && (whole->root == DT_CHUNK_EVERYBODY || !o->in_place);
}

/* ---- data in mapped segments ---- */

static void find_sources(const struct dt_shm *s, uint8_t *const *in, size_t at, const void **src)
{
    for (uint32_t i = 0; i < s->n; i++)
        src[i] = in[i] + at;
}

/* Reduces this rank's block of all data at "in" into every rank's "out". False: stopped before
 * the end. */
static bool reduce_mapped_block(const struct dt_shm *s, const struct dt_chunk *c,
                                uint8_t *const *in, uint8_t *const *out)
{
    alignas(DT_HOSTSHM_LINE) uint8_t result[DT_CHUNK_L1];
    size_t end = dt_chunk_block_at(c, s->me + 1);

    for (size_t at = dt_chunk_block_at(c, s->me); at < end; at += DT_CHUNK_L1) {
        size_t bytes = dt_min(end - at, DT_CHUNK_L1);
        const void *src[s->n];

        find_sources(s, in, at, src);
        dt_chunk_fold(s, c, result, src, bytes);
        if (dt_hostshm_stopped(&s->map, NULL))
            return false;
        for (uint32_t i = 0; i < s->n; i++) {
            if (dt_chunk_is_for(c, i))
                dt_chunk_keep(c, out[i] + at, result, bytes);
        }
    }
    return true;
}

/* If the call fails after this round began, it fails on this rank too: other ranks may lack its
 * block. */
static dt_result_t await_all_blocks(struct dt_shm *s)
{
    dt_result_t r = dt_round_await_all(s, DT_REDUCED);

    return r == DT_OK && dt_hostshm_stopped(&s->map, NULL) && dt_round_some_left(s)
               ? dt_shm_check(s)
               : r;
}

/* Finds the buffers of all ranks. */
static dt_result_t find_buffers(struct dt_shm *s, const struct dt_reduceopen_terms *terms,
                                uint8_t **in, uint8_t **out)
{
    dt_result_t r = DT_OK;

    for (uint32_t i = 0; i < s->n; i++) {
        in[i] = dt_segment_find(terms[i].in);
        out[i] = dt_segment_find(terms[i].out);
        if (!in[i] || !out[i])
            r = dt_coll_error(s->coll_error, DT_ERR_INTERNAL, s->ranks[i]);
    }
    return r;
}

/* All ranks can access all data directly. The buffers are their own again when all have reduced. */
static dt_result_t reduce_mapped(struct dt_shm *s, const struct dt_chunk *whole,
                                 const struct dt_reduceopen_terms *terms)
{
    const struct dt_chunk c = dt_chunk_cut(s, whole, 0, whole->bytes);
    uint8_t *in[s->n], *out[s->n];
    dt_result_t r;

    s->algorithm = "shm-mapped";
    dt_segment_hold();
    r = find_buffers(s, terms, in, out);
    if (r == DT_OK && !reduce_mapped_block(s, &c, in, out))
        r = dt_shm_check(s);
    if (c.huge)
        dt_stream_settle();
    if (r == DT_OK) {
        dt_round_publish(s, DT_REDUCED);
        r = await_all_blocks(s);
    }
    dt_segment_release();
    return r;
}

/* ---- data copied by the kernel ---- */

/* Of the targets in the two sets of pipes, a send uses only one; this uses the other. */
static struct dt_hostshm_target *target_of(const struct dt_shm *s, uint32_t writer, uint32_t owner)
{
    return &dt_hostshm_pipe(&s->map, writer < owner, writer, owner)->target;
}

/* Begins with the next rank, so that not all ranks read from the same one at once. */
static uint32_t next_peer(const struct dt_shm *s, uint32_t i)
{
    return (s->me + i) % s->n;
}

/* Copies this rank's block of every rank's data to its own staging area. No rank reads that area
 * now: all have entered the round, and none has staged anything in it. */
static bool copy_blocks_in(const struct dt_shm *s, const struct dt_chunk *c,
                           const struct dt_reduceopen_terms *terms, const void **src)
{
    uint8_t *to = dt_hostshm_staging(&s->map, s->me);
    size_t at = dt_chunk_block_at(c, s->me), bytes = dt_chunk_block_bytes(c, s->me);

    src[s->me] = c->in + at;
    for (uint32_t i = 1; i < s->n; i++, to += c->block) {
        uint32_t peer = next_peer(s, i);

        src[peer] = to;
        if (!dt_cma_read(&s->map, &s->map.ranks[peer].card, to, terms[peer].in_at + c->at + at,
                         bytes))
            return false;
    }
    return true;
}

static bool copy_result_out(const struct dt_shm *s, const struct dt_chunk *c,
                            const struct dt_reduceopen_terms *terms, const void *result)
{
    size_t at = dt_chunk_block_at(c, s->me), bytes = dt_chunk_block_bytes(c, s->me);

    for (uint32_t i = 1; i < s->n; i++) {
        uint32_t peer = next_peer(s, i);

        if (dt_chunk_is_for(c, peer) &&
            !dt_cma_write(&s->map, &s->map.ranks[peer].card, target_of(s, s->me, peer),
                          terms[peer].out_at + c->at + at, result, bytes))
            return false;
    }
    return true;
}

/* Reduces this rank's block and copies the result to all ranks. False: the kernel refused, or
 * everything was stopped. */
static bool reduce_copied_chunk(const struct dt_shm *s, const struct dt_chunk *c,
                                const struct dt_reduceopen_terms *terms, size_t *folded)
{
    bool stays = dt_chunk_is_for(c, s->me);
    const void *src[s->n];
    void *result =
        stays ? c->out + dt_chunk_block_at(c, s->me) : dt_hostshm_staging(&s->map, s->me);

    if (!copy_blocks_in(s, c, terms, src))
        return false;
    dt_chunk_fold(s, c, result, src, dt_chunk_block_bytes(c, s->me));
    *folded = stays ? c->at + c->bytes : *folded;
    return copy_result_out(s, c, terms, result);
}

/* The kernel may be unable to copy some memory of a program. Then this rank stops there. Returns
 * how far it came. */
static size_t reduce_copied_chunks(struct dt_shm *s, const struct dt_chunk *whole,
                                   const struct dt_reduceopen_terms *terms, size_t step,
                                   size_t *folded)
{
    for (size_t at = 0; at < whole->bytes; at += step) {
        const struct dt_chunk c = dt_chunk_cut(s, whole, at, step);

        if (reduce_copied_chunk(s, &c, terms, folded))
            continue;
        if (!dt_hostshm_stopped(&s->map, NULL))
            dt_round_publish(s, DT_LEFT);
        return at;
    }
    dt_round_publish(s, DT_REDUCED);
    return whole->bytes;
}

/* Tells all ranks how far each rank came, if some did not finish. */
static dt_result_t compare_progress(struct dt_shm *s, const struct dt_chunk *whole,
                                    struct dt_reduceopen_end *end)
{
    size_t *done = end->done;
    dt_result_t r = dt_call_match_and_tell(s, whole->call, &done[s->me], sizeof *done);

    s->reach = DT_CMA_REFUSED;
    for (uint32_t i = 0; r == DT_OK && i < s->n; i++)
        memcpy(&done[i], dt_round_post(s, i)->data, sizeof *done);
    return r;
}

/* dt_round_some_left can be trusted here: this round's posts are next written in the round after
 * the next, which no rank can begin while another is still in this one. */
static dt_result_t reduce_copied(struct dt_shm *s, const struct dt_chunk *whole,
                                 const struct dt_reduceopen_terms *terms, size_t step,
                                 struct dt_reduceopen_end *end)
{
    size_t done = reduce_copied_chunks(s, whole, terms, step, &end->folded);
    dt_result_t r = done < whole->bytes ? dt_shm_check(s) : DT_OK;

    s->algorithm = "shm-direct";
    end->done[s->me] = done;
    if (r == DT_OK)
        r = await_all_blocks(s);
    end->quiet = r == DT_OK;
    end->over = !dt_round_some_left(s);
    return r == DT_OK && !end->over ? compare_progress(s, whole, end) : r;
}

/* ---- both ---- */

dt_result_t dt_reduceopen(struct dt_shm *s, const struct dt_chunk *whole,
                          const struct dt_reduceopen_terms *mine, size_t step,
                          struct dt_reduceopen_end *end)
{
    struct dt_reduceopen_terms terms[s->n];
    struct offers o = count_offers(s, whole, mine, terms);

    for (uint32_t i = 0; i < s->n; i++)
        end->done[i] = 0;
    end->folded = 0;
    end->staged = o.any == 0;
    end->over = o.mapped == s->n;
    if (end->over)
        return reduce_mapped(s, whole, terms);
    if (may_all_copy(s, whole, &o))
        return reduce_copied(s, whole, terms, step, end);
    if (mine->in_at && o.copied < s->n && whole->bytes < s->tuning->shm_huge)
        s->reach = DT_CMA_REFUSED; /* if it offered again, it would always be the only one */
    return DT_OK;
}

/* When the call fails: waits for ranks that may be writing to this rank's memory, and shows them
 * that this rank does not write to theirs. A rank that enters this call sees the stop before it
 * writes, unless all ranks had entered. Their posts are read first, because they stay valid while
 * this rank has not left. */
void dt_reduceopen_leave(struct dt_shm *s, const struct dt_chunk *whole,
                         const struct dt_reduceopen_terms *mine)
{
    struct dt_reduceopen_terms terms[s->n];
    struct offers o;
    bool begun;

    if (!dt_round_has_published(s, DT_IN) || !dt_hostshm_stopped(&s->map, NULL))
        return;
    dt_shm_fence(s);
    o = count_offers(s, whole, mine, terms);
    begun = dt_round_all_published(s, DT_IN) && dt_call_match_agrees(s) &&
            (o.mapped == s->n || may_all_copy(s, whole, &o));
    for (uint32_t i = 0; i < s->n; i++)
        dt_cma_refuse(target_of(s, i, s->me));
    dt_round_publish(s, DT_LEFT);
    if (begun)
        dt_round_outlast(s, DT_REDUCED);
}
