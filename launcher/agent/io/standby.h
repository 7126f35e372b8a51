/* A thread that gives signs of life while the loop may be blocked, as by a file system that does
 * not respond.
 *
 * The loop encloses what may block in dt_standby_enter and dt_standby_leave, and uses nothing
 * between them that beat() uses, too: beat() runs only between them. No thread is left after
 * dt_standby_stop, so that the process may fork. */
#ifndef DT_AGENT_STANDBY_H
#define DT_AGENT_STANDBY_H

#include <stdint.h>

struct dt_standby;

/* beat: the loop has been blocked for so many ms. It is called four times a second. */
struct dt_standby *dt_standby_create(void (*beat)(void *arg, uint64_t blocked_ms), void *arg);
void dt_standby_enter(struct dt_standby *s);
void dt_standby_leave(struct dt_standby *s);
/* Until the next dt_standby_enter. */
void dt_standby_stop(struct dt_standby *s);

#endif
