/* What moves over the connections of a mesh, between threads that are ranks of one job, each with a
 * listener of its own, so that a thread sanitizer sees all accesses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/coll/compressed.h"
#include "runtime/coll/leader_allreduce.h"
#include "runtime/kernels/reduce.h"
#include "runtime/tcp/alltoall.h"
#include "runtime/tcp/flow.h"
#include "tests/unit/checks.h"
#include "tests/unit/sanitized.h"

enum { MOST = 5, GENERATION = 3, BIG = 150000 };

static const uint8_t secret[DT_SECRET_BYTES] = { 7 };
static char loopback[] = "127.0.0.1";
static struct dt_hostshm map;

struct rank {
    pthread_t thread;
    struct dt_listener listener;
    struct dt_agentlink agent;
    struct dt_coll_error coll_error;
    struct dt_mesh mesh;
    uint64_t calls;
    dt_result_t result; /* of the body, or the one that it reports */
    const char *bad;    /* what was wrong */
};

static uint32_t streams = 1;
static bool elsewhere_connected;
static struct rank ranks[MOST];
static struct dt_msg_addr addrs[MOST];
static dt_result_t (*body)(struct rank *r);

#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            r->bad = #what;                                                                        \
            return DT_ERR_INTERNAL;                                                                \
        }                                                                                          \
    } while (0)

static void *live(void *arg)
{
    struct rank *r = arg;

    r->result = body(r);
    if (r->result != DT_OK)
        dt_flow_fail(&r->mesh, r->result);
    return NULL;
}

static void start(uint32_t n, dt_result_t (*what)(struct rank *r))
{
    assert_int_equal(dt_hostshm_create_private(&map), 0);
    body = what;
    for (uint32_t i = 0; i < n; i++) {
        struct rank *r = &ranks[i];

        *r = (struct rank){ 0 };
        dt_listener_init(&r->listener);
        dt_agentlink_none(&r->agent);
        addrs[i] = (struct dt_msg_addr){ .host = loopback };
        assert_int_equal(dt_listener_open(&r->listener, &addrs[i].port), 0);
        dt_listener_admit(&r->listener, secret, GENERATION, i);
        r->mesh = (struct dt_mesh){ .comm = 12,
                                    .me = i,
                                    .size = n,
                                    .streams = streams,
                                    .addrs = addrs,
                                    .listener = &r->listener,
                                    .alarm = { &r->agent, &map, -1, &r->coll_error } };
    }
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, live, &ranks[i]), 0);
}

static void end(uint32_t n, dt_result_t expected)
{
    for (uint32_t i = 0; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
    for (uint32_t i = 0; i < n; i++) {
        struct rank *r = &ranks[i];

        if (r->bad || r->result != expected)
            fail_msg("rank %u of %u: result %d, %s", i, n, r->result, r->bad ? r->bad : "");
        dt_mesh_close(&r->mesh);
        dt_listener_close(&r->listener);
        dt_agentlink_close(&r->agent);
    }
    dt_hostshm_unmap(&map);
}

static struct dt_call next(struct rank *r, enum dt_call_kind kind, int root)
{
    return (struct dt_call){
        .number = ++r->calls, .kind = (uint8_t)kind, .dtype = DT_I32, .root = root
    };
}

/* Element i of what "from" sends to "to". */
static int32_t value(uint32_t from, uint32_t to, size_t i)
{
    return (int32_t)(i * 2654435761U + from * 1000003 + to * 7919);
}

static void fill(int32_t *buf, uint32_t from, uint32_t to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf[i] = value(from, to, i);
}

static bool is(const int32_t *buf, uint32_t from, uint32_t to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (buf[i] != value(from, to, i))
            return false;
    }
    return true;
}

/* Unequal counts: some are 0, one needs many frames. */
static size_t count_between(uint32_t from, uint32_t to)
{
    uint32_t x = from * 3 + to;

    return x % 5 == 0 ? 0 : x % 7 == 1 ? BIG : x * 11;
}

