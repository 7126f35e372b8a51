#include "cmd/options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/programword.h"
#include "cmd/similar.h"
#include "launcher/base/inject.h"
#include "launcher/base/mem.h"
#include "launcher/base/number.h"
#include "launcher/base/strbuf.h"
#include "launcher/hosts/hostarg.h"
#include "launcher/hosts/hostlist.h"
#include "launcher/hosts/hostword.h"
#include "launcher/io/outname.h"
#include "launcher/place/envrules.h"
#include "launcher/place/frameworks.h"
#include "launcher/place/iface.h"
#include "runtime/wire/msg.h"

enum { SECONDS_MAX = 10000000, NAMES_MAX = 4 };

enum kind {
    FLAG,     /* bool, no value */
    NUMBER,   /* int from min */
    PER_NODE, /* an int, or a DT_PER_NODE_ constant */
    TEXT,     /* char * */
    ONE_FILE, /* char *; a second one is an error, because users may expect both to be read */
    USER,     /* char *: the name of a user */
    LIST,     /* struct dt_strs: one entry each time the option is given */
    ENV_SET,  /* the list of -x and --unset */
    ENV_UNSET,
    FAULT,      /* a list entry that dt_inject_parse accepts */
    CHOICE,     /* one of the words in value, as in "slot|node": an enum that starts at min */
    IFACE,      /* char * that dt_iface_check accepts */
    STDIN_RANK, /* int: a rank, DT_STDIN_ALL or DT_STDIN_NONE */
    FRAMEWORKS, /* unsigned, a set that dt_frameworks_parse adds to */
};

struct dt_option {
    /* without dashes; a long name takes one dash or two */
    const char *names[NAMES_MAX];
    const char *value; /* its name in --help; NULL for a flag */
    enum kind kind;
    size_t offset; /* of the member of struct dt_options that it sets */
    int min;
    int max;
    const char *help; /* for an entry without names: the heading of a group */
};

#define AT(member) offsetof(struct dt_options, member)

