#include "cmd/pmix/requests.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/pmix/names.h"
#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"

enum { PUBLISHED_MAX = 1024 * 1024 }; /* bytes, which the launcher sends to all hosts */

struct pending { /* a request of this host that libpmix has not been given the answer to */
    struct pending *next;
    uint32_t request;
    pmix_op_cbfunc_t done; /* one of these four is set */
    pmix_lookup_cbfunc_t found;
    pmix_modex_cbfunc_t fenced;
    pmix_info_cbfunc_t grouped;
    void *arg;
    pmix_status_t failure; /* the answer if it fails */
    char *key;             /* the name, for found */
    pmix_proc_t *members;  /* for grouped */
    size_t nmembers;
    /* the answer, as in struct dt_names_answer */
    bool ok;
    uint32_t rank;
    struct dt_strbuf data;
    uint64_t meetings;
};

static struct {
    struct dt_pmixrequests_job job;
    struct dt_names *names; /* used by the main thread only */
    pthread_mutex_t lock;   /* guards what follows */
    struct pending *pending;
    uint32_t requests;
} dti_requests = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- answers ---- */

/* libpmix's own thread says when it has forgotten a client, even one that it never knew. */
void dt_pmixrequests_call_later(pmix_op_cbfunc_t function, void *arg)
{
    pmix_proc_t nobody;

    PMIX_LOAD_PROCID(&nobody, "nobody", 0);
    PMIx_server_deregister_client(&nobody, function, arg);
}

static struct pending *take(uint32_t request)
{
    struct pending **at = &dti_requests.pending, *p;

    pthread_mutex_lock(&dti_requests.lock);
    while (*at && (*at)->request != request)
        at = &(*at)->next;
    p = *at;
    if (p)
        *at = p->next;
    pthread_mutex_unlock(&dti_requests.lock);
    return p;
}

/* The first byte of published data gives the type of the others. */
static const char a_text = 't', an_object = 'o';

static void read_value(pmix_value_t *value, const char *data, size_t n)
{
    char *copy = memcpy(dt_xcalloc(n, 1), data + 1, n - 1);

    if (*data == a_text) {
        value->type = PMIX_STRING;
        value->data.string = copy;
    } else {
        value->type = PMIX_BYTE_OBJECT;
        value->data.bo = (pmix_byte_object_t){ copy, n - 1 };
    }
}

static bool write_value(struct dt_strbuf *data, const pmix_value_t *value)
{
    if (value->type == PMIX_STRING && value->data.string) {
        dt_strbuf_add(data, &a_text, 1);
        dt_strbuf_puts(data, value->data.string);
    } else if (value->type == PMIX_BYTE_OBJECT) {
        dt_strbuf_add(data, &an_object, 1);
        dt_strbuf_add(data, value->data.bo.bytes, value->data.bo.size);
    }
    return data->len;
}

/* libpmix copies what it is given. */
static void answer_found(const struct pending *p)
{
    pmix_pdata_t pdata;

    if (!p->ok || !p->data.len) {
        p->found(p->failure, NULL, 0, p->arg);
        return;
    }
    PMIX_PDATA_CONSTRUCT(&pdata);
    PMIX_LOAD_PROCID(&pdata.proc, dti_requests.job.nspace, p->rank);
    PMIX_LOAD_KEY(pdata.key, p->key);
    read_value(&pdata.value, p->data.data, p->data.len);
    p->found(PMIX_SUCCESS, &pdata, 1, p->arg);
    PMIX_PDATA_DESTRUCT(&pdata);
}

static void free_data(void *data)
{
    free(data);
}

static void answer_fenced(struct pending *p)
{
    char *data = p->data.data;
    size_t n = p->data.len;

    p->data = (struct dt_strbuf){ 0 };
    p->fenced(PMIX_SUCCESS, data, n, p->arg, free_data, data);
}

enum { GROUP_INFOS = 3 };

