#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/hosts/hostarg.h"
#include "launcher/place/envrules.h"
#include "launcher/place/frameworks.h"
#include "launcher/place/plan.h"
#include "tests/unit/unit.h"

/* The value of NAME in a list of NAME=VALUE, or NULL. Fails if NAME is there twice. */
static const char *value_of(const struct dt_strs *env, const char *name)
{
    size_t n = strlen(name);
    const char *value = NULL;

    for (uint32_t i = 0; i < env->n; i++) {
        if (strncmp(env->v[i], name, n) != 0 || env->v[i][n] != '=')
            continue;
        if (value)
            fail_msg("%s is there twice", name);
        value = env->v[i] + n + 1;
    }
    return value;
}

static void assert_value(const struct dt_strs *env, const char *name, const char *want)
{
    const char *got = value_of(env, name);

    if (!want != !got || (want && strcmp(want, got) != 0))
        fail_msg("%s is %s, not %s", name, got ? got : "unset", want ? want : "unset");
}

/* Variables that are not passed on: one name for every rule in the manual page. */
static const char *const stays[] = { "HOME",
                                     "USER",
                                     "LOGNAME",
                                     "SHELL",
                                     "MAIL",
                                     "HOSTNAME",
                                     "HOST",
                                     "SSH_AUTH_SOCK",
                                     "SSH_CONNECTION",
                                     "DISPLAY",
                                     "XAUTHORITY",
                                     "WAYLAND_DISPLAY",
                                     "XDG_RUNTIME_DIR",
                                     "DBUS_SESSION_BUS_ADDRESS",
                                     "TMPDIR",
                                     "TMP",
                                     "TERM_PROGRAM",
                                     "PWD",
                                     "OLDPWD",
                                     "SHLVL",
                                     "_",
                                     "BASH_FUNC_module",
                                     "PMI_RANK",
                                     "PMIX_RANK",
                                     "PRTE_X",
                                     "HYDRA_X",
                                     "OMPI_COMM_WORLD_RANK",
                                     "OMPI_UNIVERSE_SIZE",
                                     "OMPI_MCA_ess_base",
                                     "OMPI_MCA_orte_x",
                                     "OMPI_MCA_initial_wdir",
                                     "OMPI_COMMAND",
                                     "OMPI_ARGV",
                                     "OMPI_NUM_APP_CTX",
                                     "OMPI_FIRST_RANKS",
                                     "OMPI_APP_CTX_NUM_PROCS",
                                     "OMPI_FILE_LOCATION",
                                     "MV2_COMM_WORLD_RANK",
                                     "MPI_LOCALRANKID",
                                     "MPI_LOCALNRANKS",
                                     "SLURM_STEP_ID",
                                     "SLURM_STEPID",
                                     "SLURM_PROCID",
                                     "SLURM_LOCALID",
                                     "SLURM_NODEID",
                                     "SLURM_TASK_PID",
                                     "SLURM_GTIDS",
                                     "SLURMD_NODENAME",
                                     "SLURM_SRUN_COMM_HOST",
                                     "TORCHELASTIC_RUN_ID",
                                     "TORCHELASTIC_ANYTHING",
                                     "HOROVOD_RANK",
                                     "HOROVOD_SIZE",
                                     "HOROVOD_LOCAL_RANK",
                                     "HOROVOD_CROSS_SIZE",
                                     "MAKEFLAGS",
                                     "MFLAGS",
                                     "CUDA_VISIBLE_DEVICES",
                                     "NVIDIA_VISIBLE_DEVICES",
                                     "DTRUN_RANK",
                                     "DTRUN_SIZE",
                                     "DTRUN_LOCAL_RANK",
                                     "DTRUN_LOCAL_SIZE",
                                     "DTRUN_NODE_RANK",
                                     "DTRUN_NODES",
                                     "DTRUN_JOB_ID",
                                     "DTRUN_GENERATION",
                                     "DTRUN_RESTART_COUNT",
                                     "DTRUN_CHECKPOINT_DIR",
                                     "DTRUN_OUTPUT_DIR",
                                     "DTRUN_FRESH",
                                     "DTRUN_RESUME",
                                     "DTRUN_AGENT_FD",
                                     "DTRUN_HOSTID",
                                     "DTRUN_AGENT",
                                     "RANK",
                                     "WORLD_SIZE",
                                     "ROLE_RANK",
                                     "ROLE_WORLD_SIZE",
                                     "LOCAL_RANK",
                                     "LOCAL_WORLD_SIZE",
                                     "GROUP_RANK",
                                     "GROUP_WORLD_SIZE",
                                     "NODE_RANK",
                                     "MASTER_ADDR",
                                     "MASTER_PORT",
                                     "BAD-NAME",
                                     "9LIVES",
                                     "",
                                     "a.b",
                                     "BASH_FUNC_x%%" };

static const char *const goes[] = { "PATH",
                                    "LD_LIBRARY_PATH",
                                    "TERM",
                                    "LANG",
                                    "LC_ALL",
                                    "DTRUN_WIRE",
                                    "NCCL_DEBUG",
                                    "OMP_NUM_THREADS",
                                    "OMP_PROC_BIND",
                                    "SLURM_JOB_ID",
                                    "SLURM_NODELIST",
                                    "SLURM_NTASKS_PER_NODE",
                                    "OMPI_MCA_btl",
                                    "HOROVOD_TIMELINE",
                                    "HOMEBREW",
                                    "RANKS",
                                    "MY_RANK",
                                    "RANK_",
                                    "_x",
                                    "x",
                                    "CUDA_HOME",
                                    "CUDA_DEVICE_ORDER",
                                    "USERNAME",
                                    "MPI_HOME",
                                    "PMI",
                                    "VIRTUAL_ENV",
                                    "http_proxy" };

