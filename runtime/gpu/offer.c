#include "runtime/gpu/offer.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[DT_GPU_WAYS] = { "auto", "staging", "nccl" };

const char *dt_gpu_way_name(enum dt_gpu_way way)
{
    return (unsigned)way < DT_GPU_WAYS ? names[way] : "?";
}

enum dt_gpu_way dt_gpu_way_find(const char *name)
{
    int way = 0;

    while (way < DT_GPU_WAYS && strcmp(names[way], name) != 0)
        way++;
    return (enum dt_gpu_way)way;
}

static bool is_same_gpu(const struct dt_gpu_offer *a, const struct dt_gpu_offer *b)
{
    return a->node == b->node && memcmp(a->bus, b->bus, sizeof a->bus) == 0;
}

static struct dt_gpu_choice obstacle(const struct dt_gpu_offer *offers, int size)
{
    for (int a = 0; a < size; a++) {
        if (offers[a].wish != offers[0].wish)
            return (struct dt_gpu_choice){ .obstacle = DT_GPU_WISHES_DIFFER, .a = a };
    }
    for (int a = 0; a < size; a++) {
        if (!offers[a].nccl)
            return (struct dt_gpu_choice){ .obstacle = DT_GPU_NO_NCCL, .a = a };
    }
    for (int b = 1; b < size; b++) {
        for (int a = 0; a < b; a++) {
            if (is_same_gpu(&offers[a], &offers[b]))
                return (struct dt_gpu_choice){ .obstacle = DT_GPU_SHARED, .a = a, .b = b };
        }
    }
    return (struct dt_gpu_choice){ 0 };
}

struct dt_gpu_choice dt_gpu_choose(const struct dt_gpu_offer *offers, int size)
{
    struct dt_gpu_choice choice = obstacle(offers, size);

    choice.way = choice.obstacle || size == 1 ? DT_GPU_STAGING : DT_GPU_NCCL;
    return choice;
}

const char *dt_gpu_obstacle_text(const struct dt_gpu_choice *choice,
                                 const struct dt_gpu_offer *offers, char text[DT_GPU_TEXT])
{
    int a = choice->a, b = choice->b;

    text[0] = '\0';
    switch (choice->obstacle) {
    case DT_GPU_CLEAR:
        break;
    case DT_GPU_WISHES_DIFFER:
        snprintf(text, DT_GPU_TEXT, "DTRUN_DEVICE is %s on rank 0 and %s on rank %d",
                 dt_gpu_way_name((enum dt_gpu_way)offers[0].wish),
                 dt_gpu_way_name((enum dt_gpu_way)offers[a].wish), a);
        break;
    case DT_GPU_NO_NCCL:
        snprintf(text, DT_GPU_TEXT, "rank %d has no libnccl.so.2 that can be used", a);
        break;
    case DT_GPU_SHARED:
        snprintf(text, DT_GPU_TEXT, "ranks %d and %d share a GPU (%.*s), which NCCL refuses", a, b,
                 DT_GPU_BUS, offers[a].bus);
        break;
    }
    return text;
}
