/* Which algorithm an all-reduce uses, by its size, type and format and by the hosts, with default
 * thresholds: as dtrun-tuning(5) says. Every algorithm gives the right result, so no other test
 * would notice a wrong choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "runtime/dtrun.h"
#include "tests/unit/algorithm.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/testjob.h"

enum { KIB = 1024, MIB = 1024 * KIB, MOST = 8 * MIB };

#define SIXTEEN "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"

struct route {
    size_t bytes;
    const char *algorithm; /* NULL: end of the list */
    dt_dtype_t dtype;
    dt_wire_t wire;
};

struct placement {
    const char *hosts;
    bool within; /* within a host; otherwise the part there does not matter */
    bool deterministic;
    struct route routes[8];
};

static pid_t program;

static dt_result_t reduce(const struct route *r, void *in, void *out)
{
    dt_all_reduce_options_t o = DT_ALL_REDUCE_OPTIONS_INIT;
    size_t size = r->dtype == DT_F32 ? sizeof(float) : sizeof(uint16_t);

    o.wire = r->wire;
    return dt_all_reduce_with(DT_WORLD, in, out, r->bytes / size, r->dtype, DT_SUM, &o);
}

static int take_routes(int rank, void *arg)
{
    const struct placement *p = arg;
    void *in = calloc(1, MOST), *out = calloc(1, MOST);

    setenv("DTRUN_TUNING", "", 1); /* so that this machine's own thresholds do not matter */
    setenv("DTRUN_CMA", "0", 1);
    setenv("DTRUN_DETERMINISTIC", p->deterministic ? "1" : "0", 1);
    NEED(in && out && dt_init() == DT_OK);
    for (const struct route *r = p->routes; r->algorithm; r++) {
        NEED(reduce(r, in, out) == DT_OK);
        if (dt_local_rank() >
            0) /* others need not know how the first rank of their host communicates */
            continue;
        if (!(p->within ? used_algorithm : used_between_hosts)(program, "all-reduce",
                                                               r->algorithm)) {
            fprintf(stderr, "rank %d of \"%s\": %zu bytes did not go by %s\n", rank, p->hosts,
                    r->bytes, r->algorithm);
            return 1;
        }
    }
    free(in);
    free(out);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void take(const struct placement *places, size_t n)
{
    for (size_t i = 0; i < n; i++)
        testjob_must_pass(places[i].hosts, take_routes, &places[i]);
}

static void the_algorithm_within_a_host_is_as_documented(void **state)
{
    static const struct placement places[] = {
        { .hosts = "2",
          .within = true,
          .routes = { { 4, "shm", DT_F32, 0 }, { 64 * KIB, "shm-blocks", DT_F32, 0 } } },
        { .hosts = "4",
          .within = true,
          .routes = { { 4, "shm", DT_F32, 0 }, { 64 * KIB, "shm-blocks", DT_F32, 0 } } },
    };

    (void)state;
    take(places, sizeof places / sizeof *places);
}

/* On either side of each threshold. */
static void the_algorithm_between_hosts_of_one_rank_is_as_documented(void **state)
{
    static const struct placement places[] = {
        { .hosts = "1 1",
          .routes = { { 4, "tcp-exchange", DT_F32, 0 },
                      { MIB, "tcp-exchange", DT_F32, 0 },
                      { MIB + 4, "tcp-direct", DT_F32, 0 },
                      { MOST, "tcp-direct", DT_F32, 0 } } },
        { .hosts = "1 1 1",
          .routes = { { 32 * KIB, "tcp-exchange", DT_F32, 0 },
                      { 32 * KIB + 4, "tcp-direct", DT_F32, 0 },
                      { 4 * MIB, "tcp-direct", DT_F32, 0 },
                      { 4 * MIB + 4, "tcp-ring", DT_F32, 0 },
                      { 4 * MIB + 4, "tcp-direct", DT_F16, 0 },
                      { 4 * MIB + 4, "tcp-direct", DT_BF16, 0 } } },
        { .hosts = "1 1 1",
          .deterministic = true,
          .routes = { { 4 * MIB + 4, "tcp-direct", DT_F32, 0 } } },
        { .hosts = "1 1 1 1",
          .routes = { { 16 * KIB, "tcp-allgather", DT_F32, 0 },
                      { 16 * KIB + 4, "tcp-direct", DT_F32, 0 },
                      { 4 * MIB + 4, "tcp-ring", DT_F32, 0 } } },
        { .hosts = SIXTEEN,
          .routes = { { 8 * KIB, "tcp-allgather", DT_F32, 0 },
                      { 8 * KIB + 4, "tcp-direct", DT_F32, 0 } } },
        { .hosts = SIXTEEN " 1",
          .routes = { { 8 * KIB, "tcp-allgather", DT_F32, 0 },
                      { 8 * KIB + 4, "tcp-ring", DT_F32, 0 } } },
    };

    (void)state;
    take(places, sizeof places / sizeof *places);
}

static void the_algorithm_between_hosts_of_several_ranks_is_as_documented(void **state)
{
    static const struct placement places[] = {
        { .hosts = "2 2",
          .routes = { { 512 * KIB - 4, "tcp-exchange", DT_F32, 0 },
                      { 512 * KIB, "tcp-multileader", DT_F32, 0 },
                      { 512 * KIB, "tcp-multileader", DT_BF16, 0 } } },
        { .hosts = "2 3 2",
          .routes = { { 4 * MIB - 4, "tcp-direct", DT_F32, 0 },
                      { 4 * MIB, "tcp-multileader", DT_F32, 0 } } },
        { .hosts = "1 7", .routes = { { MOST, "tcp-direct", DT_F32, 0 } } },
    };

    (void)state;
    take(places, sizeof places / sizeof *places);
}

static void the_algorithm_with_a_wire_format_is_as_documented(void **state)
{
    static const struct placement places[] = {
        { .hosts = "1 1",
          .routes = { { 4 * KIB, "tcp-compressed", DT_F32, DT_WIRE_F16 },
                      { 4 * KIB, "tcp-compressed", DT_F32, DT_WIRE_BF16 },
                      { MOST, "tcp-compressed", DT_F32, DT_WIRE_INT8 },
                      { MOST, "tcp-direct", DT_F32, DT_WIRE_EXACT } } },
        { .hosts = "2 2", .routes = { { MOST, "tcp-compressed", DT_F32, DT_WIRE_INT8 } } },
    };

    (void)state;
    take(places, sizeof places / sizeof *places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_algorithm_within_a_host_is_as_documented),
        cmocka_unit_test(the_algorithm_between_hosts_of_one_rank_is_as_documented),
        cmocka_unit_test(the_algorithm_between_hosts_of_several_ranks_is_as_documented),
        cmocka_unit_test(the_algorithm_with_a_wire_format_is_as_documented),
    };

    program = getpid();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