static dt_result_t all_to_all(struct rank *r)
{
    uint32_t n = r->mesh.size, me = r->mesh.me;
    size_t given[MOST], taken[MOST], in_total = 0, out_total = 0;
    struct dt_call call = next(r, DT_CALL_ALL_TO_ALLV, -1);

    for (uint32_t i = 0; i < n; i++) {
        in_total += given[i] = count_between(me, i);
        out_total += taken[i] = count_between(i, me);
    }
    int32_t *in = malloc(in_total * 4 + 1), *out = malloc(out_total * 4 + 1), *p = in;
    for (uint32_t i = 0; i < n; p += given[i++])
        fill(p, me, i, given[i]);
    EXPECT(dt_tcp_all_to_all(&r->mesh, &call, in, &(struct dt_blocks){ given, 0 }, out,
                             &(struct dt_blocks){ taken, 0 }) == DT_OK);
    p = out;
    for (uint32_t i = 0; i < n; p += taken[i++])
        EXPECT(is(p, i, me, taken[i]));
    free(in);
    free(out);
    return DT_OK;
}

static dt_result_t all_gather(struct rank *r, size_t each)
{
    uint32_t n = r->mesh.size, me = r->mesh.me;
    size_t counts[MOST], total = 0, mine = 0;
    struct dt_blocks blocks = { each ? NULL : counts, each };
    struct dt_call call = next(r, DT_CALL_ALL_GATHER, -1);

    for (uint32_t i = 0; i < n; i++) {
        counts[i] = each ? each : count_between(i, 1);
        mine = i == me ? total : mine;
        total += counts[i];
    }
    int32_t *out = malloc(total * 4 + 1), *p = out;
    fill(out + mine, me, 0, counts[me]);
    EXPECT(dt_tcp_all_gather(&r->mesh, &call, out + mine, out, &blocks) == DT_OK);
    for (uint32_t i = 0; i < n; p += counts[i++])
        EXPECT(is(p, i, 0, counts[i]));
    free(out);
    return DT_OK;
}

/* Ranks that share a host exchange nothing here. All others send 3 to each other. */
static dt_result_t between_hosts_only(struct rank *r)
{
    static const uint32_t node_of[MOST] = { 0, 1, 0, 1, 1 };
    enum { EACH = 3 };
    uint32_t n = r->mesh.size, me = r->mesh.me;
    struct dt_blocks blocks = { NULL, EACH };
    struct dt_call call = next(r, DT_CALL_ALL_TO_ALL, -1);
    int32_t in[MOST * EACH] = { 0 }, out[MOST * EACH], untouched[EACH] = { -1, -1, -1 };

    r->mesh.node_of = node_of;
    memset(out, 0xff, sizeof out);
    for (uint32_t i = 0; i < n; i++)
        fill(in + EACH * i, me, i, EACH);
    EXPECT(dt_tcp_all_to_all(&r->mesh, &call, in, &blocks, out, &blocks) == DT_OK);
    for (uint32_t i = 0; i < n; i++) {
        if (i != me && node_of[i] == node_of[me])
            EXPECT(memcmp(out + EACH * i, untouched, sizeof untouched) == 0);
        else
            EXPECT(is(out + EACH * i, i, me, EACH));
    }
    memset(out, 0xff, sizeof out);
    call = next(r, DT_CALL_GATHER, 0);
    EXPECT(dt_tcp_rooted(&r->mesh, &call, &(struct dt_rooted){ true, 0, out, &blocks, in, EACH }) ==
           DT_OK);
    for (uint32_t i = 1; me == 0 && i < n; i++) {
        if (node_of[i] == node_of[0])
            EXPECT(memcmp(out + EACH * i, untouched, sizeof untouched) == 0);
        else
            EXPECT(is(out + EACH * i, i, 0, EACH));
    }
    call = next(r, DT_CALL_SCATTER, 0);
    memset(out, 0xff, sizeof untouched);
    EXPECT(dt_tcp_rooted(&r->mesh, &call,
                         &(struct dt_rooted){ false, 0, in, &blocks, out, EACH }) == DT_OK);
    if (me != 0 && node_of[me] == node_of[0])
        EXPECT(memcmp(out, untouched, sizeof untouched) == 0);
    else
        EXPECT(is(out, 0, me, EACH));
    return DT_OK;
}

