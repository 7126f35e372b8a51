/* Checks that all hosts see the checkpoint directory that rank 0 sees. All functions are
 * collective. */
#ifndef DT_CHECKPOINT_VISIBLE_H
#define DT_CHECKPOINT_VISIBLE_H

#include "runtime/checkpoint/store.h"

/* Rank 0, which has d open, writes a file there, and the other ranks look for it. DT_ERR_IO names
 * the hosts that do not see it. */
dt_result_t dt_visible_check(const struct dt_store *s, const struct dt_dir *d);
/* The same before anything has been saved, if rank 0 can write there. A directory that does not
 * exist yet is not made: the file is in the nearest one above it. */
dt_result_t dt_visible_check_early(const struct dt_store *s);
/* DT_ERR_IO names the hosts whose ranks pass an errno: they do not see what rank 0 "finds there",
 * for example. DT_OK if all ranks pass 0. */
dt_result_t dt_visible_report(const struct dt_store *s, int error, const char *what);

#endif
