#include "tests/sim/scenario.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include "runtime/dtrun.h"

static const int signals[] = { SIGKILL, SIGSEGV, SIGABRT };
static const int codes[] = { 0, 1, 2, 3, 7, 42, 75 };
static const int call_codes[] = { DT_ERR_MISMATCH, DT_ERR_TIMEOUT, DT_ERR_ABORTED };
static const int batch_signals[] = { SIGTERM, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
static const int user_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGTSTP };

#define PICK(c, list) ((list)[sim_below((c), sizeof(list) / sizeof *(list))])

/* Deaths of ranks are the most frequent faults. */
static enum sim_fault_kind pick_kind(struct sim_chance *c)
{
    uint64_t n = sim_below(c, 100);

    if (n < 22)
        return SIM_RANK_KILLED;
    if (n < 44)
        return SIM_RANK_EXITS;
    if (n < 50)
        return SIM_CALL_FAILS;
    return (enum sim_fault_kind)sim_between(c, SIM_RANK_HANGS, SIM_SIGNAL);
}

static uint64_t pick_duration(struct sim_chance *c, enum sim_fault_kind kind, int heartbeat_s)
{
    uint64_t lease = (uint64_t)heartbeat_s * SIM_S;

    if (sim_percent(c, 25) && (kind == SIM_HOST_VANISHES || kind == SIM_CUT_OFF ||
                               kind == SIM_HOSTS_APART || kind == SIM_HOST_DIVIDED))
        return UINT64_MAX;
    return sim_between(c, 10 * SIM_MS, 3 * lease);
}

static int pick_code(struct sim_chance *c, enum sim_fault_kind kind)
{
    switch (kind) {
    case SIM_RANK_KILLED:
        return PICK(c, signals);
    case SIM_RANK_EXITS:
        return PICK(c, codes);
    case SIM_CALL_FAILS:
        return PICK(c, call_codes);
    case SIM_DTRUN_LOSES:
        return (int)sim_below(c, 2);
    case SIM_LINK_DIES:
        return (int)sim_below(c, 4000);
    case SIM_SPAWN_FAILS:
        return (int)sim_between(c, SIM_NO_MEMORY, SIM_ALIVE);
    case SIM_HOSTS_APART:
        return (int)sim_between(c, 1, SIM_HOSTS_MAX - 1);
    case SIM_HOST_DIVIDED:
    case SIM_CHECKPOINTS_LOST:
        return (int)sim_below(c, 2);
    case SIM_OUTPUT_FAILS:
        return sim_percent(c, 50) ? EPIPE : ENOSPC;
    case SIM_BATCH_SIGNAL:
        return PICK(c, batch_signals);
    case SIM_SIGNAL:
        return PICK(c, user_signals);
    default:
        return 0;
    }
}

/* Most faults come soon after the previous one, while the engine is still handling it. */
static uint64_t pick_time(struct sim_chance *c, const struct sim_scenario *s)
{
    static const uint64_t soon_ns[] = { 5 * SIM_MS, 60 * SIM_MS, 500 * SIM_MS, 4 * SIM_S };

    if (s->nfaults > 0 && sim_percent(c, 60))
        return s->faults[s->nfaults - 1].at_ns + sim_below(c, PICK(c, soon_ns));
    return sim_below(c, s->work_ns + SIM_S);
}

static bool divides(enum sim_fault_kind kind)
{
    return kind == SIM_HOSTS_APART || kind == SIM_HOST_DIVIDED;
}

static void add_fault(struct sim_chance *c, struct sim_scenario *s)
{
    struct sim_fault *f = &s->faults[s->nfaults];

    f->kind = pick_kind(c);
    f->at_ns = divides(f->kind) && sim_percent(c, 30) ? 0 : pick_time(c, s);
    f->ns = pick_duration(c, f->kind, s->heartbeat_s);
    f->host = (uint32_t)sim_below(c, s->hosts);
    f->rank = (uint32_t)sim_below(c, s->np);
    f->code = pick_code(c, f->kind);
    if (f->kind == SIM_RANK_HANGS && s->timeout_s == 0)
        s->timeout_s = (int)sim_between(c, 5, 60);
    s->nfaults++;
}

/* Other faults would hide that a hang goes unnoticed. */
static void hang_only(struct sim_chance *c, struct sim_scenario *s)
{
    s->timeout_s = s->collective_timeout_s + 60 + (int)s->call_limit_ms / 1000;
    s->ninject = 0;
    s->nfaults = 1;
    s->faults[0] = (struct sim_fault){ .kind = SIM_RANK_HANGS,
                                       .at_ns = sim_below(c, s->work_ns),
                                       .rank = (uint32_t)sim_below(c, s->np) };
}

