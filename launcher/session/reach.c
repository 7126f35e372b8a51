#include "launcher/session/reach.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

uint32_t dt_reach_targets(uint32_t node, uint32_t nodes, uint32_t targets[DT_REACH_TARGETS])
{
    const uint32_t wanted[DT_REACH_TARGETS] = { (node + 1) % nodes, (node + nodes - 1) % nodes, 0 };
    uint32_t n = 0;

    for (uint32_t i = 0; i < DT_REACH_TARGETS; i++) {
        bool seen = wanted[i] == node;

        for (uint32_t k = 0; k < n; k++)
            seen |= targets[k] == wanted[i];
        if (!seen)
            targets[n++] = wanted[i];
    }
    return n;
}

size_t dt_reach_rounds(size_t n)
{
    return n < 2 ? 0 : 2 + n % 2;
}

size_t dt_reach_round_of(size_t i, size_t n)
{
    return i + 1 == n && n % 2 ? 2 : i % 2;
}

uint32_t dt_reach_mask(const struct dt_reach_node *nodes, uint32_t caller, uint32_t target)
{
    const struct dt_msg_reached *v = nodes[caller].results.v;
    uint32_t mask = 0;

    for (uint32_t i = 0; i < nodes[caller].results.n; i++)
        if (v[i].node == target && v[i].state == DT_REACH_OK &&
            v[i].addr < nodes[target].candidates.n)
            mask |= UINT32_C(1) << v[i].addr;
    return mask;
}

enum dt_reach_outcome dt_reach_choose(struct dt_reach_node *nodes, uint32_t n)
{
    enum dt_reach_outcome outcome = DT_REACH_CHOSEN;
    uint32_t targets[DT_REACH_TARGETS];

    /* During the loop over callers, "chosen" holds the bits of the addresses that all of them
     * reach. */
    for (uint32_t i = 0; i < n; i++)
        nodes[i].chosen = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = dt_reach_targets(i, n, targets); k-- > 0;) {
            uint32_t mask = dt_reach_mask(nodes, i, targets[k]);

            nodes[targets[k]].chosen &= mask;
            if (mask == 0)
                outcome = DT_REACH_CUT;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (nodes[i].chosen == 0 && outcome == DT_REACH_CHOSEN)
            outcome = DT_REACH_DIVIDED;
        nodes[i].chosen =
            nodes[i].chosen ? (uint32_t)__builtin_ctz(nodes[i].chosen) : (uint32_t)DT_REACH_NOWHERE;
    }
    return outcome;
}

/* Counts, for each node, its broken connections to and from nodes that are not left out. */
static void count_broken(const struct dt_reach_node *nodes, uint32_t n, const bool *out,
                         uint32_t *broken)
{
    uint32_t targets[DT_REACH_TARGETS];

    memset(broken, 0, n * sizeof *broken);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = dt_reach_targets(i, n, targets); k-- > 0;) {
            if (out[i] || out[targets[k]] || dt_reach_mask(nodes, i, targets[k]))
                continue;
            broken[i]++;
            broken[targets[k]]++;
        }
    }
}

void dt_reach_leave_out(const struct dt_reach_node *nodes, uint32_t n, bool *out)
{
    uint32_t *broken = dt_xcalloc(n, sizeof *broken);
    uint32_t left_out = 0, worst;

    do {
        count_broken(nodes, n, out, broken);
        worst = 0;
        for (uint32_t i = 1; i < n; i++)
            worst = broken[i] >= broken[worst] ? i : worst;
        out[worst] |= broken[worst] > 0;
        left_out += broken[worst] > 0;
    } while (broken[worst] > 0);
    /* No connection is broken, but the callers of some node do not agree on an address. Without
     * that node the others may agree. */
    for (uint32_t i = n; i-- > 0 && left_out == 0;) {
        out[i] = nodes[i].chosen == DT_REACH_NOWHERE;
        left_out += out[i];
    }
    free(broken);
}
