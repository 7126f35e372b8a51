#include "cmd/stepgpus.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/hosts/slurmgpus.h"

static bool counts_otherwise(void)
{
    for (const char *const *name = dti_slurmgpus_options; *name; name++) {
        if (getenv(*name))
            return true;
    }
    return false;
}

/* scontrol itself prints what is wrong. */
static void read_job(struct dt_strbuf *text, const char *id)
{
    char *command = dt_xasprintf("exec scontrol show job --details %s", id), part[4096];
    FILE *out = popen(command, "re");
    size_t n;

    free(command);
    if (!out)
        return;
    while ((n = fread(part, 1, sizeof part, out)) > 0)
        dt_strbuf_add(text, part, n);
    pclose(out);
}

void dt_stepgpus_ask(struct dt_hostlist *hosts)
{
    const char *id = getenv("SLURM_JOB_ID");
    struct dt_strbuf text = { 0 };

    if (!id || !*id || id[strspn(id, "0123456789")] || !counts_otherwise())
        return;
    read_job(&text, id);
    dt_slurmgpus_parse(hosts, dt_strbuf_text(&text));
    dt_strbuf_free(&text);
}
