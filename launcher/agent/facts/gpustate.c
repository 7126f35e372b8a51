#include "launcher/agent/facts/gpustate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"
#include "runtime/wire/nccllib.h"

enum {
    LOG_MAX = 16 * 1024 * 1024,
    CACHE_MAX = 16 * 1024 * 1024,
    LIBRARY_MAX = 64 * 1024 * 1024,
    XIDS = 64,
    COLUMNS = 64
};

const char *const dt_gpustate_query[] = {
    "nvidia-smi", "--query-gpu=name,driver_version,ecc.errors.uncorrected.volatile.total",
    "--format=csv,noheader,nounits", NULL
};
const char *const dt_gpustate_topology[] = { "nvidia-smi", "topo", "-m", NULL };

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : line + strlen(line);
}

/* ---- nvidia-smi ---- */

/* Parses "NVIDIA H100 80GB HBM3, 580.65.06, 0". A GPU without ECC has no number. */
static bool parse_gpu(struct dt_msg_facts *facts, const char *line, bool needs_model)
{
    int model = 0, version = 0, version_end = 0, errors = 0, errors_end = 0;

    sscanf(line, "%*[^,\n]%n, %n%*[0-9.]%n, %n%*[0-9]%n", &model, &version, &version_end, &errors,
           &errors_end);
    if (!version_end)
        return false;
    if (needs_model)
        dt_xstrs_add_n(&facts->gpu_models, line, (size_t)model);
    if (!*facts->gpu_driver) {
        free(facts->gpu_driver);
        facts->gpu_driver = dt_xstrndup(line + version, (size_t)(version_end - version));
    }
    dt_xstrs_add_n(&facts->gpu_ecc, line + errors, errors_end ? (size_t)(errors_end - errors) : 0);
    return true;
}

void dt_gpustate_parse_query(struct dt_msg_facts *facts, const char *text)
{
    bool needs_model = facts->gpu_models.n == 0;

    while (*text && parse_gpu(facts, text, needs_model))
        text = next_line(text);
}

/* The header names the columns. Escape sequences underline it. */
static uint32_t count_columns(const char *header)
{
    const char *end = next_line(header);
    uint32_t n = 0;

    for (; (header = strstr(header, "GPU")) && header < end; header++)
        n += header[3] >= '0' && header[3] <= '9';
    return n < COLUMNS ? n : COLUMNS;
}

/* Parses "GPU0\t X \tNV18\tSYS..." and adds each kind of link once. */
static void collect_links(struct dt_strs *kinds, const char *row, uint32_t columns)
{
    for (uint32_t i = 0; i < columns; i++) {
        size_t n;

        row += strcspn(row, "\t\n");
        row += *row == '\t';
        row += strspn(row, " ");
        n = strcspn(row, " \t\n");
        if (n && !(n == 1 && *row == 'X') && !dt_strs_has(kinds, row, n))
            dt_xstrs_add_n(kinds, row, n);
    }
}

void dt_gpustate_parse_topology(struct dt_msg_facts *facts, const char *text)
{
    uint32_t columns = count_columns(text);
    struct dt_strs kinds = { 0 };
    struct dt_strbuf b = { 0 };

    for (const char *row = next_line(text); *row; row = next_line(row))
        if (strncmp(row, "GPU", 3) == 0 && row[3] >= '0' && row[3] <= '9')
            collect_links(&kinds, row, columns);
    for (uint32_t i = 0; i < kinds.n; i++)
        dt_strbuf_printf(&b, "%s%s", i ? ", " : "", kinds.v[i]);
    free(facts->gpu_links);
    facts->gpu_links = dt_strbuf_take(&b);
    dt_strs_free(&kinds);
}

/* ---- the kernel's log ---- */

struct xid {
    char device[32];
    unsigned number, times;
};

