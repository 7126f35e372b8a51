/* The guard that keeps a thread inside NCCL's communicator while another wants to free it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/gpu/ncclguard.h"

static void no_thread_enters_a_shut_guard(void **state)
{
    struct dt_ncclguard *g = dt_ncclguard_new();

    (void)state;
    assert_true(dt_ncclguard_enter(g));
    assert_true(dt_ncclguard_enter(g));
    dt_ncclguard_shut(g);
    assert_false(dt_ncclguard_enter(g));
    assert_false(dt_ncclguard_is_empty(g));
    dt_ncclguard_leave(g);
    assert_false(dt_ncclguard_is_empty(g));
    dt_ncclguard_leave(g);
    assert_true(dt_ncclguard_is_empty(g));
    dt_ncclguard_drop(g);
    dt_ncclguard_drop(NULL);
}

static void the_last_holder_frees_the_guard(void **state)
{
    struct dt_ncclguard *g = dt_ncclguard_new();

    (void)state;
    dt_ncclguard_hold(g);
    dt_ncclguard_drop(g);
    assert_true(dt_ncclguard_enter(g)); /* a sanitizer reports it if the guard is gone */
    dt_ncclguard_leave(g);
    dt_ncclguard_drop(g);
}

struct use {
    struct dt_ncclguard *g;
    _Atomic bool freed; /* stands for the communicator */
    _Atomic uint64_t entered;
    bool used_freed;
};

static void *use(void *arg)
{
    struct use *u = arg;

    while (dt_ncclguard_enter(u->g)) {
        u->used_freed |= atomic_load(&u->freed);
        dt_ncclguard_leave(u->g);
        atomic_fetch_add(&u->entered, 1);
    }
    return NULL;
}

static void nothing_freed_once_the_guard_is_empty_is_used(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct use u = { .g = dt_ncclguard_new() };
        pthread_t thread;

        pthread_create(&thread, NULL, use, &u);
        while (atomic_load(&u.entered) < 100)
            continue;
        dt_ncclguard_shut(u.g);
        while (!dt_ncclguard_is_empty(u.g))
            continue;
        atomic_store(&u.freed, true);
        pthread_join(thread, NULL);
        assert_false(u.used_freed);
        dt_ncclguard_drop(u.g);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_thread_enters_a_shut_guard),
        cmocka_unit_test(the_last_holder_frees_the_guard),
        cmocka_unit_test(nothing_freed_once_the_guard_is_empty_is_used),
    };
    return cmocka_run_group_tests_name("ncclguard", tests, NULL, NULL);
}
