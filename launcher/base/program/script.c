#include "launcher/base/program/script.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "launcher/base/program/head.h"
#include "launcher/base/program/words.h"

static bool has_script_name(const char *path)
{
    size_t n = strlen(path);

    return n > 3 && strcmp(path + n - 3, ".py") == 0;
}

/* Matches "#!/usr/bin/env python3". */
static bool names_python(const char *text, size_t n)
{
    const char *end = memchr(text, '\n', n);
    size_t line_n = end ? (size_t)(end - text) : n;

    return n > 2 && memcmp(text, "#!", 2) == 0 &&
           memmem(text, line_n, "python", strlen("python")) != NULL;
}

/* An argument may name any file, so only scripts among arguments are read. The program itself is
 * always read. */
static bool is_passing(const char *path, bool is_program, dt_script_test *passes)
{
    static char bytes[DT_HEAD_BYTES];
    bool named = has_script_name(path);
    size_t n = named || is_program ? dt_head_read(path, bytes) : 0;

    return n && (named || names_python(bytes, n)) && passes(bytes, n);
}

/* Finds the file of "python3 -m pkg.train" below the working directory. */
static const char *find_module(const char *name, dt_script_test *passes)
{
    static const char *const endings[] = { ".py", "/__main__.py" };
    static char path[PATH_MAX];

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (snprintf(path, sizeof path, "%s%s", name, endings[i]) >= (int)sizeof path)
            continue;
        for (char *dot = path; dot < path + strlen(name); dot++) {
            if (*dot == '.')
                *dot = '/';
        }
        if (is_passing(path, false, passes))
            return path;
    }
    return NULL;
}

struct hunt {
    dt_script_test *passes;
    bool after_m; /* the last word was "-m" */
    char found[PATH_MAX];
};

static bool is_script_of_words(void *arg, const char *word)
{
    struct hunt *h = arg;
    const char *found = is_passing(word, false, h->passes) ? word : NULL;

    if (!found && h->after_m)
        found = find_module(word, h->passes);
    h->after_m = strcmp(word, "-m") == 0;
    if (found)
        snprintf(h->found, sizeof h->found, "%s", found);
    return found;
}

const char *dt_script_find(const char *path, const struct dt_strs *argv, dt_script_test *passes)
{
    static struct hunt h;

    h.passes = passes;
    h.after_m = false;
    if (is_passing(path, true, passes))
        return path;
    return dt_words_find(path, argv, is_script_of_words, &h) ? h.found : NULL;
}
