/* Which programs need a PMIx server, and which a rendezvous for Horovod. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/program/horovodneeds.h"
#include "launcher/base/program/mpineeds.h"
#include "launcher/base/program/words.h"
#include "tests/unit/unit.h"

static char dir[] = "/tmp/dtrun-needs.XXXXXX";
static char why[256];

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink("prog");
    unlink("run");
    unlink("run.sh");
    unlink("run.txt");
    unlink("long.sh");
    unlink("fifo");
    unlink("sum.py");
    unlink("solve.py");
    unlink("train.py");
    unlink("train");
    unlink("pkg/train.py");
    unlink("pkg/__main__.py");
    unlink("pkg/__init__.py");
    unlink("pkg/other.py");
    rmdir("pkg");
    unlink("plain.py");
    unlink("sum.txt");
    unlink("sum.R");
    unlink("sum.Rd");
    unlink("plain.r");
    unlink("pipe.py");
    return chdir("/") == 0 && rmdir(dir) == 0 ? 0 : -1;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");
    bool written = f && fputs(text, f) >= 0 && fclose(f) == 0;

    assert_true(written);
}

/* --- MPI --- */

static const struct {
    const char *argv[4];
    const char *why; /* NULL: it needs no server */
} cases[] = {
    { { "python3", "sum.py" }, "mpi4py in sum.py" },
    { { "python3", "-u", "./sum.py" }, "mpi4py in ./sum.py" },
    { { "./sum.py" }, "mpi4py in ./sum.py" },
    { { "python3", "-m", "mpi4py.bench", "helloworld" }, "mpi4py.bench" },
    { { "python3", "-c", "from mpi4py import MPI" }, "mpi4py in the text of -c" },
    { { "python3", "-c", "import sys; from petsc4py import PETSc" }, "petsc4py in the text of -c" },
    { { "sh", "-c", "python3 -c 'import petsc4py.PETSc'" }, "petsc4py.PETSc" },
    { { "python3", "solve.py" }, "dolfinx in solve.py" },
    { { "python3", "-c", "import solve" }, "dolfinx in solve.py" },
    { { "gpaw", "python", "plain.py" }, NULL },
    { { "python3", "-c", "from gpaw import GPAW" }, "gpaw in the text of -c" },
    { { "Rscript", "sum.R" }, "Rmpi" },
    { { "R", "--no-save", "-f", "sum.R" }, "Rmpi" },
    { { "./sum.R" }, "Rmpi" },
    { { "Rscript", "-e", "library(pbdMPI); init()" }, "pbdMPI" },
    { { "Rscript", "plain.r" }, NULL },
    { { "Rscript", "sum.Rd" }, NULL },
    { { "python3", "-c", "import dolfins, my.dolfinx" }, NULL },
    { { "python3", "-m", "mpi4pyx" }, NULL },
    { { "python3", "plain.py" }, NULL },
    { { "python3", "sum.txt" }, NULL },
    { { "python3", "none.py" }, NULL },
    { { "python3", "pipe.py" }, NULL }, /* a pipe that no process writes to */
    { { "python3", ".py" }, NULL },
    { { "/proc/self/exe" }, NULL },
};

static void scripts_are_searched(void **state)
{
    (void)state;
    write_file("sum.py", "#!/usr/bin/python3\nfrom mpi4py import MPI\n");
    write_file("solve.py", "from dolfinx.fem import Function # and no petsc4py\n");
    write_file("plain.py", "import torch # not petsc4py\n");
    write_file("sum.R", "# adds up\nlibrary(\"Rmpi\")\n");
    write_file("sum.Rd", "library(Rmpi)\n");
    write_file("plain.r", "library(Rmpix)\n");
    write_file("sum.txt", "from mpi4py import MPI\n");
    assert_int_equal(mkfifo("pipe.py", 0600), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strs argv = { (char **)(uintptr_t)cases[i].argv, 0 };

        while (argv.n < 4 && argv.v[argv.n])
            argv.n++;
        assert_int_equal(dt_mpi_needs_pmix(argv.v[0], &argv, NULL, NULL, why, sizeof why),
                         cases[i].why != NULL);
        if (cases[i].why)
            assert_string_equal(why, cases[i].why);
    }
}

