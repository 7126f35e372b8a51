/* For LD_PRELOAD: on rank 1 no receive from rank 2 can start, as if no thread could be created for
 * it. At its end the process prints how many requests it started without waiting for them. */
#include <dlfcn.h>
#include <stdio.h>

#include "runtime/dtrun.h"

static unsigned open_requests;

dt_result_t dt_irecv(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_request_t *request)
{
    dt_result_t (*receive)(dt_comm_t *, void *, size_t, dt_dtype_t, int, dt_request_t *);

    if (dt_rank() == 1 && peer == 2)
        return DT_ERR_NOMEM;
    *(void **)&receive = dlsym(RTLD_NEXT, "dt_irecv");
    open_requests++;
    return receive(comm, buf, count, dtype, peer, request);
}

dt_result_t dt_isend(dt_comm_t *comm, const void *buf, size_t count, dt_dtype_t dtype, int peer,
                     dt_request_t *request)
{
    dt_result_t (*send)(dt_comm_t *, const void *, size_t, dt_dtype_t, int, dt_request_t *);

    *(void **)&send = dlsym(RTLD_NEXT, "dt_isend");
    open_requests++;
    return send(comm, buf, count, dtype, peer, request);
}

dt_result_t dt_wait_all(dt_request_t *requests, size_t n)
{
    dt_result_t (*wait)(dt_request_t *, size_t);

    *(void **)&wait = dlsym(RTLD_NEXT, "dt_wait_all");
    for (size_t i = 0; i < n; i++)
        open_requests -= requests[i].id != 0;
    return wait(requests, n);
}

__attribute__((destructor)) static void tell(void)
{
    fprintf(stderr, "requests that were not waited for: %u\n", open_requests);
}
