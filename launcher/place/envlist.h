/* A list of environment variables, each "NAME=VALUE". A put function replaces an entry of the same
 * name. Pure. */
#ifndef DT_PLACE_ENVLIST_H
#define DT_PLACE_ENVLIST_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/codec.h"

struct dt_envlist_number {
    const char *name;
    long long value;
};

struct dt_envlist_text {
    const char *name;
    const char *value; /* NULL or empty: the variable is not set */
};

/* Returns the entry of the variable whose name is the n bytes at name, or NULL. */
const char *dt_envlist_find(const struct dt_strs *env, const char *name, size_t n);

void dt_envlist_drop_at(struct dt_strs *s, uint32_t i);
/* Removes NAME=... from env, or NAME from a list of names. */
void dt_envlist_drop(struct dt_strs *s, const char *name, size_t n);

void dt_envlist_put(struct dt_strs *env, const char *entry); /* "NAME=VALUE" */
void dt_envlist_put_text(struct dt_strs *env, const char *name, const char *value);
void dt_envlist_put_numbers(struct dt_strs *env, const struct dt_envlist_number *numbers, size_t n);
void dt_envlist_put_texts(struct dt_strs *env, const struct dt_envlist_text *texts, size_t n);

#endif
