#include <string.h>

#include "runtime/wire/codec.h"
#include "runtime/wire/frame.h"
#include "tests/unit/unit.h"

enum { CONTROL = 1, OTHER = 2, DATA = 0x80, KIB16 = DT_FRAME_PAYLOAD_MAX };

/* What arrived: type, length and bytes of every message, one after the other. */
struct heard {
    struct dt_put log;
    int count;
    int stop_at; /* the callback returns 7 at this message */
};

static int hear(void *arg, uint8_t type, const uint8_t *payload, size_t len)
{
    struct heard *h = arg;

    dt_put_u8(&h->log, type);
    dt_put_u64(&h->log, len);
    dt_put_bytes(&h->log, payload, len);
    return ++h->count == h->stop_at ? 7 : 0;
}

static const struct {
    uint8_t type;
    size_t len;
} traffic[] = {
    { CONTROL, 0 },         { CONTROL, 1 },           { DATA, 0 }, { DATA, KIB16 },
    { CONTROL, KIB16 - 1 }, { CONTROL, KIB16 },       { DATA, 5 }, { CONTROL, KIB16 + 1 },
    { OTHER, 3 * KIB16 },   { OTHER, 5 * KIB16 + 7 }, { DATA, 1 }, { CONTROL, 3 },
};

enum { NTRAFFIC = sizeof traffic / sizeof *traffic };

static uint8_t pattern[8 * KIB16];

/* Writes all traffic as frames to out, and what should arrive to want. */
static void send_traffic(struct dt_put *out, struct dt_put *want)
{
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (uint8_t)(i * 31 + i / 256);
    for (size_t i = 0; i < NTRAFFIC; i++) {
        dt_frame_message(out, traffic[i].type, pattern + i, traffic[i].len);
        dt_put_u8(want, traffic[i].type);
        dt_put_u64(want, traffic[i].len);
        dt_put_bytes(want, pattern + i, traffic[i].len);
    }
    assert_false(out->failed);
}

static void pieces_of_any_size_give_the_same_messages(void **state)
{
    static const size_t pieces[] = { 1, 2, 3, 7, 8, 9, 4096, KIB16 + 8, KIB16 + 9, 1 << 20 };
    struct dt_put out = { 0 }, want = { 0 };

    (void)state;
    send_traffic(&out, &want);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct dt_unframe u = { 0 };
        struct heard h = { 0 };
        const char *why = NULL;

        for (size_t at = 0; at < out.len; at += pieces[i]) {
            size_t n = out.len - at < pieces[i] ? out.len - at : pieces[i];

            assert_int_equal(dt_unframe_feed(&u, out.data + at, n, hear, &h, &why), 0);
        }
        assert_int_equal(h.count, NTRAFFIC);
        assert_int_equal(h.log.len, want.len);
        assert_memory_equal(h.log.data, want.data, want.len);
        dt_unframe_free(&u);
        dt_put_free(&h.log);
    }
    dt_put_free(&out);
    dt_put_free(&want);
}

static void frame(struct dt_put *out, uint8_t type, uint8_t flags, size_t len)
{
    uint8_t header[DT_FRAME_HEADER];

    dt_frame_header(header, type, flags, (uint32_t)len);
    dt_put_bytes(out, header, sizeof header);
    dt_put_bytes(out, pattern, len);
}

static void data_may_arrive_between_the_frames_of_a_message(void **state)
{
    struct dt_put out = { 0 };
    struct dt_unframe u = { 0 };
    struct heard h = { 0 };
    const char *why;
    static const uint8_t heads[] = { DATA, 2, 0, 0, 0, 0, 0, 0, 0 };

    (void)state;
    frame(&out, CONTROL, DT_FRAME_MORE, 3);
    frame(&out, DATA, 0, 2);
    frame(&out, CONTROL, DT_FRAME_MORE, 0);
    frame(&out, CONTROL, 0, 0);
    assert_int_equal(dt_unframe_feed(&u, out.data, out.len, hear, &h, &why), 0);
    assert_int_equal(h.count, 2);
    assert_memory_equal(h.log.data, heads, sizeof heads);
    assert_int_equal(h.log.data[sizeof heads + 2], CONTROL);
    assert_int_equal(h.log.data[sizeof heads + 3], 3);
    dt_unframe_free(&u);
    dt_put_free(&h.log);
    dt_put_free(&out);
}

