#include "launcher/place/bind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/agent/facts/topology.h"
#include "launcher/base/granted/affinity.h"
#include "launcher/base/strbuf.h"
#include "tests/unit/unit.h"

enum { CPUS_MAX = 16 };

/* Machines as lists of their CPUs, "package/core/id" or "package/core/id/numa/l3", in the order of
 * the kernel's numbers. Without the last two, a package is one NUMA node with one cache. */
#define UNIFORM     "0/0/0 0/1/1 0/2/2 0/3/3"
#define THREADS     "0/0/0 0/1/1 0/2/2 0/3/3 0/0/4 0/1/5 0/2/6 0/3/7"
#define TWO_SOCKETS "0/0/0 1/1/1 0/2/2 1/3/3 0/0/4 1/1/5 0/2/6 1/3/7"
#define UNEVEN      "0/0/0 0/1/1 0/2/2 3/8/8"       /* the CPUs of a container */
#define HALF_CORES  "0/0/4 0/1/1 0/2/2 0/2/6 0/3/7" /* not even whole cores */
#define CHIPLETS    "0/0/0/0/0 0/1/1/0/0 0/2/2/0/2 0/3/3/0/2 1/4/4/1/4 1/5/5/1/4 1/6/6/1/6 1/7/7/1/6"
#define CLUSTERS    "0/0/0/0/0 0/1/1/1/0 0/2/2/0/0 0/3/3/1/0" /* two nodes share one cache */

static const struct binding {
    const char *machine;
    enum dt_bind_to to;
    const char *want; /* for each local rank its CPUs, and after a colon its cores */
} bindings[] = {
    { UNIFORM, DT_BIND_CORE, "0,1,2,3:4" },
    { UNIFORM, DT_BIND_CORE, "0,1:2 2,3:2" },
    { UNIFORM, DT_BIND_CORE, "0:1 1:1 2,3:2" },
    { UNIFORM, DT_BIND_CORE, "0:1 1:1 2:1 3:1" },
    /* more ranks than cores */
    { UNIFORM, DT_BIND_CORE, "0:1 0:1 1:1 2:1 3:1" },
    { UNIFORM, DT_BIND_CORE, "0:1 0:1 1:1 1:1 2:1 2:1 3:1 3:1" },
    { "0/0/5", DT_BIND_CORE, "5:1 5:1 5:1" },
    /* hardware threads belong to their core */
    { THREADS, DT_BIND_CORE, "0,4,1,5,2,6,3,7:4" },
    { THREADS, DT_BIND_CORE, "0,4,1,5:2 2,6,3,7:2" },
    { THREADS, DT_BIND_CORE, "0,4:1 1,5:1 2,6:1 3,7:1" },
    { THREADS, DT_BIND_CORE, "0,4:1 0,4:1 1,5:1 2,6:1 3,7:1" },
    /* neighbouring ranks stay in one package as long as they can */
    { TWO_SOCKETS, DT_BIND_CORE, "0,4,2,6:2 1,5,3,7:2" },
    { TWO_SOCKETS, DT_BIND_CORE, "0,4:1 2,6:1 1,5:1 3,7:1" },
    { UNEVEN, DT_BIND_CORE, "0,1:2 2,8:2" },
    { HALF_CORES, DT_BIND_CORE, "4,1:2 2,6,7:2" },
    /* packages in turn; ranks that share one divide its cores */
    { UNIFORM, DT_BIND_SOCKET, "0,1,2,3:4" },
    { UNIFORM, DT_BIND_SOCKET, "0,1,2,3:1 0,1,2,3:1 0,1,2,3:1" },
    { TWO_SOCKETS, DT_BIND_SOCKET, "0,4,2,6:2" },
    { TWO_SOCKETS, DT_BIND_SOCKET, "0,4,2,6:2 1,5,3,7:2" },
    { TWO_SOCKETS, DT_BIND_SOCKET, "0,4,2,6:1 1,5,3,7:2 0,4,2,6:1" },
    { TWO_SOCKETS, DT_BIND_SOCKET, "0,4,2,6:1 1,5,3,7:1 0,4,2,6:1 1,5,3,7:1 0,4,2,6:1 1,5,3,7:1" },
    { UNEVEN, DT_BIND_SOCKET, "0,1,2:1 8:1 0,1,2:1" },
    /* NUMA nodes and caches in the same way */
    { TWO_SOCKETS, DT_BIND_NUMA, "0,4,2,6:2 1,5,3,7:2" },
    { TWO_SOCKETS, DT_BIND_L3, "0,4,2,6:2 1,5,3,7:2" },
    { CHIPLETS, DT_BIND_NUMA, "0,1,2,3:4 4,5,6,7:4" },
    { CHIPLETS, DT_BIND_L3, "0,1:2 2,3:2 4,5:2 6,7:2" },
    { CHIPLETS, DT_BIND_L3, "0,1:1 2,3:2 4,5:2 6,7:2 0,1:1" },
    { CLUSTERS, DT_BIND_NUMA, "0,2:2 1,3:2" },
    { CLUSTERS, DT_BIND_L3, "0,1,2,3:2 0,1,2,3:2" },
    /* hardware threads one by one */
    { THREADS, DT_BIND_HWTHREAD, "0,4,1,5:4 2,6,3,7:4" },
    { THREADS, DT_BIND_HWTHREAD, "0:1 4:1 1:1 5:1 2:1 6:1 3:1 7:1" },
    { UNIFORM, DT_BIND_HWTHREAD, "0:1 0:1 1:1 2:1 3:1" },
    /* not bound: every rank gets all */
    { UNIFORM, DT_BIND_NONE, "0,1,2,3:2 0,1,2,3:2" },
    { THREADS, DT_BIND_NONE, "0,4,1,5,2,6,3,7:1 0,4,1,5,2,6,3,7:1 0,4,1,5,2,6,3,7:1" },
    { "0/0/5", DT_BIND_NONE, "5:1 5:1" },
};

