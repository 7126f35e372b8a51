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
    size_t max = dt_frame_is_data(type) ? DT_FRAME_PAYLOAD_MAX : DT_MESSAGE_MAX;

    if (len > max) {
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

/* Valid once the header has been received. */
static uint32_t payload_size(const struct dt_unframe *u)
{
    struct dt_get g = dt_get_init(u->frame, 4);

    return dt_get_u32(&g);
}

/* Returns NULL, or what is wrong with the header. */
static const char *check_header(const struct dt_unframe *u)
{
    uint8_t type = u->frame[4], flags = u->frame[5];

    if (payload_size(u) > DT_FRAME_PAYLOAD_MAX)
        return "a frame is longer than 16 KiB";
    if (type == 0 || (flags & ~DT_FRAME_MORE) || u->frame[6] || u->frame[7])
        return "a frame header is malformed";
    if (dt_frame_is_data(type))
        return flags ? "a data message is split" : NULL;
    if (u->message_type && u->message_type != type)
        return "a control message interrupts another";
    return NULL;
}

/* Returns NULL, or why the message cannot grow. */
static const char *append_to_message(struct dt_unframe *u, const uint8_t *data, size_t n)
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

/* Handles the frame that has been received whole. */
static int deliver(struct dt_unframe *u, dt_message_f cb, void *arg, const char **why)
{
    uint8_t type = u->frame[4];
    const uint8_t *payload = u->frame + DT_FRAME_HEADER;
    uint32_t len = payload_size(u);
    bool more = u->frame[5] & DT_FRAME_MORE;
    size_t total;

    if (dt_frame_is_data(type) || (!more && !u->message_type))
        return cb(arg, type, payload, len);
    *why = append_to_message(u, payload, len);
    if (*why)
        return -1;
    u->message_type = more ? type : 0;
    if (more)
        return 0;
    total = u->message_len;
    u->message_len = 0;
    return cb(arg, type, u->message, total);
}

/* Returns the size of the frame that is being received, as far as it is known. */
static size_t frame_size(const struct dt_unframe *u)
{
    return u->have < DT_FRAME_HEADER ? DT_FRAME_HEADER : DT_FRAME_HEADER + payload_size(u);
}

int dt_unframe_feed(struct dt_unframe *u, const void *data, size_t n, dt_message_f cb, void *arg,
                    const char **why)
{
    const uint8_t *p = data;

    while (n) {
        size_t missing = frame_size(u) - u->have, taken = missing < n ? missing : n;
        int rc;

        memcpy(u->frame + u->have, p, taken);
        u->have += taken;
        p += taken;
        n -= taken;
        if (u->have == DT_FRAME_HEADER) {
            *why = check_header(u);
            if (*why)
                return -1;
        }
        if (u->have < frame_size(u))
            continue;
        u->have = 0;
        rc = deliver(u, cb, arg, why);
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