/* Several hosts cannot be reached by others, from the beginning or when ranks start again. */
static void divide_hosts(struct sim_chance *c, struct sim_scenario *s)
{
    uint64_t at_ns = sim_percent(c, 50) ? 0 : sim_below(c, s->work_ns);
    uint64_t n = sim_between(c, 1, 4);

    s->ninject = 0;
    s->nfaults = 1;
    s->faults[0] = (struct sim_fault){ .kind = SIM_RANK_KILLED,
                                       .at_ns = sim_below(c, s->work_ns),
                                       .rank = (uint32_t)sim_below(c, s->np),
                                       .code = SIGKILL };
    while (s->nfaults <= n) {
        struct sim_fault *f = &s->faults[s->nfaults++];

        f->kind = sim_percent(c, 30) ? SIM_HOSTS_APART : SIM_HOST_DIVIDED;
        *f = (struct sim_fault){ .kind = f->kind,
                                 .at_ns = at_ns,
                                 .ns = pick_duration(c, f->kind, s->heartbeat_s),
                                 .host = (uint32_t)sim_below(c, s->hosts),
                                 .code = pick_code(c, f->kind) };
    }
}

/* Failures keep beginning on one host, or in one rank. Other ranks fail later, so that dtrun may
 * use a host again that it has left out. */
static void add_defect(struct sim_chance *c, struct sim_scenario *s)
{
    s->defect = sim_percent(c, 60) ? SIM_DEFECT_OF_HOST : SIM_DEFECT_OF_RANK;
    s->defective = (uint32_t)sim_below(c, s->defect == SIM_DEFECT_OF_HOST ? s->hosts : s->np);
    s->defect_starts = (uint32_t)sim_between(c, 2, 5);
    s->max_restarts = sim_percent(c, 80) ? (int)sim_between(c, 4, 12) : -1;
    s->timeout_s = 0;
    s->work_ns = sim_percent(c, 60) ? sim_between(c, 70 * SIM_S, 100 * SIM_S)
                                    : sim_between(c, SIM_S, 5 * SIM_S);
    s->nfaults = (uint32_t)sim_between(c, 0, 3);
    for (uint32_t i = 0; i < s->nfaults; i++)
        s->faults[i] = (struct sim_fault){ .kind = SIM_RANK_KILLED,
                                           .at_ns = sim_below(c, s->work_ns + 30 * SIM_S),
                                           .rank = (uint32_t)sim_below(c, s->np),
                                           .code = SIGKILL };
}

/* In half of these worlds the job gets to the second name only when it has lost a host. */
static void name_host_twice(struct sim_chance *c, struct sim_scenario *s)
{
    s->twin = (uint32_t)sim_between(c, 1, s->hosts - 1);
    if (sim_percent(c, 50))
        return;
    s->np = 0;
    for (uint32_t i = 0; i < s->twin; i++)
        s->np += (uint32_t)s->slots[i];
    s->max_restarts = (int)sim_between(c, 1, 5);
    s->nfaults = 1;
    s->faults[0] = (struct sim_fault){ .kind = SIM_HOST_VANISHES,
                                       .at_ns = sim_below(c, s->work_ns),
                                       .ns = pick_duration(c, SIM_HOST_VANISHES, s->heartbeat_s),
                                       .host = (uint32_t)sim_below(c, s->twin) };
}

/* dtrun loses a host for good, about when its ranks begin to run. The agent learns of that later.
 */
static void lose_early(struct sim_chance *c, struct sim_scenario *s)
{
    uint32_t host = (uint32_t)sim_below(c, s->hosts);

    s->max_restarts = (int)sim_between(c, 1, 5);
    s->latency_ns[host] = sim_between(c, 5 * SIM_MS, 60 * SIM_MS);
    s->nfaults = 1;
    s->faults[0] = (struct sim_fault){ .kind = SIM_DTRUN_LOSES,
                                       .at_ns = sim_between(c, 50 * SIM_MS, 600 * SIM_MS),
                                       .ns = 60 * SIM_S,
                                       .host = host,
                                       .code = 1 };
}

/* Other faults would hide what ranks make of a call that failed. */
static void fail_call_only(struct sim_chance *c, struct sim_scenario *s)
{
    s->ninject = 0;
    s->nfaults = 1;
    s->faults[0] = (struct sim_fault){ .kind = SIM_CALL_FAILS,
                                       .at_ns = sim_below(c, s->work_ns),
                                       .ns = sim_below(c, 4),
                                       .rank = (uint32_t)sim_below(c, s->np),
                                       .code = pick_code(c, SIM_CALL_FAILS) };
}

/* A rank of MPI leaves, sometimes before others call MPI_Init. Other faults would hide that it is
 * not missed. */
static void leave_only(struct sim_chance *c, struct sim_scenario *s)
{
    s->ninject = 0;
    s->nfaults = 1;
    s->faults[0] =
        (struct sim_fault){ .kind = SIM_RANK_EXITS,
                            .at_ns = sim_below(c, sim_percent(c, 50) ? SIM_S / 2 : s->work_ns),
                            .rank = (uint32_t)sim_below(c, s->np) };
}

