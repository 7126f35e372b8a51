/* A byte stream to a dtrun-agent on some host. What carries it may be a forked agent (local),
 * libssh2, or a command such as OpenSSH's ssh. All transports run on one libuv loop and never
 * block. The other side speaks first. write puts everything into an outbox; the caller bounds it by
 * watching pending(). */
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
    /* Bytes of the command's standard output. */
    void (*data)(void *arg, const void *data, size_t n);
    /* Bytes of its standard error: noise of start-up files, "command not found". */
    void (*noise)(void *arg, const void *data, size_t n);
    /* The outbox has been sent completely. */
    void (*drained)(void *arg);
    /* The last event, exactly once, also after close(). why->text is "phase: reason; remedy", as in
     * "authenticate as anna: none of the 2 keys was accepted (...); try: ssh-copy-id host3". It is
     * empty if the stream ended normally. */
    void (*closed)(void *arg, const struct dt_error *why);
};

struct dt_remote { /* everything that a transport needs to know; outlives the transport */
    const struct dt_host *host;
    const char *command;             /* to run on the host (every transport except local) */
    const char *agent_path;          /* the local dtrun-agent file, to execute or to send */
    bool alone;                      /* the job has no other host */
    bool accept_new;                 /* --ssh-accept-new */
    const struct dt_strs *rsh;       /* the words of --rsh (rshcommand.h), for the rsh transport */
    const struct dt_sshlogin *login; /* NULL: the SSH transports find it themselves */
};

struct dt_transport_ops {
    const char *name;
    /* Starts connecting. A failure is always reported later, through closed(). */
    struct dt_transport *(*open)(uv_loop_t *loop, const struct dt_remote *remote,
                                 const struct dt_transport_events *events, void *arg);
    /* Not before data(): until then the transport may have to connect again. */
    void (*write)(struct dt_transport *t, const void *data, size_t n);
    /* Until the agent has answered: the current step, as in "resolve" or "agent start". */
    const char *(*phase)(const struct dt_transport *t);
    size_t (*pending)(const struct dt_transport *t); /* bytes in the outbox */
    void (*close)(struct dt_transport *t);           /* ends now; frees t after closed() */
    /* The agent has answered: from now on the caller watches whether the host is silent. Until then
     * the transport does. NULL: the transport does not watch. */
    void (*greeted)(struct dt_transport *t);
    /* Returns what carries the bytes if that is chosen after open; until then, the transport's own
     * name. May be called until closed() returns. NULL: it is always the transport's own name. */
    const char *(*carrier)(const struct dt_transport *t);
    /* May be called until closed() returns. Whether the server closed the connection before anybody
     * could log in. A server does so to some of many clients that come at once (MaxStartups), and
     * may accept a later attempt. NULL: it is not known. */
    bool (*turned_away)(const struct dt_transport *t);
};

/* Runs the agent on this machine. If the host has another name, the agent pretends to be that host:
 * it reports the name as its identity. */
extern const struct dt_transport_ops dti_transport_local;
/* Over SSH. auto asks `ssh -G` for the user's settings and uses libssh2 if it can do everything
 * that these and the keys require, else ssh. --transport forces one of the other two. */
extern const struct dt_transport_ops dti_transport_auto;
extern const struct dt_transport_ops dti_transport_libssh2;
extern const struct dt_transport_ops dti_transport_ssh;

/* rsh uses the command of --rsh, srun uses Slurm's srun, which needs a node of the allocation. */
extern const struct dt_transport_ops dti_transport_rsh;
extern const struct dt_transport_ops dti_transport_srun;

/* What carries the bytes for the three SSH transports above; they need remote->login. */
extern const struct dt_transport_ops dti_carrier_libssh2;
extern const struct dt_transport_ops dti_carrier_ssh;

#endif
