/* To be preloaded: libuv's timers of a minute or more take a fortieth of their time. */
#include <dlfcn.h>
#include <uv.h>

int uv_timer_start(uv_timer_t *timer, uv_timer_cb done, uint64_t ms, uint64_t repeat)
{
    int (*start)(uv_timer_t *, uv_timer_cb, uint64_t, uint64_t) =
        (int (*)(uv_timer_t *, uv_timer_cb, uint64_t, uint64_t))dlsym(RTLD_NEXT, "uv_timer_start");

    return start(timer, done, ms < 60 * 1000 ? ms : ms / 40, repeat);
}