/* clang-format off */
static const struct dt_option options[] = {
    { .help = "What to run where" },
    { { "np", "n", "num-proc" }, "N", NUMBER, AT(np), 1, DT_RANKS_MAX,
      "ranks to start (default: one per slot)" },
    { { "H", "hosts", "host" }, "HOSTS", LIST, AT(hosts), 0, 0,
      "hosts and slots: [user@]host[:slots],..." },
    { { "hostfile", "machinefile" }, "FILE", ONE_FILE, AT(hostfile), 0, 0,
      "hosts and slots, one per line (-: standard input)" },
    { { "npernode", "ppr" }, "COUNT", PER_NODE, AT(per_node), 1, DT_RANKS_MAX,
      "ranks on each host: a number, or one per gpu, cpu, auto" },
    { { "slots-per-host" }, "N", NUMBER, AT(slots_per_host), 1, DT_SLOTS_MAX,
      "slots of a host for which none are given (default: 1)" },
    { { "nnodes" }, "N", NUMBER, AT(nnodes), 1, DT_HOSTS_MAX,
      "use only the first N hosts" },
    { { "map-by" }, "slot|node", CHOICE, AT(job.map_by), 0, 0,
      "fill host after host (default), or one rank on each in turn" },
    { { "no-oversubscribe" }, NULL, FLAG, AT(job.no_oversubscribe), 0, 0,
      "refuse more ranks than slots" },
    { { "bind-to" }, "none|core|socket|numa|l3|hwthread", CHOICE, AT(job.bind_to), 0, 0,
      "CPUs a rank may use (default: all)" },
    { { "report-bindings" }, NULL, FLAG, AT(job.report_bindings), 0, 0,
      "each rank prints which CPUs it may use" },
    { { "wdir" }, "DIR", TEXT, AT(wdir), 0, 0,
      "working directory of the ranks (default: this one)" },
    { { "dry-run" }, NULL, FLAG, AT(dry_run), 0, 0,
      "print which rank would run where; connect to no host" },
    { { "display-map" }, NULL, FLAG, AT(display_map), 0, 0,
      "print which rank runs where, and start the job" },
    { { "check" }, NULL, FLAG, AT(check), 0, 0,
      "ask all hosts whether a job would start, and compare them" },
    { { "json" }, NULL, FLAG, AT(json), 0, 0,
      "with --dry-run or --check: print JSON" },
    { { "config" }, "FILE", ONE_FILE, AT(config), 0, 0,
      "options from FILE (default: ~/.config/dtrun/config)" },

    { .help = "Environment" },
    { { "x" }, "NAME[=VALUE]", ENV_SET, AT(env), 0, 0,
      "pass a variable on, or set it ('PREFIX*': several)" },
    { { "unset" }, "NAME", ENV_UNSET, AT(env), 0, 0,
      "remove a variable on every host" },
    { { "env" }, "horovod|tensorflow|mpi|mxnet", FRAMEWORKS, AT(job.frameworks), 0, 0,
      "also set these frameworks' variables (several: a,b)" },
    { { "num-servers" }, "N", NUMBER, AT(num_servers), 1, DT_RANKS_MAX,
      "with --env mxnet: N servers (default: one per rank)" },
    { { "gpu-bind" }, "rank|host|none", CHOICE, AT(job.gpu_bind), 0, 0,
      "GPUs a rank sees: one (default), the host's, or as is" },
    { { "virtual-local-rank" }, NULL, FLAG, AT(job.virtual_local_rank), 0, 0,
      "LOCAL_RANK is 0, to match the one GPU that a rank sees" },

    { .help = "Failures and checkpoints" },
    { { "max-restarts" }, "N", NUMBER, AT(job.max_restarts), 0, 1000000,
      "restart at most N times, even without a checkpoint" },
    { { "on-host-loss" }, "move|stop", CHOICE, AT(job.on_host_loss), 0, 0,
      "run its ranks on other hosts (default), or end the job" },
    { { "rejoin" }, "SECONDS", NUMBER, AT(job.rejoin_s), 0, SECONDS_MAX,
      "first wait until a lost host is tried again (60; 0: never)" },
    { { "checkpoint-dir" }, "DIR", TEXT, AT(checkpoint_dir), 0, 0,
      "where checkpoints go (default: ./checkpoints/JOB)" },
    { { "resume" }, NULL, FLAG, AT(job.resume), 0, 0,
      "continue from the newest checkpoint in DIR" },
    { { "fresh" }, NULL, FLAG, AT(job.fresh), 0, 0,
      "start afresh even if DIR holds checkpoints" },
    { { "timeout" }, "SECONDS", NUMBER, AT(job.timeout_s), 1, SECONDS_MAX,
      "stop the job after this time (exit code 124)" },
    { { "collective-timeout" }, "SECONDS", NUMBER, AT(job.collective_timeout_s), 0, DT_WAIT_MAX_S,
      "a rank is lost if others wait this long (600; 0: never)" },
    { { "exit-grace" }, "SECONDS", NUMBER, AT(job.exit_grace_s), 1, SECONDS_MAX,
      "stop the job this long after a rank has exited with 0" },
    { { "kill-grace" }, "SECONDS", NUMBER, AT(job.kill_grace_s), 0, DT_WAIT_MAX_S,
      "time between SIGTERM and SIGKILL (default: 5)" },
    { { "heartbeat" }, "SECONDS", NUMBER, AT(job.heartbeat_s), 1, SECONDS_MAX / 1000,
      "silence after which a host is lost (default: 10)" },
    { { "inject" }, "FAULT", FAULT, AT(job.inject), 0, 0,
      "cause a failure, as in kill:rank=1,step=50" },

    { .help = "Output" },
    { { "tag" }, NULL, FLAG, AT(tag), 0, 0,
      "put [rank] before every line, even with one rank" },
    { { "no-tag" }, NULL, FLAG, AT(no_tag), 0, 0,
      "do not put [rank] before every line" },
    { { "timestamp" }, NULL, FLAG, AT(timestamp), 0, 0,
      "put the time before every line" },
    { { "merge-stderr" }, NULL, FLAG, AT(job.merge_stderr), 0, 0,
      "send standard error of ranks to standard output" },
    { { "unbuffered" }, NULL, FLAG, AT(job.unbuffered), 0, 0,
      "ranks write to a terminal: each line at once" },
    { { "output-dir" }, "DIR", TEXT, AT(output_dir), 0, 0,
      "each rank's output to files in DIR (%r: rank, %h: host)" },
    { { "tee" }, NULL, FLAG, AT(tee), 0, 0,
      "with --output-dir: also show it as usual" },
    { { "stdin" }, "RANK", STDIN_RANK, AT(job.stdin_rank), 0, DT_RANKS_MAX - 1,
      "the rank that reads standard input (0), or all, or none" },
    { { "report" }, "FILE", TEXT, AT(report), 0, 0,
      "write a report of the job as JSON" },
    { { "verbose", "v" }, NULL, FLAG, AT(verbose), 0, 0,
      "print what is being done" },

    { .help = "Connections" },
    { { "transport" }, "auto|libssh2|ssh|local|srun", CHOICE, AT(transport), 0, 0,
      "how to reach hosts, local ones too (default: auto)" },
    { { "rsh" }, "COMMAND", TEXT, AT(rsh), 0, 0,
      "reach hosts with this command; %h: the host" },
    { { "ssh-accept-new" }, NULL, FLAG, AT(ssh_accept_new), 0, 0,
      "trust and remember keys of unknown hosts" },
    { { "ssh-user" }, "USER", USER, AT(ssh_user), 0, 0,
      "log in as this user" },
    { { "ssh-port" }, "PORT", NUMBER, AT(ssh_port), 1, 65535,
      "connect to this port" },
    { { "ssh-identity" }, "FILE", TEXT, AT(ssh_identity), 0, 0,
      "log in with this private key, too" },
    { { "fanout" }, "N", NUMBER, AT(job.fanout), 1, DT_HOSTS_MAX,
      "connect to at most N hosts at once (default: 64)" },
    { { "start-timeout" }, "SECONDS", NUMBER, AT(job.start_timeout_s), 1, SECONDS_MAX,
      "give up if not all ranks are ready by then" },
    { { "iface" }, "NETWORKS", IFACE, AT(job.iface), 0, 0,
      "networks between ranks: eth0,ib0 or 10.0.0.0/8" },
    { { "push" }, "PATH", LIST, AT(push), 0, 0,
      "send a file or directory to every host (the program, data)" },
    { { "keep" }, NULL, FLAG, AT(keep), 0, 0,
      "hosts keep pushed files for the next job with --keep" },
    { { "no-push" }, NULL, FLAG, AT(no_push), 0, 0,
      "send nothing: dtrun-agent must be on every host" },

    { .help = "Help" },
    { { "help", "h" }, NULL, FLAG, AT(help), 0, 0,
      "print this text" },
    { { "version" }, NULL, FLAG, AT(version), 0, 0,
      "print the version" },
    { { "check-build" }, NULL, FLAG, AT(check_build), 0, 0,
      "print the libraries that dtrun was built with" },
    { { "completion" }, "bash|zsh|fish", CHOICE, AT(completion), DT_SHELL_BASH, 0,
      "print a completion script for this shell" },
};
/* clang-format on */