/* To root and back. */
static dt_result_t gather_and_scatter(struct rank *r, uint32_t root)
{
    uint32_t n = r->mesh.size, me = r->mesh.me;
    size_t counts[MOST], total = 0, mine = count_between(me, root);
    struct dt_blocks blocks = { counts, 0 };
    struct dt_call call = next(r, DT_CALL_GATHERV, (int)root);
    int32_t *block = malloc(mine * 4 + 1), *all, *p;

    for (uint32_t i = 0; i < n; i++)
        total += counts[i] = count_between(i, root);
    all = p = malloc(total * 4 + 1);
    fill(block, me, root, mine);
    EXPECT(dt_tcp_rooted(&r->mesh, &call,
                         &(struct dt_rooted){ true, root, all, &blocks, block, mine }) == DT_OK);
    for (uint32_t i = 0; me == root && i < n; p += counts[i++])
        EXPECT(is(p, i, root, counts[i]));
    memset(block, 0, mine * 4);
    call = next(r, DT_CALL_SCATTERV, (int)root);
    EXPECT(dt_tcp_rooted(&r->mesh, &call,
                         &(struct dt_rooted){ false, root, all, &blocks, block, mine }) == DT_OK);
    EXPECT(is(block, me, root, mine));
    free(block);
    free(all);
    return DT_OK;
}

/* Passes data round the ranks: the last one receives before it sends. */
static dt_result_t pass_on(struct rank *r)
{
    uint32_t n = r->mesh.size, me = r->mesh.me, to = (me + 1) % n, from = (me + n - 1) % n;
    uint64_t before = r->calls + 1;
    struct dt_call out = { .number = before + me, .kind = DT_CALL_SEND, .dtype = DT_I32 };
    struct dt_call in = { .number = before + from, .kind = DT_CALL_SEND, .dtype = DT_I32 };
    int32_t *given = malloc(BIG * 4), *taken = malloc(BIG * 4);

    r->calls += n; /* other ranks may be in a later call already, whose number must be higher */
    fill(given, me, to, BIG);
    if (me != 0)
        EXPECT(dt_tcp_recv(&r->mesh, &in, taken, BIG, from) == DT_OK);
    EXPECT(dt_tcp_send(&r->mesh, &out, given, BIG, to) == DT_OK);
    if (me == 0)
        EXPECT(dt_tcp_recv(&r->mesh, &in, taken, BIG, from) == DT_OK);
    EXPECT(is(taken, from, me, BIG));
    free(given);
    free(taken);
    return DT_OK;
}

static dt_result_t everything(struct rank *r)
{
    dt_result_t result = DT_OK;

    for (int again = 0; again < 3 && result == DT_OK; again++) {
        result = all_to_all(r);
        if (result == DT_OK)
            result = all_gather(r, again == 2 ? BIG : (size_t)again);
        for (uint32_t root = 0; root < r->mesh.size && result == DT_OK; root++)
            result = gather_and_scatter(r, root);
        if (result == DT_OK && r->mesh.size > 1)
            result = pass_on(r);
    }
    return result;
}

static void every_block_arrives(void **state)
{
    (void)state;
    for (streams = 1; streams <= 3; streams += 2) {
        for (uint32_t n = 1; n <= MOST; n += SANITIZED ? 2 : 1) {
            start(n, everything);
            end(n, DT_OK);
        }
    }
    streams = 1;
}

/* Rank 1 sends one more than rank 0 expects, and learns of it in its next call at the latest. */
static dt_result_t disagree(struct rank *r)
{
    uint32_t me = r->mesh.me;
    size_t counts[MOST] = { 9, 9, 9 };
    struct dt_call call = next(r, DT_CALL_GATHERV, 0);
    int32_t in[10] = { 0 }, out[27];
    dt_result_t result =
        dt_tcp_rooted(&r->mesh, &call,
                      &(struct dt_rooted){ true, 0, out, &(struct dt_blocks){ counts, 0 }, in,
                                           me == 1 ? 10 : 9 });

    call = next(r, DT_CALL_SEND, 0);
    return me == 1 && result == DT_OK ? dt_tcp_recv(&r->mesh, &call, in, 1, 0) : result;
}

static void counts_that_differ_are_named(void **state)
{
    (void)state;
    start(2, disagree);
    end(2, DT_ERR_MISMATCH);
    assert_int_equal(ranks[0].coll_error.giver, 1);
    assert_int_equal(ranks[0].coll_error.taker, 0);
    assert_int_equal(ranks[0].coll_error.given, 10);
    assert_int_equal(ranks[0].coll_error.expected, 9);
}

/* Rank 1 closes its connections, as the kernel does for a killed process, while rank 0 waits for
 * more. */
