#include "launcher/remote/link.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/bytequeue.h"
#include "launcher/base/mem.h"
#include "launcher/base/random.h"
#include "launcher/base/strbuf.h"
#include "launcher/remote/boot.h"
#include "launcher/remote/limit.h"
#include "runtime/wire/env.h"
#include "runtime/wire/frame.h"

enum {
    /* from opening, and from each block of the agent that is sent, to HELLO; the transports'
     * default limits are shorter */
    START_MS = 60 * 1000,
    NOISE_MAX = 256 * 1024, /* a login shell may print this much before the agent answers */
    /* bytes of data in the transport, where control messages cannot overtake them */
    IN_TRANSPORT_MAX = 64 * 1024,
};

enum state {
    BOOTING,    /* the remote side prints lines */
    HELLO_NEXT, /* the agent runs */
    OPEN,
    CLOSING, /* closed() is the only event that follows */
};

struct dt_link {
    struct dt_link_config config;
    struct dt_link_events events;
    void *arg;
    struct dt_strbuf command;
    struct dt_transport *transport; /* NULL: opening failed before a transport existed */
    struct dt_limit limit;
    enum state state;
    const char *carrier;     /* as the transport reported it last */
    bool ending;             /* END has been sent, so the agent will exit */
    bool pushing;            /* the host lacked the agent and has asked for it */
    char *cached;            /* the file of a cached agent that was started, or NULL */
    bool afresh;             /* the cached agent did not start; a new one replaces it */
    size_t pushed;           /* bytes of the agent that the transport has */
    size_t noise;            /* bytes of noise while booting */
    struct dt_bytequeue in;  /* bytes that arrived while booting */
    struct dt_bytequeue err; /* an unfinished line of standard error */
    struct dt_strbuf line;
    char last_noise[256];
    struct dt_unframe unframe;
    struct dt_bytequeue data; /* complete frames */
    struct dt_error why;
};

void dt_link_close(struct dt_link *l)
{
    if (l->state == CLOSING)
        return;
    l->state = CLOSING;
    uv_timer_stop(&l->limit.timer);
    if (l->transport)
        l->config.transport->close(l->transport);
}

static __attribute__((format(printf, 2, 3))) void fail_link(struct dt_link *l, const char *fmt, ...)
{
    va_list ap;

    if (l->state == CLOSING)
        return;
    va_start(ap, fmt);
    dt_error_vset(&l->why, fmt, ap);
    va_end(ap);
    dt_link_close(l);
}

static void say_noise(struct dt_link *l)
{
    const char *text = dt_strbuf_text(&l->line);

    if (*text == '\0')
        return;
    snprintf(l->last_noise, sizeof l->last_noise, "%s", text);
    l->events.noise(l->arg, text);
}

static void feed_transport(struct dt_link *l)
{
    const struct dt_transport_ops *ops = l->config.transport;

    while (l->data.len && ops->pending(l->transport) < IN_TRANSPORT_MAX) {
        const char *head = dt_bytequeue_head(&l->data);
        struct dt_get g = dt_get_init(head, DT_FRAME_HEADER);
        size_t n = DT_FRAME_HEADER + dt_get_u32(&g);

        ops->write(l->transport, head, n);
        dt_bytequeue_consume(&l->data, n);
    }
}

static const char *version_remedy(const struct dt_link *l)
{
    return l->config.transport == &dti_transport_local
               ? "if dtrun was upgraded while the job ran, start the job again; otherwise install "
                 "both in the same version, or correct " DT_ENV_AGENT
               : "install the same version on both, or leave out --no-push";
}

static void take_hello(struct dt_link *l, uint8_t type, const struct dt_msg_hello *hello)
{
    if (type != DT_MSG_HELLO) {
        fail_link(l, "agent start: the agent's first message is not HELLO but %s",
                  dt_msg_name(type));
        return;
    }
    if (hello->protocol != DT_PROTOCOL || strcmp(hello->version, PACKAGE_VERSION) != 0) {
        fail_link(l,
                  "version: its dtrun-agent is version %s (protocol %u), this dtrun is version %s "
                  "(protocol %u); %s",
                  hello->version, hello->protocol, PACKAGE_VERSION, (unsigned)DT_PROTOCOL,
                  version_remedy(l));
        return;
    }
    l->state = OPEN;
    uv_timer_stop(&l->limit.timer);
    if (l->config.transport->greeted)
        l->config.transport->greeted(l->transport);
    l->events.ready(l->arg, hello);
}