/* A batch system sends one signal several times, or dtrun gets it from elsewhere, too. */
static void signal_again(struct sim_chance *c, struct sim_scenario *s)
{
    uint64_t at_ns = sim_below(c, s->work_ns);
    int signo = PICK(c, batch_signals);

    s->batch = true;
    s->nfaults = (uint32_t)sim_between(c, 2, 3);
    for (uint32_t i = 0; i < s->nfaults; i++)
        s->faults[i] =
            (struct sim_fault){ .kind = sim_percent(c, 50) ? SIM_BATCH_SIGNAL : SIM_SIGNAL,
                                .at_ns = at_ns + i * sim_below(c, 1500) * SIM_MS,
                                .ns = sim_below(c, 2),
                                .code = signo };
    if (sim_percent(c, 50)) /* a late report */
        s->faults[s->nfaults++] = (struct sim_fault){ .kind = SIM_CUT_OFF,
                                                      .at_ns = at_ns,
                                                      .ns = sim_between(c, SIM_S, 8 * SIM_S),
                                                      .host = (uint32_t)sim_below(c, s->hosts) };
}

/* Ranks keep failing while the job restores. */
static void break_restores(struct sim_chance *c, struct sim_scenario *s)
{
    s->restores = true;
    s->restore_ns = sim_between(c, 200 * SIM_MS, 2 * SIM_S);
    s->max_restarts = -1;
    s->ninject = 0;
    s->nfaults = sim_percent(c, 70) ? 0 : s->nfaults;
    s->timeout_s = s->nfaults ? s->timeout_s : 0; /* only it ends a lone rank that hangs */
    s->defect = sim_percent(c, 75) ? SIM_DEFECT_OF_HOST : SIM_DEFECT_OF_RANK;
    s->defective = (uint32_t)sim_below(c, s->defect == SIM_DEFECT_OF_HOST ? s->hosts : s->np);
    s->defect_starts = (uint32_t)sim_between(c, 1, 5);
}

/* Some programs never restore what they save, and some only restore. */
static void add_restores(struct sim_chance *c, struct sim_scenario *s)
{
    s->restores = s->linked && sim_percent(c, s->commit_ns ? 90 : 15);
    if (s->restores && sim_percent(c, 50))
        s->restore_ns = sim_between(c, SIM_MS, sim_percent(c, 30) ? 3 * SIM_S : 200 * SIM_MS);
    if (s->linked && !s->servers && sim_percent(c, 6))
        break_restores(c, s);
}

/* Hosts take long to be ready: longer than --start-timeout, or a signal comes first. */
static void start_slowly(struct sim_chance *c, struct sim_scenario *s)
{
    uint64_t *longest = sim_percent(c, 50) ? &s->spawn_ns : &s->push_ns;

    *longest = sim_between(c, SIM_S, 6 * SIM_S);
    s->nfaults = (uint32_t)sim_below(c, 3);
    for (uint32_t i = 0; i < s->nfaults; i++)
        s->faults[i] =
            (struct sim_fault){ .kind = sim_percent(c, 70) ? SIM_SIGNAL : SIM_LINK_BREAKS,
                                .at_ns = sim_below(c, (uint64_t)s->start_timeout_s * SIM_S + SIM_S),
                                .host = (uint32_t)sim_below(c, s->hosts),
                                .code = PICK(c, user_signals) };
}

/* Ranks may wait for the reader, too: of one stream or of both. */
static void read_late(struct sim_chance *c, struct sim_scenario *s, uint64_t most_ns)
{
    uint64_t late_ns = sim_between(c, SIM_S, most_ns), which = sim_below(c, 3);

    for (uint64_t i = 0; i < 2; i++) {
        if (which != i)
            s->reader_ns[i] = late_ns;
    }
    if (sim_percent(c, 50)) {
        s->lines = 1;
        s->floods = true;
    }
}

/* The user insists, or continues a job and stops it again. Ranks that hang do not end by
 * themselves. */
static void insist(struct sim_chance *c, struct sim_scenario *s)
{
    uint64_t at_ns = sim_below(c, s->work_ns + SIM_S);

    s->nfaults = (uint32_t)sim_between(c, 2, 4);
    for (uint32_t i = 0; i < s->nfaults; i++) {
        s->faults[i] =
            (struct sim_fault){ .kind = SIM_SIGNAL,
                                .at_ns = at_ns,
                                .code = sim_percent(c, 60) ? SIGINT : PICK(c, user_signals) };
        at_ns += sim_below(c, PICK(c, ((uint64_t[]){ 100, 2000 }))) * SIM_MS;
    }
    if (sim_percent(c, 60)) {
        s->timeout_s = s->timeout_s ? s->timeout_s : 60;
        s->faults[0].kind = SIM_RANK_HANGS;
        s->faults[0].rank = (uint32_t)sim_below(c, s->np);
    }
    if (sim_percent(c, 30))
        read_late(c, s, 60 * SIM_S);
}

