#include "launcher/agent/facts/gpuask.h"

#include <errno.h>
#include <unistd.h>

#include "launcher/agent/facts/gpustate.h"
#include "launcher/agent/facts/smi.h"
#include "launcher/base/mem.h"
#include "launcher/base/uvloop.h"

enum { PATIENCE_MS = 5000, QUESTIONS = 2 };

static const struct question {
    const char *const *argv;
    void (*parse)(struct dt_msg_facts *facts, const char *text);
} questions[QUESTIONS] = {
    { dt_gpustate_query, dt_gpustate_parse_query },
    { dt_gpustate_topology, dt_gpustate_parse_topology },
};

struct dt_gpuask {
    uv_timer_t patience;
    struct asked {
        uv_poll_t poll;
        struct dt_smi smi;
        struct dt_strbuf text;
        struct dt_gpuask *ask;
    } asked[QUESTIONS];
    unsigned open;    /* questions without a complete answer */
    unsigned handles; /* polls that libuv still uses */
    struct dt_msg_facts facts;
    struct dt_groups *groups;
    void (*done)(void *arg, struct dt_msg_facts *facts);
    void *arg;
};

static void on_poll_closed(uv_handle_t *handle)
{
    struct dt_gpuask *ask = ((struct asked *)handle->data)->ask;

    if (--ask->handles == 0)
        uv_close((uv_handle_t *)&ask->patience, dt_uvloop_free_data);
}

static void finish_gpuask(struct dt_gpuask *ask)
{
    for (int i = 0; i < QUESTIONS; i++) {
        if (ask->asked[i].text.len)
            questions[i].parse(&ask->facts, dt_strbuf_text(&ask->asked[i].text));
        dt_strbuf_free(&ask->asked[i].text);
    }
    ask->done(ask->arg, &ask->facts);
}

static void end_question(struct asked *asked)
{
    struct dt_gpuask *ask = asked->ask;

    if (!asked->smi.pid)
        return;
    uv_poll_stop(&asked->poll);
    uv_close((uv_handle_t *)&asked->poll, on_poll_closed);
    dt_smi_end(&asked->smi, ask->groups);
    if (--ask->open == 0)
        finish_gpuask(ask);
}

static void on_output(uv_poll_t *poll, int status, int events)
{
    struct asked *asked = poll->data;
    char buffer[4096];
    ssize_t n = read(asked->smi.out, buffer, sizeof buffer);

    (void)status; /* read reports the error */
    (void)events;
    if (n > 0)
        dt_strbuf_add(&asked->text, buffer, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        end_question(asked);
}

static void on_patience_over(uv_timer_t *timer)
{
    struct dt_gpuask *ask = timer->data;

    ask->facts.gpu_silent = 1;
    for (int i = 0; i < QUESTIONS; i++)
        end_question(&ask->asked[i]);
}

void dt_gpuask_begin(uv_loop_t *loop, struct dt_msg_facts facts, struct dt_groups *groups,
                     void (*done)(void *arg, struct dt_msg_facts *facts), void *arg)
{
    struct dt_gpuask *ask = dt_xcalloc(1, sizeof *ask);

    ask->facts = facts;
    ask->groups = groups;
    ask->done = done;
    ask->arg = arg;
    uv_timer_init(loop, &ask->patience);
    ask->patience.data = ask;
    for (int i = 0; i < QUESTIONS; i++) {
        struct asked *asked = &ask->asked[i];

        asked->ask = ask;
        if (!dt_smi_start(&asked->smi, questions[i].argv))
            continue;
        uv_poll_init(loop, &asked->poll, asked->smi.out);
        asked->poll.data = asked;
        uv_poll_start(&asked->poll, UV_READABLE, on_output);
        ask->open++;
    }
    ask->handles = ask->open;
    if (ask->open) {
        uv_timer_start(&ask->patience, on_patience_over, PATIENCE_MS, 0);
        return;
    }
    finish_gpuask(ask);
    uv_close((uv_handle_t *)&ask->patience, dt_uvloop_free_data);
}