static void free_group(void *infos)
{
    pmix_info_t *v = infos;

    PMIX_INFO_FREE(v, GROUP_INFOS);
}

/* Open MPI takes the number of a new communicator from the id. PRRTE's first is UINT32_MAX, too. */
static void answer_grouped(const struct pending *p)
{
    size_t id = UINT32_MAX - (size_t)p->meetings, n = 0;
    pmix_data_array_t members = { PMIX_PROC, p->nmembers, p->members };
    pmix_byte_object_t data = { p->data.data, p->data.len };
    pmix_info_t *infos;

    PMIX_INFO_CREATE(infos, GROUP_INFOS);
    PMIX_INFO_LOAD(&infos[n++], PMIX_GROUP_CONTEXT_ID, &id, PMIX_SIZE);
    PMIX_INFO_LOAD(&infos[n++], PMIX_GROUP_MEMBERSHIP, &members, PMIX_DATA_ARRAY);
    if (data.size)
        PMIX_INFO_LOAD(&infos[n++], PMIX_GROUP_ENDPT_DATA, &data, PMIX_BYTE_OBJECT);
    p->grouped(PMIX_SUCCESS, infos, n, p->arg, free_group, infos);
}

static void answer(pmix_status_t status, void *arg)
{
    struct pending *p = arg;

    (void)status;
    if (p->found)
        answer_found(p);
    else if (p->fenced)
        answer_fenced(p);
    else if (p->grouped)
        answer_grouped(p);
    else
        p->done(p->ok ? PMIX_SUCCESS : p->failure, p->arg);
    free(p->key);
    free(p->members);
    dt_strbuf_free(&p->data);
    free(p);
}

static void on_answer(void *arg, const struct dt_names_answer *a)
{
    struct pending *p = take(a->request);

    (void)arg;
    if (!p)
        return;
    p->ok = a->ok;
    p->rank = a->rank;
    p->meetings = a->meetings;
    if (a->n)
        dt_strbuf_add(&p->data, a->data, a->n); /* without data, libpmix expects NULL */
    dt_pmixrequests_call_later(answer, p);
}

bool dt_pmixrequests_shared(const struct dt_msg_share *m)
{
    return dt_names_apply(dti_requests.names, m);
}

void dt_pmixrequests_init(const struct dt_pmixrequests_job *job)
{
    dti_requests.job = *job;
    dti_requests.names = dt_names_create(job->start->node_rank, job->start->nodes, on_answer, NULL);
}

/* ---- requests ---- */

/* Keeps a copy of p until the answer comes, and sends m. */
static pmix_status_t ask(struct dt_msg_share *m, const struct pending *p)
{
    struct pending *copy = dt_xcalloc(1, sizeof *copy);

    *copy = *p;
    if (copy->found)
        copy->key = dt_xstrdup(m->key);
    pthread_mutex_lock(&dti_requests.lock);
    copy->request = m->request = ++dti_requests.requests;
    copy->next = dti_requests.pending;
    dti_requests.pending = copy;
    pthread_mutex_unlock(&dti_requests.lock);
    m->node = dti_requests.job.start->node_rank;
    dti_requests.job.share(m);
    return PMIX_SUCCESS;
}

/* Names that begin with "pmix." are directives. */
static const pmix_info_t *published(const pmix_info_t info[], size_t ninfo)
{
    const pmix_info_t *found = NULL;

    for (size_t i = 0; i < ninfo; i++) {
        if (strncmp(info[i].key, "pmix.", strlen("pmix.")) == 0)
            continue;
        if (found)
            return NULL; /* MPI publishes one value at a time */
        found = &info[i];
    }
    return found;
}

static bool is_for_one_reader(const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_PERSISTENCE) && info[i].value.type == PMIX_PERSIST)
            return info[i].value.data.persist == PMIX_PERSIST_FIRST_READ;
    }
    return false;
}