/* Ranks start again, on hosts that are slow or lost, and meanwhile something else happens. */
static void disturb_restart(struct sim_chance *c, struct sim_scenario *s)
{
    static const enum sim_fault_kind kinds[] = { SIM_SIGNAL,      SIM_SIGNAL,      SIM_SIGNAL,
                                                 SIM_SPAWN_FAILS, SIM_LINK_BREAKS, SIM_CUT_OFF };
    uint32_t host = (uint32_t)sim_below(c, s->hosts);
    uint64_t at_ns = SIM_S + sim_below(c, s->work_ns);

    s->max_restarts = (int)sim_between(c, 1, 4);
    s->spawn_ns = sim_percent(c, 60) ? sim_between(c, SIM_MS, 3 * SIM_S) : 0;
    s->nfaults = 0;
    if (sim_percent(c, 40)) {
        s->faults[s->nfaults++] = (struct sim_fault){
            .kind = SIM_HOST_FREEZES, .at_ns = at_ns, .ns = 60 * SIM_S, .host = host
        };
        s->faults[s->nfaults++] =
            (struct sim_fault){ .kind = SIM_LINK_BREAKS, .at_ns = at_ns, .host = host };
    } else {
        s->faults[s->nfaults++] = (struct sim_fault){ .kind = SIM_RANK_KILLED,
                                                      .at_ns = at_ns,
                                                      .rank = (uint32_t)sim_below(c, s->np),
                                                      .code = SIGKILL };
    }
    for (uint64_t n = sim_between(c, 1, 3); n > 0; n--) {
        struct sim_fault *f = &s->faults[s->nfaults++];

        f->kind = PICK(c, kinds);
        *f = (struct sim_fault){ .kind = f->kind,
                                 .at_ns = at_ns + sim_below(c, 3 * SIM_S),
                                 .ns = pick_duration(c, f->kind, s->heartbeat_s),
                                 .host = (uint32_t)sim_below(c, s->hosts),
                                 .code = f->kind == SIM_SIGNAL ? PICK(c, user_signals)
                                                               : pick_code(c, f->kind) };
    }
    if (s->spawn_ns && sim_percent(c, 30)) { /* some host may miss --start-timeout */
        s->start_timeout_s = 3;
        s->spawn_ns = 4 * SIM_S;
    }
}

/* Ranks of MPI leave before and after a restart. */
static void leave_again(struct sim_chance *c, struct sim_scenario *s)
{
    static const enum sim_fault_kind kinds[] = { SIM_RANK_EXITS, SIM_RANK_KILLED, SIM_RANK_EXITS };
    uint64_t at_ns = sim_below(c, SIM_S);

    s->max_restarts = (int)sim_between(c, 1, 3);
    s->work_ns = sim_between(c, 6 * SIM_S, 12 * SIM_S);
    s->ninject = s->nfaults = 0;
    s->timeout_s = s->exit_grace_s = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        s->faults[s->nfaults++] = (struct sim_fault){ .kind = kinds[i],
                                                      .at_ns = at_ns,
                                                      .rank = (uint32_t)sim_below(c, s->np),
                                                      .code = kinds[i] == SIM_RANK_KILLED ? 9 : 0 };
        at_ns += sim_between(c, SIM_S / 2, 3 * SIM_S);
    }
}

/* Different signals come at about the same time, from a batch system and from the keyboard. */
static void mix_signals(struct sim_chance *c, struct sim_scenario *s)
{
    static const int mixed[] = { SIGINT, SIGINT, SIGTERM, SIGUSR1, SIGUSR2 };
    uint64_t at_ns = sim_below(c, s->work_ns);

    s->batch = true;
    s->nfaults = (uint32_t)sim_between(c, 2, 4);
    for (uint32_t i = 0; i < s->nfaults; i++)
        s->faults[i] =
            (struct sim_fault){ .kind = sim_percent(c, 60) ? SIM_BATCH_SIGNAL : SIM_SIGNAL,
                                .at_ns = at_ns + sim_below(c, 300) * SIM_MS,
                                .ns = sim_below(c, 2),
                                .code = PICK(c, mixed) };
}

/* No host can start the program. */
static void refuse_everywhere(struct sim_chance *c, struct sim_scenario *s)
{
    int code = (int)sim_between(c, SIM_NO_MEMORY, SIM_NOT_ALLOWED);

    s->nfaults = s->hosts;
    for (uint32_t i = 0; i < s->nfaults; i++)
        s->faults[i] = (struct sim_fault){ .kind = SIM_SPAWN_FAILS, .host = i, .code = code };
}

/* Ranks of a program that is not linked end one after the other, for minutes. */
static void linger(struct sim_chance *c, struct sim_scenario *s)
{
    s->work_ns = sim_between(c, 100 * SIM_S, 400 * SIM_S);
    s->timeout_s = s->exit_grace_s = 0;
    s->nfaults = s->ninject = 0;
    s->fences = 0;
}

