/* What the maps and environments of processes show, as Linux writes them. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/agent/unserved/mapped.h"
#include "launcher/place/frameworks.h"

#define CODE(path)                                                                                 \
    "7f5c2b200000-7f5c2b2a1000 r--p 00000000 fe:00 1234 " path "\n"                                \
    "7f5c2b2a1000-7f5c2b400000 r-xp 000a1000 fe:00 1234                      " path "\n"
#define LIB "/usr/lib/x86_64-linux-gnu/"
#define PYTHON                                                                                     \
    CODE("/usr/bin/python3.11") "55e0c0000000-55e0c0021000 rw-p 00000000 00:00 0 [heap]\n"
#define MPI4    CODE(LIB "libmpi.so.40.30.4") CODE(LIB "libopen-rte.so.40.30.2")
#define ALONE   CODE(LIB "openmpi/lib/openmpi3/mca_ess_singleton.so")
#define MPI5    CODE("/opt/ompi5/lib/libmpi.so.40.40.1")
#define MPICH   CODE(LIB "libmpich.so.12.2.2")
#define HOROVOD CODE("/opt/venv/horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so")
#define MPI4_AT "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4"
#define HVD_AT  "/opt/venv/horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so"

static const char plain[] = "PATH=/bin\0PMI_RANK=1\0DTRUN_RANK=1";
static const char in_pmix[] = "PATH=/bin\0PMIX_NAMESPACE=train.1\0PMIX_RANK=1";
static const char in_horovod[] = "HOROVOD_RANK=1\0HOROVOD_SIZE=2";

enum { MPI = DT_FRAMEWORK_MPI, HVD = DT_FRAMEWORK_HOROVOD };

static const struct {
    const char *maps;
    const char *openmpi, *horovod;       /* the paths that are found */
    unsigned plain, in_pmix, in_horovod; /* what is unserved in these environments */
} cases[] = {
    { "", "", "", 0, 0, 0 },
    { PYTHON, "", "", 0, 0, 0 },
    { PYTHON MPI4 ALONE, MPI4_AT, "", MPI, 0, MPI },
    { ALONE MPI4 PYTHON, MPI4_AT, "", MPI, 0, MPI },
    { PYTHON MPI4, MPI4_AT, "", 0, 0, 0 }, /* loaded, not started */
    { MPI5, "/opt/ompi5/lib/libmpi.so.40.40.1", "", MPI, 0, MPI },
    { CODE("/lib/libmpi.so.40 (deleted)"), "/lib/libmpi.so.40", "", MPI, 0, MPI },
    { CODE("/my lib/libmpi.so.20"), "/my lib/libmpi.so.20", "", MPI, 0, MPI },
    { MPICH, "", "", 0, 0, 0 },
    { CODE("/opt/intel/mpi/lib/libmpi.so.12.0.0"), "", "", 0, 0, 0 },
    { HOROVOD, "", HVD_AT, HVD, HVD, 0 },
    { CODE("/a/horovod/mxnet/mpi_lib.so"), "", "/a/horovod/mxnet/mpi_lib.so", HVD, HVD, 0 },
    { HOROVOD MPI4, MPI4_AT, HVD_AT, HVD, 0, 0 },
    { HOROVOD MPI5, "/opt/ompi5/lib/libmpi.so.40.40.1", HVD_AT, HVD, 0, 0 },
    { HOROVOD MPICH, "", HVD_AT, 0, 0, 0 },
    { CODE("/a/mpi_lib.so"), "", "", 0, 0, 0 },
    { CODE("/a/horovod/mpi_lib.so.txt"), "", "", 0, 0, 0 },
    { CODE("/a/libmpi.so.40/data"), "", "", 0, 0, 0 },
    { CODE("/a/xlibmpi.so.40"), "", "", 0, 0, 0 },
    /* data, what no file holds, and lines that Linux does not write */
    { "7f5c2b200000-7f5c2b2a1000 r--p 00000000 fe:00 1234 /lib/libmpi.so.40\n", "", "", 0, 0, 0 },
    { "7f5c2b200000-7f5c2b2a1000 r-xp 00000000 00:00 0 [vdso]\n", "", "", 0, 0, 0 },
    { "1-2 r-xp 0 0:0 1 /lib/libmpi.so.5", "/lib/libmpi.so.5", "", MPI, 0, MPI },
    { "\n/\n /\nr-xp/libmpi.so.40\n1-2 /libmpi.so.40\n1-2 r-xp 0 0:0 1 / (deleted)", "", "", 0, 0,
      0 },
};

static void maps_and_environment_show_who_is_unserved(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_mapped m;
        bool found = dt_mapped_read(&m, cases[i].maps, strlen(cases[i].maps));

        if (strcmp(m.openmpi, cases[i].openmpi) != 0 || strcmp(m.horovod, cases[i].horovod) != 0 ||
            found != (*m.openmpi || *m.horovod))
            fail_msg("case %zu: found %d, \"%s\", \"%s\"", i, found, m.openmpi, m.horovod);
        if (dt_mapped_unserved(&m, plain, sizeof plain) != cases[i].plain ||
            dt_mapped_unserved(&m, in_pmix, sizeof in_pmix) != cases[i].in_pmix ||
            dt_mapped_unserved(&m, in_horovod, sizeof in_horovod) != cases[i].in_horovod)
            fail_msg("case %zu: another answer in some environment", i);
    }
}

static bool is_prefix(const char *part, const char *whole)
{
    return strncmp(part, whole, strlen(part)) == 0;
}

/* The copy ends where the text ends, so that a sanitizer notices if more is read. */
static void truncated_maps_are_read_as_far_as_they_go(void **state)
{
    static const char whole[] = CODE("/lib/libmpi.so.40") CODE("/a/horovod/torch/mpi_lib.so");
    struct dt_mapped m;

    (void)state;
    for (size_t n = 0; n < sizeof whole; n++) {
        char *copy = memcpy(malloc(n + !n), whole, n);

        dt_mapped_read(&m, copy, n);
        assert_true(is_prefix(m.openmpi, "/lib/libmpi.so.40"));
        assert_true(is_prefix(m.horovod, "/a/horovod/torch/mpi_lib.so"));
        free(copy);
    }
    assert_string_equal(m.openmpi, "/lib/libmpi.so.40");
    assert_string_equal(m.horovod, "/a/horovod/torch/mpi_lib.so");
}

static void a_path_that_is_too_long_is_truncated(void **state)
{
    static char maps[2 * DT_MAPPED_PATH] = "1-2 r-xp 0 0:0 1 /";
    struct dt_mapped m;

    (void)state;
    memset(maps + strlen(maps), 'a', sizeof maps - strlen(maps) - 1);
    memcpy(maps + sizeof maps - 15, "/libmpi.so.40", 14);
    assert_true(dt_mapped_read(&m, maps, strlen(maps)));
    assert_int_equal(strlen(m.openmpi), DT_MAPPED_PATH - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_and_environment_show_who_is_unserved),
        cmocka_unit_test(truncated_maps_are_read_as_far_as_they_go),
        cmocka_unit_test(a_path_that_is_too_long_is_truncated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
