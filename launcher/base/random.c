#include "launcher/base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "launcher/base/error.h"
#include "launcher/base/log.h"

void dt_random_fill(void *data, size_t n)
{
    if (getrandom(data, n, 0) == (ssize_t)n)
        return;
    dt_say("no random numbers from the system: %s", strerror(errno));
    exit(DT_EXIT_LAUNCH);
}
