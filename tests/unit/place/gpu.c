#include <limits.h>
#include <string.h>

#include "launcher/base/strbuf.h"
#include "launcher/place/gpu.h"
#include "tests/unit/unit.h"

static const struct choosing {
    const char *given;    /* gpus=, separated by commas; NULL: not given */
    const char *mask;     /* the host's CUDA_VISIBLE_DEVICES; NULL: unset */
    const char *detected; /* separated by commas; NULL: none */
    uint32_t slots;
    const char *want; /* devices of local ranks 0, 1, ... 5 */
    enum dt_gpu_bind bind;
} choosings[] = {
    /* nothing known: 0..slots-1 */
    { NULL, NULL, NULL, 4, "0 1 2 3 0 1", DT_GPU_BIND_RANK },
    { NULL, NULL, NULL, 1, "0 0 0 0 0 0", DT_GPU_BIND_RANK },
    { NULL, NULL, "", 2, "0 1 0 1 0 1", DT_GPU_BIND_RANK },
    /* the host's GPUs, of which as many as slots are used */
    { NULL, NULL, "0,1,2,3,4,5,6,7", 4, "0 1 2 3 0 1", DT_GPU_BIND_RANK },
    { NULL, NULL, "0,1", 4, "0 1 0 1 0 1", DT_GPU_BIND_RANK },
    { NULL, NULL, "GPU-a,GPU-b", 2, "GPU-a GPU-b GPU-a GPU-b GPU-a GPU-b", DT_GPU_BIND_RANK },
    /* the host's own mask precedes its GPUs */
    { NULL, "2,3", "0,1,2,3", 4, "2 3 2 3 2 3", DT_GPU_BIND_RANK },
    { NULL, "2,3", NULL, 1, "2 2 2 2 2 2", DT_GPU_BIND_RANK },
    { NULL, "GPU-8d,GPU-9e", NULL, 2, "GPU-8d GPU-9e GPU-8d GPU-9e GPU-8d GPU-9e",
      DT_GPU_BIND_RANK },
    { NULL, "MIG-GPU-8d/1/0", NULL, 1,
      "MIG-GPU-8d/1/0 MIG-GPU-8d/1/0 MIG-GPU-8d/1/0 MIG-GPU-8d/1/0 MIG-GPU-8d/1/0 MIG-GPU-8d/1/0",
      DT_GPU_BIND_RANK },
    { NULL, " 5 , 6 ", NULL, 2, "5 6 5 6 5 6", DT_GPU_BIND_RANK },
    /* an empty mask, or -1, hides every device; an invalid entry hides all after it */
    { NULL, "", "0,1", 2, "     ", DT_GPU_BIND_RANK },
    { NULL, "-1", "0,1", 2, "     ", DT_GPU_BIND_RANK },
    { NULL, "-1,0", "0,1", 2, "     ", DT_GPU_BIND_RANK },
    { NULL, "3,-1,0", "0,1", 4, "3 3 3 3 3 3", DT_GPU_BIND_RANK },
    { NULL, "3,,0", "0,1", 4, "3 3 3 3 3 3", DT_GPU_BIND_RANK },
    /* gpus= overrides everything */
    { "0,2,3", "5", "0,1,2,3", 3, "0 2 3 0 2 3", DT_GPU_BIND_RANK },
    { "0,2,3", NULL, NULL, 2, "0 2 0 2 0 2", DT_GPU_BIND_RANK },
    { "", "5", "0,1", 2, "     ", DT_GPU_BIND_RANK },
    { "-1", "5", "0,1", 2, "     ", DT_GPU_BIND_RANK },
    /* MIG devices, and UUIDs in short */
    { NULL, "MIG-1f4a,MIG-2b3c", "0", 2, "MIG-1f4a MIG-2b3c MIG-1f4a MIG-2b3c MIG-1f4a MIG-2b3c",
      DT_GPU_BIND_RANK },
    { "MIG-1f4a,GPU-8d", NULL, NULL, 2, "MIG-1f4a GPU-8d MIG-1f4a GPU-8d MIG-1f4a GPU-8d",
      DT_GPU_BIND_RANK },
    /* --gpu-bind host: the same devices, but all of them for every rank */
    { NULL, NULL, NULL, 3, "0,1,2 0,1,2 0,1,2 0,1,2 0,1,2 0,1,2", DT_GPU_BIND_HOST },
    { NULL, NULL, "0,1,2,3", 2, "0,1 0,1 0,1 0,1 0,1 0,1", DT_GPU_BIND_HOST },
    { NULL, " 5 ,GPU-8d", NULL, 2, "5,GPU-8d 5,GPU-8d 5,GPU-8d 5,GPU-8d 5,GPU-8d 5,GPU-8d",
      DT_GPU_BIND_HOST },
    { "0,2,3", "5", NULL, 3, "0,2,3 0,2,3 0,2,3 0,2,3 0,2,3 0,2,3", DT_GPU_BIND_HOST },
    { NULL, "", "0,1", 2, "     ", DT_GPU_BIND_HOST },
    { NULL, "-1", "0,1", 2, "     ", DT_GPU_BIND_HOST },
    /* --gpu-bind none: the host's mask unchanged, byte for byte */
    { NULL, " 5 ,-1,6", "0,1", 1, " 5 ,-1,6  5 ,-1,6  5 ,-1,6  5 ,-1,6  5 ,-1,6  5 ,-1,6",
      DT_GPU_BIND_NONE },
    { "0,2,3", NULL, "0,1", 3, "     ", DT_GPU_BIND_NONE },
};

