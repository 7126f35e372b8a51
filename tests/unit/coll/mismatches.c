/* Calls that do not match, on communicators of every kind. Each of its ranks soon learns whose
 * calls they are, and other ranks notice nothing. (tests/unit/faults/failures tests the same on
 * DT_WORLD.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/perf/ops.h"
#include "runtime/base/coll_error.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

#define MANY       "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"
#define SPREAD_TEN "broadcast of 10 f32 from rank 0"

#ifdef __SANITIZE_ADDRESS__
enum { SOON_MS = 3000 }; /* many ranks share few processors, so they take several times as long */
#else
enum { SOON_MS = 1000 };
#endif

enum { LARGE = 200000 };

/* The call that rank 1 of the communicator makes, and the call of the others. */
typedef dt_result_t (*call_f)(dt_comm_t *comm, bool odd, float *in, float *out);

static dt_result_t other_count(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_all_reduce(comm, in, out, odd ? 11 : 10, DT_F32, DT_SUM);
}

static dt_result_t no_count(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_all_reduce(comm, in, out, odd ? 0 : LARGE, DT_F32, DT_SUM);
}

static dt_result_t much_smaller_count(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_all_reduce(comm, in, out, odd ? 1 : LARGE, DT_F32, DT_SUM);
}

static dt_result_t other_count_to_spread(dt_comm_t *comm, bool odd, float *in, float *out)
{
    (void)out;
    return dt_broadcast(comm, in, odd ? 2 : LARGE, DT_F32, 0);
}

static dt_result_t less_to_spread_from_itself(dt_comm_t *comm, bool odd, float *in, float *out)
{
    (void)out;
    return dt_broadcast(comm, in, odd ? 2 : LARGE, DT_F32, 1);
}

/* If the last rank's host has several ranks, another one leads it. */
static dt_result_t less_from_the_last(dt_comm_t *comm, bool odd, float *in, float *out)
{
    (void)out;
    return dt_broadcast(comm, in, odd ? 2 : 10, DT_F32, dt_comm_size(comm) - 1);
}

static dt_result_t other_type_to_spread(dt_comm_t *comm, bool odd, float *in, float *out)
{
    (void)out;
    return dt_broadcast(comm, in, 10, odd ? DT_U32 : DT_F32, 0);
}

static dt_result_t other_count_to_gather(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_all_gather(comm, in, out, odd ? 5 : 4, DT_F32);
}

static dt_result_t other_type(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_all_reduce(comm, in, out, 10, odd ? DT_I32 : DT_F32, DT_SUM);
}

static dt_result_t other_type_of_many(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_reduce(comm, in, out, LARGE, odd ? DT_U32 : DT_I32, DT_SUM, 0);
}

static dt_result_t other_operation(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_all_reduce(comm, in, out, 10, DT_F32, odd ? DT_MAX : DT_SUM);
}

static dt_result_t other_operation_on_many(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_reduce_scatter(comm, in, out, LARGE / TESTJOB_RANKS, DT_F32, odd ? DT_MAX : DT_SUM);
}

static dt_result_t other_count_of_few(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_reduce_scatter(comm, in, out, odd ? 5 : 4, DT_F32, DT_SUM);
}

static dt_result_t other_counts_of_parts(dt_comm_t *comm, bool odd, float *in, float *out)
{
    size_t counts[TESTJOB_RANKS];

    for (int i = 0; i < TESTJOB_RANKS; i++)
        counts[i] = odd && i < 2 ? (size_t)(5 - 2 * i) : 4; /* the same total */
    return dt_reduce_scatterv(comm, in, out, counts, DT_F32, DT_SUM);
}

static dt_result_t other_collective(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return odd ? dt_broadcast(comm, in, 10, DT_F32, 0)
               : dt_all_reduce(comm, in, out, 10, DT_F32, DT_SUM);
}

static dt_result_t spread_among_sums(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return odd ? dt_broadcast(comm, in, LARGE, DT_F32, 0)
               : dt_reduce(comm, in, out, LARGE, DT_F32, DT_SUM, 0);
}

static dt_result_t barrier_among_spreaders(dt_comm_t *comm, bool odd, float *in, float *out)
{
    (void)out;
    return odd ? dt_barrier(comm) : dt_broadcast(comm, in, 10, DT_F32, 0);
}

