/* What the user asked for: argv to struct dt_options, from one table that also prints --help. */
#ifndef DT_CMD_OPTIONS_H
#define DT_CMD_OPTIONS_H

#include <stdbool.h>

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"

enum dt_transport_choice { DT_TRANSPORT_AUTO, DT_TRANSPORT_LIBSSH2, DT_TRANSPORT_SSH };

struct dt_options {
    int np;               /* 0: not given */
    int per_node;         /* 0: not given */
    struct dt_strs hosts; /* each -H LIST */
    char *hostfile;       /* or NULL; "-": standard input */
    struct dt_strs env;   /* -x and --unset in order: "x:NAME", "x:NAME=VALUE", "u:NAME" */
    char *wdir;           /* or NULL: the launching directory */
    bool dry_run;
    bool json;
    char *report;         /* or NULL */
    int max_restarts;     /* -1: not given */
    char *checkpoint_dir; /* or NULL: ./checkpoints/JOB */
    bool resume;
    bool fresh;
    struct dt_strs inject;
    bool tag;
    bool no_tag;
    bool timestamp;
    bool merge_stderr;
    bool no_oversubscribe;
    enum dt_transport_choice transport;
    bool ssh_accept_new;
    bool no_push;
    struct dt_strs push; /* --push FILE */
    int heartbeat_s;     /* default 10 */
    int kill_grace_s;    /* default 5 */
    int timeout_s;       /* 0: none */
    bool verbose;
    bool help;
    bool version;
    struct dt_strs command; /* the program and its arguments */
};

/* Fills o from argv (argv[0] is skipped). On failure err tells why and exit_code is 2. */
int dt_options_parse(struct dt_options *o, int argc, char **argv, struct dt_error *err);
void dt_options_print_help(void); /* standard output */
void dt_options_free(struct dt_options *o);

#endif
