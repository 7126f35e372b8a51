#include "launcher/job/reach.h"

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

    /* While callers are gone through, "chosen" holds the bits that are left. */
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
