/* The checks of the GPU kit, each of which runs as a job of its own (tests/gpu/run). A check prints
 * what it has measured to standard output, as a line that begins with "= ". */
#ifndef TESTS_GPU_PROBE_H
#define TESTS_GPU_PROBE_H

/* check.c: what the machine has, and what calls leave unchanged */
void probe_found(const char *arg);
void probe_has(const char *arg);
void probe_nccl(const char *arg);
void probe_kinds(const char *arg);
void probe_contexts(const char *arg);
void probe_reset(const char *arg);
void probe_held(const char *arg);
void probe_burst(const char *arg);
void probe_behind(const char *arg);
void probe_kernel(const char *arg);
void probe_error(const char *arg);

/* failures.c */
void probe_kill(const char *arg);
void probe_killlarge(const char *arg);
void probe_grace(const char *arg);
void probe_abort(const char *arg);
void probe_endless(const char *arg);

/* speed.c */
void probe_raw(const char *arg);
void probe_modes(const char *arg);
void probe_small(const char *arg);
void probe_enqueue(const char *arg);
void probe_bandwidth(const char *arg);
void probe_checkpoint(const char *arg);
void probe_init(const char *arg);
void probe_orders(const char *arg);
void probe_overlap(const char *arg);
void probe_buckets(const char *arg);
void probe_isave(const char *arg);

#endif