/* Hosts shut down one after the other, and some are off soon afterwards. Others may be in
 * quarantine, or have a scheduler or servers whose ranks have just ended. */
static void end_hosts(struct sim_chance *c, struct sim_scenario *s)
{
    static const int codes_sent[] = { SIGTERM, SIGTERM, SIGHUP, SIGINT };
    uint64_t at_ns;

    s->batch = sim_percent(c, 10);
    s->max_restarts = sim_percent(c, 80) ? (int)sim_between(c, 1, 6) : s->max_restarts;
    if (!s->servers && s->hosts > 1 && sim_percent(c, 30))
        add_defect(c, s);
    s->ninject = s->nfaults = 0;
    at_ns = s->servers && sim_percent(c, 50) ? s->work_ns + sim_below(c, s->work_ns / 4 + SIM_S)
                                             : sim_below(c, s->work_ns + SIM_S / 2);
    for (uint64_t n = sim_between(c, 1, 4); n > 0; n--) {
        struct sim_fault *f = &s->faults[s->nfaults++];

        *f = (struct sim_fault){ .kind = SIM_HOST_ENDS,
                                 .at_ns = at_ns,
                                 .ns = sim_below(c, 2),
                                 .host = (uint32_t)sim_below(c, s->hosts),
                                 .code = PICK(c, codes_sent) };
        if (sim_percent(c, 50))
            s->faults[s->nfaults++] = (struct sim_fault){ .kind = SIM_HOST_VANISHES,
                                                          .at_ns = at_ns + sim_below(c, 4 * SIM_S),
                                                          .ns = UINT64_MAX,
                                                          .host = f->host };
        at_ns += sim_below(c, sim_percent(c, 50) ? 300 * SIM_MS : 5 * SIM_S);
    }
    if (sim_percent(c, 40))
        s->faults[s->nfaults++] =
            (struct sim_fault){ .kind = sim_percent(c, 50) ? SIM_RANK_KILLED : SIM_LINK_BREAKS,
                                .at_ns = sim_below(c, s->work_ns),
                                .host = (uint32_t)sim_below(c, s->hosts),
                                .rank = (uint32_t)sim_below(c, s->np),
                                .code = SIGKILL };
}

static void add_options(struct sim_chance *c, struct sim_scenario *s)
{
    uint32_t slots = 0;

    for (uint32_t i = 0; i < s->hosts; i++)
        slots += (uint32_t)s->slots[i];
    s->no_oversubscribe = s->np <= slots && sim_percent(c, 20);
    s->resume = s->checkpoint_dir && sim_percent(c, 20);
    s->fresh = s->checkpoint_dir && !s->resume && sim_percent(c, 20);
    s->terminal = sim_percent(c, 30);
    s->forgets = s->linked && sim_percent(c, 6);
    if (sim_percent(c, 4))
        read_late(c, s, 6 * SIM_S);
    if (sim_percent(c, 4))
        start_slowly(c, s);
    else if (sim_percent(c, 4))
        insist(c, s);
    else if (sim_percent(c, 1))
        refuse_everywhere(c, s);
    else if (s->linked && !s->servers && sim_percent(c, 8))
        fail_call_only(c, s);
    else if (sim_percent(c, 4))
        disturb_restart(c, s);
    else if (sim_percent(c, 5))
        mix_signals(c, s);
    else if (s->fences && !s->servers && sim_percent(c, 10))
        leave_again(c, s);
    else if (!s->linked && !s->servers && sim_percent(c, 3))
        linger(c, s);
    else if (sim_percent(c, 6))
        end_hosts(c, s);
}

static void add_injection(struct sim_chance *c, struct sim_scenario *s)
{
    static const char *const kinds[] = { "kill", "agent", "host" };
    char *text = s->inject[s->ninject++];
    size_t size = sizeof s->inject[0];
    int n = snprintf(text, size, "%s:rank=%u", PICK(c, kinds), (unsigned)sim_below(c, s->np));

    if (sim_percent(c, 70))
        n += snprintf(text + n, size - (size_t)n, ",after=%u.%u", (unsigned)sim_below(c, 5),
                      (unsigned)sim_below(c, 10));
    if (sim_percent(c, 60))
        snprintf(text + n, size - (size_t)n, ",restart=%u", (unsigned)sim_below(c, 3));
}

/* Comes while the ranks run, or about when they end. Some faults take a whole host. */
static void add_auxiliary_fault(struct sim_chance *c, struct sim_scenario *s)
{
    uint64_t long_ns = s->linked ? SIM_S / 2 : s->work_ns / 4 + SIM_S / 2;
    struct sim_fault *f = &s->faults[s->nfaults];

    *f = (struct sim_fault){ .kind = (enum sim_fault_kind)sim_below(c, SIM_AGENT_DIES + 1),
                             .at_ns = pick_time(c, s),
                             .host = (uint32_t)sim_below(c, s->hosts),
                             .rank = s->np + (uint32_t)sim_below(c, (uint64_t)s->servers + 1) };
    if (sim_percent(c, 75))
        f->at_ns = s->work_ns + sim_below(c, long_ns);
    f->code = pick_code(c, f->kind);
    s->nfaults++;
}

