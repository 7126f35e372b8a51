#include "launcher/place/envlist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

const char *dt_envlist_find(const struct dt_strs *env, const char *name, size_t n)
{
    for (uint32_t i = 0; i < env->n; i++)
        if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
            return env->v[i];
    return NULL;
}

void dt_envlist_drop_at(struct dt_strs *s, uint32_t i)
{
    free(s->v[i]);
    memmove(&s->v[i], &s->v[i + 1], (s->n - i) * sizeof *s->v);
    s->n--;
}

void dt_envlist_drop(struct dt_strs *s, const char *name, size_t n)
{
    for (uint32_t i = 0; i < s->n;) {
        if (strncmp(s->v[i], name, n) == 0 && (s->v[i][n] == '=' || !s->v[i][n]))
            dt_envlist_drop_at(s, i);
        else
            i++;
    }
}

void dt_envlist_put(struct dt_strs *env, const char *entry)
{
    dt_envlist_drop(env, entry, strcspn(entry, "="));
    dt_xstrs_add(env, entry);
}

void dt_envlist_put_text(struct dt_strs *env, const char *name, const char *value)
{
    char *entry = dt_xasprintf("%s=%s", name, value);

    dt_envlist_put(env, entry);
    free(entry);
}

void dt_envlist_put_numbers(struct dt_strs *env, const struct dt_envlist_number *numbers, size_t n)
{
    char number[24];

    for (size_t i = 0; i < n; i++) {
        snprintf(number, sizeof number, "%lld", numbers[i].value);
        dt_envlist_put_text(env, numbers[i].name, number);
    }
}

void dt_envlist_put_texts(struct dt_strs *env, const struct dt_envlist_text *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (texts[i].value && *texts[i].value)
            dt_envlist_put_text(env, texts[i].name, texts[i].value);
}