static dt_result_t barrier_among_many(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return odd ? dt_barrier(comm) : dt_all_reduce(comm, in, out, LARGE, DT_F32, DT_SUM);
}

static dt_result_t parts_of_another_kind(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return odd ? dt_all_to_all(comm, in, out, 100, DT_F32)
               : dt_all_gather(comm, in, out, 100, DT_F32);
}

static dt_result_t other_root(dt_comm_t *comm, bool odd, float *in, float *out)
{
    (void)out;
    return dt_broadcast(comm, in, 10, DT_F32, odd);
}

static dt_result_t other_root_of_many(dt_comm_t *comm, bool odd, float *in, float *out)
{
    (void)out;
    return dt_broadcast(comm, in, LARGE, DT_F32, odd);
}

static dt_result_t other_root_of_sums(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_reduce(comm, in, out, LARGE, DT_F32, DT_SUM, odd);
}

static dt_result_t other_root_to_gather(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_gather(comm, in, out, 10, DT_F32, odd);
}

static dt_result_t other_root_of_uneven_blocks(dt_comm_t *comm, bool odd, float *in, float *out)
{
    static const size_t counts[] = { [0 ... TESTJOB_RANKS - 1] = 3 };

    return dt_gatherv(comm, in, 3, out, counts, DT_F32, odd);
}

static dt_result_t other_root_to_scatter(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_scatter(comm, in, out, 10, DT_F32, odd);
}

static dt_result_t other_root_to_scatter_unevenly(dt_comm_t *comm, bool odd, float *in, float *out)
{
    static const size_t counts[] = { [0 ... TESTJOB_RANKS - 1] = 3 };

    return dt_scatterv(comm, in, counts, out, 3, DT_F32, odd);
}

static const size_t ones[] = { [0 ... TESTJOB_RANKS - 1] = 1 };
static const size_t two_first[] = { 2, [1 ... TESTJOB_RANKS - 1] = 1 };

/* Rank 1 sends rank 0 more than it expects. All other pairs match. */
static dt_result_t too_much_for_one(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_all_to_allv(comm, in, odd ? two_first : ones, out, ones, DT_F32);
}

static dt_result_t too_much_gathered(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_gatherv(comm, in, odd ? 2 : 1, out, ones, DT_F32, 0);
}

static dt_result_t too_little_expected(dt_comm_t *comm, bool odd, float *in, float *out)
{
    static const size_t twos[] = { [0 ... TESTJOB_RANKS - 1] = 2 };

    return dt_scatterv(comm, in, twos, out, odd ? 1 : 2, DT_F32, 0);
}

/* Rank 1 sends itself more than it expects. */
static dt_result_t too_much_for_itself(dt_comm_t *comm, bool odd, float *in, float *out)
{
    static const size_t two_second[] = { 1, 2, [2 ... TESTJOB_RANKS - 1] = 1 };

    return dt_all_to_allv(comm, in, odd ? two_second : ones, out, ones, DT_F32);
}

static dt_result_t other_order(dt_comm_t *comm, bool odd, float *in, float *out)
{
    dt_result_t r = odd ? dt_barrier(comm) : dt_all_reduce(comm, in, out, 10, DT_F32, DT_SUM);

    if (r != DT_OK)
        return r;
    return odd ? dt_all_reduce(comm, in, out, 10, DT_F32, DT_SUM) : dt_barrier(comm);
}

static dt_result_t halves_among_floats(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return dt_all_reduce(comm, in, out, LARGE, odd ? DT_F16 : DT_F32, DT_SUM);
}

static dt_result_t barrier_among_halves(dt_comm_t *comm, bool odd, float *in, float *out)
{
    return odd ? dt_barrier(comm) : dt_all_reduce(comm, in, out, LARGE, DT_F16, DT_SUM);
}

