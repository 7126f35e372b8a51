#include <string.h>

#include "launcher/hosts/scheduler.h"
#include "tests/unit/hosts/describe.h"
#include "tests/unit/unit.h"

enum { VARIABLES_MAX = 4 };

struct allocation {
    const char *variables[VARIABLES_MAX]; /* NAME=VALUE */
    const char *file;                     /* content of /nodes; NULL: there is no such file */
    const char *want;                     /* the hosts, or how the error begins */
};

static const char *variable(const char *name, void *arg)
{
    const struct allocation *a = arg;
    size_t n = strlen(name);

    for (size_t i = 0; i < VARIABLES_MAX && a->variables[i]; i++)
        if (strncmp(a->variables[i], name, n) == 0 && a->variables[i][n] == '=')
            return a->variables[i] + n + 1;
    return NULL;
}

static int file(struct dt_strbuf *text, const char *path, void *arg, struct dt_error *err)
{
    const struct allocation *a = arg;

    if (strcmp(path, "/nodes") != 0 || !a->file)
        return dt_error_set(err, "No such file or directory");
    dt_strbuf_puts(text, a->file);
    return 0;
}

#define NODES "SLURM_JOB_NODELIST="
#define TASKS "SLURM_TASKS_PER_NODE="
#define OMPI  "OMPI_MCA_orte_default_hostfile"