static void read_machine(struct dt_cpus *cpus, const char *text)
{
    int used;

    for (cpus->n = 0; *text; text += used) {
        struct dt_cpu *c = &cpus->v[cpus->n++];

        assert_int_equal(sscanf(text, "%u/%u/%u%n", &c->package, &c->core, &c->id, &used), 3);
        c->numa = c->l3 = c->package;
        text += used;
        used = 0;
        sscanf(text, "/%u/%u%n", &c->numa, &c->l3, &used);
        used += text[used] == ' ';
    }
    dt_cpus_sort(cpus);
}

static uint32_t count_words(const char *text)
{
    uint32_t n = 1;

    for (; *text; text++)
        n += *text == ' ';
    return n;
}

static void add_cpus(struct dt_strbuf *b, const struct dt_u32s *own)
{
    for (uint32_t i = 0; i < own->n; i++)
        dt_strbuf_printf(b, "%s%u", i ? "," : "", own->v[i]);
}

static void every_local_rank_gets_its_cpus(void **state)
{
    struct dt_cpu cpu[CPUS_MAX] = { { 0 } };
    uint32_t ids[CPUS_MAX] = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++) {
        const struct binding *b = &bindings[i];
        struct dt_cpus cpus = { cpu, 0 };
        uint32_t size = count_words(b->want);
        struct dt_strbuf got = { 0 };

        read_machine(&cpus, b->machine);
        for (uint32_t local = 0; local < size; local++) {
            struct dt_u32s own = { ids, 0 };
            uint32_t cores = dt_bind(&own, b->to, &cpus, local, size);

            dt_strbuf_puts(&got, local ? " " : "");
            add_cpus(&got, &own);
            dt_strbuf_printf(&got, ":%u", cores);
        }
        assert_string_equal(dt_strbuf_text(&got), b->want);
        dt_strbuf_free(&got);
    }
}

static void run(const char *command)
{
    assert_int_equal(system(command), 0);
}

static void put(const char *root, uint32_t id, const char *name, const char *text)
{
    char command[256];

    snprintf(command, sizeof command,
             "f=%s/sys/devices/system/cpu/cpu%u/%s; mkdir -p ${f%%/*} && echo '%s' >$f", root, id,
             name, text);
    run(command);
}

