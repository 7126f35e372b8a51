#include "launcher/check/rounds.h"

size_t dt_rounds_count(size_t n)
{
    return n < 2 ? 0 : 2 + n % 2;
}

size_t dt_rounds_of(size_t i, size_t n)
{
    return i + 1 == n && n % 2 ? 2 : i % 2;
}
