/* The memory of communicators, as the agent keeps it, and what it tells of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/callwatch.h"
#include "launcher/agent/commshm.h"
#include "runtime/wire/frame.h"

enum { GENERATION = 3, HERE = 2, NP = 100 * 1000 };

static uint32_t here[HERE] = { 0, 1 };
static const struct dt_u32s ranks = { here, HERE };

/* Maps the memory of a communicator of all ranks, of which two are here. */
static void make(struct dt_commshm *c, uint64_t comm, struct dt_hostshm *shm)
{
    int fd = dt_commshm_want(c, comm, HERE, NP);

    assert_true(fd >= 0);
    assert_int_equal(dt_hostshm_map(shm, fd, GENERATION, HERE, NP), 0);
    close(fd);
    for (uint32_t i = 0; i < NP; i++)
        atomic_store_explicit(&shm->members[i], i + 1, memory_order_relaxed);
}

static void look(struct dt_commshm *c, uint64_t now_ns, struct dt_msg_list asked,
                 struct dt_msg_pong *pong)
{
    dt_callwatch_free_told(&pong->comms);
    *pong = (struct dt_msg_pong){ 0 };
    dt_commshm_look(c, &ranks, now_ns, &asked, pong);
}

static uint64_t told(const struct dt_msg_pong *pong, uint32_t i)
{
    return ((const struct dt_msg_comm *)pong->comms.v)[i].comm;
}

/* Twenty communicators of 400 kB each, in which ranks began to wait one after the other. */
static void a_pong_has_those_that_waited_longest(void **state)
{
    enum { COMMS = 20, NONE = 99 };
    struct dt_commshm *c = dt_commshm_create(GENERATION, HERE, NP);
    struct dt_msg_asked asked[] = { { NONE }, { 3 } };
    struct dt_hostshm shm[COMMS];
    struct dt_msg_pong pong = { 0 };
    struct dt_put bytes = { 0 };

    (void)state;
    for (uint32_t i = 0; i < COMMS; i++)
        make(c, 1 + i, &shm[i]);
    for (uint32_t i = COMMS; i-- > 0;) {
        dt_hostshm_note_call(&shm[i].ranks[0], 3, DT_HOSTSHM_INSIDE | DT_CALL_BARRIER);
        look(c, 1000 + COMMS - i, (struct dt_msg_list){ 0 }, &pong);
    }
    look(c, 2000, (struct dt_msg_list){ asked, 2 }, &pong);
    assert_in_range(pong.comms.n, 8, COMMS - 1);
    assert_int_equal(pong.comms.n + pong.more, COMMS + 1);
    assert_int_equal(told(&pong, 0), NONE); /* those that others wait in come first */
    assert_int_equal(told(&pong, 1), 3);
    for (uint32_t i = 2; i < pong.comms.n; i++)
        assert_int_equal(told(&pong, i), COMMS + 2 - i);
    dt_msg_encode(&bytes, DT_MSG_PONG, &pong);
    assert_false(bytes.failed);
    assert_in_range(bytes.len, DT_PONG_COMMS_BYTES / 2, DT_MESSAGE_MAX / 8);
    dt_put_free(&bytes);
    dt_callwatch_free_told(&pong.comms);
    for (uint32_t i = 0; i < COMMS; i++)
        dt_hostshm_unmap(&shm[i]);
    dt_commshm_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pong_has_those_that_waited_longest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
