/* The environment of a rank, or of an auxiliary. Pure.
 *
 * dtrun filters its own environment, applies -x and --unset in order, and sends the result. The
 * filter removes variables that describe the launching host or login, belong to another launcher,
 * or mask devices. The agent combines the result with its own environment, over which it takes
 * precedence, and adds the per-rank values, which always win. An auxiliary is no rank and gets only
 * the values of the whole job. */
#ifndef DT_PLACE_ENVRULES_H
#define DT_PLACE_ENVRULES_H

#include <stdbool.h>

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/msg.h"

/* Checks that a rule can be obeyed: the name is valid, and dtrun does not set the variable for
 * every rank. If dtrun does, err names the option that decides the value. */
int dt_env_check_rule(const char *rule, struct dt_error *err);

/* rules is the env list of the options, whose rules have been checked. Afterwards env holds what to
 * send, unset what the hosts must remove, and absent the names that -x gives without a value
 * although they are not set here. */
void dt_env_base(struct dt_strs *env, struct dt_strs *unset, struct dt_strs *absent,
                 char *const *environ_, const struct dt_strs *rules);

struct dt_env_rank {
    const struct dt_msg_start *start;
    uint32_t number; /* the rank or auxiliary (role.h); local_rank means nothing for an auxiliary */
    uint32_t local_rank;
    const char *device; /* CUDA_VISIBLE_DEVICES, or NULL to leave it unset */
    int agent_fd;       /* the rank's end of its agent socket; unused for an auxiliary */
    int pmi_fd;         /* the rank's end of its PMI-1 socket; unused for an auxiliary */
    uint32_t threads;   /* OMP_NUM_THREADS */
    const struct dt_strs *in_nccl_conf; /* names that NCCL's files set here, or NULL */
    uint16_t ras_port; /* where NCCL's processes on this host answer ncclras, or 0: unknown */
};

/* The variables of NCCL for which dtrun has defaults. NCCL prefers its environment to its files, so
 * dtrun must not set a variable that a file sets (in_nccl_conf). */
extern const char *const dt_env_nccl_defaults[]; /* ends with NULL */
/* Lists the files that NCCL reads in the environment of the ranks. */
void dt_env_nccl_files(struct dt_strs *files, const struct dt_strs *env);

/* Returns whether the user sets or removes this variable for ranks, or their host has it. */
bool dt_env_is_decided(const struct dt_msg_start *start, char *const *agent_environ,
                       const char *name);

/* Returns the value that a variable has for ranks unless dtrun sets it, or NULL: it is not set. */
const char *dt_env_given(const struct dt_msg_start *start, char *const *agent_environ,
                         const char *name);

/* Makes the part of the environment that is known before all hosts are ready. */
void dt_env_for_rank(struct dt_strs *env, char *const *agent_environ,
                     const struct dt_env_rank *rank);

/* Adds the rest, which comes with GO. */
void dt_env_at_go(struct dt_strs *env, const struct dt_env_rank *rank, const struct dt_msg_go *go);

#endif
