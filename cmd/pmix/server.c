#include "cmd/pmix/server.h"

#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/pmix/requests.h"
#include "launcher/base/granted/affinity.h"
#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/place/mpimap.h"

enum {
    INFOS = 24,
    ARGUMENTS_MAX = 64 * 1024, /* bytes; the kernel's limit is 128 KiB */
};

static struct {
    struct dt_pmix_events events;
    const struct dt_msg_start *start;
    const char *dir;
    pmix_nspace_t nspace;
    uint32_t *node_of;    /* by rank */
    uint32_t *local_rank; /* by rank: its local rank on its node */
    pthread_mutex_t lock; /* guards what follows, and is held while an event is called */
    pmix_modex_cbfunc_t fence_done;
    void *fence_arg;
    char *fence_data; /* the result of the last fence, which libpmix still reads */
} dti_server = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- requests of libpmix ---- */

static bool is_of_all(const pmix_proc_t *procs, size_t n)
{
    return n == 1 && procs[0].rank == PMIX_RANK_WILDCARD;
}

/* Open MPI 4 disconnects ranks with a fence of only these. */
static pmix_status_t on_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                              void *arg)
{
    (void)info;
    (void)ninfo;
    if (!is_of_all(procs, nprocs))
        return dt_pmixrequests_fence(procs, nprocs, data, ndata, done, arg);
    pthread_mutex_lock(&dti_server.lock);
    dti_server.fence_done = done;
    dti_server.fence_arg = arg;
    dti_server.events.fence(data, ndata);
    pthread_mutex_unlock(&dti_server.lock);
    return PMIX_SUCCESS;
}

/* A fence exchanges all data, so there is nothing else to fetch. */
static pmix_status_t on_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[],
                                     size_t ninfo, pmix_modex_cbfunc_t done, void *arg)
{
    (void)proc;
    (void)info;
    (void)ninfo;
    done(PMIX_ERR_NOT_FOUND, NULL, 0, arg, NULL, NULL);
    return PMIX_SUCCESS;
}

/* The rank gets no answer and waits until the agent kills it. If it ended by itself, ranks of other
 * hosts could lose their connections with it, and fail, before the agent knows why. */
static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char text[],
                              pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t done, void *arg)
{
    (void)object;
    (void)text;
    (void)procs;
    (void)nprocs;
    (void)done;
    (void)arg;
    pthread_mutex_lock(&dti_server.lock);
    dti_server.events.abort(proc->rank, status);
    pthread_mutex_unlock(&dti_server.lock);
    return PMIX_SUCCESS;
}

static pmix_status_t tell_state(pmix_rank_t rank, bool inside)
{
    pthread_mutex_lock(&dti_server.lock);
    dti_server.events.state(rank, inside);
    pthread_mutex_unlock(&dti_server.lock);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_connected(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                                  void *arg)
{
    (void)object;
    (void)done;
    (void)arg;
    return tell_state(proc->rank, true);
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                                  void *arg)
{
    (void)object;
    (void)done;
    (void)arg;
    return tell_state(proc->rank, false);
}

static pmix_status_t on_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                              const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t done,
                              void *arg)
{
    (void)info;
    (void)ninfo;
    (void)apps;
    (void)napps;
    (void)done;
    (void)arg;
    pthread_mutex_lock(&dti_server.lock);
    dti_server.events.spawn_refused(proc->rank);
    pthread_mutex_unlock(&dti_server.lock);
    return PMIX_ERR_NOT_SUPPORTED;
}

/* ---- what MPI prints ---- */

struct printed { /* a request that needs its answer */
    pmix_op_cbfunc_t done;
    void *arg;
    pmix_status_t status;
};

static void answer_printed(pmix_status_t unused, void *arg)
{
    struct printed *p = arg;

    (void)unused;
    p->done(p->status, p->arg);
    free(p);
}

static uint8_t stream_of(const pmix_info_t *info)
{
    if (info->value.type != PMIX_STRING || !info->value.data.string)
        return 0;
    return PMIX_CHECK_KEY(info, PMIX_LOG_STDOUT)   ? STDOUT_FILENO
           : PMIX_CHECK_KEY(info, PMIX_LOG_STDERR) ? STDERR_FILENO
                                                   : 0;
}

