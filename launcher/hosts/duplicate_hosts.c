#include "launcher/hosts/duplicate_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

struct named {
    const char *identity;
    size_t index;
};

static int compare_identities(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->identity, y->identity);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

size_t *dt_duplicate_hosts_find(size_t n, dt_identity_f identity, const void *arg)
{
    struct named *v = dt_xcalloc(n, sizeof *v);
    size_t *first = dt_xcalloc(n, sizeof *first), known = 0;

    for (size_t i = 0; i < n; i++) {
        first[i] = i;
        v[known] = (struct named){ identity(arg, i), i };
        known += v[known].identity != NULL;
    }
    qsort(v, known, sizeof *v, compare_identities);
    for (size_t i = 1; i < known; i++)
        if (strcmp(v[i].identity, v[i - 1].identity) == 0)
            first[v[i].index] = first[v[i - 1].index];
    free(v);
    return first;
}
