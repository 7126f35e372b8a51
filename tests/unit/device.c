/* Which memory is whose, and when a backend is loaded: with a CUDA driver and a backend of our own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/device.h"
#include "tests/fake/cuda.h"

static void *fake_driver;
static int32_t others_unable; /* what host_min finds on other ranks */
static char last_text[512];

static dt_result_t host_broadcast(void *ctx, void *buf, size_t bytes, int root)
{
    (void)ctx;
    (void)buf;
    (void)bytes;
    (void)root;
    return DT_OK;
}

static dt_result_t host_min(void *ctx, int32_t *value)
{
    (void)ctx;
    if (others_unable < *value)
        *value = others_unable;
    return DT_OK;
}

static dt_result_t host_fail(void *ctx, dt_result_t result, const char *text)
{
    (void)ctx;
    snprintf(last_text, sizeof last_text, "%s", text);
    return result;
}

static const struct dt_device_host host = {
    .rank = 1, .size = 3, .broadcast = host_broadcast, .min = host_min, .fail = host_fail
};

static void *fake(const char *function)
{
    void *(*memory)(void);

    *(void **)&memory = dlsym(fake_driver, function);
    assert_non_null(memory);
    return memory();
}

static bool is_loaded(const char *what)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    bool found = false;

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        found = found || strstr(line, what);
    fclose(maps);
    return found;
}

static void host_memory_loads_nothing(void **state)
{
    int on_stack = 0;

    (void)state;
    assert_int_equal(dt_device_memory(&on_stack, &on_stack), DT_MEMORY_HOST);
    assert_int_equal(dt_device_memory(NULL, &on_stack), DT_MEMORY_HOST);
    assert_false(is_loaded("libcuda"));
    assert_int_equal(dt_device_memory_of_few(&on_stack, &on_stack), DT_MEMORY_HOST);
    assert_int_equal(dt_device_memory_of_few(&on_stack, &on_stack), DT_MEMORY_HOST);
    assert_ptr_equal(dti_device_hosts.a, &on_stack);
    assert_false(is_loaded("libdtrun-nccl"));
}

/* After the test above: the driver comes late, as it does in a real program. */
static void a_driver_that_comes_late_is_asked(void **state)
{
    char path[4096];
    int on_stack = 0;
    void *device, *managed;

    (void)state;
    assert_non_null(getenv("DTRUN_BUILD"));
    snprintf(path, sizeof path, "%s/tests/fake/.libs/libcuda.so.1", getenv("DTRUN_BUILD"));
    fake_driver = dlopen(path, RTLD_NOW);
    assert_non_null(fake_driver);
    device = fake("fake_device_memory");
    assert_int_equal(dt_device_memory_of_few(device, &on_stack), DT_MEMORY_MIXED);
    assert_int_equal(dt_device_memory_of_few(device, device), DT_MEMORY_DEVICE);
    assert_int_equal(dt_device_memory(&on_stack, &on_stack), DT_MEMORY_HOST);
    assert_null(dti_device_hosts.a); /* from now on the driver is asked every time */
    assert_int_equal(dt_device_memory(NULL, &on_stack), DT_MEMORY_HOST);
    managed = fake("fake_managed_memory");
    assert_int_equal(dt_device_memory(device, device), DT_MEMORY_DEVICE);
    assert_int_equal(dt_device_memory(managed, &on_stack), DT_MEMORY_HOST);
    assert_int_equal(dt_device_memory(device, managed), DT_MEMORY_MIXED);
    assert_int_equal(dt_device_memory(&on_stack, device), DT_MEMORY_MIXED);
    assert_false(is_loaded("libdtrun-nccl"));
}

static void a_rank_that_cannot_is_named_on_all(void **state)
{
    struct dt_device d = { 0 };
    void *buf = fake("fake_device_memory");

    (void)state;
    others_unable = 2;
    assert_int_equal(dt_device_broadcast(&d, &host, buf, 1, DT_F32, 0), DT_ERR_CUDA);
    assert_non_null(strstr(last_text, "rank 1: rank 2 cannot use its device"));
    assert_null(d.state);
    others_unable = host.size;
    setenv("FAKE_PLUGIN", "no-device-on-rank-1", 1);
    assert_int_equal(dt_device_broadcast(&d, &host, buf, 1, DT_F32, 0), DT_ERR_CUDA);
    assert_string_equal(last_text, "rank 1: no device here");
    assert_null(d.state);
    unsetenv("FAKE_PLUGIN");
}

static void the_backend_is_opened_once(void **state)
{
    struct dt_device d = { 0 };
    float *buf = fake("fake_device_memory");

    (void)state;
    buf[0] = 2;
    assert_int_equal(dt_device_all_reduce(&d, &host, buf, buf + 1, 1, DT_F32, DT_SUM), DT_OK);
    assert_true(is_loaded("libdtrun-nccl"));
    assert_non_null(d.state);
    assert_float_equal(buf[1], 6, 0); /* host_broadcast gives each rank this rank's part */
    others_unable = 0;
    assert_int_equal(dt_device_broadcast(&d, &host, buf, 1, DT_F32, 0), DT_OK);
    assert_int_equal(dt_device_barrier(&d), DT_OK);
    dt_device_close(&d);
    assert_null(d.state);
}

/* The linker reads its search path once, at the start: look for the fakes, then begin again. */
static void find_fakes(char **argv)
{
    char path[4096];

    if (getenv("FAKES_FOUND") || !getenv("DTRUN_BUILD"))
        return;
    snprintf(path, sizeof path, "%s/tests/fake/.libs", getenv("DTRUN_BUILD"));
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv("FAKES_FOUND", "1", 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_memory_loads_nothing),
        cmocka_unit_test(a_driver_that_comes_late_is_asked),
        cmocka_unit_test(a_rank_that_cannot_is_named_on_all),
        cmocka_unit_test(the_backend_is_opened_once),
    };

    (void)argc;
    find_fakes(argv);
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
