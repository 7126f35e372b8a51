#include "runtime/coll/layout.h"

#include <string.h>

#include "runtime/base/min.h"
#include "runtime/tcp/flow.h"

enum {
    ALIGN = 128, /* blocks begin at multiples, so that no two ranks write one pair of cache lines */
    CHUNKS_LEAST = 4, /* with fewer chunks nothing would overlap */
    /* More chunks never make blocks smaller than this, because every frame has a cost. */
    BLOCK_LEAST = 16 * 1024,
    BLOCK_LEAST_ONE_RANK = 96 * 1024, /* the same, if no host has several ranks */
    LEADERS_MOST = 8, /* one core each; more connections do not use a network better */
    HOSTS_MOST = 8,   /* with at most this many hosts, each leader may send to all others at once */
    LEADER_BLOCK_LEAST = 8192, /* bytes of a host's block of a share; in smaller ones frames cost
                                  too much */
};

void dt_host_ranks_fill(struct dt_host_ranks *r, const uint32_t *node_of, uint32_t size,
                        uint32_t hosts)
{
    for (uint32_t rank = 0; rank < size; rank++)
        r->first[node_of[rank] + 1]++;
    for (uint32_t host = 0; host < hosts; host++)
        r->first[host + 1] += r->first[host];
    for (uint32_t rank = 0; rank < size; rank++)
        r->ranks[r->first[node_of[rank]]++] = rank;
    memmove(r->first + 1, r->first, hosts * sizeof *r->first);
    r->first[0] = 0;
}

uint32_t dt_layout_leaders(size_t hosts, size_t least_ranks, size_t round)
{
    size_t leaders = dt_min(round / (hosts * LEADER_BLOCK_LEAST), LEADERS_MOST + 1);

    leaders = dt_min(leaders > 1 ? leaders - 1 : 1, least_ranks);
    return hosts <= HOSTS_MOST ? (uint32_t)leaders : 1;
}

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Divides a range into equal ranges of this size; returns range i. */
static struct dt_range nth_range(struct dt_range whole, size_t bytes, size_t i)
{
    size_t from = dt_min(i * bytes, whole.bytes), to = dt_min((i + 1) * bytes, whole.bytes);

    return (struct dt_range){ whole.at + from, to - from };
}

static uint32_t blocks_per_leader(const struct dt_layout *c)
{
    uint32_t most = 0;

    for (uint32_t host = 0; host < c->hosts; host++) {
        uint32_t ranks = dt_host_ranks_count(c->host_ranks, host);

        most = ranks > most ? ranks : most;
    }
    return (most + c->n_leaders - 1) / c->n_leaders;
}

static bool has_one_rank_per_host(const struct dt_layout *c)
{
    return c->host_ranks->first[c->hosts] == c->hosts;
}

/* Divides bytes into chunks, each of this number of blocks and at most "most" bytes. Returns the
 * number of chunks. */
static size_t divide(const struct dt_layout *c, size_t bytes, size_t blocks, size_t most,
                     size_t *chunk)
{
    size_t grain = blocks * ALIGN, n = (bytes + most - 1) / most;
    size_t block = has_one_rank_per_host(c) ? BLOCK_LEAST_ONE_RANK : BLOCK_LEAST;
    size_t least = dt_min(bytes / (blocks * block), CHUNKS_LEAST);

    n = n < least ? least : n;
    *chunk = round_up((bytes + n - 1) / n, grain);
    return (bytes + *chunk - 1) / *chunk;
}

void dt_layout_make(struct dt_layout *c, size_t most)
{
    size_t blocks = (size_t)c->n_leaders * c->hosts, grain = blocks * ALIGN;
    size_t chunk = most / (c->n_leaders + 1) * c->n_leaders / grain * grain;

    if (c->recipients == DT_LAYOUT_FOR_EACH) {
        c->chunks_per_block = divide(c, c->bytes, 1, chunk / blocks, &c->block);
        c->chunks = c->chunks_per_block * blocks_per_leader(c);
        c->share = c->block * c->hosts;
        c->chunk = c->share * c->n_leaders;
    } else {
        c->chunks = divide(c, c->bytes, blocks, chunk, &c->chunk);
        c->share = c->chunk / c->n_leaders;
        c->block = c->collects ? c->share : c->share / c->hosts;
    }
    c->segments = dt_flow_segments(c->block);
}

