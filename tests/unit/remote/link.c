/* The link over the local transport, with shell scripts as agents, and over a transport that only
 * records. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/bytequeue.h"
#include "launcher/remote/link.h"
#include "runtime/wire/frame.h"

struct seen {
    struct dt_link *link;
    int ready;
    int messages;
    int closed;
    bool end_when_ready;
    bool close_when_ready;
    char noise[512];
    char why[1024];
};

static void on_ready(void *arg, const struct dt_msg_hello *hello)
{
    struct seen *s = arg;

    assert_string_equal(hello->hostname, "fake");
    s->ready++;
    if (s->end_when_ready)
        dt_link_send(s->link, DT_MSG_END, &(struct dt_msg_end){ 0 });
    if (s->close_when_ready)
        dt_link_close(s->link);
}

static void on_message(void *arg, uint8_t type, union dt_msg *msg)
{
    struct seen *s = arg;

    (void)type;
    (void)msg;
    assert_false(s->close_when_ready);
    s->messages++;
}

static void on_noise(void *arg, const char *line)
{
    struct seen *s = arg;

    if (strlen(s->noise) + strlen(line) + 2 > sizeof s->noise)
        return;
    strcat(s->noise, line);
    strcat(s->noise, "|");
}

static void on_drained(void *arg)
{
    (void)arg;
}

static void on_closed(void *arg, const struct dt_error *why)
{
    struct seen *s = arg;

    s->closed++;
    strcpy(s->why, why->text);
}

static const struct dt_link_events events = { on_ready, on_message, on_noise, on_drained,
                                              on_closed };

/* A file with HELLO and one LOG message, framed. */
static void write_greeting(const char *path, uint32_t protocol, const char *version)
{
    struct dt_put out = { 0 };
    struct dt_msg_hello hello = { .protocol = protocol,
                                  .version = (char *)(uintptr_t)version,
                                  .identity = "i",
                                  .hostname = "fake",
                                  .addr = "",
                                  .peer_addr = "" };
    struct dt_msg_log log = { .text = "hello" };
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    dt_msg_frame(&out, DT_MSG_HELLO, &hello);
    dt_msg_frame(&out, DT_MSG_LOG, &log);
    assert_false(out.failed);
    assert_int_equal(fwrite(out.data, 1, out.len, f), out.len);
    fclose(f);
    dt_put_free(&out);
}

static struct seen run_agent(const char *script, const struct seen *wishes)
{
    char dir[] = "/tmp/dtrun-link-XXXXXX";
    char agent[64];
    char good[64];
    char other[64];
    FILE *f;
    uv_loop_t loop;
    struct seen s = wishes ? *wishes : (struct seen){ 0 };
    struct dt_host host = { .name = "fake", .local = true };
    struct dt_link_config config = {
        .transport = &dti_transport_local,
        .push = true,
        .remote = { .host = &host, .agent_path = agent },
    };

    assert_non_null(mkdtemp(dir));
    snprintf(agent, sizeof agent, "%s/agent", dir);
    snprintf(good, sizeof good, "%s/hello", dir);
    snprintf(other, sizeof other, "%s/other", dir);
    write_greeting(good, DT_PROTOCOL, PACKAGE_VERSION);
    write_greeting(other, DT_PROTOCOL, "0.0.9");
    if (script) {
        f = fopen(agent, "w");
        assert_non_null(f);
        fprintf(f, "#!/bin/sh\ncd %s\n%s\n", dir, script);
        fclose(f);
        chmod(agent, 0700);
    }
    uv_loop_init(&loop);
    s.link = dt_link_open(&loop, &config, &events, &s);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(s.closed, 1);
    unlink(agent);
    unlink(good);
    unlink(other);
    rmdir(dir);
    return s;
}

