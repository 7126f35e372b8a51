#include "runtime/gpu/offer.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_at_same_place(const struct dt_gpu_offer *a, const struct dt_gpu_offer *b)
{
    return a->node == b->node && memcmp(a->bus, b->bus, sizeof a->bus) == 0;
}

bool dt_gpu_is_same(const struct dt_gpu_offer *a, const struct dt_gpu_offer *b)
{
    return is_at_same_place(a, b) && memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0;
}

/* Hosts may be containers of one machine that see the same GPU. With DTRUN_DEVICE=nccl the user
 * may let ranks of different nodes use one GPU (see NCCL_HOSTID in gpu.c). */
static bool is_shared(const struct dt_gpu_offer *a, const struct dt_gpu_offer *b)
{
    static const char unknown[DT_GPU_UUID];

    return is_at_same_place(a, b) ||
           (a->wish != DT_GPU_NCCL && memcmp(a->uuid, unknown, sizeof unknown) != 0 &&
            memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0);
}

/* Whether the rank shares the GPU of a lower rank of its node. */
static bool follows(const struct dt_gpu_offer *offers, int rank)
{
    for (int before = 0; before < rank; before++) {
        if (dt_gpu_is_same(&offers[before], &offers[rank]))
            return true;
    }
    return false;
}

static struct dt_gpu_choice find_differing_wish(const struct dt_gpu_offer *offers, int size)
{
    for (int b = 1; b < size; b++) {
        if (offers[b].wish != offers[0].wish)
            return (struct dt_gpu_choice){ .obstacle = DT_GPU_WISHES_DIFFER, .b = b };
    }
    return (struct dt_gpu_choice){ 0 };
}

/* NCCL refuses ranks whose version differs from that of its rank 0, which is also rank 0 here.
 * leaders: passes over ranks that share a GPU with a lower rank. */
static struct dt_gpu_choice find_lack_of_nccl(const struct dt_gpu_offer *offers, int size,
                                              bool leaders)
{
    for (int a = 0; a < size; a++) {
        if (leaders && follows(offers, a))
            continue;
        if (!offers[a].nccl)
            return (struct dt_gpu_choice){ .obstacle = DT_GPU_NO_NCCL, .a = a };
        if (offers[a].nccl != offers[0].nccl)
            return (struct dt_gpu_choice){ .obstacle = DT_GPU_NCCL_DIFFERS, .b = a };
    }
    return (struct dt_gpu_choice){ 0 };
}

/* leaders: as above. */
static struct dt_gpu_choice find_sharers(const struct dt_gpu_offer *offers, int size, bool leaders)
{
    for (int b = 1; b < size; b++) {
        if (leaders && follows(offers, b))
            continue;
        for (int a = 0; a < b; a++) {
            if (is_shared(&offers[a], &offers[b]))
                return (struct dt_gpu_choice){ .obstacle = DT_GPU_IS_SHARED, .a = a, .b = b };
        }
    }
    return (struct dt_gpu_choice){ 0 };
}

static bool is_one_group(const struct dt_gpu_offer *offers, int size)
{
    for (int rank = 1; rank < size; rank++) {
        if (!dt_gpu_is_same(&offers[0], &offers[rank]))
            return false;
    }
    return true;
}

/* Returns what keeps ranks that share GPUs from sharing memory there. */
static struct dt_gpu_choice find_obstacle_to_sharing(const struct dt_gpu_offer *offers, int size)
{
    struct dt_gpu_choice sharers = find_sharers(offers, size, true);

    for (int rank = 0; rank < size; rank++) {
        if (offers[rank].unable)
            return (struct dt_gpu_choice){ .obstacle = DT_GPU_UNSHARABLE, .a = rank };
    }
    if (sharers.obstacle)
        return sharers;
    if (is_one_group(offers, size))
        return (struct dt_gpu_choice){ 0 };
    return find_lack_of_nccl(offers, size, true);
}

