/* A thread that sends signs of life while the loop may be blocked, for example by a file system
 * that does not respond.
 *
 * The loop calls dt_standby_enter before and dt_standby_leave after what may block. In between it
 * uses nothing that beat() also uses, because beat() runs only then. No thread is left after
 * dt_standby_stop, so that the process may fork. */
#ifndef DT_AGENT_IO_STANDBY_H
#define DT_AGENT_IO_STANDBY_H

#include <stdint.h>

struct dt_standby;

/* Calls beat four times a second while the loop has been blocked, with what blocks it and for how
 * long. */
struct dt_standby *dt_standby_create(void (*beat)(void *arg, const char *what, uint64_t ms),
                                     void *arg);
void dt_standby_enter(struct dt_standby *s, const char *what);
void dt_standby_leave(struct dt_standby *s);
/* Ends the thread until the next dt_standby_enter. */
void dt_standby_stop(struct dt_standby *s);

#endif
