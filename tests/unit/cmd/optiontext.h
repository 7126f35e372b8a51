/* Command lines as text, and the options parsed from them as text. */
#ifndef TESTS_UNIT_CMD_OPTIONTEXT_H
#define TESTS_UNIT_CMD_OPTIONTEXT_H

#include <stdlib.h>
#include <string.h>

#include "cmd/commandline.h"
#include "cmd/options.h"
#include "launcher/base/strbuf.h"

enum { WORDS_MAX = 32 };

static int parse(struct dt_options *o, int argc, char **argv, struct dt_error *err)
{
    dt_options_init(o);
    if (dt_commandline_read(o, argc, argv, err) < 0)
        return -1;
    return dt_options_ask_for_text(o) ? 0 : dt_options_check(o, err);
}

struct line { /* a command line; words are separated by blanks, _ stands for an empty word */
    char *copy;
    char *argv[WORDS_MAX];
    int argc;
};

static void split(struct line *l, const char *text)
{
    char *rest = l->copy = strdup(text), *word;

    l->argv[0] = "dtrun";
    l->argc = 1;
    while ((word = strsep(&rest, " ")))
        if (*word)
            l->argv[l->argc++] = strcmp(word, "_") == 0 ? "" : word;
    l->argv[l->argc] = NULL;
}

static void add_list(struct dt_strbuf *b, const char *name, const struct dt_strs *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        dt_strbuf_printf(b, "%s%s=%s", b->len ? " " : "", name, list->v[i]);
}

static void add_number(struct dt_strbuf *b, const char *name, int value, int usual)
{
    if (value != usual)
        dt_strbuf_printf(b, "%s%s=%d", b->len ? " " : "", name, value);
}

static void add_text(struct dt_strbuf *b, const char *name, const char *value)
{
    if (value)
        dt_strbuf_printf(b, "%s%s=%s", b->len ? " " : "", name, value);
}

/* Describes all options that differ from the defaults, in the order of the structure. */
static const char *describe(struct dt_strbuf *b, const struct dt_options *o)
{
    dt_strbuf_consume(b, b->len);
    add_number(b, "np", o->np, 0);
    add_number(b, "pernode", o->per_node, 0);
    add_number(b, "slots", o->slots_per_host, 0);
    add_number(b, "nnodes", o->nnodes, 0);
    add_number(b, "mapby", o->job.map_by, DT_MAP_BY_SLOT);
    add_list(b, "H", &o->hosts);
    add_text(b, "hostfile", o->hostfile);
    add_list(b, "env", &o->env);
    add_number(b, "frameworks", (int)o->job.frameworks, 0);
    add_number(b, "num_servers", o->num_servers, 0);
    add_number(b, "gpubind", o->job.gpu_bind, DT_GPU_BIND_RANK);
    add_number(b, "bind", o->job.bind_to, DT_BIND_NONE);
    add_number(b, "virtual", o->job.virtual_local_rank, 0);
    add_text(b, "wdir", o->wdir);
    add_number(b, "dry", o->dry_run, 0);
    add_number(b, "map", o->display_map, 0);
    add_number(b, "bindings", o->job.report_bindings, 0);
    add_number(b, "check", o->check, 0);
    add_number(b, "json", o->json, 0);
    add_text(b, "report", o->report);
    add_number(b, "restarts", o->job.max_restarts, -1);
    add_number(b, "hostloss", o->job.on_host_loss, DT_HOST_LOSS_MOVE);
    add_text(b, "ckpt", o->checkpoint_dir);
    add_number(b, "resume", o->job.resume, 0);
    add_number(b, "fresh", o->job.fresh, 0);
    add_list(b, "inject", &o->job.inject);
    add_number(b, "tag", o->tag, 0);
    add_number(b, "notag", o->no_tag, 0);
    add_number(b, "stamp", o->timestamp, 0);
    add_number(b, "merge", o->job.merge_stderr, 0);
    add_number(b, "unbuffered", o->job.unbuffered, 0);
    add_text(b, "outdir", o->output_dir);
    add_number(b, "tee", o->tee, 0);
    add_number(b, "stdin", o->job.stdin_rank, 0);
    add_number(b, "noover", o->job.no_oversubscribe, 0);
    add_number(b, "transport", o->transport, DT_TRANSPORT_AUTO);
    add_number(b, "acceptnew", o->ssh_accept_new, 0);
    add_text(b, "sshuser", o->ssh_user);
    add_number(b, "sshport", o->ssh_port, 0);
    add_text(b, "sshid", o->ssh_identity);
    add_number(b, "fanout", o->job.fanout, 64);
    add_number(b, "starttimeout", o->job.start_timeout_s, 0);
    add_number(b, "nopush", o->no_push, 0);
    add_text(b, "iface", o->job.iface);
    add_list(b, "push", &o->push);
    add_number(b, "heartbeat", o->job.heartbeat_s, 10);
    add_number(b, "grace", o->job.kill_grace_s, 5);
    add_number(b, "timeout", o->job.timeout_s, 0);
    add_number(b, "colltimeout", o->job.collective_timeout_s, -1);
    add_number(b, "exitgrace", o->job.exit_grace_s, 0);
    add_number(b, "verbose", o->verbose, 0);
    add_number(b, "help", o->help, 0);
    add_number(b, "version", o->version, 0);
    add_number(b, "build", o->check_build, 0);
    add_number(b, "completion", o->completion, DT_SHELL_NONE);
    add_list(b, "", &o->job.argv);
    return dt_strbuf_text(b);
}

#endif