static int take_message(void *arg, uint8_t type, const uint8_t *payload, size_t len)
{
    struct dt_link *l = arg;
    union dt_msg msg;

    if (dt_msg_decode(type, payload, len, &msg)) {
        const char *name = dt_msg_name(type);

        fail_link(l, "agent: a malformed message arrived (%s, %zu bytes); this is a bug in dtrun",
                  name ? name : "of unknown type", len);
        return -1;
    }
    if (l->state == HELLO_NEXT)
        take_hello(l, type, &msg.hello);
    else
        l->events.message(l->arg, type, &msg);
    dt_msg_free(type, &msg);
    return l->state == CLOSING ? -1 : 0;
}

/* Returns whether this is no header of a frame, but text. */
static bool is_text(const uint8_t header[DT_FRAME_HEADER])
{
    size_t n = 0;

    while (n < DT_FRAME_HEADER && header[n] != '\n') {
        if (header[n] < ' ' && header[n] != '\t' && header[n] != '\r' && header[n] != '\033')
            return false;
        n++;
    }
    return n > 0;
}

/* Text comes from another process that has the other end of the channel. */
static void refuse_frames(struct dt_link *l, const void *data, size_t n, const char *why)
{
    const uint8_t *header = l->unframe.frame;
    const char *at = memmem(data, n, header, DT_FRAME_HEADER);
    struct dt_bytequeue text = { 0 };

    if (!is_text(header)) {
        fail_link(l, "agent: its messages cannot be read: %s; this is a bug in dtrun",
                  why ? why : "unknown");
        return;
    }
    if (at)
        dt_bytequeue_add(&text, at, n - (size_t)(at - (const char *)data));
    else
        dt_bytequeue_add(&text, header, DT_FRAME_HEADER);
    dt_boot_text_line(&text, &l->line, true);
    dt_bytequeue_free(&text);
    fail_link(l,
              "agent: another process writes \"%.200s\" between its messages, perhaps one that a "
              "start-up file of the login shell has left running; redirect its output there",
              dt_strbuf_text(&l->line));
}

static void take_frames(struct dt_link *l, const void *data, size_t n)
{
    const char *why = NULL;

    if (dt_unframe_feed(&l->unframe, data, n, take_message, l, &why) && l->state != CLOSING)
        refuse_frames(l, data, n, why);
}

static void on_start_timeout(uv_timer_t *timer);

static void push_agent(struct dt_link *l)
{
    const struct dt_transport_ops *ops = l->config.transport;
    const struct dt_strbuf *agent = dt_boot_agent(l->config.remote.agent_path, &l->why);

    if (!agent) {
        dt_link_close(l);
        return;
    }
    while (l->pushed < agent->len && ops->pending(l->transport) < IN_TRANSPORT_MAX) {
        size_t left = agent->len - l->pushed;
        size_t n = left < IN_TRANSPORT_MAX ? left : IN_TRANSPORT_MAX;

        ops->write(l->transport, agent->data + l->pushed, n);
        l->pushed += n;
        dt_limit_start(&l->limit, on_start_timeout, START_MS);
    }
}

static void take_boot_line(struct dt_link *l, enum dt_boot_line kind)
{
    const char *text = dt_strbuf_text(&l->line);

    switch (kind) {
    case DT_BOOT_AGENT:
        if (strcmp(text, "1") != 0)
            fail_link(
                l,
                "version: its dtrun-agent starts with version %s of the protocol, this dtrun with "
                "version 1; %s",
                text, version_remedy(l));
        else
            l->state = HELLO_NEXT;
        break;
    case DT_BOOT_CACHED:
        free(l->cached);
        l->cached = dt_xstrdup(text);
        break;
    case DT_BOOT_NEED:
        l->pushing = true;
        push_agent(l);
        break;
    case DT_BOOT_FAIL:
        fail_link(l, "agent start: %s", text);
        break;
    default:
        l->noise += l->line.len + 1;
        say_noise(l);
        break;
    }
}

