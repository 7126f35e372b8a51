#include "launcher/place/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CUDA ends the list at the first entry that names no device: an empty entry or -1. */
static bool ends_mask(const char *entry)
{
    return !*entry || strcmp(entry, "-1") == 0;
}

static int add_mask(struct dt_strs *list, const char *mask, uint32_t slots)
{
    char *copy = strdup(mask), *rest = copy, *entry;
    int rc = copy ? 0 : -1;

    while (rc == 0 && list->n < slots && (entry = strsep(&rest, ","))) {
        entry += strspn(entry, " \t");
        entry[strcspn(entry, " \t")] = '\0';
        if (ends_mask(entry))
            break;
        rc = dt_strs_add(list, entry);
    }
    free(copy);
    return rc;
}

static int add_entries(struct dt_strs *list, const struct dt_strs *from, uint32_t slots)
{
    for (uint32_t i = 0; i < from->n && list->n < slots && !ends_mask(from->v[i]); i++)
        if (dt_strs_add(list, from->v[i]) < 0)
            return -1;
    return 0;
}

static int add_numbers(struct dt_strs *list, uint32_t slots)
{
    char number[16];

    for (uint32_t i = 0; i < slots; i++) {
        snprintf(number, sizeof number, "%u", i);
        if (dt_strs_add(list, number) < 0)
            return -1;
    }
    return 0;
}

static int add_devices(struct dt_strs *list, const struct dt_gpu_source *source)
{
    uint32_t most = source->slots;

    if (source->given)
        return add_entries(list, source->given, source->slots);
    if (source->mask)
        return add_mask(list, source->mask, source->slots);
    if (source->granted && source->granted < most)
        most = source->granted;
    if (source->detected && source->detected->n)
        return add_entries(list, source->detected, most);
    return add_numbers(list, most);
}

/* Joins all entries into one. */
static int join(struct dt_strs *list)
{
    struct dt_strs all = { 0 };
    size_t size = 1;
    char *text, *end;
    int rc;

    for (uint32_t i = 0; i < list->n; i++)
        size += strlen(list->v[i]) + 1;
    text = end = calloc(1, size);
    for (uint32_t i = 0; text && i < list->n; i++)
        end += sprintf(end, "%s%s", i ? "," : "", list->v[i]);
    rc = text ? dt_strs_add(&all, text) : -1;
    free(text);
    dt_strs_free(list);
    *list = all;
    return rc;
}

int dt_gpu_list(struct dt_strs *list, const struct dt_gpu_source *source)
{
    if (source->bind == DT_GPU_BIND_NONE)
        return source->mask ? dt_strs_add(list, source->mask) : 0;
    if (add_devices(list, source) < 0)
        return -1;
    return source->bind == DT_GPU_BIND_HOST ? join(list) : 0;
}

static long index_of(const char *entry, size_t length)
{
    return length && strspn(entry, "0123456789") >= length ? strtol(entry, NULL, 10) : -1;
}

long dt_gpu_missing(const struct dt_strs *list, uint32_t gpus)
{
    for (uint32_t i = 0; i < list->n; i++)
        for (const char *at = list->v[i]; *at;) {
            size_t length = strcspn(at, ",");

            if (index_of(at, length) >= (long)gpus)
                return index_of(at, length);
            at += length + (at[length] == ',');
        }
    return -1;
}

const char *dt_gpu_of(const struct dt_strs *list, uint32_t local_rank)
{
    return list->n ? list->v[local_rank % list->n] : "";
}
