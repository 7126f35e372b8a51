#include "launcher/place/mpimap.h"

#include <stdbool.h>
#include <stdlib.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"

struct triple {
    uint32_t first; /* node */
    uint32_t nodes;
    uint32_t ranks; /* on each */
};

/* How many ranks from this one on run on its node. */
static uint32_t run_at(const uint32_t *node_of, uint32_t np, uint32_t rank)
{
    uint32_t n = 1;

    while (rank + n < np && node_of[rank + n] == node_of[rank])
        n++;
    return n;
}

/* The triple that begins at *rank, which becomes the first rank behind it. */
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

/* Whether t says again what the first triple says, as far as there are ranks. */
static bool repeats(const struct triple *t, const struct triple *first, bool is_last)
{
    return t->first == first->first && t->ranks == first->ranks &&
           (t->nodes == first->nodes || (is_last && t->nodes < first->nodes));
}

char *dt_mpi_mapping(const uint32_t *node_of, uint32_t np)
{
    struct dt_strbuf all = { 0 };
    uint32_t rank = 0, triples = 0;
    struct triple first = { 0 };
    bool periodic = true;

    while (rank < np && (periodic || all.len < DT_MPI_MAPPING_MAX)) {
        struct triple t = next_triple(node_of, np, &rank);

        if (triples++ == 0)
            first = t;
        periodic &= repeats(&t, &first, rank == np);
        if (all.len < DT_MPI_MAPPING_MAX)
            dt_strbuf_printf(&all, ",(%u,%u,%u)", t.first, t.nodes, t.ranks);
    }
    if (periodic) {
        dt_strbuf_free(&all);
        return dt_xasprintf("(vector,(%u,%u,%u))", first.first, first.nodes, first.ranks);
    }
    char *text = dt_xasprintf("(vector%s)", dt_strbuf_text(&all));
    if (all.len + sizeof "(vector)" > DT_MPI_MAPPING_MAX)
        text[0] = '\0';
    dt_strbuf_free(&all);
    return text;
}
