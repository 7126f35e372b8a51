/* What a process of a job is, by its number. Pure.
 *
 * Ranks have the numbers below np. Auxiliaries, which some frameworks need (frameworks.h), follow:
 * the scheduler has the number np, and servers the next ones. Users see only names. */
#ifndef DT_PLACE_ROLE_H
#define DT_PLACE_ROLE_H

#include <stdint.h>

enum dt_role_kind { DT_ROLE_RANK, DT_ROLE_SCHEDULER, DT_ROLE_SERVER };

struct dt_role {
    enum dt_role_kind kind;
    uint32_t index; /* among the processes of its kind */
};

enum { DT_ROLE_NAME_MAX = 24 };

struct dt_role dt_role_of(uint32_t number, uint32_t np);

/* Writes "rank 3", "scheduler" or "server 0". Returns name. */
const char *dt_role_name(char name[DT_ROLE_NAME_MAX], uint32_t number, uint32_t np);

#endif
