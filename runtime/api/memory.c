/* The public calls for memory that all ranks of a host can reach. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/api/context.h"
#include "runtime/base/error.h"
#include "runtime/comm/collective.h"
#include "runtime/comm/error_report.h"
#include "runtime/shm/segment.h"

/* Returns this rank's block; NULL: see errno. */
static void *open_own_block(struct dt_comm *c, size_t bytes)
{
    struct dt_segment_kind kind = { .comm = c->id, .me = c->shm.me, .n = c->shm.n, .bytes = bytes };
    size_t total = dt_segment_total(kind.n, bytes);
    void *block;
    int fd = -1;

    errno = ENOMEM;
    if (total == 0)
        return NULL;
    if (kind.n > 1)
        fd = dt_agentlink_want_segment(&c->world->agent, c->id, c->calls, total, kind.n,
                                       &kind.number);
    if (kind.n > 1 && fd < 0)
        return NULL;
    block = dt_segment_open(&kind, fd);
    if (fd >= 0) {
        int error = errno;

        close(fd);
        errno = error;
    }
    return block;
}

static dt_result_t report_no_memory(const struct dt_comm *c, size_t bytes, int rank, int error)
{
    char name[DT_WORLD_NAME];
    dt_result_t r = dt_fail(DT_ERR_NOMEM,
                            "dt_mem_alloc: %s cannot have %zu bytes for each rank of the "
                            "communicator on its host: %s",
                            dt_world_name(c->world, c->ranks[rank], name), bytes, strerror(error));
    dt_error_info_t *e = dt_error_details();

    e->rank = (int)c->ranks[rank];
    e->call = c->calls;
    dt_comm_name(c->id, e->comm);
    dt_error_report_call(DT_CALL_ALLOC);
    snprintf(e->host, sizeof e->host, "%s", dt_world_host(c->world, c->ranks[rank]));
    e->error = rank == c->rank ? error : 0;
    return r;
}

/* All ranks get the memory, or none does. */
static dt_result_t agree_on_success(struct dt_comm *c, size_t bytes, void *block, int error)
{
    uint64_t *errors = calloc((size_t)c->size, sizeof *errors);
    dt_result_t r;

    if (!errors)
        return dt_comm_fail_no_memory(c);
    errors[c->rank] = block ? 0 : (uint64_t)error;
    r = dt_comm_all_gather_table(c, DT_CALL_ALLOC, errors, sizeof *errors);
    for (int rank = 0; r == DT_OK && rank < c->size; rank++) {
        if (errors[rank])
            r = report_no_memory(c, bytes, rank, (int)errors[rank]);
    }
    free(errors);
    return r;
}

static dt_result_t allocate_for_all(struct dt_comm *c, size_t bytes, void **p)
{
    const struct dt_call call = { .count = bytes, .dtype = DT_U8, .root = -1 };
    dt_result_t r = dt_comm_match(c, DT_CALL_ALLOC, call);
    void *block;

    if (r != DT_OK || bytes == 0)
        return r;
    dt_segment_sweep();
    block = open_own_block(c, bytes);
    r = agree_on_success(c, bytes, block, errno ? errno : ENOMEM);
    if (r == DT_OK) {
        dt_segment_populate(block);
        *p = block;
    } else {
        dt_segment_discard(block);
    }
    return r;
}

dt_result_t dt_mem_alloc(dt_comm_t *comm, size_t bytes, void **p)
{
    struct dt_comm *c;
    dt_result_t r;

    if (!p)
        return dt_fail(DT_ERR_ARG, "dt_mem_alloc: the pointer to the memory is NULL");
    *p = NULL;
    r = dt_context_enter("dt_mem_alloc", comm, &c);
    if (r != DT_OK)
        return r;
    r = allocate_for_all(c, bytes, p);
    dt_context_leave(c);
    return r;
}

dt_result_t dt_mem_free(void *p)
{
    dt_result_t r = dt_context_check_process("dt_mem_free");

    if (r != DT_OK || !p || dt_segment_free(p))
        return r;
    return dt_fail(DT_ERR_ARG,
                   "dt_mem_free: %p was not allocated by dt_mem_alloc, or has been freed", p);
}
