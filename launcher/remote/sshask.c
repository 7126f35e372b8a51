#include "launcher/remote/sshask.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/remote/child.h"

enum {
    ASK_MS = 20 * 1000, /* generous, because machines that start many jobs are busy */
    GRACE_MS = 100,
    TEXT_MAX = 256 * 1024,
};

struct dt_sshask {
    const struct dt_host *host;
    dt_sshask_f done;
    void *arg;
    struct dt_child *child; /* NULL once it has ended */
    uv_timer_t timer;
    bool expired;
    bool cancelled;
    struct dt_strbuf out;
    struct dt_strbuf err;
    struct dt_child_end end;
    struct dt_sshask *next; /* the next query that waits for the defaults */
};

/* What ssh -G prints without a configuration file. It is the same for every host, so dtrun asks
 * once. */
static struct {
    char *text; /* NULL until known */
    struct dt_child *child;
    struct dt_strbuf out;
    unsigned users; /* number of unfinished queries */
    struct dt_sshask *waiting;
} defaults;

static void ignore(void *arg)
{
    (void)arg;
}

static void add_text(struct dt_strbuf *to, const void *bytes, size_t n)
{
    if (to->len < TEXT_MAX)
        dt_strbuf_add(to, bytes, n);
}

static void explain(const struct dt_sshask *a, struct dt_error *err)
{
    const char *name = a->host->name, *text = dt_strbuf_text(&a->err);
    const char *remedy = dt_child_remedy(a->end.spawn_error, NULL);

    if (a->expired)
        dt_error_set(err, "ssh -G %s gave no answer for %d s; look at ~/.ssh/config", name,
                     ASK_MS / 1000);
    else if (remedy) /* otherwise, ssh is not installed */
        dt_error_set(err, "ssh -G %s: %s; %s", name, uv_strerror(a->end.spawn_error), remedy);
    else if (a->cancelled || a->end.spawn_error || !dt_sshconfig_user_is_known())
        return;
    else if (a->end.code != 0)
        dt_error_set(err, "ssh -G %s failed: %.*s", name, (int)strcspn(text, "\r\n"), text);
    else if (a->out.len == 0)
        dt_error_set(err, "ssh -G %s printed nothing; which ssh comes first in PATH?", name);
}

static void on_ask_closed(uv_handle_t *handle)
{
    struct dt_sshask *a = handle->data;
    bool usable = a->end.spawn_error == 0 && a->end.code == 0 && !a->expired && !a->cancelled;
    struct dt_sshconfig config;
    struct dt_error err = { 0 };

    explain(a, &err);
    dt_sshconfig_parse(&config, a->host, usable ? dt_strbuf_text(&a->out) : "",
                       defaults.text ? defaults.text : "");
    if (a->end.spawn_error)
        dt_sshconfig_without_ssh(&config, "ssh is not installed here");
    else if (!dt_sshconfig_user_is_known())
        dt_sshconfig_without_ssh(
            &config, "ssh does not run, since the password file does not name this user");
    if (!err.text[0] && !a->cancelled && !*config.user)
        dt_error_set(&err,
                     "this user (uid %u) has no name here; name one as in -H USER@%s, or by "
                     "--ssh-user",
                     (unsigned)getuid(), a->host->name);
    if (--defaults.users == 0 && defaults.child)
        dt_child_close(defaults.child);
    a->done(a->arg, &config, &err);
    dt_strbuf_free(&a->out);
    dt_strbuf_free(&a->err);
    free(a);
}

static void finish_ask(struct dt_sshask *a)
{
    uv_close((uv_handle_t *)&a->timer, on_ask_closed);
}

/* ---- the defaults ---- */

static void on_default_data(void *arg, const void *bytes, size_t n)
{
    (void)arg;
    add_text(&defaults.out, bytes, n);
}

static void on_default_noise(void *arg, const void *bytes, size_t n)
{
    (void)arg;
    (void)bytes;
    (void)n;
}

/* If ssh does not print its defaults, every setting counts as one that only ssh can honour. */
static void on_defaults_ended(void *arg, const struct dt_child_end *end)
{
    bool usable = !end->spawn_error && !end->closed && end->code == 0;

    (void)arg;
    defaults.child = NULL;
    defaults.text = dt_xstrdup(usable ? dt_strbuf_text(&defaults.out) : "");
    dt_strbuf_free(&defaults.out);
    while (defaults.waiting) {
        struct dt_sshask *a = defaults.waiting;

        defaults.waiting = a->next;
        finish_ask(a);
    }
}

static void want_defaults(uv_loop_t *loop)
{
    static const struct dt_child_events events = { on_default_data, on_default_noise, ignore,
                                                   on_defaults_ended };
    static const char *const argv[] = { "ssh", "-F", "/dev/null", "-G", "--", "localhost", NULL };

    defaults.users++;
    if (!defaults.text && !defaults.child)
        defaults.child = dt_child_open(loop, argv, NULL, GRACE_MS, &events, NULL);
}

static void stop_waiting(struct dt_sshask *a)
{
    struct dt_sshask **at = &defaults.waiting;

    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    finish_ask(a);
}

/* ---- one host ---- */

static void on_data(void *arg, const void *bytes, size_t n)
{
    struct dt_sshask *a = arg;

    add_text(&a->out, bytes, n);
}

static void on_ssh_noise(void *arg, const void *bytes, size_t n)
{
    struct dt_sshask *a = arg;

    add_text(&a->err, bytes, n);
}

static void on_ended(void *arg, const struct dt_child_end *end)
{
    struct dt_sshask *a = arg;

    a->end = *end;
    a->child = NULL;
    if (defaults.text || a->cancelled || a->expired) {
        finish_ask(a);
        return;
    }
    a->next = defaults.waiting;
    defaults.waiting = a;
}

static void stop(struct dt_sshask *a)
{
    if (a->child)
        dt_child_close(a->child);
    else if (!uv_is_closing((uv_handle_t *)&a->timer))
        stop_waiting(a);
}

static void on_expired(uv_timer_t *timer)
{
    struct dt_sshask *a = timer->data;

    a->expired = true;
    stop(a);
}

struct dt_sshask *dt_sshask_start(uv_loop_t *loop, const struct dt_host *host, dt_sshask_f done,
                                  void *arg)
{
    static const struct dt_child_events events = { on_data, on_ssh_noise, ignore, on_ended };
    struct dt_sshask *a = dt_xcalloc(1, sizeof *a);
    struct dt_strs argv = { 0 };

    a->host = host;
    a->done = done;
    a->arg = arg;
    uv_timer_init(loop, &a->timer);
    a->timer.data = a;
    uv_timer_start(&a->timer, on_expired, ASK_MS, 0);
    dt_xstrs_add(&argv, "ssh");
    dt_xstrs_add(&argv, "-G");
    dt_sshconfig_add_host_args(&argv, host);
    a->child = dt_child_open(loop, (const char *const *)argv.v, NULL, GRACE_MS, &events, a);
    dt_strs_free(&argv);
    want_defaults(loop);
    return a;
}

void dt_sshask_cancel(struct dt_sshask *a)
{
    a->cancelled = true;
    stop(a);
}
