/* The GPUs that a step on each node requests, from scontrol's description of the job. */
#include <string.h>

#include "launcher/base/strbuf.h"
#include "launcher/hosts/slurmgpus.h"
#include "tests/unit/unit.h"

static const struct {
    const char *text;
    /* for node1, node2 and node3; "-": unknown; ".": no node of the job has fewer */
    const char *want;
} cases[] = {
    { "   JOB_GRES=gpu:3\n"
      "     Nodes=node1 CPU_IDs=0-2 Mem=0 GRES=gpu:2(IDX:0-1)\n"
      "     Nodes=node2 CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0)\n",
      "2 1. -" },
    { "     Nodes=node[1-3] CPU_IDs=2-3 Mem=2000 GRES=gpu:8(IDX:0-7)", "8. 8. 8." },
    { "     Nodes=node[1,3] CPU_IDs=2-3 Mem=2000 GRES=gpu:tesla:2(IDX:0,3),nic:1(IDX:0)\n"
      "     Nodes=node2,other CPU_IDs=2 Mem=2000 GRES=gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:2)\n",
      "tesla:2. a100:2,v100:1 tesla:2." },
    { "     Nodes=node1 CPU_IDs=0 Mem=0 GRES=(null)\n"
      "     Nodes=node2 CPU_IDs=0 Mem=0 GRES=\n"
      "     Nodes=node3 CPU_IDs=0 Mem=0 GRES=shard:gpu:4(IDX:0),mps:100\n",
      "0. 0. 0." },
    { "     Nodes=node[1-3] CPU_IDs=0 Mem=0 GRES=gpu:10(IDX:0-9)\n"
      "     Nodes=other CPU_IDs=0 Mem=0 GRES=gpu:9(IDX:0-8)\n",
      "10 10 10" },
    { "   NodeList=node[1-2] GRES=gpu:2\n", "- - -" },
    { "     Nodes=node1 CPU_IDs=0 Mem=0 GRES_IDX=gpu(IDX:0)\n", "- - -" },
    { "     Nodes=node[1- CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0\n     Nodes=node2 GRES=gpu:1(IDX:0",
      "- 1. -" },
    { "", "- - -" },
};

static void each_node_gets_its_own_gpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_hostlist hosts = { 0 };
        struct dt_strbuf got = { 0 };

        dt_hostlist_add(&hosts, "node1");
        dt_hostlist_add(&hosts, "node2");
        dt_hostlist_add(&hosts, "node3");
        dt_slurmgpus_parse(&hosts, cases[i].text);
        for (size_t k = 0; k < hosts.n; k++)
            dt_strbuf_printf(&got, "%s%s%s", k ? " " : "",
                             hosts.v[k].step_gpus ? hosts.v[k].step_gpus : "-",
                             hosts.v[k].has_fewest_gpus ? "." : "");
        assert_string_equal(dt_strbuf_text(&got), cases[i].want);
        dt_strbuf_free(&got);
        dt_hostlist_free(&hosts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_node_gets_its_own_gpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
