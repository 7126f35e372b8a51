/* Calls of slightly more than 2^32 bytes: if the high bits were dropped, only few bytes would be
 * left. Buffers are windows in which a little memory appears repeatedly. Only the bytes around
 * 2^31, 2^32 and the end have pages of their own, so that missing or wrong writes there show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/api/context.h"
#include "runtime/kernels/dtype.h"
#include "runtime/wire/page.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { ZONES = 2 };

#define ZONE   (4 * dt_page_bytes())
#define PERIOD (257 * dt_page_bytes())
#define TWO_31 ((size_t)1 << 31)
#define TWO_32 ((size_t)1 << 32)
#define HUGE   (TWO_32 + 40)

struct window {
    uint8_t *at;
    size_t bytes;
    size_t zones[ZONES]; /* where pages of their own begin */
};

static bool map(uint8_t *at, size_t n, int fd, size_t from)
{
    return mmap(at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
                (off_t)from) == at;
}

static bool open_window(struct window *w, size_t bytes)
{
    size_t room = (bytes / PERIOD + 1) * PERIOD;
    int fd = memfd_create("window", MFD_CLOEXEC);
    bool open = fd >= 0 && ftruncate(fd, PERIOD + ZONES * ZONE) == 0;

    *w = (struct window){ .bytes = bytes };
    w->zones[0] = TWO_31 - ZONE / 2;
    w->zones[1] = TWO_32 - ZONE / 2;
    w->at = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    open = open && w->at != MAP_FAILED;
    for (size_t at = 0; open && at < room; at += PERIOD)
        open = map(w->at + at, PERIOD, fd, 0);
    for (size_t z = 0; open && z < ZONES; z++)
        open = map(w->at + w->zones[z], ZONE, fd, PERIOD + z * ZONE);
    close(fd);
    return open;
}

/* Piece k of the bytes with pages of their own, each once. */
struct piece {
    size_t at;
    size_t end;
};

static struct piece piece(const struct window *w, int k)
{
    size_t at = k ? w->zones[k - 1] : 0, n = k ? ZONE : PERIOD;

    return (struct piece){ at, w->bytes - at < n ? w->bytes : at + n };
}

static uint8_t value(int rank, size_t i)
{
    size_t phase = i % PERIOD;

    return (uint8_t)(phase * 7 + (phase >> 8) * 13 + (size_t)rank * 101);
}

static void fill(const struct window *w, int rank)
{
    for (int k = 0; k <= ZONES; k++) {
        struct piece p = piece(w, k);

        for (size_t i = p.at; i < p.end; i++)
            w->at[i] = value(rank, i);
    }
}

static void clear(const struct window *w)
{
    for (int k = 0; k <= ZONES; k++) {
        struct piece p = piece(w, k);

        memset(w->at + p.at, 0xee, p.end - p.at);
    }
}

/* Whether the piece has the values of a rank, or for -1 those of both combined by BXOR. */
static bool has(const struct window *w, int rank)
{
    for (int k = 0; k <= ZONES; k++) {
        struct piece p = piece(w, k);

        for (size_t i = p.at; i < p.end; i++) {
            uint8_t want = rank < 0 ? value(0, i) ^ value(1, i) : value(rank, i);

            if (w->at[i] != want)
                return false;
        }
    }
    return true;
}

/* Whether the newest call used this algorithm within the host. For few bytes that would be slow,
 * but right. */
static bool used(const char *algorithm)
{
    struct dt_comm *c;
    bool same;

    if (dt_context_enter("test", DT_WORLD, &c) != DT_OK)
        return false;
    same = strcmp(c->shm.algorithm, algorithm) == 0;
    dt_context_leave(c);
    return same;
}

/* Counts beyond 2^32 in shared memory. Between hosts only bytes, where there is one algorithm. */
static int calls(int rank, void *arg)
{
    const size_t rank_1s[] = { 0, HUGE }, for_rank_0[] = { HUGE, 0 }, none[] = { 0, 0 };
    dt_dtype_t dtype = *(dt_dtype_t *)arg;
    struct window in, out;

    NEED(open_window(&in, HUGE) && open_window(&out, HUGE));
    fill(&in, rank);
    clear(&out);
    NEED(dt_init() == DT_OK);
    NEED(dt_all_reduce(DT_WORLD, in.at, out.at, HUGE / dt_dtype_size(dtype), dtype, DT_BXOR) ==
         DT_OK);
    NEED(dt_local_size() == 1 || used("shm-blocks"));
    NEED(has(&in, rank) && has(&out, -1));
    clear(&out);
    NEED(dt_all_to_allv(DT_WORLD, in.at, rank ? for_rank_0 : none, out.at, rank ? none : rank_1s,
                        DT_U8) == DT_OK);
    NEED(has(&out, 1) == (rank == 0));
    if (dt_local_size() == 2) {
        clear(&out);
        NEED(dt_all_gatherv(DT_WORLD, in.at, out.at, rank_1s, DT_U8) == DT_OK);
        NEED(has(&out, 1));
        clear(&out);
        NEED(dt_broadcast(DT_WORLD, rank ? out.at : in.at, HUGE, DT_U8, 0) == DT_OK);
        NEED(has(rank ? &out : &in, 0));
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void bytes_and_counts_need_more_than_32_bits(void **state)
{
    static dt_dtype_t u8 = DT_U8, u64 = DT_U64;

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    print_message("a sanitizer would take minutes to see what it sees in smaller calls\n");
    skip();
#endif
    testjob_must_pass("2", calls, &u8);
    testjob_must_pass("1 1", calls, &u64);
}

int main(void)
{
    const struct CMUnitTest tests[] = { CHECKS("5", bytes_and_counts_need_more_than_32_bits) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
