/* usage: fetch BYTES
 *
 * A rank that copies GPU memory to the host in two ways: in pieces to pinned memory, as checkpoints
 * do, and in one copy into pinned memory of that size. Prints the speed of the first as a share of
 * the second. It calls internal functions of the library, since every public one that copies also
 * writes a file. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/api/context.h"
#include "runtime/base/clock.h"
#include "runtime/gpu/device/transfer.h"
#include "tests/rank/device.h"

enum { ROUNDS = 15 };

static double us_since(uint64_t ns)
{
    return (double)(dt_clock_ns() - ns) / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double times[ROUNDS])
{
    qsort(times, ROUNDS, sizeof *times, compare);
    return times[ROUNDS / 2];
}

static dt_result_t count_piece(void *arg, void *host, size_t bytes)
{
    (void)host;
    *(size_t *)arg += bytes;
    return DT_OK;
}

static void fetch(const void *device, size_t bytes)
{
    struct dt_comm *c;
    size_t fetched = 0;

    need(dt_context_enter("fetch", DT_WORLD, &c));
    need(dt_gpu_fetch(c, "fetch", device, bytes, count_piece, &fetched));
    dt_context_leave(c);
    if (fetched != bytes)
        exit(6);
}

int main(int argc, char **argv)
{
    size_t bytes = argc > 1 ? (size_t)atol(argv[1]) : 1;
    double pieces[ROUNDS], plain[ROUNDS];
    void *device, *pinned;

    need(dt_init());
    device_use(0);
    device = device_new(bytes);
    DRIVE(cuMemHostAlloc(&pinned, bytes, 0));
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = dt_clock_ns();

        fetch(device, bytes);
        pieces[i] = us_since(start);
        start = dt_clock_ns();
        DRIVE(cuMemcpyDtoH_v2(pinned, address(device), bytes));
        plain[i] = us_since(start);
    }
    printf("= %.0f %% (%.2f GB/s; a plain copy has %.2f)\n", 100 * median(plain) / median(pieces),
           (double)bytes / median(pieces) / 1e3, (double)bytes / median(plain) / 1e3);
    need(dt_finalize());
    return 0;
}
