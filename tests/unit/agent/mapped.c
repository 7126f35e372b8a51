/* What the maps and environments of processes show, as Linux writes them. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/agent/unserved/mapped.h"

#define CODE(path)                                                                                 \
    "7f5c2b200000-7f5c2b2a1000 r--p 00000000 fe:00 1234 " path "\n"                                \
    "7f5c2b2a1000-7f5c2b400000 r-xp 000a1000 fe:00 1234                      " path "\n"
#define LIB "/usr/lib/x86_64-linux-gnu/"
#define PYTHON                                                                                     \
    CODE("/usr/bin/python3.11") "55e0c0000000-55e0c0021000 rw-p 00000000 00:00 0 [heap]\n"
#define MPI4         CODE(LIB "libmpi.so.40.30.4") CODE(LIB "libopen-rte.so.40.30.2")
#define ALONE        CODE(LIB "openmpi/lib/openmpi3/mca_ess_singleton.so")
#define MPI5         CODE(MPI5_AT)
#define MPICH        CODE(MPICH_AT)
#define HOROVOD      CODE("/opt/venv/horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so")
#define PMIX_PLUGINS LIB "pmix2/lib/pmix/"
#define PMIX         CODE(LIB "pmix2/lib/libpmix.so.2.13.7")
#define PMIX_STARTED CODE(PMIX_PLUGINS "pmix_mca_pcompress_zlib.so")
#define MPICH_AT     "/usr/lib/x86_64-linux-gnu/libmpich.so.12.2.2"
#define MPI5_AT      "/opt/ompi5/lib/libmpi.so.40.40.1"
#define MPI4_AT      "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4"
#define HVD_AT       "/opt/venv/horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so"

static const char plain[] = "PATH=/bin\0PMI_FD=4\0PMI_RANK=1\0DTRUN_RANK=1";
static const char in_pmix[] = "PATH=/bin\0PMIX_NAMESPACE=train.1\0PMIX_RANK=1\0DTRUN_RANK=1";
static const char in_horovod[] = "HOROVOD_RANK=1\0HOROVOD_SIZE=2\0DTRUN_RANK=1";
static const char without_mpi[] = "PATH=/bin\0DTRUN_RANK=1";
static const char bare[] = "PATH=/bin\0HOME=/\0XPMI_FD=4";

enum { HVD = DT_LIBRARY_HOROVOD, OMPI = DT_LIBRARY_OPENMPI, MPI = DT_LIBRARY_MPICH };

#define INTEL_AT "/opt/intel/mpi/lib/libmpi.so.12.0.0"

static const struct {
    const char *maps;
    const char *openmpi, *mpich, *horovod; /* the paths that are found */
    /* what is unserved in these environments: if only MPICH is served, and if all are */
    unsigned plain, in_pmix, in_horovod, bare, bare_served;
} cases[] = {
    { "", "", "", "", 0, 0, 0, 0, 0 },
    { PYTHON, "", "", "", 0, 0, 0, 0, 0 },
    { PYTHON MPI4 ALONE, MPI4_AT, "", "", OMPI, 0, OMPI, OMPI, OMPI },
    { ALONE MPI4 PYTHON, MPI4_AT, "", "", OMPI, 0, OMPI, OMPI, OMPI },
    { PYTHON MPI4, MPI4_AT, "", "", 0, 0, 0, 0, 0 }, /* loaded, not started */
    { MPI5, MPI5_AT, "", "", OMPI, 0, OMPI, OMPI, OMPI },
    { CODE("/lib/libmpi.so.40 (deleted)"), "/lib/libmpi.so.40", "", "", OMPI, 0, OMPI, OMPI, OMPI },
    { CODE("/my lib/libmpi.so.20"), "/my lib/libmpi.so.20", "", "", OMPI, 0, OMPI, OMPI, OMPI },
    { MPICH, "", MPICH_AT, "", 0, 0, 0, MPI, MPI },
    { CODE(INTEL_AT), "", INTEL_AT, "", 0, 0, 0, MPI, MPI },
    { HOROVOD, "", "", HVD_AT, HVD, HVD, 0, HVD, HVD },
    { CODE("/a/horovod/mxnet/mpi_lib.so"), "", "", "/a/horovod/mxnet/mpi_lib.so", HVD, HVD, 0, HVD,
      HVD },
    { HOROVOD MPI4, MPI4_AT, "", HVD_AT, HVD, 0, 0, HVD, HVD },
    { HOROVOD MPI5, MPI5_AT, "", HVD_AT, HVD, 0, 0, HVD, HVD },
    { HOROVOD MPICH, "", MPICH_AT, HVD_AT, 0, 0, 0, HVD, HVD },
    { CODE("/a/mpi_lib.so"), "", "", "", 0, 0, 0, 0, 0 },
    { CODE("/a/horovod/mpi_lib.so.txt"), "", "", "", 0, 0, 0, 0, 0 },
    { CODE("/a/libmpi.so.40/data"), "", "", "", 0, 0, 0, 0, 0 },
    { CODE("/a/xlibmpi.so.40"), "", "", "", 0, 0, 0, 0, 0 },
    /* data, what no file holds, and lines that Linux does not write */
    { "7f5c2b200000-7f5c2b2a1000 r--p 00000000 fe:00 1234 /lib/libmpi.so.40\n", "", "", "", 0, 0, 0,
      0, 0 },
    { "7f5c2b200000-7f5c2b2a1000 r-xp 00000000 00:00 0 [vdso]\n", "", "", "", 0, 0, 0, 0, 0 },
    { "1-2 r-xp 0 0:0 1 /lib/libmpi.so.5", "/lib/libmpi.so.5", "", "", OMPI, 0, OMPI, OMPI, OMPI },
    { "\n/\n /\nr-xp/libmpi.so.40\n1-2 /libmpi.so.40\n1-2 r-xp 0 0:0 1 / (deleted)", "", "", "", 0,
      0, 0, 0, 0 },
};

