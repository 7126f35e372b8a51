/* The environment of a rank, or of an auxiliary. Pure.
 *
 * dtrun filters its own environment (what describes the launching host or login, belongs to another
 * launcher, or masks devices stays behind), applies -x and --unset in order, and sends the result.
 * The agent lays it over its own environment and adds the per-rank values, which always win. An
 * auxiliary, which is no rank, gets those only that are the whole job's. */
#ifndef DT_PLACE_ENVRULES_H
#define DT_PLACE_ENVRULES_H

#include <stdbool.h>

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/msg.h"

/* Whether a rule can be obeyed at all: the name is one, and it is none that dtrun sets for every
 * rank (err then names the option that decides it). */
int dt_env_check_rule(const char *rule, struct dt_error *err);

/* rules: options' env list. On success env holds what to send, unset what hosts must remove. */
int dt_env_base(struct dt_strs *env, struct dt_strs *unset, char *const *environ_,
                const struct dt_strs *rules, struct dt_error *err);

struct dt_env_rank {
    const struct dt_msg_start *start;
    uint32_t number; /* the rank, or an auxiliary's number (role.h); for this the next holds not */
    uint32_t local_rank;
    const char *device; /* CUDA_VISIBLE_DEVICES, or NULL: leave it unset */
    int agent_fd;       /* the rank's end of its agent socket; not of an auxiliary */
    int pmi_fd;         /* likewise of its PMI-1 socket */
    uint32_t threads;   /* OMP_NUM_THREADS */
    const struct dt_strs *in_nccl_conf; /* names that NCCL's files set here, or NULL */
    uint16_t ras_port; /* where NCCL's processes on this host answer ncclras; 0: not known */
};

/* What is a default, and NCCL would not take from its files any more if it were set: for each name
 * that one of these files sets (in_nccl_conf). */
extern const char *const dt_env_nccl_defaults[]; /* up to NULL */
/* The files in which NCCL looks, with the environment that ranks have. */
int dt_env_nccl_files(struct dt_strs *files, const struct dt_strs *env);

/* Whether the user sets, or removes, this variable of ranks, or their host has it. */
bool dt_env_is_decided(const struct dt_msg_start *start, char *const *agent_environ,
                       const char *name);

/* Its environment without what is known only when all hosts are ready; 0, or -1 out of
 * memory. */
int dt_env_for_rank(struct dt_strs *env, char *const *agent_environ,
                    const struct dt_env_rank *rank);

/* The rest. */
int dt_env_at_go(struct dt_strs *env, const struct dt_env_rank *rank, const struct dt_msg_go *go);

#endif
