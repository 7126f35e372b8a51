#include "launcher/hosts/duplicate_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

struct named {
    const char *identity;
    size_t index;
};

static int compare(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->identity, y->identity);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

void dt_duplicate_hosts_find(const char *const *identities, size_t n, size_t *first)
{
    struct named *v = dt_xcalloc(n, sizeof *v);
    size_t known = 0;

    for (size_t i = 0; i < n; i++) {
        first[i] = i;
        if (identities[i])
            v[known++] = (struct named){ identities[i], i };
    }
    qsort(v, known, sizeof *v, compare);
    for (size_t i = 1; i < known; i++)
        if (strcmp(v[i].identity, v[i - 1].identity) == 0)
            first[v[i].index] = first[v[i - 1].index];
    free(v);
}
