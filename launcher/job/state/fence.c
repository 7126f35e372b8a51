#include "launcher/job/state/fence.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

void dt_fence_begin(struct dt_fence *f, uint32_t nodes)
{
    dt_fence_free(f);
    f->nodes = nodes;
    f->has_come = dt_xcalloc(nodes, sizeof *f->has_come);
}

bool dt_fence_come(struct dt_fence *f, uint32_t node, const void *data, size_t n)
{
    if (node >= f->nodes || f->has_come[node])
        return false;
    f->has_come[node] = true;
    dt_strbuf_add(&f->data, data, n);
    return ++f->here == f->nodes;
}

void dt_fence_next(struct dt_fence *f)
{
    dt_strbuf_free(&f->data);
    memset(f->has_come, 0, f->nodes * sizeof *f->has_come);
    f->here = 0;
}

void dt_fence_free(struct dt_fence *f)
{
    dt_strbuf_free(&f->data);
    free(f->has_come);
    *f = (struct dt_fence){ 0 };
}
