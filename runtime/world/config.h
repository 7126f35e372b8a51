/* The settings of this process from dt_init on. They come from the program (dt_config_t).
 * Environment variables, which the user sets, override them. */
#ifndef DT_WORLD_CONFIG_H
#define DT_WORLD_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/gpupath.h"
#include "runtime/dtrun.h"

/* Calls that each ring of the flight recorder holds: default and maximum. */
enum { DT_RECORDER_CALLS = 64, DT_RECORDER_MOST = 65536 };

struct dt_settings {
    bool deterministic;
    bool shows_memory; /* lets the other ranks of the host read and write its memory (shm/cma.h) */
    enum dt_gpu_path gpu_path; /* how the user wants calls on GPU memory to be executed */
    uint32_t nccl_init_s;      /* seconds for NCCL to connect; 0: depends on the number of ranks */
    bool program_order;        /* all ranks make their calls on GPU memory in one order */
    bool splits_nccl;          /* dt_comm_split may split NCCL's communicator, too */
    uint32_t recorder_calls;
    char recorder[PATH_MAX]; /* absolute path of the directory for dumps; "": none */
    bool recorder_is_off;    /* failures are neither reported nor dumped */
};

/* Reads the program's configuration and the environment. Sets the instruction set and the wire
 * format directly, as their own parts keep them. given NULL: the program asks for nothing. */
dt_result_t dt_config_read(const dt_config_t *given, struct dt_settings *s);
/* Reads a variable that is 0, 1, or not set. */
dt_result_t dt_config_switch(const char *name, bool otherwise, bool *on);

#endif
