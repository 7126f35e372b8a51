/* Statistics of times. Pure. */
#ifndef DT_CMD_PERF_CHOICE_H
#define DT_CMD_PERF_CHOICE_H

#include <stddef.h>

void dt_perf_sort(double *values, size_t n); /* in ascending order */
/* Returns the smallest of the n values (at least 1) that at least "percent" per cent of them do not
 * exceed. */
double dt_perf_percentile(const double *sorted, size_t n, unsigned percent);
/* low and high are the times of two algorithms at n increasing sizes. Returns for how many of the
 * smallest sizes the first algorithm should be used, such that the product of the relative times is
 * minimal. A single outlier has little effect. */
size_t dt_perf_cut(const double *low, const double *high, size_t n);
/* Returns how many times as long one cut takes as another: the geometric mean over the sizes at
 * which they differ, or 1 if there are none. */
double dt_perf_gain(const double *low, const double *high, size_t n, size_t from, size_t to);
/* Returns how many times as long one algorithm takes as another, from n times of each, at least 1,
 * measured alternately: the median of the pairs' ratios. What makes the machine slower for a while
 * makes both times of a pair longer. */
double dt_perf_ratio(const double *us, const double *other, size_t n);
/* Returns the time of an undisturbed call, from n times, at least 2, which it sorts: the second
 * smallest, because disturbances make calls slower. */
double dt_perf_undisturbed(double *us, size_t n);
/* Returns which of n increasing budgets is sufficient: the smallest that takes at most a twentieth
 * longer than the best. */
size_t dt_perf_enough(const double *us, size_t n);

#endif
