#include "launcher/job/waits.h"

#include "launcher/base/mem.h"
#include "runtime/wire/hostshm.h"

static bool inside(const struct dt_wait *w)
{
    return !w->ended && (w->call & DT_HOSTSHM_INSIDE);
}

void dt_wait_note(struct dt_wait *w, uint64_t call, bool stopped, uint64_t now_ns)
{
    if (w->call != call || w->since_ns == 0)
        w->since_ns = now_ns;
    w->seen_ns = now_ns;
    w->call = call;
    w->stopped = stopped;
}

int dt_wait_longest(const struct dt_wait *w, uint32_t np)
{
    int longest = -1;

    for (uint32_t i = 0; i < np; i++) {
        if (inside(&w[i]) && !w[i].stopped && (longest < 0 || w[i].since_ns < w[longest].since_ns))
            longest = (int)i;
    }
    return longest;
}

double dt_wait_seconds(const struct dt_wait *w, uint32_t np, uint32_t who)
{
    uint64_t known_ns = w[who].seen_ns;

    for (uint32_t i = 0; i < np; i++) {
        if (!w[i].ended && w[i].seen_ns < known_ns)
            known_ns = w[i].seen_ns;
    }
    return known_ns > w[who].since_ns ? (double)(known_ns - w[who].since_ns) / 1e9 : 0;
}

static bool has_not_come(const struct dt_wait *w, const struct dt_wait *who)
{
    return !w->ended && !inside(w) &&
           dt_hostshm_call_number(w->call) < dt_hostshm_call_number(who->call);
}

static bool holds_up(const struct dt_wait *w, const struct dt_wait *who)
{
    return inside(w) && w->stopped &&
           dt_hostshm_call_number(w->call) <= dt_hostshm_call_number(who->call);
}

static bool is_with(const struct dt_wait *w, const struct dt_wait *who)
{
    return inside(w) && !w->stopped &&
           dt_hostshm_call_number(w->call) == dt_hostshm_call_number(who->call);
}

void dt_wait_for_whom(const struct dt_wait *w, uint32_t np, uint32_t who, struct dt_u32s *list)
{
    *list = (struct dt_u32s){ dt_xcalloc(np, sizeof *list->v), 0 };
    for (uint32_t i = 0; i < np; i++) {
        if (has_not_come(&w[i], &w[who]))
            list->v[list->n++] = i;
    }
    for (uint32_t i = 0, late = list->n; i < np && late == 0; i++) {
        if (holds_up(&w[i], &w[who]))
            list->v[list->n++] = i;
    }
}

void dt_wait_with(const struct dt_wait *w, uint32_t np, uint32_t who, struct dt_u32s *list)
{
    *list = (struct dt_u32s){ dt_xcalloc(np, sizeof *list->v), 0 };
    for (uint32_t i = 0; i < np; i++) {
        if (is_with(&w[i], &w[who]))
            list->v[list->n++] = i;
    }
}
