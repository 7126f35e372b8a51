/* What holds for a process from dt_init on: what the program asks for (dt_config_t), unless who
 * started it says otherwise in the environment. */
#ifndef DT_WORLD_CONFIG_H
#define DT_WORLD_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/gpuway.h"
#include "runtime/dtrun.h"

/* Calls that each ring of the flight recorder holds: the default, and the most. */
enum { DT_RECORDER_CALLS = 64, DT_RECORDER_MOST = 65536 };

struct dt_settings {
    bool deterministic;
    bool shows_memory;       /* to the other ranks of the host (host/cma.h) */
    enum dt_gpu_way gpu_way; /* of calls on GPU memory: the user's wish */
    uint32_t nccl_init_s;    /* for NCCL to connect; 0: by the number of ranks */
    uint32_t recorder_calls;
    char recorder[PATH_MAX]; /* absolute: the directory of dumps; "": none */
    bool recorder_is_off;    /* nothing is told of a failure */
};

/* Reads both, and chooses what others keep for themselves: instruction set and wire format. given
 * may be NULL: the program asks for nothing. */
dt_result_t dt_config_read(const dt_config_t *given, struct dt_settings *s);

#endif