/* The abilities that all ranks have. */
static void agree_on_abilities(struct dt_gpu_choice *choice, const struct dt_gpu_offer *offers,
                               int size)
{
    choice->ordered = choice->keeps_split = true;
    for (int rank = 0; rank < size; rank++) {
        choice->ordered &= offers[rank].ordered != 0;
        choice->keeps_split &= offers[rank].split != 0;
    }
}

struct dt_gpu_choice dt_gpu_choose(const struct dt_gpu_offer *offers, int size)
{
    struct dt_gpu_choice choice = find_differing_wish(offers, size);
    struct dt_gpu_choice sharers = find_sharers(offers, size, false);

    if (choice.obstacle || size == 1) {
        choice.path = DT_GPU_STAGING;
        return choice;
    }
    if (sharers.obstacle && offers[0].wish != DT_GPU_NCCL) {
        choice = find_obstacle_to_sharing(offers, size);
        choice.path = choice.obstacle ? DT_GPU_STAGING : DT_GPU_SHARED;
        choice.shares = true;
        return choice;
    }
    choice = find_lack_of_nccl(offers, size, false);
    if (!choice.obstacle)
        choice = sharers;
    choice.path = choice.obstacle ? DT_GPU_STAGING : DT_GPU_NCCL;
    if (!choice.obstacle)
        agree_on_abilities(&choice, offers, size);
    return choice;
}

static const char *unable_text(uint64_t unable)
{
    switch (unable) {
    case DT_GPU_NO_VIRTUAL_MEMORY:
        return "has no virtual memory management";
    case DT_GPU_NO_DESCRIPTORS:
        return "cannot export memory to other processes";
    case DT_GPU_NO_STREAM_WORDS:
        return "has no stream memory operations";
    case DT_GPU_MIG:
        return "is a MIG device";
    default:
        return "does not report its attributes";
    }
}

static void put_versions(const struct dt_gpu_choice *choice, const struct dt_gpu_offer *offers,
                         const struct dt_gpu_details *d, char text[DT_GPU_TEXT])
{
    int a = (int)offers[choice->a].nccl, b = (int)offers[choice->b].nccl;

    snprintf(text, DT_GPU_TEXT,
             "%s has NCCL %d.%d.%d and %s NCCL %d.%d.%d, which do not work together "
             "(DTRUN_NCCL names the file to use)",
             d->a, a / 10000, a / 100 % 100, a % 100, d->b, b / 10000, b / 100 % 100, b % 100);
}

const char *dt_gpu_obstacle_text(const struct dt_gpu_choice *choice,
                                 const struct dt_gpu_offer *offers, const struct dt_gpu_details *d,
                                 char text[DT_GPU_TEXT])
{
    const struct dt_gpu_offer *a = &offers[choice->a], *b = &offers[choice->b];

    text[0] = '\0';
    switch (choice->obstacle) {
    case DT_GPU_CLEAR:
        break;
    case DT_GPU_WISHES_DIFFER:
        snprintf(text, DT_GPU_TEXT, "DTRUN_DEVICE is %s on %s and %s on %s",
                 dt_gpu_path_name((enum dt_gpu_path)a->wish), d->a,
                 dt_gpu_path_name((enum dt_gpu_path)b->wish), d->b);
        break;
    case DT_GPU_NO_NCCL:
        snprintf(text, DT_GPU_TEXT, "%s%s cannot use NCCL%s (%.*s)",
                 choice->shares ? "ranks share GPUs, and " : "", d->a,
                 choice->shares ? " between them" : "", DT_GPU_WHY, d->why);
        break;
    case DT_GPU_NCCL_DIFFERS:
        put_versions(choice, offers, d, text);
        break;
    case DT_GPU_UNSHARABLE:
        snprintf(text, DT_GPU_TEXT,
                 "ranks share a GPU, which NCCL refuses, and they cannot share its memory, because "
                 "GPU %.*s of %s %s",
                 DT_GPU_BUS, a->bus, d->a, unable_text(a->unable));
        break;
    case DT_GPU_IS_SHARED:
        snprintf(text, DT_GPU_TEXT, "%s and %s share a GPU (%.*s), which NCCL does not support",
                 d->a, d->b, DT_GPU_BUS, a->bus);
        break;
    }
    return text;
}
