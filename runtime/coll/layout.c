#include "runtime/coll/layout.h"

#include "runtime/base/least.h"
#include "runtime/tcp/flow.h"

enum {
    ALIGN = 128, /* parts begin at multiples, so that no two ranks write one pair of cache lines */
    CHUNKS_LEAST = 4,       /* with fewer chunks nothing would overlap */
    PART_LEAST = 16 * 1024, /* parts do not become smaller for that, because frames cost too much */
    PART_ALONE = 96 * 1024, /* the same, if no host has several ranks */
};

static size_t up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Divides a span into equal pieces; returns piece i. */
static struct dt_span piece(struct dt_span of, size_t bytes, size_t i)
{
    size_t from = dt_least(i * bytes, of.bytes), to = dt_least((i + 1) * bytes, of.bytes);

    return (struct dt_span){ of.at + from, to - from };
}

static uint32_t turns(const struct dt_layout *c)
{
    uint32_t most = 0;

    for (uint32_t host = 0; host < c->hosts; host++) {
        uint32_t ranks = dt_roster_count(c->roster, host);

        most = ranks > most ? ranks : most;
    }
    return (most + c->width - 1) / c->width;
}

static bool is_alone(const struct dt_layout *c)
{
    return c->roster->first[c->hosts] == c->hosts;
}

/* Divides bytes into chunks of so many parts, of limited size. Returns the number of chunks. */
static size_t divide(const struct dt_layout *c, size_t bytes, size_t parts, size_t most,
                     size_t *chunk)
{
    size_t grain = parts * ALIGN, n = (bytes + most - 1) / most;
    size_t part = is_alone(c) ? PART_ALONE : PART_LEAST;
    size_t least = dt_least(bytes / (parts * part), CHUNKS_LEAST);

    n = n < least ? least : n;
    *chunk = up((bytes + n - 1) / n, grain);
    return (bytes + *chunk - 1) / *chunk;
}

void dt_layout_make(struct dt_layout *c, size_t most)
{
    size_t parts = (size_t)c->width * c->hosts, grain = parts * ALIGN;
    size_t chunk = most / (c->width + 1) * c->width / grain * grain;

    if (c->whom == DT_LAYOUT_FOR_EACH) {
        c->pieces = divide(c, c->bytes, 1, chunk / parts, &c->part);
        c->chunks = c->pieces * turns(c);
        c->slice = c->part * c->hosts;
        c->chunk = c->slice * c->width;
    } else {
        c->chunks = divide(c, c->bytes, parts, chunk, &c->chunk);
        c->slice = c->chunk / c->width;
        c->part = c->collects ? c->slice : c->slice / c->hosts;
    }
    c->segments = dt_flow_segments(c->part);
}

size_t dt_layout_whole(const struct dt_layout *c)
{
    return c->whom == DT_LAYOUT_FOR_EACH ? c->bytes * c->roster->first[c->hosts] : c->bytes;
}

uint32_t dt_layout_runs(const struct dt_layout *c)
{
    return c->whom == DT_LAYOUT_FOR_EACH ? c->hosts : 1;
}

uint32_t dt_layout_taker(const struct dt_layout *c, size_t chunk, uint32_t lane)
{
    return (uint32_t)(chunk / c->pieces) * c->width + lane;
}

size_t dt_layout_piece_at(const struct dt_layout *c, size_t chunk)
{
    return chunk % c->pieces * c->part;
}

struct dt_span dt_layout_run(const struct dt_layout *c, size_t chunk, uint32_t lane, uint32_t run)
{
    const struct dt_roster *r = c->roster;
    uint32_t taker;
    size_t block;

    if (c->whom != DT_LAYOUT_FOR_EACH)
        return piece(piece((struct dt_span){ 0, c->bytes }, c->chunk, chunk), c->slice, lane);
    taker = dt_layout_taker(c, chunk, lane);
    if (taker >= dt_roster_count(r, run))
        return (struct dt_span){ 0, 0 };
    block = r->ranks[r->first[run] + taker];
    return piece((struct dt_span){ block * c->bytes, c->bytes }, c->part, chunk % c->pieces);
}

size_t dt_layout_run_at(const struct dt_layout *c, uint32_t run)
{
    return run * c->part;
}

size_t dt_layout_part_at(const struct dt_layout *c, uint32_t host)
{
    return c->collects ? 0 : host * c->part;
}

struct dt_span dt_layout_part(const struct dt_layout *c, size_t chunk, uint32_t lane, uint32_t host)
{
    struct dt_span run = dt_layout_run(c, chunk, lane, c->whom == DT_LAYOUT_FOR_EACH ? host : 0);

    if (c->whom == DT_LAYOUT_FOR_EACH)
        return run;
    if (c->collects)
        return host == c->home ? run : (struct dt_span){ run.at, 0 };
    return piece(run, c->part, host);
}

/* ---- frames ---- */

unsigned dt_layout_series(const struct dt_layout *c, uint32_t to)
{
    if (c->whom == DT_LAYOUT_FOR_ALL)
        return DT_LAYOUT_RAW | DT_LAYOUT_FOLDED;
    if (c->whom == DT_LAYOUT_FOR_EACH)
        return DT_LAYOUT_RAW;
    if (c->collects)
        return to == c->home ? DT_LAYOUT_RAW : 0;
    return to == c->home ? DT_LAYOUT_RAW | DT_LAYOUT_FOLDED : DT_LAYOUT_RAW;
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
