/* For LD_PRELOAD: simulates Ctrl-C right after the program has started its first process. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <uv.h>

int uv_spawn(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options)
{
    static bool pressed;
    int (*spawn)(uv_loop_t *, uv_process_t *, const uv_process_options_t *) =
        (int (*)(uv_loop_t *, uv_process_t *, const uv_process_options_t *))dlsym(RTLD_NEXT,
                                                                                  "uv_spawn");
    int rc = spawn(loop, process, options);

    if (!pressed) {
        pressed = true;
        raise(SIGINT);
    }
    return rc;
}
