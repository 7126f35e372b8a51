#include "launcher/session/session.h"

#include <stdlib.h>

#include "launcher/base/mem.h"

struct dt_session {
    struct dt_link *link;
    struct dt_session_events events;
    void *arg;
    struct dt_push push;
    bool greeted;
    bool closing;
    struct dt_error why; /* why the files could not be sent */
};

static void fail_session(struct dt_session *s, const struct dt_error *why)
{
    s->why = *why;
    dt_session_close(s);
}

static void feed(struct dt_session *s)
{
    struct dt_error err = { 0 };

    if (s->greeted && !s->closing && dt_push_continue(&s->push, s->link, &err) < 0)
        fail_session(s, &err);
}

static void on_link_ready(void *arg, const struct dt_msg_hello *hello)
{
    struct dt_session *s = arg;

    s->greeted = true;
    s->events.greeted(s->arg, hello);
    if (s->closing)
        return;
    if (dt_push_is_complete(&s->push))
        s->events.pushed(s->arg, "");
    else
        feed(s);
}

static void on_file_done(struct dt_session *s, const struct dt_msg_file_done *m)
{
    struct dt_error err = { 0 };

    if (dt_push_is_complete(&s->push))
        return;
    if (dt_push_on_done(&s->push, m, &err) < 0)
        fail_session(s, &err);
    else if (dt_push_is_complete(&s->push))
        s->events.pushed(s->arg, s->push.dir);
    else
        feed(s);
}

static void on_link_message(void *arg, uint8_t type, union dt_msg *msg)
{
    struct dt_session *s = arg;

    if (type == DT_MSG_FILE_DONE)
        on_file_done(s, &msg->file_done);
    if (!s->closing)
        s->events.message(s->arg, type, msg);
}

static void on_link_noise(void *arg, const char *line)
{
    struct dt_session *s = arg;

    s->events.noise(s->arg, line);
}

static void on_link_drained(void *arg)
{
    feed(arg);
}

static void on_push_moved(void *arg)
{
    feed(arg);
}

static void on_link_closed(void *arg, const struct dt_error *why)
{
    struct dt_session *s = arg;

    s->events.closed(s->arg, s->why.text[0] ? &s->why : why);
    dt_push_end(&s->push);
    free(s);
}

struct dt_session *dt_session_open(uv_loop_t *loop, const struct dt_access *access,
                                   const struct dt_host *host, bool alone, const char *job_id,
                                   const struct dt_session_events *events, void *arg)
{
    static const struct dt_link_events link_events = { .ready = on_link_ready,
                                                       .message = on_link_message,
                                                       .noise = on_link_noise,
                                                       .drained = on_link_drained,
                                                       .closed = on_link_closed };
    const struct dt_link_config config = {
        .transport = access->transport(host, access->transport_arg),
        .push = access->push_agent,
        .remote = { .host = host,
                    .agent_path = access->agent_path,
                    .alone = alone,
                    .accept_new = access->accept_new,
                    .rsh = &access->rsh },
    };
    struct dt_session *s = dt_xcalloc(1, sizeof *s);

    s->events = *events;
    s->arg = arg;
    s->push = (struct dt_push){
        .set = access->push, .loop = loop, .job_id = job_id, .moved = on_push_moved, .arg = s
    };
    s->link = dt_link_open(loop, &config, &link_events, s);
    return s;
}

void dt_session_send(struct dt_session *s, uint8_t type, const void *msg)
{
    dt_link_send(s->link, type, msg);
}

void dt_session_send_frames(struct dt_session *s, uint8_t type, const struct dt_put *frames)
{
    dt_link_send_frames(s->link, type, frames);
}

const char *dt_session_phase(const struct dt_session *s)
{
    return dt_link_phase(s->link);
}

const char *dt_session_carrier(const struct dt_session *s)
{
    return dt_link_carrier(s->link);
}

bool dt_session_sent_agent(const struct dt_session *s)
{
    return dt_link_sent_agent(s->link);
}

void dt_session_close(struct dt_session *s)
{
    s->closing = true;
    dt_link_close(s->link);
}
