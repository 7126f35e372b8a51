/* Ranks that never come to a collective call, although they live: the others would wait for ever.
 * The user is told who waits for whom; when --collective-timeout is over, the calls return
 * DT_ERR_TIMEOUT and the rank that has not come counts as lost. */
#include <inttypes.h>
#include <stdlib.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"
#include "launcher/job/words.h"
#include "runtime/wire/hostshm.h"

enum { WARN_S = 60, WHOM_MAX = 4 }; /* that are described one by one */

static void add_call(struct dt_strbuf *out, uint64_t call)
{
    dt_strbuf_printf(out, "%s (call %" PRIu64 ")", dt_hostshm_call_name(call),
                     dt_hostshm_call_number(call));
}

static void add_whom(const struct dt_job *j, uint32_t rank, struct dt_strbuf *out)
{
    const struct dt_plan_node *node = dt_plan_node_of(&j->plan, (int)rank);
    const struct dt_wait *w = &j->waits[rank];

    dt_strbuf_printf(out, "rank %u (%s, pid %u), which %s", rank, dt_job_host_name(j, node->host),
                     j->ranks[rank].pid, w->stopped ? "is stopped by a signal and " : "");
    if (w->call == 0) {
        dt_strbuf_puts(out, "has not called dt_init");
        return;
    }
    dt_strbuf_puts(out, w->call & DT_HOSTSHM_INSIDE ? "is in " : "was last in ");
    add_call(out, w->call);
}

/* "ranks 0-2 have waited 10 s in all-reduce (call 7) for rank 3 (b, pid 77), which ..." */
static void describe(const struct dt_job *j, uint32_t who, double seconds,
                     const struct dt_u32s *whom, struct dt_strbuf *out)
{
    struct dt_u32s with;

    dt_wait_with(j->waits, j->np, who, &with);
    dt_words_ranks(out, &with);
    dt_strbuf_puts(out, with.n == 1 ? " has waited " : " have waited ");
    dt_words_duration(out, seconds);
    dt_strbuf_puts(out, " in ");
    add_call(out, j->waits[who].call);
    if (whom->n == 0)
        dt_strbuf_puts(out, ", to which every rank has come: does the network stall?");
    for (uint32_t i = 0; i < whom->n && i < WHOM_MAX; i++) {
        dt_strbuf_puts(out, i ? "; " : " for ");
        add_whom(j, whom->v[i], out);
    }
    if (whom->n > WHOM_MAX)
        dt_strbuf_printf(out, "; and %u more", whom->n - WHOM_MAX);
    free(with.v);
}

/* Whom nothing tells apart from those who wait is not blamed: then the one who waits is. */
static void give_up(struct dt_job *j, uint32_t culprit, const char *text)
{
    free(j->hang_text);
    j->hang_text =
        dt_xasprintf("%s (--collective-timeout %d)", text, j->config->collective_timeout_s);
    dt_job_add_death(j, &(struct dt_death){
                            .hung = true,
                            .rank = culprit,
                            .code = -1,
                            .step = -1,
                            .time_ns = dt_now_ns(),
                        });
    dt_job_event(j, DT_EV_RANK_FAILED);
}

static double warn_after(const struct dt_job *j)
{
    double limit = j->config->collective_timeout_s;

    return limit > 0 && limit / 2 < WARN_S ? limit / 2 : WARN_S;
}

static void check(struct dt_job *j, uint32_t who, double seconds)
{
    bool over = j->config->collective_timeout_s && seconds >= j->config->collective_timeout_s;
    struct dt_strbuf text = { 0 };
    struct dt_u32s whom;

    if (!over && (seconds < warn_after(j) || j->warned_of_call == j->waits[who].call))
        return;
    dt_wait_for_whom(j->waits, j->np, who, &whom);
    describe(j, who, seconds, &whom, &text);
    if (over)
        give_up(j, whom.n ? whom.v[0] : who, dt_strbuf_text(&text));
    else
        dt_say("warning: %s", dt_strbuf_text(&text));
    j->warned_of_call = j->waits[who].call;
    dt_strbuf_free(&text);
    free(whom.v);
}

void dt_job_note_waits(struct dt_job *j, const struct dt_msg_list *steps)
{
    const struct dt_msg_step *s = steps->v;
    uint64_t now = dt_now_ns();

    for (uint32_t i = 0; i < steps->n; i++) {
        if (s[i].rank < j->np)
            dt_wait_note(&j->waits[s[i].rank], s[i].call, s[i].stopped, now);
    }
}

void dt_job_watch_waits(struct dt_job *j)
{
    int who;

    if (j->state != DT_JOB_RUNNING || j->pausing)
        return;
    for (uint32_t r = 0; r < j->np; r++)
        j->waits[r].ended = j->ranks[r].ended;
    who = dt_wait_longest(j->waits, j->np);
    if (who >= 0)
        check(j, (uint32_t)who, dt_wait_seconds(j->waits, j->np, (uint32_t)who));
}

void dt_job_forget_waits(struct dt_job *j)
{
    for (uint32_t r = 0; r < j->np; r++)
        j->waits[r] = (struct dt_wait){ 0 };
    j->warned_of_call = 0;
}
