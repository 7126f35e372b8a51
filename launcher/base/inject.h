/* The faults that --inject asks for, so that users can test how their job recovers:
 *
 *     kill:rank=R[,step=N|,after=SECONDS]     SIGKILL to the rank
 *     stop:rank=R[,step=N|,after=SECONDS]     SIGSTOP to the rank
 *     exit:rank=R,step=N[,code=C]             the rank exits with C (default 1)
 *     agent:node=K|rank=R[,step=N|,after=S]   agent and ranks of a host vanish at once
 *     host:node=K|rank=R[,step=N|,after=S]    the same, and the host does not come back
 *
 * Each also takes restart=K: only after the K-th restart (0: in the first run). A fault without
 * step and after is triggered as soon as the ranks run. With step=N it is triggered inside the
 * rank's dt_step call that reaches step N, before the call returns. dtrun and dtrun-agent parse the
 * text with the same function. Pure. */
#ifndef DT_BASE_INJECT_H
#define DT_BASE_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/base/error.h"
#include "runtime/wire/codec.h"

enum dt_inject_kind {
    DT_INJECT_KILL,
    DT_INJECT_STOP,
    DT_INJECT_EXIT,
    DT_INJECT_HOST,
    DT_INJECT_AGENT
};

struct dt_inject {
    enum dt_inject_kind kind;
    int64_t rank;     /* -1: not given (HOST and AGENT with node=) */
    int64_t node;     /* HOST, AGENT: the host's node rank; -1: the host that runs the rank */
    int64_t step;     /* -1: not given */
    int64_t after_ms; /* -1: not given */
    int64_t restart;  /* -1: not given */
    int code;         /* EXIT: the exit code */
};

/* Returns 0, or -1 with what is wrong with text in err (exit code 2). */
int dt_inject_parse(struct dt_inject *fault, const char *text, struct dt_error *err);

/* Returns whether the fault ends all ranks of a host at once (HOST and AGENT). */
bool dt_inject_takes_all_ranks(const struct dt_inject *fault);
/* Returns whether the fault concerns the host with this node rank and these ranks. */
bool dt_inject_concerns(const struct dt_inject *fault, uint32_t node_rank,
                        const struct dt_u32s *ranks);

#endif
