#include "cmd/commandline.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/foreign.h"
#include "cmd/programword.h"
#include "cmd/similar.h"
#include "launcher/base/mem.h"
#include "launcher/base/number.h"
#include "launcher/base/strbuf.h"

enum { MIB_MAX = 1 << 20 };

/* An option as the user wrote it. */
struct word {
    const char *text; /* with its dashes */
    size_t length;    /* without "=VALUE" */
    const char *name;
    size_t n;
    const char *value; /* the text after "=", or NULL */
};

static struct word read_word(const char *text)
{
    struct word w = { .text = text, .name = text + 1 };

    if (*w.name == '-')
        w.name++;
    w.n = strcspn(w.name, "=");
    w.length = (size_t)(w.name - text) + w.n;
    w.value = text[w.length] ? text + w.length + 1 : NULL;
    return w;
}

/* A name of one letter takes one dash, except --n, which mpirun has. */
static bool has_right_dashes(const struct word *w)
{
    return w->n != 1 || w->name == w->text + 1 || *w->name == 'n';
}

static const struct dt_option *match(const struct word *w)
{
    return has_right_dashes(w) ? dt_option_find(w->name, w->n) : NULL;
}

/* Returns the long option that a mistyped word, n bytes with its dashes, was probably meant to be,
 * or NULL. */
static const char *guess(const char *word, size_t n)
{
    size_t dashes = strspn(word, "-"), best = 3;
    const char *found = NULL;
    struct dt_option_text option;

    for (size_t i = 0; dt_options_text(i, &option); i++) {
        for (size_t k = 0; k < option.nnames; k++) {
            const char *name = option.names[k];
            size_t d = dt_similar_distance(word + dashes, n - dashes, name);

            if (d < best && 3 * d <= strlen(name)) {
                best = d;
                found = name;
            }
        }
    }
    return found;
}

/* Returns where a number begins that is stuck to its option, as in -n4 and -N2; 0: nowhere. */
static size_t stuck_number(const struct word *w)
{
    size_t n = strcspn(w->text, "0123456789");

    if (n >= w->length || n < 2 || w->text[1] == '-')
        return 0;
    return dt_option_find(w->text + 1, n - 1) || dt_foreign_find(w->text + 1, n - 1, NULL) ? n : 0;
}

static int refuse_option(const struct word *w, struct dt_error *err)
{
    const char *meant = guess(w->text, w->length);
    size_t n = stuck_number(w);

    if (n)
        return dt_error_usage(
            err, "%.*s is not an option; did you mean %.*s %.*s? see dtrun --help", (int)w->length,
            w->text, (int)n, w->text, (int)(w->length - n), w->text + n);
    if (!meant)
        return dt_error_usage(err,
                              "%.*s is not an option; see dtrun --help, and dtrun-migrate(7) for "
                              "those of other launchers",
                              (int)w->length, w->text);
    return dt_error_usage(err, "%.*s is not an option; did you mean %s%s? see dtrun --help",
                          (int)w->length, w->text, dt_option_dashes(meant), meant);
}

/* Appends the n bytes of text, and replaces its marks (struct dt_foreign) by part. */
static int expand_marks(struct dt_strbuf *b, const char *text, size_t n, const struct word *w,
                        const char *part, struct dt_error *err)
{
    int mib;

    for (const char *c = text; c < text + n; c++) {
        if (*c == '%') {
            dt_strbuf_puts(b, part);
        } else if (*c == '&') {
            size_t name = strcspn(part, " ");

            dt_strbuf_printf(b, "%.*s=%s", (int)name, part, part + name + 1);
        } else if (*c != '#') {
            dt_strbuf_add(b, c, 1);
        } else {
            if (dt_number_parse(part, 0, MIB_MAX, &mib, err) < 0)
                return dt_error_prefix(err, "%.*s %.200s: ", (int)w->length, w->text, part);
            dt_strbuf_printf(b, "%lld", mib * (1ll << 20));
        }
    }
    return 0;
}

/* Sets one of dtrun's options, given as "name" or "name=value" of n bytes. */
static int set_equivalent(struct dt_options *o, const struct word *w, const char *text, size_t n,
                          const char *part, struct dt_error *err)
{
    size_t name = strcspn(text, " =");
    const struct dt_option *option = dt_option_find(text, name);
    const char *value = text + name + (name < n);
    struct dt_strbuf b = { 0 };
    int rc = expand_marks(&b, value, (size_t)(text + n - value), w, part, err);

    if (rc == 0)
        rc = dt_option_take(o, option, w->text, w->length, dt_strbuf_text(&b), err);
    dt_strbuf_free(&b);
    return rc;
}