enum { NSTAYS = sizeof stays / sizeof *stays, NGOES = sizeof goes / sizeof *goes };

/* An environ of every name in both tables. NAME has the value "v:NAME". */
static char **make_environ(void)
{
    char **environ_ = calloc(NSTAYS + NGOES + 1, sizeof *environ_);
    size_t n = 0;

    for (size_t i = 0; i < NSTAYS; i++)
        assert_true(asprintf(&environ_[n++], "%s=v:%s", stays[i], stays[i]) > 0);
    for (size_t i = 0; i < NGOES; i++)
        assert_true(asprintf(&environ_[n++], "%s=v:%s", goes[i], goes[i]) > 0);
    return environ_;
}

static void free_environ(char **environ_)
{
    for (char **e = environ_; *e; e++)
        free(*e);
    free(environ_);
}

static void variables_of_the_host_or_a_launcher_are_not_passed_on(void **state)
{
    char **environ_ = make_environ(), want[64];
    struct dt_strs env = { 0 }, unset = { 0 }, absent = { 0 }, rules = { 0 };

    (void)state;
    dt_env_base(&env, &unset, &absent, environ_, &rules);
    for (size_t i = 0; i < NSTAYS; i++)
        assert_value(&env, stays[i], NULL);
    for (size_t i = 0; i < NGOES; i++) {
        snprintf(want, sizeof want, "v:%s", goes[i]);
        assert_value(&env, goes[i], want);
    }
    assert_int_equal(env.n, NGOES);
    assert_int_equal(unset.n, 0);
    dt_strs_free(&env);
    free_environ(environ_);
}

static void values_pass_byte_for_byte(void **state)
{
    char *environ_[] = {
        "A=", "B=x=y=z", "C=line\nline\r\n\t", "D=\xff\x01\xfe", "NOEQUALS", NULL
    };
    struct dt_strs env = { 0 }, unset = { 0 }, absent = { 0 }, rules = { 0 };

    (void)state;
    dt_env_base(&env, &unset, &absent, environ_, &rules);
    assert_int_equal(env.n, 4);
    for (uint32_t i = 0; i < env.n; i++)
        assert_string_equal(env.v[i], environ_[i]);
    dt_strs_free(&env);
}

/* The environment to which -x and --unset are applied. */
static char *const given[] = { "A=1",
                               "AB=2",
                               "HOME=/root",
                               "HOROVOD_RANK=3",
                               "CUDA_VISIBLE_DEVICES=5",
                               "CUDA_CACHE=6",
                               "NVIDIA_VISIBLE_DEVICES=7",
                               NULL };

static const struct ruling {
    const char *rules; /* separated by blanks */
    const char *env;   /* NAME=VALUE in order, separated by blanks */
    const char *unset;
} rulings[] = {
    { "", "A=1 AB=2 CUDA_CACHE=6", "" },
    { "x:A", "AB=2 CUDA_CACHE=6 A=1", "" },
    { "x:A=9", "AB=2 CUDA_CACHE=6 A=9", "" },
    { "x:A=", "AB=2 CUDA_CACHE=6 A=", "" },
    { "x:A=b=c", "AB=2 CUDA_CACHE=6 A=b=c", "" },
    { "x:A=8 x:A=9", "AB=2 CUDA_CACHE=6 A=9", "" },
    { "x:A=9 x:A", "AB=2 CUDA_CACHE=6 A=1", "" },
    { "x:HOME", "A=1 AB=2 CUDA_CACHE=6 HOME=/root", "" },
    { "x:HOROVOD_RANK", "A=1 AB=2 CUDA_CACHE=6 HOROVOD_RANK=3", "" },
    { "x:NVIDIA_VISIBLE_DEVICES", "A=1 AB=2 CUDA_CACHE=6 NVIDIA_VISIBLE_DEVICES=7", "" },
    { "x:NEW=1", "A=1 AB=2 CUDA_CACHE=6 NEW=1", "" },
    { "x:HO*", "A=1 AB=2 CUDA_CACHE=6 HOME=/root HOROVOD_RANK=3", "" },
    { "x:CUDA_*", "A=1 AB=2 CUDA_VISIBLE_DEVICES=5 CUDA_CACHE=6", "" },
    { "x:CUDA_VISIBLE_DEVICES", "A=1 AB=2 CUDA_CACHE=6 CUDA_VISIBLE_DEVICES=5", "" },
    { "x:NONE*", "A=1 AB=2 CUDA_CACHE=6", "" },
    { "x:*",
      "A=1 AB=2 HOME=/root HOROVOD_RANK=3 CUDA_VISIBLE_DEVICES=5 CUDA_CACHE=6 "
      "NVIDIA_VISIBLE_DEVICES=7",
      "" },
    { "u:A", "AB=2 CUDA_CACHE=6", "A" },
    { "u:NONE", "A=1 AB=2 CUDA_CACHE=6", "NONE" },
    { "u:A u:A", "AB=2 CUDA_CACHE=6", "A" },
    { "u:A x:A", "AB=2 CUDA_CACHE=6 A=1", "" },
    { "u:A x:A*", "CUDA_CACHE=6 A=1 AB=2", "" },
    { "x:A=9 u:A", "AB=2 CUDA_CACHE=6", "A" },
    { "u:A x:A=3 u:AB", "CUDA_CACHE=6 A=3", "AB" },
};

static void split(struct dt_strs *out, const char *text)
{
    char *copy = strdup(text), *rest = copy, *word;

    while ((word = strsep(&rest, " ")))
        if (*word)
            assert_int_equal(dt_strs_add(out, word), 0);
    free(copy);
}

