/* Files in /dev/shm that ranks which died inside NCCL's start have left behind.
 *
 * NCCL makes such a file, opens or maps it in other ranks by its name, and removes the name when
 * all have it. As long as a living process needs the name, the process that made the file has it
 * open or mapped for writing. */
#ifndef DT_AGENT_SWEEP_NCCLFILES_H
#define DT_AGENT_SWEEP_NCCLFILES_H

#include <stdbool.h>
#include <stddef.h>

#define DT_NCCLFILES_DIR "/dev/shm"

/* Returns whether NCCL gives such a name to a file. Pure. */
bool dt_ncclfiles_is_name(const char *name);

/* Removes NCCL's files from the directory, except those of other users and those that any process
 * of this machine has open or mapped for writing. Returns how many it has removed. If the kernel
 * cannot tell who has a file, it stays. Calls alive, unless it is NULL, after each file of NCCL: a
 * large one takes milliseconds. */
size_t dt_ncclfiles_remove(const char *dir, void (*alive)(void *arg), void *arg);

#endif