static void maps_and_environment_show_who_is_unserved(void **state)
{
    const unsigned all = HVD | OMPI | MPI;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_mapped m = { 0 };

        dt_mapped_add(&m, cases[i].maps, strlen(cases[i].maps));
        if (strcmp(m.openmpi, cases[i].openmpi) != 0 || strcmp(m.mpich, cases[i].mpich) != 0 ||
            strcmp(m.horovod, cases[i].horovod) != 0 ||
            dt_mapped_any(&m) != (*m.openmpi || *m.mpich || *m.horovod))
            fail_msg("case %zu: found \"%s\", \"%s\", \"%s\"", i, m.openmpi, m.mpich, m.horovod);
        if (dt_mapped_unserved(&m, plain, sizeof plain, MPI) != cases[i].plain ||
            dt_mapped_unserved(&m, in_pmix, sizeof in_pmix, MPI) != cases[i].in_pmix ||
            dt_mapped_unserved(&m, in_horovod, sizeof in_horovod, MPI) != cases[i].in_horovod ||
            dt_mapped_unserved(&m, bare, sizeof bare, MPI) != cases[i].bare ||
            dt_mapped_unserved(&m, bare, sizeof bare, all) != cases[i].bare_served)
            fail_msg("case %zu: another answer in some environment", i);
    }
}

/* As where a rank of an MPI program runs a program that must not take part. */
static void mpi_may_be_hidden_from_a_process_if_the_rank_is_served(void **state)
{
    const unsigned all = HVD | OMPI | MPI;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_mapped m = { 0 };

        dt_mapped_add(&m, cases[i].maps, strlen(cases[i].maps));
        assert_int_equal(dt_mapped_unserved(&m, without_mpi, sizeof without_mpi, all), 0);
    }
}

