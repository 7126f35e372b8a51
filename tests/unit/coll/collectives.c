/* All-reduce, broadcast and barrier on one host and on several, against reference results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/dtrun.h"
#include "runtime/dtrun_tune.h"
#include "runtime/kernels/reduce.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/reference.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

enum { BIG = 1024 * 1024 + 3 };

static int all_reduces(int rank, void *arg)
{
    static const size_t counts[] = { 0,    1,    2,    3,     7,     63,    64,    65,    1023,
                                     1025, 4096, 8191, 16383, 16385, 65535, 65537, 140001 };
    const char *hosts = arg;
    size_t few = SANITIZED ? 60 : 1025;

    NEED(dt_rank() == -1);
    NEED(dt_init() == DT_OK);
    NEED(dt_rank() == rank);
    for (dt_dtype_t t = DT_I8; t <= DT_F64; t++) {
        for (dt_op_t o = DT_SUM; o <= DT_BXOR; o++) {
            for (size_t c = 0; c < sizeof counts / sizeof *counts && dt_op_applies(o, t); c++) {
                /* Longer counts are tried with fewer types and operations, but each with
                 * several. */
                if ((counts[c] > few && (3 * c + t + o) % 5) || (counts[c] > 5000 && (c + t) % 3))
                    continue;
                if (SANITIZED && counts[c] > few && (c + 2 * t + 5 * o) % 3)
                    continue;
                NEED(reference_try(hosts, counts[c], t, o, (c * 3 + o) % 5) == 0);
            }
        }
    }
    NEED(reference_try(hosts, dt_size() > 4 ? BIG / 4 : BIG, DT_F32, DT_AVG, 1) == 0);
    NEED(dt_finalize() == DT_OK);
    NEED(dt_rank() == rank);
    NEED(dt_barrier(DT_WORLD) == DT_ERR_STATE);
    return 0;
}

static void run_all(const char *hosts, int (*body)(int, void *))
{
    struct testjob_plan plan = { .hosts = hosts, .body = body, .arg = (void *)(uintptr_t)hosts };
    struct testjob_result result;

    assert_int_equal(testjob_run(&plan, &result), 0);
    assert_string_equal(result.log, "");
    for (int i = 0; i < result.n; i++) {
        assert_int_equal(result.ranks[i].status, 0);
        assert_true(result.ranks[i].linked && result.ranks[i].finalized);
        assert_false(result.ranks[i].peer_lost);
    }
}

/* Without the ring, only the order of hosts and of their ranks counts. */
static void all_reduce_combines_in_rank_order(void **state)
{
    static const char *const placements[] = { "1", "2",   "3",   "4",     "5",     "7",
                                              "8", "1 1", "3 2", "3 1 2", "1 1 1", "@0210" };

    (void)state;
    reference_inputs(false);
    setenv("DTRUN_DETERMINISTIC", "1", 1);
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        run_all(placements[i], all_reduces);
}

static int unset_order(void **state)
{
    (void)state;
    return unsetenv("DTRUN_DETERMINISTIC");
}

static void all_reduce_spans_uneven_hosts(void **state)
{
    static const char *const placements[] = { "3 1 2",   "1 1 1", "2 1 1 1", "1 1 1 1 1",
                                              "@012020", "@110",  "1 7" };

    (void)state;
    reference_inputs(true);
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        run_all(placements[i], all_reduces);
}

/* Large data travels over several connections, chunk by chunk. */
static void all_reduce_spans_streams(void **state)
{
    (void)state;
    reference_inputs(true);
    testjob_streams(2);
    run_all("1 1", all_reduces);
    testjob_streams(3);
    run_all("1 1 1", all_reduces);
    run_all("2 2", all_reduces);
}

static int unset_streams(void **state)
{
    (void)state;
    testjob_streams(0);
    return 0;
}