/* Open MPI 5 has its server print what users must know, such as why it ends a rank. The answer
 * needs a lock that libpmix holds during this call, so it is given later. */
static void on_print(const pmix_proc_t *proc, const pmix_info_t data[], size_t ndata,
                     const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t done, void *arg)
{
    struct printed *p = dt_xcalloc(1, sizeof *p);

    (void)directives;
    (void)ndirs;
    *p = (struct printed){ done, arg, PMIX_ERR_NOT_SUPPORTED };
    pthread_mutex_lock(&dti_server.lock);
    for (size_t i = 0; PMIX_CHECK_NSPACE(proc->nspace, dti_server.nspace) && i < ndata; i++) {
        uint8_t stream = stream_of(&data[i]);

        if (!stream)
            continue;
        p->status = PMIX_SUCCESS;
        dti_server.events.print(proc->rank, stream, data[i].value.data.string);
    }
    pthread_mutex_unlock(&dti_server.lock);
    dt_pmixrequests_call_later(answer_printed, p);
}

static pmix_server_module_t dti_module = {
    .client_connected = on_connected,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence_nb = on_fence,
    .direct_modex = on_direct_modex,
    .publish = dt_pmixrequests_publish,
    .lookup = dt_pmixrequests_look_up,
    .unpublish = dt_pmixrequests_unpublish,
    .connect = dt_pmixrequests_connect,
    .disconnect = dt_pmixrequests_disconnect,
    .spawn = on_spawn,
    .group = dt_pmixrequests_group,
    .log = on_print,
};

void dt_pmix_fenced(const char *data, size_t n)
{
    pmix_modex_cbfunc_t done;
    void *arg;

    pthread_mutex_lock(&dti_server.lock);
    done = dti_server.fence_done;
    arg = dti_server.fence_arg;
    dti_server.fence_done = NULL;
    free(dti_server.fence_data);
    dti_server.fence_data = n ? memcpy(dt_xcalloc(n, 1), data, n) : NULL;
    pthread_mutex_unlock(&dti_server.lock);
    if (done)
        done(PMIX_SUCCESS, dti_server.fence_data, n, arg, NULL, NULL);
}

static void share(struct dt_msg_share *m)
{
    pthread_mutex_lock(&dti_server.lock);
    dti_server.events.share(m);
    pthread_mutex_unlock(&dti_server.lock);
}

bool dt_pmix_shared(const struct dt_msg_share *m)
{
    return dt_pmixrequests_shared(m);
}

/* ---- what libpmix must know about the job ---- */

struct infos {
    pmix_info_t *v;
    size_t n;
};

static struct infos infos_begin(void)
{
    struct infos list = { NULL, 0 };

    PMIX_INFO_CREATE(list.v, INFOS);
    return list;
}

static void add_info(struct infos *list, const char *key, const void *value, pmix_data_type_t type)
{
    PMIX_INFO_LOAD(&list->v[list->n], key, value, type);
    list->n++;
}

static void add_u32(struct infos *list, const char *key, uint32_t value)
{
    add_info(list, key, &value, PMIX_UINT32);
}

static void add_u16(struct infos *list, const char *key, uint32_t value)
{
    uint16_t v = (uint16_t)value;

    add_info(list, key, &v, PMIX_UINT16);
}

/* Adds "pmix[a,b]": the names of all nodes, in libpmix's packed form. PMIx_generate_regex of
 * libpmix 4 overruns its stack for a name that begins with 50 letters, and changes numbers above
 * 2^31. */
static void add_node_map(struct infos *list)
{
    const struct dt_msg_start *start = dti_server.start;
    struct dt_strbuf b = { 0 };

    for (uint32_t node = 0; node < start->nodes; node++) {
        dt_strbuf_puts(&b, node ? "," : "pmix[");
        if (node == start->node_rank)
            dt_strbuf_puts(&b, start->host);
        else if (start->hosts.n)
            dt_strbuf_puts(&b, start->hosts.v[node]);
        else
            dt_strbuf_printf(&b, "dtrun-node%u", node);
    }
    dt_strbuf_puts(&b, "]");
    add_info(list, PMIX_NODE_MAP, dt_strbuf_text(&b), PMIX_REGEX);
    dt_strbuf_free(&b);
}