/* Whether got consists of exactly the words of want, in any order. */
static bool same_words(const struct dt_strs *got, const char *want)
{
    struct dt_strs words = { 0 };
    uint32_t found = 0;
    bool same;

    split(&words, want);
    for (uint32_t i = 0; i < words.n; i++)
        for (uint32_t k = 0; k < got->n; k++)
            found += strcmp(words.v[i], got->v[k]) == 0;
    same = words.n == got->n && found == words.n;
    dt_strs_free(&words);
    return same;
}

static void rules_are_applied_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rulings / sizeof *rulings; i++) {
        struct dt_strs env = { 0 }, unset = { 0 }, absent = { 0 }, rules = { 0 };

        split(&rules, rulings[i].rules);
        dt_env_base(&env, &unset, &absent, given, &rules);
        assert_int_equal(absent.n, 0);
        if (!same_words(&env, rulings[i].env) || !same_words(&unset, rulings[i].unset)) {
            for (uint32_t k = 0; k < env.n; k++)
                print_error("%s\n", env.v[k]);
            fail_msg("rules %s", rulings[i].rules);
        }
        dt_strs_free(&env);
        dt_strs_free(&unset);
        dt_strs_free(&rules);
    }
}

static void variables_to_pass_on_that_are_not_set_are_listed(void **state)
{
    struct dt_strs env = { 0 }, unset = { 0 }, absent = { 0 }, rules = { 0 };

    (void)state;
    split(&rules, "x:NONE x:A x:NEITHER");
    dt_env_base(&env, &unset, &absent, given, &rules);
    assert_value(&env, "A", "1");
    assert_value(&env, "NONE", NULL);
    assert_int_equal(unset.n, 0);
    assert_int_equal(absent.n, 2);
    assert_string_equal(absent.v[0], "NONE");
    assert_string_equal(absent.v[1], "NEITHER");
    dt_strs_free(&env);
    dt_strs_free(&absent);
    dt_strs_free(&rules);
}

static const struct {
    const char *rule;
    const char *says;
} refusals[] = {
    { "x:", "-x : this cannot be the name" },
    { "x:=1", "-x : this cannot be the name" },
    { "x:9A=1", "-x 9A: this cannot be the name" },
    { "x:A-B=1", "-x A-B: this cannot be the name" },
    { "x:A*B", "-x A*B: this cannot be the name" },
    { "x:A*=1", "-x A*: this cannot be the name" },
    { "x:9*", "-x 9*: a star can stand only at the end of a name" },
    { "x:A**", "-x A**: a star can stand only at the end of a name" },
    { "u:", "--unset : this cannot be the name" },
    { "u:A=1", "--unset A: this cannot be the name" },
    { "u:A*", "--unset A*: this cannot be the name" },
    { "x:RANK=1", "-x RANK: dtrun sets it" },
    { "x:WORLD_SIZE", "-np decides it" },
    { "x:LOCAL_WORLD_SIZE=1", "the slots in -H" },
    { "x:DTRUN_SIZE=1", "-np decides it" },
    { "x:DTRUN_CHECKPOINT_DIR=/x", "--checkpoint-dir decides it" },
    { "x:DTRUN_FRESH=1", "--fresh decides it" },
    { "x:DTRUN_RESUME=1", "--resume decides it" },
    { "x:DTRUN_RESTART_COUNT=1", "--max-restarts" },
    { "x:TORCHELASTIC_MAX_RESTARTS=1", "--max-restarts decides it" },
    { "x:MASTER_ADDR=h", "addr= of the first host in a hostfile" },
    { "u:RANK", "--unset RANK: dtrun sets it" },
};

static void rules_that_cannot_be_obeyed_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct dt_error err = { 0 };

        if (dt_env_check_rule(refusals[i].rule, &err) == 0)
            fail_msg("%s was accepted", refusals[i].rule);
        if (!strstr(err.text, refusals[i].says) || err.exit_code != 2)
            fail_msg("%s: said (%d): %s", refusals[i].rule, err.exit_code, err.text);
    }
}

/* hosts of 3, 1 and 2 ranks: rank, local rank, local size, node */
static const int uneven[6][4] = { { 0, 0, 3, 0 }, { 1, 1, 3, 0 }, { 2, 2, 3, 0 },
                                  { 3, 0, 1, 1 }, { 4, 0, 2, 2 }, { 5, 1, 2, 2 } };
static const int uneven_in_turn[6][4] = { { 0, 0, 3, 0 }, { 1, 0, 1, 1 }, { 2, 0, 2, 2 },
                                          { 3, 1, 3, 0 }, { 4, 1, 2, 2 }, { 5, 2, 3, 0 } };

/* The same ranks' position among the hosts that have their local rank, the number of those hosts,
 * and their host. */
static const int cross[6][2] = { { 0, 3 }, { 0, 2 }, { 0, 1 }, { 1, 3 }, { 2, 3 }, { 1, 2 } };
static const int cross_in_turn[6][2] = {
    { 0, 3 }, { 1, 3 }, { 2, 3 }, { 0, 2 }, { 1, 2 }, { 0, 1 }
};

static void assert_number(const struct dt_strs *env, const char *name, long long want)
{
    char text[32];

    snprintf(text, sizeof text, "%lld", want);
    assert_value(env, name, text);
}

