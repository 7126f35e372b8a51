/* What the user asked for: argv to struct dt_options, from one table that also prints --help. */
#ifndef DT_CMD_OPTIONS_H
#define DT_CMD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/error.h"
#include "launcher/job/state/restart.h"
#include "launcher/place/bind.h"
#include "launcher/place/gpu.h"
#include "launcher/place/plan.h"
#include "runtime/wire/codec.h"

enum {
    DT_FANOUT = 64,
    DT_WAIT_MAX_S = 1000 * 1000 /* of what is told to agents: as milliseconds it fits 32 bits */
};

enum dt_transport_choice {
    DT_TRANSPORT_AUTO,
    DT_TRANSPORT_LIBSSH2,
    DT_TRANSPORT_SSH,
    DT_TRANSPORT_LOCAL,
    DT_TRANSPORT_SRUN
};
enum dt_shell { DT_SHELL_NONE, DT_SHELL_BASH, DT_SHELL_ZSH, DT_SHELL_FISH };
/* --npernode: instead of a number, as many ranks as a host has of these */
enum { DT_PER_NODE_GPU = -1, DT_PER_NODE_CPU = -2, DT_PER_NODE_AUTO = -3 };
enum { DT_OPTIONS_MAX = 96 };

struct dt_options {
    int np;             /* 0: not given */
    int per_node;       /* 0: not given; or a DT_PER_NODE_ constant */
    int slots_per_host; /* 0: not given */
    int nnodes;         /* 0: not given */
    enum dt_map_by map_by;
    struct dt_strs hosts; /* each -H LIST */
    char *hostfile;       /* or NULL; "-": standard input */
    struct dt_strs env;   /* -x and --unset in order: "x:NAME", "x:NAME=VALUE", "u:NAME" */
    unsigned frameworks;  /* --env: set of enum dt_framework */
    int num_servers;      /* with --env mxnet; 0: not given */
    enum dt_gpu_bind gpu_bind;
    enum dt_bind_to bind_to;
    bool virtual_local_rank;
    char *wdir; /* or NULL: the launching directory */
    bool dry_run;
    bool display_map;
    bool report_bindings;
    bool check;
    bool json;
    char *report;     /* or NULL */
    int max_restarts; /* -1: not given */
    enum dt_host_loss on_host_loss;
    char *checkpoint_dir; /* or NULL: ./checkpoints/JOB */
    bool resume;
    bool fresh;
    struct dt_strs inject;
    bool tag;
    bool no_tag;
    bool timestamp;
    bool merge_stderr;
    char *output_dir; /* or NULL */
    bool tee;
    int stdin_rank; /* or DT_STDIN_ALL, DT_STDIN_NONE */
    bool no_oversubscribe;
    enum dt_transport_choice transport;
    char *rsh; /* or NULL */
    bool ssh_accept_new;
    int ssh_port;        /* 0: not given; this and the next hold where a host has none of its own */
    char *ssh_user;      /* or NULL */
    char *ssh_identity;  /* or NULL */
    int fanout;          /* default DT_FANOUT */
    int start_timeout_s; /* 0: none */
    bool no_push;
    char *iface;         /* or NULL */
    struct dt_strs push; /* --push PATH */
    bool keep;
    int heartbeat_s;          /* default 10 */
    int kill_grace_s;         /* default 5 */
    int timeout_s;            /* 0: none */
    int exit_grace_s;         /* 0: not given */
    int collective_timeout_s; /* -1: not given */
    bool verbose;
    bool help;
    bool version;
    bool check_build;
    enum dt_shell completion;       /* whose script to print */
    char *config;                   /* or NULL: the user's own configuration file */
    struct dt_strs command;         /* the program and its arguments */
    struct dt_strs notes;           /* what to tell the user before the job starts */
    bool from_file[DT_OPTIONS_MAX]; /* by option: is its value a file's? options.c's own */
};

void dt_options_init(struct dt_options *o); /* the defaults */
/* Sets an option of a configuration file, by its name without dashes; "yes" or "no" for one that
 * takes no value. This, _words and _check fail with exit code 2; err tells why. */
int dt_options_set(struct dt_options *o, const char *name, const char *value, struct dt_error *err);
/* Takes argv (argv[0] is skipped), whose options win over those of _set. */
int dt_options_words(struct dt_options *o, int argc, char **argv, struct dt_error *err);
/* Whether the user asked for a text of dtrun's and not for a job. */
bool dt_options_ask_for_text(const struct dt_options *o);
/* What contradicts each other, or lacks another. */
int dt_options_check(const struct dt_options *o, struct dt_error *err);
void dt_options_print_help(void); /* standard output */

struct dt_option_text {       /* what users are told of an option */
    const char *const *names; /* without dashes; those of several letters take one dash or two */
    size_t nnames;
    const char *value; /* what its value is called, "a|b" when it is one of these; NULL: no value */
    const char *help;
};

/* The i-th option; false beyond the last. */
bool dt_options_text(size_t i, struct dt_option_text *text);
void dt_options_free(struct dt_options *o);

#endif