static const struct mismatch {
    const char *name;
    call_f call;
    const char *odd; /* description of rank 1's call (NULL: the others' description, with the counts
                        of a pair), */
    const char *others; /* and of the others' calls */
} mismatches[] = {
    { "other count", other_count, "all-reduce of 11 f32 (sum)", "all-reduce of 10 f32 (sum)" },
    { "no count", no_count, "all-reduce of 0 f32 (sum)", "all-reduce of 200000 f32 (sum)" },
    { "much smaller count", much_smaller_count, "all-reduce of 1 f32 (sum)",
      "all-reduce of 200000 f32 (sum)" },
    { "other count to spread", other_count_to_spread, "broadcast of 2 f32 from rank 0",
      "broadcast of 200000 f32 from rank 0" },
    { "less to spread from itself", less_to_spread_from_itself, "broadcast of 2 f32 from rank 1",
      "broadcast of 200000 f32 from rank 1" },
    { "less from the last", less_from_the_last, "broadcast of 2 f32 from rank ",
      "broadcast of 10 f32 from rank " },
    { "other type to spread", other_type_to_spread, "broadcast of 10 u32 from rank 0", SPREAD_TEN },
    { "other count to gather", other_count_to_gather, "all-gather of 5 f32",
      "all-gather of 4 f32" },
    { "other type", other_type, "all-reduce of 10 i32 (sum)", "all-reduce of 10 f32 (sum)" },
    { "other type of many", other_type_of_many, "reduce of 200000 u32 (sum) to rank 0",
      "reduce of 200000 i32 (sum) to rank 0" },
    { "other operation", other_operation, "all-reduce of 10 f32 (max)",
      "all-reduce of 10 f32 (sum)" },
    { "other operation on many", other_operation_on_many, "reduce-scatter of 10000 f32 (max)",
      "reduce-scatter of 10000 f32 (sum)" },
    { "other count of few parts", other_count_of_few, "reduce-scatter of 5 f32 (sum)",
      "reduce-scatter of 4 f32 (sum)" },
    { "other counts of parts", other_counts_of_parts, "reduce-scatterv of f32 (sum)",
      "reduce-scatterv of f32 (sum)" },
    { "other collective", other_collective, SPREAD_TEN, "all-reduce of 10 f32 (sum)" },
    { "spread among sums", spread_among_sums, "broadcast of 200000 f32 from rank 0",
      "reduce of 200000 f32 (sum) to rank 0" },
    { "barrier among spreaders", barrier_among_spreaders, "barrier", SPREAD_TEN },
    { "barrier among many", barrier_among_many, "barrier", "all-reduce of 200000 f32 (sum)" },
    { "parts of another kind", parts_of_another_kind, "all-to-all of 100 f32",
      "all-gather of 100 f32" },
    { "other root", other_root, "broadcast of 10 f32 from rank 1", SPREAD_TEN },
    { "other root of many", other_root_of_many, "broadcast of 200000 f32 from rank 1",
      "broadcast of 200000 f32 from rank 0" },
    { "other root of sums", other_root_of_sums, "reduce of 200000 f32 (sum) to rank 1",
      "reduce of 200000 f32 (sum) to rank 0" },
    { "other root to gather", other_root_to_gather, "gather of 10 f32 to rank 1",
      "gather of 10 f32 to rank 0" },
    { "other root of uneven blocks", other_root_of_uneven_blocks, "gatherv of f32 to rank 1",
      "gatherv of f32 to rank 0" },
    { "other root to scatter", other_root_to_scatter, "scatter of 10 f32 from rank 1",
      "scatter of 10 f32 from rank 0" },
    { "other root to scatter unevenly", other_root_to_scatter_unevenly,
      "scatterv of f32 from rank 1", "scatterv of f32 from rank 0" },
    { "too much for one", too_much_for_one, NULL, "all-to-allv of f32" },
    { "too much gathered", too_much_gathered, NULL, "gatherv of f32 to rank 0" },
    { "too little expected", too_little_expected, NULL, "scatterv of f32 from rank 0" },
    { "too much for itself", too_much_for_itself, NULL, "all-to-allv of f32" },
    { "other order", other_order, "barrier", "all-reduce of 10 f32 (sum)" },
    { "halves among floats", halves_among_floats, "all-reduce of 200000 f16 (sum)",
      "all-reduce of 200000 f32 (sum)" },
    { "barrier among halves", barrier_among_halves, "barrier", "all-reduce of 200000 f16 (sum)" },
};