/* Adds "0,1;2,3": the ranks of each node. */
static void add_proc_map(struct infos *list)
{
    const struct dt_msg_start *start = dti_server.start;
    struct dt_strbuf *ranks = dt_xcalloc(start->nodes, sizeof *ranks);
    struct dt_strbuf all = { 0 };
    char *packed = NULL;

    for (uint32_t rank = 0; rank < start->np; rank++) {
        struct dt_strbuf *b = &ranks[dti_server.node_of[rank]];

        dt_strbuf_printf(b, "%s%u", b->len ? "," : "", rank);
    }
    for (uint32_t node = 0; node < start->nodes; node++) {
        dt_strbuf_printf(&all, "%s%s", node ? ";" : "", dt_strbuf_text(&ranks[node]));
        dt_strbuf_free(&ranks[node]);
    }
    PMIx_generate_ppn(dt_strbuf_text(&all), &packed);
    add_info(list, PMIX_PROC_MAP, packed, PMIX_REGEX);
    free(packed);
    dt_strbuf_free(&all);
    free(ranks);
}

static void add_local_peers(struct infos *list)
{
    const struct dt_u32s *ranks = &dti_server.start->ranks;
    struct dt_strbuf b = { 0 };

    for (uint32_t i = 0; i < ranks->n; i++)
        dt_strbuf_printf(&b, "%s%u", i ? "," : "", ranks->v[i]);
    add_info(list, PMIX_LOCAL_PEERS, dt_strbuf_text(&b), PMIX_STRING);
    dt_strbuf_free(&b);
}

static void join_arguments(struct dt_strbuf *b, uint32_t first)
{
    const struct dt_strs *argv = &dti_server.start->argv;

    for (uint32_t i = first; i < argv->n; i++)
        dt_strbuf_printf(b, "%s%s", i > first ? " " : "", argv->v[i]);
}

/* Open MPI 5 takes MPI_INFO_ENV's command and argv from this, earlier versions from variables. */
static void add_command_line(struct infos *list)
{
    struct dt_strbuf b = { 0 };

    join_arguments(&b, 0);
    add_info(list, PMIX_APP_ARGV, dt_strbuf_text(&b), PMIX_STRING);
    dt_strbuf_free(&b);
}

static void add_rank(struct infos *list, pmix_rank_t rank)
{
    struct infos of = infos_begin();
    pmix_data_array_t array = { .type = PMIX_INFO };

    add_info(&of, PMIX_RANK, &rank, PMIX_PROC_RANK);
    add_u32(&of, PMIX_APPNUM, 0);
    add_u32(&of, PMIX_NODEID, dti_server.node_of[rank]);
    add_u16(&of, PMIX_LOCAL_RANK, dti_server.local_rank[rank]);
    add_u16(&of, PMIX_NODE_RANK, dti_server.local_rank[rank]);
    array.size = of.n;
    array.array = of.v;
    add_info(list, PMIX_PROC_DATA, &array, PMIX_DATA_ARRAY); /* makes a copy */
    PMIX_INFO_FREE(of.v, INFOS);
}

static struct infos describe_job(void)
{
    const struct dt_msg_start *start = dti_server.start;
    struct infos list = { NULL, 0 };
    bool yes = true;

