/* Collectives: each member puts its contribution into its slot, all meet, and each takes its result
 * from the slots. This repeats until all data has passed through the slots.
 *
 * Rules: no member has a result before all members have launched the collective. Sums have the same
 * bits on all ranks. An element is folded along the ring (device/all_reduce.h). In an all-reduce
 * over n ranks, part c of n goes from rank c + 1 to rank c; in a reduce-scatter the block of rank c
 * does so; in a reduce everything goes from root + 1 to root. A kernel that touches an element at
 * an address that is no multiple of its size ends in a fault (common_kernel.h). Members whose
 * collectives differ may hang with NCCL. Here they always hang, and report it. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tests/standin/nccl/elements.h"
#include "tests/standin/nccl/errors.h"
#include "tests/standin/nccl/kernel.h"
#include "tests/standin/nccl/order.h"

static const struct shape {
    bool sends_blocks, receives_blocks; /* one block for each rank */
    bool root_sends, root_receives;     /* only the root does */
} dti_shapes[] = {
    [STANDIN_ALL_REDUCE] = { false, false, false, false },
    [STANDIN_REDUCE] = { false, false, false, true },
    [STANDIN_BROADCAST] = { false, false, true, false },
    [STANDIN_ALL_GATHER] = { false, true, false, false },
    [STANDIN_REDUCE_SCATTER] = { true, false, false, false },
};

struct collective {
    struct ncclComm *comm;
    const struct standin_operation *operation;
    const struct shape *shape;
    char *from, *to; /* NULL if this rank takes no part on this side */
    char scalar[8];
    size_t size;       /* of an element */
    size_t at, length; /* of this round, in elements */
};

static bool is_aligned(const struct collective *now)
{
    return ((uintptr_t)now->from | (uintptr_t)now->to) % now->size == 0;
}

static bool touch(struct collective *now)
{
    const struct standin_operation *operation = now->operation;
    bool is_root = now->comm->rank == operation->root;
    size_t block = operation->count * now->size, all = block * (size_t)now->comm->size;
    const char *scalar = operation->scalar;

    if (operation->scalar_at &&
        !(scalar = standin_touch(now->comm, operation->scalar_at, now->size)))
        return false;
    memcpy(now->scalar, scalar, now->size);
    if ((!now->shape->root_sends || is_root) &&
        !(now->from =
              standin_touch(now->comm, operation->from, now->shape->sends_blocks ? all : block)))
        return false;
    return (now->shape->root_receives && !is_root) ||
           (now->to =
                standin_touch(now->comm, operation->to, now->shape->receives_blocks ? all : block));
}

static void announce(const struct standin_kernel_plan *plan,
                     const struct standin_operation *operation)
{
    struct standin_call *call = &plan->comm->own->said.call;

    *call = (struct standin_call){
        .function = (int)operation->function,
        .type = (int)operation->type,
        .op = operation->scaled || operation->divisor ? ncclNumOps : (int)operation->op,
        .root = operation->root,
        .count = operation->count,
        .before_count = plan->before_count,
    };
    memcpy(call->before, plan->before, sizeof(call->before));
}

static bool is_same(const struct standin_call *a, const struct standin_call *b)
{
    return a->function == b->function && a->type == b->type && a->op == b->op &&
           a->root == b->root && a->count == b->count;
}

static bool all_agree(struct ncclComm *comm)
{
    const struct standin_call *own = &comm->own->said.call, *other;

    for (int r = 0; r < comm->size; r++) {
        other = &comm->shared->members[r].said.call;
        if (is_same(own, other))
            continue;
        standin_report(
            "calls do not match: rank %d makes nccl%s of %llu elements of type %d, rank %d "
            "nccl%s of %llu of type %d",
            comm->rank, standin_function_name(own->function), (unsigned long long)own->count,
            own->type, r, standin_function_name(other->function), (unsigned long long)other->count,
            other->type);
        return false;
    }
    return true;
}

