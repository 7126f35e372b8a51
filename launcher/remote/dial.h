/* Resolves a name and connects to the first of its addresses that answers. */
#ifndef DT_REMOTE_DIAL_H
#define DT_REMOTE_DIAL_H

#include <uv.h>

#include "launcher/base/error.h"

struct dt_dial;

/* tcp is connected, and the callee must uv_close and then free it. It is NULL, with err "resolve:
 * ..." or "connect: ...", after a failure or a cancel. The dial is freed after the call. */
typedef void (*dt_dial_f)(void *arg, uv_tcp_t *tcp, const struct dt_error *err);

/* Each address gets timeout_s. Calls done once, from the loop. */
struct dt_dial *dt_dial_open(uv_loop_t *loop, const char *hostname, int port, int timeout_s,
                             dt_dial_f done, void *arg);
void dt_dial_cancel(struct dt_dial *d);             /* done follows soon */
const char *dt_dial_phase(const struct dt_dial *d); /* "resolve" or "connect" */

#endif
