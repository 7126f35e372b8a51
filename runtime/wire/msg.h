/* The messages between launcher and agent as C structures. PROTOCOL.md says when each is sent.
 * msg.c has the wire layout in a table for each message: its fields in order, without padding.
 *
 * dt_msg_decode fills in a zeroed structure that owns its strings and lists (dt_msg_free frees
 * them). Only BLOB fields point into the input. */
#ifndef DT_WIRE_MSG_H
#define DT_WIRE_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/codec.h"

enum {
    /* Launcher and agent must have the same number. A release that changes a message increments it.
     * Before the first release, messages change without that. */
    DT_PROTOCOL = 1,
    DT_SECRET_BYTES = 32,
    /* Bytes that an agent may send of one stream, and the launcher of standard input, before CREDIT
     * arrives. */
    DT_STREAM_CREDIT = 256 * 1024,
    DT_STDIN_CREDIT = 64 * 1024,
    DT_RANKS_MAX = 1000000,
    DT_STDIN_NONE = -1, /* no rank reads standard input */
    DT_STDIN_ALL = -2,  /* each rank reads all of it */
    DT_FREE_PORTS = 64,
    DT_PORT_MASTER = 0,     /* of the free ports: MASTER_PORT, on rank 0's host */
    DT_PORT_SCHEDULER = 1,  /* of --env mxnet, on the same host */
    DT_PORT_RAS = 2,        /* of each host: NCCL_RAS_ADDR */
    DT_PORT_TENSORFLOW = 3, /* from here on: one for each local rank */
    DT_PORT_MASTERS = 48,   /* to the last one: MASTER_PORT of restarted ranks; not TensorFlow's */
};

/* Each row: the type's name after DT_MSG_, the number in the frame, and the structure's name after
 * dt_msg_. msg.c has the fields. */
/* clang-format off */
#define DT_MSGS(ROW)                                                                               \
    /* launcher to agent */                                                                        \
    ROW(START, 1, start)                /* fork these ranks and auxiliaries */                     \
    ROW(TABLE, 2, table)                /* where every rank listens; completes dt_init */          \
    ROW(SIGNAL, 3, signal)              /* send a signal to every rank's process group */          \
    ROW(STOP, 4, stop)                  /* to all ranks: SIGCONT, SIGTERM, then SIGKILL */     \
    ROW(ABORT, 5, abort)                /* a rank died or failed: fail every waiting call */       \
    ROW(PING, 6, ping)                  /* renews the lease */                                     \
    ROW(QUERY, 7, query)                /* report every death you have seen, then ANSWER */        \
    ROW(CREDIT, 8, credit)              /* this much of a stream has been written */         \
    ROW(END, 9, end)                    /* the conversation is over: sweep and exit */               \
    ROW(GO, 11, go)                     /* every host is READY: run the program */                 \
    ROW(PROBE, 17, probe)               /* connect to the agents of these hosts */                 \
    ROW(CHECK, 16, check)               /* --check: describe this host */                          \
    ROW(FENCED, 18, fenced)             /* MPI: all hosts have sent FENCE; these are their data */ \
    ROW(STDIN, 0x80, stdin)             /* standard input for the ranks here that read it */       \
    ROW(STDIN_EOF, 0x81, stdin_eof)     /* it has ended */                                         \
    ROW(FILE_DATA, 0x82, file_data)     /* a chunk of the file */                                   \
    ROW(FILE, 0x83, file)               /* a pushed file begins; its FILE_DATA follow */           \
    /* agent to launcher */                                                                        \
    ROW(HELLO, 32, hello)               /* first: who and what this host is */                     \
    ROW(FAILED, 45, failed)             /* a rank's call has failed, and all others must fail */  \
    ROW(TRIGGERED, 44, triggered)       /* an injected fault is about to happen */                            \
    ROW(READY, 43, ready)               /* this host's ranks have found the program and wait for GO */   \
    ROW(REACH, 49, reach)               /* answer to PROBE: which hosts can be reached, and at which address */     \
    ROW(STARTED, 33, started)           /* all ranks of this host run (exec succeeded) */          \
    ROW(SPAWN_FAILED, 34, spawn_failed) /* a rank could not be started; none of this host runs */  \
    ROW(RANK_HELLO, 35, rank_hello)     /* a linked rank called dt_init and listens here */        \
    ROW(EXIT, 36, exit)                 /* a rank ended; may arrive before the end of its output */                \
    ROW(PONG, 37, pong)                 /* answer to PING: every rank's step, and which ranks wait */     \
    ROW(LIMIT, 46, limit)               /* a rank's calls may wait no longer than this */             \
    ROW(LAST_CALLS, 47, last_calls)     /* the last calls of a rank whose call has failed for good */          \
    ROW(COMMIT, 38, commit)             /* rank 0 committed, restored, or begins to restore */     \
    ROW(ANSWER, 39, answer)             /* all EXITs before the QUERY have been sent */             \
    ROW(LOG, 40, log)                   /* a text for the user */                                  \
    ROW(STDIN_CREDIT, 41, stdin_credit) /* every rank that reads it has read this much */   \
    ROW(FILE_DONE, 42, file_done)       /* a pushed file is complete, or why not */                \
    ROW(FACTS, 48, facts)               /* answer to CHECK */                                      \
    ROW(SIGNALLED, 53, signalled)       /* the agent received a signal, which is meant for the job */   \
    ROW(FENCE, 52, fence)               /* MPI: all ranks of this host are in a barrier */         \
    ROW(SHARE, 55, share)               /* MPI: for all hosts; the launcher sends it to each of them */ \
    ROW(MPI_STATE, 54, mpi_state)       /* a rank called MPI_Init or MPI_Finalize */               \
    ROW(OUTPUT, 0xC0, output)           /* bytes of a rank's stdout (1) or stderr (2) */           \
    ROW(OUTPUT_EOF, 0xC1, output_eof)   /* that stream has ended */                                \
    ROW(OUTPUT_QUIET, 0xC3, output_quiet)/* its unfinished line has not been completed for a while */      \
    ROW(DONE, 0xC2, done)               /* no process of the ranks is left, and all output is sent */