    PMIX_INFO_CREATE(list.v, INFOS + start->np);
    add_info(&list, PMIX_JOBID, dti_server.nspace, PMIX_STRING);
    add_u32(&list, PMIX_UNIV_SIZE, start->universe);
    add_u32(&list, PMIX_MAX_PROCS, start->universe);
    add_u32(&list, PMIX_JOB_SIZE, start->np);
    add_u32(&list, PMIX_APP_SIZE, start->np);
    add_u32(&list, PMIX_JOB_NUM_APPS, 1);
    add_u32(&list, PMIX_APPNUM, 0);
    add_u32(&list, PMIX_NUM_NODES, start->nodes);
    add_u32(&list, PMIX_NODEID, start->node_rank);
    add_u32(&list, PMIX_LOCAL_SIZE, start->ranks.n);
    add_u32(&list, PMIX_NODE_SIZE, start->ranks.n);
    add_info(&list, PMIX_LOCALLDR, &start->ranks.v[0], PMIX_PROC_RANK);
    add_info(&list, PMIX_TMPDIR, dti_server.dir, PMIX_STRING);
    add_info(&list, PMIX_TDIR_RMCLEAN, &yes, PMIX_BOOL); /* dtrun removes the contents */
    add_command_line(&list);
    add_local_peers(&list);
    add_node_map(&list);
    add_proc_map(&list);
    for (uint32_t rank = 0; rank < start->np; rank++)
        add_rank(&list, rank);
    return list;
}

/* ---- opening ---- */

static int fail_pmix(struct dt_error *err, const char *call, pmix_status_t status)
{
    return dt_error_set(err, "%s: %s", call, PMIx_Error_string(status));
}

static int place_ranks(struct dt_error *err)
{
    const struct dt_msg_start *start = dti_server.start;
    uint32_t *ranks = dt_xcalloc(start->nodes, sizeof *ranks);

    dti_server.node_of = dt_xcalloc(start->np, sizeof *dti_server.node_of);
    dti_server.local_rank = dt_xcalloc(start->np, sizeof *dti_server.local_rank);
    if (!dt_mpimap_expand(&start->mpi_map, start->nodes, dti_server.node_of, start->np)) {
        free(ranks);
        return dt_error_set(err, "START has no map of the ranks");
    }
    if (start->hosts.n && start->hosts.n != start->nodes) {
        free(ranks);
        return dt_error_set(err, "START does not name all hosts");
    }
    for (uint32_t rank = 0; rank < start->np; rank++)
        dti_server.local_rank[rank] = ranks[dti_server.node_of[rank]]++;
    free(ranks);
    return 0;
}

static int init_library(struct dt_error *err)
{
    struct infos list = infos_begin();
    pmix_status_t status;

    setenv("TMPDIR", dti_server.dir, 1); /* where PMIx 5 keeps what it shares with ranks */
    setenv("PMIX_MCA_gds", "^shmem", 0); /* in PMIx 5.0.1 it loses what later fences bring */
    add_info(&list, PMIX_SERVER_TMPDIR, dti_server.dir, PMIX_STRING);
    add_info(&list, PMIX_SYSTEM_TMPDIR, dti_server.dir, PMIX_STRING);
    add_info(&list, PMIX_HOSTNAME, dti_server.start->host, PMIX_STRING);
    status = PMIx_server_init(&dti_module, list.v, list.n);
    PMIX_INFO_FREE(list.v, INFOS);
    return status == PMIX_SUCCESS ? 0 : fail_pmix(err, "PMIx_server_init", status);
}

static int register_job(struct dt_error *err)
{
    struct infos list = describe_job();
    pmix_status_t status = PMIx_server_register_nspace(
        dti_server.nspace, (int)dti_server.start->ranks.n, list.v, list.n, NULL, NULL);

    PMIX_INFO_FREE(list.v, INFOS + dti_server.start->np);
    return status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED
               ? 0
               : fail_pmix(err, "PMIx_server_register_nspace", status);
}

static int register_ranks(struct dt_error *err)
{
    const struct dt_u32s *ranks = &dti_server.start->ranks;

    for (uint32_t i = 0; i < ranks->n; i++) {
        pmix_proc_t proc;
        pmix_status_t status;

        PMIX_LOAD_PROCID(&proc, dti_server.nspace, ranks->v[i]);
        status = PMIx_server_register_client(&proc, getuid(), getgid(), NULL, NULL, NULL);
        if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
            return fail_pmix(err, "PMIx_server_register_client", status);
    }
    return 0;
}

