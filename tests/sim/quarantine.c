/* A host on which ranks keep failing, or a rank that fails wherever it runs: which hosts dtrun
 * leaves out for a while, and when it must use them again (launcher/job/state/quarantine.h). The
 * witness knows which hosts may be to blame for each failure. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/world.h"

enum { IN_A_ROW = 3, FIRST_S = 60, DEFECT_MS = 400 };

/* ---- what is defective ---- */

static void break_down(struct sim_world *w, struct sim_event *e)
{
    struct sim_rank *r = sim_acting_process(w, e);
    bool host = w->s->defect == SIM_DEFECT_OF_HOST;

    if (r && !r->stubborn)
        sim_rank_fail(w, e->who, r, host ? -1 : 3, host ? SIGSEGV : 0);
}

static bool is_defective(const struct sim_world *w, const struct sim_agent *a,
                         const struct sim_rank *r)
{
    if (w->s->defect == SIM_DEFECT_OF_HOST)
        return a->host->index == w->s->defective && r == a->ranks;
    return w->s->defect == SIM_DEFECT_OF_RANK && r->rank == w->s->defective;
}

void sim_defects_begin(struct sim_world *w, struct sim_agent *a)
{
    for (uint32_t i = 0; i < a->nranks && a->generation <= w->s->defect_starts; i++) {
        if (is_defective(w, a, &a->ranks[i]))
            sim_plan(w, a, &a->ranks[i], sim_between(&w->program, 10, DEFECT_MS) * SIM_MS,
                     break_down, 0);
    }
}

/* ---- what dtrun says ---- */

static uint64_t bit_of(const struct sim_host *h)
{
    return UINT64_C(1) << h->index % 64;
}

static bool is_to_blame(const struct sim_world *w, const struct sim_host *h)
{
    const struct sim_witness *x = &w->witness;
    uint64_t bit = bit_of(h);

    return (sim_oracle_blamed(w) & bit) &&
           (h->exiles > 0 || ((x->blamed[0] & bit) && (x->blamed[1] & bit)));
}

static void check_out(struct sim_world *w, struct sim_host *h, const char *line)
{
    const char *s = strstr(line, " for ");
    unsigned long long seconds = 0;

    if (s)
        sscanf(s, " for %llu s at least", &seconds);
    if (h->out || !is_to_blame(w, h))
        sim_broken(w, "%s is left out, and not all of the last failures began there", h->name);
    if (seconds < FIRST_S || (h->exiles == 0 && seconds != FIRST_S))
        sim_broken(w, "%s is left out for %llu s", h->name, seconds);
    h->out = true;
    h->exiles++;
    h->out_until_ns = w->witness.decided_ns + seconds * SIM_S;
}

/* Whether the job may do without the host: others can be used, and need not be left out for the
 * last failure. */
static bool are_others_usable(const struct sim_world *w, const struct sim_host *h)
{
    uint32_t slots = 0;

    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_host *other = &w->hosts[i];

        if (other != h && sim_is_connected(other) && !other->out && !other->left &&
            !sim_is_second_name(w, other) && !is_to_blame(w, other))
            slots += (uint32_t)w->s->slots[i % SIM_HOSTS_MAX];
    }
    return sim_suffice(w->s, slots);
}

static void check_back(struct sim_world *w, struct sim_host *h, bool elsewhere)
{
    struct sim_witness *x = &w->witness;

    if (elsewhere && !(sim_oracle_blamed(w) & ~bit_of(h)))
        sim_broken(w, "%s is used again, and nothing has failed elsewhere", h->name);
    if (!elsewhere && x->decided_ns < h->out_until_ns && x->recalled != x->generation &&
        are_others_usable(w, h))
        sim_broken(w, "%s is used again %" PRIu64 " ms too soon", h->name,
                   (h->out_until_ns - x->decided_ns) / SIM_MS);
    x->program_at_fault |= elsewhere;
    if (!elsewhere && x->decided_ns < h->out_until_ns)
        x->recalled = x->generation;
    h->out = false;
}

