/* The event loop of dtrun and dtrun-agent, which libuv runs without io_uring. */
#ifndef DT_BASE_UVLOOP_H
#define DT_BASE_UVLOOP_H

#include <uv.h>

/* Like uv_loop_init. Call it before any other function of libuv, and before there are threads. */
int dt_uvloop_init(uv_loop_t *loop);

#endif
