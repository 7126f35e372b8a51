#include "runtime/checkpoint/lineage_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"

enum {
    ENTRY_MAX = DT_HOLDER_TEXT + 64,
    HEX_BYTES = 2 * DT_CHECKSUM_BYTES + 1,
    TEXT_MAX = 2 * ENTRY_MAX + HEX_BYTES + 64,
};

static const char before_label[] = "\nbefore\n";

static struct dt_lineage parse_lineage(const char *text)
{
    const char *job = strchr(text, '\n');
    struct dt_lineage l = { .id = "" };

    if (!job || sscanf(text, "lineage %16[0-9a-f]\n", l.id) != 1 ||
        !dt_holder_parse(job + 1, &l.job))
        return (struct dt_lineage){ .id = "" };
    return l;
}

/* A last line that is cut short does not count. */
static struct dt_beginning parse_beginning(const char *text)
{
    struct dt_beginning b = { .step = -1 }, none = { .step = -1 };
    const char *line = strstr(text, "\nbegins step "), *before = strstr(text, before_label);
    char hex[HEX_BYTES], end = '\0';
    size_t n = 0;

    if (!line ||
        sscanf(line, "\nbegins step %" SCNd64 " manifest %32[0-9a-f]%c", &b.step, hex, &end) != 3 ||
        end != '\n' || b.step < 0 ||
        sodium_hex2bin(b.sum.bytes, sizeof b.sum.bytes, hex, strlen(hex), NULL, &n, NULL) != 0 ||
        n != sizeof b.sum.bytes)
        return none;
    if (before)
        b.before = parse_lineage(before + strlen(before_label));
    return b;
}

dt_result_t dt_lineage_file_read(struct dt_lineage_file *f, const struct dt_dir *d)
{
    char text[TEXT_MAX];
    dt_result_t result = DT_OK;
    ssize_t n;
    int fd = openat(d->fd, DT_LINEAGE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    *f = (struct dt_lineage_file){ .begins.step = -1 };
    if (fd < 0)
        return errno == ENOENT
                   ? DT_OK
                   : dt_fail_errno(DT_ERR_IO, errno, "%s/%s: open", d->path, DT_LINEAGE_NAME);
    n = pread(fd, text, sizeof text - 1, 0);
    if (n < 0)
        result = dt_fail_errno(DT_ERR_IO, errno, "%s/%s: read", d->path, DT_LINEAGE_NAME);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    f->line = parse_lineage(text);
    f->begins = parse_beginning(text);
    return result;
}

static void put_lineage(char text[TEXT_MAX], const struct dt_lineage *l)
{
    char who[DT_HOLDER_TEXT];
    size_t n = strlen(text);

    dt_holder_write(who, &l->job);
    snprintf(text + n, TEXT_MAX - n, "lineage %s\n%s", l->id, who);
}

static void put_beginning(char text[TEXT_MAX], const struct dt_beginning *b)
{
    char hex[HEX_BYTES];
    size_t n;

    if (b->before.id[0]) {
        strcat(text, before_label + 1); /* a line has just ended */
        put_lineage(text, &b->before);
    }
    n = strlen(text);
    sodium_bin2hex(hex, sizeof hex, b->sum.bytes, sizeof b->sum.bytes);
    snprintf(text + n, TEXT_MAX - n, "begins step %" PRId64 " manifest %s\n", b->step, hex);
}

static dt_result_t write_temporary(const struct dt_dir *d, const char *name,
                                   const struct dt_lineage_file *l)
{
    char text[TEXT_MAX] = "";
    struct dt_file f = { .fd = -1 };
    dt_result_t result = dt_file_create(&f, d, name);

    put_lineage(text, &l->line);
    if (l->begins.step >= 0)
        put_beginning(text, &l->begins);
    if (result == DT_OK)
        result = dt_file_write(&f, text, strlen(text));
    if (result == DT_OK)
        result = dt_file_finish(&f);
    dt_file_close(&f);
    return result;
}

dt_result_t dt_lineage_file_write(const struct dt_lineage_file *f, const struct dt_dir *d,
                                  const struct dt_owner *me)
{
    struct dt_name temporary = dt_name_unfinished(me, "lineage");
    dt_result_t result;

    if (!f->line.id[0])
        return dt_dir_remove(d, DT_LINEAGE_NAME, DT_LINEAGE_NAME);
    unlinkat(d->fd, temporary.s, 0);
    result = write_temporary(d, temporary.s, f);
    if (result == DT_OK)
        result = dt_dir_rename(d, temporary.s, DT_LINEAGE_NAME);
    if (result != DT_OK)
        unlinkat(d->fd, temporary.s, 0);
    return result;
}