static void check_uneven_rank(const struct dt_strs *env, const int want[4], int fd)
{
    static const struct {
        const char *name;
        int column; /* of the table above */
    } by_rank[] = {
        { "DTRUN_RANK", 0 },       { "RANK", 0 },
        { "DTRUN_LOCAL_RANK", 1 }, { "LOCAL_RANK", 1 },
        { "LOCAL_WORLD_SIZE", 2 }, { "DTRUN_LOCAL_SIZE", 2 },
        { "DTRUN_NODE_RANK", 3 },  { "NODE_RANK", 3 },
        { "GROUP_RANK", 3 },       { "ROLE_RANK", 0 },
        { "MPI_LOCALRANKID", 1 },  { "MPI_LOCALNRANKS", 2 },
    };
    static const struct {
        const char *name, *value;
    } same[] = {
        { "DTRUN_SIZE", "6" },
        { "WORLD_SIZE", "6" },
        { "ROLE_WORLD_SIZE", "6" },
        { "DTRUN_NODES", "3" },
        { "GROUP_WORLD_SIZE", "3" },
        { "DTRUN_JOB_ID", "train-0123abcd" },
        { "TORCHELASTIC_RUN_ID", "train-0123abcd" },
        { "DTRUN_GENERATION", "2" },
        { "DTRUN_RESTART_COUNT", "1" },
        { "TORCHELASTIC_RESTART_COUNT", "1" },
        { "TORCHELASTIC_MAX_RESTARTS", "3" },
        { "DTRUN_CHECKPOINT_DIR", "/c" },
        { "MASTER_ADDR", "10.0.0.1" },
        { "MASTER_PORT", "40000" },
        { "PWD", "/w" },
        { "CUDA_DEVICE_ORDER", "PCI_BUS_ID" },
        { "PYTHONUNBUFFERED", "1" },
        { "DTRUN_FRESH", NULL },
        { "DTRUN_RESUME", NULL },
    };

    for (size_t i = 0; i < sizeof by_rank / sizeof *by_rank; i++)
        assert_number(env, by_rank[i].name, want[by_rank[i].column]);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        assert_value(env, same[i].name, same[i].value);
    assert_number(env, "CUDA_VISIBLE_DEVICES", want[1]);
    assert_number(env, "OMP_NUM_THREADS", 8 / want[2]);
    assert_number(env, "DTRUN_AGENT_FD", fd);
}

/* Checks what --env adds. */
static void check_frameworks(const struct dt_strs *env, const int want[4], const int among[2],
                             const char *host)
{
    char task[200];

    assert_number(env, "HOROVOD_RANK", want[0]);
    assert_number(env, "HOROVOD_SIZE", 6);
    assert_number(env, "HOROVOD_LOCAL_RANK", want[1]);
    assert_number(env, "HOROVOD_LOCAL_SIZE", want[2]);
    assert_number(env, "HOROVOD_CROSS_RANK", among[0]);
    assert_number(env, "HOROVOD_CROSS_SIZE", among[1]);
    assert_value(env, "HOROVOD_HOSTNAME", host);
    assert_value(env, "HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.0.0.1");
    assert_number(env, "HOROVOD_GLOO_RENDEZVOUS_PORT", 40001);
    assert_value(env, "HOROVOD_CONTROLLER", "gloo");
    assert_value(env, "HOROVOD_CPU_OPERATIONS", "gloo");
    assert_value(env, "HOROVOD_GLOO_IFACE", NULL);
    assert_number(env, "OMPI_COMM_WORLD_RANK", want[0]);
    assert_number(env, "OMPI_COMM_WORLD_SIZE", 6);
    assert_number(env, "OMPI_COMM_WORLD_LOCAL_RANK", want[1]);
    assert_number(env, "OMPI_COMM_WORLD_LOCAL_SIZE", want[2]);
    assert_number(env, "OMPI_COMM_WORLD_NODE_RANK", want[1]);
    assert_number(env, "OMPI_UNIVERSE_SIZE", 8);
    snprintf(task, sizeof task,
             "{\"cluster\":{\"worker\":[]},\"task\":{\"type\":\"worker\",\"index\":%d}}", want[0]);
    assert_value(env, "TF_CONFIG", task);
}

/* Checks that nothing is added without --env. */
static void check_no_frameworks(const struct dt_strs *env)
{
    for (uint32_t i = 0; i < env->n; i++)
        assert_true(strncmp(env->v[i], "HOROVOD", 7) && strncmp(env->v[i], "OMPI", 4) &&
                    strncmp(env->v[i], "TF_", 3) && strncmp(env->v[i], "DMLC", 4));
}

static void check_uneven(enum dt_map_by map_by, const int want[6][4], const int among[6][2])
{
    const struct dt_placement how = { .map_by = map_by };
    struct dt_hostlist hosts = { 0 };
    struct dt_plan plan;
    char *none[] = { NULL };

    assert_int_equal(dt_hostarg_parse(&hosts, "a:3,b:1,c:2", NULL), 0);
    assert_int_equal(dt_plan_make(&plan, &hosts, 0, &how, NULL), 0);
    for (int rank = 0; rank < 6; rank++) {
        const struct dt_plan_node *node = dt_plan_node_of(&plan, rank);
        struct dt_msg_start start = { .generation = 2,
                                      .job_id = "train-0123abcd",
                                      .np = 6,
                                      .nodes = 3,
                                      .node_rank = (uint32_t)node->node_rank,
                                      .restart_count = 1,
                                      .max_restarts = 3,
                                      .ranks = node->ranks,
                                      .host = hosts.v[node->host].name,
                                      .universe = 8,
                                      .wdir = "/w",
                                      .master_port = 40000,
                                      .checkpoint_dir = "/c" };
        char device[8];
        struct dt_env_rank r = { .start = &start,
                                 .number = (uint32_t)rank,
                                 .local_rank = dt_plan_local_rank(node, rank),
                                 .device = device,
                                 .agent_fd = 10 + rank,
                                 .threads = 8 / node->ranks.n };
        struct dt_msg_go go = { .generation = 2,
                                .master_addr = "10.0.0.1",
                                .addr = "10.0.0.2",
                                .iface = "",
                                .tf_cluster = "{\"worker\":[]}" };
        struct dt_strs env = { 0 };

        snprintf(device, sizeof device, "%u", r.local_rank);
        dt_env_for_rank(&env, none, &r);
        dt_env_at_go(&env, &r, &go);
        check_uneven_rank(&env, want[rank], 10 + rank);
        check_no_frameworks(&env);
        dt_strs_free(&env);
        start.frameworks = DT_FRAMEWORK_TENSORFLOW | DT_FRAMEWORK_MPI;
        go.rendezvous_port = 40001;
        go.local_sizes = (struct dt_u32s){ (uint32_t[]){ 3, 1, 2 }, 3 };
        dt_env_for_rank(&env, none, &r);
        dt_env_at_go(&env, &r, &go);
        check_uneven_rank(&env, want[rank], 10 + rank);
        check_frameworks(&env, want[rank], among[rank], start.host);
        dt_strs_free(&env);
    }
    dt_plan_free(&plan);
    dt_hostlist_free(&hosts);
}