/* Sets the options that replace another launcher's option. */
static int set_equivalents(struct dt_options *o, const struct word *w, const struct dt_foreign *row,
                           const char *value, struct dt_error *err)
{
    char *part = dt_foreign_part(row, value);
    const char *becomes = row->becomes;
    int rc = 0;

    while (*becomes && rc == 0) {
        size_t length = strcspn(becomes, " ");

        rc = set_equivalent(o, w, becomes, length, part, err);
        becomes += length + strspn(becomes + length, " ");
    }
    free(part);
    return rc;
}

static void note(struct dt_options *o, const struct word *w, const char *value, const char *why)
{
    char *text = dt_xasprintf("%.*s%s%.200s has no effect: %s", (int)w->length, w->text,
                              value ? " " : "", value ? value : "", why);

    dt_xstrs_add(&o->notes, text);
    free(text);
}

/* Handles another launcher's option. value is its value, or one item of it if the value is a list;
 * NULL: it takes none. */
static int take_foreign(struct dt_options *o, const struct word *w, const char *value,
                        struct dt_error *err)
{
    const struct dt_foreign *row = dt_foreign_find(w->name, w->n, value);

    switch (row->kind) {
    case DT_FOREIGN_BECOMES:
        return set_equivalents(o, w, row, value, err);
    case DT_FOREIGN_REFUSED:
        return dt_error_usage(err, "%.*s%s%.200s: %s", (int)w->length, w->text, value ? " " : "",
                              value ? value : "", row->text);
    case DT_FOREIGN_IGNORED:
        note(o, w, value, row->text);
        return 0;
    default:
        return 0;
    }
}

static int take_foreign_items(struct dt_options *o, const struct word *w, const char *value,
                              struct dt_error *err)
{
    int rc = 0;

    while (rc == 0 && *value) {
        size_t n = strcspn(value, ",");
        char *item = dt_xstrndup(value, n);

        rc = take_foreign(o, w, item, err);
        free(item);
        value += n + (value[n] == ',');
    }
    return rc;
}

static int take_foreign_pair(struct dt_options *o, const struct word *w, const char *first,
                             const char *second, struct dt_error *err)
{
    size_t name = strcspn(first, "=");
    char *value =
        dt_xasprintf("%.*s %s", (int)name, first, first[name] ? first + name + 1 : second);
    int rc = take_foreign(o, w, value, err);

    free(value);
    return rc;
}

/* Takes the words that follow an option as its values; "values" says how many. what: their name in
 * messages. Sets *value to the first one, or to NULL. */
static int take_values(const struct word *w, int values, const char *what, char **argv, int *i,
                       const char **value, struct dt_error *err)
{
    *value = w->value;
    if (values == 0 && w->value)
        return dt_error_usage(err, "%.*s takes no value", (int)w->length, w->text);
    for (int k = w->value ? 1 : 0; k < values; k++) {
        if (!argv[*i + 1])
            return dt_error_usage(err, "%s: a value (%s) is missing", w->text, what);
        ++*i;
        if (k == 0)
            *value = argv[*i];
    }
    return 0;
}

static int take_foreign_option(struct dt_options *o, const struct word *w, char **argv, int *i,
                               struct dt_error *err)
{
    const struct dt_foreign *row = dt_foreign_find(w->name, w->n, NULL);
    const char *value, *first = w->value ? w->value : argv[*i + 1];
    bool one_word = row && row->values == 2 && first && strchr(first, '=');

    if (!row || !has_right_dashes(w))
        return refuse_option(w, err);
    if (take_values(w, one_word ? 1 : row->values, "VALUE", argv, i, &value, err) < 0)
        return -1;
    if (row->values == 2)
        return take_foreign_pair(o, w, value, argv[*i], err);
    return row->list ? take_foreign_items(o, w, value, err) : take_foreign(o, w, value, err);
}

/* Handles the option at argv[*i], and the words after it that are its value. */
static int take_option(struct dt_options *o, char **argv, int *i, struct dt_error *err)
{
    const struct word w = read_word(argv[*i]);
    const struct dt_option *option = match(&w);
    const char *name, *value;

    if (!option)
        return take_foreign_option(o, &w, argv, i, err);
    name = dt_option_value(option);
    if (take_values(&w, name != NULL, name, argv, i, &value, err) < 0)
        return -1;
    if (value && dt_foreign_find(w.name, w.n, value))
        return take_foreign(o, &w, value, err);
    return dt_option_take(o, option, w.text, w.length, value, err);
}

