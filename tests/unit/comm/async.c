/* The thread that makes a communicator's later calls. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/comm/async.h"

enum { ROUNDS = 2000 };

static _Atomic int dti_made;

static dt_result_t make(struct dt_task *task)
{
    (void)task;
    atomic_fetch_add(&dti_made, 1);
    return DT_OK;
}

struct waiting {
    struct dt_async *async;
    _Atomic bool over;
};

static void *await_again_and_again(void *arg)
{
    struct waiting *w = arg;

    while (!atomic_load(&w->over))
        dt_async_await_ahead(w->async);
    return NULL;
}

/* A thread waits for the tasks that are ahead while another one submits them: for the thread
 * sanitizer. The thread of the tasks is woken for each. */
static void tasks_ahead_are_awaited_while_they_are_handed_in(void **state)
{
    struct dt_ticketlock lock = { 0 };
    struct dt_async async = { 0 };
    struct waiting waiting = { .async = &async };
    pthread_t thread;

    (void)state;
    dt_async_open(&async, &lock);
    pthread_create(&thread, NULL, await_again_and_again, &waiting);
    for (int i = 0; i < ROUNDS; i++) {
        struct dt_task task = { .run = make, .ahead = true };

        assert_int_equal(dt_async_submit(&async, &task), DT_OK);
        dt_async_say(&async);
        assert_int_equal(dt_task_await(&task), DT_OK);
    }
    atomic_store(&waiting.over, true);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&dti_made), ROUNDS);
    dt_async_close(&async);
}

/* Behind a task that is no such one. */
static void no_task_goes_ahead_of_another_one(void **state)
{
    struct dt_task first = { .run = make }, ahead = { .run = make, .ahead = true };
    struct dt_ticketlock lock = { 0 };
    struct dt_async async = { 0 };

    (void)state;
    dt_async_open(&async, &lock);
    dt_ticketlock_draw(&lock); /* as a call of the program's, which holds the lock */
    assert_int_equal(dt_async_submit(&async, &first), DT_OK);
    assert_int_equal(dt_async_submit(&async, &ahead), DT_ERR_UNSUPPORTED);
    dt_ticketlock_leave(&lock);
    assert_int_equal(dt_task_await(&first), DT_OK);
    while (dt_ticketlock_is_held(&lock))
        continue;
    assert_int_equal(dt_async_submit(&async, &ahead), DT_OK);
    dt_async_say(&async);
    assert_int_equal(dt_task_await(&ahead), DT_OK);
    dt_async_close(&async);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_ahead_are_awaited_while_they_are_handed_in),
        cmocka_unit_test(no_task_goes_ahead_of_another_one),
    };
    return cmocka_run_group_tests_name("async", tests, NULL, NULL);
}