static const size_t noptions = sizeof options / sizeof *options;

const char *dt_option_dashes(const char *name)
{
    return strlen(name) > 2 ? "--" : "-";
}

const struct dt_option *dt_option_find(const char *name, size_t n)
{
    for (size_t i = 0; i < noptions; i++)
        for (size_t k = 0; k < NAMES_MAX && options[i].names[k]; k++)
            if (dt_similar_same(options[i].names[k], name, n))
                return &options[i];
    return NULL;
}

static int set_text(char **at, const char *value, struct dt_error *err)
{
    if (!*value)
        return dt_error_usage(err, "a value was expected");
    free(*at);
    *at = dt_xstrdup(value);
    return 0;
}

static int set_one_file(char **at, const char *value, struct dt_error *err)
{
    if (*at && strcmp(*at, value) != 0)
        return dt_error_usage(err, "only one file is read, and %.200s was given before", *at);
    return set_text(at, value, err);
}

static int add_item(struct dt_strs *list, const char *value, struct dt_error *err)
{
    if (!*value)
        return dt_error_usage(err, "a value was expected");
    dt_xstrs_add(list, value);
    return 0;
}

static int add_rule(struct dt_strs *rules, char kind, const char *value, struct dt_error *err)
{
    char *rule = dt_xasprintf("%c:%s", kind, value);
    int rc = dt_env_check_rule(rule, err);

    if (rc == 0)
        dt_xstrs_add(rules, rule);
    free(rule);
    return rc;
}

static int add_fault(struct dt_strs *faults, const char *value, struct dt_error *err)
{
    struct dt_inject parsed;

    if (dt_inject_parse(&parsed, value, err) < 0)
        return -1;
    dt_xstrs_add(faults, value);
    return 0;
}

