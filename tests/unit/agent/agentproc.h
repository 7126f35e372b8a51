/* A real dtrun-agent at the far end of a socket pair, for tests that play the launcher. */
#ifndef TESTS_UNIT_AGENT_AGENTPROC_H
#define TESTS_UNIT_AGENT_AGENTPROC_H

#include <stdbool.h>
#include <sys/types.h>

#include "runtime/wire/frame.h"
#include "runtime/wire/msg.h"

enum {
    AGENT_STREAMS = 8,
    AGENT_PATIENCE_MS = 180 * 1000, /* a watchdog */
    AGENT_LEASE_MS = 600 * 1000,    /* does not expire in a test */
    AGENT_TEST_SECONDS = 600,       /* for all tests of a program */
};

struct arrived { /* a message that no call has waited for yet */
    struct arrived *next;
    uint8_t type;
    size_t len;
    uint8_t payload[];
};

struct agent {
    pid_t keeper;
    int fd;
    bool marker_seen;
    bool at_end; /* the agent closed the socket */
    struct dt_unframe unframe;
    struct arrived *first;
    bool mute_credit;                 /* OUTPUT is not credited */
    bool hold;                        /* READY is not answered with GO, but waits */
    struct dt_put out[AGENT_STREAMS]; /* by 2 * rank + stream - 1 */
    bool eof[AGENT_STREAMS];
    uint64_t stdin_credit;
    uint32_t generation;
    char token[64];   /* "AGENT_TEST=..." in the environment of every rank */
    union dt_msg msg; /* of the last agent_expect */
    uint8_t msg_type;
};

/* The path of a program in the test's build tree. Fails the test if it is missing. Valid until the
 * next call. */
const char *agent_program(const char *name);
/* Starts the agent and waits for HELLO, which is in a->msg then. Fails the test if HELLO does not
 * come. */
void agent_open(struct agent *a);
void agent_send(struct agent *a, uint8_t type, const void *msg);
/* Waits for the next message of this type and decodes it into a->msg, until the next call. Messages
 * of other types are kept. OUTPUT is collected and credited. */
void agent_expect(struct agent *a, uint8_t type);
/* Whether such a message has arrived and is kept. */
bool agent_has(const struct agent *a, uint8_t type);
/* Handles messages for this long, or until the agent ends. */
void agent_listen(struct agent *a, int ms);
/* The agent's process that speaks the protocol. */
pid_t agent_worker(const struct agent *a);
/* Sends START for n ranks of sh -c script. tweak (or NULL) changes the defaults below. */
void agent_start(struct agent *a, uint32_t n, const char *script,
                 void (*tweak)(struct dt_msg_start *start));
/* Does the same for another command. argv ends with NULL. */
void agent_start_argv(struct agent *a, uint32_t n, const char *const *argv,
                      void (*tweak)(struct dt_msg_start *start));
/* Lets the ranks go that READY is about. */
void agent_go(struct agent *a, const struct dt_msg_ready *ready);
const char *agent_output(struct agent *a, uint32_t rank, int stream);
/* Sends END and returns the agent's exit code. */
int agent_end(struct agent *a);
/* Waits until the agent has ended by itself. Returns its exit code, or 128 + signal. */
int agent_await(struct agent *a);
/* Waits until no process has the token in its environment. false: some are left. */
bool agent_all_gone(const struct agent *a);
/* Returns the number of processes that have the token. */
int agent_processes(const struct agent *a);
void agent_free(struct agent *a); /* kills the processes that are left */

void agent_stop(struct agent *a, uint32_t grace_ms);
void agent_ping(struct agent *a, uint64_t time_ns);
/* Waits until the standard output of the rank is exactly this text. */
void agent_wait_for_output(struct agent *a, uint32_t rank, const char *text);
/* Waits until the kernel shows the process in this state: 'T' is stopped, 'S' sleeps. */
void agent_wait_for_state(uint32_t pid, char wanted);

/* With this script two ranks are 14 processes, including the agent's two. */
extern const char agent_family[];

/* Runs around each test: starts an agent, of which nothing may be left at the end. */
int agent_setup(void **state);
int agent_teardown(void **state);
#define AGENT_TEST(name) cmocka_unit_test_setup_teardown(name, agent_setup, agent_teardown)

/* Runs around all tests of a program: makes a directory, which is also the agents' home. */
extern char agent_scratch[64];
int agent_make_scratch(void **state);
int agent_remove_scratch(void **state);

#endif