/* There are so many hosts that not all are connected to each other. */
static int few_reductions(int rank, void *arg)
{
    static const size_t counts[] = { 0, 1, 100, 4096, 5000, 70001 };

    (void)rank;
    NEED(dt_init() == DT_OK);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        NEED(reference_try(arg, counts[c], DT_F32, DT_AVG, 0) == 0);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void all_reduce_spans_many_hosts(void **state)
{
    static const char hosts[] = "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2";

    (void)state;
    reference_inputs(true);
    run_all(hosts, few_reductions);
    reference_inputs(false);
    setenv("DTRUN_DETERMINISTIC", "1", 1);
    run_all(hosts, few_reductions);
}

/* 1 + 1 and 2048 (f16) or 256 (bf16), to which a single 1 adds nothing: rounding on the way would
 * lose it. */
static int sums_of_halves(int rank, void *arg)
{
    enum { COUNT = 50000 };
    static const struct {
        dt_dtype_t dtype;
        uint16_t one, large, sum;
    } types[] = { { DT_F16, 0x3c00, 0x6800, 0x6801 }, { DT_BF16, 0x3f80, 0x4380, 0x4381 } };
    uint16_t v[COUNT];

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_tune(DT_WORLD, "net_exchange = 1\nnet_direct = 1\n") == DT_OK);
    for (size_t t = 0; t < 2; t++) {
        for (int large = 0; large < dt_size(); large++) {
            for (size_t i = 0; i < COUNT; i++)
                v[i] = rank == large ? types[t].large : types[t].one;
            NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, v, COUNT, types[t].dtype, DT_SUM) == DT_OK);
            for (size_t i = 0; i < COUNT; i++)
                NEED(v[i] == types[t].sum);
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void sums_of_halves_are_rounded_once_for_all_hosts(void **state)
{
    (void)state;
    run_all("1 1 1", sums_of_halves);
}

static bool all_are(const uint16_t *v, size_t n, uint16_t what)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i] != what)
            return false;
    }
    return true;
}

/* The sum of any two of the largest f16 numbers is infinite, but their average is not. */
static int averages_of_the_largest(int rank, void *arg)
{
    enum { COUNT = 70000, LARGEST = 0x7bff };
    static uint16_t in[COUNT], out[COUNT];
    static const size_t counts[] = { 8, 800, COUNT };
    size_t n;

    (void)arg;
    NEED(dt_init() == DT_OK);
    n = (size_t)dt_size();
    for (int lanes = 0; lanes < 2; lanes++) {
        NEED(dt_comm_tune(DT_WORLD, lanes ? "net_leader = 0" : "net_leader = 1G") == DT_OK);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            size_t count = counts[c], block = count / n;

            for (size_t i = 0; i < COUNT; i++)
                in[i] = LARGEST;
            NEED(dt_all_reduce(DT_WORLD, in, out, count, DT_F16, DT_AVG) == DT_OK);
            NEED(all_are(out, count, LARGEST));
            NEED(dt_reduce(DT_WORLD, in, out, count, DT_F16, DT_AVG, 1) == DT_OK);
            NEED(rank != 1 || all_are(out, count, LARGEST));
            NEED(dt_reduce_scatter(DT_WORLD, in, out, block, DT_F16, DT_AVG) == DT_OK);
            NEED(all_are(out, block, LARGEST));
            NEED(all_are(in, COUNT, LARGEST));
            NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, in, count, DT_F16, DT_AVG) == DT_OK);
            NEED(all_are(in, count, LARGEST));
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void averages_are_in_range_wherever_ranks_are(void **state)
{
    static const char *const hosts[] = { "3", "1 1 1", "2 2", "2 1", "3 1 2", "1 7" };

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        run_all(hosts[i], averages_of_the_largest);
}

