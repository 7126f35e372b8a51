/* Threads other than the one that runs the loop. */
#ifndef DT_BASE_THREAD_H
#define DT_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread that receives no signals: the loop handles them. Returns 0 or an error code. */
int dt_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
