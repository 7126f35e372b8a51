/* Communicators: which ranks are in them, what their calls do, and how they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/api/split.h"
#include "tests/unit/checks.h"
#include "tests/unit/rankcheck.h"
#include "tests/unit/sanitized.h"
#include "tests/unit/testjob.h"

static struct testjob_result result;

static struct {
    _Atomic int ready;
    _Atomic int done;
    _Atomic int go;
} * shared;

static int setup(void **state)
{
    (void)state;
    if (!shared)
        shared = testjob_shared(4096);
    memset((void *)shared, 0, sizeof *shared);
    return 0;
}

static void run_all(const struct testjob_plan *plan)
{
    assert_int_equal(testjob_pass(plan), 0);
}

static void run_body(const char *hosts, int (*body)(int, void *))
{
    run_all(
        &(struct testjob_plan){ .hosts = hosts, .body = body, .arg = (void *)(uintptr_t)hosts });
}

/* ---- members ---- */

static void members_are_in_order_of_key_then_rank(void **state)
{
    static const struct {
        const char *colors; /* a digit for each rank; '-': in no communicator */
        int64_t keys[8];
        uint32_t me;
        const char *members;
    } cases[] = {
        { "1", { 0 }, 0, "0" },
        { "1111", { 0, 0, 0, 0 }, 2, "0123" },
        { "1111", { 3, 2, 1, 0 }, 0, "3210" },
        { "1111", { -1, 5, -7, 5 }, 1, "2013" },
        { "1212", { 0, 0, 0, 0 }, 1, "13" },
        { "1-31", { 9, 0, 0, -9 }, 0, "30" },
        { "11112222", { 7, 7, 1, 1, 0, 0, 0, 0 }, 3, "2301" },
        { "11112222", { 7, 7, 1, 1, 0, -1, 0, 0 }, 7, "5467" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_split_word words[8];
        uint32_t members[8], n = (uint32_t)strlen(cases[i].colors);
        char text[9] = "";

        for (uint32_t r = 0; r < n; r++) {
            char color = cases[i].colors[r];

            words[r] =
                (struct dt_split_word){ color == '-' ? 0 : (uint64_t)color, cases[i].keys[r], r };
        }
        uint32_t count = dt_split_members(words, n, cases[i].me, members);
        for (uint32_t m = 0; m < count; m++)
            text[m] = (char)('0' + members[m]);
        text[count] = '\0';
        assert_string_equal(text, cases[i].members);
    }
}

/* ---- calls ---- */

/* Makes all calls of a communicator whose rank i is rank first + stride * i of the job. */
static int use(dt_comm_t *comm, int first, int stride, int n)
{
    enum { COUNT = 20000 };
    static int64_t buf[COUNT];
    int sum = 0;

    NEED(dt_comm_size(comm) == n);
    NEED(first + stride * dt_comm_rank(comm) == dt_rank());
    for (int i = 0; i < n; i++)
        sum += first + stride * i;
    for (size_t count = 1; count <= COUNT; count *= 100) {
        for (size_t i = 0; i < count; i++)
            buf[i] = dt_rank() + (int64_t)i;
        NEED(dt_all_reduce(comm, DT_IN_PLACE, buf, count, DT_I64, DT_SUM) == DT_OK);
        for (size_t i = 0; i < count; i++)
            NEED(buf[i] == sum + n * (int64_t)i);
        for (int root = 0; root < n; root++) {
            buf[count - 1] = dt_rank();
            NEED(dt_broadcast(comm, buf, count, DT_I64, root) == DT_OK);
            NEED(buf[count - 1] == first + stride * root);
        }
    }
    NEED(dt_broadcast(comm, buf, 1, DT_I64, n) == DT_ERR_ARG);
    NEED(dt_barrier(comm) == DT_OK);
    return 0;
}

static int home[TESTJOB_RANKS];

/* One communicator for each host, one with the ranks in reverse order, one for each rank alone, and
 * two that share all hosts. */
static int splitter(int rank, void *arg)
{
    int n = testjob_place(arg, home), mine = home[rank], first = -1, last = 0, count = 0;
    dt_comm_t *host, *back, *self, *copy, *part, *every;

    for (int i = 0; i < n; i++) {
        if (home[i] != mine)
            continue;
        first = first < 0 ? i : first;
        last = i;
        count++;
    }
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, mine, 0, &host) == DT_OK);
    NEED(use(host, first, count > 1 ? (last - first) / (count - 1) : 1, count) == 0);
    NEED(dt_comm_split(host, 7, -rank, &back) == DT_OK);
    NEED(use(back, last, count > 1 ? (first - last) / (count - 1) : 1, count) == 0);
    NEED(dt_comm_split(back, rank, rank, &self) == DT_OK);
    NEED(use(self, rank, 1, 1) == 0);
    NEED(dt_comm_dup(back, &copy) == DT_OK);
    NEED(copy != back);
    NEED(dt_comm_split(host, rank == first ? DT_UNDEFINED : 0, 0, &part) == DT_OK);
    NEED((part == DT_COMM_NULL) == (rank == first));
    NEED(part == DT_COMM_NULL || dt_comm_size(part) == count - 1);
    NEED(dt_comm_free(back) == DT_OK);
    NEED(use(copy, last, count > 1 ? (first - last) / (count - 1) : 1, count) == 0);
    NEED(dt_comm_free(copy) == DT_OK);
    NEED(dt_comm_free(self) == DT_OK);
    NEED(dt_comm_split(DT_WORLD, rank % 2, 0, &every) == DT_OK);
    NEED(use(every, rank % 2, 2, (n + 1 - rank % 2) / 2) == 0);
    NEED(dt_comm_dup(every, &copy) == DT_OK);
    NEED(dt_comm_free(every) == DT_OK);
    NEED(use(copy, rank % 2, 2, (n + 1 - rank % 2) / 2) == 0);
    NEED(use(DT_WORLD, 0, 1, dt_size()) == 0);
    /* dt_finalize frees what the program has not freed. */
    NEED(dt_finalize() == DT_OK);
    NEED(dt_barrier(host) == DT_ERR_STATE);
    NEED(dt_comm_rank(host) == -1 && dt_comm_size(DT_WORLD) == -1);
    return 0;
}

