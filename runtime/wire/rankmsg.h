/* The messages on the socket between an agent and one of its ranks: one SOCK_SEQPACKET packet each.
 *
 *     rank                 agent
 *     HELLO          ->                            dt_init
 *                    <-    WELCOME + memory file   or REFUSED
 *                    <-    TABLE + its memory      when every rank of the job has sent HELLO
 *     COMMIT         ->                            rank 0 committed, restored, or begins to restore
 *     NOTE           ->                            a message for the user
 *     STEP           ->                            a watched step was reached
 *                    <-    GO                      the rank may continue
 *     WANT_MEMORY    ->                            for a communicator's ranks on this host
 *                    <-    MEMORY + memory file    or why there is none
 *     FREE_MEMORY    ->                            this rank does not use it any more
 *     LIMIT          ->                            the limit of this rank's calls
 *     WANT_SEGMENT   ->                            for their buffers
 *                    <-    SEGMENT + memory file   or why there is none
 *     WANT_SEGMENT + descriptor  ->                a rank gives it to others, which then ask for it
 *                    <-    SEGMENT                 they may ask now, or why not
 *     FAILED         ->                            a call fails on all ranks
 *                    <-    ABORT                   a rank died or failed
 *     LAST_CALLS     ->                            its last calls, once in its life
 *
 * The agent's packets are small and few: some unsolicited ones in a rank's life, and one for each
 * question. So it never waits for room. Long data (the table) travel as a sealed memory file with
 * the message. */
#ifndef DT_WIRE_RANKMSG_H
#define DT_WIRE_RANKMSG_H

#include <stdint.h>
#include <sys/types.h>

#include "runtime/wire/msg.h"

enum {
    DT_RANK_PROTOCOL = 24, /* incremented when a message or the shared memory (hostshm.h) changes */
    DT_RANK_REFUSED_TEXT = 512,
    DT_RANK_NOTE_TEXT = 512,
    DT_RANK_FAILED_TEXT = 512,
    DT_RANK_LAST_CALLS_BYTES = 2048,
    DT_RANK_CODE_MIN = -255, /* of FAILED: the lowest dt_result_t */
};

enum dt_rankmsg_type {
    DT_RANK_HELLO = 1,
    DT_RANK_COMMIT = 2,
    DT_RANK_STEP = 3,
    DT_RANK_NOTE = 4,
    DT_RANK_FAILED = 5,
    DT_RANK_WANT_MEMORY = 6,
    DT_RANK_FREE_MEMORY = 7,
    DT_RANK_LIMIT = 8,
    DT_RANK_WANT_SEGMENT = 9,
    DT_RANK_LAST_CALLS = 10,
    DT_RANK_WELCOME = 65,
    DT_RANK_REFUSED = 66,
    DT_RANK_TABLE = 67,
    DT_RANK_ABORT = 68,
    DT_RANK_GO = 69,
    DT_RANK_MEMORY = 70,
    DT_RANK_SEGMENT = 71,
};

enum { DT_RANK_GO_ON = -1 }; /* go.exit_code: dt_step returns */

struct dt_rankmsg {
    uint8_t type; /* enum dt_rankmsg_type; says which member below is used */
    union {
        struct {
            uint32_t protocol;
            uint32_t rank;
            uint32_t generation;
            uint16_t port; /* where it listens, or 0 */
        } hello;
        struct {
            int64_t step;
            uint8_t kind; /* enum dt_commit_kind */
        } commit;
        struct {
            int64_t step;
        } step;
        struct {
            uint8_t detail; /* whether only --verbose shows it */
            char text[DT_RANK_NOTE_TEXT];
        } note;
        struct {
            uint64_t comm; /* the communicator that fails; 0: all of the job */
            int32_t code;  /* the result of its call: a dt_result_t other than DT_ERR_PEER */
            uint32_t rank; /* the rank that caused it */
            char text[DT_RANK_FAILED_TEXT];
        } failed;
        struct {
            uint64_t comm;
            uint32_t members; /* its ranks on this host, each of which asks */
            uint32_t size;    /* its ranks on all hosts; at most the job's */
        } want_memory;
        struct {
            uint64_t comm;
        } free_memory;
        struct {
            uint32_t ms;
        } limit;
        struct {
            uint64_t comm;
            uint64_t call;    /* number of the communicator's call that needs it */
            uint64_t bytes;   /* of the file; the same on all ranks */
            uint32_t members; /* as above */
            uint32_t giver;   /* 0: the agent makes the file; else 1 + local rank of the giver */
            uint32_t takers;  /* number of ranks, without the giver, that ask for it */
        } want_segment;
        struct {
            uint16_t bytes;
            uint8_t payload[DT_RANK_LAST_CALLS_BYTES]; /* of a DT_MSG_LAST_CALLS */
        } last_calls;
        struct {
            uint32_t generation;
            uint32_t rank;
            uint32_t size;
            uint32_t local_rank;
            uint32_t local_size;
            uint32_t node_rank;
            uint32_t nodes;
            uint8_t secret[DT_SECRET_BYTES];
        } welcome;
        struct {
            uint8_t version; /* 1: library and agent are of different versions */
            char text[DT_RANK_REFUSED_TEXT];
        } refused;
        struct {
            uint64_t bytes; /* of the memory file, which holds the payload of a DT_MSG_TABLE */
        } table;
        struct {
            uint64_t comm; /* the communicator that fails; 0: all of the job */
            int32_t code;  /* the result of its calls: a dt_result_t */
            uint32_t rank; /* the rank that died first, or that caused it */
        } abort;
        struct {
            uint64_t comm;
            int32_t error; /* 0, or the errno why there is none */
        } memory;
        struct {
            uint64_t comm;
            uint64_t number; /* unique in this generation */
            int32_t error;   /* as above */
        } segment;
        struct {
            int32_t exit_code; /* 0..255: exit with it; DT_RANK_GO_ON: continue */
        } go;
    };
};

struct dt_rankmsg_from {
    int fd;    /* a received descriptor (CLOEXEC), which the caller closes, or -1 */
    bool lost; /* a descriptor came, for which this process had no room */
    pid_t pid; /* of the sender, if the receiving socket has SO_PASSCRED; else 0 */
};

/* Sends one message, and a copy of descriptor pass unless it is -1; flags as of sendmsg(2).
 * Returns 0, or -1 with errno. */
int dt_rankmsg_send(int sock, const struct dt_rankmsg *msg, int pass, int flags);

/* Receives one message; flags as of recvmsg(2). Returns 1, 0 at the end of the stream, or -1 with
 * errno (EPROTO: the packet is not a valid message). from->fd is -1 unless 1 is returned. An empty
 * packet counts as the end, unless SO_PASSCRED is set and names a sender. */
int dt_rankmsg_recv(int sock, struct dt_rankmsg *msg, struct dt_rankmsg_from *from, int flags);

#endif
