/* What ranks ask of the PMIx server for MPI_Publish_name, MPI_Comm_connect, sessions and the like:
 * requests that all hosts carry out in the same order (cmd/pmix/names.h). libpmix calls these
 * functions in threads of its own. */
#ifndef DT_CMD_PMIX_REQUESTS_H
#define DT_CMD_PMIX_REQUESTS_H

#include <pmix_server.h>
#include <stdbool.h>

#include "runtime/wire/msg.h"

struct dt_pmixrequests_job { /* what it points to must live as long as the process */
    const struct dt_msg_start *start;
    const char *nspace;
    const uint32_t *node_of;               /* by rank */
    void (*share)(struct dt_msg_share *m); /* sends it to all hosts; any thread may call it */
};

void dt_pmixrequests_init(const struct dt_pmixrequests_job *job);
/* Carries out a SHARE of any host. Returns false if no host can have sent it. */
bool dt_pmixrequests_shared(const struct dt_msg_share *m);

/* Has libpmix's own thread call the function, where it can answer a request. libpmix 4 queues some
 * answers without a lock: if another thread gives one, a rank whose threads make several requests
 * at a time may wait for ever. */
void dt_pmixrequests_call_later(pmix_op_cbfunc_t function, void *arg);

pmix_status_t dt_pmixrequests_publish(const pmix_proc_t *proc, const pmix_info_t info[],
                                      size_t ninfo, pmix_op_cbfunc_t done, void *arg);
pmix_status_t dt_pmixrequests_unpublish(const pmix_proc_t *proc, char **keys,
                                        const pmix_info_t info[], size_t ninfo,
                                        pmix_op_cbfunc_t done, void *arg);
pmix_status_t dt_pmixrequests_look_up(const pmix_proc_t *proc, char **keys,
                                      const pmix_info_t info[], size_t ninfo,
                                      pmix_lookup_cbfunc_t done, void *arg);
pmix_status_t dt_pmixrequests_connect(const pmix_proc_t procs[], size_t nprocs,
                                      const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done,
                                      void *arg);
pmix_status_t dt_pmixrequests_disconnect(const pmix_proc_t procs[], size_t nprocs,
                                         const pmix_info_t info[], size_t ninfo,
                                         pmix_op_cbfunc_t done, void *arg);
pmix_status_t dt_pmixrequests_group(pmix_group_operation_t op, char group[],
                                    const pmix_proc_t procs[], size_t nprocs,
                                    const pmix_info_t info[], size_t ninfo, pmix_info_cbfunc_t done,
                                    void *arg);
/* For a fence of only some ranks. */
pmix_status_t dt_pmixrequests_fence(const pmix_proc_t procs[], size_t nprocs, char *data,
                                    size_t ndata, pmix_modex_cbfunc_t done, void *arg);

#endif
