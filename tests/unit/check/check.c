/* --check: clocks, remarks about hosts that differ, and the table. */
#include <stdlib.h>
#include <string.h>

#include "launcher/check/cells.h"
#include "launcher/check/remarks.h"
#include "launcher/check/table.h"
#include "tests/unit/unit.h"

#define S  INT64_C(1000000000)
#define MS INT64_C(1000000)

/* The agent's host was booted boot_ns earlier than dtrun's, and its wall clock is off_ns ahead. The
 * question took there_ns, the answer back_ns. */
static void clock_offset_and_error_follow_from_one_question(void **state)
{
    static const struct {
        int64_t boot_ns, off_ns, there_ns, back_ns;
        int64_t offset_ns;
        uint64_t error_ns;
    } cases[] = {
        { 0, 0, MS, MS, 0, MS },
        { 5000 * S, 0, MS, MS, 0, MS },
        { -5000 * S, 0, MS, MS, 0, MS },
        { 70 * S, 3 * S, MS, MS, 3 * S, MS },
        { 70 * S, -3600 * S, MS, MS, -3600 * S, MS },
        /* An uneven round trip is wrong by less than the stated error. */
        { 0, 0, 3 * MS, MS, MS, 2 * MS },
        { 0, 0, MS, 5 * MS, -2 * MS, 3 * MS },
    };
    const int64_t now = 100000 * S, own_ahead = 1700000000 * S;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_heartbeat h = { 0 };
        int64_t heard = now + cases[i].there_ns + cases[i].boot_ns;
        struct dt_check_clock w;

        dt_heartbeat_pong(&h, (uint64_t)now, (uint64_t)heard,
                          (uint64_t)(now + cases[i].there_ns + cases[i].back_ns));
        w = dt_check_clock_of(&h, own_ahead - cases[i].boot_ns + cases[i].off_ns, own_ahead);
        assert_int_equal(w.offset_ns, cases[i].offset_ns);
        assert_int_equal(w.error_ns, cases[i].error_ns);
    }
}