static void put_block(const struct collective *now, char *slot, size_t block)
{
    const char *from = now->from + (block * now->operation->count + now->at) * now->size;

    memcpy(slot, from, now->length * now->size);
    if (now->operation->scaled)
        standin_fold(now->operation->type, ncclProd, slot, now->scalar, 0, now->length);
}

static void put(const struct collective *now)
{
    struct ncclComm *comm = now->comm;
    char *slot = standin_slot(comm->shared, comm->size, comm->rank);
    size_t blocks = now->shape->sends_blocks ? (size_t)comm->size : 1;

    if (!now->from)
        return;
    for (size_t block = 0; block < blocks; block++)
        put_block(now, slot + block * now->length * now->size, block);
    comm->own->said.filled = blocks * now->length * now->size;
    atomic_fetch_add(&comm->own->fills, 1);
}

/* Folds `count` elements at `offset` of all slots, slot `last` last. */
static void fold(const struct collective *now, size_t offset, size_t count, int last, char *to)
{
    const struct standin_operation *operation = now->operation;
    struct ncclComm *comm = now->comm;

    for (int i = 1; i <= comm->size; i++) {
        char *slot = standin_slot(comm->shared, comm->size, (last + i) % comm->size);

        if (i == 1)
            memcpy(to, slot + offset * now->size, count * now->size);
        else
            standin_fold(operation->type, operation->op, to, slot + offset * now->size, 1, count);
    }
    if (operation->divisor)
        standin_divide(operation->type, to, count, operation->divisor);
}

static void fold_parts(const struct collective *now, char *to)
{
    size_t members = (size_t)now->comm->size;
    size_t part = (now->operation->count + members - 1) / members, done = 0;

    while (done < now->length) {
        size_t at = now->at + done, count = part - at % part;

        count = count < now->length - done ? count : now->length - done;
        fold(now, done, count, (int)(at / part), to + done * now->size);
        done += count;
    }
}

static void take(const struct collective *now)
{
    struct ncclComm *comm = now->comm;
    char *to = now->to + now->at * now->size;

    switch (now->operation->function) {
    case STANDIN_ALL_REDUCE:
        fold_parts(now, to);
        return;
    case STANDIN_REDUCE:
        fold(now, 0, now->length, comm->rank, to);
        return;
    case STANDIN_REDUCE_SCATTER:
        fold(now, (size_t)comm->rank * now->length, now->length, comm->rank, to);
        return;
    case STANDIN_BROADCAST:
        memcpy(to, standin_slot(comm->shared, comm->size, now->operation->root),
               now->length * now->size);
        return;
    default:
        for (int r = 0; r < comm->size; r++)
            memcpy(to + (size_t)r * now->operation->count * now->size,
                   standin_slot(comm->shared, comm->size, r), now->length * now->size);
    }
}

/* A slot may be overwritten once all have come to the next meeting. */
static bool run_rounds(struct collective *now)
{
    size_t blocks = now->shape->sends_blocks ? (size_t)now->comm->size : 1;
    size_t most = STANDIN_SLOT / (now->size * blocks), count = now->operation->count;

    for (; now->at < count; now->at += now->length) {
        now->length = most < count - now->at ? most : count - now->at;
        if (now->at && standin_meet(now->comm, STANDIN_KERNEL))
            return false;
        put(now);
        if (standin_meet(now->comm, STANDIN_KERNEL))
            return false;
        if (now->to)
            take(now);
    }
    return true;
}

bool standin_run_collective(const struct standin_kernel_plan *plan,
                            const struct standin_operation *operation)
{
    struct collective now = {
        .comm = plan->comm,
        .operation = operation,
        .shape = &dti_shapes[operation->function],
        .size = standin_element_size(operation->type),
    };

    if (!touch(&now))
        return false;
    if (!is_aligned(&now)) {
        standin_fault(now.comm->context);
        return false;
    }
    announce(plan, operation);
    if (standin_meet(plan->comm, STANDIN_KERNEL))
        return false;
    standin_order_compare(plan->comm);
    if (!all_agree(plan->comm)) {
        standin_hang(plan->comm);
        return false;
    }
    return run_rounds(&now);
}