pmix_status_t dt_pmixrequests_publish(const pmix_proc_t *proc, const pmix_info_t info[],
                                      size_t ninfo, pmix_op_cbfunc_t done, void *arg)
{
    const pmix_info_t *what = published(info, ninfo);
    const struct pending p = { .done = done, .arg = arg };
    struct dt_msg_share m = { .op = DT_SHARE_PUBLISH, .rank = proc->rank };
    struct dt_strbuf data = { 0 };
    pmix_status_t status = PMIX_ERR_OUT_OF_RESOURCE;

    if (!what || !write_value(&data, &what->value))
        return PMIX_ERR_NOT_SUPPORTED;
    m.flag = is_for_one_reader(info, ninfo);
    m.key = (char *)(uintptr_t)what->key;
    m.data = (struct dt_msg_blob){ (const uint8_t *)data.data, data.len };
    if (data.len <= PUBLISHED_MAX)
        status = ask(&m, &p);
    dt_strbuf_free(&data);
    return status;
}

static bool is_one_key(char **keys)
{
    return keys && keys[0] && !keys[1] && strlen(keys[0]) <= PMIX_MAX_KEYLEN;
}

pmix_status_t dt_pmixrequests_unpublish(const pmix_proc_t *proc, char **keys,
                                        const pmix_info_t info[], size_t ninfo,
                                        pmix_op_cbfunc_t done, void *arg)
{
    const struct pending p = { .done = done, .arg = arg, .failure = PMIX_ERR_NOT_FOUND };
    struct dt_msg_share m = { .op = DT_SHARE_UNPUBLISH, .rank = proc->rank };

    (void)info;
    (void)ninfo;
    if (!is_one_key(keys))
        return PMIX_ERR_NOT_SUPPORTED;
    m.key = keys[0];
    return ask(&m, &p);
}

/* PMIX_WAIT is a bool, or an integer: how many of the keys to wait for, where 0 means all. With one
 * key, every integer means the same. */
static bool shall_wait(const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_WAIT))
            return info[i].value.type != PMIX_BOOL || info[i].value.data.flag;
    }
    return false;
}

/* Ignores PMIX_TIMEOUT: MPI's standard sets no limit for MPI_Comm_accept. */
pmix_status_t dt_pmixrequests_look_up(const pmix_proc_t *proc, char **keys,
                                      const pmix_info_t info[], size_t ninfo,
                                      pmix_lookup_cbfunc_t done, void *arg)
{
    const struct pending p = { .found = done, .arg = arg, .failure = PMIX_ERR_NOT_FOUND };
    struct dt_msg_share m = { .op = DT_SHARE_LOOK_UP, .rank = proc->rank };

    if (!is_one_key(keys))
        return PMIX_ERR_NOT_SUPPORTED;
    m.flag = shall_wait(info, ninfo);
    m.key = keys[0];
    return ask(&m, &p);
}

/* ---- meetings ---- */

/* Marks the ranks that procs name. Returns false if one is not of this job. */
static bool mark(const pmix_proc_t procs[], size_t nprocs, bool *taking_part)
{
    uint32_t np = dti_requests.job.start->np;

    for (size_t i = 0; i < nprocs; i++) {
        if (!PMIX_CHECK_NSPACE(procs[i].nspace, dti_requests.job.nspace))
            return false;
        if (procs[i].rank == PMIX_RANK_WILDCARD)
            memset(taking_part, true, np * sizeof *taking_part);
        else if (procs[i].rank < np)
            taking_part[procs[i].rank] = true;
        else
            return false;
    }
    return true;
}

/* Appends the ranks to the key, which is then the same on all hosts. Returns the number of their
 * hosts. */
static uint32_t name_meeting(struct dt_strbuf *key, const bool *taking_part)
{
    const struct dt_msg_start *start = dti_requests.job.start;
    bool *has = dt_xcalloc(start->nodes, sizeof *has);
    uint32_t nodes = 0;

    for (uint32_t rank = 0; rank < start->np; rank++) {
        uint32_t node = dti_requests.job.node_of[rank];

        if (!taking_part[rank])
            continue;
        dt_strbuf_printf(key, " %u", rank);
        nodes += !has[node];
        has[node] = true;
    }
    free(has);
    return nodes;
}