static void ranks_of_open_mpi_get_its_variables_without_env_mpi(void **state)
{
    char *outer[] = { "OMPI_COMM_WORLD_SIZE=9", NULL }, *server[] = { "PMIX_SERVER_URI=u" };
    struct dt_msg_start start = { .np = 4, .ranks = { (uint32_t[]){ 2, 3 }, 2 }, .universe = 4 };
    struct dt_env_rank r = { .start = &start, .number = 3, .local_rank = 1 };
    struct dt_msg_go go = { .master_addr = "", .iface = "", .mpi_env = { server, 1 } };
    struct dt_strs env = { 0 };

    (void)state;
    dt_env_for_rank(&env, outer, &r);
    dt_env_at_go(&env, &r, &go);
    assert_value(&env, "PMIX_SERVER_URI", "u");
    assert_number(&env, "OMPI_COMM_WORLD_RANK", 3);
    assert_number(&env, "OMPI_COMM_WORLD_SIZE", 4);
    assert_number(&env, "OMPI_COMM_WORLD_LOCAL_RANK", 1);
    dt_strs_free(&env);
}

static void uneven_hosts_get_contiguous_blocks(void **state)
{
    (void)state;
    check_uneven(DT_MAP_BY_SLOT, uneven, cross);
}

static void uneven_hosts_get_ranks_in_turn(void **state)
{
    (void)state;
    check_uneven(DT_MAP_BY_NODE, uneven_in_turn, cross_in_turn);
}

/* One rank's environment from an agent's environ and the variables that were sent, both separated
 * by blanks. */
static void layered(struct dt_strs *env, const char *agent, const char *sent, const char *unset,
                    struct dt_env_rank rank)
{
    struct dt_msg_start start = *rank.start;
    struct dt_msg_go go = { .generation = 1,
                            .master_addr = "10.0.0.1",
                            .addr = "10.0.0.2",
                            .iface = "eth0",
                            .tf_cluster = "" };
    const struct dt_strs in_nccl_conf = { (char *[]){ (char *)"NCCL_SOCKET_IFNAME" }, 1 };
    struct dt_strs host = { 0 };

    split(&host, agent);
    split(&start.env, sent);
    split(&start.unset, unset);
    rank.start = &start;
    if (strstr(agent, "NCCL_CONF_FILE="))
        rank.in_nccl_conf = &in_nccl_conf;
    dt_env_for_rank(env, host.n ? host.v : (char *[]){ NULL }, &rank);
    dt_env_at_go(env, &rank, &go);
    dt_strs_free(&host);
    dt_strs_free(&start.env);
    dt_strs_free(&start.unset);
}

