/* Checks that all hosts see the checkpoint directory that rank 0 sees. All functions are
 * collective. */
#ifndef DT_CHECKPOINT_VISIBLE_H
#define DT_CHECKPOINT_VISIBLE_H

#include "runtime/checkpoint/store.h"

/* Rank 0, which has d open, writes a file there, and the other ranks look for it. DT_ERR_IO names
 * the hosts that do not see it. */
dt_result_t dt_visible_check(const struct dt_store *s, const struct dt_dir *d);
/* DT_ERR_IO names the hosts whose ranks pass an errno: they do not see what rank 0 "writes" or
 * "finds" there (verb). DT_OK if all ranks pass 0. */
dt_result_t dt_visible_report(const struct dt_store *s, int error, const char *verb);

#endif