static pmix_status_t meet(const char *purpose, const pmix_proc_t procs[], size_t nprocs,
                          struct dt_msg_blob data, const struct pending *p)
{
    bool *taking_part = dt_xcalloc(dti_requests.job.start->np, sizeof *taking_part);
    struct dt_msg_share m = { .op = DT_SHARE_MEET, .data = data };
    pmix_status_t status = PMIX_ERR_NOT_SUPPORTED;
    struct dt_strbuf key = { 0 };

    if (mark(procs, nprocs, taking_part)) {
        dt_strbuf_puts(&key, purpose);
        m.nodes = name_meeting(&key, taking_part);
        m.key = key.data;
        status = ask(&m, p);
    }
    dt_strbuf_free(&key);
    free(taking_part);
    return status;
}

pmix_status_t dt_pmixrequests_connect(const pmix_proc_t procs[], size_t nprocs,
                                      const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done,
                                      void *arg)
{
    (void)info;
    (void)ninfo;
    return meet("connect", procs, nprocs, (struct dt_msg_blob){ NULL, 0 },
                &(struct pending){ .done = done, .arg = arg });
}

pmix_status_t dt_pmixrequests_disconnect(const pmix_proc_t procs[], size_t nprocs,
                                         const pmix_info_t info[], size_t ninfo,
                                         pmix_op_cbfunc_t done, void *arg)
{
    (void)info;
    (void)ninfo;
    return meet("disconnect", procs, nprocs, (struct dt_msg_blob){ NULL, 0 },
                &(struct pending){ .done = done, .arg = arg });
}

pmix_status_t dt_pmixrequests_fence(const pmix_proc_t procs[], size_t nprocs, char *data,
                                    size_t ndata, pmix_modex_cbfunc_t done, void *arg)
{
    return meet("fence", procs, nprocs, (struct dt_msg_blob){ (const uint8_t *)data, ndata },
                &(struct pending){ .fenced = done, .arg = arg });
}

static struct dt_msg_blob endpoints(const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ENDPT_DATA) &&
            info[i].value.type == PMIX_BYTE_OBJECT)
            return (struct dt_msg_blob){ (const uint8_t *)info[i].value.data.bo.bytes,
                                         info[i].value.data.bo.size };
    }
    return (struct dt_msg_blob){ NULL, 0 };
}

static bool is_of_this_host(const pmix_info_t info[], size_t ninfo)
{
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_LOCAL_ONLY))
            return true;
    }
    return false;
}

/* A program may choose any text as the group's name, so its length tells where the ranks begin. If
 * libpmix 5 does not get the answer for the end of a group of this host at once, it asks a second
 * time for the same ranks, and hangs after the second answer. */
pmix_status_t dt_pmixrequests_group(pmix_group_operation_t op, char group[],
                                    const pmix_proc_t procs[], size_t nprocs,
                                    const pmix_info_t info[], size_t ninfo, pmix_info_cbfunc_t done,
                                    void *arg)
{
    struct pending p = { .grouped = done, .arg = arg, .nmembers = nprocs };
    pmix_status_t status;
    char *purpose;

    if (op == PMIX_GROUP_DESTRUCT && is_of_this_host(info, ninfo))
        return PMIX_OPERATION_SUCCEEDED;
    purpose = dt_xasprintf("group %d %zu:%s", (int)op, strlen(group), group);
    p.members = memcpy(dt_xcalloc(nprocs, sizeof *procs), procs, nprocs * sizeof *procs);
    status = meet(purpose, procs, nprocs, endpoints(info, ninfo), &p);
    if (status != PMIX_SUCCESS)
        free(p.members);
    free(purpose);
    return status;
}
