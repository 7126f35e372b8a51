/* The messages on the socket between an agent and one of its ranks: one SOCK_SEQPACKET packet each.
 *
 *     rank                 agent
 *     HELLO          ->                            dt_init
 *                    <-    WELCOME + memory file   or REFUSED
 *                    <-    TABLE + its memory      when every rank of the job said hello
 *     COMMIT         ->                            rank 0 committed, or restored
 *     NOTE           ->                            the user should know of this
 *     STEP           ->                            a watched step was reached
 *                    <-    GO                      and may be left
 *     WANT_MEMORY    ->                            for a communicator's ranks of this host
 *                    <-    MEMORY + memory file    or why there is none
 *     FREE_MEMORY    ->                            this rank is done with it
 *     LIMIT          ->                            calls may wait for so long, and no longer
 *     WANT_SEGMENT   ->                            for their buffers
 *                    <-    SEGMENT + memory file   or why there is none
 *     WANT_SEGMENT + descriptor  ->                for other ranks, who want it then
 *                    <-    SEGMENT                 they can have it, or why not
 *     FAILED         ->                            a call fails on all ranks
 *                    <-    ABORT                   a rank died, or failed
 *     LAST_CALLS     ->                            what it called last, once in its life
 *
 * What an agent sends are small packets, a handful unasked in a rank's life and one for each
 * question, so it never has to wait for room: what may be long (the table) travels as a sealed
 * memory file beside its message. */
#ifndef DT_WIRE_RANKMSG_H
#define DT_WIRE_RANKMSG_H

#include <stdint.h>
#include <sys/types.h>

#include "runtime/wire/msg.h"

enum {
    DT_RANK_PROTOCOL = 19, /* changes with any message or with the shared memory (hostshm.h) */
    DT_RANK_REFUSED_TEXT = 512,
    DT_RANK_NOTE_TEXT = 512,
    DT_RANK_FAILED_TEXT = 512,
    DT_RANK_LAST_CALLS_BYTES = 2048,
    DT_RANK_CODE_MIN = -255, /* of FAILED: no dt_result_t is below */
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
    uint8_t type; /* enum dt_rankmsg_type; names the member below that counts */
    union {
        struct {
            uint32_t protocol;
            uint32_t rank;
            uint32_t generation;
            uint16_t port; /* where it listens, or 0 */
        } hello;
        struct {
            int64_t step;
            uint8_t restored; /* 0: committed; 1: restored (step -1: there was nothing) */
        } commit;
        struct {
            int64_t step;
        } step;
        struct {
            char text[DT_RANK_NOTE_TEXT];
        } note;
        struct {
            uint64_t comm; /* whose calls fail; 0: all communicators of the job */
            int32_t code;  /* what its call returns: a dt_result_t other than DT_ERR_PEER */
            uint32_t rank; /* to blame */
            char text[DT_RANK_FAILED_TEXT];
        } failed;
        struct {
            uint64_t comm;
            uint32_t members; /* ranks of this host in it: each of them asks */
            uint32_t size;    /* ranks of all hosts; no more than the job has */
        } want_memory;
        struct {
            uint64_t comm;
        } free_memory;
        struct {
            uint32_t ms;
        } limit;
        struct {
            uint64_t comm;
            uint64_t call;    /* number of the communicator's call that wants it */
            uint64_t bytes;   /* of the file; the same for all */
            uint32_t members; /* as above */
            uint32_t giver;   /* 0: the agent makes the file; else local rank + 1 of who gives it */
            uint32_t takers;  /* of so many, beside the giver, who want what is given */
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
            uint8_t version; /* 1: library and agent do not fit each other */
            char text[DT_RANK_REFUSED_TEXT];
        } refused;
        struct {
            uint64_t bytes; /* of the memory file: the payload of a DT_MSG_TABLE */
        } table;
        struct {
            uint64_t comm; /* whose calls fail; 0: all communicators of the job */
            int32_t code;  /* what calls return: a dt_result_t */
            uint32_t rank; /* who died first, or is to blame */
        } abort;
        struct {
            uint64_t comm;
            int32_t error; /* 0, or the errno for which there is none */
        } memory;
        struct {
            uint64_t comm;
            uint64_t number; /* of no other in this generation */
            int32_t error;   /* as above */
        } segment;
        struct {
            int32_t exit_code; /* 0..255: end the process with it; DT_RANK_GO_ON: go on */
        } go;
    };
};

struct dt_rankmsg_from {
    int fd;    /* a descriptor that came along (CLOEXEC), or -1; the caller's to close */
    pid_t pid; /* of the sender, where the receiving socket has SO_PASSCRED; else 0 */
};

/* Sends one message, and a copy of descriptor pass unless it is -1; flags as of sendmsg(2).
 * Returns 0, or -1 with errno. */
int dt_rankmsg_send(int sock, const struct dt_rankmsg *msg, int pass, int flags);

/* Receives one message; flags as of recvmsg(2). Returns 1, 0 at the end of the stream, or -1 with
 * errno (EPROTO: the packet is no such message; EMFILE: it is *msg, but there was no room
 * for its descriptor). from->fd is -1 unless 1 is returned. */
int dt_rankmsg_recv(int sock, struct dt_rankmsg *msg, struct dt_rankmsg_from *from, int flags);

#endif