static int broadcasts(int rank, void *arg)
{
    static const size_t counts[] = { 0, 1, 3, 1000, 70001, 300003 };

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int root = 0; root < dt_size(); root++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            size_t bytes = counts[c] * 8;
            uint8_t *buf = malloc(bytes + REFERENCE_CANARY), *want = malloc(bytes + 1);

            memset(buf, 0xa5, bytes + REFERENCE_CANARY);
            reference_fill(want, root, counts[c], DT_F64, DT_SUM);
            if (rank == root)
                memcpy(buf, want, bytes);
            NEED(dt_broadcast(DT_WORLD, buf, counts[c], DT_F64, root) == DT_OK);
            NEED(memcmp(buf, want, bytes) == 0);
            NEED(reference_canaries(buf + bytes));
            free(buf);
            free(want);
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void broadcast_reaches_all_ranks_from_every_root(void **state)
{
    (void)state;
    run_all("1", broadcasts);
    run_all("4", broadcasts);
    run_all("1 1", broadcasts);
    run_all("3 1 2", broadcasts);
    run_all("@012020", broadcasts);
    run_all("@2100", broadcasts);
    run_all("1 7", broadcasts);
}

/* No rank may leave a barrier before the last one has joined it. */
static _Atomic int *arrivals;

static int barriers(int rank, void *arg)
{
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 200; i++) {
        if (i % 50 == rank % 50)
            usleep(3000);
        arrivals[i]++;
        NEED(dt_barrier(DT_WORLD) == DT_OK);
        NEED(arrivals[i] == dt_size());
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void barrier_waits_for_all(void **state)
{
    static const char *const placements[] = { "1", "2", "8", "1 1", "3 1 2", "1 7", "@012020" };

    (void)state;
    arrivals = testjob_shared(4096);
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++) {
        memset((void *)arrivals, 0, 4096);
        run_all(placements[i], barriers);
    }
}

/* ---- the same bytes ---- */

static uint64_t digest_of(uint64_t digest, const uint8_t *p, size_t n)
{
    for (uint64_t word; n > 0; p += sizeof word, n -= n < sizeof word ? n : sizeof word) {
        word = 0;
        memcpy(&word, p, n < sizeof word ? n : sizeof word);
        digest = reference_mix(digest ^ word);
    }
    return digest;
}

static void dawdle(unsigned *seed, unsigned one_in)
{
    if ((unsigned)rand_r(seed) % one_in == 0)
        usleep((unsigned)rand_r(seed) % 2000);
}

/* Calls of all kinds in mixed order and with random delays, by ranks that choose their instruction
 * sets themselves. The results must not depend on any of this. */
static struct {
    uint64_t digests[TESTJOB_RANKS];
    char sets[TESTJOB_RANKS][16]; /* that each rank uses; "": the best */
} * mixed;

static int mixtures(int rank, void *arg)
{
    static const dt_dtype_t types[] = { DT_F32, DT_F16, DT_BF16, DT_F64 };
    static uint8_t buf[100000 * sizeof(double)];
    uint64_t digest = 1;
    unsigned seed = (unsigned)testjob_now_us() + (unsigned)rank * 7919;

    (void)arg;
    setenv("DTRUN_ISA", mixed->sets[rank], 1);
    NEED(dt_init() == DT_OK);
    NEED(!*mixed->sets[rank] || strcmp(dt_reduce_isa(), mixed->sets[rank]) == 0);
    for (unsigned i = 0; i < (SANITIZED ? 100 : 300); i++) {
        uint64_t r = reference_mix(i + 1);
        size_t count = r % 5 == 0 ? r % 100000 : r % 700;
        dt_dtype_t t = types[(r >> 40) % 4];

        dawdle(&seed, 20);
        reference_fill_from(i * 97, buf, rank, count, t, DT_SUM);
        if (r % 3 == 0)
            NEED(dt_broadcast(DT_WORLD, buf, count, t, (int)(r % (unsigned)dt_size())) == DT_OK);
        else if (r % 7 == 0)
            NEED(dt_barrier(DT_WORLD) == DT_OK);
        else
            NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, buf, count, t, DT_AVG) == DT_OK);
        if (r % 3 == 0 || r % 7 != 0)
            digest = digest_of(digest, buf, count * dt_dtype_size(t));
    }
    mixed->digests[rank] = digest;
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* First every rank uses its best set, then all use one, then each another. */
static void results_are_the_same_on_all_ranks_and_every_time(void **state)
{
    static const char *const placements[] = { "4", "3 1 2", "@012020" };
    char names[64], sets[8][16] = { "" }, *rest, *name;
    int n = 1, home[TESTJOB_RANKS];

    (void)state;
    reference_inputs(false);
    mixed = testjob_shared(sizeof *mixed);
    dt_reduce_choices(names, sizeof names);
    for (name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        snprintf(sets[n++], sizeof *sets, "%s", name);
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++) {
        uint64_t first = 0;

        for (int set = 0; set <= n; set++) {
            memset(mixed, 0, sizeof *mixed);
            for (int rank = 0; rank < TESTJOB_RANKS; rank++)
                memcpy(mixed->sets[rank], sets[set < n ? set : rank % n], sizeof *sets);
            run_all(placements[i], mixtures);
            first = set ? first : mixed->digests[0];
            assert_true(first != 0);
            for (int k = 0; k < testjob_place(placements[i], home); k++)
                assert_true(mixed->digests[k] == first);
        }
    }
}

