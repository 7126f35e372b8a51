/* Ranks that share GPUs: when they share GPU memory, which rank leads which, and the steps of a
 * call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/operation.h"
#include "runtime/gpu/fold/steps.h"
#include "runtime/gpu/groups.h"

/* ---- the choice ---- */

enum { MOST_RANKS = 8 };

/* "0a 0a 1b": the node and GPU of each rank. Letters after the GPU's: 'M', a MIG device that no
 * other rank has; 'm', a name of a MIG device; 's', a GPU that several nodes see; 'x', no NCCL;
 * 'o', an older NCCL; 'v', no virtual memory; 'f', no descriptors; 'w', no stream memory
 * operations. */
static int read_offers(const char *text, enum dt_gpu_path wish, struct dt_gpu_offer *offers)
{
    int n = 0;

    memset(offers, 0, MOST_RANKS * sizeof *offers);
    for (const char *at = text; *at; at++) {
        struct dt_gpu_offer *o = &offers[n];

        if (*at == ' ')
            continue;
        o->wish = wish;
        o->nccl = 22809;
        o->uuid[2] = *at;
        o->node = (uint64_t)(*at++ - '0');
        o->bus[0] = o->uuid[0] = *at;
        for (; at[1] && at[1] != ' '; at++) {
            if (at[1] == 'M')
                o->uuid[1] = (char)('0' + n);
            else if (at[1] == 's')
                o->uuid[2] = '*';
            else if (at[1] == 'x' || at[1] == 'o')
                o->nccl = at[1] == 'x' ? 0 : 22105;
            else
                o->unable = at[1] == 'v'   ? DT_GPU_NO_VIRTUAL_MEMORY
                            : at[1] == 'f' ? DT_GPU_NO_DESCRIPTORS
                            : at[1] == 'w' ? DT_GPU_NO_STREAM_WORDS
                                           : DT_GPU_MIG;
        }
        n++;
    }
    return n;
}

