#include "runtime/checkpoint/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"

enum { HOSTS_NAMED = 8 };

/* A file that rank 0 has made, for the other hosts to look for. */
struct token {
    uint32_t above;      /* it is in the directory so many levels above the store's */
    struct dt_name name; /* "": there is none */
};

/* Makes an empty file with an unpredictable name. */
static dt_result_t make_token(const struct dt_store *s, const struct dt_dir *d,
                              struct dt_name *token)
{
    uint64_t nonce = 0;
    struct dt_name name;
    char what[32];
    int fd;

    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return dt_fail_errno(DT_ERR_IO, errno, "getrandom");
    snprintf(what, sizeof what, "token-%016llx", (unsigned long long)nonce);
    name = dt_name_unfinished(&s->owner, what);
    fd = openat(d->fd, name.s, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return dt_fail_errno(DT_ERR_IO, errno, "%s/%s: cannot be created", d->path, name.s);
    close(fd);
    *token = name;
    return DT_OK;
}

static size_t length_without_slashes(const char *path, size_t len)
{
    while (len > 1 && path[len - 1] == '/')
        len--;
    return len;
}

static void name_dir(const struct dt_store *s, uint32_t above, char dir[PATH_MAX + 1])
{
    size_t len = strlen(s->path);

    for (; above > 0; above--) {
        len = length_without_slashes(s->path, len);
        while (len > 1 && s->path[len - 1] != '/')
            len--;
        len = length_without_slashes(s->path, len);
    }
    snprintf(dir, PATH_MAX + 1, "%.*s", (int)len, s->path);
}

/* Opens the store's directory, or the nearest one above it that exists. */
static dt_result_t open_nearest(const struct dt_store *s, struct dt_dir *d, uint32_t *above)
{
    char dir[PATH_MAX + 1];
    dt_result_t result;

    for (*above = 0;; ++*above) {
        name_dir(s, *above, dir);
        result = dt_dir_open(d, dir);
        if (result == DT_OK || dt_error_details()->error != ENOENT || strcmp(dir, "/") == 0)
            return result;
    }
}

/* Returns 0, or the errno of what is missing. It does not look for a directory that rank 0 has not
 * found: NFS would remember for a minute that there is none. */
static int look_for_token(const struct dt_store *s, const struct token *token)
{
    char dir[PATH_MAX + 1];
    struct stat st;
    int fd, error;

    name_dir(s, token->above, dir);
    fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    error = fstatat(fd, token->name.s, &st, 0) == 0 ? 0 : errno;
    close(fd);
    return error;
}

/* Writes "host2", or "host2 (Permission denied)" if its directory may be the right one. */
static void name_host(const struct dt_store *s, int error, char *text, size_t room)
{
    if (error == ENOENT)
        snprintf(text, room, "%s", s->host);
    else
        snprintf(text, room, "%s (%s)", s->host, strerror(error));
}

dt_result_t dt_visible_report(const struct dt_store *s, int error, const char *what)
{
    const struct dt_group *g = &s->group;
    char hosts[DT_ERROR_TEXT / 2] = "", host[128];
    int64_t last = -1, first = -1;

    for (int i = 0; i < HOSTS_NAMED; i++) {
        int64_t next = error && (int64_t)g->rank > last ? (int64_t)g->rank : INT64_MAX;
        dt_result_t result = g->min(g->ctx, &next, 1);

        if (result == DT_OK && next == INT64_MAX)
            break;
        name_host(s, error, host, sizeof host);
        if (result == DT_OK)
            result = g->broadcast(g->ctx, host, sizeof host, (uint32_t)next);
        if (result != DT_OK)
            return result;
        host[sizeof host - 1] = '\0';
        snprintf(hosts + strlen(hosts), sizeof hosts - strlen(hosts), "%s%s", i ? ", " : "", host);
        last = next;
        first = first < 0 ? next : first;
    }
    if (!hosts[0])
        return DT_OK;
    dt_fail(DT_ERR_IO,
            "the checkpoint directory %s is not shared: what rank 0 %s cannot be seen on %s; "
            "choose one that all hosts have mounted (--checkpoint-dir)",
            s->path, what, hosts);
    dt_error_details()->rank = (int)first;
    return DT_ERR_IO;
}

static dt_result_t report_token(const struct dt_store *s, const struct token *token)
{
    char dir[PATH_MAX + 1], what[200];

    name_dir(s, token->above, dir);
    snprintf(what, sizeof what, token->above ? "writes to %s" : "writes there", dir);
    return dt_visible_report(s, s->leads_host ? look_for_token(s, token) : 0, what);
}

/* On all ranks, after rank 0 has made the token, if it could. If another job has removed the token,
 * which may look like one of its own leftovers, nothing is known. */
static dt_result_t check_token(const struct dt_store *s, const struct dt_dir *d,
                               struct token *token)
{
    const struct dt_group *g = &s->group;
    dt_result_t told, result = g->broadcast(g->ctx, token, sizeof *token, 0);
    bool made = token->name.s[0];
    int64_t lasted = 0;

    token->name.s[sizeof token->name.s - 1] = '\0';
    if (result == DT_OK && made)
        result = report_token(s, token);
    if (g->rank == 0 && made)
        lasted = unlinkat(d->fd, token->name.s, 0) == 0;
    if (result != DT_ERR_IO)
        return result;
    told = g->broadcast(g->ctx, &lasted, sizeof lasted, 0);
    return told == DT_OK && lasted ? result : told;
}

dt_result_t dt_visible_check(const struct dt_store *s, const struct dt_dir *d)
{
    const struct dt_group *g = &s->group;
    struct token token = { 0 };
    dt_result_t result = DT_OK;

    if (s->hosts == 1)
        return DT_OK;
    if (g->rank == 0)
        result = make_token(s, d, &token.name);
    result = dt_group_agree(g, result);
    return result == DT_OK ? check_token(s, d, &token) : result;
}

dt_result_t dt_visible_check_early(const struct dt_store *s)
{
    struct token token = { 0 };
    struct dt_dir d = { .fd = -1 };
    dt_result_t result;

    if (s->hosts == 1)
        return DT_OK;
    if (s->group.rank == 0 && s->chosen && open_nearest(s, &d, &token.above) == DT_OK)
        make_token(s, &d, &token.name);
    result = check_token(s, &d, &token);
    dt_dir_close(&d);
    return dt_group_agree(&s->group, result);
}
