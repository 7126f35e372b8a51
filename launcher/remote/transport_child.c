#include "launcher/remote/transport_child.h"

static struct dt_child *child_of(const struct dt_transport *t)
{
    return ((const struct dt_transport_child *)(const void *)t)->child;
}

void dt_transport_child_write(struct dt_transport *t, const void *bytes, size_t n)
{
    dt_child_write(child_of(t), bytes, n);
}

size_t dt_transport_child_pending(const struct dt_transport *t)
{
    return dt_child_pending(child_of(t));
}

void dt_transport_child_close(struct dt_transport *t)
{
    dt_child_close(child_of(t));
}
