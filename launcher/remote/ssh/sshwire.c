#include "launcher/remote/ssh/sshwire.h"

static const uint8_t *take(struct dt_sshget *g, size_t n)
{
    const uint8_t *p = (const uint8_t *)g->p;

    if (g->failed || n > g->n) {
        g->failed = true;
        return NULL;
    }
    g->p += n;
    g->n -= n;
    return p;
}

uint8_t dt_sshget_u8(struct dt_sshget *g)
{
    const uint8_t *p = take(g, 1);

    return p ? *p : 0;
}

uint32_t dt_sshget_u32(struct dt_sshget *g)
{
    const uint8_t *p = take(g, 4);

    return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

struct dt_sshget dt_sshget_string(struct dt_sshget *g)
{
    uint32_t n = dt_sshget_u32(g);
    const char *p = (const char *)take(g, n);

    return (struct dt_sshget){ p ? p : "", p ? n : 0, p == NULL };
}

void dt_sshput_u32(struct dt_strbuf *b, uint32_t v)
{
    const char bytes[4] = { (char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v };

    dt_strbuf_add(b, bytes, sizeof bytes);
}

void dt_sshput_string(struct dt_strbuf *b, const void *data, size_t n)
{
    dt_sshput_u32(b, (uint32_t)n);
    dt_strbuf_add(b, data, n);
}
