/* How long a rank sleeps between two looks at its GPU. The test's own nanosleep adds the naps up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "runtime/gpu/device/wait.h"

enum { US = 1000, MS = 1000 * US };

static unsigned naps;
static int64_t last_ns, waited_ns;

int nanosleep(const struct timespec *nap, struct timespec *left)
{
    (void)left;
    naps++;
    last_ns = nap->tv_sec * 1000 * MS + nap->tv_nsec;
    waited_ns += last_ns;
    return 0;
}

static void naps_delay_a_call_by_little_and_are_few_in_a_long_wait(void **state)
{
    (void)state;
    for (unsigned turn = 0; waited_ns < 1000 * MS; turn++) {
        int64_t before = waited_ns;

        dt_gpu_pause(turn);
        if (waited_ns > before)
            assert_in_range(last_ns, 50 * US, 50 * US + before / 32);
    }
    assert_in_range(last_ns, 500 * US, MS);
    assert_in_range(naps, 1000, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naps_delay_a_call_by_little_and_are_few_in_a_long_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
