/* The command line of srun, and the variables of this process that it gets. */
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/remote/sruncommand.h"
#include "tests/unit/unit.h"

static bool has(const struct dt_strs *list, const char *text)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (strcmp(list->v[i], text) == 0)
            return true;
    }
    return false;
}

static void a_step_requests_its_gpus_if_they_are_known(void **state)
{
    struct dt_host host = { .name = (char *)(uintptr_t) "node1" };
    struct dt_strs words = { 0 };

    (void)state;
    dt_srun_words(&words, &host);
    assert_string_equal(words.v[0], "srun");
    assert_true(has(&words, "--nodelist=%h"));
    assert_true(has(&words, "--cpu-bind=none"));
    assert_true(has(&words, "--export=ALL"));
    for (uint32_t i = 0; i < words.n; i++)
        assert_null(strstr(words.v[i], "--gpus"));
    dt_strs_free(&words);

    host.step_gpus = (char *)(uintptr_t) "a100:2";
    dt_srun_words(&words, &host);
    assert_true(has(&words, "--gpus=a100:2"));
    dt_strs_free(&words);

    host.has_fewest_gpus = true;
    dt_srun_words(&words, &host);
    assert_true(has(&words, "--gpus-per-node=a100:2"));
    dt_strs_free(&words);
}

static void variables_with_options_of_srun_are_left_out(void **state)
{
    static const char *const own[] = { "PATH=/bin",           "SLURM_JOB_ID=1",
                                       "SLURM_GPUS=8",        "SLURM_GPUS_X=1",
                                       "SLURM_GPU=1",         "SLURM_LABELIO=1",
                                       "SLURM_LABELIO",       "SLURM_CONF=/c",
                                       "SLURM_GPU_BIND=none", "SLURM_TRES_BIND=gres/gpu:per_task:1",
                                       "SLURM_EXCLUSIVE=1",   NULL };
    static const char *const want[] = { "PATH=/bin", "SLURM_JOB_ID=1", "SLURM_GPUS_X=1",
                                        "SLURM_GPU=1", "SLURM_CONF=/c" };
    struct dt_strs env = { 0 };

    (void)state;
    dt_srun_env(&env, (char *const *)(uintptr_t)own);
    assert_int_equal(env.n, sizeof want / sizeof *want);
    for (uint32_t i = 0; i < env.n; i++)
        assert_string_equal(env.v[i], want[i]);
    dt_strs_free(&env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_requests_its_gpus_if_they_are_known),
        cmocka_unit_test(variables_with_options_of_srun_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
