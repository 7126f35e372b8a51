/* An agent with a rank that sends any packets and writes anything into their shared memory.
 *
 * The input is a series of actions, each of which begins with a byte.
 *     0 n BYTES     send them as a packet, after the header that every packet has
 *     1 w w BYTES   write eight bytes at that word of the shared memory
 *     2 COMM        PING asks for that communicator (eight bytes)
 *     3 COMM        the communicator is stopped */
#include <string.h>
#include <unistd.h>

#include "launcher/agent/ranklink/callwatch.h"
#include "launcher/agent/ranklink/ranksock.h"
#include "runtime/wire/frame.h"
#include "runtime/wire/hostshm.h"
#include "runtime/wire/rankmsg.h"
#include "tests/fuzz/fuzz.h"

enum { RANKS = 3, NP = 5, GENERATION = 2, ACTIONS_MAX = 64, PACKET_MAX = 1024 };

struct fixture {
    uv_loop_t loop;
    struct dt_msg_start start;
    struct dt_ranksock *sock;
    struct dt_hostshm shm;
};

/* The text goes to all ranks and to the launcher, which refuses longer texts. */
static void check_failed(const struct dt_msg_failed *m)
{
    REQUIRE(m->rank < NP && m->code < 0 && m->code >= DT_RANK_CODE_MIN);
    REQUIRE(strlen(m->text) <= DT_RANK_FAILED_TEXT);
}

static void on_message(void *arg, uint8_t type, const void *msg)
{
    const union dt_msg *m = msg;
    struct dt_put bytes = { 0 };

    (void)arg;
    if (type == DT_MSG_RANK_HELLO)
        REQUIRE(m->rank_hello.rank < NP);
    else if (type == DT_MSG_LOG)
        REQUIRE(strlen(m->log.text) < 2 * DT_RANK_NOTE_TEXT);
    else if (type == DT_MSG_FAILED)
        check_failed(msg);
    else if (type == DT_MSG_LAST_CALLS)
        REQUIRE(m->last_calls.rank < NP);
    dt_msg_encode(&bytes, type, msg);
    REQUIRE(!bytes.failed);
    dt_put_free(&bytes);
}

static void on_step(void *arg, uint32_t local_rank, int64_t step)
{
    (void)arg;
    (void)step;
    REQUIRE(local_rank < RANKS);
}

static bool has_room(void *arg)
{
    (void)arg;
    return true;
}

/* Reads the answers, so that no socket fills up. Looks at one copy of the shared memory, which is
 * enough. */
static void hear(struct fixture *f)
{
    struct dt_rankmsg_from from;
    struct dt_rankmsg msg;

    uv_run(&f->loop, UV_RUN_NOWAIT);
    while (dt_rankmsg_recv(dt_ranksock_child_fd(f->sock, 0), &msg, &from, MSG_DONTWAIT) == 1) {
        if (msg.type == DT_RANK_WELCOME && !f->shm.head)
            REQUIRE(dt_hostshm_map(&f->shm, from.fd, GENERATION, RANKS, 0) == 0);
        REQUIRE(msg.type != DT_RANK_MEMORY || (msg.memory.error == 0) == (from.fd >= 0));
        REQUIRE(msg.type != DT_RANK_SEGMENT || (msg.segment.error == 0) == (from.fd >= 0));
        if (from.fd >= 0)
            close(from.fd);
    }
}

static void begin(struct fixture *f)
{
    static const struct dt_ranksock_events events = { on_message, on_step, has_room };
    static uint32_t ranks[RANKS] = { 0, 2, 3 };
    struct dt_rankmsg hello = { .type = DT_RANK_HELLO,
                                .hello = { DT_RANK_PROTOCOL, 0, GENERATION, 0 } };
    struct dt_error err = { 0 };

    *f = (struct fixture){ .start = { .generation = GENERATION, .np = NP, .nodes = 2 } };
    f->start.ranks = (struct dt_u32s){ ranks, RANKS };
    f->start.host = (char *)(uintptr_t) "host";
    REQUIRE(uv_loop_init(&f->loop) == 0);
    f->sock = dt_ranksock_create(&f->loop, &f->start, &events, f, &err);
    REQUIRE(f->sock);
    REQUIRE(dt_rankmsg_send(dt_ranksock_child_fd(f->sock, 0), &hello, -1, MSG_DONTWAIT) == 0);
    hear(f);
    REQUIRE(f->shm.head);
}

static void end(struct fixture *f)
{
    dt_ranksock_destroy(f->sock);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    REQUIRE(uv_loop_close(&f->loop) == 0);
    dt_hostshm_unmap(&f->shm);
}

static void send_packet(struct fixture *f, struct dt_get *g)
{
    uint8_t packet[PACKET_MAX] = "DTRK";
    size_t n = dt_get_u8(g);
    const uint8_t *bytes = dt_get_bytes(g, n);

    if (!bytes)
        return;
    memcpy(packet + 4, bytes, n);
    REQUIRE(send(dt_ranksock_child_fd(f->sock, 0), packet, 4 + n, MSG_DONTWAIT) ==
            (ssize_t)(4 + n));
}

static void scribble(struct fixture *f, struct dt_get *g)
{
    size_t words = (sizeof *f->shm.head + RANKS * sizeof *f->shm.ranks) / sizeof(uint64_t);
    size_t at = dt_get_u16(g) % words;
    uint64_t value = dt_get_u64(g);

    memcpy((uint8_t *)f->shm.head + at * sizeof value, &value, sizeof value);
}

/* What the agent would send to the launcher fits a message and can be parsed. */
static void look(struct fixture *f, uint64_t comm)
{
    struct dt_msg_asked asked = { comm };
    struct dt_msg_pong pong = { 0 };
    struct dt_put bytes = { 0 };
    union dt_msg again;

    dt_ranksock_look(f->sock, &(struct dt_msg_list){ &asked, 1 }, &pong);
    dt_msg_encode(&bytes, DT_MSG_PONG, &pong);
    REQUIRE(!bytes.failed && bytes.len < DT_MESSAGE_MAX);
    REQUIRE(dt_msg_decode(DT_MSG_PONG, bytes.data, bytes.len, &again) == 0);
    dt_msg_free(DT_MSG_PONG, &again);
    dt_put_free(&bytes);
    dt_callwatch_free_report(&pong.comms);
}

static void act(struct fixture *f, struct dt_get *g)
{
    switch (dt_get_u8(g) % 4) {
    case 0:
        send_packet(f, g);
        break;
    case 1:
        scribble(f, g);
        break;
    case 2:
        look(f, dt_get_u64(g));
        break;
    default:
        dt_ranksock_abort(f->sock, dt_get_u64(g), -3, 1, "why");
    }
    hear(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dt_get g = dt_get_init(data, n);
    struct fixture f;

    begin(&f);
    for (int i = 0; i < ACTIONS_MAX && !g.failed && g.p < g.end; i++)
        act(&f, &g);
    look(&f, 1);
    for (uint32_t i = 0; i < RANKS; i++)
        dt_ranksock_drain(f.sock, i);
    end(&f);
    return 0;
}
