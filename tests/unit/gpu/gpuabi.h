#ifndef TESTS_UNIT_GPU_GPUABI_H
#define TESTS_UNIT_GPU_GPUABI_H

struct fact {
    const char *name;
    unsigned long long value;
};

/* Facts from the real headers (none if there are no such headers), and the functions whose types
 * differ from ours. */
extern const struct fact real_facts[];
extern const struct fact real_config[]; /* version, size and offsets of ncclConfig_t */
extern const char *const unlike_functions[];
extern const int have_real_headers;

#endif