/* ---- communicators ---- */

enum kind { COPY, REVERSED, NOT_ALL, LEADERS, KINDS };

static dt_result_t make(enum kind kind, dt_comm_t **comm)
{
    int rank = dt_rank();

    switch (kind) {
    case COPY:
        return dt_comm_dup(DT_WORLD, comm);
    case REVERSED:
        return dt_comm_split(DT_WORLD, 0, -rank, comm);
    case NOT_ALL:
        return dt_comm_split(DT_WORLD, rank == 1 ? DT_UNDEFINED : 0, 0, comm);
    default:
        return dt_comm_split(DT_WORLD, dt_local_rank() == 0 ? 0 : DT_UNDEFINED, 0, comm);
    }
}

/* ---- calls that do not match ---- */

static struct {
    _Atomic int64_t last_came; /* when the last rank made its call since the last mismatch */
    _Atomic int64_t took;      /* time of this mismatch until all ranks knew of it */
    _Atomic int64_t withheld;  /* at most, from one of its processes meanwhile */
    _Atomic int64_t longest;   /* of all mismatches */
    _Atomic int odd;           /* the number in the job of the rank that makes another call */
    _Atomic int ready;         /* ranks that have ended their calls on DT_WORLD */
} * shared;

static void raise_to(_Atomic int64_t *most, int64_t value)
{
    int64_t seen = *most;

    while (seen < value && !atomic_compare_exchange_weak(most, &seen, value))
        ;
}

/* ---- time that a busy machine withholds ---- */

/* How long the threads of a process have waited for a processor. */
static int64_t waited_us(pid_t pid)
{
    char path[512];
    int64_t us = 0;
    DIR *threads;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    threads = opendir(path);
    for (const struct dirent *e; threads && (e = readdir(threads));) {
        unsigned long long ns;
        FILE *f;

        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", (int)pid, e->d_name);
        f = fopen(path, "r");
        if (f && fscanf(f, "%*u %llu", &ns) == 1)
            us += (int64_t)(ns / 1000);
        if (f)
            fclose(f);
    }
    if (threads)
        closedir(threads);
    return us;
}