static void columns_are_aligned_or_become_lines(void **state)
{
    static const struct dt_table_column columns[] = {
        { "host", false },
        { "cores", true },
        { "GPUs", false },
    };
    static const struct {
        const char *cells[6];
        size_t width;
        const char *want;
    } cases[] = {
        { { "a", "8", "-", "host-b", "128", "2 x H100" },
          0,
          "host    cores  GPUs\n"
          "a           8  -\n"
          "host-b    128  2 x H100\n" },
        /* n\xc3\xb6rdlich: 8 columns, 9 bytes; \xe4\xba\x8c: 2 columns, 3 bytes */
        { { "n\xc3\xb6rdlich", "8", "x", "\xe4\xba\x8c", "16", "y" },
          0,
          "host      cores  GPUs\n"
          "n\xc3\xb6rdlich      8  x\n"
          "\xe4\xba\x8c           16  y\n" },
        /* a letter with a combining accent; a byte that is no UTF-8; characters that move the
         * cursor */
        { { "e\xcc\x81", "8", "x", "a\xff\033[", "16", "y\n" },
          0,
          "host  cores  GPUs\n"
          "e\xcc\x81         8  x\n"
          "a??[     16  y?\n" },
        { { "a", "8", "-", "host-b", "128", "2 x H100" },
          23,
          "host    cores  GPUs\n"
          "a           8  -\n"
          "host-b    128  2 x H100\n" },
        { { "a", "8", "-", "host-b", "128", "2 x H100" },
          22,
          "a\n"
          "  cores  8\n"
          "  GPUs   -\n"
          "host-b\n"
          "  cores  128\n"
          "  GPUs   2 x H100\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_table t = { columns, 3, (char *const *)cases[i].cells, 2 };
        struct dt_strbuf b = { 0 };

        dt_table_print(&b, &t, cases[i].width);
        assert_string_equal(dt_strbuf_text(&b), cases[i].want);
        dt_strbuf_free(&b);
    }
}

#define GIB (UINT64_C(1) << 30)

static char *h100[] = { "NVIDIA H100", "NVIDIA H100", NULL };
static char *no_errors[] = { "0", "0", NULL };
static char *a100[] = { "NVIDIA A100", "NVIDIA A100", NULL };

/* A host without problems. Cases change the facts that they are about. */
static struct dt_check_host usual(const char *name)
{
    return (struct dt_check_host){
        .name = name,
        .carrier = "libssh2",
        .greeted = true,
        .connect_seconds = 0.214,
        .agent_version = (char *)"0.1.0",
        .cores = 16,
        .memory = 64 * GIB,
        .has_facts = true,
        .facts = { .kernel = (char *)"6.1",
                   .machine = (char *)"x86_64",
                   .cpus = 16,
                   .physical_cores = 8,
                   .load = 30,
                   .gpu_models = { h100, 2 },
                   .gpu_driver = (char *)"580.1",
                   .gpu_ecc = { no_errors, 2 },
                   .gpu_links = (char *)"NV18",
                   .nccl = (char *)"2.28.9",
                   .disk_dir = (char *)"/d",
                   .disk_free = 100 * GIB },
        .clock = { 2 * MS, MS / 10 },
        .next = "z",
        .rtt_us = 100,
        .bandwidth = 1e10,
    };
}

static void fewer_cores(struct dt_check_host *h)
{
    h[2].cores = 8;
}

static void half_a_core_by_cgroup(struct dt_check_host *h)
{
    h[1].facts.cpu_limit = 50;
}

static void more_cores(struct dt_check_host *h)
{
    h[2].cores = 32;
}

static void less_memory(struct dt_check_host *h)
{
    h[0].memory = 57 * GIB;
}

static void nearly_the_same_memory(struct dt_check_host *h)
{
    h[0].memory = 63 * GIB;
}

static void memory_limit(struct dt_check_host *h)
{
    h[0].facts.memory_limit = 8 * GIB;
}

static void loaded(struct dt_check_host *h)
{
    h[1].facts.load = 800;
}

static void a_little_loaded(struct dt_check_host *h)
{
    h[1].facts.load = 400;
}

static void all_loaded(struct dt_check_host *h)
{
    for (int i = 0; i < 3; i++)
        h[i].facts.load = 1600;
}

static void fewer_gpus(struct dt_check_host *h)
{
    h[1].facts.gpu_models.n = 1;
}

static void other_gpus(struct dt_check_host *h)
{
    h[2].facts.gpu_models.v = a100;
    h[2].facts.gpu_driver = (char *)"535.2";
}

static void no_gpus(struct dt_check_host *h)
{
    h[2].facts.gpu_models.n = 0;
    h[2].facts.gpu_driver = (char *)"";
}

static void bad_gpus(struct dt_check_host *h)
{
    static char *errors[] = { "1", "12", NULL }, *xids[] = { "Xid 79 x 2 (0000:3b:00)", NULL };

    h[0].facts.gpu_ecc.v = errors;
    h[1].facts.gpu_xids = (struct dt_strs){ xids, 1 };
    h[2].facts.gpu_silent = 1;
    h[2].facts.gpu_ecc.n = 0;
}

static void other_links(struct dt_check_host *h)
{
    h[0].facts.gpu_links = (char *)"NV18, SYS";
    h[1].facts.nccl = (char *)"2.18.3";
    h[2].facts.nccl = (char *)"";
}

static void other_system(struct dt_check_host *h)
{
    h[0].facts.kernel = (char *)"5.10";
    h[0].facts.machine = (char *)"aarch64";
}

static void all_differ(struct dt_check_host *h)
{
    h[1].facts.kernel = (char *)"6.2";
    h[2].facts.kernel = (char *)"6.3";
}

static void clocks(struct dt_check_host *h)
{
    h[0].clock.offset_ns = -3200 * MS;
    h[1].clock.offset_ns = 90 * S;
    h[2].clock = (struct dt_check_clock){ 2 * S, 1100 * MS }; /* may be a second or less */
}

static void disk(struct dt_check_host *h)
{
    h[0].facts.disk_free = 49 * GIB;
    h[1].facts.disk_error = 30; /* EROFS */
}

static void disk_that_is_the_problem(struct dt_check_host *h)
{
    static char problem[] = "checkpoint directory /d: Read-only file system";

    h[0].problem = h[1].problem = problem;
    h[1].facts.disk_error = 30;
    h[2].problem = (char *)"./train: No such file or directory";
    h[2].facts.disk_error = 30;
}

static void slow_paths(struct dt_check_host *h)
{
    h[0].rtt_us = 5200;
    h[1].bandwidth = 6.9e9;
    h[2].rtt_us = 390; /* neither much more nor twice as much */
}

static void unknown_paths(struct dt_check_host *h)
{
    h[0].next = NULL;
    h[1].rtt_us = 1000;
    h[1].bandwidth = 1e9;
}

static void unknown(struct dt_check_host *h)
{
    h[0].has_facts = false;
    h[0].next = NULL;
    h[0].cores = 1;
    h[1].cores = 8;
}

static void nothing_known(struct dt_check_host *h)
{
    for (int i = 0; i < 3; i++) {
        h[i].has_facts = false;
        h[i].next = NULL;
    }
}

static void a_host_that_differs_from_the_usual_gets_remarks(void **state)
{
    static const struct {
        void (*change)(struct dt_check_host *hosts);
        const char *want; /* "HOST COLUMN text|" of each */
    } cases[] = {
        { fewer_cores, "c3 8 cores (usual: 16)|" },
        { half_a_core_by_cgroup, "b3 0.5 cores (usual: 16)|b6 a load of 60 % of its cores "
                                 "(usual: 2 %)|" },
        { more_cores, "" },
        { less_memory, "a5 57 GiB of memory (usual: 64 GiB)|" },
        { nearly_the_same_memory, "" },
        { memory_limit, "a5 8.0 GiB of memory (usual: 64 GiB)|" },
        { loaded, "b6 a load of 50 % of its cores (usual: 2 %)|" },
        { a_little_loaded, "" },
        { all_loaded, "" },
        { fewer_gpus, "b7 1 GPU (usual: 2)|" },
        { other_gpus, "c7 GPU A100 (usual: H100)|c8 driver 535.2 (usual: 580.1)|" },
        { bad_gpus, "a15 GPU 0 has 1 uncorrected memory error|"
                    "a15 GPU 1 has 12 uncorrected memory errors|"
                    "b15 the kernel's log has Xid 79 x 2 (0000:3b:00)|"
                    "c7 nvidia-smi does not answer|" },
        { other_links, "a13 GPU links NV18, SYS (usual: NV18)|b14 NCCL 2.18.3 (usual: 2.28.9)|" },
        { no_gpus, "c7 0 GPUs (usual: 2)|" },
        { other_system, "a16 kernel 5.10 (usual: 6.1)|a16 machine type aarch64 (usual: x86_64)|" },
        { all_differ, "b16 kernel 6.2 (usual: 6.1)|c16 kernel 6.3 (usual: 6.1)|" },
        { clocks, "a9 its clock is 3.2 s behind this machine's|"
                  "b9 its clock is 1 min 30 s ahead of this machine's|" },
        { disk, "a10 49 GiB free for checkpoints (usual: 100 GiB)|"
                "b10 checkpoints cannot be written: /d: Read-only file system|" },
        { disk_that_is_the_problem, /* is reported as such */
          "c10 checkpoints cannot be written: /d: Read-only file system|" },
        { slow_paths, "a11 5.20 ms there and back to z (usual: 0.39 ms)|"
                      "b12 6.9 Gbit/s to z (usual: 10 Gbit/s)|" },
        { unknown_paths, "b11 1.00 ms there and back to z (usual: 0.10 ms)|"
                         "b12 1.0 Gbit/s to z (usual: 10 Gbit/s)|" },
        { unknown, "b3 8 cores (usual: 16)|" }, /* of two, the better one is usual */
        { nothing_known, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_check_host hosts[] = { usual("a"), usual("b"), usual("c") };
        struct dt_remarks r = { 0 };
        struct dt_strbuf b = { 0 };

        cases[i].change(hosts);
        dt_remarks_make(&r, hosts, 3);
        for (size_t k = 0; k < r.n; k++)
            dt_strbuf_printf(&b, "%s%d %s|", hosts[r.v[k].host].name, (int)r.v[k].column,
                             r.v[k].text);
        assert_string_equal(dt_strbuf_text(&b), cases[i].want);
        dt_strbuf_free(&b);
        dt_remarks_free(&r);
    }
}

static void one_host_gets_no_remarks(void **state)
{
    struct dt_check_host host = usual("a");
    struct dt_remarks r = { 0 };

    (void)state;
    dt_remarks_make(&r, &host, 1);
    assert_int_equal(r.n, 0);
    dt_remarks_free(&r);
}

static void without_gpus_their_columns_are_missing(void **state)
{
    struct dt_check_host host = usual("host1");
    struct dt_remarks r = { 0 };
    struct dt_strbuf b = { 0 };

    (void)state;
    host.facts.gpu_models.n = 0;
    dt_check_print(&b, &host, 1, &r, 0);
    assert_string_equal(dt_strbuf_text(&b),
                        "host   ssh             agent  cores  physical  memory  load  GPUs  driver"
                        "          clock     disk  to next: rtt  bandwidth\n"
                        "host1  libssh2 0.21 s  0.1.0     16         8  64 GiB   0.3  -     580.1 "
                        "  +2.0 +-0.1 ms  100 GiB       0.10 ms  10 Gbit/s\n");
    dt_strbuf_free(&b);
}

static void the_table_shows_facts_remarks_and_problems(void **state)
{
    struct dt_check_host hosts[] = { usual("host1"), usual("here"), usual("host3"), usual("h4") };
    struct dt_remarks r = { 0 };
    struct dt_strbuf b = { 0 };

    (void)state;
    hosts[1].carrier = "local";
    hosts[1].facts.cpu_limit = 450;
    hosts[1].facts.load = 1250;
    hosts[1].clock = (struct dt_check_clock){ -MS / 100, 0 }; /* no "-0.0" */
    hosts[1].facts.gpu_models.n = 0;
    hosts[1].facts.gpu_driver = hosts[1].facts.gpu_links = hosts[1].facts.nccl = (char *)"";
    hosts[1].facts.gpu_ecc.n = 0;
    hosts[2] = (struct dt_check_host){ .name = "host3",
                                       .problem = (char *)"authenticate as anna: no key: x",
                                       .carrier = "ssh" };
    hosts[3].agent_sent = true;
    hosts[3].clock.offset_ns = -4 * S;
    hosts[3].facts.physical_cores = 0;
    dt_remarks_make(&r, hosts, 4);
    dt_check_print(&b, hosts, 4, &r, 0);
    assert_string_equal(
        dt_strbuf_text(&b),
        "host     ssh                                 agent             cores  physical  memo"
        "ry    load  GPUs        driver            clock     disk  to next: rtt  bandwidth  "
        "GPU links  NCCL    GPU errors\n"
        "host1    libssh2 0.21 s                      0.1.0              16           8  64 G"
        "iB   0.3    2 x H100    580.1   +2.0 +-0.1 ms    100 GiB       0.10 ms  10 Gbit/s  "
        "NV18       2.28.9  0 ECC, 0 Xid\n"
        "here     local                               0.1.0       4.5 of 16 !         8  64 G"
        "iB  12.5 !  - !         -       +0.0 +-0.1 ms    100 GiB       0.10 ms  10 Gbit/s  "
        "-          -       -\n"
        "host3 !  failed: authenticate as anna (ssh)  -                   -           -      "
        " -     -    -           -                   -          -             -          -  "
        "-          -       -\n"
        "h4       libssh2 0.21 s                      0.1.0 sent         16           -  64 G"
        "iB   0.3    2 x H100    580.1          -4.0 s !  100 GiB       0.10 ms  10 Gbit/s  "
        "NV18       2.28.9  0 ECC, 0 Xid\n");
    dt_strbuf_free(&b);
    dt_remarks_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_offset_and_error_follow_from_one_question),
        cmocka_unit_test(columns_are_aligned_or_become_lines),
        cmocka_unit_test(a_host_that_differs_from_the_usual_gets_remarks),
        cmocka_unit_test(one_host_gets_no_remarks),
        cmocka_unit_test(the_table_shows_facts_remarks_and_problems),
        cmocka_unit_test(without_gpus_their_columns_are_missing),

    };

    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