/* clang-format on */

enum dt_msg_type {
#define DT_MSG_TYPE(name, number, st) DT_MSG_##name = (number),
    DT_MSGS(DT_MSG_TYPE)
#undef DT_MSG_TYPE
};

struct dt_msg_list {
    void *v; /* array of the element structure named at the field */
    uint32_t n;
};

/* What START requires of the checkpoint directory: on rank 0's host, or DT_CHECKPOINT_THERE on any.
 */
enum dt_checkpoint_need {
    DT_CHECKPOINT_USABLE = 1,
    DT_CHECKPOINT_UNUSED = 2,   /* and it holds no checkpoints */
    DT_CHECKPOINT_READABLE = 3, /* or it holds some, and the job only restores */
    DT_CHECKPOINT_THERE = 4,    /* it holds checkpoints */
};

struct dt_msg_start {
    uint32_t generation;
    char *job_id;
    uint8_t secret[DT_SECRET_BYTES];
    uint32_t np;
    uint32_t nodes;
    uint32_t node_rank;
    uint32_t restart_count;
    int32_t max_restarts;       /* -1: not given */
    uint32_t heartbeat_ms;      /* the lease: if the launcher is silent for this long, it is gone */
    uint32_t slots;             /* of this host: how many devices its ranks share */
    struct dt_strs gpus;        /* the hostfile's gpus=, or empty */
    uint8_t gpus_given;         /* 1: gpus= stood in the hostfile, even if empty */
    int32_t stdin_rank;         /* whose stdin is a pipe fed by STDIN, the others': /dev/null; or a
                                   DT_STDIN_ constant */
    uint8_t merge_stderr;       /* 1: standard error goes where standard output goes */
    uint8_t unbuffered;         /* 1: standard output is a pseudo-terminal; 0: a pipe */
    struct dt_u32s ranks;       /* that run here, ascending: the one at i has local rank i */
    struct dt_u32s auxiliaries; /* that run beside them: numbers from np on, ascending (role.h) */
    uint32_t servers;           /* of the job, among its auxiliaries */
    char *host;                 /* this host's name as the user wrote it */
    char *wdir;
    uint16_t master_port;
    uint16_t scheduler_port;      /* with auxiliaries */
    char *checkpoint_dir;         /* absolute, or empty: none */
    uint8_t check_checkpoint_dir; /* 0, or enum dt_checkpoint_need */
    uint8_t fresh;  /* 1: ignore what the checkpoint directory holds (until a first commit) */
    uint8_t resume; /* 1: go on from another job's checkpoints there (until a first commit) */
    char *file_dir; /* directory of pushed files, or empty */
    struct dt_strs argv;
    struct dt_strs env;         /* of the launching process after -x and --unset, "NAME=VALUE" */
    struct dt_strs unset;       /* names to remove from the host's own environment */
    struct dt_strs inject;      /* faults for ranks of this host, as the user wrote them */
    uint8_t gpu_bind;           /* enum dt_gpu_bind */
    uint8_t bind_to;            /* enum dt_bind_to */
    uint8_t report_bindings;    /* 1: print each rank's CPUs */
    uint8_t virtual_local_rank; /* 1: LOCAL_RANK is 0 for every rank */
    uint8_t frameworks;         /* set of enum dt_framework */
    uint32_t universe;          /* slots of all hosts, or np if that is more */
    struct dt_u32s mpi_map;     /* which rank runs on which node: mpimap.h */
    struct dt_strs hosts;       /* the name of each node's host, for MPI's messages, or none */
};

