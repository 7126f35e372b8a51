#include "launcher/hosts/slurmgpus.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/hosts/hostarg.h"

const char *const dti_slurmgpus_options[] = {
    "SLURM_GPUS",           "SLURM_GPUS_PER_TASK", "SLURM_GPUS_PER_SOCKET",
    "SLURM_NTASKS_PER_GPU", "SLURM_TRES_PER_TASK", NULL,
};

/* Turns "gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:2),nic:1" into "a100:2,v100:1" for srun's --gpus. If no
 * GPU is listed, returns "0". */
static char *gpus_of(const char *gres)
{
    static const char gpu[] = "gpu:";
    struct dt_strbuf b = { 0 };

    while (*gres) {
        if (strncmp(gres, gpu, sizeof gpu - 1) == 0) {
            gres += sizeof gpu - 1;
            dt_strbuf_puts(&b, b.len ? "," : "");
            dt_strbuf_add(&b, gres, strcspn(gres, "(,"));
        }
        gres += strcspn(gres, "(,");
        if (*gres == '(')
            gres += strcspn(gres, ")");
        gres += strcspn(gres, ",");
        gres += *gres == ',';
    }
    dt_strbuf_puts(&b, b.len ? "" : "0");
    return dt_strbuf_take(&b);
}

static void set_gpus(struct dt_hostlist *hosts, const char *nodes, const char *gpus)
{
    struct dt_hostlist named = { 0 };

    if (dt_hostarg_list(&named, nodes, NULL) == 0) {
        for (size_t i = 0; i < named.n; i++) {
            struct dt_host *host = dt_hostlist_find(hosts, named.v[i].name);

            if (!host)
                continue;
            free(host->step_gpus);
            host->step_gpus = dt_xstrdup(gpus);
        }
    }
    dt_hostlist_free(&named);
}

/* Returns 3 for "a100:2,v100:1". */
static unsigned long count_of(const char *gpus)
{
    unsigned long count = 0;

    while (*gpus) {
        size_t n = strcspn(gpus, ",");
        const char *colon = memrchr(gpus, ':', n);

        count += strtoul(colon ? colon + 1 : gpus, NULL, 10);
        gpus += n;
        gpus += *gpus == ',';
    }
    return count;
}

/* Parses "Nodes=node[1-2] CPU_IDs=0-2 Mem=0 GRES=gpu:2(IDX:0-1)". Returns the number of GPUs on
 * each of these nodes, or ULONG_MAX if the line names no nodes. */
static unsigned long parse_line(struct dt_hostlist *hosts, char *line)
{
    const char *word, *nodes = NULL, *gres = NULL;
    unsigned long count;
    char *gpus;

    while ((word = strsep(&line, " "))) {
        if (strncmp(word, "Nodes=", strlen("Nodes=")) == 0)
            nodes = word + strlen("Nodes=");
        else if (strncmp(word, "GRES=", strlen("GRES=")) == 0)
            gres = word + strlen("GRES=");
    }
    if (!nodes || !gres)
        return ULONG_MAX;
    gpus = gpus_of(gres);
    set_gpus(hosts, nodes, gpus);
    count = count_of(gpus);
    free(gpus);
    return count;
}

void dt_slurmgpus_parse(struct dt_hostlist *hosts, const char *text)
{
    char *copy = dt_xstrdup(text), *rest = copy, *line;
    unsigned long fewest = ULONG_MAX;

    while ((line = strsep(&rest, "\n"))) {
        unsigned long count = parse_line(hosts, line);

        if (count < fewest)
            fewest = count;
    }
    for (size_t i = 0; i < hosts->n; i++) {
        struct dt_host *host = &hosts->v[i];

        host->has_fewest_gpus = host->step_gpus && count_of(host->step_gpus) == fewest;
    }
    free(copy);
}
