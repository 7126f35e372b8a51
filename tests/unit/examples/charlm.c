/* The arithmetic of charlm's kernels, compared with what the program does on the processor. */
#define main charlm_main
#include "examples/charlm.c"
#undef main

#include "examples/charlm_kernels.h"
#include "tests/unit/unit.h"

enum { ROWS = 37, TEXT = 3000 };

static struct net weights;
static struct work work;
static int64_t next[ROWS];

static int make_model(void **state)
{
    (void)state;
    context = 5;
    width = 24;
    text = malloc(TEXT);
    text_len = TEXT;
    for (int64_t i = 0; i < TEXT; i++)
        text[i] = (uint8_t)scramble((uint64_t)i);
    weights = net_new();
    net_randomize(&weights);
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < weights.layer[l].out; i++)
            weights.layer[l].b[i] = (float)uniform("biases", l, (int64_t)i) - 0.5f;
    work = work_new(&weights, ROWS);
    for (int i = 0; i < ROWS; i++) {
        next[i] = context + (int64_t)(uniform("examples", 1, i) * (TEXT - context));
        work.next[i] = text + next[i];
    }
    return 0;
}

static void work_free(struct work *k)
{
    for (int l = 0; l <= LAYERS; l++) {
        free(k->value[l]);
        free(k->slope[l]);
    }
    free(k->transposed);
    free(k->next);
}

static int free_model(void **state)
{
    (void)state;
    work_free(&work);
    free(weights.all);
    free(text);
    return 0;
}

/* Sums are grouped differently. */
static void assert_close(const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 2e-6f + 2e-5f * fabsf(want[i])))
            fail_msg("element %zu is %.9g instead of %.9g", i, (double)got[i], (double)want[i]);
}

#define RUN(name, n, ...)                                                                          \
    for (uint64_t at = 0; at < (n); at++)                                                          \
    charlm_##name##_at(&(struct charlm_##name){ __VA_ARGS__ }, at)

/* The kernels that the GPU side of the program starts, step by step (charlm_gpu.c). */
static void the_forward_pass_agrees_with_the_processor(void **state)
{
    struct work k = work_new(&weights, ROWS);

    (void)state;
    forward(&weights, &work, 1);
    RUN(embed, ROWS * (uint64_t)context * EMBED, .out = k.value[0], .vectors = weights.all,
        .text = text, .next = next, .context = (uint64_t)context);
    assert_close(k.value[0], work.value[0], ROWS * (size_t)context * EMBED);
    for (int l = 0; l < LAYERS; l++) {
        const struct layer *y = &weights.layer[l];

        RUN(matmul, ROWS * y->out, .c = k.value[l + 1], .a = k.value[l], .a_row = y->in, .a_col = 1,
            .b = y->w, .b_row = y->out, .b_col = 1, .depth = y->in, .n = y->out, .bias = y->b,
            .rectify = l < LAYERS - 1);
        if (l < LAYERS - 1)
            assert_close(k.value[l + 1], work.value[l + 1], ROWS * y->out);
    }
    RUN(softmax, ROWS, .rows = k.value[LAYERS]);
    assert_close(k.value[LAYERS], work.value[LAYERS], ROWS * BYTES);
    work_free(&k);
}

static void the_backward_pass_agrees_with_the_processor(void **state)
{
    struct net grad = net_new(), got = net_new();
    struct work k = work_new(&weights, ROWS);
    const float weight = 1.0f / 64;

    (void)state;
    forward(&weights, &work, 1);
    backward(&weights, &grad, &work, weight);
    RUN(slope, ROWS * BYTES, .out = k.slope[LAYERS], .p = work.value[LAYERS], .text = text,
        .next = next, .weight = weight);
    RUN(loss, 1, .out = got.all + got.size, .p = work.value[LAYERS], .text = text, .next = next,
        .rows = ROWS, .weight = weight);
    for (int l = LAYERS - 1; l >= 0; l--) {
        const struct layer *y = &weights.layer[l], *g = &got.layer[l];

        RUN(bias, y->out, .out = g->b, .slope = k.slope[l + 1], .rows = ROWS, .n = y->out);
        RUN(matmul, y->in * y->out, .c = g->w, .a = work.value[l], .a_row = 1, .a_col = y->in,
            .b = k.slope[l + 1], .b_row = y->out, .b_col = 1, .depth = ROWS, .n = y->out);
        RUN(matmul, ROWS * y->in, .c = k.slope[l], .a = k.slope[l + 1], .a_row = y->out, .a_col = 1,
            .b = y->w, .b_row = 1, .b_col = y->out, .depth = y->out, .n = y->in,
            .mask = l > 0 ? work.value[l] : NULL);
        assert_close(k.slope[l], work.slope[l], ROWS * y->in);
    }
    RUN(vectors, BYTES * EMBED, .out = got.all, .slope = k.slope[0], .text = text, .next = next,
        .rows = ROWS, .context = (uint64_t)context);
    assert_close(got.all, grad.all, grad.size + 1);
    work_free(&k);
    free(grad.all);
    free(got.all);
}

static void adams_step_agrees_with_the_processor(void **state)
{
    struct net w[2] = { net_new(), net_new() }, m[2] = { net_new(), net_new() },
               v[2] = { net_new(), net_new() };

    (void)state;
    for (int i = 0; i < 2; i++)
        net_randomize(&w[i]);
    for (int step = 1; step < 4; step++) {
        adam(w[0].all, m[0].all, v[0].all, weights.all, weights.size, 0.01f / (float)step, 0.99f);
        RUN(adam, weights.size, .w = w[1].all, .m = m[1].all, .v = v[1].all,
            .gradient = weights.all, .scale = 0.01f / (float)step, .keep = 0.99f);
    }
    assert_close(w[1].all, w[0].all, weights.size);
    assert_close(m[1].all, m[0].all, weights.size);
    assert_close(v[1].all, v[0].all, weights.size);
    for (int i = 0; i < 2; i++) {
        free(w[i].all);
        free(m[i].all);
        free(v[i].all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forward_pass_agrees_with_the_processor),
        cmocka_unit_test(the_backward_pass_agrees_with_the_processor),
        cmocka_unit_test(adams_step_agrees_with_the_processor),
    };

    return cmocka_run_group_tests_name("charlm", tests, make_model, free_model);
}
