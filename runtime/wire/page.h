/* Sizes in whole pages. A page of Linux on AArch64 has up to 64 KiB. */
#ifndef DT_WIRE_PAGE_H
#define DT_WIRE_PAGE_H

#include <stddef.h>
#include <unistd.h>

static inline size_t dt_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* bytes is at most SIZE_MAX - dt_page_bytes(). */
static inline size_t dt_page_round_up(size_t bytes)
{
    size_t page = dt_page_bytes();

    return (bytes + page - 1) / page * page;
}

#endif