/* In half of these worlds only auxiliaries fail. */
static void add_auxiliaries(struct sim_chance *c, struct sim_scenario *s)
{
    uint64_t n = sim_below(c, 4);

    s->servers = (int)sim_between(c, 1, 4);
    if (sim_percent(c, 50))
        s->nfaults = s->ninject = 0;
    if (sim_percent(c, 20)) { /* the limit ends about when the ranks end, or soon after */
        s->timeout_s = (int)sim_between(c, 3, 8);
        s->work_ns = (uint64_t)s->timeout_s * SIM_S - sim_between(c, 0, 2 * SIM_S);
    }
    for (; n > 0 && s->nfaults < SIM_FAULTS_MAX; n--)
        add_auxiliary_fault(c, s);
}

/* A host vanishes for a while, or only refuses connections. */
static void add_absence(struct sim_chance *c, struct sim_scenario *s, uint64_t at_ns)
{
    bool vanishes = sim_percent(c, 70);

    s->faults[s->nfaults++] =
        (struct sim_fault){ .kind = vanishes ? SIM_HOST_VANISHES : SIM_DTRUN_LOSES,
                            .at_ns = at_ns,
                            .ns =
                                sim_between(c, SIM_S, sim_percent(c, 60) ? 15 * SIM_S : 60 * SIM_S),
                            .host = (uint32_t)sim_below(c, s->hosts),
                            .code = 1 };
}

/* Hosts are lost and come back while ranks run, and then other failures follow. Some happen while a
 * host is being tried. */
static void lose_for_a_while(struct sim_chance *c, struct sim_scenario *s)
{
    static const enum sim_fault_kind kinds[] = { SIM_RANK_KILLED,  SIM_RANK_KILLED, SIM_AGENT_DIES,
                                                 SIM_LINK_BREAKS,  SIM_HOST_ENDS,   SIM_SPAWN_FAILS,
                                                 SIM_HOST_FREEZES, SIM_CUT_OFF,     SIM_SIGNAL,
                                                 SIM_DTRUN_STANDS, SIM_LINK_SLOW };
    static const int signos[] = { SIGTSTP, SIGTSTP, SIGTSTP, SIGTERM, SIGINT, SIGUSR1 };
    uint64_t at_ns = 0;

    s->rejoin_s = (uint32_t)sim_between(c, 1, 4);
    s->max_restarts = (int)sim_between(c, 4, 20);
    s->work_ns = sim_between(c, 10 * SIM_S, 90 * SIM_S);
    s->commit_ns = s->commit_ns ? s->work_ns / 20 : 0;
    s->timeout_s = s->exit_grace_s = 0;
    s->stop_on_loss = false;
    s->ninject = s->nfaults = 0;
    s->fences = 0;
    while (s->nfaults + 1 < SIM_FAULTS_MAX && at_ns < s->work_ns) {
        struct sim_fault *f;

        at_ns += sim_between(c, SIM_S, 20 * SIM_S);
        add_absence(c, s, at_ns);
        at_ns += sim_between(c, SIM_S, 20 * SIM_S);
        f = &s->faults[s->nfaults++];
        *f = (struct sim_fault){ .kind = PICK(c, kinds),
                                 .at_ns = at_ns,
                                 .ns = sim_between(c, SIM_S, 10 * SIM_S),
                                 .host = (uint32_t)sim_below(c, s->hosts),
                                 .rank = (uint32_t)sim_below(c, s->np),
                                 .code = SIGKILL };
        if (f->kind == SIM_HOST_ENDS)
            f->code = SIGTERM;
        if (f->kind == SIM_SIGNAL)
            f->code = PICK(c, signos);
        if (f->kind == SIM_SPAWN_FAILS)
            f->code = (int)sim_between(c, SIM_NO_MEMORY, SIM_ALIVE);
    }
}

static void add_rejoin(struct sim_chance *c, struct sim_scenario *s)
{
    s->rejoin_s = sim_percent(c, 40) ? (uint32_t)sim_between(c, 1, 8) : sim_percent(c, 20) ? 0 : 60;
    if (s->hosts > 1 && sim_percent(c, 8))
        lose_for_a_while(c, s);
}