/* Makes the same call repeatedly, with other ranks late each time. Then all data at once, and in
 * pieces. */
static int repeats(int rank, void *arg)
{
    static const size_t counts[] = { 5, 3000, 70001 }, pieces[] = { 1, 63, 3000, 65537, 1400 };
    static float in[70001], out[70001], first[70001];
    unsigned seed = (unsigned)testjob_now_us() + (unsigned)rank * 7919;

    (void)arg;
    NEED(dt_init() == DT_OK);
    reference_fill(in, rank, 70001, DT_F32, DT_SUM);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        NEED(dt_all_reduce(DT_WORLD, in, first, counts[c], DT_F32, DT_SUM) == DT_OK);
        for (int again = 0; again < (SANITIZED ? 30 : 100); again++) {
            dawdle(&seed, 10);
            memset(out, 0xa5, counts[c] * sizeof *out);
            NEED(dt_all_reduce(DT_WORLD, in, out, counts[c], DT_F32, DT_SUM) == DT_OK);
            NEED(memcmp(out, first, counts[c] * sizeof *out) == 0);
        }
    }
    for (size_t k = 0, at = 0; k < sizeof pieces / sizeof *pieces; at += pieces[k++])
        NEED(dt_all_reduce(DT_WORLD, in + at, out + at, pieces[k], DT_F32, DT_SUM) == DT_OK);
    NEED(memcmp(out, first, sizeof out) == 0);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void delays_and_pieces_change_no_byte(void **state)
{
    (void)state;
    reference_inputs(false);
    run_all("4", repeats);
    run_all("3 1 2", repeats);
}

/* ---- wrong arguments ---- */

static int argument_errors(int rank, void *arg)
{
    float a[8] = { 0 };

    (void)arg;
    NEED(dt_all_reduce(DT_WORLD, a, a, 1, DT_F32, DT_SUM) == DT_ERR_STATE);
    NEED(strstr(dt_last_error(), "before dt_init"));
    NEED(dt_finalize() == DT_ERR_STATE);
    NEED(dt_init() == DT_OK);
    NEED(dt_init() == DT_ERR_STATE);
    NEED(dt_all_reduce(DT_WORLD, NULL, a, 1, DT_F32, DT_SUM) == DT_ERR_ARG);
    NEED(dt_all_reduce(DT_WORLD, a, NULL, 1, DT_F32, DT_SUM) == DT_ERR_ARG);
    NEED(dt_all_reduce(DT_WORLD, a, a + 1, 4, DT_F32, DT_SUM) == DT_ERR_ARG);
    NEED(dt_all_reduce(DT_WORLD, a, a + 4, 4, (dt_dtype_t)99, DT_SUM) == DT_ERR_ARG);
    NEED(dt_all_reduce(DT_WORLD, a, a + 4, 4, DT_F32, DT_BAND) == DT_ERR_ARG);
    NEED(strstr(dt_last_error(), "band works on the bits of integers, not on f32") != NULL);
    NEED(dt_all_reduce(DT_WORLD, a, a + 4, 4, DT_F32, (dt_op_t)5) == DT_ERR_ARG);
    NEED(dt_all_reduce(DT_WORLD, a, a + 4, SIZE_MAX / 2, DT_F32, DT_SUM) == DT_ERR_ARG);
    NEED(dt_all_reduce((dt_comm_t *)a, a, a + 4, 4, DT_F32, DT_SUM) == DT_ERR_ARG);
    NEED(dt_broadcast(DT_WORLD, a, 1, DT_F32, -1) == DT_ERR_ARG);
    NEED(dt_broadcast(DT_WORLD, a, 1, DT_F32, dt_size()) == DT_ERR_ARG);
    NEED(dt_barrier((dt_comm_t *)a) == DT_ERR_ARG);
    NEED(dt_all_reduce(DT_WORLD, NULL, NULL, 0, DT_F32, DT_SUM) == DT_OK);
    a[0] = (float)rank;
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, a, 1, DT_F32, DT_MAX) == DT_OK);
    NEED(a[0] == (float)(dt_size() - 1));
    NEED(dt_finalize() == DT_OK);
    NEED(dt_finalize() == DT_ERR_STATE);
    return 0;
}

static void wrong_arguments_leave_the_job_usable(void **state)
{
    (void)state;
    run_all("1", argument_errors);
    run_all("2 1", argument_errors);
}