static void every_communicator_has_all_calls(void **state)
{
    static const char *const placements[] = { "1", "2", "5", "3 2", "@0101", "@012012" };

    (void)state;
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++)
        run_body(placements[i], splitter);
}

/* ---- misuse ---- */

static int misuser(int rank, void *arg)
{
    dt_comm_t *a, *b, *c;
    dt_request_t held = { 0 };
    float x = 1;

    (void)arg;
    a = NULL;
    NEED(dt_comm_split(DT_WORLD, 0, 0, &a) == DT_ERR_STATE);
    NEED(a == DT_COMM_NULL);
    NEED(dt_comm_abort(DT_WORLD) == DT_ERR_STATE);
    NEED(dt_comm_rank(DT_WORLD) == -1);
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_rank(DT_WORLD) == rank && dt_comm_size(DT_WORLD) == dt_size());
    NEED(dt_comm_split(DT_WORLD, 0, 0, NULL) == DT_ERR_ARG);
    NEED(dt_comm_free(DT_WORLD) == DT_ERR_ARG);
    NEED(dt_comm_split(DT_WORLD, 0, 0, &a) == DT_OK);
    for (uintptr_t bad = 1; bad; bad <<= 1) {
        NEED(dt_barrier((dt_comm_t *)bad) == DT_ERR_ARG || bad >> 12);
        NEED(dt_barrier((dt_comm_t *)~bad) == DT_ERR_ARG);
        NEED(dt_comm_abort((dt_comm_t *)~bad) == DT_ERR_ARG);
    }
    NEED(dt_all_reduce(DT_COMM_NULL, &x, &x, 1, DT_F32, DT_SUM) == DT_ERR_ARG);
    NEED(dt_barrier((dt_comm_t *)&x) == DT_ERR_ARG);
    NEED(dt_comm_free(a) == DT_OK);
    NEED(dt_comm_free(a) == DT_ERR_STATE);
    NEED(strstr(dt_last_error(), "freed"));
    NEED(dt_barrier(a) == DT_ERR_STATE);
    NEED(dt_comm_abort(a) == DT_ERR_STATE);
    NEED(dt_comm_size(a) == -1);
    NEED(dt_comm_dup(a, &c) == DT_ERR_STATE);
    NEED(dt_comm_dup(DT_WORLD, &b) == DT_OK); /* gets the place of the first */
    NEED(rank || dt_ibarrier(b, &held) == DT_OK);
    NEED(dt_barrier(a) == DT_ERR_STATE); /* does not wait for the call on b */
    NEED(rank || dt_size() == 1 || dt_send(DT_WORLD, &x, 1, DT_F32, 1) == DT_OK);
    NEED(!rank || (dt_recv(DT_WORLD, &x, 1, DT_F32, 0) == DT_OK && dt_barrier(b) == DT_OK));
    NEED(dt_wait(&held) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void wrong_handles_are_an_error(void **state)
{
    (void)state;
    run_body("1", misuser);
    run_body("2", misuser);
}

static int hoarder(int rank, void *arg)
{
    enum { MOST = 4095 };
    static dt_comm_t *all[MOST];
    dt_comm_t *more;

    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < MOST; i++)
        NEED(dt_comm_split(DT_WORLD, rank, 0, &all[i]) == DT_OK);
    NEED(dt_comm_split(DT_WORLD, rank, 0, &more) == DT_ERR_NOMEM);
    NEED(strstr(dt_last_error(), "4096 communicators"));
    NEED(dt_comm_free(all[rank]) == DT_OK);
    NEED(dt_comm_split(DT_WORLD, rank, 0, &more) == DT_OK);
    NEED(dt_barrier(more) == DT_OK && dt_barrier(all[MOST - 1]) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void too_many_communicators_are_refused(void **state)
{
    (void)state;
    run_body("2", hoarder);
}

/* ---- nothing is left ---- */

static int entries(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* Counts mappings of shared memory that an agent made. */
static int mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;

    while (f && fgets(line, sizeof line, f))
        n += strstr(line, "memfd:dtrun") != NULL;
    if (f)
        fclose(f);
    return n;
}

/* Bytes that malloc has allocated. */
static size_t allocated(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 0; /* sanitizers have their own allocator and look for leaks themselves */
#else
    return mallinfo2().uordblks;
#endif
}

static int maker(int rank, void *arg)
{
    dt_comm_t *c;
    int fds, maps, times = *(int *)arg;
    size_t bytes;

    NEED(dt_init() == DT_OK);
    fds = entries("/proc/self/fd");
    maps = mappings();
    bytes = allocated();
    shared->ready++;
    while (shared->go < 1)
        usleep(500);
    for (int i = 0; i < times; i++) {
        NEED(dt_comm_split(DT_WORLD, 0, -rank, &c) == DT_OK);
        NEED(dt_comm_rank(c) == dt_size() - 1 - rank);
        NEED(dt_comm_free(c) == DT_OK);
    }
    NEED(entries("/proc/self/fd") == fds);
    NEED(mappings() == maps);
    NEED(allocated() <= bytes + 16384);
    shared->done++;
    while (shared->go < 2)
        usleep(500);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* This process plays the agent. */
static void count_in_agent(struct testjob *job, int ms)
{
    static int fds, maps;
    static size_t bytes;

    (void)job;
    (void)ms;
    if (shared->ready == 2 && shared->go == 0) {
        fds = entries("/proc/self/fd");
        maps = mappings();
        bytes = allocated();
        shared->go = 1;
    }
    if (shared->done == 2 && entries("/proc/self/fd") == fds && mappings() == maps &&
        allocated() <= bytes + 16384)
        shared->go = 2;
}

/* Between hosts each communicator has connections, which the system remembers for a minute after
 * they end. */
static void many_communicators_leave_nothing_behind(void **state)
{
    int within = SANITIZED ? 1000 : 10000, between = within / 10;

    run_all(&(struct testjob_plan){
        .hosts = "2", .body = maker, .arg = &within, .on_tick = count_in_agent });
    setup(state);
    run_all(&(struct testjob_plan){
        .hosts = "1 1", .body = maker, .arg = &between, .on_tick = count_in_agent });
}

/* ---- failures ---- */

/* Rank 0 waits in a barrier that no other rank joins, until its other thread, or another rank
 * outside any call, aborts it. */
struct waiting {
    dt_result_t result;
    dt_comm_t *comm;
};

static void *hang(void *arg)
{
    struct waiting *w = arg;

    shared->go = 1;
    w->result = dt_barrier(w->comm);
    return NULL;
}

static int aborter(int rank, void *arg)
{
    struct waiting w = { .result = DT_OK };
    int who = *(int *)arg;
    pthread_t thread;
    char text[64];

    NEED(dt_init() == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &w.comm) == DT_OK);
    if (rank == 0)
        NEED(pthread_create(&thread, NULL, hang, &w) == 0);
    while (rank == who && !shared->go)
        usleep(500);
    if (rank == who)
        NEED(dt_comm_abort(w.comm) == DT_OK);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    if (rank == 0) {
        pthread_join(thread, NULL);
        NEED(w.result == DT_ERR_ABORTED);
    }
    NEED(dt_barrier(DT_WORLD) == DT_OK); /* before that, all ranks could reach the one that waits */
    NEED(dt_barrier(w.comm) == DT_ERR_ABORTED);
    snprintf(text, sizeof text, "rank %d (host", who);
    NEED(strstr(dt_last_error(), text) && strstr(dt_last_error(), ") called dt_comm_abort") &&
         strstr(dt_last_error(), "on communicator 0.1"));
    NEED(dt_comm_free(w.comm) == DT_ERR_ABORTED);
    NEED(dt_barrier(w.comm) == DT_ERR_STATE);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

/* A thread that computes, and makes no call, learns of an abort and of a death elsewhere. */
static int watch_an_abort(int rank, void *arg)
{
    dt_error_info_t info = DT_ERROR_INFO_INIT;
    dt_comm_t *comm, *other;

    (void)arg;
    NEED(info.size == sizeof info && info.code == DT_OK && info.rank == -1 && info.status == -1);
    NEED(dt_init() == DT_OK && dt_comm_dup(DT_WORLD, &comm) == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &other) == DT_OK);
    NEED(dt_comm_status(DT_WORLD) == DT_OK && dt_comm_status(comm) == DT_OK);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    if (rank == dt_size() - 1)
        NEED(dt_comm_abort(comm) == DT_OK);
    while (dt_comm_status(comm) == DT_OK)
        usleep(100);
    NEED(dt_comm_status(comm) == DT_ERR_ABORTED);
    NEED(strstr(dt_last_error(), "called dt_comm_abort") && strstr(dt_last_error(), "0.1"));
    NEED(dt_last_error_info(&info) == DT_OK && info.rank == dt_size() - 1);
    NEED(dt_comm_status(other) == DT_OK && dt_comm_status(DT_WORLD) == DT_OK);
    NEED(dt_comm_free(comm) == DT_ERR_ABORTED && dt_comm_status(comm) == DT_ERR_STATE);
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void status_shows_an_abort_without_a_call(void **state)
{
    (void)state;
    run_body("1", watch_an_abort);
    run_body("3", watch_an_abort);
    run_body("2 1", watch_an_abort);
}

static int split_by_node(int rank, void *arg)
{
    int32_t highest, lowest;
    dt_comm_t *near;

    (void)rank;
    (void)arg;
    NEED(dt_node() == -1 && dt_nodes() == -1);
    NEED(dt_init() == DT_OK);
    highest = lowest = dt_node();
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &highest, 1, DT_I32, DT_MAX) == DT_OK);
    NEED(dt_all_reduce(DT_WORLD, DT_IN_PLACE, &lowest, 1, DT_I32, DT_MIN) == DT_OK);
    NEED(lowest == 0 && highest == dt_nodes() - 1);
    NEED(dt_comm_split(DT_WORLD, dt_node(), 0, &near) == DT_OK);
    NEED(dt_comm_size(near) == dt_local_size() && dt_comm_rank(near) == dt_local_rank());
    NEED(dt_comm_free(near) == DT_OK && dt_finalize() == DT_OK);
    NEED(dt_node() >= 0 && dt_nodes() > dt_node());
    return 0;
}

static void nodes_are_colors_however_ranks_are_placed(void **state)
{
    static const char *const hosts[] = { "1", "3", "3 1 2", "@0101", "@012020" };

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        run_body(hosts[i], split_by_node);
}

/* Half of the time rank 0 has the new communicator first and ends it before the others know that
 * they have it. */
static int hasty(int rank, void *arg)
{
    (void)arg;
    NEED(dt_init() == DT_OK);
    for (int i = 0; i < 200; i++) {
        dt_comm_t *comm;

        NEED(dt_comm_dup(DT_WORLD, &comm) == DT_OK);
        if (rank == 0)
            NEED(dt_comm_abort(comm) == DT_OK);
        NEED(dt_barrier(comm) == DT_ERR_ABORTED);
        NEED(dt_comm_free(comm) == DT_ERR_ABORTED);
    }
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void the_end_of_a_new_communicator_does_not_undo_its_creation(void **state)
{
    (void)state;
    run_body("3", hasty);
    run_body("2 3", hasty);
    run_body("1 1 1", hasty);
}

static void an_abort_ends_calls_on_all_ranks(void **state)
{
    (void)state;
    for (int who = 0; who < 3; who += 2) {
        shared->go = 0;
        run_all(&(struct testjob_plan){ .hosts = "3", .body = aborter, .arg = &who });
        shared->go = 0;
        run_all(&(struct testjob_plan){ .hosts = "1 2", .body = aborter, .arg = &who });
    }
}

static int world_aborter(int rank, void *arg)
{
    dt_comm_t *c, *alone;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, rank, 0, &alone) == DT_OK);
    NEED(dt_comm_dup(DT_WORLD, &c) == DT_OK);
    testjob_meet(&shared->ready, 3);
    if (rank == 1) {
        NEED(dt_comm_abort(DT_WORLD) == DT_OK);
        NEED(dt_barrier(alone) == DT_ERR_ABORTED);
    }
    while (dt_barrier(c) == DT_OK)
        ;
    NEED(strstr(dt_last_error(), ") called dt_comm_abort"));
    NEED(dt_barrier(DT_WORLD) == DT_ERR_ABORTED);
    NEED(dt_comm_free(c) == DT_ERR_ABORTED);
    NEED(dt_finalize() == DT_ERR_ABORTED);
    return 0;
}

