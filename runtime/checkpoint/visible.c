#include "runtime/checkpoint/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"

enum { HOSTS_NAMED = 8 };

/* Makes an empty file with an unpredictable name. */
static dt_result_t make_token(const struct dt_store *s, const struct dt_dir *d,
                              struct dt_name *token)
{
    uint64_t nonce = 0;
    char what[32];
    int fd;

    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return dt_fail_errno(DT_ERR_IO, errno, "getrandom");
    snprintf(what, sizeof what, "token-%016llx", (unsigned long long)nonce);
    *token = dt_name_unfinished(&s->owner, what);
    fd = openat(d->fd, token->s, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return dt_fail_errno(DT_ERR_IO, errno, "%s/%s: cannot be created", d->path, token->s);
    close(fd);
    return DT_OK;
}

/* Returns 0, or the errno of what is missing. */
static int look_for_token(const struct dt_store *s, const struct dt_name *token)
{
    struct dt_dir d = { .fd = -1 };
    struct stat st;
    int error;

    if (dt_dir_open(&d, s->path) != DT_OK)
        return dt_error_details()->error ? dt_error_details()->error : ENOENT;
    error = fstatat(d.fd, token->s, &st, 0) == 0 ? 0 : errno;
    dt_dir_close(&d);
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

dt_result_t dt_visible_report(const struct dt_store *s, int error, const char *verb)
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
            "the checkpoint directory %s is not shared: what rank 0 %s there cannot be seen on "
            "%s; choose one that all hosts have mounted (--checkpoint-dir)",
            s->path, verb, hosts);
    dt_error_details()->rank = (int)first;
    return DT_ERR_IO;
}

dt_result_t dt_visible_check(const struct dt_store *s, const struct dt_dir *d)
{
    const struct dt_group *g = &s->group;
    struct dt_name token = { "" };
    dt_result_t result = DT_OK;

    if (g->size == 1)
        return DT_OK;
    if (g->rank == 0)
        result = make_token(s, d, &token);
    result = dt_group_agree(g, result);
    if (result == DT_OK)
        result = g->broadcast(g->ctx, token.s, sizeof token.s, 0);
    if (result != DT_OK)
        return result;
    token.s[sizeof token.s - 1] = '\0';
    result = dt_visible_report(s, s->leads_host ? look_for_token(s, &token) : 0, "writes");
    if (g->rank == 0)
        unlinkat(d->fd, token.s, 0);
    return result;
}