/* The CUDA driver and the backend are fakes, because the test is about the path to them. */
static int by_hand(int rank, void *arg)
{
    float x[3] = { 2, 4, 6 }, y[3] = { 0 };

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_rank() == 0 && dt_size() == 1 && dt_local_rank() == 0 && dt_local_size() == 1);
    NEED(dt_generation() == 0);
    dt_step(7);
    NEED(dt_all_reduce(DT_WORLD, x, y, 3, DT_F32, DT_AVG) == DT_OK);
    NEED(memcmp(x, y, sizeof x) == 0);
    NEED(dt_broadcast(DT_WORLD, x, 3, DT_F32, 0) == DT_OK);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_program_started_by_hand_is_a_job_of_one(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(by_hand(0, NULL));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A signalling NaN, negative and with a payload, and the NaN that results. */
static const struct {
    dt_dtype_t dtype;
    uint64_t given;
    uint64_t expected;
} nans[] = {
    { DT_F16, 0xfd01, 0x7e00 },
    { DT_BF16, 0xff81, 0x7fc0 },
    { DT_F32, 0xff800001, 0x7fc00000 },
    { DT_F64, 0xfff0000000000001, 0x7ff8000000000000 },
};

enum { NANS = 3000, NANS_BYTES = NANS * sizeof(uint64_t) };

static void fill(uint8_t *to, uint64_t bits, size_t size, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * size, &bits, size); /* little-endian */
}

static int fold_nans(dt_dtype_t t, uint64_t given, uint64_t expected, size_t n, dt_op_t op)
{
    static uint8_t in[2 * NANS_BYTES], out[2 * NANS_BYTES], whole[2 * NANS_BYTES];
    size_t size = t == DT_F64 ? 8 : t == DT_F32 ? 4 : 2, all = n * (size_t)dt_size();

    fill(in, given, size, all);
    fill(out, given, size, all);
    fill(whole, expected, size, all);
    NEED(dt_all_reduce(DT_WORLD, in, out, n, t, op) == DT_OK);
    NEED(memcmp(out, whole, n * size) == 0);
    fill(out, given, size, n);
    NEED(dt_reduce(DT_WORLD, in, out, n, t, op, 0) == DT_OK);
    NEED(dt_rank() != 0 || memcmp(out, whole, n * size) == 0);
    fill(out, given, size, n);
    NEED(dt_reduce_scatter(DT_WORLD, in, out, n, t, op) == DT_OK);
    NEED(memcmp(out, whole, n * size) == 0);
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, in, n, t, op) == DT_OK);
    NEED(memcmp(in, whole, n * size) == 0);
    return 0;
}

static int nan_results(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
        for (dt_op_t op = DT_SUM; op <= DT_AVG; op++) {
            NEED(fold_nans(nans[i].dtype, nans[i].given, nans[i].expected, 1, op) == 0);
            NEED(fold_nans(nans[i].dtype, nans[i].given, nans[i].expected, NANS, op) == 0);
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void the_resulting_nan_does_not_depend_on_the_number_of_ranks(void **state)
{
    (void)state;
    run_all("1", nan_results);
    run_all("2", nan_results);
    run_all("1 1", nan_results);
}

static int setup(void **state)
{
    (void)state;
    reference_inputs(false);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("4", a_program_started_by_hand_is_a_job_of_one),
        CHECKS_TEARDOWN("1, 2, 3, 6, 7, 10, 11, 19", all_reduce_combines_in_rank_order,
                        unset_order),
        CHECKS("1, 20, 21", all_reduce_spans_uneven_hosts),
        cmocka_unit_test_teardown(all_reduce_spans_streams, unset_streams),
        cmocka_unit_test_teardown(all_reduce_spans_many_hosts, unset_order),
        cmocka_unit_test(the_resulting_nan_does_not_depend_on_the_number_of_ranks),
        CHECKS("18", broadcast_reaches_all_ranks_from_every_root),
        CHECKS("13, 14", sums_of_halves_are_rounded_once_for_all_hosts),
        CHECKS("13, 16", averages_are_in_range_wherever_ranks_are),
        cmocka_unit_test(barrier_waits_for_all),
        CHECKS("19", results_are_the_same_on_all_ranks_and_every_time),
        CHECKS("19", delays_and_pieces_change_no_byte),
        CHECKS("8, 9, 18", wrong_arguments_leave_the_job_usable),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
