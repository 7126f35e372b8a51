/* What the user asked for, and the table of options that set it. The table also prints --help. */
#ifndef DT_CMD_OPTIONS_H
#define DT_CMD_OPTIONS_H

#include <stdbool.h>

#include "launcher/base/error.h"
#include "launcher/job/config.h"
#include "runtime/wire/codec.h"

enum {
    DT_WAIT_MAX_S = 1000 * 1000, /* for times that agents receive in milliseconds, in 32 bits */
};

enum dt_transport_choice {
    DT_TRANSPORT_AUTO,
    DT_TRANSPORT_LIBSSH2,
    DT_TRANSPORT_SSH,
    DT_TRANSPORT_LOCAL,
    DT_TRANSPORT_SRUN
};
enum dt_shell { DT_SHELL_NONE, DT_SHELL_BASH, DT_SHELL_ZSH, DT_SHELL_FISH };
/* --npernode with a word instead of a number: as many ranks as the host has of these */
enum { DT_PER_NODE_GPU = -1, DT_PER_NODE_CPU = -2, DT_PER_NODE_AUTO = -3 };
enum { DT_OPTIONS_MAX = 96 };

struct dt_options {
    /* What the engine of a job is given. Options set its members directly. Members that follow from
     * several options (config.h) stay zero. */
    struct dt_job_config job;
    int np;               /* 0: not given */
    int per_node;         /* 0: not given; or a DT_PER_NODE_ constant */
    int slots_per_host;   /* 0: not given */
    int nnodes;           /* 0: not given */
    struct dt_strs hosts; /* each -H LIST */
    char *hostfile;       /* or NULL; "-": standard input */
    struct dt_strs env;   /* -x and --unset, in order: "x:NAME", "x:NAME=VALUE", "u:NAME" */
    int num_servers;      /* of --env mxnet; 0: not given */
    char *wdir;           /* NULL: the launching directory */
    bool dry_run;
    bool display_map;
    bool check;
    bool json;
    char *report;         /* or NULL */
    char *checkpoint_dir; /* or NULL: ./checkpoints/JOB */
    bool tag;
    bool no_tag;
    bool timestamp;
    char *output_dir; /* or NULL */
    bool tee;
    enum dt_transport_choice transport;
    char *rsh; /* or NULL */
    bool ssh_accept_new;
    int ssh_port;       /* 0: not given; like the next, for hosts without one of their own */
    char *ssh_user;     /* or NULL */
    char *ssh_identity; /* or NULL */
    bool no_push;
    struct dt_strs push; /* the paths of --push */
    bool keep;
    bool verbose;
    bool help;
    bool version;
    bool check_build;
    enum dt_shell completion;       /* the shell whose script to print */
    char *config;                   /* NULL: the user's own configuration file */
    struct dt_strs notes;           /* messages for the user before the job starts */
    bool from_file[DT_OPTIONS_MAX]; /* by row of the table: the file gave this option */
};

void dt_options_init(struct dt_options *o); /* sets the defaults */
/* Sets an option of a configuration file, by its name without dashes. The value of a flag is "yes"
 * or "no". This function, dt_option_take and dt_options_check fail with exit code 2, and err says
 * why. */
int dt_options_set(struct dt_options *o, const char *name, const char *value, struct dt_error *err);

struct dt_option; /* a row of the table */

/* name has n bytes, without dashes. Returns NULL if there is no such option. */
const struct dt_option *dt_option_find(const char *name, size_t n);
/* Returns the name of the option's value, as in --help; NULL: it takes none. */
const char *dt_option_value(const struct dt_option *option);
/* Returns the dashes that --help prints before the name: one for short names, as is usual. */
const char *dt_option_dashes(const char *name);
/* Sets the option, which wins over the configuration file. word is what the user wrote, n bytes,
 * for messages. The value of a flag is NULL, or "no" to undo it. */
int dt_option_take(struct dt_options *o, const struct dt_option *option, const char *word, size_t n,
                   const char *value, struct dt_error *err);
/* Returns whether the user asked for a text of dtrun's, such as --help, and not for a job. */
bool dt_options_ask_for_text(const struct dt_options *o);
/* Checks for options that contradict each other, or need another one. */
int dt_options_check(const struct dt_options *o, struct dt_error *err);
void dt_options_print_help(void); /* to standard output */

struct dt_option_text {       /* what users are told about an option */
    const char *const *names; /* without dashes; long names take one dash or two */
    size_t nnames;
    const char *value; /* the name of its value, or "a|b" for a choice; NULL: no value */
    const char *help;
};

/* Fills text with the i-th option. Returns false beyond the last. */
bool dt_options_text(size_t i, struct dt_option_text *text);
void dt_options_free(struct dt_options *o);

#endif