static void the_end_of_a_link_is_explained(void **state)
{
    static const struct {
        const char *script; /* NULL: there is no such file */
        int ready;
        const char *noise;
        const char *why; /* the beginning; "": exactly empty */
    } cases[] = {
        { NULL, 0, "", "agent start: " },
        { "exit 0", 0, "", "agent start: dtrun-agent exited without a message" },
        { "echo oops >&2; exit 0", 0, "oops|",
          "agent start: dtrun-agent exited without a message; its last line was: oops" },
        { "exit 3", 0, "", "agent start: dtrun-agent exited with code 3" },
        { "echo DTRUN-AGENT 1; cat hello", 1, "", "agent: it ended unexpectedly" },
        { "printf 'motd\\nhalf'; echo DTRUN-AGENT 1; cat hello; kill -9 $$", 1, "motd|half|",
          "agent: dtrun-agent was killed by signal 9" },
        { "echo DTRUN-AGENT 1; cat other; cat", 0, "",
          "version: its dtrun-agent is version 0.0.9 (protocol 1), this dtrun is version " },
        { "echo DTRUN-AGENT 7; cat", 0, "",
          "version: its dtrun-agent starts with version 7 of the protocol, this dtrun with version "
          "1; if dtrun was upgraded while the job ran, start the job again; otherwise " },
        { "echo DTRUN-AGENT 1; cat hello; printf '\\001is no frame'; cat", 1, "",
          "agent: its messages cannot be read: a frame is longer than 16 KiB; this is a bug in " },
        { "echo DTRUN-AGENT 1; cat hello; echo cache updated; cat hello; cat", 1, "",
          "agent: another process writes \"cache updated\" between its messages, perhaps " },
        { "echo DTRUN-AGENT 1; cat hello; echo ok; cat hello; cat", 1, "",
          "agent: another process writes \"ok\" between its messages, perhaps " },
        { "echo DTRUN-FAIL no room; cat", 0, "", "agent start: no room" },
        { "echo DTRUN-AGENT 1; tail -c 18 hello; cat", 0, "",
          "agent start: the agent's first message is not HELLO but log" },
        { "exec yes", 0, NULL, "agent start: the login shell printed more than 256 KiB" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen s = run_agent(cases[i].script, NULL);

        assert_int_equal(s.ready, cases[i].ready);
        assert_int_equal(s.messages, cases[i].ready);
        if (cases[i].noise)
            assert_string_equal(s.noise, cases[i].noise);
        if (strncmp(s.why, cases[i].why, strlen(cases[i].why)) != 0)
            fail_msg("case %zu: \"%s\"", i, s.why);
    }
}

/* The beginning may be a path that the user chose. */
static void a_long_reason_keeps_its_remedy(void **state)
{
    static const char remedy[] = "; make room there";
    struct seen s = run_agent("printf 'DTRUN-FAIL %03000d; make room there\\n' 0; cat", NULL);

    (void)state;
    assert_true(strlen(s.why) < DT_ERROR_SIZE);
    assert_string_equal(s.why + strlen(s.why) - strlen(remedy), remedy);
}

static void an_agent_that_was_told_to_end_is_no_failure(void **state)
{
    struct seen wishes = { .end_when_ready = true };
    struct seen s = run_agent("echo DTRUN-AGENT 1; cat hello; head -c 9 >/dev/null", &wishes);

    (void)state;
    assert_int_equal(s.ready, 1);
    assert_string_equal(s.why, "");
}

static void closing_ends_the_agent_and_delivers_nothing_more(void **state)
{
    struct seen wishes = { .close_when_ready = true };
    struct seen s = run_agent("echo DTRUN-AGENT 1; cat hello; exec cat", &wishes);

    (void)state;
    assert_int_equal(s.ready, 1);
    assert_string_equal(s.why, "");
}

/* A transport whose outbox does not drain by itself. */
struct dt_transport {
    struct dt_bytequeue sent;
    const struct dt_transport_events *events;
    void *arg;
};

static struct dt_transport recorder;

static struct dt_transport *recorder_open(uv_loop_t *loop, const struct dt_remote *remote,
                                          const struct dt_transport_events *ev, void *arg)
{
    static struct dt_transport_events copy;

    (void)loop;
    (void)remote;
    copy = *ev;
    recorder = (struct dt_transport){ .events = &copy, .arg = arg };
    return &recorder;
}

static void recorder_write(struct dt_transport *t, const void *data, size_t n)
{
    dt_bytequeue_add(&t->sent, data, n);
}

static size_t recorder_pending(const struct dt_transport *t)
{
    return t->sent.len;
}

static void recorder_close(struct dt_transport *t)
{
    (void)t;
}

static const struct dt_transport_ops recorder_ops = { .name = "recorder",
                                                      .open = recorder_open,
                                                      .write = recorder_write,
                                                      .pending = recorder_pending,
                                                      .close = recorder_close };

static int note_type(void *arg, uint8_t type, const uint8_t *payload, size_t len)
{
    uint8_t *last = arg;

    (void)payload;
    (void)len;
    *last = type;
    return 0;
}

static void control_overtakes_data(void **state)
{
    uv_loop_t loop;
    struct seen s = { 0 };
    struct dt_host host = { .name = "fake" };
    struct dt_link_config config = {
        .transport = &recorder_ops,
        .push = true,
        .remote = { .host = &host, .agent_path = "/proc/self/exe" },
    };
    struct dt_put hello = { 0 };
    static char block[DT_FRAME_PAYLOAD_MAX / 2];
    struct dt_msg_stdin in = { .data = { (const uint8_t *)block, sizeof block } };
    static struct dt_unframe u;
    const char *why = NULL;
    uint8_t last = 0;
    size_t ahead;

    (void)state;
    uv_loop_init(&loop);
    s.link = dt_link_open(&loop, &config, &events, &s);
    dt_put_bytes(&hello, "DTRUN-AGENT 1\n", 14);
    dt_msg_frame(&hello, DT_MSG_HELLO,
                 &(struct dt_msg_hello){ .protocol = DT_PROTOCOL,
                                         .version = PACKAGE_VERSION,
                                         .identity = "",
                                         .hostname = "fake",
                                         .addr = "",
                                         .peer_addr = "" });
    for (size_t i = 0; i < hello.len; i++) /* in the smallest pieces */
        recorder.events->data(recorder.arg, hello.data + i, 1);
    assert_int_equal(s.ready, 1);
    for (int i = 0; i < 100; i++)
        dt_link_send(s.link, DT_MSG_STDIN, &in);
    assert_true(dt_link_pending(s.link) > 100 * sizeof block);
    ahead = recorder.sent.len;
    assert_true(ahead < 128 * 1024);
    dt_link_send(s.link, DT_MSG_PING, &(struct dt_msg_ping){ .time_ns = 1 });
    assert_int_equal(dt_unframe_feed(&u, dt_bytequeue_head(&recorder.sent), recorder.sent.len,
                                     note_type, &last, &why),
                     0);
    assert_int_equal(last, DT_MSG_PING);
    dt_bytequeue_consume(&recorder.sent, recorder.sent.len);
    recorder.events->drained(recorder.arg);
    assert_true(recorder.sent.len > 0);
    dt_link_close(s.link);
    recorder.events->closed(recorder.arg, &(struct dt_error){ 0 });
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(s.closed, 1);
    dt_bytequeue_free(&recorder.sent);
    dt_unframe_free(&u);
    dt_put_free(&hello);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_a_link_is_explained),
        cmocka_unit_test(a_long_reason_keeps_its_remedy),
        cmocka_unit_test(an_agent_that_was_told_to_end_is_no_failure),
        cmocka_unit_test(closing_ends_the_agent_and_delivers_nothing_more),
        cmocka_unit_test(control_overtakes_data),
    };

    alarm(300); /* a link that never closes must not hold up the others */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