static void hostile_headers_are_refused(void **state)
{
    static const struct {
        uint8_t bytes[2 * DT_FRAME_HEADER];
        size_t n;
        const char *why;
    } cases[] = {
        { { 0x01, 0x40, 0, 0, CONTROL, 0, 0, 0 }, 8, "longer than 16 KiB" },
        { { 0xff, 0xff, 0xff, 0xff, CONTROL, 0, 0, 0 }, 8, "longer than 16 KiB" },
        { { 0, 0, 0, 0x80, DATA, 0, 0, 0 }, 8, "longer than 16 KiB" },
        { { 0, 0, 0, 0, 0, 0, 0, 0 }, 8, "malformed" },
        { { 0, 0, 0, 0, CONTROL, 2, 0, 0 }, 8, "malformed" },
        { { 0, 0, 0, 0, CONTROL, 0xfe, 0, 0 }, 8, "malformed" },
        { { 0, 0, 0, 0, CONTROL, 0, 1, 0 }, 8, "malformed" },
        { { 0, 0, 0, 0, CONTROL, 0, 0, 1 }, 8, "malformed" },
        { { 0, 0, 0, 0, DATA, DT_FRAME_MORE, 0, 0 }, 8, "a data message is split" },
        { { 0, 0, 0, 0, CONTROL, DT_FRAME_MORE, 0, 0, 0, 0, 0, 0, OTHER, 0, 0, 0 },
          16,
          "interrupts" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_unframe u = { 0 };
        struct heard h = { 0 };
        const char *why = NULL;

        assert_int_equal(dt_unframe_feed(&u, cases[i].bytes, cases[i].n - 1, hear, &h, &why), 0);
        assert_int_equal(dt_unframe_feed(&u, cases[i].bytes + cases[i].n - 1, 1, hear, &h, &why),
                         -1);
        if (!strstr(why, cases[i].why))
            fail_msg("case %zu: said: %s", i, why);
        assert_int_equal(h.count, 0);
        dt_unframe_free(&u);
    }
}

static void an_endless_message_is_refused_at_64_mib(void **state)
{
    struct dt_put out = { 0 };
    struct dt_unframe u = { 0 };
    struct heard h = { 0 };
    const char *why = NULL;

    (void)state;
    frame(&out, CONTROL, DT_FRAME_MORE, KIB16);
    for (int i = 0; i < DT_MESSAGE_MAX / KIB16; i++)
        assert_int_equal(dt_unframe_feed(&u, out.data, out.len, hear, &h, &why), 0);
    assert_int_equal(dt_unframe_feed(&u, out.data, out.len, hear, &h, &why), -1);
    assert_string_equal(why, "a message is longer than 64 MiB");
    dt_unframe_free(&u);
    dt_put_free(&out);
}

static void the_callback_can_stop(void **state)
{
    struct dt_put out = { 0 };
    struct dt_unframe u = { 0 };
    struct heard h = { .stop_at = 2 };
    const char *why = NULL;

    (void)state;
    for (int i = 0; i < 3; i++)
        frame(&out, CONTROL, 0, 4);
    assert_int_equal(dt_unframe_feed(&u, out.data, out.len, hear, &h, &why), 7);
    assert_int_equal(h.count, 2);
    dt_unframe_free(&u);
    dt_put_free(&h.log);
    dt_put_free(&out);
}

static void a_payload_that_no_frame_can_carry_is_not_written(void **state)
{
    struct dt_put out = { 0 };

    (void)state;
    dt_frame_message(&out, DATA, pattern, KIB16);
    assert_false(out.failed);
    dt_frame_message(&out, DATA, pattern, KIB16 + 1);
    assert_true(out.failed);
    out.failed = false;
    dt_frame_message(&out, CONTROL, pattern, (size_t)DT_MESSAGE_MAX + 1);
    assert_true(out.failed);
    assert_int_equal(out.len, DT_FRAME_HEADER + KIB16);
    dt_put_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_size_give_the_same_messages),
        cmocka_unit_test(data_may_arrive_between_the_frames_of_a_message),
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(an_endless_message_is_refused_at_64_mib),
        cmocka_unit_test(the_callback_can_stop),
        cmocka_unit_test(a_payload_that_no_frame_can_carry_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
