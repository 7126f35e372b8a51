/* Threads of the library's own inside the program. */
#ifndef DT_BASE_THREAD_H
#define DT_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* With all signals blocked: these are the program's, and its own threads take them. False: there
 * can be none. */
bool dt_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