static const struct layering {
    const char *agent, *sent, *unset;
    const char *name, *want;
} layerings[] = {
    { "A=host", "", "", "A", "host" },
    { "A=host", "A=sent", "", "A", "sent" },
    { "A=host", "", "A", "A", NULL },
    { "HOME=/host", "", "", "HOME", "/host" },
    { "HOME=/host", "HOME=/sent", "", "HOME", "/sent" },
    { "TMPDIR=/host", "", "", "TMPDIR", "/host" },
    /* variables of an outer job in the agent's environment must not reach the rank */
    { "PMI_RANK=7", "", "", "PMI_RANK", "5" },
    { "PMI_RANK=7", "PMI_RANK=8", "", "PMI_RANK", "5" },
    { "PMI_FD=7", "", "", "PMI_FD", "8" },
    { "PMI_SIZE=7", "", "", "PMI_SIZE", "6" },
    { "PMI_PORT=outer:7", "", "", "PMI_PORT", NULL },
    { "PMI_PORT=outer:7", "PMI_PORT=sent:8", "", "PMI_PORT", "sent:8" },
    { "HOROVOD_RANK=7", "", "", "HOROVOD_RANK", NULL },
    { "HOROVOD_GLOO_RENDEZVOUS_ADDR=outer", "", "", "HOROVOD_GLOO_RENDEZVOUS_ADDR", NULL },
    { "HOROVOD_HOSTNAME=outer", "", "", "HOROVOD_HOSTNAME", NULL },
    { "HOROVOD_CONTROLLER=mpi", "", "", "HOROVOD_CONTROLLER", "mpi" },
    { "DTRUN_CHECKPOINT_DIR=/outer", "", "", "DTRUN_CHECKPOINT_DIR", NULL },
    { "DTRUN_FRESH=1", "", "", "DTRUN_FRESH", NULL },
    { "DTRUN_RESUME=1", "", "", "DTRUN_RESUME", NULL },
    { "DTRUN_OUTPUT_DIR=/outer", "", "", "DTRUN_OUTPUT_DIR", NULL },
    { "DTRUN_OUTPUT_DIR=/outer", "DTRUN_OUTPUT_DIR=/o", "", "DTRUN_OUTPUT_DIR", "/o" },
    { "MASTER_ADDR=outer", "", "", "MASTER_ADDR", "10.0.0.1" },
    { "DTRUN_AGENT=/x", "", "", "DTRUN_AGENT", NULL },
    /* per-rank values always win */
    { "RANK=7", "RANK=8", "", "RANK", "5" },
    { "CUDA_VISIBLE_DEVICES=7", "CUDA_VISIBLE_DEVICES=8", "", "CUDA_VISIBLE_DEVICES", "3" },
    { "", "DTRUN_AGENT_FD=1", "DTRUN_AGENT_FD", "DTRUN_AGENT_FD", "9" },
    /* defaults apply only where nothing else is set */
    { "", "", "", "OMP_NUM_THREADS", "4" },
    { "OMP_NUM_THREADS=2", "", "", "OMP_NUM_THREADS", "2" },
    { "", "OMP_NUM_THREADS=3", "", "OMP_NUM_THREADS", "3" },
    { "OMP_NUM_THREADS=2", "OMP_NUM_THREADS=3", "", "OMP_NUM_THREADS", "3" },
    { "OMP_NUM_THREADS=2", "", "OMP_NUM_THREADS", "OMP_NUM_THREADS", NULL },
    { "", "CUDA_DEVICE_ORDER=FASTEST_FIRST", "", "CUDA_DEVICE_ORDER", "FASTEST_FIRST" },
    { "", "", "PYTHONUNBUFFERED", "PYTHONUNBUFFERED", NULL },
    { "", "", "", "GLOO_SOCKET_IFNAME", "eth0" },
    { "", "", "", "NCCL_SOCKET_IFNAME", "=eth0" },
    { "GLOO_SOCKET_IFNAME=ib0", "", "", "GLOO_SOCKET_IFNAME", "ib0" },
    { "GLOO_SOCKET_IFNAME=ib0", "", "", "NCCL_SOCKET_IFNAME", "=eth0" },
    { "", "NCCL_SOCKET_IFNAME=^lo", "", "NCCL_SOCKET_IFNAME", "^lo" },
    { "", "", "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", NULL },
    /* NCCL of each job listens on a port of its own */
    { "", "", "", "NCCL_RAS_ADDR", "localhost:20002" },
    { "", "NCCL_RAS_ADDR=[::1]:9", "", "NCCL_RAS_ADDR", "[::1]:9" },
    { "NCCL_RAS_ADDR=localhost:8", "", "", "NCCL_RAS_ADDR", "localhost:8" },
    { "", "", "NCCL_RAS_ADDR", "NCCL_RAS_ADDR", NULL },
    /* NCCL's log goes beside the output, under a directory name without placeholders */
    { "", "NCCL_DEBUG=INFO DTRUN_OUTPUT_DIR=/o", "", "NCCL_DEBUG_FILE", "/o/rank.00005.2.nccl" },
    { "NCCL_DEBUG=WARN", "DTRUN_OUTPUT_DIR=/o/%h", "", "NCCL_DEBUG_FILE",
      "/o/%%h/rank.00005.2.nccl" },
    { "", "NCCL_DEBUG=INFO", "", "NCCL_DEBUG_FILE", NULL },
    { "", "DTRUN_OUTPUT_DIR=/o", "", "NCCL_DEBUG_FILE", NULL },
    { "NCCL_DEBUG=INFO", "DTRUN_OUTPUT_DIR=/o", "NCCL_DEBUG", "NCCL_DEBUG_FILE", NULL },
    { "", "NCCL_DEBUG=INFO DTRUN_OUTPUT_DIR=/o", "NCCL_DEBUG_FILE", "NCCL_DEBUG_FILE", NULL },
    { "", "NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/f.%p DTRUN_OUTPUT_DIR=/o", "", "NCCL_DEBUG_FILE",
      "/f.%p" },
    { "NCCL_DEBUG_FILE=/f", "NCCL_DEBUG=INFO DTRUN_OUTPUT_DIR=/o", "", "NCCL_DEBUG_FILE", "/f" },
    /* NCCL's own files win: this one sets NCCL_SOCKET_IFNAME */
    { "NCCL_CONF_FILE=/c", "", "", "NCCL_SOCKET_IFNAME", NULL },
    { "NCCL_CONF_FILE=/c", "", "", "NCCL_RAS_ADDR", "localhost:20002" },
    { "NCCL_CONF_FILE=/c", "", "", "GLOO_SOCKET_IFNAME", "eth0" },
    { "NCCL_CONF_FILE=/c", "NCCL_SOCKET_IFNAME=ib", "", "NCCL_SOCKET_IFNAME", "ib" },
    /* the directory is the job's */
    { "PWD=/somewhere", "", "", "PWD", "/w" },
    { "OLDPWD=/somewhere", "", "", "OLDPWD", NULL },
    { "", "", "", "TORCHELASTIC_MAX_RESTARTS", "2147483647" },
};

