#include "launcher/check/host.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"

/* Computes with unsigned numbers, because the clocks of other hosts may have any value. */
struct dt_check_clock dt_check_clock_of(const struct dt_heartbeat *h, int64_t host_wall_ahead_ns,
                                        int64_t own_wall_ahead_ns)
{
    uint64_t offset =
        (uint64_t)h->offset_ns + (uint64_t)host_wall_ahead_ns - (uint64_t)own_wall_ahead_ns;

    return (struct dt_check_clock){ (int64_t)offset, h->best_rtt_ns / 2 };
}

double dt_check_cores(const struct dt_check_host *h)
{
    double limit = h->facts.cpu_limit / 100.0;

    return limit > 0 && limit < h->cores ? limit : h->cores;
}

double dt_check_host_memory(const struct dt_check_host *h)
{
    uint64_t limit = h->facts.memory_limit;

    return (double)(limit && limit < h->memory ? limit : h->memory);
}

/* Leaves out the vendor, since everybody knows whose models they are. */
static const char *short_model(const char *model)
{
    static const char vendor[] = "NVIDIA ";

    return strncmp(model, vendor, sizeof vendor - 1) == 0 ? model + sizeof vendor - 1 : model;
}

char *dt_check_gpu_models(const struct dt_check_host *h)
{
    const struct dt_strs *models = &h->facts.gpu_models;
    struct dt_strbuf b = { 0 };

    for (uint32_t i = 0; i < models->n; i++) {
        uint32_t first = 0;

        while (strcmp(models->v[first], models->v[i]) != 0)
            first++;
        if (first == i)
            dt_strbuf_printf(&b, "%s%s", b.len ? ", " : "", short_model(models->v[i]));
    }
    return dt_strbuf_take(&b);
}

bool dt_check_gpu_ecc(const struct dt_check_host *h, uint64_t *sum)
{
    bool known = false;

    *sum = 0;
    for (uint32_t i = 0; i < h->facts.gpu_ecc.n; i++) {
        *sum += strtoull(h->facts.gpu_ecc.v[i], NULL, 10);
        known |= *h->facts.gpu_ecc.v[i] != '\0';
    }
    return known;
}

void dt_check_set_problem(struct dt_check_host *h, const char *text)
{
    if (!h->problem)
        h->problem = dt_xstrdup(text);
}

void dt_check_host_free(struct dt_check_host *h)
{
    free(h->problem);
    free(h->agent_version);
    dt_msg_free(DT_MSG_FACTS, (union dt_msg *)&h->facts);
}
