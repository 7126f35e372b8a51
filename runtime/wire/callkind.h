/* The kinds of calls that all ranks of a communicator, or two ranks, must make alike. One row each.
 * Pure. */
#ifndef DT_WIRE_CALLKIND_H
#define DT_WIRE_CALLKIND_H

/* Each row: the name after DT_CALL_; the number, which is used in shared memory and frames; the
 * name in messages; and the traits (below). */
/* clang-format off */
#define DT_CALL_KINDS(ROW)                                                                         \
    ROW(INIT, 1, "dt_init", 0)                                                                     \
    ROW(FINALIZE, 2, "dt_finalize", 0)                                                             \
    ROW(BARRIER, 3, "barrier", 0)                                                                  \
    ROW(ALL_REDUCE, 4, "all-reduce", COUNT | TYPE | OP | IN | OUT)                                 \
    ROW(BROADCAST, 5, "broadcast", COUNT | TYPE | FROM | IN | OUT | ONE_BUFFER)                    \
    ROW(REDUCE, 6, "reduce", COUNT | TYPE | OP | TO | IN | OUT)                                    \
    ROW(ALL_GATHER, 7, "all-gather", COUNT | TYPE | IN_OWN | OUT_BLOCKS)                           \
    ROW(ALL_GATHERV, 8, "all-gatherv", TYPE | IN_OWN | OUT_BLOCKS | VARIED)                        \
    ROW(REDUCE_SCATTER, 9, "reduce-scatter", COUNT | TYPE | OP | IN_BLOCKS | OUT)                  \
    ROW(REDUCE_SCATTERV, 30, "reduce-scatterv", TYPE | OP | IN_BLOCKS | OUT | VARIED)              \
    ROW(ALL_TO_ALL, 10, "all-to-all", COUNT | TYPE | IN_BLOCKS | OUT_BLOCKS | PAIRS)               \
    ROW(ALL_TO_ALLV, 11, "all-to-allv", TYPE | IN_BLOCKS | OUT_BLOCKS | VARIED | PAIRS)            \
    ROW(GATHER, 12, "gather", COUNT | TYPE | TO | IN | OUT_BLOCKS | PAIRS)                         \
    ROW(GATHERV, 13, "gatherv", TYPE | TO | IN | OUT_BLOCKS | VARIED | PAIRS)                      \
    ROW(SCATTER, 14, "scatter", COUNT | TYPE | FROM | IN_BLOCKS | OUT | PAIRS)                     \
    ROW(SCATTERV, 15, "scatterv", TYPE | FROM | IN_BLOCKS | OUT | VARIED | PAIRS)                  \
    ROW(SEND, 16, "send", COUNT | TYPE | TO | IN)                                                  \
    ROW(RECV, 17, "recv", COUNT | TYPE | FROM | OUT)                                               \
    ROW(SPLIT, 18, "dt_comm_split", 0)                                                             \
    ROW(DUP, 19, "dt_comm_dup", 0)                                                                 \
    ROW(FREE, 20, "dt_comm_free", 0)                                                               \
    ROW(TUNE, 21, "dt_comm_tune", 0)                                                               \
    ROW(ALLOC, 22, "dt_mem_alloc", COUNT | TYPE)                                                   \
    ROW(JOIN, 23, "dt_join", 0)                                                                    \
    /* ranks announce the next call (join.h) */                                 \
    ROW(UNEVEN, 24, "something after dt_join_begin", 0)                                            \
    /* consists of several calls, as do the next two */                                                          \
    ROW(SAVE, 25, "dt_checkpoint_save", 0)                                                         \
    ROW(ISAVE, 32, "dt_checkpoint_isave", 0)                                                       \
    ROW(RESTORE, 26, "dt_checkpoint_restore", 0)                                                   \
    /* no calls, but waits of one rank; each has the previous number */                              \
    ROW(GPU_COPY, 27, "a wait for its GPU", 0)                                                     \
    ROW(GPU_LAUNCH, 33, "a launch by NCCL", 0)                                                     \
    ROW(GPU_START, 34, "a start of NCCL", 0)                                                       \
    /* ranks choose how calls on GPU memory are executed */                                            \
    ROW(GPU_CHOICE, 28, "a first call on GPU memory", 0)                                           \
    /* ranks agree on an order for calls on several communicators */                                  \
    ROW(GPU_ORDER, 29, "a call on GPU memory", 0)                                                  \
    ROW(ON_STREAM, 31, "dt_comm_on_stream", 0)
/* clang-format on */

enum dt_call_kind {
#define DT_CALL_KIND(name, number, text, traits) DT_CALL_##name = (number),
    DT_CALL_KINDS(DT_CALL_KIND)
#undef DT_CALL_KIND
};

enum dt_call_trait {
    /* What identifies the call, beside kind and number. */
    DT_CALL_TELLS_COUNT = 0x1,
    DT_CALL_TELLS_TYPE = 0x2,
    DT_CALL_TELLS_OP = 0x4,
    DT_CALL_TELLS_TO = 0x8,    /* the root receives */
    DT_CALL_TELLS_FROM = 0x10, /* the root sends */
    /* What a rank reads; with TELLS_FROM only root reads. */
    DT_CALL_IN = 0x20,        /* count elements */
    DT_CALL_IN_BLOCKS = 0x40, /* one block for each rank */
    DT_CALL_IN_OWN = 0x80,    /* its own block of those that it writes */
    /* What a rank writes; with TELLS_TO only root writes. */
    DT_CALL_OUT = 0x100,
    DT_CALL_OUT_BLOCKS = 0x200,
    DT_CALL_ONE_BUFFER = 0x400, /* root reads it, the others write it */
    /* About the blocks. */
    DT_CALL_VARIED = 0x800, /* they have different lengths */
    DT_CALL_PAIRS = 0x1000, /* each pair of ranks states its own count */
};

/* For an unknown kind: "an unknown call", and no traits. */
const char *dt_call_name(unsigned kind);
unsigned dt_call_traits(unsigned kind);

#endif
