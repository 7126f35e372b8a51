/* For LD_PRELOAD: holds libuv timers of five seconds or more until a test lets them expire. When a
 * timer of MS milliseconds starts, $TEST_CLOCK/MS.started appears. The timer expires when the test
 * creates $TEST_CLOCK/MS. Of several such timers, the shortest expires first. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

enum { HELD_MIN_MS = 5000, POLL_MS = 10, HELD_MAX = 256 };

static struct held {
    uv_timer_t *timer;
    uv_timer_cb callback;
    uint64_t ms;
} held[HELD_MAX]; /* the shortest first */
static int n;

static int start_timer(uv_timer_t *timer, uv_timer_cb callback, uint64_t ms, uint64_t repeat)
{
    int (*start)(uv_timer_t *, uv_timer_cb, uint64_t, uint64_t) =
        (int (*)(uv_timer_t *, uv_timer_cb, uint64_t, uint64_t))dlsym(RTLD_NEXT, "uv_timer_start");

    return start(timer, callback, ms, repeat);
}

static void forget(const uv_timer_t *timer)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        if (held[i].timer != timer)
            held[kept++] = held[i];
    }
    n = kept;
}

enum { PATH_ROOM = 4096 };

static const char *path_of(const struct held *s, const char *suffix, char path[PATH_ROOM])
{
    const char *dir = getenv("TEST_CLOCK");

    snprintf(path, PATH_ROOM, "%s/%llu%s", dir ? dir : ".", (unsigned long long)s->ms, suffix);
    return path;
}

static void report_start(const struct held *s)
{
    char path[PATH_ROOM];
    int fd = open(path_of(s, ".started", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
}

static bool is_released(const struct held *s)
{
    char path[PATH_ROOM];

    return access(path_of(s, "", path), F_OK) == 0;
}

static void expire_released(uv_timer_t *poll_timer)
{
    (void)poll_timer;
    for (int i = 0; i < n; i++) {
        struct held s = held[i];

        if (!is_released(&s))
            continue;
        uv_timer_stop(s.timer);
        s.callback(s.timer); /* this may start and stop other timers */
        return;
    }
}

static void start_polling(uv_loop_t *loop)
{
    static uv_timer_t poll_timer;

    if (poll_timer.loop)
        return;
    uv_timer_init(loop, &poll_timer);
    start_timer(&poll_timer, expire_released, POLL_MS, POLL_MS);
    uv_unref((uv_handle_t *)&poll_timer);
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t ms, uint64_t repeat)
{
    int at, error;

    forget(timer);
    if (ms < HELD_MIN_MS || n == HELD_MAX)
        return start_timer(timer, callback, ms, repeat);
    /* so that it counts as active; this stops it first if it already does */
    error = start_timer(timer, callback, INT64_MAX / 2, 0);
    if (error)
        return error;
    start_polling(timer->loop);
    for (at = n++; at > 0 && held[at - 1].ms > ms; at--)
        held[at] = held[at - 1];
    held[at] = (struct held){ timer, callback, ms };
    report_start(&held[at]);
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    int (*stop)(uv_timer_t *) = (int (*)(uv_timer_t *))dlsym(RTLD_NEXT, "uv_timer_stop");

    forget(timer);
    return stop(timer);
}

void uv_close(uv_handle_t *handle, uv_close_cb closed)
{
    void (*close_handle)(uv_handle_t *, uv_close_cb) =
        (void (*)(uv_handle_t *, uv_close_cb))dlsym(RTLD_NEXT, "uv_close");

    forget((const uv_timer_t *)handle);
    close_handle(handle, closed);
}
