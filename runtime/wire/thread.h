/* Starts the threads of the launcher, the agent and the library. */
#ifndef DT_WIRE_THREAD_H
#define DT_WIRE_THREAD_H

#include <pthread.h>

/* As pthread_create, but the thread blocks all signals, so that the launcher's loop or the
 * program's own threads receive them. Returns 0 or an error number. */
int dt_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
