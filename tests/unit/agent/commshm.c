/* The shared memory of communicators that the agent keeps, and what the agent reports about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "launcher/agent/ranklink/callwatch.h"
#include "launcher/agent/ranklink/commshm.h"
#include "runtime/wire/frame.h"

enum { GENERATION = 3, HERE = 2, NP = 100 * 1000 };

static uint32_t here[HERE] = { 0, 1 };
static const struct dt_u32s ranks = { here, HERE };

/* Maps the memory of a communicator of all ranks, two of which are on this host. */
static void make(struct dt_commshm *c, uint64_t comm, struct dt_hostshm *shm)
{
    int fd = dt_commshm_want(c, 0, comm, HERE, NP);

    assert_true(fd >= 0);
    assert_int_equal(dt_hostshm_map(shm, fd, GENERATION, HERE, NP), 0);
    close(fd);
    for (uint32_t i = 0; i < NP; i++)
        atomic_store_explicit(&shm->members[i], i + 1, memory_order_relaxed);
}

static struct dt_hostshm world;

static int setup(void **state)
{
    int fd = dt_hostshm_create(&world, GENERATION, HERE, 0);

    *state = dt_commshm_create(GENERATION, NP, &world);
    return close(fd);
}

static int teardown(void **state)
{
    dt_commshm_destroy(*state);
    dt_hostshm_unmap(&world);
    return 0;
}

static void look(struct dt_commshm *c, uint64_t now_ns, struct dt_msg_list asked,
                 struct dt_msg_pong *pong)
{
    dt_callwatch_free_report(&pong->comms);
    *pong = (struct dt_msg_pong){ 0 };
    dt_commshm_look(c, &ranks, now_ns, &asked, pong);
}

static uint64_t reported(const struct dt_msg_pong *pong, uint32_t i)
{
    return ((const struct dt_msg_comm *)pong->comms.v)[i].comm;
}

/* In each of twenty communicators of 400 kB a rank begins to wait, one after the other. */
static void a_pong_has_the_communicators_that_waited_longest(void **state)
{
    enum { COMMS = 20, NONE = 99 };
    struct dt_commshm *c = *state;
    struct dt_msg_asked asked[] = { { NONE }, { 3 } };
    struct dt_hostshm shm[COMMS];
    struct dt_msg_pong pong = { 0 };
    struct dt_put bytes = { 0 };

    for (uint32_t i = 0; i < COMMS; i++)
        make(c, 1 + i, &shm[i]);
    for (uint32_t i = COMMS; i-- > 0;) {
        dt_hostshm_note_call(&shm[i].ranks[0], 3, DT_HOSTSHM_INSIDE | DT_CALL_BARRIER);
        look(c, 1000 + COMMS - i, (struct dt_msg_list){ 0 }, &pong);
    }
    look(c, 2000, (struct dt_msg_list){ asked, 2 }, &pong);
    assert_in_range(pong.comms.n, 8, COMMS - 1);
    assert_int_equal(pong.comms.n + pong.more, COMMS + 1);
    assert_int_equal(reported(&pong, 0), NONE); /* communicators that dtrun asks for come first */
    assert_int_equal(reported(&pong, 1), 3);
    for (uint32_t i = 2; i < pong.comms.n; i++)
        assert_int_equal(reported(&pong, i), COMMS + 2 - i);
    dt_msg_encode(&bytes, DT_MSG_PONG, &pong);
    assert_false(bytes.failed);
    assert_in_range(bytes.len, DT_PONG_COMMS_BYTES / 2, DT_MESSAGE_MAX / 8);
    dt_put_free(&bytes);
    dt_callwatch_free_report(&pong.comms);
    for (uint32_t i = 0; i < COMMS; i++)
        dt_hostshm_unmap(&shm[i]);
}

/* Returns the code that has stopped the communicator when the rank joins it, or 0. */
static int found_by(struct dt_commshm *c, uint32_t local_rank, uint64_t comm)
{
    struct dt_hostshm shm;
    int fd = dt_commshm_want(c, local_rank, comm, 1, 4), code;

    assert_true(fd >= 0);
    assert_int_equal(dt_hostshm_map(&shm, fd, GENERATION, 1, 4), 0);
    close(fd);
    code = dt_hostshm_stopped(&shm, NULL);
    assert_string_equal(dt_hostshm_why(&shm), code ? "why" : "");
    dt_hostshm_unmap(&shm);
    assert_true(dt_commshm_done(c, local_rank, comm));
    return code;
}

/* A rank that makes communicators joins late one of many that others have stopped. */
static void a_late_rank_finds_its_communicator_stopped(void **state)
{
    enum { MANY = 1000 };
    struct dt_commshm *c = *state;

    atomic_store(&world.ranks[1].joining, 2);
    for (uint64_t comm = 1; comm <= MANY; comm++)
        dt_commshm_stop(c, comm, DT_HOSTSHM_TIMED_OUT, 0, "why");
    assert_int_equal(found_by(c, 1, 1), DT_HOSTSHM_TIMED_OUT);
    assert_int_equal(found_by(c, 1, MANY), DT_HOSTSHM_TIMED_OUT);
    assert_int_equal(found_by(c, 1, 1), 0); /* another communicator with the same number */
}