static void an_abort_of_the_world_ends_all(void **state)
{
    (void)state;
    assert_int_equal(
        testjob_run(&(struct testjob_plan){ .hosts = "2 1", .body = world_aborter }, &result), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(result.ranks[i].status, 0);
}

static int mismatching_rank(int rank, void *arg)
{
    dt_comm_t *c;
    float x = 1;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, rank / 2, 0, &c) == DT_OK);
    if (rank == 3)
        NEED(dt_barrier(c) == DT_ERR_MISMATCH);
    else
        NEED(dt_all_reduce(c, DT_IN_PLACE, &x, 1, DT_F32, DT_SUM) ==
             (rank < 2 ? DT_OK : DT_ERR_MISMATCH));
    if (rank == 2)
        NEED(strstr(dt_last_error(), ") called all-reduce of 1 f32 (sum), call 2 on communicator "
                                     "2.1; rank 3 (host") &&
             strstr(dt_last_error(), ") called barrier, call 2"));
    NEED(dt_barrier(c) == (rank < 2 ? DT_OK : DT_ERR_MISMATCH));
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    NEED(dt_comm_free(c) == (rank < 2 ? DT_OK : DT_ERR_MISMATCH));
    NEED(dt_finalize() == DT_OK);
    return 0;
}

static void a_mismatch_ends_its_communicator_alone(void **state)
{
    (void)state;
    run_body("4", mismatching_rank);
    run_body("@0101", mismatching_rank);
}

