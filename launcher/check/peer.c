#include "launcher/check/peer.h"

#include <stdlib.h>

#include "launcher/base/clock.h"
#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/start.h"
#include "launcher/session/hostnet.h"
#include "launcher/watch/words.h"

enum {
    PINGS = 8,            /* the fastest of this many answers gives the offset of the clocks */
    FACTS_HEARTBEATS = 6, /* file systems must respond within this many heartbeats */
};

static void report_progress(struct dt_check_peer *p)
{
    p->plan->progressed(p->plan->arg);
}

static void ping(struct dt_check_peer *p)
{
    struct dt_msg_ping m = { .time_ns = dt_now_ns() };

    dt_session_send(p->session, DT_MSG_PING, &m);
}

/* Returns where checkpoints would go. A job without --checkpoint-dir would make a directory of its
 * own inside that one. */
static char *checkpoint_dir(const struct dt_job_config *job)
{
    return job->checkpoint_dir ? dt_xstrdup(job->checkpoint_dir)
                               : dt_xpath(job->wdir, "checkpoints");
}

/* Sends a START that no GO follows. A host that would have no rank prepares one, too. */
static void prepare_ranks(struct dt_check_peer *p, const char *dir)
{
    static char *any_program[] = { (char *)"/bin/sh", NULL };
    static uint32_t any_rank[] = { 0 };
    const struct dt_job_config *job = p->plan->job;
    const struct dt_plan_node *node = dt_plan_node_on(job->plan, p->index);
    struct dt_msg_start m = dt_start_of(job, p->index, dir);

    m.generation = 1;
    m.job_id = (char *)(uintptr_t)p->plan->id;
    m.np = (uint32_t)job->plan->np;
    m.nodes = (uint32_t)job->plan->nnodes;
    m.node_rank = node ? (uint32_t)node->node_rank : 0;
    m.ranks = node ? node->ranks : (struct dt_u32s){ any_rank, 1 };
    m.master_port = p->free_port;
    m.checkpoint_dir = (char *)(uintptr_t)(job->checkpoint_dir ? job->checkpoint_dir : "");
    m.check_checkpoint_dir = job->checkpoint_dir && m.ranks.v[0] == 0;
    m.stdin_rank = DT_STDIN_NONE;
    if (m.argv.n == 0)
        m.argv = (struct dt_strs){ any_program, 1 };
    dt_session_send(p->session, DT_MSG_START, &m);
}

static void on_pushed(void *arg, const char *dir)
{
    struct dt_check_peer *p = arg;
    struct dt_msg_check m = { checkpoint_dir(p->plan->job) };

    p->asked_ns = dt_now_ns();
    dt_session_send(p->session, DT_MSG_CHECK, &m);
    ping(p);
    prepare_ranks(p, dir);
    free(m.dir);
}

static void on_greeted(void *arg, const struct dt_msg_hello *hello)
{
    struct dt_check_peer *p = arg;
    struct dt_check_host *h = p->host;
    uint64_t now = dt_now_ns();

    h->greeted = true;
    h->carrier = dt_session_carrier(p->session);
    h->connect_seconds = (double)(now - p->opened_ns) / 1e9;
    h->agent_sent = dt_session_sent_agent(p->session);
    h->agent_version = dt_xstrdup(hello->version);
    h->cores = hello->cores;
    h->memory = hello->memory;
    p->identity = dt_xstrdup(hello->identity);
    p->addr = dt_xstrdup(hello->addr);
    p->peer_addr = dt_xstrdup(hello->peer_addr);
    p->netaddrs = dt_netaddrs_copy(&hello->addrs);
    p->free_port = hello->free_port;
    p->probe_port = hello->probe_port;
    dt_heartbeat_hello(&p->heartbeat, hello->time_ns, now);
    dt_verbose("%s: connected in %.3f s (%s, agent %s)", h->name, h->connect_seconds, h->carrier,
               h->agent_version);
}

/* Facts may come before the answers to PINGs or after them. */
static void update_clock(struct dt_check_peer *p)
{
    if (p->host->has_facts && p->heartbeat.best_rtt_ns)
        p->host->clock =
            dt_check_clock_of(&p->heartbeat, p->host->facts.wall_ahead_ns, dt_wall_ahead_ns());
}

static void on_facts(struct dt_check_peer *p, struct dt_msg_facts *facts)
{
    struct dt_check_host *h = p->host;

    if (h->has_facts)
        return;
    h->facts = *facts;
    *facts = (struct dt_msg_facts){ 0 };
    h->has_facts = true;
    update_clock(p);
}

/* Sends the next PING after the answer, so that no PING waits in a queue behind another. */
static void on_pong(struct dt_check_peer *p, const struct dt_msg_pong *m)
{
    if (!m->ping_time_ns)
        return; /* a sign of life that no PING asked for */
    dt_heartbeat_pong(&p->heartbeat, m->ping_time_ns, m->time_ns, dt_now_ns());
    if (p->asked_ns && ++p->pongs < PINGS)
        ping(p);
    update_clock(p);
}

static void on_spawn_failed(struct dt_check_peer *p, const struct dt_msg_spawn_failed *m)
{
    struct dt_strbuf text = { 0 };

    dt_words_spawn(&text, m, false);
    dt_check_set_problem(p->host, dt_strbuf_text(&text));
    dt_strbuf_free(&text);
    p->prepared = true;
}

