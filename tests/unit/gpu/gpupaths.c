/* Which path calls on GPU memory take, and how much of the memory they touch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "runtime/api/operation.h"
#include "runtime/comm/comm.h"
#include "runtime/gpu/device/errand.h"
#include "runtime/gpu/extents.h"
#include "runtime/gpu/ncclcalls.h"
#include "runtime/gpu/ncclinit.h"
#include "runtime/gpu/offer.h"

/* ---- the choice ---- */

/* What each rank offers: its wish, NCCL's version, its node and its GPU. */
struct offered {
    enum dt_gpu_path wish;
    int nccl;
    int node;
    const char *bus; /* NULL ends the list */
};

static void ranks_choose_together(void **state)
{
    static const struct {
        struct offered ranks[4];
        enum dt_gpu_path path;
        const char *why;
    } cases[] = {
        { { { 0, 22809, 0, "a" }, { 0, 22809, 0, "b" } }, DT_GPU_NCCL, "" },
        { { { 0, 22809, 0, "a" }, { 0, 22809, 1, "a" } }, DT_GPU_NCCL, "" },
        { { { 0, 22809, 0, "a" }, { 0, 22809, 0, "b" }, { 0, 21801, 1, "a" } },
          DT_GPU_STAGING,
          "rank 0 has NCCL 2.28.9 and rank 2 NCCL 2.18.1, which do not work together (DTRUN_NCCL "
          "names the file to use)" },
        { { { 0, 22809, 0, "a" } }, DT_GPU_STAGING, "" },
        { { { DT_GPU_NCCL, 0, 0, "a" } }, DT_GPU_STAGING, "" },
        { { { DT_GPU_NCCL, 22809, 0, "a" },
            { DT_GPU_NCCL, 22809, 0, "b" },
            { DT_GPU_NCCL, 22809, 0, "a" } },
          DT_GPU_STAGING,
          "rank 0 and rank 2 share a GPU (a), which NCCL does not support" },
        { { { 0, 22809, 0, "a" }, { 0, 0, 0, "b" } },
          DT_GPU_STAGING,
          "rank 1 cannot use NCCL (too old)" },
        { { { DT_GPU_NCCL, 22809, 0, "a" }, { DT_GPU_AUTO, 22809, 0, "b" } },
          DT_GPU_STAGING,
          "DTRUN_DEVICE is nccl on rank 0 and auto on rank 1" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_gpu_offer offers[4] = { { 0 } };
        struct dt_gpu_choice choice;
        char a[16], b[16], text[DT_GPU_TEXT];
        struct dt_gpu_details details = { .a = a, .b = b, .why = "too old" };
        int n = 0;

        for (const struct offered *o = cases[i].ranks; n < 4 && o->bus; o++, n++) {
            offers[n] = (struct dt_gpu_offer){ .wish = o->wish,
                                               .nccl = (uint64_t)o->nccl,
                                               .node = (uint64_t)o->node };
            strcpy(offers[n].bus, o->bus);
        }
        choice = dt_gpu_choose(offers, n);
        assert_int_equal(choice.path, cases[i].path);
        snprintf(a, sizeof a, "rank %d", choice.a);
        snprintf(b, sizeof b, "rank %d", choice.b);
        assert_string_equal(dt_gpu_obstacle_text(&choice, offers, &details, text), cases[i].why);
    }
}

static void what_a_split_has_made_is_kept_if_it_fits_all_ranks(void **state)
{
    struct dt_gpu_offer offers[2] = {
        { .wish = DT_GPU_NCCL, .nccl = 22809, .bus = "a", .split = 1 },
        { .wish = DT_GPU_NCCL, .nccl = 22809, .bus = "b", .split = 1 },
    };

    (void)state;
    assert_true(dt_gpu_choose(offers, 2).keeps_split);
    offers[1].split = 0;
    assert_false(dt_gpu_choose(offers, 2).keeps_split);
    assert_int_equal(dt_gpu_choose(offers, 2).path, DT_GPU_NCCL);
    offers[1].split = 1;
    strcpy(offers[1].bus, "a");
    assert_false(dt_gpu_choose(offers, 2).keeps_split); /* NCCL refuses ranks that share a GPU */
}

static void paths_have_names(void **state)
{
    (void)state;
    for (int path = 0; path < DT_GPU_PATHS; path++)
        assert_int_equal(dt_gpu_path_find(dt_gpu_path_name((enum dt_gpu_path)path)), path);
    assert_int_equal(dt_gpu_path_find("gpu"), DT_GPU_PATHS);
    assert_int_equal(dt_gpu_path_find(""), DT_GPU_PATHS);
}

/* ---- what NCCL has ---- */

static struct dt_operation operation(const struct dt_operation_kind *kind, dt_dtype_t dtype,
                                     dt_op_t op)
{
    return (struct dt_operation){ .kind = kind, .count = 1, .dtype = dtype, .op = op };
}

static void nccl_serves_what_it_has(void **state)
{
    static const struct {
        enum dt_call_kind call;
        dt_dtype_t dtype;
        dt_op_t op;
        bool served;
    } cases[] = {
        { DT_CALL_ALL_REDUCE, DT_F32, DT_SUM, true },
        { DT_CALL_ALL_REDUCE, DT_BF16, DT_AVG, true },
        { DT_CALL_ALL_REDUCE, DT_I16, DT_SUM, false },
        { DT_CALL_ALL_REDUCE, DT_U8, DT_BOR, false },
        { DT_CALL_ALL_REDUCE, DT_F32, DT_ADASUM, false },
        { DT_CALL_REDUCE, DT_U64, DT_MAX, true },
        { DT_CALL_REDUCE, DT_U16, DT_MAX, false },
        { DT_CALL_REDUCE_SCATTER, DT_F64, DT_PROD, true },
        { DT_CALL_BROADCAST, DT_I16, DT_SUM, true },
        { DT_CALL_ALL_GATHER, DT_U16, DT_SUM, true },
        { DT_CALL_ALL_TO_ALL, DT_U16, DT_SUM, true },
        { DT_CALL_ALL_GATHERV, DT_F32, DT_SUM, false },
        { DT_CALL_SCATTER, DT_F32, DT_SUM, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_operation_kind kind = { .call = cases[i].call };
        struct dt_operation o = operation(&kind, cases[i].dtype, cases[i].op);

        assert_int_equal(dt_ncclcalls_serves(&o, 4), cases[i].served);
    }
}

static void nccl_serves_factors_that_it_keeps_exactly(void **state)
{
    static const struct {
        dt_dtype_t dtype;
        dt_op_t op;
        double prescale, postscale;
        int size;
        bool served;
    } cases[] = {
        { DT_F32, DT_SUM, 3, 1, 3, true },      { DT_F64, DT_AVG, 0.1, 3, 3, true },
        { DT_F32, DT_MAX, 3, 1, 4, false },     { DT_F32, DT_MAX, 1, 1, 4, true },
        { DT_F16, DT_SUM, 0.25, 2, 3, true },   { DT_F16, DT_SUM, 3, 1, 4, false },
        { DT_F16, DT_AVG, 0.5, 1, 4, true },    { DT_BF16, DT_AVG, 0.5, 1, 3, false },
        { DT_F16, DT_SUM, 65536, 1, 4, false }, { DT_F16, DT_SUM, 1e-9, 1, 4, false },
    };
    static const struct dt_operation_kind kind = { .call = DT_CALL_ALL_REDUCE };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_operation o = operation(&kind, cases[i].dtype, cases[i].op);

        o.how = (dt_all_reduce_options_t)DT_ALL_REDUCE_OPTIONS_INIT;
        o.how.wire = DT_WIRE_EXACT;
        o.how.prescale = cases[i].prescale;
        o.how.postscale = cases[i].postscale;
        assert_int_equal(dt_ncclcalls_serves(&o, cases[i].size), cases[i].served);
        o.how.wire = DT_WIRE_BF16;
        assert_false(dt_ncclcalls_serves(&o, cases[i].size));
    }
}

/* ---- extents ---- */

/* For rank 1 of three, with 5 elements of 4 bytes each, or 2, 3 and 4 where blocks vary. The root
 * is rank 1, then rank 0. */
static void extents_cover_what_a_rank_touches(void **state)
{
    static const size_t counts[] = { 2, 3, 4 };
    static const struct {
        enum dt_call_kind call;
        bool varied;
        size_t in, out;               /* if rank 1 is the root */
        size_t others_in, others_out; /* if rank 0 is */
    } cases[] = {
        { DT_CALL_ALL_REDUCE, false, 20, 20, 20, 20 },
        { DT_CALL_BROADCAST, false, 20, 0, 0, 20 },
        { DT_CALL_REDUCE, false, 20, 20, 20, 0 },
        { DT_CALL_REDUCE_SCATTER, false, 60, 20, 60, 20 },
        { DT_CALL_ALL_GATHER, false, 20, 60, 20, 60 },
        { DT_CALL_ALL_GATHERV, true, 12, 36, 12, 36 },
        { DT_CALL_ALL_TO_ALL, false, 60, 60, 60, 60 },
        { DT_CALL_ALL_TO_ALLV, true, 36, 36, 36, 36 },
        { DT_CALL_GATHER, false, 20, 60, 20, 0 },
        { DT_CALL_GATHERV, true, 20, 36, 20, 0 },
        { DT_CALL_SCATTER, false, 60, 20, 0, 20 },
        { DT_CALL_SCATTERV, true, 36, 20, 0, 20 },
        { DT_CALL_BARRIER, false, 0, 0, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_operation_kind kind = { .call = cases[i].call };
        struct dt_operation o = operation(&kind, DT_F32, DT_SUM);
        struct dt_extents e;

        o.count = 5;
        o.given = o.taken = cases[i].varied ? dt_blocks_of(counts) : dt_blocks_each(5);
        o.root = 1;
        e = dt_extents_of(&o, 1, 3);
        assert_int_equal(e.in, cases[i].in);
        assert_int_equal(e.out, cases[i].out);
        o.root = 0;
        e = dt_extents_of(&o, 1, 3);
        assert_int_equal(e.in, cases[i].others_in);
        assert_int_equal(e.out, cases[i].others_out);
    }
}

/* ---- errands ---- */

struct sum {
    int a, b, total;
};

static void add(void *copy)
{
    struct sum *s = copy;

    s->total = s->a + s->b;
}

static void an_errand_works_on_a_copy(void **state)
{
    struct sum s = { 3, 4, 0 };
    struct dt_errand *e = dt_errand_start(add, NULL, &s, sizeof s);

    (void)state;
    assert_non_null(e);
    assert_true(dt_errand_await(e, 10000));
    assert_int_equal(((struct sum *)dt_errand_result(e))->total, 7);
    assert_int_equal(s.total, 0);
    dt_errand_end(e);
    dt_errand_end(NULL);
}

struct wait {
    _Atomic int *go, *gone, *undone;
};

static void wait_to_go(void *copy)
{
    const struct wait *w = copy;

    while (!*w->go)
        ;
    *w->gone = 1;
}

static void an_errand_can_be_forgotten(void **state)
{
    static _Atomic int go, gone;
    const struct wait w = { &go, &gone, NULL };
    struct dt_errand *e = dt_errand_start(wait_to_go, NULL, &w, sizeof w);

    (void)state;
    assert_non_null(e);
    assert_null(dt_errand_result(e));
    assert_false(dt_errand_await(e, 1));
    dt_errand_end(e);
    go = 1;
    while (!gone)
        ;
}

static void undo(void *copy)
{
    const struct wait *w = copy;

    *w->undone = *w->gone;
}

static void an_abandoned_errand_is_undone_when_it_is_done(void **state)
{
    static _Atomic int go, gone, undone;
    const struct wait w = { &go, &gone, &undone };
    struct dt_errand *e = dt_errand_start(wait_to_go, undo, &w, sizeof w);

    (void)state;
    assert_true(dt_errand_abandon(e));
    assert_int_equal(undone, 0);
    go = 1;
    while (!undone)
        ;
}

static void an_errand_that_is_done_cannot_be_abandoned(void **state)
{
    static _Atomic int go = 1, gone, undone;
    const struct wait w = { &go, &gone, &undone };
    struct dt_errand *e = dt_errand_start(wait_to_go, undo, &w, sizeof w);

    (void)state;
    assert_true(dt_errand_await(e, 10000));
    assert_false(dt_errand_abandon(e));
    assert_ptr_equal(((const struct wait *)dt_errand_result(e))->go, &go);
    dt_errand_end(e);
    assert_int_equal(undone, 0);
}

/* Thousands of ranks have taken minutes. */
static void nccl_gets_more_time_to_connect_more_ranks(void **state)
{
    static struct dt_world world;
    static struct dt_comm c = { .world = &world, .size = 2 };

    (void)state;
    assert_int_equal(dt_ncclinit_seconds(&c), 120);
    c.size = 4096;
    assert_int_equal(dt_ncclinit_seconds(&c), 120 + 512);
    world.settings.nccl_init_s = 7;
    assert_int_equal(dt_ncclinit_seconds(&c), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_choose_together),
        cmocka_unit_test(what_a_split_has_made_is_kept_if_it_fits_all_ranks),
        cmocka_unit_test(paths_have_names),
        cmocka_unit_test(nccl_serves_what_it_has),
        cmocka_unit_test(nccl_serves_factors_that_it_keeps_exactly),
        cmocka_unit_test(extents_cover_what_a_rank_touches),
        cmocka_unit_test(nccl_gets_more_time_to_connect_more_ranks),
        cmocka_unit_test(an_errand_works_on_a_copy),
        cmocka_unit_test(an_errand_can_be_forgotten),
        cmocka_unit_test(an_abandoned_errand_is_undone_when_it_is_done),
        cmocka_unit_test(an_errand_that_is_done_cannot_be_abandoned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