static int mortal(int rank, void *arg)
{
    dt_comm_t *c, *alone;

    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(dt_comm_split(DT_WORLD, rank > 1, 0, &c) == DT_OK);
    NEED(dt_comm_split(DT_WORLD, rank, 0, &alone) == DT_OK);
    NEED(dt_barrier(alone) == DT_OK);
    NEED(dt_barrier(DT_WORLD) == DT_OK);
    shared->ready++;
    if (rank == 3)
        pause();
    while (rank == 0 && dt_comm_status(DT_WORLD) == DT_OK)
        usleep(100);
    NEED(rank != 0 || dt_comm_status(alone) == DT_ERR_PEER);
    NEED(rank != 0 || strstr(dt_last_error(), "rank 3 (host"));
    while (dt_barrier(c) == DT_OK) /* the failure may still be on its way */
        ;
    NEED(strstr(dt_last_error(), "rank 3 (host") && strstr(dt_last_error(), ") died or left"));
    NEED(dt_barrier(DT_WORLD) == DT_ERR_PEER);
    NEED(dt_barrier(alone) == DT_ERR_PEER);
    NEED(dt_comm_free(c) == DT_ERR_PEER);
    NEED(dt_finalize() == DT_ERR_PEER);
    return 0;
}

static void kill_last(struct testjob *job, int ms)
{
    (void)ms;
    if (shared->ready == 4)
        testjob_kill(job, 3, SIGKILL);
}