int dt_pmix_open(const struct dt_msg_start *start, const char *dir,
                 const struct dt_pmix_events *events, struct dt_error *err)
{
    char *name = dt_xasprintf("%s.%u", start->job_id, start->generation);

    dti_server.start = start;
    dti_server.dir = dir;
    dti_server.events = *events;
    PMIX_LOAD_NSPACE(dti_server.nspace, name);
    free(name);
    if (place_ranks(err) < 0)
        return -1;
    dt_pmixrequests_init(
        &(struct dt_pmixrequests_job){ start, dti_server.nspace, dti_server.node_of, share });
    if (init_library(err) < 0 || register_job(err) < 0)
        return -1;
    return register_ranks(err);
}

/* ---- the ranks' environment ---- */

static bool is_crowded(void)
{
    return dti_server.start->ranks.n > dt_affinity_count();
}

static void add_directory(struct dt_strs *env, const char *name)
{
    char *text = dt_xasprintf("%s=%s", name, dti_server.dir);

    dt_xstrs_add(env, text);
    free(text);
}

/* Open MPI 4 believes that it was started by hand unless schizo says otherwise. Ranks that share
 * CPUs need 5 ms for what takes 10 us if they yield. When Open MPI is killed it leaves its files in
 * /dev/shm, so these go where the agent removes them; version 5 calls "sm" what was "vader". Open
 * MPI also prints a message of several ranks only once, though each of them may be the one that
 * matters. */
static void add_settings(struct dt_strs *env)
{
    dt_xstrs_add(env, "OMPI_MCA_schizo=ompi");
    add_directory(env, "OMPI_MCA_btl_vader_backing_directory");
    add_directory(env, "OMPI_MCA_btl_sm_backing_directory");
    add_directory(env, "OMPI_MCA_orte_tmpdir_base");
    dt_xstrs_add(env, "OMPI_MCA_opal_base_help_aggregate=0");
    if (is_crowded())
        dt_xstrs_add(env, "OMPI_MCA_mpi_yield_when_idle=1");
}

/* Leaves the arguments out if they are longer than a variable may be. */
static void add_arguments(struct dt_strs *env)
{
    struct dt_strbuf b = { 0 };

    dt_strbuf_printf(&b, "OMPI_ARGV=");
    join_arguments(&b, 1);
    if (dti_server.start->argv.n > 1 && b.len < ARGUMENTS_MAX)
        dt_xstrs_add(env, dt_strbuf_text(&b));
    dt_strbuf_free(&b);
}

/* Adds the variables from which Open MPI makes MPI_INFO_ENV. */
static void add_program(struct dt_strs *env)
{
    const struct dt_msg_start *start = dti_server.start;
    char *command = dt_xasprintf("OMPI_COMMAND=%s", start->argv.v[0]);
    char *wdir = dt_xasprintf("OMPI_MCA_initial_wdir=%s", start->wdir);
    char *np = dt_xasprintf("OMPI_APP_CTX_NUM_PROCS=%u", start->np);

    dt_xstrs_add(env, command);
    add_arguments(env);
    dt_xstrs_add(env, wdir);
    dt_xstrs_add(env, np);
    dt_xstrs_add(env, "OMPI_NUM_APP_CTX=1");
    dt_xstrs_add(env, "OMPI_FIRST_RANKS=0");
    free(command);
    free(wdir);
    free(np);
}

int dt_pmix_environment(struct dt_strs *env, struct dt_error *err)
{
    static const char rank_is[] = "PMIX_RANK=";
    char **of_rank = NULL;
    pmix_proc_t proc;
    pmix_status_t status;

    PMIX_LOAD_PROCID(&proc, dti_server.nspace, dti_server.start->ranks.v[0]);
    status = PMIx_server_setup_fork(&proc, &of_rank);
    if (status != PMIX_SUCCESS)
        return fail_pmix(err, "PMIx_server_setup_fork", status);
    for (char **entry = of_rank; entry && *entry; entry++) {
        if (strncmp(*entry, rank_is, strlen(rank_is)) != 0)
            dt_xstrs_add(env, *entry);
        free(*entry);
    }
    free(of_rank);
    add_settings(env);
    add_program(env);
    return 0;
}