static void later_layers_override_earlier_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layerings / sizeof *layerings; i++) {
        const struct layering *l = &layerings[i];
        struct dt_msg_start start = { .generation = 2,
                                      .job_id = "j",
                                      .np = 6,
                                      .nodes = 2,
                                      .ranks = { (uint32_t[]){ 4, 5 }, 2 },
                                      .max_restarts = -1,
                                      .wdir = "/w",
                                      .checkpoint_dir = "" };
        struct dt_env_rank rank = { .start = &start,
                                    .number = 5,
                                    .local_rank = 1,
                                    .device = "3",
                                    .agent_fd = 9,
                                    .pmi_fd = 8,
                                    .threads = 4,
                                    .ras_port = 20002 };
        struct dt_strs env = { 0 };

        layered(&env, l->agent, l->sent, l->unset, rank);
        assert_value(&env, l->name, l->want);
        dt_strs_free(&env);
    }
}

static void nccl_reads_these_files(void **state)
{
    static const struct {
        const char *env, *want;
    } cases[] = {
        { "HOME=/home/anna", "/home/anna/.nccl.conf" },
        { "HOME=/home/anna NCCL_CONF_FILE=/c", "/c" },
        { "HOME=/home/anna NCCL_CONF_FILE=", "/home/anna/.nccl.conf" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strs env = { 0 }, files = { 0 };

        split(&env, cases[i].env);
        dt_env_nccl_files(&files, &env);
        assert_int_equal(files.n, 2);
        assert_string_equal(files.v[0], cases[i].want);
        assert_string_equal(files.v[1], "/etc/nccl.conf");
        dt_strs_free(&env);
        dt_strs_free(&files);
    }
}

/* Rank 1 of two on one host, with a rendezvous for Horovod. */
static const struct {
    const char *iface, *sent;
    const char *name, *want;
} horovods[] = {
    { "", "", "HOROVOD_RANK", "1" },
    { "", "", "HOROVOD_GLOO_IFACE", "lo" },
    { "eth0", "", "HOROVOD_GLOO_IFACE", "eth0" },
    { "", "HOROVOD_GLOO_IFACE=eth9", "HOROVOD_GLOO_IFACE", "lo" },
    { "", "HOROVOD_CONTROLLER=mpi", "HOROVOD_CONTROLLER", "gloo" },
    { "", "HOROVOD_CPU_OPERATIONS=ccl", "HOROVOD_CPU_OPERATIONS", "gloo" },
    { "", "HOROVOD_GLOO_RENDEZVOUS_PORT=9", "HOROVOD_GLOO_RENDEZVOUS_PORT", "40001" },
    { "", "HOROVOD_TIMELINE=/t", "HOROVOD_TIMELINE", "/t" },
    { "", "", "HOROVOD_ELASTIC", NULL },
    { "", "", "PYTHONUNBUFFERED", "1" },
};

static void horovod_gets_its_rendezvous(void **state)
{
    struct dt_msg_start start = {
        .np = 2, .nodes = 1, .ranks = { (uint32_t[]){ 0, 1 }, 2 }, .host = "a"
    };
    struct dt_env_rank rank = { .start = &start, .number = 1, .local_rank = 1, .threads = 1 };

    (void)state;
    for (size_t i = 0; i < sizeof horovods / sizeof *horovods; i++) {
        struct dt_msg_go go = { .master_addr = "127.0.0.1",
                                .addr = "127.0.0.1",
                                .iface = (char *)(uintptr_t)horovods[i].iface,
                                .tf_cluster = "",
                                .rendezvous_port = 40001,
                                .local_sizes = { (uint32_t[]){ 2 }, 1 } };
        struct dt_strs env = { 0 };

        split(&start.env, horovods[i].sent);
        dt_env_for_rank(&env, (char *[]){ NULL }, &rank);
        dt_env_at_go(&env, &rank, &go);
        assert_value(&env, horovods[i].name, horovods[i].want);
        dt_strs_free(&env);
        dt_strs_free(&start.env);
    }
}

static const struct {
    const char *agent, *sent, *unset;
    bool want;
} decisions[] = {
    { "", "", "", false },      { "AB=1", "B=A ABC=1", "AA", false },
    { "A=host", "", "", true }, { "", "A=sent", "", true },
    { "", "A=", "", true },     { "", "", "A", true },
};

static void the_option_that_sets_a_variable_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
        struct dt_msg_start start = { 0 };
        struct dt_strs host = { 0 };

        split(&host, decisions[i].agent);
        split(&start.env, decisions[i].sent);
        split(&start.unset, decisions[i].unset);
        assert_int_equal(dt_env_is_decided(&start, host.n ? host.v : (char *[]){ NULL }, "A"),
                         decisions[i].want);
        dt_strs_free(&host);
        dt_strs_free(&start.env);
        dt_strs_free(&start.unset);
    }
}

/* A job of 4 ranks and 3 servers, also with --env mpi. */
static const struct mxnet {
    uint32_t number;
    const char *name, *want;
} mxnets[] = {
    { 3, "DMLC_ROLE", "worker" },
    { 3, "DMLC_PS_ROOT_URI", "10.0.0.1" },
    { 3, "DMLC_PS_ROOT_PORT", "40001" },
    { 3, "DMLC_NUM_WORKER", "4" },
    { 3, "DMLC_NUM_SERVER", "3" },
    { 3, "DMLC_NODE_HOST", "10.0.0.2" },
    { 3, "DMLC_INTERFACE", "eth0" },
    { 3, "DMLC_WORKER_ID", "3" },
    { 3, "DMLC_TASK_ID", "3" },
    { 3, "RANK", "3" },
    { 3, "OMPI_COMM_WORLD_RANK", "3" },
    { 4, "DMLC_ROLE", "scheduler" },
    { 4, "DMLC_PS_ROOT_PORT", "40001" },
    { 4, "DMLC_NODE_HOST", "10.0.0.2" },
    { 4, "DMLC_TASK_ID", NULL },
    { 4, "DMLC_WORKER_ID", NULL },
    { 6, "DMLC_ROLE", "server" },
    { 6, "DMLC_NUM_SERVER", "3" },
    { 6, "DMLC_TASK_ID", "5" },
    { 6, "DMLC_WORKER_ID", NULL },
    /* it is no rank, whatever the agent's environment had */
    { 6, "RANK", NULL },
    { 6, "DTRUN_RANK", NULL },
    { 6, "DTRUN_AGENT_FD", NULL },
    { 6, "PMI_FD", NULL },
    { 6, "PMI_RANK", NULL },
    { 6, "DTRUN_CHECKPOINT_DIR", NULL },
    { 6, "MASTER_ADDR", NULL },
    { 6, "WORLD_SIZE", NULL },
    { 6, "OMPI_COMM_WORLD_RANK", NULL },
    { 6, "CUDA_VISIBLE_DEVICES", "" },
    { 6, "DTRUN_JOB_ID", "j" },
    { 6, "DTRUN_RESTART_COUNT", "2" },
    { 6, "PWD", "/w" },
    { 6, "A", "host" },
};

