/* What is made of times. Pure. */
#ifndef DT_CMD_PERF_CHOICE_H
#define DT_CMD_PERF_CHOICE_H

#include <stddef.h>

void dt_perf_sort(double *values, size_t n); /* from the least on */
/* The least of n values, 1 or more, that so many per cent of them do not exceed. */
double dt_perf_percentile(const double *sorted, size_t n, unsigned percent);
/* low, high: what two ways take at n sizes that grow. Returns for how many of the sizes, from the
 * least, the first way should be taken: then the product of times relative to each other is least.
 * A single time that went wrong moves that little. */
size_t dt_perf_cut(const double *low, const double *high, size_t n);
/* How many times as long one cut takes as another, in the geometric mean over the sizes at which
 * they differ; 1: at none. */
double dt_perf_gain(const double *low, const double *high, size_t n, size_t from, size_t to);
/* How many times as long one way takes as another, by n times of each, 1 or more, taken by turns:
 * the median of the pairs' ratios. What makes the machine slower for a while makes both ways of a
 * pair slower. */
double dt_perf_ratio(const double *us, const double *other, size_t n);
/* What a call takes, by n times, 2 or more, which are sorted: the least but one, for what disturbs
 * makes calls slower. */
double dt_perf_undisturbed(double *us, size_t n);
/* Which of n budgets, that grow, is enough: the least that takes at most a twentieth longer than
 * the best. */
size_t dt_perf_enough(const double *us, size_t n);

#endif
