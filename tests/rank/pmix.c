/* A rank that speaks PMIx itself, to do what MPI programs do rarely, or through MPI of other
 * versions:
 *
 *     pmix hosts        prints on which host each rank is
 *     pmix threads      8 threads publish, look up and withdraw names at the same time
 *     pmix large        publishes a value that is too large, then a small one
 *     pmix fence        gives 3 MiB to all ranks
 *     pmix log          has the server print lines
 *     pmix group        forms groups of all ranks, and of the even and the odd ones, and prints
 * their ids; in each, a rank reads what the next one has put */
#include <pmix.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, NAMES = 2000, LINES = 100, LARGE = 1024 * 1024, MUCH = 3 * 1024 * 1024 };

static pmix_proc_t dti_me;

static void must(const char *call, pmix_status_t status)
{
    if (status == PMIX_SUCCESS)
        return;
    printf("rank %u: %s: %s\n", dti_me.rank, call, PMIx_Error_string(status));
    exit(1);
}

static uint32_t size_of_job(void)
{
    pmix_value_t *value;
    pmix_proc_t job;

    PMIX_LOAD_PROCID(&job, dti_me.nspace, PMIX_RANK_WILDCARD);
    must("PMIx_Get", PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value));
    return value->data.uint32;
}

static void print_hosts(void)
{
    uint32_t np = size_of_job();

    for (pmix_rank_t rank = 0; rank < np; rank++) {
        pmix_value_t *host;
        pmix_proc_t other;

        PMIX_LOAD_PROCID(&other, dti_me.nspace, rank);
        must("PMIx_Get", PMIx_Get(&other, PMIX_HOSTNAME, NULL, 0, &host));
        printf("%u: %u is on %s\n", dti_me.rank, rank, host->data.string);
    }
}

static pmix_status_t publish(const char *name, const void *data, size_t n)
{
    pmix_byte_object_t object = { (char *)data, n };
    pmix_info_t info;

    PMIX_INFO_LOAD(&info, name, &object, PMIX_BYTE_OBJECT);
    return PMIx_Publish(&info, 1);
}

static void look_up(const char *name, const char *wanted)
{
    pmix_pdata_t found;

    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, name);
    must("PMIx_Lookup", PMIx_Lookup(&found, 1, NULL, 0));
    if (found.value.data.bo.size != strlen(wanted) ||
        memcmp(found.value.data.bo.bytes, wanted, strlen(wanted)) != 0)
        must(name, PMIX_ERR_NOT_FOUND);
    PMIX_PDATA_DESTRUCT(&found);
}

static void *share_names(void *number)
{
    char name[64], *names[] = { name, NULL };

    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "%u.%d.%d", dti_me.rank, *(int *)number, i);
        must("PMIx_Publish", publish(name, name, strlen(name)));
        look_up(name, name);
        must("PMIx_Unpublish", PMIx_Unpublish(names, NULL, 0));
    }
    return NULL;
}

static void share_names_in_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, share_names, &numbers[i]) != 0)
            must("pthread_create", PMIX_ERR_OUT_OF_RESOURCE);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("rank %u: all names\n", dti_me.rank);
}

static void publish_large(void)
{
    char *large = calloc(LARGE, 1), name[32];
    pmix_status_t status;

    snprintf(name, sizeof name, "of %u", dti_me.rank);
    status = publish(name, large, LARGE);
    printf("rank %u: %s\n", dti_me.rank,
           status == PMIX_ERR_OUT_OF_RESOURCE ? "too large" : PMIx_Error_string(status));
    must("PMIx_Publish", publish(name, "small", strlen("small")));
    look_up(name, "small");
    free(large);
}

static void exchange(void)
{
    pmix_value_t value = { .type = PMIX_BYTE_OBJECT };
    bool yes = true;
    pmix_info_t info;
    pmix_proc_t all;

    value.data.bo = (pmix_byte_object_t){ calloc(MUCH, 1), MUCH };
    PMIX_LOAD_PROCID(&all, dti_me.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    must("PMIx_Put", PMIx_Put(PMIX_GLOBAL, "much", &value));
    must("PMIx_Commit", PMIx_Commit());
    must("PMIx_Fence", PMIx_Fence(&all, 1, &info, 1));
    free(value.data.bo.bytes);
}

static void print_lines(void)
{
    char line[64];

    for (int i = 0; i < LINES; i++) {
        pmix_info_t info;

        snprintf(line, sizeof line, "rank %u: line %d\n", dti_me.rank, i);
        PMIX_INFO_LOAD(&info, PMIX_LOG_STDOUT, line, PMIX_STRING);
        must("PMIx_Log", PMIx_Log(&info, 1, NULL, 0));
    }
}

static void put(const char *key)
{
    pmix_value_t value = { .type = PMIX_UINT32, .data.uint32 = dti_me.rank };

    must("PMIx_Put", PMIx_Put(PMIX_GLOBAL, key, &value));
    must("PMIx_Commit", PMIx_Commit());
}

static void get(const char *key, pmix_rank_t rank)
{
    pmix_value_t *value;
    pmix_proc_t other;

    PMIX_LOAD_PROCID(&other, dti_me.nspace, rank);
    must("PMIx_Get", PMIx_Get(&other, key, NULL, 0, &value));
    if (value->data.uint32 != rank)
        must(key, PMIX_ERR_NOT_FOUND);
    PMIX_VALUE_RELEASE(value);
}

static size_t id_of(const pmix_info_t *results, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (PMIX_CHECK_KEY(&results[i], PMIX_GROUP_CONTEXT_ID))
            return results[i].value.data.size;
    }
    must("PMIx_Group_construct", PMIX_ERR_NOT_FOUND);
    return 0;
}

/* Forms a group of the ranks first, first + step, ... and ends it. */
static void form_group(const char *name, uint32_t first, uint32_t step)
{
    uint32_t n = (size_of_job() - first + step - 1) / step, next = dti_me.rank + step;
    pmix_proc_t *members;
    pmix_info_t *results, info;
    size_t nresults;
    bool yes = true;

    PMIX_PROC_CREATE(members, n);
    for (uint32_t i = 0; i < n; i++)
        PMIX_LOAD_PROCID(&members[i], dti_me.nspace, first + i * step);
    PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
    put(name);
    must("PMIx_Group_construct",
         PMIx_Group_construct(name, members, n, &info, 1, &results, &nresults));
    get(name, next < size_of_job() ? next : first);
    printf("%s: %zu\n", name, id_of(results, nresults));
    must("PMIx_Group_destruct", PMIx_Group_destruct(name, NULL, 0));
    PMIX_INFO_FREE(results, nresults);
    PMIX_PROC_FREE(members, n);
}

static void form_groups(void)
{
    for (int round = 0; round < 2; round++) {
        form_group("all", 0, 1);
        form_group(dti_me.rank % 2 ? "odd 0" : "even", dti_me.rank % 2, 2);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } commands[] = { { "hosts", print_hosts },   { "threads", share_names_in_threads },
                     { "large", publish_large }, { "fence", exchange },
                     { "log", print_lines },     { "group", form_groups } };

    must("PMIx_Init", PMIx_Init(&dti_me, NULL, 0));
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (argc == 2 && strcmp(argv[1], commands[i].name) == 0)
            commands[i].run();
    }
    must("PMIx_Finalize", PMIx_Finalize(NULL, 0));
    return 0;
}