static void auxiliaries_are_no_ranks(void **state)
{
    struct dt_msg_start start = { .job_id = "j",
                                  .np = 4,
                                  .nodes = 2,
                                  .ranks = { (uint32_t[]){ 2, 3 }, 2 },
                                  .auxiliaries = { (uint32_t[]){ 4, 6 }, 2 },
                                  .servers = 3,
                                  .restart_count = 2,
                                  .scheduler_port = 40001,
                                  .wdir = "/w",
                                  .checkpoint_dir = "/c",
                                  .frameworks = DT_FRAMEWORK_MXNET | DT_FRAMEWORK_MPI };

    (void)state;
    for (size_t i = 0; i < sizeof mxnets / sizeof *mxnets; i++) {
        struct dt_env_rank rank = {
            .start = &start, .number = mxnets[i].number, .local_rank = 1, .device = "", .threads = 4
        };
        struct dt_strs env = { 0 };

        layered(&env, "A=host RANK=7 MASTER_ADDR=outer DMLC_ROLE=server DMLC_TASK_ID=8",
                "DMLC_ROLE=scheduler DMLC_WORKER_ID=9", "", rank);
        assert_value(&env, mxnets[i].name, mxnets[i].want);
        dt_strs_free(&env);
    }
}

static void fresh_resume_and_no_device(void **state)
{
    struct dt_msg_start start = {
        .np = 16, .nodes = 1, .ranks = { (uint32_t[16]){ 0 }, 16 }, .fresh = 1, .resume = 1
    };
    struct dt_env_rank rank = { .start = &start, .device = "", .agent_fd = 3, .threads = 1 };
    struct dt_strs env = { 0 };

    (void)state;
    layered(&env, "", "", "", rank);
    assert_value(&env, "DTRUN_FRESH", "1");
    assert_value(&env, "DTRUN_RESUME", "1");
    assert_value(&env, "OMP_NUM_THREADS", "1");
    assert_value(&env, "CUDA_VISIBLE_DEVICES", "");
    dt_strs_free(&env);
}

static void one_visible_device_goes_with_local_rank_0(void **state)
{
    struct dt_msg_start start = {
        .np = 6, .nodes = 2, .ranks = { (uint32_t[]){ 4, 5 }, 2 }, .virtual_local_rank = 1
    };
    struct dt_env_rank rank = {
        .start = &start, .number = 5, .local_rank = 1, .device = "3", .threads = 2
    };
    struct dt_strs env = { 0 };

    (void)state;
    layered(&env, "", "", "", rank);
    assert_value(&env, "LOCAL_RANK", "0");
    assert_value(&env, "DTRUN_LOCAL_RANK", "1");
    assert_value(&env, "RANK", "5");
    assert_value(&env, "CUDA_VISIBLE_DEVICES", "3");
    dt_strs_free(&env);
    rank.device = NULL;
    layered(&env, "CUDA_VISIBLE_DEVICES=7", "", "", rank);
    assert_value(&env, "CUDA_VISIBLE_DEVICES", "7");
    dt_strs_free(&env);
    layered(&env, "CUDA_VISIBLE_DEVICES=7", "CUDA_VISIBLE_DEVICES=8", "", rank);
    assert_value(&env, "CUDA_VISIBLE_DEVICES", "8");
    dt_strs_free(&env);
    layered(&env, "CUDA_VISIBLE_DEVICES=7", "", "CUDA_VISIBLE_DEVICES", rank);
    assert_value(&env, "CUDA_VISIBLE_DEVICES", NULL);
    dt_strs_free(&env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_of_the_host_or_a_launcher_are_not_passed_on),
        cmocka_unit_test(values_pass_byte_for_byte),
        cmocka_unit_test(rules_are_applied_in_order),
        cmocka_unit_test(variables_to_pass_on_that_are_not_set_are_listed),
        cmocka_unit_test(rules_that_cannot_be_obeyed_are_refused),
        cmocka_unit_test(ranks_of_open_mpi_get_its_variables_without_env_mpi),
        cmocka_unit_test(uneven_hosts_get_contiguous_blocks),
        cmocka_unit_test(uneven_hosts_get_ranks_in_turn),
        cmocka_unit_test(later_layers_override_earlier_ones),
        cmocka_unit_test(nccl_reads_these_files),
        cmocka_unit_test(horovod_gets_its_rendezvous),
        cmocka_unit_test(the_option_that_sets_a_variable_is_known),
        cmocka_unit_test(auxiliaries_are_no_ranks),
        cmocka_unit_test(fresh_resume_and_no_device),
        cmocka_unit_test(one_visible_device_goes_with_local_rank_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
