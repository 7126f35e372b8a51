#include "runtime/checkpoint/holder.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct dt_holder dt_holder_of(const struct dt_owner *me, const char *host)
{
    struct dt_holder h = { .generation = me->generation, .pid = (long)getpid() };
    time_t now = time(NULL);
    struct tm tm;

    snprintf(h.job, sizeof h.job, "%s", me->job_id);
    snprintf(h.host, sizeof h.host, "%s", host);
    gmtime_r(&now, &tm);
    strftime(h.since, sizeof h.since, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return h;
}

void dt_holder_write(char text[DT_HOLDER_TEXT], const struct dt_holder *h)
{
    snprintf(text, DT_HOLDER_TEXT, "job %s\ngeneration %u\nhost %s\npid %ld\nsince %s\n", h->job,
             h->generation, h->host, h->pid, h->since);
}

bool dt_holder_parse(const char *text, struct dt_holder *h)
{
    *h = (struct dt_holder){ .pid = 0 };
    if (sscanf(text, "job %255[^\n]\ngeneration %u\nhost %255[^\n]\npid %ld\nsince %31[^\n]",
               h->job, &h->generation, h->host, &h->pid, h->since) == 5)
        return true;
    *h = (struct dt_holder){ .pid = 0 };
    return false;
}

bool dt_holder_is_job(const struct dt_holder *h, const char *job_id)
{
    return h->job[0] && strncmp(h->job, job_id, sizeof h->job - 1) == 0;
}