/* --- words --- */

static bool is_prog(void *arg, const char *word)
{
    (void)arg;
    return strcmp(word, "./prog") == 0;
}

static const struct {
    const char *argv[4];
    bool found;
} lines[] = {
    { { "env", "A=b", "./prog" }, true },
    { { "sh", "-c", "cd .; exec ./prog -x" }, true },
    { { "sh", "-c", "A=1;(./prog|cat)>/dev/null" }, true },
    { { "sh", "-c", "\"$HOME\"/prog" }, false },
    { { "./run" }, true },
    { { "bash", "-x", "run" }, true },
    { { "sh", "run.sh" }, true },
    { { "cat", "run.txt" }, false },
    { { "cat", "prog.txt", "" }, false },
    { { "cat", "pipe", "fifo" }, false },
};

static void programs_that_a_command_line_names_are_found(void **state)
{
    (void)state;
    write_file("prog", "");
    write_file("run", "#!/bin/sh\n# starts it\nexec \"./prog\" \"$@\"\n");
    write_file("run.sh", "exec ./prog\n");
    write_file("run.txt", "exec ./prog\n");
    assert_int_equal(chmod("prog", 0700), 0);
    assert_int_equal(mkfifo("fifo", 0700), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct dt_strs argv = { (char **)(uintptr_t)lines[i].argv, 0 };

        while (argv.n < 4 && argv.v[argv.n])
            argv.n++;
        if (dt_words_find(argv.v[0], &argv, is_prog, NULL) != lines[i].found)
            fail_msg("line %zu", i);
        assert_false(dt_mpi_needs_pmix(argv.v[0], &argv, ".", NULL, why, sizeof why));
    }
}

static void a_script_of_any_length_is_searched_in_bounded_time(void **state)
{
    char *words[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "long.sh" };
    const struct dt_strs argv = { words, 2 };
    FILE *f = fopen("long.sh", "w");

    (void)state;
    assert_non_null(f);
    for (int i = 0; i < 1000; i++)
        fprintf(f, "word%d\n", i);
    fputs("./prog\n", f);
    assert_int_equal(fclose(f), 0);
    assert_false(dt_words_find("sh", &argv, is_prog, NULL));
    write_file("run.sh", "exec ./prog\n");
    words[1] = (char *)(uintptr_t) "run.sh";
    assert_true(dt_words_find("long.sh", &argv, is_prog, NULL));
}

/* --- Horovod --- */

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
    { "import os; import horovod.torch as hvd; hvd.init()\n", true },
    { "x = 'a\\'b'; from horovod import torch", true },
    { "x = 'a; import horovod'\n", false },
    { "x = 'a\\'; import horovod'\n", false },
    { "x = 1 # this; import horovod\n", false },
    { "", false },
    { "import horovods\n", false },
    { "import horovod_like\n", false },
    { "from horovodrun import x\n", false },
    { "from x import horovod\n", false },
    { "from . import horovod\n", false },
    { "from .horovod import x\n", false },
    { "from horovod", true },
    { "from horovod import (\n", true },
    { "import x as horovod\n", false },
    { "import my.horovod\n", false },
    { "imports horovod\n", false },
    { "# import horovod\n", false },
    { "print('import horovod')\n", false },
    { "horovod = None\nimport torch\n", false },
    { "import", false },
    { "from", false },
};