struct dt_msg_go {
    uint32_t generation;
    char *master_addr;          /* where the first rank's host can be reached */
    char *addr;                 /* where this host can be reached */
    char *iface;                /* its interface towards the others, or empty: any */
    char *tf_cluster;           /* JSON with the addresses of TensorFlow's workers; or empty */
    uint16_t rendezvous_port;   /* Horovod's, at master_addr; 0: none is needed */
    struct dt_u32s local_sizes; /* by host: number of its ranks; only with a rendezvous */
    struct dt_strs mpi_env; /* added by the agent: variables for ranks that use its PMIx server */
};

/* fills a packet of any usual size, and TCP's initial window */
enum { DT_REACH_BYTES = 12 * 1024 };

struct dt_msg_target { /* element of probe.targets */
    uint32_t node;
    uint16_t port;        /* its agent's hello.probe_port */
    struct dt_strs addrs; /* best first */
};

struct dt_msg_probe {
    uint32_t generation;
    uint8_t secret[DT_SECRET_BYTES];
    uint32_t node;  /* the host's own */
    uint8_t all;    /* 1: try every address; 0: the first that works is enough */
    uint32_t bytes; /* bytes to send each way, such as DT_REACH_BYTES; the same for all */
    struct dt_msg_list targets; /* struct dt_msg_target */
};

struct dt_msg_addr { /* element of table.addrs, by rank */
    char *host;      /* numeric address; empty if the port is 0 */
    uint16_t port;   /* 0: it does not listen, since there is one host */
    uint32_t node;   /* the node it runs on */
};

struct dt_msg_table {
    uint32_t generation;
    struct dt_msg_list addrs; /* struct dt_msg_addr */
    struct dt_strs hosts;     /* by host: its name as the user wrote it; empty: not told */
};

struct dt_msg_signal {
    int32_t signo;
};

struct dt_msg_stop {
    uint32_t grace_ms;
};

struct dt_msg_abort {
    uint32_t generation;
    uint64_t comm;   /* whose calls fail; 0: all communicators of the job */
    uint32_t rank;   /* the rank that died first, or that caused the failure */
    int32_t code;    /* what calls return: a dt_result_t */
    char *text;      /* what happened, if not only a death; or "" */
    uint32_t ending; /* how it died, as encoded by dt_hostshm_ending_of */
};

struct dt_msg_asked { /* element of ping.comms */
    uint64_t comm;    /* some rank waits in it: the agent reports what this host's ranks do */
};

struct dt_msg_ping {
    uint64_t time_ns;         /* sender's CLOCK_BOOTTIME, echoed in PONG */
    struct dt_msg_list comms; /* struct dt_msg_asked, the most important first */
};

struct dt_msg_query {
    uint32_t id; /* echoed in ANSWER */
};

struct dt_msg_credit {
    uint32_t rank;
    uint8_t fd; /* 1 or 2 */
    uint32_t bytes;
};

struct dt_msg_end {
    uint8_t unused; /* 0 */
};

struct dt_msg_file {
    uint32_t id;
    char *name;    /* relative, without "." and ".."; its directory was sent before it */
    uint32_t mode; /* type (file, directory, symbolic link) and permission bits */
    uint64_t size; /* of a file; 0 for others, as is the hash */
    uint64_t hash; /* XXH3-64 of the content */
    char *target;  /* of a symbolic link; else empty */
    uint8_t keep;  /* 1: the file may be hard-linked with files that earlier jobs kept */
    char *job_id;  /* the files of one job share a directory on the host */
};

struct dt_msg_check {
    char *dir; /* absolute path for checkpoints; it need not exist yet */
};