void sim_scenario_make(struct sim_scenario *s, uint64_t seed)
{
    struct sim_chance c = sim_chance_of(seed, 1), more = sim_chance_of(seed, 4);
    struct sim_chance late = sim_chance_of(seed, 5);
    uint32_t slots = 0;

    *s = (struct sim_scenario){ .seed = seed, .hosts = (uint32_t)sim_between(&c, 1, 8) };
    for (uint32_t i = 0; i < s->hosts; i++)
        slots += (uint32_t)(s->slots[i] = (int)sim_between(&c, 1, 4));
    s->np = sim_percent(&c, 60) ? slots : (uint32_t)sim_between(&c, 1, slots + 2);
    s->fanout = (int)sim_between(&c, 1, 8);
    s->max_restarts = sim_percent(&c, 40) ? -1 : (int)sim_between(&c, 0, 5);
    s->heartbeat_s = (int)sim_between(&c, 2, 10);
    s->kill_grace_s = (int)sim_below(&c, 6);
    s->timeout_s = sim_percent(&c, 15) ? (int)sim_between(&c, 3, 60) : 0;
    s->start_timeout_s = (int)sim_between(&c, 3, 60);
    s->checkpoint_dir = sim_percent(&c, 50);
    s->stop_on_loss = sim_percent(&c, 15);
    s->exit_grace_s = sim_percent(&c, 20) ? (int)sim_between(&c, 1, 4) : 0;
    s->batch = sim_percent(&c, 30);
    s->linked = sim_percent(&c, 60);
    if (s->linked && sim_percent(&c, 50))
        s->collective_timeout_s = (int)sim_between(&c, 4, 30);
    if (s->collective_timeout_s && sim_percent(&c, 30))
        s->call_limit_ms = (uint32_t)sim_between(&c, 500, 40000);
    if (s->linked && sim_percent(&c, 20))
        s->limit_ms = (uint32_t)sim_between(&c, sim_percent(&c, 10) ? 100 : 2000, 30000);
    s->work_ns = sim_between(&c, 100 * SIM_MS, sim_percent(&c, 20) ? 60 * SIM_S : 8 * SIM_S);
    s->commit_ns = s->linked && sim_percent(&c, 70) ? s->work_ns / sim_between(&c, 2, 12) : 0;
    s->lines = (uint32_t)sim_below(&c, 8);
    s->fences = !s->linked && sim_percent(&c, 40) ? (uint32_t)sim_between(&c, 1, 5) : 0;
    s->floods = s->lines == 1 && sim_percent(&c, 30);
    s->stdin_rank = sim_percent(&c, 70) ? DT_STDIN_NONE : sim_percent(&c, 60) ? 0 : DT_STDIN_ALL;
    s->stdin_bytes = sim_below(&c, sim_percent(&c, 60) ? 400000 : 1000);
    s->stdin_ms = sim_percent(&c, 50) ? 500 : 2;
    s->reader_ns[0] = sim_percent(&c, 20)   ? sim_between(&c, SIM_MS, SIM_S)
                      : sim_percent(&c, 50) ? 10000
                                            : 0;
    s->reader_ns[1] = s->reader_ns[0];
    for (uint32_t i = 0; i < s->hosts; i++)
        s->latency_ns[i] = sim_between(&c, 50000, sim_percent(&c, 30) ? 60 * SIM_MS : SIM_MS);
    for (uint64_t n = sim_percent(&c, 75) ? 0 : sim_between(&c, 1, SIM_INJECT_MAX); n > 0; n--)
        add_injection(&c, s);
    for (uint64_t n = sim_percent(&c, 8) ? 0 : sim_between(&c, 1, SIM_FAULTS_MAX); n > 0; n--)
        add_fault(&c, s);
    if (s->collective_timeout_s && sim_percent(&c, 10))
        hang_only(&c, s);
    else if (sim_percent(&c, 20))
        add_auxiliaries(&c, s);
    else if (s->linked && sim_percent(&c, 5))
        fail_call_only(&c, s);
    else if (s->fences && sim_percent(&c, 20))
        leave_only(&c, s);
    else if (sim_percent(&c, 4))
        signal_again(&c, s);
    else if (s->hosts > 1 && sim_percent(&c, 4))
        lose_early(&c, s);
    else if (s->hosts > 1 && sim_percent(&c, 8))
        add_defect(&c, s);
    else if (s->hosts > 2 && sim_percent(&c, 8))
        divide_hosts(&c, s);
    if (s->hosts > 1 && sim_percent(&c, 5))
        name_host_twice(&c, s);
    add_restores(&more, s);
    add_options(&more, s);
    add_rejoin(&late, s);
}

void sim_scenario_make_large(struct sim_scenario *s, uint32_t hosts)
{
    *s = (struct sim_scenario){ .seed = 1,
                                .hosts = hosts,
                                .np = hosts * 8,
                                .fanout = 64,
                                .max_restarts = 1000000,
                                .rejoin_s = 60,
                                .heartbeat_s = 60,
                                .kill_grace_s = 5,
                                .start_timeout_s = 600,
                                .linked = true,
                                .work_ns = 120 * SIM_S,
                                .commit_ns = 2 * SIM_S,
                                .restores = true,
                                .lines = 1,
                                .stdin_rank = DT_STDIN_NONE,
                                .reader_ns = { 10000, 10000 } };
    for (uint32_t i = 0; i < SIM_HOSTS_MAX; i++) {
        s->slots[i] = 8;
        s->latency_ns[i] = SIM_MS / 5;
    }
}

