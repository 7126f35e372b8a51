/* Runs ssh -G, which evaluates the user's SSH settings for one host. */
#ifndef DT_REMOTE_SSHASK_H
#define DT_REMOTE_SSHASK_H

#include <uv.h>

#include "launcher/remote/ssh/sshconfig.h"

/* The callee frees config, which is meaningless after a cancel. err->text is not empty if ssh
 * refused (for a mistake in the configuration file) or did not answer. */
typedef void (*dt_sshask_f)(void *arg, struct dt_sshconfig *config, const struct dt_error *err);

struct dt_sshask;
/* Asks for a limited time. Calls done once, from the loop. */
struct dt_sshask *dt_sshask_start(uv_loop_t *loop, const struct dt_host *host, dt_sshask_f done,
                                  void *arg);
void dt_sshask_cancel(struct dt_sshask *a); /* done follows soon */

#endif