struct dt_msg_blob { /* not in a list: the payload of data messages */
    const uint8_t *p;
    size_t n;
};

struct dt_msg_signalled {
    int32_t signo;
};

struct dt_msg_fence {
    uint32_t generation;
    struct dt_msg_blob data; /* data that its ranks have published since the last FENCE */
};

struct dt_msg_fenced {
    uint32_t generation;
    struct dt_msg_blob data; /* of all hosts, concatenated */
};

enum dt_share_op {
    DT_SHARE_PUBLISH = 0,   /* data is what key stands for; flag: until somebody has looked it up */
    DT_SHARE_UNPUBLISH = 1, /* key stands for nothing any more */
    DT_SHARE_LOOK_UP = 2,   /* flag: waits until key has been published */
    DT_SHARE_MEET = 3,      /* waits until all hosts that take part have sent it with this key */
};

struct dt_msg_share {
    uint32_t generation;
    uint32_t node;    /* the host that sends it */
    uint32_t request; /* its number on that host, which gets the answer */
    uint32_t rank;    /* that asks */
    uint8_t op;       /* of enum dt_share_op */
    uint8_t flag;
    uint32_t nodes; /* MEET: how many hosts take part */
    char *key;
    struct dt_msg_blob data;
};

struct dt_msg_stdin {
    uint32_t generation;
    struct dt_msg_blob data;
};

struct dt_msg_stdin_eof {
    uint32_t generation;
};

struct dt_msg_stdin_credit {
    uint32_t generation;
    uint32_t bytes;
};

struct dt_msg_file_data {
    uint32_t id;
    struct dt_msg_blob data;
};

struct dt_msg_netaddr { /* element of hello.addrs */
    char *iface;
    char *addr; /* numeric; a link-local one of IPv6 with %iface */
    uint32_t mtu;
};

struct dt_msg_hello {
    uint32_t protocol;
    char *version;  /* of the agent */
    char *identity; /* equal for two agents exactly if they run on one machine (or in one container)
                     */
    char *hostname;
    char *addr;         /* address at which the ssh connection arrived, or empty (local agent) */
    char *peer_addr;    /* source address of the ssh connection, or empty */
    uint16_t free_port; /* the first of DT_FREE_PORTS consecutive TCP ports that were free */
    uint32_t cores;
    uint64_t memory;  /* bytes */
    uint64_t time_ns; /* agent's CLOCK_BOOTTIME */
    uint32_t pid;     /* of the keeper */
    struct dt_strs gpus;
    uint16_t probe_port;      /* where the agent listens for PROBEs from others; 0: it cannot */
    struct dt_msg_list addrs; /* struct dt_msg_netaddr, for every interface that is up */
    uint8_t in_step; /* a batch system started the agent as a step, and may signal its ranks */
};

struct dt_msg_ready {
    uint32_t generation;
    uint16_t rendezvous_port; /* where the first host listens for Horovod; 0: it does not */
};

enum dt_reach_state {
    DT_REACH_OK = 1,
    DT_REACH_CONNECT = 2,    /* no connection; error says why (ETIMEDOUT: no answer) */
    DT_REACH_SILENT = 3,     /* connected, but the peer sent no proof in time, or hung up */
    DT_REACH_STRANGER = 4,   /* another program answered */
    DT_REACH_LOST_THERE = 5, /* verified, but full packets do not arrive there */
    DT_REACH_LOST_HERE = 6,  /* ... or do not arrive here */
};

struct dt_msg_reached { /* element of reach.results */
    uint32_t node;
    uint32_t addr;    /* index into the target's addrs */
    uint8_t state;    /* enum dt_reach_state */
    int32_t error;    /* errno, or 0 */
    uint32_t rtt_us;  /* measured by TCP */
    uint64_t bulk_ns; /* from the first of probe.bytes until the peer confirmed the last */
    uint64_t both_ns; /* ... until the last has come back */
};

struct dt_msg_reach {
    uint32_t generation;
    uint8_t all;                /* of the PROBE */
    struct dt_msg_list results; /* struct dt_msg_reached, for every address that was tried */
};

struct dt_msg_started_rank { /* element of started.ranks */
    uint32_t rank;           /* or an auxiliary's number, as in the following messages */
    uint32_t pid;
    char *device; /* its CUDA_VISIBLE_DEVICES */
};

struct dt_msg_started {
    uint32_t generation;
    struct dt_msg_list ranks; /* struct dt_msg_started_rank */
};