static dt_result_t hang_up(struct rank *r)
{
    struct dt_call call = next(r, DT_CALL_SEND, -1);
    int32_t *buf = calloc(BIG, sizeof *buf);
    uint32_t peer = 1 - r->mesh.me;
    dt_result_t result;

    if (r->mesh.me == 1) {
        result = dt_mesh_need(&r->mesh, &peer, 1, streams);
        dt_mesh_close(&r->mesh);
        result = result == DT_OK ? DT_ERR_PEER : result;
    } else {
        result = dt_tcp_recv(&r->mesh, &call, buf, BIG, peer);
    }
    free(buf);
    return result;
}

static void a_peer_that_is_gone_is_to_blame(void **state)
{
    (void)state;
    start(2, hang_up);
    end(2, DT_ERR_PEER);
    assert_int_equal(ranks[0].coll_error.rank, 1);
}

/* ---- a failure: rank 1 reports it after a frame, and rank 0 reads both at the same time ---- */

struct two_frames { /* only one of which arrives */
    uint8_t header[DT_DATAFRAME_HEADER];
    int32_t data;
    uint8_t failure[DT_DATAFRAME_HEADER];
};

static struct iovec one_word(void *arg, const struct dt_flow *f, size_t k)
{
    (void)f;
    return (struct iovec){ (int32_t *)arg + k, sizeof(int32_t) };
}

static dt_result_t fail_early(struct rank *r)
{
    const struct dt_call call = next(r, DT_CALL_SEND, -1);
    const struct dt_dataframe h = {
        .type = DT_DATAFRAME_DATA, .rank = 1, .bytes = sizeof(int32_t), .call = call
    };
    uint32_t peer = 1 - r->mesh.me;
    int32_t words[2];
    struct dt_flow from = { .peer = peer, .frames = 2 };
    const struct dt_traffic t = {
        .call = &call, .flows = &from, .n = 1, .frame = one_word, .arg = words
    };
    struct two_frames both = { .data = 5 };
    const size_t first = offsetof(struct two_frames, failure);

    EXPECT(dt_mesh_need(&r->mesh, &peer, 1, streams) == DT_OK);
    if (r->mesh.me == 1) {
        dt_dataframe_put(&h, both.header);
        EXPECT(send(r->mesh.links[0].fd, &both, first, MSG_NOSIGNAL) == (ssize_t)first);
        return DT_ERR_NOMEM;
    }
    while (recv(r->mesh.links[1].fd, &both, sizeof both, MSG_PEEK) < (ssize_t)sizeof both)
        sched_yield();
    return dt_flow_run(&r->mesh, &t);
}

static void a_failure_after_a_frame_is_received(void **state)
{
    (void)state;
    start(2, fail_early);
    end(2, DT_ERR_NOMEM);
}

/* ---- a slow link: rank 1 sends a frame in pieces, each when rank 0 sleeps ---- */

enum {
    PIECES = 100,
    PIECE = 1000,
    OVERHEAR_MS = 200, /* a rank that sleeps also wakes this often */
};

static atomic_int sleeper; /* the thread of rank 0, once it has begun */

static bool is_asleep(int thread)
{
    char path[64], state = '?';
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    f = fopen(path, "r");
    if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    if (f)
        fclose(f);
    return state == 'S';
}

static void send_when_asleep(int fd, const void *bytes, size_t n)
{
    while (!is_asleep(atomic_load(&sleeper)))
        sched_yield();
    send(fd, bytes, n, MSG_NOSIGNAL);
}

static void give(struct rank *r, size_t bytes, size_t piece)
{
    struct dt_call call = next(r, DT_CALL_SEND, -1);
    struct dt_dataframe h = {
        .type = DT_DATAFRAME_DATA, .rank = 1, .bytes = (uint32_t)bytes, .call = call
    };
    uint8_t header[DT_DATAFRAME_HEADER];
    int32_t data[PIECES * PIECE / 4];
    int fd = r->mesh.links[0].fd;

    fill(data, 1, 0, bytes / 4);
    dt_dataframe_put(&h, header);
    send_when_asleep(fd, header, 7);
    send_when_asleep(fd, header + 7, sizeof header - 7);
    for (size_t at = 0; at < bytes; at += piece)
        send_when_asleep(fd, (const char *)data + at, piece);
}

static dt_result_t take(struct rank *r, size_t bytes)
{
    struct dt_call call = next(r, DT_CALL_SEND, -1);
    int32_t data[PIECES * PIECE / 4];

    EXPECT(dt_tcp_recv(&r->mesh, &call, data, bytes / 4, 1) == DT_OK);
    EXPECT(is(data, 1, 0, bytes / 4));
    return DT_OK;
}

