#include "launcher/base/program/words.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/program/head.h"

enum { WORDS_MAX = 1000 };

/* What may stand beside a word in a shell. A path that a variable begins is not found. */
static const char separators[] = " \t\r\n\"'`;&|()<>{}$=,";

struct hunt {
    dt_words_test *passes;
    void *arg;
    unsigned left; /* how many words of texts to look at */
};

static bool find_in_text(struct hunt *h, char *text)
{
    char *rest;

    for (char *word = strtok_r(text, separators, &rest); word && h->left; h->left--) {
        if (h->passes(h->arg, word))
            return true;
        word = strtok_r(NULL, separators, &rest);
    }
    return false;
}

static bool is_script(const char *path, const char *text)
{
    size_t n = strlen(path);

    return strncmp(text, "#!", 2) == 0 || (n > 3 && strcmp(path + n - 3, ".sh") == 0);
}

static bool find_in_script(struct hunt *h, const char *path)
{
    static char text[DT_HEAD_BYTES + 1];

    text[dt_head_read(path, text)] = '\0';
    return is_script(path, text) && find_in_text(h, text);
}

static bool find_in_argument(struct hunt *h, const char *argument)
{
    bool found = h->passes(h->arg, argument);

    if (!found && strpbrk(argument, separators)) {
        char *text = dt_xstrdup(argument);

        found = find_in_text(h, text);
        free(text);
    }
    return found || find_in_script(h, argument);
}

bool dt_words_find(const char *path, const struct dt_strs *argv, dt_words_test *passes, void *arg)
{
    struct hunt h = { passes, arg, WORDS_MAX };

    if (find_in_script(&h, path))
        return true;
    for (uint32_t i = 1; i < argv->n; i++) {
        if (find_in_argument(&h, argv->v[i]))
            return true;
    }
    return false;
}