static void on_session_message(void *arg, uint8_t type, union dt_msg *msg)
{
    struct dt_check_peer *p = arg;

    p->heartbeat.heard_ns = dt_now_ns();
    switch (type) {
    case DT_MSG_FACTS:
        on_facts(p, &msg->facts);
        break;
    case DT_MSG_PONG:
        on_pong(p, &msg->pong);
        break;
    case DT_MSG_READY:
        p->prepared = true;
        break;
    case DT_MSG_SPAWN_FAILED:
        on_spawn_failed(p, &msg->spawn_failed);
        break;
    case DT_MSG_REACH:
        p->plan->reached(p->plan->arg, p, &msg->reach);
        break;
    case DT_MSG_LOG:
        dt_say_foreign(false, "%s: %s", p->host->name, msg->log.text);
        break;
    default:
        break;
    }
    report_progress(p);
}

static void on_session_noise(void *arg, const char *line)
{
    struct dt_check_peer *p = arg;

    if (p->host->greeted)
        dt_say_foreign(false, "%s: %s", p->host->name, line);
    else
        dt_say_foreign(true, "%s: start-up output: %s", p->host->name, line);
}

static void on_session_closed(void *arg, const struct dt_error *why)
{
    struct dt_check_peer *p = arg;

    p->host->carrier = dt_session_carrier(p->session);
    p->session = NULL;
    if (!p->closing)
        dt_check_set_problem(p->host, why->text[0] ? why->text : "agent: it ended unexpectedly");
    report_progress(p);
}

void dt_check_peer_init(struct dt_check_peer *p, const struct dt_check_plan *plan, size_t index,
                        struct dt_check_host *host)
{
    const struct dt_access *access = plan->access;

    p->plan = plan;
    p->index = index;
    p->host = host;
    host->carrier = access->transport(&plan->job->hosts->v[index], access->transport_arg)->name;
}

void dt_check_peer_connect(struct dt_check_peer *p)
{
    static const struct dt_session_events events = { on_greeted, on_pushed, on_session_message,
                                                     on_session_noise, on_session_closed };
    const struct dt_hostlist *hosts = p->plan->job->hosts;

    p->tried = true;
    p->opened_ns = dt_now_ns();
    p->session = dt_session_open(p->plan->loop, p->plan->access, &hosts->v[p->index], hosts->n == 1,
                                 p->plan->id, &events, p);
}

bool dt_check_peer_is_connecting(const struct dt_check_peer *p)
{
    return p->session && !p->host->greeted;
}

const char *dt_check_peer_awaits(const struct dt_check_peer *p)
{
    if (!p->tried)
        return "wait for its turn (--fanout)";
    if (!p->session || p->closing)
        return NULL;
    if (!p->host->greeted)
        return dt_session_phase(p->session);
    if (!p->asked_ns)
        return "receive files (--push)";
    if (!p->host->has_facts)
        return "read what --check asks for";
    return p->prepared && p->pongs >= PINGS ? NULL : "start the ranks";
}

bool dt_check_peer_is_open(const struct dt_check_peer *p)
{
    return p->session && !p->closing;
}

static void give_up_peer(struct dt_check_peer *p, const char *what, int limit_s)
{
    char *why = dt_xasprintf("agent: %s for %d s", what, limit_s);

    dt_check_peer_close(p, why);
    free(why);
}

static uint64_t later_by(uint64_t time_ns, uint64_t by_ns, uint64_t now_ns)
{
    return now_ns - time_ns > by_ns ? time_ns + by_ns : now_ns;
}

void dt_check_peer_tick(struct dt_check_peer *p, uint64_t now_ns, uint64_t last_look_ns)
{
    int silent_s = p->plan->job->heartbeat_s, facts_s = FACTS_HEARTBEATS * silent_s;
    uint64_t silent_ns = (uint64_t)silent_s * 1000000000;

    if (!p->session || p->closing || !p->host->greeted)
        return;
    if (p->asked_ns && dt_heartbeat_stood_still(now_ns, last_look_ns, silent_ns))
        p->asked_ns = later_by(p->asked_ns, now_ns - last_look_ns, now_ns);
    if (dt_heartbeat_is_lost(&p->heartbeat, now_ns, last_look_ns, silent_ns))
        give_up_peer(p, "it has not answered", silent_s);
    else if (p->asked_ns && !p->host->has_facts &&
             now_ns - p->asked_ns > (uint64_t)facts_s * 1000000000)
        give_up_peer(p, "a file system that --check reads has not responded", facts_s);
    else
        ping(p);
}

void dt_check_peer_end(struct dt_check_peer *p)
{
    struct dt_msg_end end = { 0 };

    if (!p->session || p->closing)
        return;
    p->closing = true;
    if (p->host->greeted)
        dt_session_send(p->session, DT_MSG_END, &end);
    else
        dt_session_close(p->session);
}

void dt_check_peer_close(struct dt_check_peer *p, const char *problem)
{
    if (problem)
        dt_check_set_problem(p->host, problem);
    p->tried = true; /* do not try it any more */
    p->closing = true;
    if (p->session)
        dt_session_close(p->session);
}

void dt_check_peer_free(struct dt_check_peer *p)
{
    free(p->identity);
    free(p->addr);
    free(p->peer_addr);
    dt_netaddrs_free(&p->netaddrs);
}