static dt_result_t trickle(struct rank *r)
{
    uint32_t peer = 1 - r->mesh.me;
    struct rusage before, after;
    int64_t begun = dt_clock_ms();

    EXPECT(dt_mesh_need(&r->mesh, &peer, 1, streams) == DT_OK);
    if (r->mesh.me == 1) {
        give(r, PIECES * PIECE, PIECE);
        give(r, 4, 4); /* the last request is not wanted now */
        return DT_OK;
    }
    getrusage(RUSAGE_THREAD, &before);
    atomic_store(&sleeper, (int)gettid());
    EXPECT(take(r, PIECES * PIECE) == DT_OK);
    getrusage(RUSAGE_THREAD, &after);
    EXPECT(after.ru_nvcsw - before.ru_nvcsw < PIECES / 2 + (dt_clock_ms() - begun) / OVERHEAR_MS);
    return take(r, 4);
}

static void only_a_whole_frame_wakes_a_rank(void **state)
{
    (void)state;
    atomic_store(&sleeper, 0);
    start(2, trickle);
    end(2, DT_OK);
}

/* Rank 1 sends bytes that are no frame where rank 0 expects one. */
static dt_result_t babble(struct rank *r)
{
    struct dt_call call = next(r, DT_CALL_SEND, -1);
    char noise[4096];
    uint32_t peer = 1 - r->mesh.me;
    int32_t x = 0;

    if (r->mesh.me == 0)
        return dt_tcp_recv(&r->mesh, &call, &x, 1, peer);
    EXPECT(dt_mesh_need(&r->mesh, &peer, 1, streams) == DT_OK);
    memset(noise, 'x', sizeof noise);
    EXPECT(send(r->mesh.links[peer].fd, noise, sizeof noise, MSG_NOSIGNAL) > 0);
    return DT_ERR_INTERNAL;
}

static void noise_is_refused(void **state)
{
    (void)state;
    start(2, babble);
    end(2, DT_ERR_INTERNAL);
    assert_int_equal(ranks[0].coll_error.rank, 1);
}

/* ---- streams ---- */

static int with_streams(void **state)
{
    (void)state;
    streams = 3;
    return 0;
}

static int with_one(void **state)
{
    (void)state;
    streams = 1;
    return 0;
}

/* One connection ends, as if something between the hosts had forgotten it, and no rank has died. */
static dt_result_t lose_a_stream(struct rank *r)
{
    struct dt_call call = next(r, DT_CALL_SEND, -1);
    uint32_t peer = 1 - r->mesh.me;
    int32_t *buf = calloc(BIG, sizeof *buf);
    dt_result_t result = DT_ERR_PEER;

    EXPECT(dt_mesh_need(&r->mesh, &peer, 1, streams) == DT_OK);
    if (r->mesh.me == 1)
        shutdown(dt_mesh_link(&r->mesh, peer, streams - 1)->fd, SHUT_RDWR);
    else
        result = dt_tcp_recv(&r->mesh, &call, buf, BIG, peer);
    free(buf);
    EXPECT(result == DT_ERR_PEER);
    return DT_OK;
}

static void a_rank_that_ends_a_connection_is_to_blame(void **state)
{
    (void)state;
    start(2, lose_a_stream);
    end(2, DT_OK);
    assert_int_equal(ranks[0].coll_error.rank, 1);
}

static bool waits_for_all;

/* Rank 0 has called but not learned that it was accepted. It calls again, while rank 1 has the
 * connection and waits for data from another one, or from all. Then they use all connections. */
static dt_result_t call_twice(struct rank *r)
{
    struct dt_call call = next(r, DT_CALL_SEND, -1);
    uint32_t peer = 1 - r->mesh.me;
    int32_t *buf = calloc(BIG, sizeof *buf);
    dt_result_t result;

    EXPECT(dt_mesh_need(&r->mesh, &peer, 1, streams) == DT_OK);
    if (r->mesh.me == 0) {
        struct dt_mesh_link *link = dt_mesh_link(&r->mesh, peer, 1);
        int first = link->fd;

        if (!waits_for_all)
            close(first);
        *link = (struct dt_mesh_link){ .fd = -1 };
        EXPECT(dt_mesh_need(&r->mesh, &peer, 1, streams) == DT_OK);
        if (waits_for_all)
            close(first);
        else
            EXPECT(dt_tcp_send(&r->mesh, &call, buf, 1, peer) == DT_OK);
        fill(buf, 0, 1, BIG);
        call = next(r, DT_CALL_SEND, -1);
        result = dt_tcp_send(&r->mesh, &call, buf, BIG, peer);
    } else {
        EXPECT(waits_for_all || dt_tcp_recv(&r->mesh, &call, buf, 1, peer) == DT_OK);
        call = next(r, DT_CALL_SEND, -1);
        result = dt_tcp_recv(&r->mesh, &call, buf, BIG, peer);
        EXPECT(result != DT_OK || is(buf, 0, 1, BIG));
    }
    free(buf);
    return result;
}