static const char *const names[SIM_FAULT_KINDS] = {
    [SIM_RANK_KILLED] = "rank killed",      [SIM_RANK_EXITS] = "rank exits",
    [SIM_CALL_FAILS] = "call fails",        [SIM_RANK_HANGS] = "rank hangs",
    [SIM_AGENT_DIES] = "agent dies",        [SIM_HOST_VANISHES] = "host vanishes",
    [SIM_LINK_BREAKS] = "link breaks",      [SIM_DTRUN_LOSES] = "dtrun loses link",
    [SIM_AGENT_LOSES] = "agent loses link", [SIM_LINK_DIES] = "link dies",
    [SIM_CUT_OFF] = "host cut off",         [SIM_HOST_FREEZES] = "host freezes",
    [SIM_LINK_SLOW] = "link slow",          [SIM_SPAWN_FAILS] = "spawn fails",
    [SIM_STALE] = "stale messages",         [SIM_DTRUN_STANDS] = "dtrun stands still",
    [SIM_HOST_DIVIDED] = "host divided",    [SIM_CHECKPOINTS_LOST] = "checkpoints lost",
    [SIM_HOSTS_APART] = "hosts apart",      [SIM_OUTPUT_FAILS] = "output fails",
    [SIM_BATCH_SIGNAL] = "batch signal",    [SIM_SIGNAL] = "signal",
    [SIM_HOST_ENDS] = "host ends",
};

void sim_fault_print(const struct sim_fault *f, FILE *out)
{
    fprintf(out, "%.6f s: %s (host %u, rank %u, code %d, ", (double)f->at_ns / 1e9, names[f->kind],
            f->host, f->rank, f->code);
    if (f->ns == UINT64_MAX)
        fprintf(out, "for ever)\n");
    else
        fprintf(out, "%.3f s)\n", (double)f->ns / 1e9);
}

bool sim_suffice(const struct sim_scenario *s, uint32_t slots)
{
    return slots >= (s->no_oversubscribe ? s->np : 1);
}

void sim_scenario_print(const struct sim_scenario *s, FILE *out)
{
    fprintf(out, "# %u hosts (slots", s->hosts);
    for (uint32_t i = 0; i < s->hosts; i++)
        fprintf(out, " %d", s->slots[i % SIM_HOSTS_MAX]);
    fprintf(out,
            "), -np %u --num-servers %d --fanout %d --max-restarts %d --heartbeat %d --kill-grace "
            "%d --timeout %d "
            "--start-timeout %d --exit-grace %d "
            "--collective-timeout %d --rejoin %u%s%s%s\n",
            s->np, s->servers, s->fanout, s->max_restarts, s->heartbeat_s, s->kill_grace_s,
            s->timeout_s, s->start_timeout_s, s->exit_grace_s, s->collective_timeout_s, s->rejoin_s,
            s->checkpoint_dir ? " --checkpoint-dir" : "",
            s->stop_on_loss ? " --on-host-loss stop" : "", s->batch ? ", in a batch job" : "");
    fprintf(out, "#%s%s%s hosts take %.3f s to be ready and %.3f s to get files\n",
            s->no_oversubscribe ? " --no-oversubscribe" : "", s->resume ? " --resume" : "",
            s->fresh ? " --fresh" : "", (double)s->spawn_ns / 1e9, (double)s->push_ns / 1e9);
    fprintf(out, "# program: %s, %.3f s, checkpoint every %.3f s, %s, %u fences, %u lines%s%s\n",
            s->linked ? "linked" : "not linked", (double)s->work_ns / 1e9,
            (double)s->commit_ns / 1e9, s->restores ? "restores" : "does not restore", s->fences,
            s->lines, s->floods ? ", floods" : "", s->forgets ? ", forgets dt_finalize" : "");
    if (s->call_limit_ms)
        fprintf(out, "# calls may wait %u ms (dt_comm_set_timeout)\n", s->call_limit_ms);
    if (s->defect)
        fprintf(out, "# %s %u is defective until %u generations have begun\n",
                s->defect == SIM_DEFECT_OF_HOST ? "host" : "rank", s->defective, s->defect_starts);
    if (s->twin)
        fprintf(out, "# h%u is another name of h%u\n", s->twin, s->twin - 1);
    if (s->stdin_rank != DT_STDIN_NONE)
        fprintf(out, "# standard input of %" PRIu64 " bytes goes to %s\n", s->stdin_bytes,
                s->stdin_rank == DT_STDIN_ALL ? "all ranks" : "rank 0");
    for (uint32_t i = 0; i < s->ninject; i++)
        fprintf(out, "# --inject %s\n", s->inject[i]);
    for (uint32_t i = 0; i < s->nfaults; i++) {
        fprintf(out, "# ");
        sim_fault_print(&s->faults[i], out);
    }
}
