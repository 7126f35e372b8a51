#include "launcher/place/mpimap.h"

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"

struct triple {
    uint32_t first; /* the first node */
    uint32_t nodes;
    uint32_t ranks; /* on each node */
};

enum { WORDS = sizeof(struct triple) / sizeof(uint32_t) };

/* Counts the consecutive ranks from this one on that run on its node. */
static uint32_t run_at(const uint32_t *node_of, uint32_t np, uint32_t rank)
{
    uint32_t n = 1;

    while (rank + n < np && node_of[rank + n] == node_of[rank])
        n++;
    return n;
}

/* Returns the triple that begins at *rank, and advances *rank beyond its ranks. */
static struct triple next_triple(const uint32_t *node_of, uint32_t np, uint32_t *rank)
{
    struct triple t = { node_of[*rank], 0, run_at(node_of, np, *rank) };

    do {
        *rank += t.ranks;
        t.nodes++;
    } while (*rank < np && node_of[*rank] == t.first + t.nodes &&
             run_at(node_of, np, *rank) == t.ranks);
    return t;
}

/* Returns whether t repeats the first triple; the last triple may be cut short. */
static bool repeats(const struct triple *t, const struct triple *first, bool is_last)
{
    return t->first == first->first && t->ranks == first->ranks &&
           (t->nodes == first->nodes || (is_last && t->nodes < first->nodes));
}

void dt_mpimap_make(struct dt_u32s *map, const uint32_t *node_of, uint32_t np)
{
    struct triple *triples = NULL;
    uint32_t n = 0, cap = 0, rank = 0;
    bool periodic = true;

    while (rank < np) {
        if (n == cap) {
            cap = cap ? 2 * cap : 4;
            triples = dt_xrealloc(triples, cap, sizeof *triples);
        }
        triples[n++] = next_triple(node_of, np, &rank);
        periodic = periodic && repeats(&triples[n - 1], &triples[0], rank == np);
    }
    *map = (struct dt_u32s){ (uint32_t *)triples, (periodic && n ? 1 : n) * WORDS };
}

char *dt_mpimap_text(const struct dt_u32s *map)
{
    struct dt_strbuf b = { 0 };
    char *text;

    dt_strbuf_puts(&b, "(vector");
    for (uint32_t i = 0; i + WORDS <= map->n && b.len < DT_MPIMAP_TEXT_MAX; i += WORDS)
        dt_strbuf_printf(&b, ",(%u,%u,%u)", map->v[i], map->v[i + 1], map->v[i + 2]);
    dt_strbuf_puts(&b, ")");
    text = dt_xstrdup(b.len < DT_MPIMAP_TEXT_MAX ? dt_strbuf_text(&b) : "");
    dt_strbuf_free(&b);
    return text;
}

/* Returns the first rank after those of the triple, or 0 if the triple is invalid. */
static uint32_t expand_triple(const uint32_t *words, uint32_t nodes, uint32_t *node_of,
                              uint32_t rank, uint32_t np)
{
    struct triple t = { words[0], words[1], words[2] };

    if (t.nodes == 0 || t.ranks == 0 || t.first >= nodes || t.nodes > nodes - t.first)
        return 0;
    for (uint32_t node = t.first; node < t.first + t.nodes; node++) {
        for (uint32_t i = 0; i < t.ranks && rank < np; i++)
            node_of[rank++] = node;
    }
    return rank;
}

bool dt_mpimap_expand(const struct dt_u32s *map, uint32_t nodes, uint32_t *node_of, uint32_t np)
{
    uint32_t rank = 0;

    if (map->n == 0 || map->n % WORDS)
        return false;
    for (uint32_t i = 0; rank < np; i = (i + WORDS) % map->n) {
        rank = expand_triple(map->v + i, nodes, node_of, rank, np);
        if (rank == 0)
            return false;
    }
    return true;
}