static void a_caller_without_answer_calls_again(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        waits_for_all = all;
        start(2, call_twice);
        end(2, DT_OK);
    }
}

/* Rank 0 calls again after rank 1 has sent data along the first connection. Rank 1 is in a call of
 * another mesh by then, in which the two are connected or not. */
static dt_result_t lose_what_was_sent(struct rank *r)
{
    struct dt_mesh other = r->mesh;
    struct dt_call call = next(r, DT_CALL_SEND, -1);
    uint32_t peer = 1 - r->mesh.me;
    struct dt_mesh_link *link;
    int32_t word = 0;
    dt_result_t result;
    char byte = 0;

    other.number = 1;
    EXPECT(dt_mesh_need(&r->mesh, &peer, 1, 1) == DT_OK);
    if (elsewhere_connected)
        EXPECT(dt_mesh_need(&other, &peer, 1, 1) == DT_OK);
    link = dt_mesh_link(&r->mesh, peer, 0);
    if (r->mesh.me == 0) {
        while (recv(link->fd, &byte, 1, 0) < 0)
            sched_yield();
        close(link->fd);
        *link = (struct dt_mesh_link){ .fd = -1 };
        result = dt_tcp_recv(&r->mesh, &call, &word, 1, peer);
    } else {
        dt_mesh_use(&r->mesh, link);
        EXPECT(send(link->fd, &byte, 1, MSG_NOSIGNAL) == 1);
        result = dt_tcp_recv(&other, &call, &word, 1, peer);
        dt_hostshm_stop(&map, DT_ERR_PEER, 0); /* as agents do */
    }
    dt_mesh_close(&other);
    return result;
}

static void a_second_call_after_data_was_sent_is_an_error(void **state)
{
    (void)state;
    for (int connected = 0; connected < 2; connected++) {
        elsewhere_connected = connected;
        start(2, lose_what_was_sent);
        end(2, DT_ERR_PEER);
        assert_int_equal(ranks[1].coll_error.rank, 0);
    }
}

enum { WORDS = 7 };

static struct {
    int32_t words[WORDS];
    size_t done[WORDS]; /* as the flow reported it, each time */
    _Atomic size_t n;
} arrivals;

static void note_arrival(void *arg, const struct dt_flow *f)
{
    (void)arg;
    arrivals.done[arrivals.n] = f->done;
    arrivals.n++;
}

static void send_word(struct rank *r, const struct dt_call *call, size_t k)
{
    const struct dt_dataframe h = {
        .type = DT_DATAFRAME_DATA, .rank = 1, .bytes = sizeof(int32_t), .call = *call
    };
    const int32_t word = value(1, 0, k);
    uint8_t frame[DT_DATAFRAME_HEADER + sizeof word];

    dt_dataframe_put(&h, frame);
    memcpy(frame + DT_DATAFRAME_HEADER, &word, sizeof word);
    send(dt_mesh_link(&r->mesh, 0, (uint32_t)(k % streams))->fd, frame, sizeof frame, MSG_NOSIGNAL);
}

static void await_reader(uint32_t stream)
{
    int unread = 1;

    while (unread > 0 || !is_asleep(atomic_load(&sleeper))) {
        ioctl(dt_mesh_link(&ranks[0].mesh, 1, stream)->fd, FIONREAD, &unread);
        sched_yield();
    }
}

