#include "launcher/agent/io/standby.h"

#include <stdbool.h>
#include <time.h>

#include "launcher/base/clock.h"
#include "launcher/base/mem.h"
#include "runtime/wire/thread.h"

enum { BEAT_MS = 250 }; /* a quarter of the shortest --heartbeat */

struct dt_standby {
    void (*beat)(void *arg, const char *what, uint64_t ms);
    void *arg;
    pthread_t thread;
    bool started; /* belongs to the loop, like the three above; the lock guards the rest */
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    bool stop;
    const char *what;  /* what may block the loop */
    uint64_t since_ns; /* 0: the loop is not blocked */
};

struct dt_standby *dt_standby_create(void (*beat)(void *arg, const char *what, uint64_t ms),
                                     void *arg)
{
    struct dt_standby *s = dt_xcalloc(1, sizeof *s);
    pthread_condattr_t monotonic;

    s->beat = beat;
    s->arg = arg;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->stopped, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return s;
}

static struct timespec next_beat(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += BEAT_MS * 1000000L;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void *stand_by(void *arg)
{
    struct dt_standby *s = arg;

    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        const struct timespec due = next_beat();
        uint64_t blocked_ms;

        pthread_cond_timedwait(&s->stopped, &s->lock, &due);
        blocked_ms = s->since_ns ? (dt_now_ns() - s->since_ns) / 1000000 : 0;
        if (!s->stop && blocked_ms >= BEAT_MS)
            s->beat(s->arg, s->what, blocked_ms);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void dt_standby_enter(struct dt_standby *s, const char *what)
{
    pthread_mutex_lock(&s->lock);
    s->what = what;
    s->since_ns = dt_now_ns();
    pthread_mutex_unlock(&s->lock);
    if (!s->started)
        s->started = dt_thread_start(&s->thread, stand_by, s) == 0;
}

void dt_standby_leave(struct dt_standby *s)
{
    pthread_mutex_lock(&s->lock);
    s->since_ns = 0;
    pthread_mutex_unlock(&s->lock);
}

void dt_standby_stop(struct dt_standby *s)
{
    if (!s->started)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->stopped);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->started = s->stop = false;
}
