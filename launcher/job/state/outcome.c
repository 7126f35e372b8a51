#include "launcher/job/state/outcome.h"

#include <stdlib.h>

void dt_outcome_set_reason(struct dt_outcome *o, char *text)
{
    if (o->reason)
        free(text);
    else
        o->reason = text;
}

void dt_outcome_free(struct dt_outcome *o)
{
    free(o->reason);
}
