/* Resolving a name and connecting to the first of its addresses that answers. */
#ifndef DT_REMOTE_DIAL_H
#define DT_REMOTE_DIAL_H

#include <uv.h>

#include "launcher/base/error.h"

struct dt_dial;

/* tcp: connected, the callee's to uv_close and then free; NULL with err "resolve: ..." or "connect:
 * ..." (also after a cancel). The dial is freed after it. */
typedef void (*dt_dial_f)(void *arg, uv_tcp_t *tcp, const struct dt_error *err);

/* Each address gets timeout_s. done is called once, from the loop. */
struct dt_dial *dt_dial_open(uv_loop_t *loop, const char *hostname, int port, int timeout_s,
                             dt_dial_f done, void *arg);
void dt_dial_cancel(struct dt_dial *d);             /* done comes soon */
const char *dt_dial_phase(const struct dt_dial *d); /* "resolve" or "connect" */

#endif