/* The affinity mask is this process's own. The kernel's data about its CPUs is made up. */
static void the_topology_is_read_for_the_cpus_of_the_mask(void **state)
{
    char root[] = "/tmp/dtrun-bind.XXXXXX", command[64];
    struct dt_cpus cpus = { 0 };
    uint32_t n = dt_affinity_count();

    (void)state;
    assert_non_null(mkdtemp(root));
    dt_topology_read(&cpus, root);
    assert_int_equal(cpus.n, n);
    assert_int_equal(dt_cpus_cores(&cpus), n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(cpus.v[i].package, 0);
        assert_int_equal(cpus.v[i].core, cpus.v[i].id);
        assert_int_equal(cpus.v[i].numa, 0);
        assert_int_equal(cpus.v[i].l3, 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        put(root, cpus.v[i].id, "topology/thread_siblings_list",
            i == n - 1 ? "bad" : "1234-1235,99");
        put(root, cpus.v[i].id, "topology/physical_package_id", i == n - 1 ? "-1" : "7");
    }
    free(cpus.v);
    dt_topology_read(&cpus, root);
    assert_int_equal(cpus.n, n);
    assert_int_equal(cpus.v[0].package, 0);
    assert_int_equal(cpus.v[0].core, cpus.v[0].id);
    assert_int_equal(cpus.v[n - 1].package, n > 1 ? 7 : 0);
    assert_int_equal(cpus.v[n - 1].core, n > 1 ? 1234 : cpus.v[0].id);
    assert_int_equal(dt_cpus_cores(&cpus), n > 1 ? 2 : 1);
    free(cpus.v);
    snprintf(command, sizeof command, "rm -rf %s", root);
    run(command);
}

static void caches_and_nodes_are_read(void **state)
{
    char root[] = "/tmp/dtrun-bind.XXXXXX", command[64];
    struct dt_cpus cpus = { 0 };
    uint32_t first;

    (void)state;
    assert_non_null(mkdtemp(root));
    dt_topology_read(&cpus, "");
    first = cpus.v[0].id;
    free(cpus.v);
    put(root, first, "topology/core_siblings_list", "4-7");
    put(root, first, "topology/thread_siblings_list", "0");
    put(root, first, "topology/physical_package_id", "0");
    put(root, first, "cache/index0/level", "1");
    put(root, first, "cache/index0/shared_cpu_list", "5");
    dt_topology_read(&cpus, root);
    assert_int_equal(cpus.v[0].id, first);
    assert_int_equal(cpus.v[0].l3, 4); /* no level-3 cache, so the package counts */
    assert_int_equal(cpus.v[0].numa, 0);
    free(cpus.v);
    put(root, first, "cache/index1/level", "3");
    put(root, first, "cache/index1/shared_cpu_list", "6-7");
    put(root, first, "node3/x", "");
    dt_topology_read(&cpus, root);
    assert_int_equal(cpus.v[0].l3, 6);
    assert_int_equal(cpus.v[0].numa, 3);
    free(cpus.v);
    snprintf(command, sizeof command, "rm -rf %s", root);
    run(command);
}

static void a_process_is_bound_to_the_given_cpus(void **state)
{
    struct dt_cpus cpus = { 0 };
    struct dt_u32s own = { (uint32_t[]){ 0 }, 1 };
    char *text, want[16];

    (void)state;
    dt_topology_read(&cpus, "");
    own.v[0] = cpus.v[cpus.n - 1].id;
    assert_int_equal(dt_topology_bind(&own), 0);
    assert_int_equal(dt_affinity_count(), 1);
    text = dt_topology_describe();
    snprintf(want, sizeof want, "%u", own.v[0]);
    assert_string_equal(text, want);
    free(text);
    own.n = 0;
    assert_int_equal(dt_topology_bind(&own), EINVAL);
    free(cpus.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_local_rank_gets_its_cpus),
        cmocka_unit_test(the_topology_is_read_for_the_cpus_of_the_mask),
        cmocka_unit_test(caches_and_nodes_are_read),
        cmocka_unit_test(a_process_is_bound_to_the_given_cpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
