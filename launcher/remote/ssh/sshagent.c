#include "launcher/remote/ssh/sshagent.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/uvloop.h"
#include "launcher/remote/ssh/sshwire.h"

enum {
    LIST = 11,
    LIST_ANSWER = 12,
    SIGN = 13,
    SIGN_ANSWER = 14,
    RSA_SHA2_256 = 2, /* flags of SIGN */
    RSA_SHA2_512 = 4,
    REPLY_MAX = 256 * 1024,
};

struct dt_sshagent_call {
    uv_pipe_t pipe;
    uv_timer_t timer;
    uv_connect_t connect;
    uv_write_t write;
    dt_sshagent_f done;
    void *arg;
    struct dt_strbuf request;
    struct dt_strbuf reply;
    const char *why; /* NULL once the reply is complete */
    int handles;
};

static void handle_closed(uv_handle_t *handle)
{
    struct dt_sshagent_call *c = handle->data;

    if (--c->handles > 0)
        return;
    c->done(c->arg, c->why ? NULL : &c->reply, c->why);
    dt_strbuf_free(&c->request);
    dt_strbuf_free(&c->reply);
    free(c);
}

static void finish_call(struct dt_sshagent_call *c, const char *why)
{
    if (uv_is_closing((uv_handle_t *)&c->pipe))
        return;
    c->why = why;
    uv_close((uv_handle_t *)&c->pipe, handle_closed);
    uv_close((uv_handle_t *)&c->timer, handle_closed);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct dt_sshagent_call *c = stream->data;
    struct dt_sshget g;
    uint32_t len;

    if (n < 0) {
        finish_call(c, n == UV_EOF ? "it hung up" : uv_strerror((int)n));
        return;
    }
    dt_strbuf_add(&c->reply, buf->base, (size_t)n);
    if (c->reply.len < 4)
        return;
    g = (struct dt_sshget){ c->reply.data, c->reply.len, false };
    len = dt_sshget_u32(&g);
    if (len == 0 || len > REPLY_MAX) {
        finish_call(c, "its answer is malformed");
    } else if (g.n >= len) {
        dt_strbuf_consume(&c->reply, 4);
        finish_call(c, NULL);
    }
}

static void on_connected(uv_connect_t *req, int status)
{
    struct dt_sshagent_call *c = req->data;
    uv_buf_t buf = uv_buf_init(c->request.data, (unsigned)c->request.len);

    if (status == 0)
        status = uv_write(&c->write, req->handle, &buf, 1, NULL);
    if (status == 0)
        status = uv_read_start(req->handle, dt_uvloop_give_buffer, on_read);
    if (status < 0)
        finish_call(c, uv_strerror(status));
}

static void on_timeout(uv_timer_t *timer)
{
    finish_call(timer->data, "it does not answer");
}

struct dt_sshagent_call *dt_sshagent_ask(uv_loop_t *loop, const char *socket,
                                         const struct dt_strbuf *request, unsigned timeout_ms,
                                         dt_sshagent_f done, void *arg)
{
    struct dt_sshagent_call *c = dt_xcalloc(1, sizeof *c);

    c->done = done;
    c->arg = arg;
    dt_sshput_string(&c->request, dt_strbuf_text(request), request->len);
    uv_pipe_init(loop, &c->pipe, 0);
    uv_timer_init(loop, &c->timer);
    c->pipe.data = c->timer.data = c->connect.data = c;
    c->handles = 2;
    if (timeout_ms)
        uv_timer_start(&c->timer, on_timeout, timeout_ms, 0);
    uv_pipe_connect(&c->connect, &c->pipe, socket, on_connected);
    return c;
}

void dt_sshagent_cancel(struct dt_sshagent_call *c)
{
    finish_call(c, "cancelled");
}

void dt_sshagent_list_request(struct dt_strbuf *request)
{
    const char type = LIST;

    dt_strbuf_add(request, &type, 1);
}

int dt_sshagent_list_reply(const struct dt_strbuf *reply, struct dt_auth_keys *keys)
{
    struct dt_sshget g = { dt_strbuf_text(reply), reply->len, false };
    uint8_t type = dt_sshget_u8(&g);
    uint32_t n = dt_sshget_u32(&g);

    if (g.failed || type != LIST_ANSWER)
        return -1;
    for (uint32_t i = 0; i < n; i++) {
        struct dt_sshget blob = dt_sshget_string(&g);
        struct dt_sshget comment = dt_sshget_string(&g);
        struct dt_strbuf b = { 0 };
        char *text;

        if (blob.failed || comment.failed)
            return -1;
        dt_strbuf_add(&b, blob.p, blob.n);
        text = dt_xstrndup(comment.p, comment.n);
        dt_auth_add_agent_key(keys, &b, text);
        free(text);
        dt_strbuf_free(&b);
    }
    return 0;
}

static bool is_string(const struct dt_sshget *s, const char *text)
{
    return s->n == strlen(text) && memcmp(s->p, text, s->n) == 0;
}

/* An RSA key can sign by several algorithms. The data to sign name one of them: session identifier,
 * SSH_MSG_USERAUTH_REQUEST, user, service, "publickey", TRUE, algorithm, public key. */
static uint32_t flags_for(const void *data, size_t n)
{
    struct dt_sshget g = { data, n, false }, algorithm;

    dt_sshget_string(&g);
    dt_sshget_u8(&g);
    for (int i = 0; i < 3; i++)
        dt_sshget_string(&g);
    dt_sshget_u8(&g);
    algorithm = dt_sshget_string(&g);
    if (is_string(&algorithm, "rsa-sha2-512"))
        return RSA_SHA2_512;
    return is_string(&algorithm, "rsa-sha2-256") ? RSA_SHA2_256 : 0;
}

void dt_sshagent_sign_request(struct dt_strbuf *request, const struct dt_strbuf *blob,
                              const void *data, size_t n)
{
    const char type = SIGN;

    dt_strbuf_add(request, &type, 1);
    dt_sshput_string(request, dt_strbuf_text(blob), blob->len);
    dt_sshput_string(request, data, n);
    dt_sshput_u32(request, flags_for(data, n));
}

int dt_sshagent_sign_reply(const struct dt_strbuf *reply, struct dt_strbuf *signature)
{
    struct dt_sshget g = { dt_strbuf_text(reply), reply->len, false };
    uint8_t type = dt_sshget_u8(&g);
    struct dt_sshget whole = dt_sshget_string(&g);
    struct dt_sshget sig;

    if (g.failed || whole.failed || type != SIGN_ANSWER)
        return -1;
    dt_sshget_string(&whole);
    sig = dt_sshget_string(&whole);
    if (sig.failed)
        return -1;
    dt_strbuf_add(signature, sig.p, sig.n);
    return 0;
}