size_t dt_layout_whole(const struct dt_layout *c)
{
    return c->recipients == DT_LAYOUT_FOR_EACH ? c->bytes * c->host_ranks->first[c->hosts]
                                               : c->bytes;
}

uint32_t dt_layout_ranges(const struct dt_layout *c)
{
    return c->recipients == DT_LAYOUT_FOR_EACH ? c->hosts : 1;
}

uint32_t dt_layout_owner(const struct dt_layout *c, size_t chunk, uint32_t leader)
{
    return (uint32_t)(chunk / c->chunks_per_block) * c->n_leaders + leader;
}

size_t dt_layout_offset(const struct dt_layout *c, size_t chunk)
{
    return chunk % c->chunks_per_block * c->block;
}

struct dt_range dt_layout_range(const struct dt_layout *c, size_t chunk, uint32_t leader,
                                uint32_t range)
{
    const struct dt_host_ranks *r = c->host_ranks;
    uint32_t owner;
    size_t block;

    if (c->recipients != DT_LAYOUT_FOR_EACH)
        return nth_range(nth_range((struct dt_range){ 0, c->bytes }, c->chunk, chunk), c->share,
                         leader);
    owner = dt_layout_owner(c, chunk, leader);
    if (owner >= dt_host_ranks_count(r, range))
        return (struct dt_range){ 0, 0 };
    block = r->ranks[r->first[range] + owner];
    return nth_range((struct dt_range){ block * c->bytes, c->bytes }, c->block,
                     chunk % c->chunks_per_block);
}

size_t dt_layout_range_at(const struct dt_layout *c, uint32_t range)
{
    return range * c->block;
}

size_t dt_layout_block_at(const struct dt_layout *c, uint32_t host)
{
    return c->collects ? 0 : host * c->block;
}

struct dt_range dt_layout_block(const struct dt_layout *c, size_t chunk, uint32_t leader,
                                uint32_t host)
{
    struct dt_range range =
        dt_layout_range(c, chunk, leader, c->recipients == DT_LAYOUT_FOR_EACH ? host : 0);

    if (c->recipients == DT_LAYOUT_FOR_EACH)
        return range;
    if (c->collects)
        return host == c->root_host ? range : (struct dt_range){ range.at, 0 };
    return nth_range(range, c->block, host);
}

/* ---- frames ---- */

unsigned dt_layout_series(const struct dt_layout *c, uint32_t to)
{
    if (c->recipients == DT_LAYOUT_FOR_ALL)
        return DT_LAYOUT_RAW | DT_LAYOUT_FOLDED;
    if (c->recipients == DT_LAYOUT_FOR_EACH)
        return DT_LAYOUT_RAW;
    if (c->collects)
        return to == c->root_host ? DT_LAYOUT_RAW : 0;
    return to == c->root_host ? DT_LAYOUT_RAW | DT_LAYOUT_FOLDED : DT_LAYOUT_RAW;
}

size_t dt_layout_frames(const struct dt_layout *c, uint32_t to)
{
    unsigned series = dt_layout_series(c, to);
    size_t each = (series & DT_LAYOUT_RAW ? 1 : 0) + (series & DT_LAYOUT_FOLDED ? 1 : 0);

    return each ? each * c->chunks * c->segments : 1;
}

size_t dt_layout_frame_of(const struct dt_layout *c, unsigned series, size_t segment,
                          bool is_folded)
{
    size_t chunk = segment / c->segments, place = chunk ? 2 * chunk - 1 : 0;

    if (series != (DT_LAYOUT_RAW | DT_LAYOUT_FOLDED))
        return segment;
    if (is_folded)
        place = chunk + 1 < c->chunks ? 2 * chunk + 2 : 2 * chunk + 1;
    return place * c->segments + segment % c->segments;
}

size_t dt_layout_segment_of(const struct dt_layout *c, unsigned series, size_t frame,
                            bool *is_folded)
{
    size_t place = frame / c->segments, chunk = (place + 1) / 2;

    *is_folded = false;
    if (series != (DT_LAYOUT_RAW | DT_LAYOUT_FOLDED))
        return frame;
    *is_folded = place > 0 && (place % 2 == 0 || chunk == c->chunks);
    if (*is_folded)
        chunk = chunk == c->chunks ? chunk - 1 : place / 2 - 1;
    return chunk * c->segments + frame % c->segments;
}