/* A batch system grants fewer than there are slots, or more; a list counts as it is. */
static const struct {
    uint32_t granted;
    struct choosing choosing;
} granteds[] = {
    { 1, { NULL, NULL, NULL, 3, "0 0 0 0 0 0", DT_GPU_BIND_RANK } },
    { 4, { NULL, NULL, NULL, 2, "0 1 0 1 0 1", DT_GPU_BIND_RANK } },
    { 2, { NULL, NULL, "0,1,2,3", 4, "0 1 0 1 0 1", DT_GPU_BIND_RANK } },
    { 2, { NULL, NULL, "0,1,2,3", 4, "0,1 0,1 0,1 0,1 0,1 0,1", DT_GPU_BIND_HOST } },
    { 1, { NULL, "2,3", "0,1,2,3", 4, "2 3 2 3 2 3", DT_GPU_BIND_RANK } },
    { 1, { "0,2", NULL, NULL, 2, "0 2 0 2 0 2", DT_GPU_BIND_RANK } },
};

static void split(struct dt_strs *out, const char *text)
{
    struct dt_strbuf b = { 0 };

    for (; *text; text++) {
        if (*text != ',')
            dt_strbuf_add(&b, text, 1);
        if (*text == ',' || !text[1]) {
            assert_int_equal(dt_strs_add(out, dt_strbuf_text(&b)), 0);
            dt_strbuf_consume(&b, b.len);
        }
    }
    dt_strbuf_free(&b);
}

static void check(const struct choosing *c, uint32_t granted)
{
    struct dt_strs given = { 0 }, detected = { 0 }, list = { 0 };
    struct dt_gpu_source source = {
        .bind = c->bind, .mask = c->mask, .granted = granted, .slots = c->slots
    };
    struct dt_strbuf got = { 0 };

    if (c->given) {
        split(&given, c->given);
        source.given = &given;
    }
    if (c->detected) {
        split(&detected, c->detected);
        source.detected = &detected;
    }
    dt_gpu_list(&list, &source);
    for (uint32_t local = 0; local < 6; local++)
        dt_strbuf_printf(&got, "%s%s", local ? " " : "", dt_gpu_of(&list, local));
    assert_string_equal(dt_strbuf_text(&got), c->want);
    dt_strbuf_free(&got);
    dt_strs_free(&given);
    dt_strs_free(&detected);
    dt_strs_free(&list);
}

static void every_local_rank_gets_its_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof choosings / sizeof *choosings; i++)
        check(&choosings[i], 0);
}

static void no_rank_gets_more_than_was_granted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof granteds / sizeof *granteds; i++)
        check(&granteds[i].choosing, granteds[i].granted);
}

static void a_gpu_that_the_host_lacks_is_found(void **state)
{
    static const struct {
        const char *masks[3], *detected[3];
        long want;
    } rows[] = {
        { { "0", "1" }, { "0", "1" }, -1 },
        { { "0", "2", "9" }, { "0", "1" }, 2 },
        { { "0,1,5" }, { "0", "1" }, 5 },
        { { "GPU-8d", "MIG-1f4a,1" }, { "0", "1" }, -1 },
        { { "GPU-8d", "MIG-1f4a,2" }, { "0", "1" }, 2 },
        { { "" }, { "0" }, -1 },
        { { "99999999999999999999" }, { "0", "1" }, LONG_MAX },
        { { "3" }, { "MIG-1f4a", "GPU-8d" }, -1 },
        { { "3" }, { NULL }, -1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dt_strs list = { 0 }, detected = { 0 };

        for (size_t k = 0; k < 3 && rows[i].masks[k]; k++)
            assert_int_equal(dt_strs_add(&list, rows[i].masks[k]), 0);
        for (size_t k = 0; k < 3 && rows[i].detected[k]; k++)
            assert_int_equal(dt_strs_add(&detected, rows[i].detected[k]), 0);
        assert_int_equal(dt_gpu_missing(&list, &detected), rows[i].want);
        dt_strs_free(&list);
        dt_strs_free(&detected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_local_rank_gets_its_device),
        cmocka_unit_test(no_rank_gets_more_than_was_granted),
        cmocka_unit_test(a_gpu_that_the_host_lacks_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
