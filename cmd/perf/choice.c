#include "cmd/perf/choice.h"

#include <math.h>
#include <stdlib.h>

static double cost(const double *low, const double *high, size_t n, size_t cut)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += log(i < cut ? low[i] : high[i]);
    return sum;
}

size_t dt_perf_cut(const double *low, const double *high, size_t n)
{
    size_t best = 0;

    for (size_t cut = 1; cut <= n; cut++) {
        if (cost(low, high, n, cut) < cost(low, high, n, best))
            best = cut;
    }
    return best;
}

double dt_perf_gain(const double *low, const double *high, size_t n, size_t from, size_t to)
{
    double differ = from < to ? (double)(to - from) : (double)(from - to);

    return from == to ? 1 : exp((cost(low, high, n, from) - cost(low, high, n, to)) / differ);
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

void dt_perf_sort(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
}

double dt_perf_percentile(const double *sorted, size_t n, unsigned percent)
{
    return sorted[(n * percent + 99) / 100 - 1];
}

double dt_perf_ratio(const double *us, const double *other, size_t n)
{
    double ratios[n];
    size_t i = 0;

    do {
        ratios[i] = us[i] / other[i];
    } while (++i < n);
    dt_perf_sort(ratios, n);
    return (ratios[(n - 1) / 2] + ratios[n / 2]) / 2;
}

double dt_perf_undisturbed(double *us, size_t n)
{
    dt_perf_sort(us, n);
    return us[1];
}

size_t dt_perf_enough(const double *us, size_t n)
{
    double least = us[0];
    size_t i = 0;

    for (size_t k = 1; k < n; k++)
        least = us[k] < least ? us[k] : least;
    while (us[i] > 1.05 * least)
        i++;
    return i;
}
