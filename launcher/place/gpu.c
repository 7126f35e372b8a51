#include "launcher/place/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"

/* CUDA ends the list at the first entry that names no device: an empty entry or -1. */
static bool ends_mask(const char *entry)
{
    return !*entry || strcmp(entry, "-1") == 0;
}

static void add_mask(struct dt_strs *list, const char *mask, uint32_t slots)
{
    char *copy = dt_xstrdup(mask), *rest = copy, *entry;

    while (list->n < slots && (entry = strsep(&rest, ","))) {
        entry += strspn(entry, " \t");
        entry[strcspn(entry, " \t")] = '\0';
        if (ends_mask(entry))
            break;
        dt_xstrs_add(list, entry);
    }
    free(copy);
}

static void add_entries(struct dt_strs *list, const struct dt_strs *from, uint32_t slots)
{
    for (uint32_t i = 0; i < from->n && list->n < slots && !ends_mask(from->v[i]); i++)
        dt_xstrs_add(list, from->v[i]);
}

static void add_numbers(struct dt_strs *list, uint32_t slots)
{
    char number[16];

    for (uint32_t i = 0; i < slots; i++) {
        snprintf(number, sizeof number, "%u", i);
        dt_xstrs_add(list, number);
    }
}

static void add_devices(struct dt_strs *list, const struct dt_gpu_source *source)
{
    uint32_t most = source->slots;

    if (source->granted && source->granted < most)
        most = source->granted;
    if (source->given)
        add_entries(list, source->given, source->slots);
    else if (source->mask)
        add_mask(list, source->mask, source->slots);
    else if (source->detected && source->detected->n)
        add_entries(list, source->detected, most);
    else
        add_numbers(list, most);
}

/* Joins all entries into one. */
static void join(struct dt_strs *list)
{
    struct dt_strs all = { 0 };
    struct dt_strbuf text = { 0 };

    for (uint32_t i = 0; i < list->n; i++)
        dt_strbuf_printf(&text, "%s%s", i ? "," : "", list->v[i]);
    dt_xstrs_add(&all, dt_strbuf_text(&text));
    dt_strbuf_free(&text);
    dt_strs_free(list);
    *list = all;
}

void dt_gpu_list(struct dt_strs *list, const struct dt_gpu_source *source)
{
    if (source->bind != DT_GPU_BIND_NONE)
        add_devices(list, source);
    else if (source->mask)
        dt_xstrs_add(list, source->mask);
    if (source->bind == DT_GPU_BIND_HOST)
        join(list);
}

static long index_of(const char *entry, size_t length)
{
    return length && strspn(entry, "0123456789") >= length ? strtol(entry, NULL, 10) : -1;
}

long dt_gpu_missing(const struct dt_strs *list, const struct dt_strs *detected)
{
    if (!detected->n || index_of(detected->v[0], strlen(detected->v[0])) < 0)
        return -1;
    for (uint32_t i = 0; i < list->n; i++)
        for (const char *at = list->v[i]; *at;) {
            size_t length = strcspn(at, ",");

            if (index_of(at, length) >= (long)detected->n)
                return index_of(at, length);
            at += length + (at[length] == ',');
        }
    return -1;
}

const char *dt_gpu_of(const struct dt_strs *list, uint32_t local_rank)
{
    return list->n ? list->v[local_rank % list->n] : "";
}