static void a_death_ends_calls_on_all(void **state)
{
    struct testjob_plan plan = { .hosts = "4", .body = mortal, .on_tick = kill_last };

    (void)state;
    assert_int_equal(testjob_run(&plan, &result), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(result.ranks[i].status, 0);
        assert_true(result.ranks[i].peer_lost);
    }
}

/* Shutting down its own end, a rank gets its question through, and finds that the agent has ended
 * before it answered. */
static int lose_the_agent(int rank, void *arg)
{
    dt_comm_t *comm;

    (void)rank;
    (void)arg;
    NEED(dt_init() == DT_OK);
    NEED(shutdown(atoi(getenv("DTRUN_AGENT_FD")), SHUT_RD) == 0);
    NEED(dt_comm_dup(DT_WORLD, &comm) == DT_ERR_PEER && comm == DT_COMM_NULL);
    NEED(strstr(dt_last_error(), "dtrun-agent of this host has ended"));
    return 0;
}

static void no_communicator_is_made_without_the_agent(void **state)
{
    static const char *const placements[] = { "1", "2" };

    (void)state;
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++) {
        struct testjob_plan plan = { .hosts = placements[i], .body = lose_the_agent };

        assert_int_equal(testjob_run(&plan, &result), 0);
        for (int rank = 0; rank < result.n; rank++)
            assert_int_equal(result.ranks[rank].status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_in_order_of_key_then_rank),
        cmocka_unit_test_setup(every_communicator_has_all_calls, setup),
        CHECKS_SETUP("34", wrong_handles_are_an_error, setup),
        cmocka_unit_test_setup(too_many_communicators_are_refused, setup),
        CHECKS_SETUP("24", many_communicators_leave_nothing_behind, setup),
        cmocka_unit_test_setup(the_end_of_a_new_communicator_does_not_undo_its_creation, setup),
        CHECKS_SETUP("34", an_abort_ends_calls_on_all_ranks, setup),
        cmocka_unit_test_setup(an_abort_of_the_world_ends_all, setup),
        cmocka_unit_test_setup(status_shows_an_abort_without_a_call, setup),
        cmocka_unit_test_setup(nodes_are_colors_however_ranks_are_placed, setup),
        CHECKS_SETUP("30", a_mismatch_ends_its_communicator_alone, setup),
        cmocka_unit_test_setup(a_death_ends_calls_on_all, setup),
        cmocka_unit_test(no_communicator_is_made_without_the_agent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
