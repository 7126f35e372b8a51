#include "launcher/base/program/words.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/program/head.h"

enum { WORDS_MAX = 1000 };

/* What may stand beside a word in a shell. A path that begins with a variable is not found. */
static const char separators[] = " \t\r\n\"'`;&|()<>{}$=,";

struct search {
    dt_words_test *passes;
    void *arg;
    unsigned words_left; /* of texts; then the search ends */
};

static bool find_in_text(struct search *s, char *text)
{
    char *rest, *word;

    for (; s->words_left && (word = strtok_r(text, separators, &rest)); text = NULL) {
        if (s->passes(s->arg, word))
            return true;
        s->words_left--;
    }
    return false;
}

static bool is_script(const char *path, const char *text)
{
    static const char *const endings[] = { ".sh", ".R", ".r" };
    size_t n = strlen(path);

    if (strncmp(text, "#!", 2) == 0)
        return true;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending_n = strlen(endings[i]);

        if (n > ending_n && strcmp(path + n - ending_n, endings[i]) == 0)
            return true;
    }
    return false;
}

static bool find_in_script(struct search *s, const char *path)
{
    static char text[DT_HEAD_BYTES + 1];

    text[dt_head_read(path, text, DT_HEAD_BYTES)] = '\0';
    return is_script(path, text) && find_in_text(s, text);
}

static bool find_in_argument(struct search *s, const char *argument)
{
    bool found = s->passes(s->arg, argument);

    if (!found && strpbrk(argument, separators)) {
        char *text = dt_xstrdup(argument);

        found = find_in_text(s, text);
        free(text);
    }
    return found || find_in_script(s, argument);
}

bool dt_words_find(const char *path, const struct dt_strs *argv, dt_words_test *passes, void *arg)
{
    struct search s = { passes, arg, WORDS_MAX };

    /* A program that is a long script, as R is, must not prevent a look at its arguments. */
    for (uint32_t i = 1; i < argv->n; i++) {
        if (find_in_argument(&s, argv->v[i]))
            return true;
    }
    return find_in_script(&s, path);
}
