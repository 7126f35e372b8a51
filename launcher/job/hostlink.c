#include "launcher/job/hostlink.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "launcher/base/log.h"
#include "launcher/base/mem.h"
#include "launcher/job/engine.h"

uint64_t dt_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool dt_hostlink_has_ranks(const struct dt_hostlink *h)
{
    return h && (h->phase == DT_HOST_STARTING || h->phase == DT_HOST_RUNNING);
}

bool dt_hostlink_is_coming(const struct dt_hostlink *h)
{
    return h->phase == DT_HOST_WAITING || h->phase == DT_HOST_CONNECTING ||
           h->phase == DT_HOST_RECEIVING;
}

const char *dt_hostlink_awaits(const struct dt_hostlink *h)
{
    switch (h->phase) {
    case DT_HOST_WAITING:
        return "its turn (--fanout)";
    case DT_HOST_CONNECTING:
        return dt_link_phase(h->link);
    case DT_HOST_RECEIVING:
        return "receive files (--push)";
    case DT_HOST_STARTING:
        if (h->probing)
            return "try to reach the other hosts";
        return h->ready ? NULL : "start the ranks";
    default:
        return NULL;
    }
}

static void set_phase(struct dt_hostlink *h, enum dt_host_phase phase)
{
    h->job->connecting -= h->phase == DT_HOST_CONNECTING;
    h->job->connecting += phase == DT_HOST_CONNECTING;
    h->phase = phase;
}

static void feed(struct dt_hostlink *h)
{
    struct dt_error err = { 0 };

    if (h->phase == DT_HOST_RECEIVING && dt_push_continue(&h->push, h->link, h->job->id, &err) < 0)
        dt_hostlink_close(h, "%s", err.text);
}

static void on_ready(void *arg, const struct dt_msg_hello *hello)
{
    struct dt_hostlink *h = arg;
    uint64_t now = dt_now_ns();

    h->identity = dt_xstrdup(hello->identity);
    h->addr = dt_xstrdup(hello->addr);
    h->peer_addr = dt_xstrdup(hello->peer_addr);
    h->free_port = hello->free_port;
    h->probe_port = hello->probe_port;
    h->netaddrs = dt_netaddrs_copy(&hello->addrs);
    h->greeted = true;
    set_phase(h, dt_push_is_complete(&h->push) ? DT_HOST_IDLE : DT_HOST_RECEIVING);
    dt_heartbeat_hello(&h->heartbeat, hello->time_ns, now);
    dt_verbose("%s: connected in %.3f s (%s, agent %s, pid %u, %u cores, %u GPUs)",
               dt_job_host_name(h->job, h->host), (double)(now - h->opened_ns) / 1e9,
               dt_link_carrier(h->link), hello->version, hello->pid, hello->cores, hello->gpus.n);
    feed(h);
    dt_job_on_ready(h->job, h);
}

static void on_message(void *arg, uint8_t type, union dt_msg *msg)
{
    struct dt_hostlink *h = arg;

    h->heartbeat.heard_ns = dt_now_ns();
    dt_job_on_message(h->job, h, type, msg);
}

static void on_noise(void *arg, const char *line)
{
    struct dt_hostlink *h = arg;

    dt_job_on_noise(h->job, h, line);
}

static void on_drained(void *arg)
{
    feed(arg);
}

static void on_closed(void *arg, const struct dt_error *why)
{
    struct dt_hostlink *h = arg;
    enum dt_host_phase phase = h->phase;

    h->link = NULL;
    set_phase(h, DT_HOST_CLOSED);
    if (!h->why.text[0])
        h->why = *why;
    dt_job_on_closed(h->job, h, phase);
}

struct dt_hostlink *dt_hostlink_new(struct dt_job *job, size_t host)
{
    struct dt_hostlink *h = dt_xcalloc(1, sizeof *h);
    const struct dt_job_config *c = job->config;

    h->job = job;
    h->host = host;
    h->phase = DT_HOST_WAITING;
    h->config = (struct dt_link_config){
        .transport = c->transport(&c->hosts->v[host], c->transport_arg),
        .host = &c->hosts->v[host],
        .agent_path = c->agent_path,
        .push = c->push_agent,
        .alone = c->hosts->n == 1,
        .rsh = &c->rsh,
        .accept_new = c->accept_new,
    };
    h->push.set = c->push;
    return h;
}

void dt_hostlink_connect(struct dt_hostlink *h)
{
    static const struct dt_link_events events = { on_ready, on_message, on_noise, on_drained,
                                                  on_closed };

    set_phase(h, DT_HOST_CONNECTING);
    h->opened_ns = dt_now_ns();
    h->link = dt_link_open(&h->job->loop, &h->config, &events, h);
}

void dt_hostlink_send_frames(struct dt_hostlink *h, uint8_t type, const struct dt_put *frames)
{
    if (!h->link || h->phase == DT_HOST_CONNECTING || h->closing)
        return;
    h->ending |= type == DT_MSG_END;
    h->sent_ns = dt_now_ns();
    dt_link_send_frames(h->link, type, frames);
}

void dt_hostlink_send(struct dt_hostlink *h, uint8_t type, const void *msg)
{
    struct dt_put frames = { 0 };

    dt_msg_frame(&frames, type, msg);
    dt_hostlink_send_frames(h, type, &frames);
    dt_put_free(&frames);
}

void dt_hostlink_pushed(struct dt_hostlink *h, const struct dt_msg_file_done *m)
{
    struct dt_error err = { 0 };

    if (h->phase != DT_HOST_RECEIVING)
        return;
    if (dt_push_on_done(&h->push, m, &err) < 0)
        dt_hostlink_close(h, "%s", err.text);
    else if (dt_push_is_complete(&h->push))
        h->phase = DT_HOST_IDLE;
    else
        feed(h);
}

void dt_hostlink_close(struct dt_hostlink *h, const char *fmt, ...)
{
    va_list ap;

    if (h->phase != DT_HOST_WAITING && (!h->link || h->closing))
        return;
    va_start(ap, fmt);
    vsnprintf(h->why.text, sizeof h->why.text, fmt, ap);
    va_end(ap);
    h->ending = h->closing = true;
    set_phase(h, DT_HOST_CLOSED);
    if (h->link)
        dt_link_close(h->link);
}

void dt_hostlink_free(struct dt_hostlink *h)
{
    if (!h)
        return;
    free(h->identity);
    free(h->addr);
    free(h->peer_addr);
    dt_netaddrs_free(&h->netaddrs);
    dt_push_end(&h->push);
    free(h);
}
