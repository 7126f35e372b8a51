/* Which programs need a PMIx server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/mpineeds.h"
#include "tests/unit/unit.h"

static char dir[] = "/tmp/dtrun-mpineeds.XXXXXX";
static char why[256];

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink("sum.py");
    unlink("plain.py");
    unlink("sum.txt");
    unlink("pipe.py");
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static const struct {
    const char *argv[4];
    const char *why; /* NULL: it needs none */
} cases[] = {
    { { "python3", "sum.py" }, "mpi4py in sum.py" },
    { { "python3", "-u", "./sum.py" }, "mpi4py in ./sum.py" },
    { { "./sum.py" }, "mpi4py in ./sum.py" },
    { { "python3", "plain.py" }, NULL },
    { { "python3", "sum.txt" }, NULL },
    { { "python3", "none.py" }, NULL },
    { { "python3", "pipe.py" }, NULL }, /* which nobody writes to */
    { { "python3", ".py" }, NULL },
    { { "/proc/self/exe" }, NULL },
};

static void scripts_are_looked_into(void **state)
{
    (void)state;
    write_file("sum.py", "#!/usr/bin/python3\nfrom mpi4py import MPI\n");
    write_file("plain.py", "import torch\n");
    write_file("sum.txt", "from mpi4py import MPI\n");
    assert_int_equal(mkfifo("pipe.py", 0600), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strs argv = { (char **)(uintptr_t)cases[i].argv, 0 };

        while (argv.n < 4 && argv.v[argv.n])
            argv.n++;
        assert_int_equal(dt_mpi_needs_pmix(argv.v[0], &argv, why, sizeof why),
                         cases[i].why != NULL);
        if (cases[i].why)
            assert_string_equal(why, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts_are_looked_into),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
