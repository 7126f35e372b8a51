/* Which programs use Horovod. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/horovodneeds.h"
#include "tests/unit/unit.h"

static char dir[] = "/tmp/dtrun-horovodneeds.XXXXXX";
static char why[256];

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink("train.py");
    unlink("train");
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static bool is_used(const char *a, const char *b, const char *c)
{
    char *words[] = { (char *)(uintptr_t)a, (char *)(uintptr_t)b, (char *)(uintptr_t)c };
    const struct dt_strs argv = { words, c ? 3 : b ? 2 : 1 };

    return dt_horovod_is_used(a, &argv, why, sizeof why);
}

static const struct {
    const char *text;
    bool used;
} scripts[] = {
    { "import horovod", true },
    { "import horovod.torch as hvd\n", true },
    { "import torch\nimport horovod.tensorflow as hvd # all-reduce\n", true },
    { "from horovod import torch\n", true },
    { "from  horovod.keras import callbacks\r\n", true },
    { "try:\n    import horovod.torch as hvd\nexcept ImportError:\n    hvd = None\n", true },
    { "import os, horovod.torch as hvd\n", true },
    { "import os,sys,\thorovod", true },
    { "import os; x = 1\nimport\thorovod;", true },
    { "", false },
    { "import horovods\n", false },
    { "import horovod_like\n", false },
    { "from horovodrun import x\n", false },
    { "from x import horovod\n", false },
    { "import my.horovod\n", false },
    { "imports horovod\n", false },
    { "# import horovod\n", false },
    { "print('import horovod')\n", false },
    { "horovod = None\nimport torch\n", false },
    { "import", false },
    { "from", false },
};

static void imports_are_found_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        write_file("train.py", scripts[i].text);
        if (is_used("python3", "train.py", NULL) != scripts[i].used)
            fail_msg("%s", scripts[i].text);
        assert_string_equal(why, scripts[i].used ? "import horovod in train.py" : "");
    }
}

static void scripts_are_known_by_their_name_or_first_line(void **state)
{
    static const char script[] = "#!/usr/bin/env python3\nimport horovod\n";

    (void)state;
    write_file("train.py", script);
    write_file("train", script);
    assert_true(is_used("./train.py", NULL, NULL));
    assert_true(is_used("./train", "train.csv", NULL));
    assert_string_equal(why, "import horovod in ./train");
    assert_true(is_used("python3", "-u", "train.py"));
    assert_false(is_used("cat", "train", NULL)); /* an argument that may be anything */
    write_file("train", "#!/bin/sh\nimport horovod\n# python\n");
    assert_false(is_used("./train", NULL, NULL));
    assert_false(is_used("/proc/self/exe", "none.py", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(imports_are_found_and_nothing_else),
        cmocka_unit_test(scripts_are_known_by_their_name_or_first_line),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
