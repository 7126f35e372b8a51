#include "launcher/agent/sweep/procstatus.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { STATUS_MAX = 64 * 1024 };

struct dt_strbuf dt_procstatus_read(pid_t pid)
{
    char *file = dt_xasprintf("/proc/%d/status", (int)pid);
    struct dt_strbuf text = { 0 };

    dt_slurp(&text, file, STATUS_MAX, NULL);
    free(file);
    return text;
}

bool dt_procstatus_has(const struct dt_strbuf *status, const char *set, int signo)
{
    char *key = dt_xasprintf("\n%s:", set);
    const char *mask = strstr(dt_strbuf_text(status), key);
    bool has = mask && (strtoull(mask + strlen(key), NULL, 16) >> (signo - 1) & 1);

    free(key);
    return has;
}