static void ranks_that_share_choose_together(void **state)
{
#define CANNOT(rank, bus, why)                                                                     \
    "ranks share a GPU, which NCCL refuses, and they cannot share its memory, because GPU " bus    \
    " of rank " rank " " why
    static const struct {
        const char *ranks;
        enum dt_gpu_path wish, path;
        const char *why;
    } cases[] = {
        { "0a 0a", DT_GPU_AUTO, DT_GPU_SHARED, "" },
        { "0ax 0ax", DT_GPU_AUTO, DT_GPU_SHARED, "" },
        { "0a 0b 0a", DT_GPU_AUTO, DT_GPU_SHARED, "" },
        { "0a 0a 1a 1a", DT_GPU_AUTO, DT_GPU_SHARED, "" },
        { "0a 0ax 1a 1ax", DT_GPU_AUTO, DT_GPU_SHARED, "" },
        { "0a 0a 1ax 1a", DT_GPU_AUTO, DT_GPU_STAGING,
          "ranks share GPUs, and rank 2 cannot use NCCL between them (too old)" },
        { "0a 0a 1ax", DT_GPU_SHARED, DT_GPU_STAGING,
          "ranks share GPUs, and rank 2 cannot use NCCL between them (too old)" },
        { "0a 0ao 1a 1ax", DT_GPU_AUTO, DT_GPU_SHARED, "" },
        { "0a 0a 1ao", DT_GPU_SHARED, DT_GPU_STAGING,
          "rank 0 has NCCL 2.28.9 and rank 2 NCCL 2.21.5, which do not work together (DTRUN_NCCL "
          "names the file to use)" },
        { "0a 1a", DT_GPU_AUTO, DT_GPU_NCCL, "" },
        { "0a 1a", DT_GPU_SHARED, DT_GPU_NCCL, "" },
        { "0a 1ax", DT_GPU_SHARED, DT_GPU_STAGING, "rank 1 cannot use NCCL (too old)" },
        { "0a", DT_GPU_SHARED, DT_GPU_STAGING, "" },
        { "0a 0a", DT_GPU_NCCL, DT_GPU_STAGING,
          "rank 0 and rank 1 share a GPU (a), which NCCL does not support" },
        { "0aM 0aM", DT_GPU_AUTO, DT_GPU_STAGING,
          "rank 0 and rank 1 share a GPU (a), which NCCL does not support" },
        { "0as 1as", DT_GPU_AUTO, DT_GPU_STAGING,
          "rank 0 and rank 1 share a GPU (a), which NCCL does not support" },
        { "0as 0as 1as 1as", DT_GPU_SHARED, DT_GPU_STAGING,
          "rank 0 and rank 2 share a GPU (a), which NCCL does not support" },
        { "0as 1as", DT_GPU_NCCL, DT_GPU_NCCL, "" },
        { "0as 0as", DT_GPU_NCCL, DT_GPU_STAGING,
          "rank 0 and rank 1 share a GPU (a), which NCCL does not support" },
        { "0a 0av", DT_GPU_AUTO, DT_GPU_STAGING,
          CANNOT("1", "a", "has no virtual memory management") },
        { "0a 0a 1bf", DT_GPU_AUTO, DT_GPU_STAGING,
          CANNOT("2", "b", "cannot export memory to other processes") },
        { "0aw 0a", DT_GPU_SHARED, DT_GPU_STAGING,
          CANNOT("0", "a", "has no stream memory operations") },
        { "0am 0am", DT_GPU_AUTO, DT_GPU_STAGING, CANNOT("0", "a", "is a MIG device") },
        { "0aw 0bw", DT_GPU_AUTO, DT_GPU_NCCL, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_gpu_offer offers[MOST_RANKS];
        int n = read_offers(cases[i].ranks, cases[i].wish, offers);
        struct dt_gpu_choice choice = dt_gpu_choose(offers, n);
        char a[16], b[16], text[DT_GPU_TEXT];
        struct dt_gpu_details details = { .a = a, .b = b, .why = "too old" };

        snprintf(a, sizeof a, "rank %d", choice.a);
        snprintf(b, sizeof b, "rank %d", choice.b);
        assert_string_equal(dt_gpu_obstacle_text(&choice, offers, &details, text), cases[i].why);
        if (choice.path != cases[i].path)
            fail_msg("%s: %s", cases[i].ranks, dt_gpu_path_name(choice.path));
    }
}

/* ---- groups ---- */

/* Such as "0,1,0 of 2, most 2; rank 2 is 1 of 0,2". */
static void describe(const struct dt_gpu_groups *g, int size, int rank, char *text, size_t room)
{
    size_t used = 0;

    for (int i = 0; i < size; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%d", i ? "," : "", g->of[i]);
    used += (size_t)snprintf(text + used, room - used, " of %d, most %d; rank %d is %d of ", g->n,
                             g->most, rank, g->me);
    for (int i = 0; i < g->members; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%d", i ? "," : "", g->mine[i]);
}

static void the_lowest_rank_of_a_gpu_leads_it(void **state)
{
    static const struct {
        const char *ranks;
        int rank;
        const char *groups;
    } cases[] = {
        { "0a", 0, "0 of 1, most 1; rank 0 is 0 of 0" },
        { "0a 0b 0a", 2, "0,1,0 of 2, most 2; rank 2 is 1 of 0,2" },
        { "0a 0b 0a", 1, "0,1,0 of 2, most 2; rank 1 is 0 of 1" },
        { "0b 1b 1b 0b 1b", 4, "0,1,1,0,1 of 2, most 3; rank 4 is 2 of 1,2,4" },
        { "0a 0aM 1c 1c", 3, "0,1,2,2 of 3, most 2; rank 3 is 1 of 2,3" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_gpu_offer offers[MOST_RANKS];
        int n = read_offers(cases[i].ranks, DT_GPU_AUTO, offers);
        struct dt_gpu_groups g;
        char text[128];

        assert_true(dt_gpu_groups_fill(&g, offers, n, cases[i].rank));
        describe(&g, n, cases[i].rank, text, sizeof text);
        assert_string_equal(text, cases[i].groups);
        assert_int_equal(dt_gpu_groups_leads(&g), g.mine[0] == cases[i].rank);
        assert_int_equal(dt_gpu_groups_own(&g), g.of[cases[i].rank]);
        dt_gpu_groups_free(&g);
    }
}

/* ---- steps ---- */

static uint8_t in[128], out[128]; /* only their addresses are used */

/* "+" folds and "=" spreads. Then from:to, the number of elements, and the first element of in and
 * out. */
static void describe_step(const struct dt_gpu_step *s, char *text, size_t room)
{
    ptrdiff_t in_at = s->in == NULL ? -1 : (const uint8_t *)s->in - in;
    ptrdiff_t out_at = (uint8_t *)s->out - out;

    if (!s->folds && s->in == s->out)
        in_at = out_at;
    snprintf(text, room, "%c%d:%d %zu %td %td", s->folds ? '+' : '=', s->from, s->to, s->count,
             in_at / 2, out_at / 2);
}

/* For f16 and 3 ranks, in steps of 10 elements. */
static void calls_are_cut_into_steps(void **state)
{
    static const struct {
        enum dt_call_kind call;
        size_t count;
        int root;
        const char *steps[8];
    } cases[] = {
        { DT_CALL_ALL_REDUCE, 0, 0, { NULL } },
        { DT_CALL_ALL_REDUCE, 10, 0, { "+0:-1 10 0 0" } },
        { DT_CALL_ALL_REDUCE, 25, 0, { "+0:-1 10 0 0", "+0:-1 10 10 10", "+0:-1 5 20 20" } },
        { DT_CALL_REDUCE, 11, 2, { "+0:2 10 0 0", "+0:2 1 10 10" } },
        { DT_CALL_BROADCAST, 11, 1, { "=1:-1 10 0 0", "=1:-1 1 10 10" } },
        { DT_CALL_REDUCE_SCATTER, 4, 0, { "+0:0 4 0 0", "+0:1 4 4 0", "+0:2 4 8 0" } },
        { DT_CALL_ALL_GATHER,
          12,
          0,
          { "=0:-1 10 0 0", "=0:-1 2 10 10", "=1:-1 10 0 12", "=1:-1 2 10 22", "=2:-1 10 0 24",
            "=2:-1 2 10 34" } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_operation_kind kind = { .call = cases[i].call };
        struct dt_operation o = { .kind = &kind,
                                  .in = in,
                                  .out = out,
                                  .count = cases[i].count,
                                  .taken = { .each = cases[i].count },
                                  .dtype = DT_F16,
                                  .root = cases[i].root };
        struct dt_gpu_steps steps = dt_gpu_steps_of(&o, 3, 21);
        size_t n = 0;

        assert_int_equal(dt_gpu_steps_longest(&o), cases[i].count * 2);
        for (; n < 8 && cases[i].steps[n]; n++) {
            struct dt_gpu_step step = dt_gpu_steps_at(&steps, &o, n);
            char text[64];

            describe_step(&step, text, sizeof text);
            assert_string_equal(text, cases[i].steps[n]);
        }
        assert_int_equal(steps.n, n);
    }
}

static void calls_that_do_not_fold_by_element_are_staged(void **state)
{
    static const struct {
        enum dt_call_kind call;
        dt_op_t op;
        dt_wire_t wire;
        bool served;
    } cases[] = {
        { DT_CALL_ALL_REDUCE, DT_BXOR, DT_WIRE_EXACT, true },
        { DT_CALL_ALL_REDUCE, DT_ADASUM, DT_WIRE_EXACT, false },
        { DT_CALL_ALL_REDUCE, DT_SUM, DT_WIRE_BF16, false },
        { DT_CALL_REDUCE, DT_AVG, DT_WIRE_EXACT, true },
        { DT_CALL_REDUCE_SCATTER, DT_PROD, DT_WIRE_EXACT, true },
        { DT_CALL_BROADCAST, DT_SUM, DT_WIRE_EXACT, true },
        { DT_CALL_ALL_GATHER, DT_SUM, DT_WIRE_EXACT, true },
        { DT_CALL_ALL_GATHERV, DT_SUM, DT_WIRE_EXACT, false },
        { DT_CALL_ALL_TO_ALL, DT_SUM, DT_WIRE_EXACT, false },
        { DT_CALL_SCATTER, DT_SUM, DT_WIRE_EXACT, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_operation_kind kind = { .call = cases[i].call };
        struct dt_operation o = { .kind = &kind, .count = 1, .dtype = DT_F32, .op = cases[i].op };

        o.how.size = sizeof o.how;
        o.how.wire = cases[i].wire;
        assert_int_equal(dt_gpu_steps_serve(&o), cases[i].served);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_that_share_choose_together),
        cmocka_unit_test(the_lowest_rank_of_a_gpu_leads_it),
        cmocka_unit_test(calls_are_cut_into_steps),
        cmocka_unit_test(calls_that_do_not_fold_by_element_are_staged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
