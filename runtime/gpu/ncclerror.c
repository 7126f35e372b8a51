#include "runtime/gpu/ncclerror.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/comm.h"
#include "runtime/gpu/device/wait.h"
#include "runtime/gpu/nvidia/ncclapi.h"
#include "runtime/gpu/nvidia/remedy.h"

enum {
    /* how long a rank waits for what has stopped others: NCCL may notice a lost rank before the
     * agent, and a rank that NCCL tells of another's failure may notice before that one */
    CAUSE_MS = 1500,
    REMOTE_CAUSE_MS = 2500,
};

static bool may_come_of_others(ncclResult_t error)
{
    return error == ncclRemoteError || error == ncclSystemError || error == ncclInternalError ||
           error == ncclUnhandledCudaError;
}

/* Waits for another rank's or the agent's report, so that a survivor does not blame itself. */
static dt_result_t await_cause(struct dt_comm *c, ncclResult_t error)
{
    unsigned ms = error == ncclRemoteError ? REMOTE_CAUSE_MS : CAUSE_MS;
    uint64_t until = dt_clock_ns() + (uint64_t)ms * 1000000;
    dt_result_t r = DT_OK;

    for (unsigned turn = 0; r == DT_OK && dt_clock_ns() < until; turn++)
        r = dt_gpu_wait_on(c, NULL, turn);
    return r;
}

const char *dt_nccl_way_around(const char *function)
{
    return strcmp(function, "ncclCommSplit") == 0 ? "; DTRUN_NCCL_SPLIT=0 does without this call"
                                                  : "";
}

/* Leaves NCCL's advice out: "unhandled system error (run with NCCL_DEBUG=INFO for details)". */
const char *dt_nccl_describe(const char *function, ncclResult_t error, char text[DT_NCCL_TEXT])
{
    const char *means = dt_nccl()->ncclGetErrorString(error);
    const char *said = dt_nccl()->ncclGetLastError(NULL);
    const char *advice = strstr(means, " (run with");

    snprintf(text, DT_NCCL_TEXT, "%s: %.*s (%s, %d)%s%.200s: %s%s", function,
             (int)(advice ? advice - means : 100), means, dt_nccl_error_name(error), (int)error,
             said && *said ? ": " : "", said ? said : "", dt_nccl_remedy(said ? said : ""),
             dt_nccl_way_around(function));
    return text;
}

dt_result_t dt_ncclerror(struct dt_comm *c, const char *function, ncclResult_t error)
{
    dt_result_t cause = may_come_of_others(error) ? await_cause(c, error) : DT_OK;
    char text[DT_NCCL_TEXT];

    if (cause != DT_OK)
        return cause;
    dt_fail(DT_ERR_NCCL, "%s", dt_nccl_describe(function, error, text));
    dt_coll_error(&c->coll_error, DT_ERR_NCCL, (uint32_t)c->world->rank);
    c->coll_error.why = dt_last_error();
    return DT_ERR_NCCL;
}
