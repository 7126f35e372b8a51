/* A byte stream to a dtrun-agent on some host, whatever carries it: a forked agent (local),
 * libssh2, or OpenSSH's ssh. All of it runs on one libuv loop and never blocks; everything handed
 * to write is accepted into an outbox, and the caller watches pending() to bound it. */
#ifndef DT_REMOTE_TRANSPORT_H
#define DT_REMOTE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "launcher/base/error.h"
#include "launcher/hosts/hostlist.h"

struct dt_transport;
struct dt_sshlogin;

struct dt_transport_events {
    /* The remote command runs (or the agent was forked). */
    void (*up)(void *arg);
    /* Bytes of the command's standard output. */
    void (*data)(void *arg, const void *data, size_t n);
    /* Bytes of its standard error: start-up noise, "command not found". */
    void (*noise)(void *arg, const void *data, size_t n);
    /* The outbox has been sent completely. */
    void (*drained)(void *arg);
    /* The last event, exactly once, also after close(). why->text is "phase: reason; remedy" as in
     * "authenticate as anna: none of the 2 keys was accepted (...); try: ssh-copy-id host3",
     * or empty when the stream ended in order. */
    void (*closed)(void *arg, const struct dt_error *why);
};

struct dt_remote { /* everything a transport needs to know; outlives the transport */
    const struct dt_host *host;
    const char *command;             /* for the login shell of the remote user (ssh transports) */
    const char *agent_path;          /* to execute directly (local transport) */
    bool alone;                      /* likewise: the job has no other host */
    bool accept_new;                 /* --ssh-accept-new */
    const struct dt_strs *rsh;       /* the words of --rsh (rshcommand.h), for that transport */
    const struct dt_sshlogin *login; /* NULL: the SSH transports find it out themselves */
};

struct dt_transport_ops {
    const char *name;
    /* Starts connecting. Never fails at once: failures arrive through closed(). */
    struct dt_transport *(*open)(uv_loop_t *loop, const struct dt_remote *remote,
                                 const struct dt_transport_events *events, void *arg);
    void (*write)(struct dt_transport *t, const void *data, size_t n);
    /* Until up(): what is being done, as "resolve" or "authenticate". */
    const char *(*phase)(const struct dt_transport *t);
    size_t (*pending)(const struct dt_transport *t); /* bytes in the outbox */
    void (*pause)(struct dt_transport *t, bool on);  /* stop, or resume, delivering data */
    void (*close)(struct dt_transport *t);           /* end now; frees t after closed() */
    /* The agent has spoken: from now on the caller watches whether the host is silent, which until
     * then is the transport's to notice. NULL: it does not. */
    void (*greeted)(struct dt_transport *t);
    /* The name of what carries the bytes, where that is chosen after open (until then: our own
     * name); may be called until closed() returns. NULL: it is name itself. */
    const char *(*carrier)(const struct dt_transport *t);
};

/* A host of another name is played by this machine, with an agent that says it is that host. */
extern const struct dt_transport_ops dti_transport_local;
/* Over SSH. auto asks `ssh -G` for the user's settings and takes libssh2 where libssh2 can do what
 * they and the keys demand, else ssh; the others are what --transport forces. */
extern const struct dt_transport_ops dti_transport_auto;
extern const struct dt_transport_ops dti_transport_libssh2;
extern const struct dt_transport_ops dti_transport_ssh;

/* By the command of --rsh, and by Slurm's srun, which needs a node of the allocation. */
extern const struct dt_transport_ops dti_transport_rsh;
extern const struct dt_transport_ops dti_transport_srun;

/* What carries the bytes for the three above; they need remote->login. */
extern const struct dt_transport_ops dti_stream_libssh2;
extern const struct dt_transport_ops dti_stream_ssh;

#endif