static void only_imports_are_found(void **state)
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
    assert_true(is_used("python3", "-m", "train"));
    assert_string_equal(why, "import horovod in train.py");
    assert_true(is_used("sh", "-c", "cd .; exec python3 train.py --lr 1"));
    assert_string_equal(why, "import horovod in train.py");
    assert_true(is_used("bash", "-c", "python3 -m train"));
    assert_true(is_used("python3", "-c", "import sys; import horovod.torch as hvd"));
    assert_string_equal(why, "import horovod in the text of -c");
    assert_true(is_used("/usr/bin/python3.11", "-c", "from train import main; main()"));
    assert_string_equal(why, "import horovod in train.py");
    assert_false(is_used("python3", "-c", "import torch"));
    assert_false(is_used("tool", "-c", "import horovod"));
    write_file("my train.py", script);
    assert_true(is_used("python3", "-u", "my train.py"));
    assert_int_equal(unlink("my train.py"), 0);
    write_file("run", "#!/bin/sh\nexec python3 ./train.py \"$@\"\n");
    assert_true(is_used("./run", NULL, NULL));
    assert_string_equal(why, "import horovod in ./train.py");
    assert_int_equal(mkdir("pkg", 0700), 0);
    write_file("pkg/train.py", "import torch\n");
    assert_false(is_used("python3", "-m", "pkg.train"));
    write_file("pkg/train.py", script);
    assert_true(is_used("python3", "-m", "pkg.train"));
    assert_string_equal(why, "import horovod in pkg/train.py");
    write_file("pkg/__main__.py", script);
    assert_true(is_used("python3", "-m", "pkg"));
    assert_false(is_used("python3", "-x", "pkg"));
    assert_false(is_used("cat", "train", NULL)); /* an argument that may be any file */
    write_file("train", "#!/bin/sh\nimport horovod\n# python\n");
    assert_false(is_used("./train", NULL, NULL));
    assert_false(is_used("/proc/self/exe", "none.py", NULL));
}

static void imported_files_are_searched(void **state)
{
    (void)state;
    write_file("pkg/__init__.py", "from . import a as b, other\n");
    write_file("pkg/other.py", "# calls itself\nimport pkg.other\nfrom .train import f\n");
    write_file("pkg/train.py", "import horovod.torch as hvd\n");
    write_file("train.py", "import os, pkg as p # and others\n");
    assert_true(is_used("python3", "train.py", NULL));
    assert_string_equal(why, "import horovod in pkg/train.py");
    write_file("train.py", "import pkg\n");
    assert_true(is_used("python3", "-m", "train"));
    write_file("train.py", "from pkg import none, other\n");
    write_file("pkg/__init__.py", "");
    assert_true(is_used("python3", "./train.py", NULL));
    assert_string_equal(why, "import horovod in ./pkg/train.py");
    write_file("pkg/other.py", "from mpi4py import MPI\n");
    assert_false(is_used("python3", "./train.py", NULL));
    assert_true(
        dt_mpi_needs_pmix("./train.py", &(struct dt_strs){ 0 }, ".", NULL, why, sizeof why));
    assert_string_equal(why, "mpi4py in ./pkg/other.py");
}

/* Each imports the next one. */
static void no_more_than_32_files_are_searched(void **state)
{
    char name[32], text[64];

    (void)state;
    for (int length = 32; length <= 33; length++) {
        for (int i = 1; i <= length; i++) {
            snprintf(name, sizeof name, "pkg/f%d.py", i);
            snprintf(text, sizeof text, i == length ? "import horovod\n" : "import f%d\n", i + 1);
            write_file(name, text);
        }
        assert_int_equal(is_used("python3", "pkg/f1.py", NULL), length == 32);
    }
    for (int i = 1; i <= 33; i++) {
        snprintf(name, sizeof name, "pkg/f%d.py", i);
        unlink(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts_are_searched),
        cmocka_unit_test(programs_that_a_command_line_names_are_found),
        cmocka_unit_test(a_script_of_any_length_is_searched_in_bounded_time),
        cmocka_unit_test(only_imports_are_found),
        cmocka_unit_test(scripts_are_known_by_their_name_or_first_line),
        cmocka_unit_test(imported_files_are_searched),
        cmocka_unit_test(no_more_than_32_files_are_searched),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
