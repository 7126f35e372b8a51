/* The event loop of dtrun and dtrun-agent, which libuv runs without io_uring. */
#ifndef DT_BASE_UVLOOP_H
#define DT_BASE_UVLOOP_H

#include <uv.h>

/* Like uv_loop_init, but returns an error where that would abort. Call it before any other function
 * of libuv, and before there are threads. */
int dt_uvloop_init(uv_loop_t *loop);

/* For uv_read_start. All streams share one buffer: the callback that reads must be done with its
 * content when it returns. */
void dt_uvloop_give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);

/* For uv_close: frees the object that the handle's data points to. */
void dt_uvloop_free_data(uv_handle_t *handle);

#endif
