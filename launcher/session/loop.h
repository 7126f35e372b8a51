/* The event loop of dtrun. */
#ifndef DT_SESSION_LOOP_H
#define DT_SESSION_LOOP_H

#include <uv.h>

/* Ends the process, saying why, where there can be none: nothing has been started yet. */
void dt_loop_open(uv_loop_t *loop);

#endif
