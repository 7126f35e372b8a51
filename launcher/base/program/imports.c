#include "launcher/base/program/imports.h"

#include <string.h>

static const char blanks[] = " \t\r";
static const char ends[] = " \t\r,;#()";

struct line {
    const char *at;
    size_t left;
    dt_import_test *passes;
};

static void advance(struct line *l, size_t n)
{
    l->at += n;
    l->left -= n;
}

/* Whether the next byte is one of these. strchr would also find the NUL that ends them. */
static bool is_next(const struct line *l, const char *bytes)
{
    return l->left && *l->at && strchr(bytes, *l->at);
}

static void skip_blanks(struct line *l)
{
    while (is_next(l, blanks))
        advance(l, 1);
}

/* Returns the length of the next word, which begins at *word. */
static size_t take_word(struct line *l, const char **word)
{
    skip_blanks(l);
    *word = l->at;
    while (l->left && !is_next(l, ends))
        advance(l, 1);
    return (size_t)(l->at - *word);
}

static bool take_keyword(struct line *l, const char *keyword)
{
    const char *word;
    size_t n = take_word(l, &word);

    return n == strlen(keyword) && memcmp(word, keyword, n) == 0;
}

/* Tries package and word together as a module. */
static bool try_module(const struct line *l, const char *package, const char *word, size_t n)
{
    char name[DT_IMPORT_MAX];
    size_t before = strlen(package);
    bool dot = before && package[before - 1] != '.';

    if (n == 0 || before + dot + n >= sizeof name)
        return false;
    memcpy(name, package, before);
    if (dot)
        name[before] = '.';
    memcpy(name + before + dot, word, n);
    name[before + dot + n] = '\0';
    return l->passes(name);
}

/* Reads "a.b as c, d". */
static bool try_list(struct line *l, const char *package)
{
    do {
        const char *word;
        size_t n = take_word(l, &word);

        if (try_module(l, package, word, n))
            return true;
        while (l->left && !is_next(l, ",;#"))
            advance(l, 1);
        if (!is_next(l, ","))
            return false;
        advance(l, 1);
    } while (l->left);
    return false;
}

static bool try_from(struct line *l)
{
    char package[DT_IMPORT_MAX];
    const char *word;
    size_t n = take_word(l, &word);

    if (n == 0 || n >= sizeof package)
        return false;
    memcpy(package, word, n);
    package[n] = '\0';
    return try_module(l, "", word, n) || (take_keyword(l, "import") && try_list(l, package));
}

static bool try_statement(struct line *l)
{
    struct line again = *l;

    return take_keyword(l, "import") ? try_list(l, "")
                                     : take_keyword(&again, "from") && try_from(&again);
}

/* Advances past the next semicolon that ends a statement. Returns false if there is none. */
static bool skip_statement(struct line *l)
{
    char quote = '\0';

    while (l->left && (quote || *l->at != '#')) {
        char c = *l->at;

        advance(l, c == '\\' && l->left > 1 ? 2 : 1);
        if (quote)
            quote = c == quote ? '\0' : quote;
        else if (c == ';')
            return true;
        else if (c == '"' || c == '\'')
            quote = c;
    }
    return false;
}

static bool try_line(struct line l)
{
    do {
        struct line statement = l;

        if (try_statement(&statement))
            return true;
    } while (skip_statement(&l));
    return false;
}

bool dt_imports_find(const char *text, size_t n, dt_import_test *passes)
{
    const char *end = text + n;

    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        struct line l = { text, (size_t)((stop ? stop : end) - text), passes };

        text += l.left + 1;
        if (try_line(l))
            return true;
    }
    return false;
}