/* How long this virtual machine's processors have waited for a real one. */
static int64_t stolen_us(void)
{
    unsigned long long ticks = 0;
    FILE *f = fopen("/proc/stat", "r");

    if (f && fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
        ticks = 0;
    if (f)
        fclose(f);
    return (int64_t)ticks * 1000000 / sysconf(_SC_CLK_TCK);
}

/* A rank that exceeds a time limit by itself sleeps and does not wait for a processor. So a
 * mismatch that took long mostly for lack of a processor proves nothing. */
static void note_mismatch(void)
{
    int64_t took = shared->took, slept = took - shared->withheld;

    if (took <= SOON_MS * 1000 || slept > SOON_MS * 1000 / 2)
        raise_to(&shared->longest, took);
    shared->took = shared->withheld = 0;
}

/* "rank 2 (host1) called this, call 2; rank 0 (host0) called that, call 2". */
static bool names_both(const char *text, const struct mismatch *q)
{
    char called[160];
    bool odd =
        !q->odd && strstr(text, " gives 2 elements to rank ") && strstr(text, ", which expects 1");

    for (int host = 0; q->odd && host < TESTJOB_HOSTS; host++) {
        snprintf(called, sizeof called, "rank %d (host%d) called %s", shared->odd, host, q->odd);
        odd |= strstr(text, called) != NULL;
    }
    snprintf(called, sizeof called, ") called %s", q->others);
    return odd && strstr(text, called);
}

/* Its own call comes first, and only once, whichever rank is called the odd one. */
static bool begins_with_own_call(const char *text)
{
    char me[32];

    snprintf(me, sizeof me, "rank %d (host", dt_rank());
    return strncmp(text, me, strlen(me)) == 0 && !strstr(text + 1, me);
}

/* A rank that the text names: another one, unless the text is about a pair. */
static bool blames_another(const char *text, const struct mismatch *q)
{
    dt_error_info_t info = { .size = sizeof info };
    char called[320];

    if (dt_last_error_info(&info) != DT_OK || info.code != DT_ERR_MISMATCH)
        return false;
    snprintf(called, sizeof called, "rank %d (%s) called ", info.rank, info.host);
    if (!q->odd || (info.rank != dt_rank() && strstr(text, called)))
        return true;
    fprintf(stderr, "rank %d (%s) is to blame at rank %d: %s\n", info.rank, info.host, dt_rank(),
            text);
    return false;
}

static bool is_told(const char *text, const struct mismatch *q)
{
    return begins_with_own_call(text) && names_both(text, q) && blames_another(text, q);
}

/* All begin together, so that the time of a mismatch is that of its calls. */
static bool meet(dt_comm_t *comm, bool takes_part)
{
    if (takes_part && dt_comm_rank(comm) == 1)
        shared->odd = dt_rank();
    return dt_barrier(DT_WORLD) == DT_OK;
}

/* The error comes soon and is right. */
static int make_mismatch(dt_comm_t *comm, const struct mismatch *q)
{
    static float in[LARGE], out[LARGE];
    int64_t mine = waited_us(getpid()), theirs = waited_us(getppid()) + stolen_us();

    raise_to(&shared->last_came, testjob_now_us());
    NEED(q->call(comm, dt_comm_rank(comm) == 1, in, out) == DT_ERR_MISMATCH);
    raise_to(&shared->took, testjob_now_us() - shared->last_came);
    raise_to(&shared->withheld, waited_us(getpid()) - mine);
    raise_to(&shared->withheld, waited_us(getppid()) + stolen_us() - theirs);
    NEED(is_told(dt_last_error(), q));
    NEED(dt_barrier(comm) == DT_ERR_MISMATCH);
    NEED(dt_comm_free(comm) == DT_ERR_MISMATCH);
    return 0;
}

static int try_mismatch(enum kind kind, const struct mismatch *q)
{
    bool takes_part;
    dt_comm_t *comm;

    NEED(make(kind, &comm) == DT_OK);
    takes_part = comm != DT_COMM_NULL && dt_comm_size(comm) > 1;
    NEED(meet(comm, takes_part));
    if (takes_part)
        NEED(make_mismatch(comm, q) == 0);
    else if (comm != DT_COMM_NULL)
        NEED(dt_comm_free(comm) == DT_OK);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    if (dt_rank() == 0)
        note_mismatch(); /* the next one needs this rank, too */
    return 0;
}

static int mismatching_rank(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t q = 0; q < sizeof mismatches / sizeof *mismatches; q++) {
            /* Other placements try the other half. */
            if (SANITIZED && ((size_t)kind + q + (size_t)dt_size()) % 2)
                continue;
            if (try_mismatch((enum kind)kind, &mismatches[q]) != 0) {
                fprintf(stderr, "communicator %d, %s\n", kind, mismatches[q].name);
                return 1;
            }
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* In the last placement not all of the many hosts are connected before they need to be. */
static const char *const placements[] = { "3",       "1 1",   "2 2", "1 1 1", "1 2 1", "@0101",
                                          "1 1 1 1", "3 1 2", "1 7", MANY,    NULL };

static void try_all(const char *hosts)
{
    shared->longest = 0;
    testjob_must_pass(hosts, mismatching_rank, NULL);
    assert_in_range(shared->longest, 0, SOON_MS * 1000);
    print_message("# hosts %s: known after %.1f ms at most\n", hosts,
                  (double)shared->longest / 1000);
}

static void all_ranks_learn_whose_calls_do_not_match(void **state)
{
    (void)state;
    for (const char *const *hosts = placements; *hosts; hosts++)
        try_all(*hosts);
    testjob_streams(3);
    try_all("1 1 1");
    try_all(MANY);
    testjob_streams(0);
}

/* ---- every collective, in all that its calls tell ---- */

/* 0: none, as for sendrecv, which makes two calls. */
static unsigned kind_of(const struct dt_perf_op *op)
{
    char name[32];
    unsigned kind = 255;

    snprintf(name, sizeof name, "%s", op->name);
    for (char *p = name; (p = strchr(p, '_'));)
        *p = '-';
    while (kind && strcmp(dt_call_name(kind), name) != 0)
        kind--;
    return kind;
}

/* The call of rank 1, which differs from that of the others in what the trait tells. */
static struct dt_call call_of(unsigned kind, unsigned trait, bool odd)
{
    return (struct dt_call){ .kind = (uint8_t)kind,
                             .count = odd && trait == DT_CALL_TELLS_COUNT ? 2 : 1,
                             .dtype = odd && trait == DT_CALL_TELLS_TYPE ? DT_I32 : DT_F32,
                             .op = odd && trait == DT_CALL_TELLS_OP ? DT_MAX : DT_SUM,
                             .root = odd && trait & (DT_CALL_TELLS_TO | DT_CALL_TELLS_FROM) };
}

static void describe(const struct dt_call *call, char text[DT_CALL_TEXT])
{
    dt_call_describe(call, text);
    *strstr(text, ", call ") = '\0';
}

static bool tells_both(unsigned kind, unsigned trait)
{
    struct dt_call odd = call_of(kind, trait, true), others = call_of(kind, trait, false);
    char odd_text[DT_CALL_TEXT], others_text[DT_CALL_TEXT];

    describe(&odd, odd_text);
    describe(&others, others_text);
    return is_told(dt_last_error(), &(struct mismatch){ .odd = odd_text, .others = others_text });
}

static int try_difference(const struct dt_perf_op *op, unsigned trait)
{
    static float in[2 * TESTJOB_RANKS], out[2 * TESTJOB_RANKS];
    struct dt_call call = call_of(kind_of(op), trait, dt_rank() == 1);
    struct dt_perf_case c = { .dtype = (dt_dtype_t)call.dtype,
                              .op = (dt_op_t)call.op,
                              .root = call.root,
                              .gives = ones,
                              .takes = ones };

    NEED(dt_comm_dup(DT_WORLD, &c.comm) == DT_OK);
    NEED(op->run(&c, in, out, call.count) == DT_ERR_MISMATCH);
    NEED(tells_both(call.kind, trait));
    NEED(dt_comm_free(c.comm) == DT_ERR_MISMATCH);
    return 0;
}

static int try_collectives(int rank, void *arg)
{
    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    shared->odd = 1;
    for (size_t i = 0; dt_perf_op_at(i); i++) {
        const struct dt_perf_op *op = dt_perf_op_at(i);
        unsigned traits = dt_call_traits(kind_of(op));

        NEED(kind_of(op) || strcmp(op->name, "sendrecv") == 0);
        for (unsigned trait = DT_CALL_TELLS_COUNT; trait <= DT_CALL_TELLS_FROM; trait *= 2) {
            if (traits & trait && try_difference(op, trait) != 0) {
                fprintf(stderr, "%s, trait %#x\n", op->name, trait);
                return 1;
            }
        }
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void every_collective_compares_all_that_its_call_tells(void **state)
{
    static const char *const few[] = { "3", "1 1", "2 2", "1 1 1", NULL };

    (void)state;
    assert_int_equal(testjob_pass_all(few, try_collectives), 0);
}

/* ---- calls that end what others use ---- */

static dt_result_t spread_ten(dt_comm_t *comm)
{
    float buf[10] = { 0 };

    return dt_broadcast(comm, buf, 10, DT_F32, 0);
}

/* Rank 1 ends what the others go on using: a communicator, then the job. */
static int leaver(int rank, void *arg)
{
    static const struct mismatch early = { NULL, NULL, "dt_comm_free", SPREAD_TEN };
    static const struct mismatch last = { NULL, NULL, "dt_finalize", SPREAD_TEN };
    dt_comm_t *comm;

    (void)arg;
    shared->odd = 1;
    NEED(dt_init() == DT_OK && dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED((rank == 1 ? dt_comm_free(comm) : spread_ten(comm)) == DT_ERR_MISMATCH);
    NEED(is_told(dt_last_error(), &early));
    testjob_meet(&shared->ready, dt_size()); /* a failure also ends the call before it */
    NEED((rank == 1 ? dt_finalize() : spread_ten(DT_WORLD)) == DT_ERR_MISMATCH);
    NEED(is_told(dt_last_error(), &last));
    return 0;
}

static void a_rank_that_leaves_others_in_a_call_is_named(void **state)
{
    (void)state;
    for (const char *const *hosts = placements; *hosts; hosts++) {
        shared->ready = 0;
        testjob_must_pass(*hosts, leaver, NULL);
    }
}

/* The program does not see which calls a checkpoint consists of. */
static int confuser(int rank, void *isave)
{
    const struct mismatch q = { NULL, NULL, "dt_checkpoint_restore",
                                isave ? "dt_checkpoint_isave" : "dt_checkpoint_save" };
    dt_request_t request;
    dt_result_t r;
    int64_t step;

    shared->odd = 1;
    NEED(setenv("DTRUN_CHECKPOINT_DIR", "/nonexistent/directory", 1) == 0);
    NEED(dt_init() == DT_OK);
    if (rank == 1)
        r = dt_checkpoint_restore(&step);
    else
        r = isave ? dt_checkpoint_isave(1, &request) : dt_checkpoint_save(1);
    NEED(r == DT_ERR_MISMATCH);
    NEED(is_told(dt_last_error(), &q));
    return 0;
}

static void checkpoint_calls_are_named(void **state)
{
    static const char *const few[] = { "3", "2 1", "1 1 1", NULL };
    static bool isave = true;

    (void)state;
    for (size_t i = 0; few[i]; i++) {
        testjob_must_pass(few[i], confuser, NULL);
        testjob_must_pass(few[i], confuser, &isave);
    }
}

/* Root expects one more, one less, one less and one more from four ranks than these send. */
static int bad_reckoner(int rank, void *arg)
{
    static const size_t expected[] = { 4, 5, 3, 3, 5 };
    static float in[4], out[20];
    dt_comm_t *comm;

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK && dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_gatherv(comm, in, 4, out, expected, DT_F32, 0) == DT_ERR_MISMATCH);
    NEED(strstr(dt_last_error(), " gives 4 elements to rank 0, which expects "));
    NEED(dt_comm_free(comm) == DT_ERR_MISMATCH);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void mismatches_do_not_cancel_out(void **state)
{
    static const char *const fives[] = { "5", "2 3", "1 1 1 1 1", NULL };

    (void)state;
    assert_int_equal(testjob_pass_all(fives, bad_reckoner), 0);
}

static int wordy(int rank, void *arg)
{
    static float in[LARGE], out[LARGE];
    char me[16];
    dt_comm_t *comm;
    dt_result_t r;

    (void)arg;
    NEED(dt_init() == DT_OK && dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    if (rank == 1)
        r = dt_reduce_scatter(comm, in, out, LARGE / 4, DT_BF16, DT_SUM);
    else
        r = dt_all_reduce(comm, in, out, LARGE, DT_F32, DT_SUM);
    NEED(r == DT_ERR_MISMATCH);
    snprintf(me, sizeof me, "rank %d (host%d.", rank, rank);
    NEED(strncmp(dt_last_error(), me, strlen(me)) == 0);
    NEED(strstr(dt_last_error(), rank == 1 ? " rank " : " rank 1 (host1."));
    NEED(strstr(dt_last_error(), "...) called reduce-scatter of "));
    NEED(strstr(dt_last_error(), "...) called all-reduce of "));
    NEED(dt_comm_free(comm) == DT_ERR_MISMATCH);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void both_calls_are_named_however_long_names_are(void **state)
{
    struct testjob_plan plan = { .hosts = "1 1 1", .body = wordy };
    char domain[240];

    (void)state;
    memset(domain, 'x', sizeof domain);
    domain[0] = '.';
    domain[sizeof domain - 1] = '\0';
    plan.domain = domain;
    assert_int_equal(testjob_pass(&plan), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKS("2, 27, 28, 29, 30, 31, 32", all_ranks_learn_whose_calls_do_not_match),
        CHECKS("27, 28, 29, 31", every_collective_compares_all_that_its_call_tells),
        CHECKS("30", a_rank_that_leaves_others_in_a_call_is_named),
        CHECKS("30", checkpoint_calls_are_named),
        cmocka_unit_test(mismatches_do_not_cancel_out),
        cmocka_unit_test(both_calls_are_named_however_long_names_are),
    };

    shared = testjob_shared(sizeof *shared);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
