#include "runtime/api/join.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/api/context.h"
#include "runtime/base/reduceoptions.h"
#include "runtime/comm/collective.h"
#include "runtime/comm/error_report.h"
#include "runtime/kernels/dtype.h"

/* The words of an announcement. The all-reduce takes the maximum of each. */
enum join_word {
    WHAT, /* kind, type, operation and wire format, one byte each; 0: this rank has no more data */
    BYTES,
    LATE,     /* the rank that joined last has the largest number */
    PRESCALE, /* bits of a double; ranks without data contribute the least value, here and below */
    POSTSCALE,
    THRESHOLD,
    BUFFERS, /* the mark of a call's buffers in a bucket */
    /* The mark of the call, and its complement. All ranks with data make the same call if the two
     * maxima are complements. */
    MARK,
    UNMARK,
    WORDS,
};

static int64_t to_bits(double v)
{
    int64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double from_bits(int64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ---- mismatches ---- */

/* Returns the first rank with data whose call differs from this one, or the number of ranks if
 * there is none. */
static int first_different(const struct dt_comm *c, const struct dt_call *calls,
                           const struct dt_call *call)
{
    int rank = 0;

    while (rank < c->size &&
           (calls[rank].kind == DT_CALL_JOIN || dt_call_equal(&calls[rank], call)))
        rank++;
    return rank;
}

/* Reports the program's own call (or dt_join) as the one that failed, not the announcement, which
 * the program did not make. A rank in dt_join has no call to compare, so its error names the calls
 * of two others. */
static dt_result_t fail_mismatch(struct dt_comm *c, struct dt_call *calls)
{
    const struct dt_call none = { 0 };
    struct dt_call call = c->next;
    int one = first_different(c, calls, &none), other = first_different(c, calls, &calls[one]);
    char why[DT_ERROR_REPORT_OTHERS];
    dt_result_t r;

    dt_comm_count(c, &call);
    for (int rank = 0; rank < c->size; rank++)
        calls[rank].number = call.number;
    dt_comm_note(c, &call);
    dt_error_report_others(
        c, &(struct dt_coll_error){ .rank = c->ranks[one], .theirs = calls[one] },
        &(struct dt_coll_error){ .rank = c->ranks[other], .theirs = calls[other] }, why);
    dt_comm_stop(c, DT_ERR_MISMATCH, c->ranks[other], why);
    if (call.kind != DT_CALL_JOIN)
        other = first_different(c, calls, &call);
    dt_coll_error(&c->coll_error, DT_ERR_MISMATCH, c->ranks[other]);
    if (call.kind == DT_CALL_JOIN)
        c->coll_error.why = why;
    else
        c->coll_error.theirs = calls[other];
    r = dt_comm_end(c, &call, DT_ERR_MISMATCH);
    c->coll_error.why = NULL;
    return r;
}

/* All ranks know that their calls differ, and now show them to each other. */
static dt_result_t exchange_and_fail(struct dt_comm *c)
{
    struct dt_call *calls = calloc((size_t)c->size, sizeof *calls);
    dt_result_t r;

    if (!calls)
        return dt_comm_fail_no_memory(c);
    calls[c->rank] = c->next;
    r = dt_comm_all_gather_table(c, DT_CALL_UNEVEN, calls, sizeof *calls);
    if (r == DT_OK)
        r = fail_mismatch(c, calls);
    free(calls);
    return r;
}

/* next: the program's call on this rank. */
static dt_result_t announce_call(struct dt_comm *c, const struct dt_call *next,
                                 int64_t words[WORDS])
{
    dt_result_t r;

    c->next = *next;
    c->announcing = true;
    r = dt_comm_announce(c, words, WORDS);
    if (r == DT_OK && words[WHAT] && words[MARK] != ~words[UNMARK])
        r = exchange_and_fail(c);
    c->announcing = false;
    return r;
}

/* Ranks without data make the call on host memory, buffer by buffer. Ranks with data compare their
 * calls. */
static dt_result_t announce_data_call(struct dt_comm *c, const struct dt_call *call)
{
    const struct dt_call *meant = c->whole ? c->whole : call;
    static const dt_all_reduce_options_t none = DT_ALL_REDUCE_OPTIONS_INIT;
    const dt_all_reduce_options_t *how = c->announced ? c->announced : &none;
    int64_t words[WORDS] = {
        [WHAT] = call->kind << 24 | call->dtype << 16 | call->op << 8 | (int)how->wire,
        [BYTES] = (int64_t)(call->count * dt_dtype_size((dt_dtype_t)call->dtype)),
        [PRESCALE] = to_bits(how->prescale),
        [POSTSCALE] = to_bits(how->postscale),
        [THRESHOLD] = to_bits((double)how->threshold),
        [BUFFERS] = (int64_t)dt_reduceoptions_buffers(call->options),
        [MARK] = (int64_t)dt_call_signature(meant),
        [UNMARK] = ~(int64_t)dt_call_signature(meant),
    };

    if (call->kind != DT_CALL_ALL_REDUCE && call->kind != DT_CALL_BARRIER)
        return dt_fail(DT_ERR_UNSUPPORTED,
                       "rank %d: only dt_all_reduce and dt_barrier are allowed between "
                       "dt_join_begin and dt_join",
                       c->world->rank);
    return announce_call(c, meant, words);
}

/* ---- neutral elements ---- */

enum neutral { ZERO, ONE, LEAST, MOST };

static const uint8_t neutral_of[] = {
    [DT_SUM] = ZERO,  [DT_PROD] = ONE, [DT_MIN] = MOST,  [DT_MAX] = LEAST,   [DT_AVG] = ZERO,
    [DT_BAND] = MOST, [DT_BOR] = ZERO, [DT_BXOR] = ZERO, [DT_ADASUM] = ZERO,
};

/* Bits, by enum neutral. For floats: every number plus -0 is that number, even -0. DT_MIN and
 * DT_MAX prefer any operand to a NaN. */
static const uint64_t neutrals[][4] = {
    [DT_I8] = { 0, 1, 0x80, 0x7f },
    [DT_U8] = { 0, 1, 0, 0xff },
    [DT_I16] = { 0, 1, 0x8000, 0x7fff },
    [DT_U16] = { 0, 1, 0, 0xffff },
    [DT_I32] = { 0, 1, 0x80000000, 0x7fffffff },
    [DT_U32] = { 0, 1, 0, 0xffffffff },
    [DT_I64] = { 0, 1, 0x8000000000000000, 0x7fffffffffffffff },
    [DT_U64] = { 0, 1, 0, 0xffffffffffffffff },
    [DT_F16] = { 0x8000, 0x3c00, 0x7e00, 0x7e00 },
    [DT_BF16] = { 0x8000, 0x3f80, 0x7fc0, 0x7fc0 },
    [DT_F32] = { 0x80000000, 0x3f800000, 0x7fc00000, 0x7fc00000 },
    [DT_F64] = { 0x8000000000000000, 0x3ff0000000000000, 0x7ff8000000000000, 0x7ff8000000000000 },
};

void dt_join_fill(void *buf, size_t count, dt_dtype_t dtype, dt_op_t op)
{
    uint64_t bits = op == DT_BAND ? UINT64_MAX : neutrals[dtype][neutral_of[op]];
    size_t size = dt_dtype_size(dtype);
    uint8_t *b = buf;

    for (size_t i = 0; i < count; i++)
        memcpy(b + i * size, &bits, size); /* little-endian */
}

/* ---- joining ---- */

static dt_all_reduce_options_t announced_options(const int64_t words[WORDS])
{
    dt_all_reduce_options_t how = DT_ALL_REDUCE_OPTIONS_INIT;

    how.wire = (dt_wire_t)(words[WHAT] & 0xff);
    how.prescale = from_bits(words[PRESCALE]);
    how.postscale = from_bits(words[POSTSCALE]);
    how.threshold = (float)from_bits(words[THRESHOLD]);
    return how;
}

static dt_result_t fail_no_memory(struct dt_comm *c, size_t count, dt_dtype_t dtype)
{
    char me[DT_WORLD_NAME];
    dt_result_t r =
        dt_fail(DT_ERR_NOMEM,
                "%s: dt_join: no memory to take part in the all-reduce of %zu %s that "
                "other ranks make",
                dt_world_name(c->world, (uint32_t)c->world->rank, me), count, dt_dtype_name(dtype));

    dt_error_report_call(DT_CALL_ALL_REDUCE);
    dt_error_report_self(c->world, c->id);
    return dt_comm_fail(c, r);
}

static dt_result_t all_reduce_no_data(struct dt_comm *c, const int64_t words[WORDS])
{
    dt_all_reduce_options_t how = announced_options(words);
    dt_dtype_t dtype = (dt_dtype_t)(words[WHAT] >> 16 & 0xff);
    dt_op_t op = (dt_op_t)(words[WHAT] >> 8 & 0xff);
    size_t bytes = (size_t)words[BYTES];
    size_t count = bytes / dt_dtype_size(dtype);
    void *buf = malloc(bytes + 1);
    dt_result_t r;

    if (!buf)
        return fail_no_memory(c, count, dtype);
    dt_join_fill(buf, count, dtype, op);
    r = dt_comm_all_reduce_no_data(c, buf, count, dtype, op, &how, (uint64_t)words[BUFFERS]);
    free(buf);
    return r;
}

/* Makes the call that other ranks have announced. */
static dt_result_t make_announced_call(struct dt_comm *c, const int64_t words[WORDS])
{
    enum dt_call_kind kind = (enum dt_call_kind)(words[WHAT] >> 24);
    dt_result_t r;

    c->announcing = true;
    if (kind == DT_CALL_ALL_REDUCE)
        r = all_reduce_no_data(c, words);
    else
        r = dt_comm_barrier(c, kind);
    c->announcing = false;
    return r;
}

static dt_result_t join_until_all_done(struct dt_comm *c, int *last)
{
    static const struct dt_call none = { .kind = DT_CALL_JOIN };
    int64_t calls = 0;
    dt_result_t r;

    for (;;) {
        int64_t words[WORDS] = { [LATE] = (INT32_MAX - calls) * c->size + c->rank,
                                 [PRESCALE] = INT64_MIN,
                                 [POSTSCALE] = INT64_MIN,
                                 [THRESHOLD] = INT64_MIN,
                                 [BUFFERS] = INT64_MIN,
                                 [MARK] = INT64_MIN,
                                 [UNMARK] = INT64_MIN };

        r = announce_call(c, &none, words);
        if (r != DT_OK)
            return r;
        if (words[WHAT] == 0) {
            c->announce = NULL;
            *last = (int)(words[LATE] % c->size);
            return DT_OK;
        }
        r = make_announced_call(c, words);
        if (r != DT_OK)
            return r;
        calls += calls < INT32_MAX;
    }
}

dt_result_t dt_join_begin(dt_comm_t *comm)
{
    struct dt_comm *c;
    dt_result_t r = dt_context_enter("dt_join_begin", comm, &c);

    if (r != DT_OK)
        return r;
    r = dt_comm_check(c);
    if (r == DT_OK && c->announce)
        r = dt_fail(DT_ERR_STATE,
                    "rank %d: dt_join_begin was called twice without dt_join in between",
                    c->world->rank);
    else if (r == DT_OK)
        c->announce = announce_data_call;
    dt_context_leave(c);
    return r;
}

/* dt_join_begin may have failed because c had. */
static dt_result_t fail_not_begun(struct dt_comm *c)
{
    dt_result_t r = dt_comm_check(c);

    return r == DT_OK ? dt_fail(DT_ERR_STATE, "rank %d: dt_join was called without dt_join_begin",
                                c->world->rank)
                      : r;
}

dt_result_t dt_join(dt_comm_t *comm, int *last)
{
    struct dt_comm *c;
    int ignored;
    dt_result_t r = dt_context_enter("dt_join", comm, &c);

    if (r != DT_OK)
        return r;
    r = c->announce ? join_until_all_done(c, last ? last : &ignored) : fail_not_begun(c);
    dt_context_leave(c);
    return r;
}
