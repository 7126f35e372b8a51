#include "cmd/similar.h"

#include <string.h>

enum { LENGTH_MAX = 31 };

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;

    return ab < c ? ab : c;
}

size_t dt_similar_distance(const char *a, size_t n, const char *b)
{
    size_t m = strlen(b), row[LENGTH_MAX + 1];

    if (n > LENGTH_MAX || m > LENGTH_MAX)
        return (size_t)-1;
    for (size_t k = 0; k <= m; k++)
        row[k] = k;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t k = 1; k <= m; k++) {
            size_t replaced = diagonal + (a[i - 1] != b[k - 1]);

            diagonal = row[k];
            row[k] = smallest(row[k] + 1, row[k - 1] + 1, replaced);
        }
    }
    return row[m];
}

bool dt_similar_same(const char *name, const char *word, size_t n)
{
    size_t i = 0;

    for (; i < n && name[i] && name[i] != '*'; i++)
        if (name[i] != (word[i] == '_' ? '-' : word[i]))
            return false;
    return name[i] == '*' || (i == n && !name[i]);
}