/* PMIx may have its plugins in files of their own, or in itself. */
static void later_versions_of_open_mpi_show_by_a_plugin_of_pmix_that_they_are_started(void **state)
{
    static const struct {
        const char *maps;
        unsigned without_plugin,
            with_plugin; /* what is unserved if PMIx has no such file, or has it */
    } pmix[] = {
        { MPI5, OMPI, 0 },
        { MPI5 PMIX, OMPI, 0 },
        { MPI5 PMIX PMIX_STARTED, OMPI, OMPI },
        { PMIX_STARTED PMIX MPI5, OMPI, OMPI },
        { MPI5 PMIX CODE(PMIX_PLUGINS "pmix_mca_prm_slurm.so"), OMPI, 0 },
        { MPI4 PMIX PMIX_STARTED, 0, 0 },
        { MPI4 ALONE PMIX PMIX_STARTED, OMPI, OMPI },
        { PMIX PMIX_STARTED, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof pmix / sizeof *pmix; i++) {
        struct dt_mapped m = { 0 };

        dt_mapped_add(&m, pmix[i].maps, strlen(pmix[i].maps));
        assert_int_equal(dt_mapped_unserved(&m, plain, sizeof plain, MPI), pmix[i].without_plugin);
        m.pmix_has_plugin = true;
        assert_int_equal(dt_mapped_unserved(&m, plain, sizeof plain, MPI), pmix[i].with_plugin);
        assert_int_equal(dt_mapped_unserved(&m, in_pmix, sizeof in_pmix, MPI), 0);
    }
}

static void the_plugin_of_pmix_is_below_its_library(void **state)
{
    char path[DT_MAPPED_PATH];
    struct dt_mapped m = { 0 };

    (void)state;
    dt_mapped_pmix_plugin(&m, path);
    assert_string_equal(path, "");
    dt_mapped_add(&m, PMIX, strlen(PMIX));
    dt_mapped_pmix_plugin(&m, path);
    assert_string_equal(path, PMIX_PLUGINS "pmix_mca_pcompress_zlib.so");
}

static void other_launchers_serve_mpich_too(void **state)
{
    static const char *const variables[] = { "PMI_FD=3", "PMI_PORT=a:1", "PMI_RANK=0",
                                             "PMIX_NAMESPACE=a" };
    struct dt_mapped m = { .mpich = MPICH_AT };

    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        assert_int_equal(dt_mapped_unserved(&m, variables[i], strlen(variables[i]) + 1, MPI), 0);
    assert_int_equal(dt_mapped_unserved(&m, "", 0, MPI), MPI);
}

static void libdtrun_is_served_unless_the_environment_is_gone(void **state)
{
    static const char maps[] = CODE("/lib/libdtrun.so.0.0.0") MPI4, alone[] = "DTRUN_ALONE=1";
    const unsigned served = MPI | DT_LIBRARY_DTRUN;
    struct dt_mapped m = { 0 };

    (void)state;
    dt_mapped_add(&m, maps, strlen(maps));
    assert_true(dt_mapped_any(&m));
    assert_string_equal(dt_mapped_path(&m, DT_LIBRARY_DTRUN), "/lib/libdtrun.so.0.0.0");
    assert_int_equal(dt_mapped_unserved(&m, bare, sizeof bare, served), DT_LIBRARY_DTRUN);
    assert_int_equal(dt_mapped_unserved(&m, plain, sizeof plain, served), 0);
    assert_int_equal(dt_mapped_unserved(&m, alone, sizeof alone, served), 0);
}

static bool is_prefix(const char *part, const char *whole)
{
    return strncmp(part, whole, strlen(part)) == 0;
}

/* The copy ends where the text ends, so that a sanitizer notices if more is read. */
static void truncated_maps_are_read_as_far_as_they_go(void **state)
{
    static const char whole[] = CODE("/lib/libmpi.so.40") CODE("/a/horovod/torch/mpi_lib.so");
    struct dt_mapped m = { 0 };

    (void)state;
    for (size_t n = 0; n < sizeof whole; n++) {
        char *copy = memcpy(malloc(n + !n), whole, n);

        m = (struct dt_mapped){ 0 };
        dt_mapped_add(&m, copy, n);
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
    struct dt_mapped m = { 0 };

    (void)state;
    memset(maps + strlen(maps), 'a', sizeof maps - strlen(maps) - 1);
    memcpy(maps + sizeof maps - 15, "/libmpi.so.40", 14);
    dt_mapped_add(&m, maps, strlen(maps));
    assert_true(dt_mapped_any(&m));
    assert_int_equal(strlen(m.openmpi), DT_MAPPED_PATH - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_and_environment_show_who_is_unserved),
        cmocka_unit_test(mpi_may_be_hidden_from_a_process_if_the_rank_is_served),
        cmocka_unit_test(later_versions_of_open_mpi_show_by_a_plugin_of_pmix_that_they_are_started),
        cmocka_unit_test(the_plugin_of_pmix_is_below_its_library),
        cmocka_unit_test(libdtrun_is_served_unless_the_environment_is_gone),
        cmocka_unit_test(other_launchers_serve_mpich_too),
        cmocka_unit_test(truncated_maps_are_read_as_far_as_they_go),
        cmocka_unit_test(a_path_that_is_too_long_is_truncated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
