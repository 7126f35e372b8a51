/* The sockets on which ranks speak PMI-1, and what happens to their descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "launcher/agent/mpi/pmisock.h"
#include "tests/unit/unit.h"

enum { RANKS = 2 };

struct fixture {
    uv_loop_t loop;
    uint32_t numbers[RANKS];
    struct dt_msg_start start;
    struct dt_pmisock *sock;
    int first_fd; /* of sock: the agent's end of rank 0's socket */
    bool heard;
};

static void ignore_fence(void *arg, const char *data, size_t n)
{
    (void)arg;
    (void)data;
    (void)n;
}

static void ignore_abort(void *arg, uint32_t local_rank, int exit_code)
{
    (void)arg;
    (void)local_rank;
    (void)exit_code;
}

static void ignore_state(void *arg, uint32_t local_rank, bool inside)
{
    (void)arg;
    (void)local_rank;
    (void)inside;
}

static void ignore_log(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

static int lowest_free_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

static const struct dt_pmisock_events ignore_all = { ignore_fence, ignore_abort, ignore_state,
                                                     ignore_log };

static int open_sockets(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    uv_loop_init(&f->loop);
    f->numbers[1] = 1;
    f->start.job_id = "test";
    f->start.host = "host1";
    f->start.ranks = (struct dt_u32s){ f->numbers, RANKS };
    f->start.universe = RANKS;
    f->first_fd = lowest_free_fd();
    f->sock = dt_pmisock_create(&f->loop, &f->start, &ignore_all, f);
    *state = f;
    return f->sock ? 0 : -1;
}

static int close_sockets(void **state)
{
    struct fixture *f = *state;
    int rc;

    dt_pmisock_destroy(f->sock);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    rc = uv_loop_close(&f->loop);
    free(f);
    return rc;
}

/* All processes that had the ranks' ends are gone. */
static void end_ranks(struct fixture *f)
{
    for (uint32_t i = 0; i < RANKS; i++)
        dt_pmisock_forked(f->sock, i);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void hear(uv_poll_t *poll, int status, int events)
{
    struct fixture *f = poll->data;

    assert_int_equal(status, 0);
    assert_int_equal(events, UV_READABLE);
    f->heard = true;
    uv_poll_stop(poll);
}

/* A rank has ended, another agent connects, and its connection gets the descriptor number of the
 * rank's socket. Then the next generation begins, and the sockets of the last one are destroyed. */
static void a_connection_that_reuses_a_closed_descriptor_is_heard(void **state)
{
    struct fixture *f = *state;
    uv_poll_t poll = { .data = f };
    int ends[2];

    end_ranks(f);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(ends[0], f->first_fd);
    assert_int_equal(uv_poll_init(&f->loop, &poll, ends[0]), 0);
    uv_poll_start(&poll, UV_READABLE, hear);
    uv_run(&f->loop, UV_RUN_NOWAIT); /* makes the loop register its descriptors with the kernel */
    dt_pmisock_destroy(f->sock);
    f->sock = NULL;
    assert_int_equal(write(ends[1], "", 1), 1);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    uv_close((uv_handle_t *)&poll, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->heard);
    close(ends[0]);
    close(ends[1]);
}

static void the_reason_is_known_when_descriptors_run_out(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, few;
    struct dt_pmisock *sock;
    int error;

    uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){ (rlim_t)lowest_free_fd() + 2, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    sock = dt_pmisock_create(&f->loop, &f->start, &ignore_all, f);
    error = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_null(sock);
    assert_int_equal(error, EMFILE);
    end_ranks(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_connection_that_reuses_a_closed_descriptor_is_heard,
                                        open_sockets, close_sockets),
        cmocka_unit_test_setup_teardown(the_reason_is_known_when_descriptors_run_out, open_sockets,
                                        close_sockets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
