#include "launcher/agent/ranklink/ratelimit.h"

bool dt_ratelimit_take(struct dt_ratelimit *b, uint64_t now_ns)
{
    const uint64_t refill_ns = DT_RATELIMIT_REFILL_S * UINT64_C(1000000000);
    uint64_t refilled = (now_ns - b->since_ns) / refill_ns;

    if (refilled >= b->used)
        *b = (struct dt_ratelimit){ .since_ns = now_ns };
    else
        *b = (struct dt_ratelimit){ b->used - (uint32_t)refilled,
                                    b->since_ns + refilled * refill_ns };
    if (b->used == DT_RATELIMIT_BURST)
        return false;
    b->used++;
    return true;
}
