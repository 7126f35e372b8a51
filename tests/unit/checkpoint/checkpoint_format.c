#include <stdlib.h>
#include <string.h>

#include "runtime/base/checksum.h"
#include "runtime/checkpoint/format.h"
#include "runtime/checkpoint/names.h"
#include "tests/unit/unit.h"

static const struct dt_owner me = { .job_id = "train-0123abcd", .generation = 3 };

static void names_are_parsed(void **state)
{
    static const struct {
        const char *name;
        enum dt_entry_kind kind;
        int64_t step;
    } cases[] = {
        { "step_000000000120", DT_ENTRY_CHECKPOINT, 120 },
        { "step_000000000000", DT_ENTRY_CHECKPOINT, 0 },
        { "step_1234567890123", DT_ENTRY_CHECKPOINT, 1234567890123 },
        { "step_9223372036854775807", DT_ENTRY_CHECKPOINT, INT64_MAX },
        { "step_9223372036854775808", DT_ENTRY_OTHER, -1 },
        { "step_99999999999999999999", DT_ENTRY_OTHER, -1 },
        { "step_120", DT_ENTRY_OTHER, -1 },
        { "step_00000000000120", DT_ENTRY_OTHER, -1 },
        { "step_000000000120x", DT_ENTRY_OTHER, -1 },
        { "step_00000000-120", DT_ENTRY_OTHER, -1 },
        { "step_-00000000120", DT_ENTRY_OTHER, -1 },
        { "step_+00000000120", DT_ENTRY_OTHER, -1 },
        { "step_ 00000000120", DT_ENTRY_OTHER, -1 },
        { "step_", DT_ENTRY_OTHER, -1 },
        { ".replaced-step_000000000120", DT_ENTRY_REPLACED, 120 },
        { ".replaced-step_120", DT_ENTRY_OTHER, -1 },
        { ".trash-any", DT_ENTRY_TRASH, -1 },
        { ".save-train-0123abcd-g2-step_000000000120", DT_ENTRY_LEFT_BEHIND, -1 },
        { ".save-train-0123abcd-g3-token-00", DT_ENTRY_LEFT_BEHIND, -1 },
        { ".save-train-0123abcd-g4-step_000000000120", DT_ENTRY_OTHER, -1 },
        { ".save-train-0123abcd-g-step_000000000120", DT_ENTRY_LEFT_BEHIND, -1 },
        { ".save-train-0123abce-g2-step_000000000120", DT_ENTRY_LEFT_BEHIND, -1 },
        { "earlier-train-0123abcd", DT_ENTRY_OTHER, -1 },
        { "notes.txt", DT_ENTRY_OTHER, -1 },
        { "", DT_ENTRY_OTHER, -1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_entry e = dt_entry_of(cases[i].name, &me);

        if (e.kind != cases[i].kind || e.step != cases[i].step)
            fail_msg("%s: kind %d, step %lld", cases[i].name, (int)e.kind, (long long)e.step);
    }
}

static void names_fit_whatever_the_job_is_called(void **state)
{
    char job[300];
    struct dt_owner owner = { .job_id = job, .generation = UINT32_MAX };
    struct dt_name n;

    (void)state;
    memset(job, 'x', sizeof job - 1);
    job[sizeof job - 1] = '\0';
    n = dt_name_unfinished(&owner, dt_name_checkpoint(INT64_MAX).s);
    assert_true(strlen(n.s) < DT_NAME_BYTES - 1);
    assert_int_equal(dt_entry_of(n.s, &owner).kind, DT_ENTRY_LEFT_BEHIND);
    assert_int_equal(dt_entry_of(dt_name_trash(&owner, INT64_MAX, UINT32_MAX).s, &owner).kind,
                     DT_ENTRY_TRASH);
}

static void later_steps_are_named_lowest_first(void **state)
{
    int64_t steps[] = { 30, 10, 50, 20, 40 };

    (void)state;
    assert_int_equal(dt_steps_after(steps, 5, 50), 0);
    assert_int_equal(dt_steps_after(steps, 5, 20), 3);
    assert_memory_equal(steps, ((int64_t[]){ 30, 40, 50 }), 3 * sizeof *steps);
    assert_int_equal(dt_steps_after(steps, 5, 0), 5);
    assert_memory_equal(steps, ((int64_t[]){ 10, 20, 30, 40, 50 }), sizeof steps);
}

static void the_two_newest_checkpoints_stay(void **state)
{
    static const struct {
        int64_t steps[5];
        size_t n;
        int64_t committed;
        int64_t gone[5];
        size_t n_gone;
    } cases[] = {
        { { 0 }, 1, 0, { 0 }, 0 },
        { { 10, 20 }, 2, 20, { 0 }, 0 },
        { { 10, 30, 20 }, 3, 30, { 10 }, 1 },
        { { 40, 10, 30, 20 }, 4, 40, { 20, 10 }, 2 },
        /* 40 belongs to a course that was left: it is neither counted nor touched */
        { { 40, 10, 30, 20 }, 4, 30, { 10 }, 1 },
        { { 100, 200, 5 }, 3, 5, { 0 }, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t steps[5];

        memcpy(steps, cases[i].steps, sizeof steps);
        assert_int_equal(dt_steps_retire(steps, cases[i].n, cases[i].committed, 2),
                         cases[i].n_gone);
        assert_memory_equal(steps, cases[i].gone, cases[i].n_gone * sizeof *steps);
    }
}

/* A shard's head with two buffers, encoded. */
static struct dt_put encoded_head(struct dt_shard_head *head)
{
    struct dt_put p = { 0 };

    *head = (struct dt_shard_head){ .step = 7, .np = 4, .rank = 2 };
    assert_int_equal(dt_buffers_add(&head->buffers, "weights", NULL, 1ULL << 40), 0);
    assert_int_equal(dt_buffers_add(&head->buffers, "rng", NULL, 0), 0);
    dt_shard_head_encode(&p, head);
    assert_false(p.failed);
    return p;
}

static void a_head_survives_the_round_trip(void **state)
{
    struct dt_shard_head head, again;
    struct dt_put p = encoded_head(&head);
    char why[100] = "";
    size_t rest = dt_shard_prefix_decode(p.data);

    (void)state;
    assert_int_equal(rest, p.len - DT_SHARD_PREFIX);
    assert_int_equal(dt_shard_head_decode(p.data + DT_SHARD_PREFIX, rest, &again), 0);
    assert_true(dt_shard_fits(&again, &head, why, sizeof why));
    dt_shard_head_free(&again);
    dt_shard_head_free(&head);
    dt_put_free(&p);
}

/* Each truncation and each flipped byte is refused or decoded to something else, but never
 * misread. */
static void a_damaged_head_does_no_harm(void **state)
{
    struct dt_shard_head head, again;
    struct dt_put p = encoded_head(&head);
    const uint8_t *rest = p.data + DT_SHARD_PREFIX;
    size_t len = p.len - DT_SHARD_PREFIX;

    (void)state;
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *exact =
            malloc(cut ? cut : 1); /* of exactly this size, so that sanitizers find wrong reads */

        memcpy(exact, rest, cut);
        assert_int_equal(dt_shard_head_decode(exact, cut, &again), -1);
        assert_null(again.buffers.v);
        free(exact);
    }
    for (size_t i = 0; i < len * 8; i++) {
        char why[100];

        p.data[DT_SHARD_PREFIX + i / 8] ^= (uint8_t)(1 << i % 8);
        if (dt_shard_head_decode(rest, len, &again) == 0)
            assert_false(dt_shard_fits(&again, &head, why, sizeof why));
        dt_shard_head_free(&again);
        p.data[DT_SHARD_PREFIX + i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t i = 0; i < 12 * 8; i++) { /* magic and version */
        p.data[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(dt_shard_prefix_decode(p.data), 0);
        p.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    dt_shard_head_free(&head);
    dt_put_free(&p);
}

static void a_mismatch_says_what_differs(void **state)
{
    static const struct {
        const char *name;
        uint64_t bytes;
        uint32_t n, np;
        const char *says;
    } cases[] = {
        { "w", 8, 1, 2, NULL },
        { "w", 9, 1, 2, "\"w\" has 9 bytes, and 8 are registered" },
        { "v", 8, 1, 2, "buffer 0 is \"v\", and \"w\" is registered" },
        { "w", 8, 2, 2, "holds 2 buffers, and 1 are registered" },
        { "w", 8, 1, 3, "rank 0 of 3" },
    };
    struct dt_buffer want = { .name = "w", .bytes = 8 };
    struct dt_shard_head wanted = { .np = 2, .buffers = { .v = &want, .n = 1 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_buffer have = { .name = (char *)cases[i].name, .bytes = cases[i].bytes };
        struct dt_shard_head found = { .np = cases[i].np,
                                       .buffers = { .v = &have, .n = cases[i].n } };
        char why[200] = "";

        assert_int_equal(dt_shard_fits(&found, &wanted, why, sizeof why), !cases[i].says);
        if (cases[i].says && !strstr(why, cases[i].says))
            fail_msg("\"%s\" lacks \"%s\"", why, cases[i].says);
    }
}

static struct dt_put encoded_manifest(void)
{
    struct dt_shard_info shards[3] = { { .bytes = 1 }, { .bytes = UINT64_MAX }, { .bytes = 3 } };
    struct dt_manifest m = { .step = 12, .np = 3, .shards = shards };
    struct dt_put p = { 0 };

    for (int i = 0; i < 3; i++)
        shards[i].sum = dt_checksum("abc", (size_t)i);
    dt_manifest_encode(&p, &m);
    assert_false(p.failed);
    return p;
}

static void a_manifest_survives_the_round_trip(void **state)
{
    struct dt_put p = encoded_manifest();
    struct dt_checksum want = dt_checksum("ab", 2);
    struct dt_manifest m;

    (void)state;
    assert_int_equal(dt_manifest_decode(p.data, p.len, &m), 0);
    assert_int_equal(m.step, 12);
    assert_int_equal(m.np, 3);
    assert_true(m.shards[1].bytes == UINT64_MAX);
    assert_memory_equal(m.shards[2].sum.bytes, want.bytes, sizeof want.bytes);
    dt_manifest_free(&m);
    dt_put_free(&p);
}

static void a_damaged_manifest_is_refused(void **state)
{
    struct dt_put p = encoded_manifest();
    struct dt_manifest m;

    (void)state;
    for (size_t cut = 0; cut < p.len; cut++) {
        uint8_t *exact = malloc(cut ? cut : 1);

        memcpy(exact, p.data, cut);
        assert_int_equal(dt_manifest_decode(exact, cut, &m), -1);
        free(exact);
    }
    for (size_t i = 0; i < p.len * 8; i++) {
        p.data[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(dt_manifest_decode(p.data, p.len, &m), -1);
        assert_null(m.shards);
        p.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    dt_put_u8(&p, 0);
    assert_int_equal(dt_manifest_decode(p.data, p.len, &m), -1);
    dt_put_free(&p);
}

/* The bytes on disk are a promise: later versions must be able to read what this one wrote. */
static void the_checksum_is_xxh3_128(void **state)
{
    static const uint8_t empty[] = { 0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                                     0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f };
    struct dt_checksum whole = dt_checksum("one two", 7);
    struct dt_hasher *h = dt_hasher_create();
    struct dt_checksum parts;

    (void)state;
    assert_memory_equal(dt_checksum("", 0).bytes, empty, sizeof empty);
    dt_hasher_add(h, "one", 3);
    dt_hasher_add(h, NULL, 0);
    dt_hasher_add(h, " two", 4);
    parts = dt_hasher_sum(h);
    assert_memory_equal(whole.bytes, parts.bytes, sizeof parts.bytes);
    dt_hasher_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_parsed),
        cmocka_unit_test(names_fit_whatever_the_job_is_called),
        cmocka_unit_test(later_steps_are_named_lowest_first),
        cmocka_unit_test(the_two_newest_checkpoints_stay),
        cmocka_unit_test(a_head_survives_the_round_trip),
        cmocka_unit_test(a_damaged_head_does_no_harm),
        cmocka_unit_test(a_mismatch_says_what_differs),
        cmocka_unit_test(a_manifest_survives_the_round_trip),
        cmocka_unit_test(a_damaged_manifest_is_refused),
        cmocka_unit_test(the_checksum_is_xxh3_128),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
