/* Signs of life that are sent while the loop is blocked. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "launcher/agent/io/standby.h"
#include "tests/unit/unit.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t beaten = PTHREAD_COND_INITIALIZER;

static pthread_key_t in_thread;
static _Atomic bool thread_ended;
static unsigned own; /* threads before the tests: a sanitizer may have one, too */

struct loop {
    struct dt_standby *standby;
    const char *blocked; /* by what, or NULL */
    bool stray;          /* a beat came when none should */
    unsigned beats;
    uint64_t last_ms;
};

static void on_thread_end(void *value)
{
    (void)value;
    thread_ended = true;
}

static void on_beat(void *arg, const char *what, uint64_t ms)
{
    struct loop *l = arg;

    pthread_setspecific(in_thread, &thread_ended); /* so that its end is noticed */
    pthread_mutex_lock(&lock);
    l->stray |= !l->blocked || strcmp(what, l->blocked) != 0 || ms < l->last_ms;
    l->last_ms = ms;
    l->beats++;
    pthread_cond_signal(&beaten);
    pthread_mutex_unlock(&lock);
}

static void set_blocked(struct loop *l, const char *what)
{
    pthread_mutex_lock(&lock);
    l->blocked = what;
    l->last_ms = 0;
    pthread_mutex_unlock(&lock);
}

static void block(struct loop *l, const char *what, unsigned beats)
{
    set_blocked(l, what);
    dt_standby_enter(l->standby, what);
    pthread_mutex_lock(&lock);
    for (unsigned end = l->beats + beats; l->beats < end;)
        pthread_cond_wait(&beaten, &lock);
    pthread_mutex_unlock(&lock);
    dt_standby_leave(l->standby);
    set_blocked(l, NULL);
}

static unsigned threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;
    unsigned n = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void beats_come_only_while_the_loop_is_blocked(void **state)
{
    static struct loop l; /* an agent's loop lives as long as its process */

    (void)state;
    l.standby = dt_standby_create(on_beat, &l);
    block(&l, "one", 2);
    block(&l, "other", 3);
    block(&l, "one", 2);
    assert_false(l.stray);
    dt_standby_stop(l.standby);
}

static int prepare(void **state)
{
    (void)state;
    own = threads();
    return pthread_key_create(&in_thread, on_thread_end);
}

/* The kernel wakes whoever joins a thread shortly before it takes the thread out of /proc. If the
 * thread stays, the watchdog ends the test. */
static void await_own_threads(void)
{
    while (threads() != own)
        sched_yield();
}

static void no_thread_is_left_after_stop(void **state)
{
    static struct loop l;

    (void)state;
    await_own_threads();
    l.standby = dt_standby_create(on_beat, &l);
    for (int round = 0; round < 2; round++) {
        thread_ended = false;
        block(&l, "one", 1);
        assert_int_equal(threads(), own + 1);
        dt_standby_stop(l.standby);
        assert_true(thread_ended);
        await_own_threads();
    }
    dt_standby_stop(l.standby);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beats_come_only_while_the_loop_is_blocked),
        cmocka_unit_test(no_thread_is_left_after_stop),
    };

    alarm(300); /* a watchdog */
    return cmocka_run_group_tests(tests, prepare, NULL);
}
