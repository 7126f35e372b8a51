/* The arithmetic of all-reduce, element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <string.h>

#include "runtime/host/reduce.h"

static float two_f32(float x, float y, dt_op_t op)
{
    const void *src[] = { &x, &y };
    float out;

    dt_reduce(&out, src, 2, 1, DT_F32, op);
    return out;
}

static double two_f64(double x, double y, dt_op_t op)
{
    const void *src[] = { &x, &y };
    double out;

    dt_reduce(&out, src, 2, 1, DT_F64, op);
    return out;
}

static int64_t two_i64(int64_t x, int64_t y, dt_op_t op)
{
    const void *src[] = { &x, &y };
    int64_t out;

    dt_reduce(&out, src, 2, 1, DT_I64, op);
    return out;
}

static int32_t two_i32(int32_t x, int32_t y, dt_op_t op)
{
    const void *src[] = { &x, &y };
    int32_t out;

    dt_reduce(&out, src, 2, 1, DT_I32, op);
    return out;
}

static void integers_wrap(void **state)
{
    (void)state;
    assert_int_equal(two_i32(INT32_MAX, 1, DT_SUM), INT32_MIN);
    assert_int_equal(two_i32(INT32_MIN, -1, DT_SUM), INT32_MAX);
    assert_int_equal(two_i32(65536, 65536, DT_PROD), 0);
    assert_int_equal(two_i32(INT32_MIN, -1, DT_PROD), INT32_MIN);
    assert_true(two_i64(INT64_MAX, 1, DT_SUM) == INT64_MIN);
    assert_true(two_i64(INT64_MIN, -1, DT_PROD) == INT64_MIN);
    assert_int_equal(two_i32(-3, 2, DT_MIN), -3);
    assert_int_equal(two_i32(-3, 2, DT_MAX), 2);
    assert_true(two_i64(INT64_MIN, INT64_MAX, DT_MIN) == INT64_MIN);
    assert_true(two_i64(INT64_MIN, INT64_MAX, DT_MAX) == INT64_MAX);
}

static void nan_and_infinity_follow_the_manual(void **state)
{
    (void)state;
    assert_true(isnan(two_f32(NAN, 1, DT_SUM)) && isnan(two_f64(1, NAN, DT_PROD)));
    assert_true(isnan(two_f32(INFINITY, -INFINITY, DT_SUM)));
    assert_true(isinf(two_f64(INFINITY, 1, DT_SUM)));
    for (int op = DT_MIN; op <= DT_MAX; op++) {
        assert_true(two_f32(NAN, 3, (dt_op_t)op) == 3 && two_f32(3, NAN, (dt_op_t)op) == 3);
        assert_true(two_f64(NAN, 3, (dt_op_t)op) == 3 && two_f64(3, NAN, (dt_op_t)op) == 3);
        assert_true(isnan(two_f32(NAN, NAN, (dt_op_t)op)));
    }
    assert_true(two_f32(-INFINITY, 3, DT_MIN) == -INFINITY);
    assert_true(two_f64(INFINITY, 3, DT_MAX) == INFINITY);
    assert_true(two_f32(1e-45f, 1e-45f, DT_SUM) > 0); /* subnormals are kept */
}

static void the_average_is_rounded_once(void **state)
{
    float f[] = { 1, 2, -7 };
    double d[] = { 1, 1e300, -7 };
    int32_t i[] = { 7, -7, INT32_MIN };
    int64_t l[] = { 7, -7, INT64_MIN };

    (void)state;
    dt_divide(f, 3, DT_F32, 3);
    dt_divide(d, 3, DT_F64, 3);
    dt_divide(i, 3, DT_I32, 2);
    dt_divide(l, 3, DT_I64, 2);
    assert_true(f[0] == 1.0f / 3.0f && f[1] == 2.0f / 3.0f && f[2] == -7.0f / 3.0f);
    assert_true(d[0] == 1.0 / 3.0 && d[1] == 1e300 / 3.0 && d[2] == -7.0 / 3.0);
    assert_int_equal(i[0], 3);
    assert_int_equal(i[1], -3);
    assert_int_equal(i[2], INT32_MIN / 2);
    assert_true(l[0] == 3 && l[1] == -3 && l[2] == INT64_MIN / 2);
}

/* Every length up to some vectors and past a block, at every misalignment, into each source and
 * beside them: the same bytes as one element at a time. */
static void order_is_all_that_counts(void **state)
{
    enum { N = 3, MAX = 1100 };
    static float src[N][MAX + 1], want[MAX], out[MAX + 1];
    static uint8_t raw[N + 1][(MAX + 2) * sizeof(float)];

    (void)state;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < MAX; k++)
            src[i][k] = (float)((i * 7919 + k * 104729) % 1000003) * (k % 3 ? 1e-3f : 1e4f);
    }
    for (int k = 0; k < MAX; k++)
        want[k] = (src[0][k] + src[1][k]) + src[2][k];
    for (size_t count = 0; count <= MAX; count += count < 70 ? 1 : 103) {
        for (int into = 0; into <= N; into++) {
            size_t shift = (count + (size_t)into) % 5;
            const void *from[N];

            for (int i = 0; i < N; i++) {
                memcpy(raw[i] + shift, src[i], count * sizeof(float));
                from[i] = raw[i] + shift;
            }
            raw[into][shift + count * sizeof(float)] = 0xa5;
            dt_reduce(raw[into] + shift, from, N, count, DT_F32, DT_SUM);
            memcpy(out, raw[into] + shift, count * sizeof(float));
            assert_memory_equal(out, want, count * sizeof(float));
            assert_int_equal(raw[into][shift + count * sizeof(float)], 0xa5);
        }
    }
}

static void only_four_types_have_a_size(void **state)
{
    (void)state;
    for (int t = -1; t < 20; t++) {
        size_t want = t == DT_F32 || t == DT_I32 ? 4 : t == DT_F64 || t == DT_I64 ? 8 : 0;

        assert_int_equal(dt_dtype_size((dt_dtype_t)t), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(nan_and_infinity_follow_the_manual),
        cmocka_unit_test(the_average_is_rounded_once),
        cmocka_unit_test(order_is_all_that_counts),
        cmocka_unit_test(only_four_types_have_a_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