enum dt_spawn_step {
    DT_SPAWN_SYSTEM = 0, /* fork, pipe or memory failed: a limit of the host */
    DT_SPAWN_WDIR = 1,   /* the working directory cannot be entered */
    DT_SPAWN_EXEC = 2,   /* the program cannot be executed; error decides on exit code 126 or 127 */
    DT_SPAWN_CHECKPOINT = 3, /* the checkpoint directory cannot be used */
    /* a process of an earlier generation has not ended; error says why it cannot be killed, and is
     * 0 if it was */
    DT_SPAWN_LEFTOVER = 4,
};

struct dt_msg_spawn_failed {
    uint32_t generation;
    uint32_t rank;
    uint8_t step;  /* enum dt_spawn_step */
    int32_t error; /* errno */
    char *what;    /* the path or call concerned */
};

struct dt_msg_rank_hello {
    uint32_t generation;
    uint32_t rank;
    uint16_t port;
};

enum dt_exit_flags {
    DT_EXITED_LINKED = 1,        /* it had called dt_init */
    DT_EXITED_FINALIZED = 2,     /* it had called dt_finalize */
    DT_EXITED_PEER_LOST = 4,     /* a call had returned DT_ERR_PEER, or another rank's GPU has made
                                    it fail: its death is a consequence */
    DT_EXITED_CORE = 8,          /* dumped core */
    DT_EXITED_OOM = 16,          /* it, or a process of its own, was killed for lack of memory */
    DT_EXITED_STOPPED = 32,      /* the agent had been told to stop it */
    DT_EXITED_INJECTED = 64,     /* by --inject */
    DT_EXITED_COMM_FAILED = 128, /* a communicator but DT_WORLD had failed for good, and it has
                                    neither freed nor aborted that */
};

struct dt_msg_exit {
    uint32_t generation;
    uint32_t rank;
    uint32_t pid;
    int32_t code;     /* exit code, or -1 */
    int32_t signo;    /* signal that killed it, or 0 */
    uint64_t time_ns; /* agent's CLOCK_BOOTTIME when it was reaped */
    int64_t step;     /* last dt_step, or -1 */
    uint32_t flags;   /* enum dt_exit_flags */
};

struct dt_msg_mpi_state {
    uint32_t generation;
    uint32_t rank;
    uint8_t inside; /* between MPI_Init and MPI_Finalize */
};

struct dt_msg_failed { /* like ABORT */
    uint32_t generation;
    uint64_t comm;
    uint32_t rank;
    int32_t code;
    char *text;
};

enum { DT_LAST_CALLS = 4 };

struct dt_msg_last_call { /* element of last_calls.calls */
    uint64_t call;        /* its sequence number */
    uint64_t ns;          /* how long it took, or has taken so far; 0: it was brief */
    char *what;           /* "all-reduce of 5 f32 (sum)" */
    char *result;         /* "ok", "DT_ERR_MISMATCH"; "inside": it has not returned */
    char *algorithm;      /* "shm-blocks+tcp-ring"; "-": none, or it has not returned */
};

struct dt_msg_last_calls {
    uint32_t generation;
    uint32_t rank;
    uint64_t comm;            /* the communicator that failed first on this rank */
    int32_t code;             /* with this dt_result_t */
    char *dump;               /* the directory on its host where all calls are written; or "" */
    char *dump_error;         /* why they are not written; or "" */
    struct dt_msg_list calls; /* struct dt_msg_last_call, at most DT_LAST_CALLS, in order */
};

struct dt_msg_step { /* element of pong.steps */
    uint32_t rank;
    int64_t step;
    uint8_t stopped; /* 1: its process is suspended by a signal */
};

struct dt_msg_called { /* element of comms.ranks; see dt_hostshm_rank */
    uint32_t rank;     /* in the communicator */
    uint8_t place;     /* 0: its collective; from 1: its sends and receives */
    uint64_t call;     /* counted for sends and receives as well */
    uint64_t signature;
    uint32_t limit_ms;
    uint32_t waited_ms; /* in that state */
};

struct dt_msg_comm { /* element of pong.comms */
    uint64_t comm;
    /* The job's ranks, by rank; empty: all of the job, or none is on this host. */
    struct dt_u32s members;
    struct dt_msg_list ranks; /* struct dt_msg_called, for the ranks of this host */
};

enum { DT_PONG_COMMS_BYTES = 4 * 1024 * 1024 }; /* approximate space for communicators in a PONG */

