/* Starts the library's own threads. */
#ifndef DT_BASE_THREAD_H
#define DT_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* The thread blocks all signals, so that the program's threads receive them. False: no thread can
 * be created. */
bool dt_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