/* The first word arrives when everything on the other connections has been read. */
static dt_result_t overtake(struct rank *r)
{
    static const size_t early[] = { 1, 4, 2, 5 };
    struct dt_call call = next(r, DT_CALL_SEND, -1);
    uint32_t peer = 1 - r->mesh.me;
    struct dt_flow from = { .peer = peer, .frames = WORDS };
    const struct dt_traffic t = { .call = &call,
                                  .flows = &from,
                                  .n = 1,
                                  .batch = DT_FLOW_BATCH,
                                  .frame = one_word,
                                  .moved = note_arrival,
                                  .arg = arrivals.words };

    EXPECT(dt_mesh_need(&r->mesh, &peer, 1, streams) == DT_OK);
    if (r->mesh.me == 0) {
        atomic_store(&sleeper, (int)gettid());
        return dt_flow_run(&r->mesh, &t);
    }
    while (!atomic_load(&sleeper))
        sched_yield();
    for (size_t i = 0; i < sizeof early / sizeof *early; i++)
        send_word(r, &call, early[i]);
    await_reader(1);
    await_reader(2);
    EXPECT(arrivals.n == 0);
    for (size_t k = 0; k < WORDS; k += streams)
        send_word(r, &call, k);
    return DT_OK;
}

static void frames_that_overtake_wait_for_their_turn(void **state)
{
    (void)state;
    atomic_store(&sleeper, 0);
    arrivals.n = 0;
    start(2, overtake);
    end(2, DT_OK);
    assert_int_equal(arrivals.n, WORDS);
    for (size_t k = 0; k < WORDS; k++) {
        assert_int_equal(arrivals.done[k], k + 1);
        assert_int_equal(arrivals.words[k], value(1, 0, k));
    }
}

/* Rank 0 waits for rank 1 for so long that it looks at what rank 2 has sent: a piece of its vector,
 * whose count is not the call's. */
static dt_result_t begin_late(struct rank *r)
{
    static const uint32_t peers[] = { 1, 2, 0 };
    struct dt_call call = next(r, DT_CALL_ALL_REDUCE, -1);
    struct dt_flow from = { .peer = 1, .frames = 1 };
    const struct dt_traffic t = {
        .call = &call, .flows = &from, .n = 1, .frame = one_word, .arg = arrivals.words
    };

    call.op = DT_ADASUM;
    call.count = 3;
    if (r->mesh.me == 0) {
        EXPECT(dt_mesh_need(&r->mesh, peers, 2, streams) == DT_OK);
        return dt_flow_run(&r->mesh, &t);
    }
    EXPECT(dt_mesh_need(&r->mesh, peers + 2, 1, streams) == DT_OK);
    if (r->mesh.me == 1)
        poll(NULL, 0, 3 * OVERHEAR_MS);
    else
        call.count = 1;
    send_word(r, &call, 0);
    return DT_OK;
}

static void pieces_of_vectors_may_come_early(void **state)
{
    (void)state;
    start(3, begin_late);
    end(3, DT_OK);
}

/* ---- numbers that are rounded on the way ---- */

enum { NUMBERS = 10 * 64 * 1024 };

static float numbers[2][NUMBERS], sums[2][NUMBERS], residuals[2][NUMBERS];

/* The buffers are so small that a frame goes in many pieces, each requested separately. */
static dt_result_t squeeze(struct rank *r)
{
    static const uint32_t peers[] = { 0, 1 };
    const int bytes = 4096;
    uint32_t me = r->mesh.me, peer = 1 - me;
    dt_all_reduce_options_t options = DT_ALL_REDUCE_OPTIONS_INIT;
    struct dt_leaders leaders = {
        .mesh = &r->mesh, .peers = peers, .me = me, .n = 2, .tuning = &dt_tuning_builtin
    };
    struct dt_call call = next(r, DT_CALL_ALL_REDUCE, -1);
    dt_result_t result;

    call.dtype = DT_F32;
    call.op = DT_SUM;
    call.count = NUMBERS;
    options.wire = DT_WIRE_INT8;
    options.residual = residuals[me];
    for (size_t i = 0; i < NUMBERS; i++)
        numbers[me][i] = (float)(value(me, peer, i) % 1000);
    EXPECT(dt_mesh_need(&r->mesh, &peer, 1, streams) == DT_OK);
    for (uint32_t stream = 0; stream < streams; stream++)
        setsockopt(dt_mesh_link(&r->mesh, peer, stream)->fd, SOL_SOCKET, SO_SNDBUF, &bytes,
                   sizeof bytes);
    result = dt_compressed_all_reduce(&leaders, &call, &options, numbers[me], sums[me], NUMBERS, 1);
    dt_leaders_close(&leaders);
    return result;
}

