#include "launcher/base/printed.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int dt_printed(struct dt_error *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    if (errno != EPIPE)
        return dt_error_set(err, "standard output cannot be written: %s", strerror(errno));
    *err = (struct dt_error){ .exit_code = DT_EXIT_SIGNAL + SIGPIPE };
    return -1;
}
