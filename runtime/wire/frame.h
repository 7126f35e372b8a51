/* Frames on the control channel between launcher and agent.
 *
 *     u32 length of the payload (at most 16 KiB) | u8 type | u8 flags | u16 zero | payload
 *
 * A control message (type below 0x80) that does not fit into one frame is sent as several frames of
 * its type, all but the last flagged MORE. Only data frames may come between them. A data message
 * (type 0x80 and above) is always one frame. So data never delay control by more than one frame. */
#ifndef DT_WIRE_FRAME_H
#define DT_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DT_FRAME_HEADER = 8,
    DT_FRAME_PAYLOAD_MAX = 16 * 1024,
    DT_FRAME_MORE = 1,
    DT_FRAME_DATA_BIT = 0x80,
    DT_MESSAGE_MAX = 64 * 1024 * 1024,
};

static inline bool dt_frame_is_data(uint8_t type)
{
    return (type & DT_FRAME_DATA_BIT) != 0;
}

/* Writes a frame's header, for a payload of len bytes. */
void dt_frame_header(uint8_t out[DT_FRAME_HEADER], uint8_t type, uint8_t flags, uint32_t len);

/* Reassembles messages from any chunks of bytes. Zero-initialise. */
struct dt_unframe {
    uint8_t frame[DT_FRAME_HEADER + DT_FRAME_PAYLOAD_MAX]; /* the frame being received */
    size_t have;                                           /* bytes of it */
    uint8_t *message; /* the control message being received in several frames */
    size_t message_len;
    size_t message_cap;
    uint8_t message_type; /* 0: none */
};

/* Called once for each whole message. A value other than 0 stops dt_unframe_feed, which returns it.
 */
typedef int (*dt_message_f)(void *arg, uint8_t type, const uint8_t *payload, size_t len);

/* Returns 0, the callback's non-zero value, or -1 for an invalid frame or if out of memory (*why
 * then points to a constant text). After anything but 0 the stream is unusable. */
int dt_unframe_feed(struct dt_unframe *u, const void *data, size_t n, dt_message_f cb, void *arg,
                    const char **why);
void dt_unframe_free(struct dt_unframe *u);

struct dt_put;

/* Appends a whole message as frames to out, which has no maximum. A message that is too long sets
 * out->failed. */
void dt_frame_message(struct dt_put *out, uint8_t type, const void *payload, size_t len);

#endif