/* Matches "host2:2", "[fe80::2]:2,host3:2" or ",host2": the rest of a -H list after a blank. */
static bool looks_like_host(const char *word)
{
    static const char host[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@[]";
    const char *at = strchr(word, '@'), *bracket = at ? at + 1 : word;
    const char *close = *bracket == '[' ? strchr(bracket, ']') : NULL;
    size_t n = close ? (size_t)(close + 1 - word) : strspn(word, host);
    size_t digits = strspn(word[n] ? word + n + 1 : "", "0123456789");

    if (*word == ',')
        return true;
    return n > 0 && word[n] == ':' && digits > 0 &&
           (word[n + 1 + digits] == '\0' || word[n + 1 + digits] == ',');
}

/* mpirun starts several programs that ":" separates. */
static bool looks_like_mpmd(char *const *words)
{
    for (; words[0] && words[1]; words++) {
        if (strcmp(words[0], ":") == 0 && words[1][0] == '-') {
            const struct word w = read_word(words[1]);

            if (match(&w))
                return true;
        }
    }
    return false;
}

/* Detects a host that a blank has separated from the list of -H. word may be one. It certainly is
 * if the next word is a program; if not, the user gets a note. */
static int check_split_host_list(struct dt_options *o, const char *word, const char *next,
                                 struct dt_error *err)
{
    static const char question[] = "is there a blank instead of a comma in -H? If not, write -- "
                                   "before the program";
    char *text;

    if (!next || *next == '-' || !dt_programword_may_be_host(word))
        return 0;
    if (dt_programword_is_here(next))
        return dt_error_usage(err, "\"%.200s\" is not found here, but \"%.200s\" is: %s", word,
                              next, question);
    text = dt_xasprintf("\"%.200s\" is not found here: %s", word, question);
    dt_xstrs_add(&o->notes, text);
    free(text);
    return 0;
}

/* before is the word before it, perhaps an option that took no value. */
static int refuse_number(const char *word, const char *before, struct dt_error *err)
{
    const struct word w = read_word(before);

    if (*before == '-' && match(&w))
        return dt_error_usage(err,
                              "\"%.200s\" is a number, not a program: %s takes no value. If it is "
                              "a program, write -- before it",
                              word, before);
    return dt_error_usage(err,
                          "\"%.200s\" is a number, not a program: is -np missing? If not, write -- "
                          "before the program",
                          word);
}

/* words follow another word of the command line. */
static int check_program(struct dt_options *o, char *const *words, bool after_dashes,
                         bool after_hosts, struct dt_error *err)
{
    if (!words[0])
        return 0;
    if (!*words[0])
        return dt_error_usage(err, "the program's name is empty");
    if (after_dashes)
        return 0;
    if (looks_like_host(words[0]))
        return dt_error_usage(err, "\"%.200s\" looks like a host, not like a program: %s", words[0],
                              o->hosts.n ? "is there a blank before or after a comma in -H?"
                                         : "hosts are given with -H");
    if (!words[0][strspn(words[0], "0123456789")])
        return refuse_number(words[0], words[-1], err);
    if (after_hosts && check_split_host_list(o, words[0], words[1], err) < 0)
        return -1;
    if (looks_like_mpmd(words))
        return dt_error_usage(err,
                              "several programs in one job (\" : \") are not supported; a "
                              "shell can choose one by RANK, see Ranks that differ in dtrun(1); "
                              "if \":\" is an argument, write -- before the program");
    return 0;
}

int dt_commandline_read(struct dt_options *o, int argc, char **argv, struct dt_error *err)
{
    bool dashes = false, after_hosts = false;
    int i;

    for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1] && !dashes; i++) {
        uint32_t before = o->hosts.n;

        if (strcmp(argv[i], "--") == 0)
            dashes = true;
        else if (take_option(o, argv, &i, err) < 0)
            return -1;
        if (dt_options_ask_for_text(o))
            return 0;
        after_hosts = o->hosts.n > before;
    }
    if (check_program(o, argv + i, dashes, after_hosts, err) < 0)
        return -1;
    for (; i < argc; i++)
        dt_xstrs_add(&o->job.argv, argv[i]);
    return 0;
}