/* Writes "a, b or c was expected" for "a|b|c". */
static int refuse_choice(const char *words, struct dt_error *err)
{
    struct dt_strbuf b = { 0 };

    for (const char *bar; (bar = strchr(words, '|')); words = bar + 1)
        dt_strbuf_printf(&b, "%.*s%s", (int)(bar - words), words,
                         strchr(bar + 1, '|') ? ", " : " or ");
    dt_error_usage(err, "%s%s was expected", dt_strbuf_text(&b), words);
    dt_strbuf_free(&b);
    return -1;
}

/* On this platform every enum is as large as an unsigned int. */
static int set_choice(unsigned *at, const struct dt_option *option, const char *value,
                      struct dt_error *err)
{
    const char *word = option->value;

    for (unsigned i = (unsigned)option->min; *word; i++) {
        size_t n = strcspn(word, "|");

        if (strlen(value) == n && memcmp(word, value, n) == 0) {
            *at = i;
            return 0;
        }
        word += word[n] ? n + 1 : n;
    }
    return refuse_choice(option->value, err);
}

static int set_stdin_rank(int *rank, const struct dt_option *option, const char *value,
                          struct dt_error *err)
{
    if (strcmp(value, "all") == 0)
        *rank = DT_STDIN_ALL;
    else if (strcmp(value, "none") == 0)
        *rank = DT_STDIN_NONE;
    else
        return dt_number_parse(value, option->min, option->max, rank, err);
    return 0;
}

static int set_per_node(int *count, const struct dt_option *option, const char *value,
                        struct dt_error *err)
{
    if (strcmp(value, "gpu") == 0)
        *count = DT_PER_NODE_GPU;
    else if (strcmp(value, "cpu") == 0)
        *count = DT_PER_NODE_CPU;
    else if (strcmp(value, "auto") == 0)
        *count = DT_PER_NODE_AUTO;
    else if (strspn(value, "+-0123456789.") > 0)
        return dt_number_parse(value, option->min, option->max, count, err);
    else
        return dt_error_usage(err, "a number, gpu, cpu or auto was expected");
    return 0;
}

/* word is the option as the user wrote it, n bytes, for messages. Messages about environment rules
 * and faults already name the option. */
static int set(struct dt_options *o, const struct dt_option *option, const char *word, size_t n,
               const char *value, struct dt_error *err)
{
    void *at = (char *)o + option->offset;
    int rc = 0;

    switch (option->kind) {
    case FLAG:
        *(bool *)at = !value || strcmp(value, "no") != 0;
        break;
    case NUMBER:
        rc = dt_number_parse(value, option->min, option->max, at, err);
        break;
    case PER_NODE:
        rc = set_per_node(at, option, value, err);
        break;
    case TEXT:
        rc = set_text(at, value, err);
        break;
    case ONE_FILE:
        rc = set_one_file(at, value, err);
        break;
    case USER:
        rc = dt_hostword_check_user(value, err) < 0 ? -1 : set_text(at, value, err);
        break;
    case IFACE:
        rc = dt_iface_check(value, err) < 0 ? -1 : set_text(at, value, err);
        break;
    case LIST:
        rc = add_item(at, value, err);
        break;
    case ENV_SET:
        return add_rule(at, 'x', value, err);
    case ENV_UNSET:
        return add_rule(at, 'u', value, err);
    case FAULT:
        return add_fault(at, value, err);
    case FRAMEWORKS:
        rc = dt_frameworks_parse(at, value, err);
        break;
    case CHOICE:
        rc = set_choice(at, option, value, err);
        break;
    case STDIN_RANK:
        rc = set_stdin_rank(at, option, value, err);
        break;
    }
    return rc < 0 ? dt_error_prefix(err, "%.*s %.200s: ", (int)n, word, value) : 0;
}

/* An option on the command line overrides the same option of the file. It may also override another
 * option of the file. */
static const struct {
    size_t on_command_line;
    size_t in_file;
} overrides[] = {
    { AT(hostfile), AT(hosts) },       { AT(job.resume), AT(job.fresh) },
    { AT(job.fresh), AT(job.resume) }, { AT(push), AT(no_push) },
    { AT(no_push), AT(push) },         { AT(tag), AT(no_tag) },
    { AT(no_tag), AT(tag) },
};

static bool is_text(const struct dt_option *option)
{
    return option->kind == TEXT || option->kind == ONE_FILE || option->kind == USER ||
           option->kind == IFACE;
}

static bool *from_file(struct dt_options *o, const struct dt_option *option)
{
    _Static_assert(sizeof options / sizeof *options <= DT_OPTIONS_MAX, "each has its own entry");
    return &o->from_file[option - options];
}