static void boot(struct dt_link *l)
{
    while (l->state == BOOTING) {
        enum dt_boot_line kind = dt_boot_next(&l->in, &l->line);

        if (kind == DT_BOOT_INCOMPLETE)
            break;
        take_boot_line(l, kind);
    }
    if (l->state == BOOTING && l->noise + l->in.len > NOISE_MAX)
        fail_link(l,
                  "agent start: the login shell printed more than %d KiB and did not start "
                  "dtrun-agent; make its start-up files quiet for commands",
                  NOISE_MAX / 1024);
}

static void on_data(void *arg, const void *data, size_t n)
{
    struct dt_link *l = arg;

    if (l->state == BOOTING) {
        dt_bytequeue_add(&l->in, data, n);
        boot(l);
        if (l->state != HELLO_NEXT)
            return;
        take_frames(l, dt_bytequeue_head(&l->in), l->in.len);
        dt_bytequeue_free(&l->in);
    } else if (l->state != CLOSING) {
        take_frames(l, data, n);
    }
}

static void on_transport_noise(void *arg, const void *data, size_t n)
{
    struct dt_link *l = arg;

    dt_bytequeue_add(&l->err, data, n);
    while (l->state != CLOSING && dt_boot_text_line(&l->err, &l->line, l->err.len > NOISE_MAX))
        say_noise(l);
}

static void on_transport_drained(void *arg)
{
    struct dt_link *l = arg;

    if (l->state == BOOTING && l->pushing)
        push_agent(l);
    if (l->state != OPEN)
        return;
    feed_transport(l);
    if (dt_link_pending(l) == 0)
        l->events.drained(l->arg);
}

/* What to say of a command that exited with 0 before the agent said anything. */
static const char *explain_silence(const struct dt_link *l)
{
    if (l->config.transport == &dti_transport_local || l->cached || l->pushing)
        return "dtrun-agent exited without a message";
    return "the login shell there exited with code 0 and did not start dtrun-agent; does one "
           "of its start-up files, such as ~/.bashrc, exit?";
}

/* Combines what the transport knows with the state of the conversation. */
static void explain_end(struct dt_link *l, const char *why)
{
    static const char prefix[] = "agent: ";
    bool ended_by_itself = *why == '\0' || strncmp(why, prefix, strlen(prefix)) == 0;

    if (!ended_by_itself || l->state == OPEN) {
        if (*why || !l->ending)
            dt_error_set(&l->why, "%s", *why ? why : "agent: it ended unexpectedly");
        return;
    }
    dt_error_set(&l->why, "agent start: %s%s%s", *why ? why + strlen(prefix) : explain_silence(l),
                 l->last_noise[0] ? "; its last line was: " : "", l->last_noise);
}

static void on_link_timer_closed(uv_handle_t *handle)
{
    struct dt_link *l = handle->data;

    l->events.closed(l->arg, &l->why);
    free(l->cached);
    dt_strbuf_free(&l->command);
    dt_bytequeue_free(&l->in);
    dt_bytequeue_free(&l->err);
    dt_strbuf_free(&l->line);
    dt_unframe_free(&l->unframe);
    dt_bytequeue_free(&l->data);
    free(l);
}

static int make_command(struct dt_link *l)
{
    char token[17];
    const struct dt_boot boot = {
        .agent_path = l->config.remote.agent_path,
        .push = l->config.push,
        .afresh = l->afresh,
        .alone = l->config.remote.alone,
        .token = token,
    };
    uint64_t random;

    dt_random_fill(&random, sizeof random);
    snprintf(token, sizeof token, "%016" PRIx64, random);
    dt_strbuf_free(&l->command);
    if (dt_boot_command(&l->command, &boot, &l->why))
        return -1;
    l->config.remote.command = dt_strbuf_text(&l->command);
    return 0;
}

static void on_start_timeout(uv_timer_t *timer)
{
    struct dt_link *l = timer->data;

    if (l->state == BOOTING && l->pushing)
        fail_link(l,
                  "agent start: %zu KiB of dtrun-agent were sent, then nothing moved for %d s; is "
                  "the network slow or down? if so, install dtrun there and use --no-push",
                  (l->pushed - l->config.transport->pending(l->transport)) / 1024, START_MS / 1000);
    else
        fail_link(l,
                  "%s: no answer for %d s; run a command there by hand, such as true, to see what "
                  "it waits for",
                  dt_link_phase(l), START_MS / 1000);
}

