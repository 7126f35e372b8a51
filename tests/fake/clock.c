/* For LD_PRELOAD: libuv timers of five seconds or more expire only when a test says so. When a
 * timer of MS milliseconds starts, $TEST_CLOCK/MS.stands appears. The timer expires when the test
 * creates $TEST_CLOCK/MS. Of several such timers, the shortest expires first. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

enum { STANDING_MS = 5000, LOOK_MS = 10, MOST = 256 };

static struct standing {
    uv_timer_t *timer;
    uv_timer_cb done;
    uint64_t ms;
} standing[MOST]; /* the shortest first */
static int n;

static int start_timer(uv_timer_t *timer, uv_timer_cb done, uint64_t ms, uint64_t repeat)
{
    int (*start)(uv_timer_t *, uv_timer_cb, uint64_t, uint64_t) =
        (int (*)(uv_timer_t *, uv_timer_cb, uint64_t, uint64_t))dlsym(RTLD_NEXT, "uv_timer_start");

    return start(timer, done, ms, repeat);
}

static void forget(const uv_timer_t *timer)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        if (standing[i].timer != timer)
            standing[kept++] = standing[i];
    }
    n = kept;
}

enum { PATH_ROOM = 4096 };

static const char *path_of(const struct standing *s, const char *suffix, char path[PATH_ROOM])
{
    const char *dir = getenv("TEST_CLOCK");

    snprintf(path, PATH_ROOM, "%s/%llu%s", dir ? dir : ".", (unsigned long long)s->ms, suffix);
    return path;
}

static void say_that_it_stands(const struct standing *s)
{
    char path[PATH_ROOM];
    int fd = open(path_of(s, ".stands", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
}

static bool has_run_down(const struct standing *s)
{
    char path[PATH_ROOM];

    return access(path_of(s, "", path), F_OK) == 0;
}

static void look(uv_timer_t *looker)
{
    (void)looker;
    for (int i = 0; i < n; i++) {
        struct standing s = standing[i];

        if (!has_run_down(&s))
            continue;
        uv_timer_stop(s.timer);
        s.done(s.timer); /* this may start and stop other timers */
        return;
    }
}

static void look_from_now_on(uv_loop_t *loop)
{
    static uv_timer_t looker;

    if (looker.loop)
        return;
    uv_timer_init(loop, &looker);
    start_timer(&looker, look, LOOK_MS, LOOK_MS);
    uv_unref((uv_handle_t *)&looker);
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb done, uint64_t ms, uint64_t repeat)
{
    int at;

    forget(timer);
    if (ms < STANDING_MS || n == MOST)
        return start_timer(timer, done, ms, repeat);
    look_from_now_on(timer->loop);
    for (at = n++; at > 0 && standing[at - 1].ms > ms; at--)
        standing[at] = standing[at - 1];
    standing[at] = (struct standing){ timer, done, ms };
    say_that_it_stands(&standing[at]);
    return start_timer(timer, done, INT64_MAX / 2, 0); /* so that the timer counts as active */
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