static const struct allocation goods[] = {
    { { NULL }, NULL, "" },
    { { NODES, "PBS_NODEFILE=" }, NULL, "" },
    { { TASKS "4" }, NULL, "" },
    { { NODES "n1" }, NULL, "n1:1" },
    { { NODES "n1", TASKS "4" }, NULL, "n1:4" },
    { { NODES "n1", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2" }, NULL, "n1:1" },
    { { NODES "n1", "SLURM_PROCID=1" }, NULL, "n1:1" },
    { { NODES "n[1-3]", TASKS "4(x2),1" }, NULL, "n1:4; n2:4; n3:1" },
    { { NODES "n[1-3]", TASKS "2,4(x2)" }, NULL, "n1:2; n2:4; n3:4" },
    { { NODES "n[01-02,08],gpu7,x[9-10]", TASKS "1,2,3,4,5(x1),6" },
      NULL,
      "n01:1; n02:2; n08:3; gpu7:4; x9:5; x10:6" },
    { { NODES "r[1-2]n[1-2,5]", TASKS "1(x3),2(x3)" },
      NULL,
      "r1n1:1; r1n2:1; r1n5:1; r2n1:2; r2n2:2; r2n5:2" },
    { { NODES "b,a", TASKS "1,2", "PBS_NODEFILE=/nodes" }, "p\n", "b:1; a:2" },
    { { "PBS_NODEFILE=/nodes" }, "a\nb\na\nb\nb\n", "a:2; b:3" },
    { { "PBS_NODEFILE=/nodes" }, "\r\n a.x.org \r\nb", "a.x.org:1; b:1" },
    { { "LSB_DJOB_HOSTFILE=/nodes", "LSB_MCPU_HOSTS=c 1" }, "a\na\nb\n", "a:2; b:1" },
    { { "LSB_MCPU_HOSTS=hostA 4 hostB 2" }, NULL, "hostA:4; hostB:2" },
    { { "LSB_MCPU_HOSTS= a 4  b 2 a 1 " }, NULL, "a:5; b:2" },
    { { "PE_HOSTFILE=/nodes" },
      "n1.x.org 8 all.q@n1.x.org UNDEFINED\nn2.x.org 4 all.q@n2.x.org 0,0:0,1\n",
      "n1.x.org:8; n2.x.org:4" },
    { { "PE_HOSTFILE=/nodes" }, "a 2 x.q@a <NULL>\nb 1\na 1 y.q@a <NULL>", "a:3; b:1" },
    { { "OAR_NODEFILE=/nodes" }, "a-1.x.org\na-1.x.org\n", "a-1.x.org:2" },
    { { OMPI "=/nodes" },
      "# pods\r\nw-0.w.ns.svc slots=8\r\nw-1.w.ns.svc slots=8\r\n",
      "w-0.w.ns.svc:8; w-1.w.ns.svc:8" },
    { { "PRTE_MCA_prte_default_hostfile=/nodes" }, "a slots=2\n", "a:2" },
    { { "HYDRA_HOST_FILE=/nodes" },
      "w-0.w.ns.svc:4\nw-1.w.ns.svc:4\n",
      "w-0.w.ns.svc:4; w-1.w.ns.svc:4" },
    { { "I_MPI_HYDRA_HOST_FILE=/nodes" }, "a:4\n", "a:4" },
    { { NODES "n1", OMPI "=/nodes" }, "a slots=2\n", "n1:1" },
};

static const struct allocation bads[] = {
    { { NODES "n[1-2]", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2" },
      NULL,
      "srun has started dtrun as task 1 of 2, and each would start the whole job" },
    { { NODES "n[1-3" }, NULL, "SLURM_JOB_NODELIST=n[1-3: n[1-3: a bracket is not matched" },
    { { NODES "n[1-x]" }, NULL, "SLURM_JOB_NODELIST=n[1-x]: n[1-x]: [1-x] is not a range" },
    { { NODES "a,,b" }, NULL, "SLURM_JOB_NODELIST=a,,b: a host is missing" },
    { { NODES "a,a" }, NULL, "SLURM_JOB_NODELIST=a,a: a is named twice" },
    { { NODES "a:4" }, NULL, "SLURM_JOB_NODELIST=a:4: a list such as" },
    { { NODES "u@a" }, NULL, "SLURM_JOB_NODELIST=u@a: a list such as" },
    { { NODES "a b" }, NULL, "SLURM_JOB_NODELIST=a b: a list such as" },
    { { NODES "-oProxyCommand=x" }, NULL, "SLURM_JOB_NODELIST=-oProxyCommand=x: -oProxyCommand=x" },
    { { NODES "n[1-3]", TASKS "4(x2)" },
      NULL,
      "SLURM_TASKS_PER_NODE=4(x2): it has slots for 2 hosts, but SLURM_JOB_NODELIST names 3 "
      "(--host" },
    { { NODES "n[1-3]", TASKS "4" },
      NULL,
      "SLURM_TASKS_PER_NODE=4: it has slots for 1 host, but SLURM_JOB_NODELIST names 3" },
    { { NODES "a", TASKS "4(x65536)" },
      NULL,
      "SLURM_TASKS_PER_NODE=4(x65536): it has slots for 65536 hosts, but" },
    { { NODES "a", TASKS "" }, NULL, "SLURM_TASKS_PER_NODE=: a number was expected" },
    { { NODES "a", TASKS "0" }, NULL, "SLURM_TASKS_PER_NODE=0: a number from 1 to 1000000" },
    { { NODES "a", TASKS "x" }, NULL, "SLURM_TASKS_PER_NODE=x: a number was expected" },
    { { NODES "a", TASKS "4(" }, NULL, "SLURM_TASKS_PER_NODE=4(: 4(: a count such as" },
    { { NODES "a", TASKS "4(x" }, NULL, "SLURM_TASKS_PER_NODE=4(x: 4(x: a count such as" },
    { { NODES "a", TASKS "4(x)" }, NULL, "SLURM_TASKS_PER_NODE=4(x): a number was expected" },
    { { NODES "a", TASKS "4(x0)" }, NULL, "SLURM_TASKS_PER_NODE=4(x0): a number from 1" },
    { { NODES "a", TASKS "4(2)" }, NULL, "SLURM_TASKS_PER_NODE=4(2): 4(2): a count such as" },
    { { NODES "a", TASKS "4(x1)y" }, NULL, "SLURM_TASKS_PER_NODE=4(x1)y: 4(x1)y: a count such" },
    { { NODES "a", TASKS "4," }, NULL, "SLURM_TASKS_PER_NODE=4,: a number was expected" },
    { { "PBS_NODEFILE=/nodes" }, NULL, "PBS_NODEFILE=/nodes: No such file or directory" },
    { { "PBS_NODEFILE=/nodes" }, "", "PBS_NODEFILE=/nodes: the file names no host" },
    { { "PBS_NODEFILE=/nodes" }, "\n \n", "PBS_NODEFILE=/nodes: the file names no host" },
    { { "PBS_NODEFILE=/nodes" }, "a\nb 4\n", "PBS_NODEFILE=/nodes: line 2: b 4: b 4 cannot be" },
    { { "PBS_NODEFILE=/nodes" }, "a\nb:4\n", "PBS_NODEFILE=/nodes: line 2: b:4 cannot be" },
    { { "PBS_NODEFILE=/nodes" }, "n[1-2]\n", "PBS_NODEFILE=/nodes: line 1: n[1-2] cannot be" },
    { { "LSB_DJOB_HOSTFILE=/nodes" }, "-l\n", "LSB_DJOB_HOSTFILE=/nodes: line 1: -l: -l cannot" },
    { { "LSB_DJOB_HOSTFILE=/gone" }, "a\n", "LSB_DJOB_HOSTFILE=/gone: No such file" },
    { { "LSB_MCPU_HOSTS=a" }, NULL, "LSB_MCPU_HOSTS=a: a has no number of slots" },
    { { "LSB_MCPU_HOSTS=a 4 b" }, NULL, "LSB_MCPU_HOSTS=a 4 b: b has no number of slots" },
    { { "LSB_MCPU_HOSTS=a b" }, NULL, "LSB_MCPU_HOSTS=a b: a b: a number was expected" },
    { { "LSB_MCPU_HOSTS=a 0" }, NULL, "LSB_MCPU_HOSTS=a 0: a 0: a number from 1" },
    { { "PE_HOSTFILE=/nodes" }, "a 1 q\nb\n", "PE_HOSTFILE=/nodes: line 2: b has no number" },
    { { "PE_HOSTFILE=/nodes" }, "a q 1\n", "PE_HOSTFILE=/nodes: line 1: a q: a number was" },
    { { "PE_HOSTFILE=/nodes" }, "a:1 1 q\n", "PE_HOSTFILE=/nodes: line 1: a:1 cannot be" },
    { { "PE_HOSTFILE=/gone" }, "a 1\n", "PE_HOSTFILE=/gone: No such file" },
    { { "LSB_MCPU_HOSTS= " }, NULL, "LSB_MCPU_HOSTS= : it names no host" },
    { { OMPI "=/gone" }, "a\n", OMPI "=/gone: No such file" },
    { { OMPI "=/nodes" }, "a slots=x\n", OMPI "=/nodes: hostfile:1: slots=x: a number was" },
    { { "LSB_MCPU_HOSTS=a 999999 a 2" },
      NULL,
      "LSB_MCPU_HOSTS=a 999999 a 2: a: more than 1000000 slots" },
};

static void allocations_are_read(void **state)
{
    struct dt_strbuf b = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
        struct dt_scheduler_view view = { variable, file, (void *)&goods[i] };
        struct dt_hostlist list = { 0 };
        struct dt_error err = { 0 };

        if (dt_scheduler_hosts(&list, &view, &err) < 0)
            fail_msg("case %zu: %s", i, err.text);
        assert_string_equal(describe(&b, &list), goods[i].want);
        dt_hostlist_free(&list);
    }
    dt_strbuf_free(&b);
}

static void errors_name_the_variable(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        struct dt_scheduler_view view = { variable, file, (void *)&bads[i] };
        struct dt_hostlist list = { 0 };
        struct dt_error err = { 0 };

        if (dt_scheduler_hosts(&list, &view, &err) == 0)
            fail_msg("\"%s\" was accepted", bads[i].want);
        if (strncmp(err.text, bads[i].want, strlen(bads[i].want)) != 0)
            fail_msg("\"%s\" was expected: said: %s", bads[i].want, err.text);
        assert_int_equal(err.exit_code, 2);
        dt_hostlist_free(&list);
    }
}

static void the_allocation_has_a_name(void **state)
{
    static const struct allocation slurm = { .variables = { NODES "a", "PBS_NODEFILE=/nodes" } };
    static const struct allocation lsf = { .variables = { "LSB_MCPU_HOSTS=a 1" } };
    static const struct allocation none = { .variables = { NODES } };
    struct dt_scheduler_view view = { variable, file, (void *)&slurm };

    (void)state;
    assert_string_equal(dt_scheduler_name(&view), "the Slurm allocation");
    assert_true(dt_scheduler_is_slurm(&view));
    view.arg = (void *)&lsf;
    assert_string_equal(dt_scheduler_name(&view), "the LSF allocation");
    assert_false(dt_scheduler_is_slurm(&view));
    view.arg = (void *)&none;
    assert_null(dt_scheduler_name(&view));
    assert_false(dt_scheduler_is_slurm(&view));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_read),
        cmocka_unit_test(errors_name_the_variable),
        cmocka_unit_test(the_allocation_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
