#include "launcher/job/state/fence.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

void dt_fence_begin(struct dt_fence *f, uint32_t nodes)
{
    dt_fence_free(f);
    f->nodes = nodes;
    f->has_arrived = dt_xcalloc(nodes, sizeof *f->has_arrived);
}

bool dt_fence_arrive(struct dt_fence *f, uint32_t node, const void *data, size_t n)
{
    if (node >= f->nodes || f->has_arrived[node])
        return false;
    f->has_arrived[node] = true;
    dt_strbuf_add(&f->data, data, n);
    return ++f->arrived == f->nodes;
}

void dt_fence_next(struct dt_fence *f)
{
    dt_strbuf_free(&f->data);
    memset(f->has_arrived, 0, f->nodes * sizeof *f->has_arrived);
    f->arrived = 0;
}

void dt_fence_free(struct dt_fence *f)
{
    dt_strbuf_free(&f->data);
    free(f->has_arrived);
    *f = (struct dt_fence){ 0 };
}
