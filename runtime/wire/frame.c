#include "runtime/wire/frame.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/wire/codec.h"

void dt_frame_header(uint8_t out[DT_FRAME_HEADER], uint8_t type, uint8_t flags, uint32_t len)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(len >> (8 * i));
    out[4] = type;
    out[5] = flags;
    out[6] = out[7] = 0;
}

void dt_frame_message(struct dt_put *out, uint8_t type, const void *payload, size_t len)
{
    const uint8_t *p = payload;
    uint8_t header[DT_FRAME_HEADER];

    if (len > (dt_frame_is_data(type) ? (size_t)DT_FRAME_PAYLOAD_MAX : (size_t)DT_MESSAGE_MAX)) {
        out->failed = true;
        return;
    }
    do {
        size_t n = len < DT_FRAME_PAYLOAD_MAX ? len : DT_FRAME_PAYLOAD_MAX;

        dt_frame_header(header, type, n < len ? DT_FRAME_MORE : 0, (uint32_t)n);
        dt_put_bytes(out, header, sizeof header);
        dt_put_bytes(out, p, n);
        p = n ? p + n : p;
        len -= n;
    } while (len);
}

/* Returns NULL, or what is wrong with the header. */
static const char *check_header(const struct dt_unframe *u, uint32_t len, uint8_t type,
                                uint8_t flags)
{
    if (len > DT_FRAME_PAYLOAD_MAX)
        return "a frame is longer than 16 KiB";
    if (type == 0 || (flags & ~DT_FRAME_MORE) || u->frame[6] || u->frame[7])
        return "a frame header is malformed";
    if (dt_frame_is_data(type))
        return flags ? "a data message is split" : NULL;
    if (u->message_type && u->message_type != type)
        return "a control message interrupts another";
    return NULL;
}

static const char *append(struct dt_unframe *u, const uint8_t *data, size_t n)
{
    size_t cap = u->message_cap ? u->message_cap : 4 * DT_FRAME_PAYLOAD_MAX;
    uint8_t *grown;

    if (u->message_len + n > DT_MESSAGE_MAX)
        return "a message is longer than 64 MiB";
    while (cap < u->message_len + n)
        cap *= 2;
    if (cap != u->message_cap) {
        grown = realloc(u->message, cap);
        if (!grown)
            return "out of memory";
        u->message = grown;
        u->message_cap = cap;
    }
    if (n)
        memcpy(u->message + u->message_len, data, n);
    u->message_len += n;
    return NULL;
}

static int deliver(struct dt_unframe *u, uint32_t len, dt_message_f cb, void *arg, const char **why)
{
    uint8_t type = u->frame[4];
    const uint8_t *payload = u->frame + DT_FRAME_HEADER;
    bool more = u->frame[5] & DT_FRAME_MORE;
    size_t total;

    if (dt_frame_is_data(type) || (!more && !u->message_type))
        return cb(arg, type, payload, len);
    *why = append(u, payload, len);
    if (*why)
        return -1;
    u->message_type = more ? type : 0;
    if (more)
        return 0;
    total = u->message_len;
    u->message_len = 0;
    return cb(arg, type, u->message, total);
}

int dt_unframe_feed(struct dt_unframe *u, const void *data, size_t n, dt_message_f cb, void *arg,
                    const char **why)
{
    const uint8_t *p = data;
    int rc;

    while (n) {
        size_t want = DT_FRAME_HEADER;
        uint32_t len = 0;
        size_t take;

        if (u->have >= DT_FRAME_HEADER) {
            struct dt_get g = dt_get_init(u->frame, 4);

            len = dt_get_u32(&g);
            want += len;
        }
        take = want - u->have < n ? want - u->have : n;
        memcpy(u->frame + u->have, p, take);
        u->have += take;
        p += take;
        n -= take;
        if (u->have < want)
            continue;
        if (want == DT_FRAME_HEADER && len == 0) {
            struct dt_get g = dt_get_init(u->frame, 4);

            len = dt_get_u32(&g);
            *why = check_header(u, len, u->frame[4], u->frame[5]);
            if (*why)
                return -1;
            if (len)
                continue;
        }
        u->have = 0;
        rc = deliver(u, len, cb, arg, why);
        if (rc)
            return rc;
    }
    return 0;
}

void dt_unframe_free(struct dt_unframe *u)
{
    free(u->message);
    u->message = NULL;
    u->message_len = u->message_cap = 0;
    u->message_type = 0;
    u->have = 0;
}
