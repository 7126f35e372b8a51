#include "launcher/base/program/horovodneeds.h"

#include <stdio.h>
#include <string.h>

#include "launcher/base/program/script.h"

static const char module[] = "horovod";

static size_t skip_blanks(const char *p, size_t n)
{
    size_t i = 0;

    while (i < n && (p[i] == ' ' || p[i] == '\t'))
        i++;
    return i;
}

/* Returns whether the n bytes at p begin with word, and the word ends there. */
static bool begins_with(const char *p, size_t n, const char *word)
{
    size_t word_n = strlen(word);

    return n >= word_n && memcmp(p, word, word_n) == 0 &&
           (n == word_n || strchr(" \t\r,.;#", p[word_n]));
}

/* Matches "horovod", "horovod.torch as hvd", or a list that contains one of these. */
static bool names_module(const char *p, size_t n)
{
    for (;;) {
        size_t blanks = skip_blanks(p, n);
        const char *comma;

        p += blanks;
        n -= blanks;
        if (begins_with(p, n, module))
            return true;
        comma = memchr(p, ',', n);
        if (!comma)
            return false;
        n -= (size_t)(comma + 1 - p);
        p = comma + 1;
    }
}

static bool is_import(const char *line, size_t n)
{
    static const char import[] = "import", from[] = "from";
    size_t blanks = skip_blanks(line, n);

    line += blanks;
    n -= blanks;
    if (begins_with(line, n, import))
        return names_module(line + strlen(import), n - strlen(import));
    if (!begins_with(line, n, from))
        return false;
    line += strlen(from);
    n -= strlen(from);
    blanks = skip_blanks(line, n);
    return begins_with(line + blanks, n - blanks, module);
}

static bool imports_horovod(const char *text, size_t n)
{
    const char *end = text + n;

    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t line_n = (size_t)((stop ? stop : end) - text);

        if (is_import(text, line_n))
            return true;
        text += line_n + 1;
    }
    return false;
}

bool dt_horovod_is_used(const char *path, const struct dt_strs *argv, char *why, size_t size)
{
    const char *script = dt_script_find(path, argv, imports_horovod);

    snprintf(why, size, "%s%s%s", script ? "import horovod" : "", script ? " in " : "",
             script ? script : "");
    return script != NULL;
}
