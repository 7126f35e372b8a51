#include "runtime/checkpoint/group.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/error.h"

struct verdict {
    int64_t result;
    int64_t rank; /* the rank that caused it */
    int64_t error;
    char text[DT_ERROR_TEXT];
};

dt_result_t dt_group_agree(const struct dt_group *g, dt_result_t mine)
{
    int64_t culprit = mine == DT_OK ? INT64_MAX : (int64_t)g->rank;
    const dt_error_info_t *error = dt_error_details();
    struct verdict v = { .result = mine,
                         .rank = error->rank >= 0 ? error->rank : (int64_t)g->rank,
                         .error = error->error };
    dt_result_t result = g->min(g->ctx, &culprit, 1);

    if (result != DT_OK || culprit == INT64_MAX)
        return result;
    if (g->size > 1 && strncmp(dt_last_error(), "rank ", strlen("rank ")) != 0)
        snprintf(v.text, sizeof v.text, "rank %u: %.480s", g->rank, dt_last_error());
    else
        snprintf(v.text, sizeof v.text, "%s", dt_last_error());
    result = g->broadcast(g->ctx, &v, sizeof v, (uint32_t)culprit);
    if (result != DT_OK)
        return result;
    v.text[sizeof v.text - 1] = '\0';
    dt_fail((dt_result_t)v.result, "%s", v.text);
    dt_error_details()->rank = (int)v.rank;
    dt_error_details()->error = (int)v.error;
    return (dt_result_t)v.result;
}
