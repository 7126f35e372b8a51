/* The plugin as it was built, on a host without a GPU (or with its GPUs hidden): it loads, and
 * refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device.h"

static dt_result_t last_result;
static char last_text[512];

static dt_result_t host_fail(void *ctx, dt_result_t result, const char *text)
{
    (void)ctx;
    snprintf(last_text, sizeof last_text, "%s", text);
    return last_result = result;
}

static void without_a_gpu_it_refuses(void **state)
{
    static const struct dt_device_host host = { .rank = 5, .size = 8, .fail = host_fail };
    const char *build = getenv("DTRUN_BUILD");
    char path[4096];
    dt_device_entry entry;
    void *lib;
    int device = -1;

    (void)state;
    assert_non_null(build);
    snprintf(path, sizeof path, "%s/runtime/.libs/%s", build, DT_DEVICE_PLUGIN);
    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lib)
        fail_msg("%s", dlerror());
    *(void **)&entry = dlsym(lib, DT_DEVICE_ENTRY);
    assert_non_null(entry);
    assert_int_equal(entry()->abi, DT_DEVICE_ABI);
    assert_int_equal(entry()->probe(&host, &host, &device), DT_ERR_CUDA);
    assert_int_equal(last_result, DT_ERR_CUDA);
    print_message("%s\n", last_text);
    assert_int_equal(strncmp(last_text, "rank 5: ", 8), 0);
    assert_non_null(strstr(last_text, "cudaGetDeviceCount failed: "));
    entry()->close(NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(without_a_gpu_it_refuses) };

    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    return cmocka_run_group_tests_name("nccl_load", tests, NULL, NULL);
}
