/* dtrun as the first process of a container. The kernel gives such a process every orphan of the
 * container, and discards signals for which it has no handler. */
#ifndef DT_CMD_FIRSTPROCESS_H
#define DT_CMD_FIRSTPROCESS_H

/* Call this in main before anything else is started. In the first process of a PID namespace it
 * forks. The child returns; the first process passes signals on to it, reaps all that end, and
 * exits as the child does. Anywhere else, and if there can be no child, it returns at once. */
void dt_first_process(void);

#endif
