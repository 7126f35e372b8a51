/* Random numbers for secrets, names and pauses. */
#ifndef DT_BASE_RANDOM_H
#define DT_BASE_RANDOM_H

#include <stddef.h>

/* n is at most 256. If the system has no random numbers, ends the process with a message. */
void dt_random_fill(void *data, size_t n);

#endif
