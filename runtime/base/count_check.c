#include "runtime/base/count_check.h"

/* The finalizer of splitmix64. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

uint64_t dt_count_check_one(uint32_t me, uint32_t peer, uint64_t count, bool gives)
{
    uint64_t giver = gives ? me : peer, taker = gives ? peer : me;
    uint64_t mark = mix(mix((giver << 32 | taker) + 0x9e3779b97f4a7c15U) + count);

    return gives ? mark : -mark;
}

uint64_t dt_count_check_blocks(uint32_t me, uint32_t n, const struct dt_blocks *blocks, bool gives)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (i != me)
            sum +=
                dt_count_check_one(me, i, blocks->counts ? blocks->counts[i] : blocks->each, gives);
    }
    return sum;
}