static void nothing_is_kept_for_ranks_that_are_not_joining(void **state)
{
    struct dt_commshm *c = *state;
    struct dt_msg_pong pong = { 0 };

    dt_commshm_stop(c, 1, DT_HOSTSHM_TIMED_OUT, 0, "why");
    atomic_store(&world.ranks[0].joining, 1);
    assert_int_equal(found_by(c, 0, 1), 0);
    dt_commshm_stop(c, 2, DT_HOSTSHM_TIMED_OUT, 0, "why");
    atomic_store(&world.ranks[0].joining, 0);
    atomic_store(&world.ranks[1].joining, 1);
    look(c, 1000, (struct dt_msg_list){ 0 }, &pong);
    assert_int_equal(found_by(c, 1, 2), 0); /* the rank began to join after that */
    dt_callwatch_free_report(&pong.comms);
}

/* A rank that says it makes communicators may be lying, and so may one that says that they
 * failed. */
static void invented_communicators_take_bounded_memory(void **state)
{
    enum { MANY = 5000 };
    struct dt_commshm *c = *state;
    uint64_t kept = 0;

    atomic_store(&world.ranks[1].joining, 1);
    for (uint64_t comm = 1; comm <= MANY; comm++) {
        dt_commshm_stop(c, comm, DT_HOSTSHM_TIMED_OUT, 0, "why");
        dt_commshm_stop(c, comm, DT_HOSTSHM_TIMED_OUT, 0,
                        "why"); /* two hosts may report the same */
    }
    for (uint64_t comm = 1; comm <= MANY; comm++)
        kept += found_by(c, 1, comm) != 0;
    assert_in_range(kept, MANY / 2 + 1, MANY - 1);
}

/* Entries for a rank that has given up make room for those that another rank still waits for. */
static void entries_of_no_use_make_room_for_others(void **state)
{
    enum { MANY = 5000 };
    struct dt_commshm *c = *state;

    atomic_store(&world.ranks[1].joining, 1);
    for (uint64_t comm = 1; comm <= MANY; comm++)
        dt_commshm_stop(c, comm, DT_HOSTSHM_TIMED_OUT, 0, "why");
    atomic_store(&world.ranks[1].joining, 0);
    atomic_store(&world.ranks[0].joining, 1);
    dt_commshm_stop(c, MANY + 1, DT_HOSTSHM_TIMED_OUT, 0, "why");
    assert_int_equal(found_by(c, 0, MANY + 1), DT_HOSTSHM_TIMED_OUT);
    atomic_store(&world.ranks[0].joining, 0);
}

static void a_rank_joins_a_communicator_once(void **state)
{
    static const struct {
        uint64_t comm;
        uint32_t members;
        uint32_t size;
    } wrong[] = { { 0, 1, 4 }, { 7, 0, 4 },      { 7, HERE + 1, 4 },
                  { 7, 2, 1 }, { 7, 2, NP + 1 }, { 7, 2, UINT32_MAX } };
    struct dt_commshm *c = *state;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(dt_commshm_want(c, 0, wrong[i].comm, wrong[i].members, wrong[i].size), -1);
        assert_int_equal(errno, EINVAL);
    }
    close(dt_commshm_want(c, 0, 7, 2, 4));
    assert_int_equal(dt_commshm_want(c, 0, 7, 2, 4), -1); /* rank 1 is that member already */
    assert_int_equal(errno, EINVAL);
    assert_false(dt_commshm_done(c, 1, 7));
    assert_false(dt_commshm_shares(c, 1, 7, 2));
    close(dt_commshm_want(c, 1, 7, 2, 4));
    assert_true(dt_commshm_shares(c, 1, 7, 2));
    assert_false(dt_commshm_shares(c, 1, 7, 1));
    assert_true(dt_commshm_shares(c, 1, 0, HERE));
    assert_false(dt_commshm_done(c, 0, 7));
    assert_false(dt_commshm_done(c, 0, 7)); /* once is enough */
    assert_true(dt_commshm_shares(c, 1, 7, 2));
    assert_true(dt_commshm_done(c, 1, 7));
}

static void a_rank_that_gets_no_descriptor_may_ask_again(void **state)
{
    struct dt_commshm *c = *state;
    struct rlimit limit, one_more;
    int next = dup(STDERR_FILENO);

    close(next);
    getrlimit(RLIMIT_NOFILE, &limit);
    one_more = (struct rlimit){ (rlim_t)next + 1, limit.rlim_max }; /* for the memory itself */
    setrlimit(RLIMIT_NOFILE, &one_more);
    assert_int_equal(dt_commshm_want(c, 0, 7, 2, 4), -1);
    assert_int_equal(errno, EMFILE);
    setrlimit(RLIMIT_NOFILE, &limit);
    assert_false(dt_commshm_shares(c, 0, 7, 2));
    close(dt_commshm_want(c, 0, 7, 2, 4));
    assert_true(dt_commshm_shares(c, 0, 7, 2));
}

/* Each test has an agent's side of its own. */
#define FIXED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXED(a_pong_has_the_communicators_that_waited_longest),
        FIXED(a_late_rank_finds_its_communicator_stopped),
        FIXED(nothing_is_kept_for_ranks_that_are_not_joining),
        FIXED(entries_of_no_use_make_room_for_others),
        cmocka_unit_test_setup_teardown(invented_communicators_take_bounded_memory, setup,
                                        teardown),
        FIXED(a_rank_joins_a_communicator_once),
        FIXED(a_rank_that_gets_no_descriptor_may_ask_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
