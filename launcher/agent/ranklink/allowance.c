#include "launcher/agent/ranklink/allowance.h"

bool dt_allowance_take(struct dt_allowance *a, uint64_t now_ns)
{
    const uint64_t every_ns = DT_ALLOWANCE_EVERY_S * UINT64_C(1000000000);
    uint64_t grown = (now_ns - a->since_ns) / every_ns;

    if (grown >= a->used)
        *a = (struct dt_allowance){ .since_ns = now_ns };
    else
        *a = (struct dt_allowance){ a->used - (uint32_t)grown, a->since_ns + grown * every_ns };
    if (a->used == DT_ALLOWANCE_MOST)
        return false;
    a->used++;
    return true;
}