/* dtrun moves ranks to the host again. */
static void check_with(struct sim_world *w, struct sim_host *h, const char *line)
{
    if (h->left)
        sim_broken(w, "dtrun does not say that a host is left for good: %s", line);
    if (!h->out && !h->without && !w->witness.outage)
        sim_broken(w, "%s is used again, and was not left out", h->name);
    if (h->out)
        check_back(w, h, strstr(line, "since rank ") != NULL);
    h->without = 0;
}

static void check_without(struct sim_world *w, struct sim_host *h, const char *line)
{
    bool out = strstr(line, " s at least");

    if (out && h->left)
        sim_broken(w, "dtrun does not say that a host is left for good: %s", line);
    if (out)
        check_out(w, h, line);
    else
        h->out = false; /* it was tried, so its time was over */
    h->without = ++w->witness.count;
}

/* Calls check for each host named after these words: "h1, h2". */
static void check_named(struct sim_world *w, const char *line, const char *words,
                        void (*check)(struct sim_world *, struct sim_host *, const char *))
{
    const char *at = strstr(line, words);
    unsigned i = 0;
    int n = 0;

    at = at ? at + strlen(words) : "";
    for (; sscanf(at, "h%u%n", &i, &n) == 1 && i < w->s->hosts; at += strspn(at, ", ")) {
        check(w, &w->hosts[i], line);
        at += n;
    }
}

void sim_check_quarantine_said(struct sim_world *w, const char *line)
{
    check_named(w, line, "continuing without ", check_without);
    check_named(w, line, "continuing with ", check_with);
    if (strstr(line, " cannot be used now, and ")) {
        check_named(w, line, "dtrun: ", check_without);
        w->witness.outage = true;
    }
    if (strstr(line, "no host is left; trying again"))
        w->witness.recalled = w->witness.generation; /* even a host in quarantine may be used */
}

/* ---- where ranks start ---- */

/* Whether each of the last failures must have begun there; with may: can have begun there. */
static bool did_all_begin(const struct sim_world *w, const struct sim_host *h, bool may)
{
    const struct sim_witness *x = &w->witness;

    for (int i = 0; i < IN_A_ROW; i++) {
        if (may ? !(x->blamed[i] & bit_of(h)) : x->blamed[i] != bit_of(h))
            return false;
    }
    return true;
}

/* Whether the host may have been left out after the last failure. */
static bool may_go(const struct sim_world *w, const struct sim_host *h)
{
    return did_all_begin(w, h, true) || (h->exiles > 0 && (w->witness.blamed[0] & bit_of(h)));
}

void sim_check_quarantine_over(struct sim_world *w)
{
    struct sim_witness *x = &w->witness;

    if (x->generation == 0 || x->cut_off)
        return;
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        const struct sim_host *h = &w->hosts[i];

        if (h->out && !h->left && sim_is_connected(h) && h->out_until_ns <= x->decided_ns)
            sim_broken(w, "%s is still left out, and its time is over", h->name);
    }
    x->program_at_fault &= x->restarts.fruitless > 1;
    memmove(&x->blamed[1], &x->blamed[0], (IN_A_ROW - 1) * sizeof *x->blamed);
    x->blamed[0] = sim_oracle_blamed(w);
    for (uint32_t i = 0; i < w->s->hosts; i++) {
        /* dtrun does not say that a lost host is in quarantine, nor that its rank fails elsewhere,
         * too */
        if (!w->hosts[i].lost && !w->hosts[i].left)
            continue;
        x->program_at_fault |= did_all_begin(w, &w->hosts[i], true);
        w->hosts[i].exiles += may_go(w, &w->hosts[i]);
    }
}

void sim_check_quarantine_kept(struct sim_world *w, struct sim_host *h)
{
    const struct sim_witness *x = &w->witness;

    if (h->out)
        sim_broken(w, "%s gets ranks, and is to be left out", h->name);
    if (did_all_begin(w, h, false) && x->restarts.fruitless >= IN_A_ROW && !w->s->stop_on_loss &&
        !x->program_at_fault && x->recalled + 1 != x->generation && are_others_usable(w, h))
        sim_broken(w, "%s gets ranks, and the last %d failures began there", h->name, IN_A_ROW);
    /* It may have been left out and used again at once, because there was no other. */
    h->exiles += did_all_begin(w, h, true);
    if (h->without)
        sim_broken(w, "%s gets ranks, and dtrun has not said that it is used again", h->name);
}