/* What rounding took from each host's numbers and from their sum is in one of the residuals. */
static void residuals_are_complete_when_frames_go_in_pieces(void **state)
{
    (void)state;
    memset(residuals, 0, sizeof residuals);
    start(2, squeeze);
    end(2, DT_OK);
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    for (size_t i = 0; i < NUMBERS; i++) {
        double lost = (double)residuals[0][i] + residuals[1][i];
        double exact = (double)numbers[0][i] + numbers[1][i];

        if (fabs(sums[0][i] + lost - exact) > 0.01)
            fail_msg("number %zu: %g and %g lost of %g", i, sums[0][i], lost, exact);
    }
}

static void data_within_a_host_is_left_alone(void **state)
{
    (void)state;
    start(MOST, between_hosts_only);
    end(MOST, DT_OK);
}

/* ---- very many hosts, in a thread of the program ---- */

enum { HOSTS = 8192, STACK = 1024 * 1024 };

static void *fold_among_many(void *leaders)
{
    static const dt_all_reduce_options_t options = { .wire = DT_WIRE_F16 };
    static uint16_t data[BIG];
    const struct dt_call call = {
        .number = 1, .kind = DT_CALL_ALL_REDUCE, .dtype = DT_F16, .op = DT_SUM, .count = BIG
    };
    float x = 0;

    return dt_compressed_all_reduce(leaders, &call, &options, &x, &x, 1, 1) == DT_ERR_PEER &&
                   dt_leaders_all_reduce(leaders, &call, data, data, BIG, 1) == DT_ERR_PEER
               ? NULL
               : leaders;
}

/* The job has been stopped, so no peers are needed. */
static void flows_need_no_more_stack_for_more_hosts(void **state)
{
    uint32_t *peers = calloc(HOSTS, sizeof *peers);
    struct rank *r = &ranks[0];
    struct dt_leaders leaders = {
        .mesh = &r->mesh, .peers = peers, .n = HOSTS, .tuning = &dt_tuning_builtin
    };
    pthread_attr_t attr;
    void *failed;

    (void)state;
    assert_non_null(peers);
    for (uint32_t i = 0; i < HOSTS; i++)
        peers[i] = i;
    assert_int_equal(dt_hostshm_create_private(&map), 0);
    dt_hostshm_stop(&map, DT_ERR_PEER, 1);
    *r = (struct rank){ 0 };
    dt_listener_init(&r->listener);
    dt_agentlink_none(&r->agent);
    r->mesh = (struct dt_mesh){ .size = HOSTS,
                                .streams = 1,
                                .listener = &r->listener,
                                .alarm = { &r->agent, &map, -1, &r->coll_error } };
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
    assert_int_equal(pthread_create(&r->thread, &attr, fold_among_many, &leaders), 0);
    assert_int_equal(pthread_join(r->thread, &failed), 0);
    assert_null(failed);
    dt_leaders_close(&leaders);
    dt_mesh_close(&r->mesh);
    dt_listener_close(&r->listener);
    dt_agentlink_close(&r->agent);
    dt_hostshm_unmap(&map);
    free(peers);
}

/* Runs before there are threads. */
static int choose_kernels(void **state)
{
    (void)state;
    dt_reduce_kernels();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_within_a_host_is_left_alone),
        cmocka_unit_test(every_block_arrives),
        CHECKS("27", counts_that_differ_are_named),
        cmocka_unit_test(a_peer_that_is_gone_is_to_blame),
        cmocka_unit_test(a_failure_after_a_frame_is_received),
        cmocka_unit_test(only_a_whole_frame_wakes_a_rank),
        cmocka_unit_test_setup_teardown(a_rank_that_ends_a_connection_is_to_blame, with_streams,
                                        with_one),
        cmocka_unit_test_setup_teardown(a_caller_without_answer_calls_again, with_streams,
                                        with_one),
        cmocka_unit_test(a_second_call_after_data_was_sent_is_an_error),
        cmocka_unit_test_setup_teardown(frames_that_overtake_wait_for_their_turn, with_streams,
                                        with_one),
        cmocka_unit_test(pieces_of_vectors_may_come_early),
        cmocka_unit_test(residuals_are_complete_when_frames_go_in_pieces),
        cmocka_unit_test_setup_teardown(residuals_are_complete_when_frames_go_in_pieces,
                                        with_streams, with_one),
        CHECKS("35", noise_is_refused),
        cmocka_unit_test(flows_need_no_more_stack_for_more_hosts),
    };

    alarm(300); /* a watchdog */
    return cmocka_run_group_tests(tests, choose_kernels, NULL);
}