/* Rules for the environment are kept: those of the command line apply after them. */
static void drop_file_value(struct dt_options *o, const struct dt_option *option)
{
    void *at = (char *)o + option->offset;

    if (!*from_file(o, option))
        return;
    *from_file(o, option) = false;
    if (option->kind == FLAG) {
        *(bool *)at = false;
    } else if (is_text(option)) {
        free(*(char **)at);
        *(char **)at = NULL;
    } else if (option->kind == LIST || option->kind == FAULT) {
        dt_strs_free(at);
    } else if (option->kind == FRAMEWORKS) {
        *(unsigned *)at = 0;
    }
}

static void win_over_file(struct dt_options *o, const struct dt_option *option)
{
    drop_file_value(o, option);
    for (size_t i = 0; i < sizeof overrides / sizeof *overrides; i++)
        for (size_t k = 0; overrides[i].on_command_line == option->offset && k < noptions; k++)
            if (options[k].names[0] && options[k].offset == overrides[i].in_file)
                drop_file_value(o, &options[k]);
}

const char *dt_option_value(const struct dt_option *option)
{
    return option->value;
}

int dt_option_take(struct dt_options *o, const struct dt_option *option, const char *word, size_t n,
                   const char *value, struct dt_error *err)
{
    win_over_file(o, option);
    return set(o, option, word, n, value, err);
}

static int check_hosts(const char *value, struct dt_error *err)
{
    struct dt_hostlist parsed = { 0 };
    int rc = dt_hostarg_parse(&parsed, value, err);

    dt_hostlist_free(&parsed);
    return rc;
}

