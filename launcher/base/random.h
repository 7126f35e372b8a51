/* Random numbers for secrets and names. */
#ifndef DT_BASE_RANDOM_H
#define DT_BASE_RANDOM_H

#include <stddef.h>

/* n is at most 256. Ends the process, saying why, if the system has no random numbers. */
void dt_random_fill(void *data, size_t n);

#endif