static void on_transport_closed(void *arg, const struct dt_error *why);

/* Returns -1, with the reason in l->why, if the command that starts the agent cannot be made. */
static int begin_link(struct dt_link *l)
{
    static const struct dt_transport_events events = { on_data, on_transport_noise,
                                                       on_transport_drained, on_transport_closed };

    l->transport = NULL;
    if (l->config.transport != &dti_transport_local && make_command(l))
        return -1;
    dt_limit_start(&l->limit, on_start_timeout, START_MS);
    l->transport = l->config.transport->open(l->limit.timer.loop, &l->config.remote, &events, l);
    return 0;
}

/* An intact cached agent either says HELLO or prints an error of its own. */
static bool cached_agent_failed(const struct dt_link *l)
{
    static const char own[] = "dtrun-agent: ";

    return l->state == BOOTING && l->cached && !l->afresh &&
           strncmp(l->last_noise, own, sizeof own - 1) != 0;
}

/* Connects again, with a command that replaces the agent on the host. */
static int begin_replacing(struct dt_link *l)
{
    snprintf(l->last_noise, sizeof l->last_noise, "%s did not start; it is sent again", l->cached);
    l->events.noise(l->arg, l->last_noise);
    l->last_noise[0] = '\0';
    l->noise = 0;
    l->afresh = true;
    return begin_link(l);
}

static void on_transport_closed(void *arg, const struct dt_error *why)
{
    struct dt_link *l = arg;

    while (l->state != CLOSING && dt_boot_text_line(&l->in, &l->line, true))
        say_noise(l);
    while (l->state != CLOSING && dt_boot_text_line(&l->err, &l->line, true))
        say_noise(l);
    if (cached_agent_failed(l) && begin_replacing(l) == 0)
        return;
    if (l->state != CLOSING && !l->why.text[0])
        explain_end(l, why->text);
    l->state = CLOSING;
    l->carrier = dt_link_carrier(l);
    l->transport = NULL;
    uv_close((uv_handle_t *)&l->limit.timer, on_link_timer_closed);
}

static void on_never_opened(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, on_link_timer_closed);
}

struct dt_link *dt_link_open(uv_loop_t *loop, const struct dt_link_config *config,
                             const struct dt_link_events *events, void *arg)
{
    struct dt_link *l = dt_xcalloc(1, sizeof *l);

    l->config = *config;
    l->events = *events;
    l->arg = arg;
    l->carrier = config->transport->name;
    uv_timer_init(loop, &l->limit.timer);
    l->limit.timer.data = l;
    if (begin_link(l) < 0) {
        l->state = CLOSING;
        uv_timer_start(&l->limit.timer, on_never_opened, 0, 0);
    }
    return l;
}

void dt_link_send_frames(struct dt_link *l, uint8_t type, const struct dt_put *frames)
{
    if (l->state != OPEN)
        return;
    if (frames->failed) {
        fail_link(l, "agent: a message is too long to be sent (%s)", dt_msg_name(type));
    } else if (dt_frame_is_data(type)) {
        dt_bytequeue_add(&l->data, frames->data, frames->len);
        feed_transport(l);
    } else {
        l->config.transport->write(l->transport, frames->data, frames->len);
    }
    l->ending |= type == DT_MSG_END;
}

void dt_link_send(struct dt_link *l, uint8_t type, const void *msg)
{
    struct dt_put frames = { 0 };

    dt_msg_frame(&frames, type, msg);
    dt_link_send_frames(l, type, &frames);
    dt_put_free(&frames);
}

size_t dt_link_pending(const struct dt_link *l)
{
    return l->data.len + (l->transport ? l->config.transport->pending(l->transport) : 0);
}

const char *dt_link_carrier(const struct dt_link *l)
{
    const struct dt_transport_ops *ops = l->config.transport;

    return l->transport && ops->carrier ? ops->carrier(l->transport) : l->carrier;
}

bool dt_link_sent_agent(const struct dt_link *l)
{
    return l->pushing;
}

const char *dt_link_phase(const struct dt_link *l)
{
    return l->transport ? l->config.transport->phase(l->transport) : "agent start";
}
