#include "launcher/job/state/refusal.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"

/* Several hosts often have the same reason: dtrun says it once and names them all. */
static void add_host(struct dt_refusal *r, const char *text, const char *host)
{
    char *hosts;

    if (!r->hosts || strcmp(r->text, text) != 0) {
        dt_say("%s (on %s)", text, host);
        return;
    }
    hosts = dt_xasprintf("%s, %s", r->hosts, host);
    free(r->hosts);
    r->hosts = hosts;
}

void dt_refusal_add(struct dt_refusal *r, char *text, const char *host, int exit_code)
{
    if (!r->text) {
        *r = (struct dt_refusal){ text, host ? dt_xstrdup(host) : NULL, exit_code };
        return;
    }
    if (host)
        add_host(r, text, host);
    free(text);
}

void dt_refusal_say(const struct dt_refusal *r)
{
    if (r->hosts)
        dt_say("%s (on %s)", r->text, r->hosts);
    else if (r->text)
        dt_say("%s", r->text);
}

void dt_refusal_forget(struct dt_refusal *r)
{
    free(r->text);
    free(r->hosts);
    *r = (struct dt_refusal){ 0 };
}
