/* The handshake in which two ranks, or two agents, of one job and generation prove to each other
 * that they know the job's secret, before any data flow. Pure: bytes in, bytes out.
 *
 *     connecting side                       listening side
 *     hello: sender, receiver, generation,
 *            communicator, connection,
 *            nonce, tag              ->
 *                                    <-     answer: nonce, proof over hello and both nonces
 *     proof over the same            ->
 *
 * A proof is a crypto_auth tag under the job's secret. It contains the role, so that one side's
 * proof cannot be replayed as the other's. The fresh nonces prevent replays of old proofs.
 *
 * A rank has room for few callers, so it does not even answer those whose hello has a wrong tag.
 * They would otherwise keep the job's own ranks out. An agent has room for many; a caller from
 * another job learns from its answer that it has called the wrong one. */
#ifndef DT_WIRE_AUTH_H
#define DT_WIRE_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/msg.h"

enum {
    DT_AUTH_NONCE = 32,
    DT_AUTH_TAG = 32,
    DT_AUTH_HELLO = 36 + DT_AUTH_NONCE + DT_AUTH_TAG,
    DT_AUTH_ANSWER = DT_AUTH_NONCE + DT_AUTH_TAG,
    DT_AUTH_PROOF = DT_AUTH_TAG,
};

enum dt_auth_purpose {
    DT_AUTH_RANKS = 0,  /* me and peer are ranks */
    DT_AUTH_AGENTS = 1, /* they are hosts: agents connect before the ranks run */
};

/* As a listener's peer: any peer that knows the secret, for any communicator and connection. */
enum { DT_AUTH_ANYBODY = UINT32_MAX };

struct dt_auth {
    uint8_t secret[DT_SECRET_BYTES];
    uint32_t generation;
    uint32_t me;
    uint32_t peer;       /* the required peer */
    uint32_t purpose;    /* enum dt_auth_purpose */
    uint32_t connection; /* which of the connections between the two; 0 for agents */
    uint64_t comm;       /* the communicator; 0 for agents */
};

/* Connecting side: write the hello, then check the answer and write the proof. */
void dt_auth_hello(const struct dt_auth *a, uint8_t hello[DT_AUTH_HELLO]);
bool dt_auth_prove(const struct dt_auth *a, const uint8_t hello[DT_AUTH_HELLO],
                   const uint8_t answer[DT_AUTH_ANSWER], uint8_t proof[DT_AUTH_PROOF]);

/* Listening side: false if the hello is not from this generation and pair or, between ranks, not
 * from this job. */
bool dt_auth_answer(const struct dt_auth *a, const uint8_t hello[DT_AUTH_HELLO],
                    uint8_t answer[DT_AUTH_ANSWER]);
bool dt_auth_check(const struct dt_auth *a, const uint8_t hello[DT_AUTH_HELLO],
                   const uint8_t answer[DT_AUTH_ANSWER], const uint8_t proof[DT_AUTH_PROOF]);

/* Who sent the hello (me) and for what (comm, connection). Not verified before dt_auth_check. */
void dt_auth_caller(const uint8_t hello[DT_AUTH_HELLO], struct dt_auth *who);

#endif
