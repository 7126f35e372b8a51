/* How errors describe calls, and what a failure leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/base/coll_error.h"
#include "runtime/base/error.h"

static void a_call_is_described_by_its_traits(void **state)
{
    static const struct {
        struct dt_call call;
        const char *text;
    } cases[] = {
        { { .kind = DT_CALL_INIT, .number = 1 }, "dt_init, call 1" },
        { { .kind = DT_CALL_FINALIZE, .number = 2 }, "dt_finalize, call 2" },
        { { .kind = DT_CALL_BARRIER, .number = 3 }, "barrier, call 3" },
        { { .kind = DT_CALL_ALL_REDUCE, .dtype = DT_F32, .count = 5, .number = 7 },
          "all-reduce of 5 f32 (sum), call 7" },
        { { .kind = DT_CALL_ALL_REDUCE, .count = UINT64_MAX, .op = DT_BXOR, .device = 1 },
          "all-reduce of 18446744073709551615 i8 (bxor) in device memory, call 0" },
        { { .kind = DT_CALL_BROADCAST, .count = 3, .device = DT_DEVICE_ORDERED, .root = 1 },
          "broadcast of 3 i8 from rank 1 in device memory, on a stream, call 0" },
        { { .kind = DT_CALL_ALL_REDUCE, .dtype = DT_F32, .options = (uint64_t)DT_WIRE_INT8 << 56 },
          "all-reduce of 0 f32 (sum) as int8, call 0" },
        { { .kind = DT_CALL_ALL_REDUCE, .dtype = DT_F16, .options = 1 },
          "all-reduce of 0 f16 (sum) with factors, call 0" },
        { { .kind = DT_CALL_ALL_REDUCE, .options = UINT64_MAX },
          "all-reduce of 0 i8 (sum) with unknown options, call 0" },
        { { .kind = DT_CALL_BROADCAST, .dtype = DT_F64, .count = 1, .root = 3, .number = 8 },
          "broadcast of 1 f64 from rank 3, call 8" },
        { { .kind = DT_CALL_REDUCE, .dtype = DT_U8, .op = DT_MAX, .root = 2, .number = 9 },
          "reduce of 0 u8 (max) to rank 2, call 9" },
        { { .kind = DT_CALL_ALL_GATHER, .dtype = DT_I64, .count = 4 },
          "all-gather of 4 i64, call 0" },
        { { .kind = DT_CALL_ALL_GATHERV, .dtype = DT_I64, .count = 4 },
          "all-gatherv of i64, call 0" },
        { { .kind = DT_CALL_REDUCE_SCATTER, .dtype = DT_BF16, .count = 4, .op = DT_AVG },
          "reduce-scatter of 4 bf16 (avg), call 0" },
        { { .kind = DT_CALL_ALL_TO_ALL, .dtype = DT_F16, .count = 4 },
          "all-to-all of 4 f16, call 0" },
        { { .kind = DT_CALL_ALL_TO_ALLV, .dtype = DT_F16 }, "all-to-allv of f16, call 0" },
        { { .kind = DT_CALL_GATHER, .dtype = DT_I32, .count = 4, .root = 1 },
          "gather of 4 i32 to rank 1, call 0" },
        { { .kind = DT_CALL_REDUCE_SCATTERV, .dtype = DT_F32, .count = 99, .op = DT_SUM },
          "reduce-scatterv of f32 (sum), call 0" },
        { { .kind = DT_CALL_GATHERV, .dtype = DT_I32, .root = 1 },
          "gatherv of i32 to rank 1, call 0" },
        { { .kind = DT_CALL_SCATTER, .dtype = DT_I32, .count = 4, .root = 1 },
          "scatter of 4 i32 from rank 1, call 0" },
        { { .kind = DT_CALL_SCATTERV, .dtype = DT_I32, .root = 1 },
          "scatterv of i32 from rank 1, call 0" },
        { { .kind = DT_CALL_SEND, .dtype = DT_I32, .count = 4, .root = 1 },
          "send of 4 i32 to rank 1, call 0" },
        { { .kind = DT_CALL_RECV, .dtype = DT_I32, .count = 4, .root = 1 },
          "recv of 4 i32 from rank 1, call 0" },
        { { .kind = DT_CALL_SPLIT, .number = 10 }, "dt_comm_split, call 10" },
        { { .kind = DT_CALL_DUP }, "dt_comm_dup, call 0" },
        { { .kind = DT_CALL_FREE }, "dt_comm_free, call 0" },
        { { .kind = DT_CALL_TUNE }, "dt_comm_tune, call 0" },
        { { .kind = DT_CALL_ALLOC, .dtype = DT_I8, .count = 4 }, "dt_mem_alloc of 4 i8, call 0" },
        { { .kind = DT_CALL_JOIN }, "dt_join, call 0" },
        { { .kind = DT_CALL_UNEVEN, .count = 9 }, "something after dt_join_begin, call 0" },
        { { .kind = DT_CALL_SAVE, .count = 9 }, "dt_checkpoint_save, call 0" },
        { { .kind = DT_CALL_ISAVE }, "dt_checkpoint_isave, call 0" },
        { { .kind = DT_CALL_RESTORE }, "dt_checkpoint_restore, call 0" },
        { { .kind = 255 }, "an unknown call, call 0" },
    };
    char text[DT_CALL_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(dt_call_describe(&cases[i].call, text), cases[i].text);
}

static void only_numbers_with_a_row_are_known(void **state)
{
    static const bool listed[256] = {
#define ROW(name, number, text, traits) [number] = true,
        DT_CALL_KINDS(ROW)
#undef ROW
    };

    (void)state;
    for (unsigned kind = 0; kind < 256; kind++)
        assert_int_equal(strcmp(dt_call_name(kind), "an unknown call") != 0, listed[kind]);
}

static void other_counts_have_another_hash(void **state)
{
    static const size_t lists[][3] = {
        { 0, 0, 0 }, { 1, 0, 0 },        { 0, 1, 0 }, { 0, 0, 1 },        { 1, 2, 3 },
        { 3, 2, 1 }, { SIZE_MAX, 1, 0 }, { 2, 2, 2 }, { 1, SIZE_MAX, 0 }, { (size_t)1 << 63, 0, 0 }
    };
    size_t n = sizeof lists / sizeof *lists;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            assert_true((dt_counts_hash(lists[i], 3) == dt_counts_hash(lists[j], 3)) == (i == j));
    }
    assert_true(dt_counts_hash(lists[0], 2) != dt_counts_hash(lists[0], 3));
}

/* Callers look at errno after a function that has described its failure. */
static void describing_a_failure_leaves_errno(void **state)
{
    (void)state;
    errno = ENOENT;
    dt_fail_errno(DT_ERR_IO, errno, "%ls", L"\x20ac"); /* no character of the locale C */
    assert_int_equal(errno, ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_described_by_its_traits),
        cmocka_unit_test(only_numbers_with_a_row_are_known),
        cmocka_unit_test(other_counts_have_another_hash),
        cmocka_unit_test(describing_a_failure_leaves_errno),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