struct dt_msg_pong {
    uint64_t ping_time_ns; /* also identifies the moment at which this was observed */
    uint64_t time_ns;
    uint32_t generation;      /* of the following fields; 0: there is none, and they are empty */
    uint32_t limit_ms;        /* the lowest limit that ranks of this host have set, or 0 */
    uint32_t more;            /* communicators that did not fit into comms */
    struct dt_msg_list steps; /* struct dt_msg_step */
    struct dt_msg_list comms; /* struct dt_msg_comm: that of all, those that PING asked for, and
                                 those in which a rank waits, the longest first */
};

struct dt_msg_limit {
    uint32_t generation;
    uint32_t ms; /* the limit of a rank's calls */
};

/* RESTORED: this generation began from the step (-1: from nothing). */
enum dt_commit_kind { DT_COMMITTED, DT_RESTORED, DT_RESTORE_BEGUN };

struct dt_msg_commit {
    uint32_t generation;
    int64_t step;
    uint8_t kind; /* enum dt_commit_kind */
};

struct dt_msg_triggered {
    char *fault; /* as in START */
};

struct dt_msg_answer {
    uint32_t id;
    struct dt_u32s leaving; /* ranks whose calls end, or have ended, because of a death */
};

struct dt_msg_log {
    char *text;
    uint8_t detail; /* whether only --verbose shows it */
};

struct dt_msg_file_done {
    uint32_t id;
    char *dir; /* the file's directory, if error is empty */
    char *error;
};

struct dt_msg_facts {
    int64_t wall_ahead_ns; /* CLOCK_REALTIME less CLOCK_BOOTTIME */
    char *kernel;          /* its release */
    char *machine;         /* as uname -m says */
    uint32_t cpus;         /* online, of the whole machine; HELLO has those that ranks may use */
    /* Number of cores to which these hardware threads belong; 0: unknown. */
    uint32_t physical_cores;
    uint32_t cpu_limit;    /* hundredths of a core that the cgroup may use; 0: no limit */
    uint32_t load;         /* hundredths; average of the last minute */
    uint64_t memory_limit; /* bytes, of the cgroup; 0: none */
    uint64_t memory_available;
    struct dt_strs gpu_models; /* one for each visible GPU; empty: none, or unknown */
    char *gpu_driver;          /* its version, or empty */
    struct dt_strs gpu_ecc;    /* of each GPU that nvidia-smi knows: its uncorrected memory errors
                                  since the driver was loaded, in decimal; or "": it does not count */
    /* The driver's errors in the kernel's log: "Xid 79 x 2 (0000:3b:00)" */
    struct dt_strs gpu_xids;
    char *gpu_links; /* the kinds of links between GPUs, in nvidia-smi's words: "NV18"; or empty */
    uint8_t gpu_silent; /* 1: nvidia-smi did not answer */
    char *nccl;         /* the version of the system's NCCL, or empty */
    char *disk_dir;     /* the closest existing directory to CHECK's dir */
    uint64_t disk_free; /* bytes free there for users */
    int32_t disk_error; /* errno if it is not writable; 0: it is */
};

struct dt_msg_output {
    uint32_t rank;
    uint8_t fd;
    struct dt_msg_blob data;
};

struct dt_msg_output_eof {
    uint32_t rank;
    uint8_t fd;
};

struct dt_msg_output_quiet {
    uint32_t rank;
    uint8_t fd;
};

struct dt_msg_done {
    uint32_t generation;
};

union dt_msg { /* large enough for any message */
#define DT_MSG_MEMBER(name, number, st) struct dt_msg_##st st;
    DT_MSGS(DT_MSG_MEMBER)
#undef DT_MSG_MEMBER
};

/* The message's name for diagnostics, or NULL for an unknown type. */
const char *dt_msg_name(uint8_t type);

/* Appends the message's payload, without the frame's header. Sets out->failed if it does not
 * fit. */
void dt_msg_encode(struct dt_put *out, uint8_t type, const void *msg);

/* Returns 0, or -1 with errno; msg then owns nothing. EPROTO: the payload is not exactly one such
 * message. ENOMEM: memory has run out. */
int dt_msg_decode(uint8_t type, const void *payload, size_t len, union dt_msg *msg);
void dt_msg_free(uint8_t type, union dt_msg *msg);

/* Encodes msg and appends it, framed, to out. */
void dt_msg_frame(struct dt_put *out, uint8_t type, const void *msg);

#endif