static void parse_log(struct dt_msg_facts *facts, const char *text)
{
    static const char before[] = "NVRM: Xid (PCI:";
    struct xid xids[XIDS], now = { .times = 1 };
    size_t n = 0, i;

    for (; (text = strstr(text, before)); text++) {
        if (sscanf(text + sizeof before - 1, "%31[0-9a-fA-F:.]): %u", now.device, &now.number) != 2)
            continue;
        for (i = 0; i < n; i++)
            if (xids[i].number == now.number && strcmp(xids[i].device, now.device) == 0)
                break;
        if (i < n)
            xids[i].times++;
        else if (n < XIDS)
            xids[n++] = now;
    }
    for (i = 0; i < n; i++) {
        char *line =
            dt_xasprintf("Xid %u x %u (%s)", xids[i].number, xids[i].times, xids[i].device);

        dt_xstrs_add(&facts->gpu_xids, line);
        free(line);
    }
}

/* The kernel returns one record per read, and EPIPE for records that it has overwritten. */
static void read_log(struct dt_strbuf *text, const char *root)
{
    char *path = dt_xasprintf("%s/dev/kmsg", root), record[8192];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = 0;

    while (fd >= 0 && text->len < LOG_MAX &&
           ((n = read(fd, record, sizeof record)) > 0 || (n < 0 && errno == EPIPE)))
        dt_strbuf_add(text, record, n > 0 ? (size_t)n : 0);
    if (fd >= 0)
        close(fd);
    free(path);
}

/* ---- NCCL ---- */

/* The cache stores paths as NUL-terminated strings. */
static char *find_in_cache(const char *root)
{
    static const char name[] = "/" DT_NCCLLIB_NAME;
    char *cache = dt_xasprintf("%s/etc/ld.so.cache", root), *found = NULL;
    struct dt_strbuf text = { 0 };
    const char *at = NULL;

    if (dt_slurp(&text, cache, CACHE_MAX, NULL) == 0)
        at = memmem(dt_strbuf_text(&text), text.len, name, sizeof name);
    if (at) {
        const char *begin = at;

        while (begin > text.data && begin[-1])
            begin--;
        found = dt_xasprintf("%s%s", root, begin);
    }
    dt_strbuf_free(&text);
    free(cache);
    return found;
}

/* The library contains "NCCL version 2.28.9+cuda13.0", which it writes to its log. Returns NULL if
 * these n bytes, which a NUL follows, do not have all of it. */
static char *version_in(const char *bytes, size_t n)
{
    static const char before[] = "NCCL version ";
    const char *end = bytes + n;

    while ((bytes = memmem(bytes, (size_t)(end - bytes), before, sizeof before - 1))) {
        size_t length;

        bytes += sizeof before - 1;
        length = strspn(bytes, "0123456789.");
        if (length && bytes + length < end)
            return dt_xstrndup(bytes, length);
    }
    return NULL;
}

static char *read_version(const char *library)
{
    enum { PART = 1024 * 1024, OVERLAP = 64 }; /* the version is shorter than OVERLAP */
    char *part = dt_xcalloc(1, PART + 1), *version = NULL;
    int fd = open(library, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    for (off_t at = 0;
         fd >= 0 && !version && at < LIBRARY_MAX && (n = pread(fd, part, PART, at)) > 0;
         at += PART - OVERLAP) {
        part[n] = '\0';
        version = version_in(part, (size_t)n);
    }
    if (fd >= 0)
        close(fd);
    free(part);
    return version ? version : dt_xstrdup("");
}

struct finding {
    const char *root;
    char *library;
};

static bool take_library(void *arg, const char *file)
{
    struct finding *f = arg;

    f->library = strchr(file, '/') ? dt_xstrdup(file) : find_in_cache(f->root);
    return f->library != NULL;
}

static char *find_library(const char *root)
{
    struct finding f = { .root = root };
    const struct dt_nccllib_search search = { .root = root, .take = take_library, .arg = &f };

    dt_nccllib_find(&search);
    return f.library;
}

void dt_gpustate_read(struct dt_msg_facts *facts, const char *root)
{
    char *library = find_library(root);
    struct dt_strbuf log = { 0 };

    read_log(&log, root);
    parse_log(facts, dt_strbuf_text(&log));
    dt_strbuf_free(&log);
    facts->nccl = library ? read_version(library) : dt_xstrdup("");
    free(library);
}