int dt_options_set(struct dt_options *o, const char *name, const char *value, struct dt_error *err)
{
    const struct dt_option *option = dt_option_find(name, strlen(name));

    if (!option)
        return dt_error_usage(err, "%.200s is not an option; see dtrun --help", name);
    if (option->offset == AT(help) || option->offset == AT(version) ||
        option->offset == AT(completion) || option->offset == AT(check_build) ||
        option->offset == AT(config))
        return dt_error_usage(err, "%s belongs on the command line", name);
    /* The hosts are parsed later, when nothing knows the line of the file any more. */
    if (option->offset == AT(hosts) && *value && check_hosts(value, err) < 0)
        return -1;
    *from_file(o, option) = true;
    if (option->kind == FLAG && strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return dt_error_usage(err, "%s %.200s: yes or no was expected", name, value);
    return set(o, option, name, strlen(name), value, err);
}

bool dt_options_ask_for_text(const struct dt_options *o)
{
    return o->help || o->version || o->check_build || o->completion != DT_SHELL_NONE;
}

static bool is_mask(const char *name, size_t n)
{
    static const char mask[] = "CUDA_VISIBLE_DEVICES";

    return n == strlen(mask) && memcmp(name, mask, n) == 0;
}

/* The user cannot set a variable that --env or --gpu-bind sets for every rank. */
static int check_rules(const struct dt_options *o, struct dt_error *err)
{
    for (uint32_t i = 0; i < o->env.n; i++) {
        const char *option = o->env.v[i][0] == 'u' ? "--unset" : "-x", *name = o->env.v[i] + 2;
        size_t n = strcspn(name, "=");
        const char *owner = dt_frameworks_owner(o->job.frameworks, name, n);

        if (owner)
            return dt_error_usage(err, "%s %.*s: --env %s sets it for every rank", option, (int)n,
                                  name, owner);
        if (o->job.gpu_bind != DT_GPU_BIND_NONE && is_mask(name, n))
            return dt_error_usage(err,
                                  "%s %.*s: dtrun sets it for every rank; gpus= in a hostfile "
                                  "decides which devices a host's ranks share, and --gpu-bind "
                                  "which of them a rank sees; with --gpu-bind none, %s decides",
                                  option, (int)n, name, option);
    }
    return 0;
}

int dt_options_check(const struct dt_options *o, struct dt_error *err)
{
    if (o->job.resume && o->job.fresh)
        return dt_error_usage(err, "--resume and --fresh contradict each other");
    if (o->job.resume && !o->checkpoint_dir)
        return dt_error_usage(err,
                              "--resume needs --checkpoint-dir DIR: without it every job has a "
                              "directory of its own");
    if (o->push.n && o->no_push)
        return dt_error_usage(err, "--push and --no-push contradict each other");
    if (o->rsh && o->transport != DT_TRANSPORT_AUTO)
        return dt_error_usage(err, "--rsh and --transport contradict each other");
    if (o->keep && !o->push.n)
        return dt_error_usage(err, "--keep belongs to --push PATH");
    if (o->tag && o->no_tag)
        return dt_error_usage(err, "--tag and --no-tag contradict each other");
    if (o->output_dir && dt_outname_check(o->output_dir, err) < 0)
        return -1;
    if (o->tee && !o->output_dir)
        return dt_error_usage(err, "--tee belongs to --output-dir DIR");
    if (o->job.virtual_local_rank && o->job.gpu_bind == DT_GPU_BIND_HOST)
        return dt_error_usage(err,
                              "--virtual-local-rank and --gpu-bind host contradict each other: all "
                              "ranks of a host would take its first GPU");
    if (o->check && o->dry_run)
        return dt_error_usage(err, "--check connects to the hosts, and --dry-run to none: "
                                   "give one of them");
    if (o->json && !o->dry_run && !o->check)
        return dt_error_usage(err,
                              "--json belongs to --dry-run or --check; for what happened in a run, "
                              "see --report FILE");
    if (o->num_servers && !dt_frameworks_have_auxiliaries(o->job.frameworks))
        return dt_error_usage(err, "--num-servers belongs to --env mxnet");
    if (check_rules(o, err) < 0)
        return -1;
    if (!o->job.argv.n && !o->check)
        return dt_error_usage(err,
                              "no program was given; usage: dtrun [options] PROGRAM [ARGS...], "
                              "see dtrun --help");
    return o->job.argv.n ? dt_programword_check(o->job.argv.v[0], o->wdir, err) : 0;
}

void dt_options_init(struct dt_options *o)
{
    *o = (struct dt_options){
        .job = {
            .max_restarts = -1,
            .collective_timeout_s = -1,
            .rejoin_s = 60,
            .heartbeat_s = 10,
            .kill_grace_s = 5,
            .fanout = 64,
        },
    };
}

bool dt_options_text(size_t i, struct dt_option_text *text)
{
    for (size_t k = 0; k < noptions; k++) {
        const struct dt_option *o = &options[k];

        if (!o->names[0] || i-- > 0)
            continue;
        *text = (struct dt_option_text){ .names = o->names, .value = o->value, .help = o->help };
        while (text->nnames < NAMES_MAX && o->names[text->nnames])
            text->nnames++;
        return true;
    }
    return false;
}

static void print_option(const struct dt_option *option)
{
    char left[80] = "  ";
    size_t used = 2;

    for (size_t k = 0; k < NAMES_MAX && option->names[k]; k++)
        used += (size_t)snprintf(left + used, sizeof left - used, "%s%s%s", k ? ", " : "",
                                 dt_option_dashes(option->names[k]), option->names[k]);
    if (option->value)
        snprintf(left + used, sizeof left - used, " %s", option->value);
    if (strlen(left) > 28)
        printf("%s\n%30s%s\n", left, "", option->help);
    else
        printf("%-30s%s\n", left, option->help);
}

void dt_options_print_help(void)
{
    printf("usage: dtrun [options] PROGRAM [ARGS...]\n"
           "\n"
           "Starts PROGRAM as the ranks of one job on many hosts over SSH, watches them, relays "
           "their\n"
           "output, and restarts them from the newest checkpoint when one fails.\n");
    for (size_t i = 0; i < noptions; i++) {
        if (options[i].names[0])
            print_option(&options[i]);
        else
            printf("\n%s:\n", options[i].help);
    }
    printf("\n"
           "Options end at PROGRAM or at --. Long options take one dash or two, and their value "
           "after\n"
           "a blank or after =. Example: dtrun -np 16 -H host1:4,host2:4 ./train\n"
           "See dtrun(1), dtrun-hostfile(5); for options of other launchers, dtrun-migrate(7).\n");
}

void dt_options_free(struct dt_options *o)
{
    for (size_t i = 0; i < noptions; i++) {
        void *at = (char *)o + options[i].offset;

        if (!options[i].names[0])
            continue;
        if (is_text(&options[i]))
            free(*(char **)at);
        else if (options[i].kind == LIST || options[i].kind == ENV_SET || options[i].kind == FAULT)
            dt_strs_free(at);
    }
    dt_strs_free(&o->job.argv);
    dt_strs_free(&o->notes);
    *o = (struct dt_options){ 0 };
}
