/* What --report must say: the exit code, how often the ranks were started again, and which hosts
 * are left out to the end. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/error.h"
#include "tests/sim/world.h"

static int number(const cJSON *root, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(root, name);

    return item && cJSON_IsNumber(item) ? item->valueint : -1;
}

static int count(const cJSON *root, const char *name)
{
    return cJSON_GetArraySize(cJSON_GetObjectItem(root, name));
}

/* The report has an entry for each time that a host was left out. */
static bool is_left_out(const cJSON *root, const char *host)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, cJSON_GetObjectItem(root, "left_out"))
    {
        if (strcmp(cJSON_GetObjectItem(item, "host")->valuestring, host) == 0 &&
            cJSON_IsNull(cJSON_GetObjectItem(item, "until_generation")))
            return true;
    }
    return false;
}

/* How each rank has ended, as far as dtrun was told. */
static void check_ranks(struct sim_world *w, const cJSON *root)
{
    const cJSON *item;
    uint32_t r = 0;

    cJSON_ArrayForEach(item, cJSON_GetObjectItem(root, "ranks"))
    {
        const struct sim_known *k = &w->known[r++];
        int code = k->signo ? DT_EXIT_SIGNAL + k->signo : k->code;

        if (number(item, "exit_code") != (k->told ? code : -1))
            sim_broken(w, "the report says that rank %u has ended with %d", r - 1,
                       number(item, "exit_code"));
    }
}

static void check(struct sim_world *w, const cJSON *root)
{
    int started = (int)w->witness.restarts.n, restarts = number(root, "restarts");

    if (number(root, "exit_code") != dt_job_exit_code(w->job))
        sim_broken(w, "the report says that dtrun exits with %d", number(root, "exit_code"));
    if (count(root, "ranks") != (int)w->s->np)
        sim_broken(w, "the report lists %d ranks, not %u", count(root, "ranks"), w->s->np);
    /* The last restart may have ended before any rank started. */
    if (restarts < started || restarts > started + 1 || count(root, "recoveries") != restarts)
        sim_broken(w,
                   "the report counts %d restarts and lists %d, and ranks started again %d times",
                   restarts, count(root, "recoveries"), started);
    if (cJSON_IsNull(cJSON_GetObjectItem(root, "cause")) != (number(root, "exit_code") == 0))
        sim_broken(w, "the report does not say why dtrun exits with %d", number(root, "exit_code"));
    check_ranks(w, root);
    sim_check_recoveries(w, root);
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_host *h = &w->hosts[i];

        bool left_out = is_left_out(root, h->name);

        /* dtrun does not say that a lost host is in quarantine, too */
        if (left_out ? !h->out && !h->without : h->out)
            sim_broken(w, "the report says that %s is%s left out to the end", h->name,
                       left_out ? "" : " not");
    }
}

void sim_check_report(struct sim_world *w)
{
    char *text = dt_job_report(w->job);
    cJSON *root = cJSON_Parse(text);

    if (root)
        check(w, root);
    else
        sim_broken(w, "the report is no JSON");
    cJSON_Delete(root);
    free(text);
}
