/* The thread that executes a communicator's nonblocking calls. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/comm/async.h"

enum { ROUNDS = 2000 };

static _Atomic int n_made;

static dt_result_t make(struct dt_task *task)
{
    (void)task;
    atomic_fetch_add(&n_made, 1);
    return DT_OK;
}

struct waiting {
    struct dt_async *async;
    _Atomic bool over;
};

static void *await_until_over(void *arg)
{
    struct waiting *w = arg;

    while (!atomic_load(&w->over))
        dt_async_await_ahead(w->async);
    return NULL;
}

/* A thread waits for the tasks that are ahead while another one submits them: for the thread
 * sanitizer. The thread of the tasks is woken for each. */
static void tasks_ahead_can_be_awaited_while_others_are_submitted(void **state)
{
    struct dt_ticketlock lock = { 0 };
    struct dt_async async = { 0 };
    struct waiting waiting = { .async = &async };
    pthread_t thread;

    (void)state;
    dt_async_open(&async, &lock);
    pthread_create(&thread, NULL, await_until_over, &waiting);
    for (int i = 0; i < ROUNDS; i++) {
        struct dt_task task = { .run = make, .ahead = true };

        assert_int_equal(dt_async_submit(&async, &task), DT_OK);
        dt_async_wake(&async);
        assert_int_equal(dt_task_await(&task), DT_OK);
    }
    atomic_store(&waiting.over, true);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&n_made), ROUNDS);
    dt_async_close(&async);
}

/* It would overtake an earlier task that has not been executed yet. */
static void a_task_that_is_ahead_is_refused_behind_another(void **state)
{
    struct dt_task first = { .run = make }, ahead = { .run = make, .ahead = true };
    struct dt_ticketlock lock = { 0 };
    struct dt_async async = { 0 };

    (void)state;
    dt_async_open(&async, &lock);
    dt_ticketlock_draw(&lock); /* as a call of the program's, which holds the lock */
    assert_int_equal(dt_async_submit(&async, &first), DT_OK);
    assert_false(dt_async_may_go_ahead(&async));
    assert_int_equal(dt_async_submit(&async, &ahead), DT_ERR_UNSUPPORTED);
    dt_ticketlock_leave(&lock);
    assert_int_equal(dt_task_await(&first), DT_OK);
    while (!dt_async_may_go_ahead(&async))
        continue;
    assert_int_equal(dt_async_submit(&async, &ahead), DT_OK);
    dt_async_wake(&async);
    assert_int_equal(dt_task_await(&ahead), DT_OK);
    dt_async_close(&async);
}

/* Numbers start again after 2^32 calls. A program that makes one every millisecond gets there in
 * seven weeks. */
static void ticket_numbers_may_wrap_around(void **state)
{
    struct dt_task first = { .run = make }, ahead = { .run = make, .ahead = true };
    struct dt_ticketlock lock = { 0 };
    struct dt_async async = { 0 };

    (void)state;
    dt_async_open(&async, &lock);
    atomic_store(&lock.next, UINT32_MAX);
    atomic_store(&lock.served, UINT32_MAX);
    dt_ticketlock_draw(&lock); /* as a call of the program's, which holds the lock */
    assert_false(dt_async_may_go_ahead(&async));
    assert_int_equal(dt_async_submit(&async, &ahead), DT_ERR_UNSUPPORTED);
    dt_async_await_ahead(&async);
    dt_ticketlock_leave(&lock);
    assert_true(dt_async_may_go_ahead(&async));
    assert_int_equal(dt_async_submit(&async, &ahead), DT_OK);
    assert_true(dt_async_may_go_ahead(&async));
    assert_int_equal(dt_async_submit(&async, &first), DT_OK);
    assert_int_equal(dt_task_await(&first), DT_OK);
    dt_async_await_ahead(&async);
    assert_true(dt_task_is_done(&ahead));
    dt_async_close(&async);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_ahead_can_be_awaited_while_others_are_submitted),
        cmocka_unit_test(a_task_that_is_ahead_is_refused_behind_another),
        cmocka_unit_test(ticket_numbers_may_wrap_around),
    };
    return cmocka_run_group_tests_name("async", tests, NULL, NULL);
}
