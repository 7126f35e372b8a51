/* The simulator's time: a queue of events, and random numbers that depend on the seed alone. */
#ifndef TESTS_SIM_CLOCK_H
#define TESTS_SIM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/msg.h"

struct sim_world;
struct sim_event;
typedef void (*sim_action_f)(struct sim_world *w, struct sim_event *e);

struct sim_event {
    uint64_t at_ns;
    uint64_t due_ns, number; /* order events of one instant: first due time; insertion */
    sim_action_f act;
    void *who;
    uint64_t n, epoch; /* arguments of act */
    uint8_t type;      /* the type of msg */
    bool for_engine;   /* waits while dtrun stands still */
    union dt_msg *msg; /* belongs to the event and is freed after it */
};

struct sim_queue {
    struct sim_event *heap;
    size_t n, cap;
    uint64_t put;
};

void sim_queue_put(struct sim_queue *q, struct sim_event e);
/* Delays the event. Events delayed to the same time keep their order. */
void sim_queue_put_off(struct sim_queue *q, const struct sim_event *e, uint64_t until_ns);
bool sim_queue_take(struct sim_queue *q, struct sim_event *e); /* the earliest */
void sim_event_free(struct sim_event *e);
void sim_queue_free(struct sim_queue *q);

struct sim_chance {
    uint64_t state;
};

struct sim_chance sim_chance_of(uint64_t seed, uint64_t stream);
uint64_t sim_below(struct sim_chance *c, uint64_t n);                   /* 0 ... n - 1 */
uint64_t sim_between(struct sim_chance *c, uint64_t from, uint64_t to); /* both included */
bool sim_percent(struct sim_chance *c, unsigned percent);

#define SIM_MS UINT64_C(1000000)
#define SIM_S  UINT64_C(1000000000)

#endif
