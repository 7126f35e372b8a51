#include "launcher/remote/rshcommand.h"

#include <string.h>
#include <wordexp.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"

/* Returns the letter of a known mark (%h, %c, %%) at text, or 0. */
static char mark_at(const char *text)
{
    return text[0] == '%' && text[1] && strchr("hc%", text[1]) ? text[1] : 0;
}

static bool has_mark(const struct dt_strs *words, char mark)
{
    for (uint32_t i = 0; i < words->n; i++) {
        for (const char *at = words->v[i]; *at; at += mark_at(at) ? 2 : 1) {
            if (mark_at(at) == mark)
                return true;
        }
    }
    return false;
}

static int check_marks(const struct dt_strs *words, const char *text, struct dt_error *err)
{
    for (uint32_t i = 0; i < words->n; i++) {
        for (const char *at = strchr(words->v[i], '%'); at; at = strchr(at + 2, '%')) {
            if (!mark_at(at))
                return dt_error_usage(err, "--rsh %s: only %%h, %%c and %%%% are known", text);
        }
    }
    if (!has_mark(words, 'h'))
        return dt_error_usage(
            err,
            "--rsh %s: it does not say which host: %%h stands for the host's name, as "
            "in --rsh 'kubectl exec -i %%h --'",
            text);
    return 0;
}

static const char *explain(int error)
{
    switch (error) {
    case WRDE_BADCHAR:
        return "one of | & ; < > ( ) { } stands outside of quotes";
    case WRDE_CMDSUB:
        return "a command substitution in it is not run";
    case WRDE_SYNTAX:
        return "a quote is not closed";
    default:
        return "out of memory";
    }
}

int dt_rsh_parse(struct dt_strs *words, const char *text, struct dt_error *err)
{
    wordexp_t found;
    int error = wordexp(text, &found, WRDE_NOCMD);

    *words = (struct dt_strs){ 0 };
    if (error)
        return dt_error_usage(err, "--rsh %s: %s", text, explain(error));
    for (size_t i = 0; i < found.we_wordc; i++)
        dt_xstrs_add(words, found.we_wordv[i]);
    wordfree(&found);
    if (check_marks(words, text, err) == 0)
        return 0;
    dt_strs_free(words);
    return -1;
}

static void expand(struct dt_strbuf *b, const char *word, const char *host, const char *command)
{
    for (const char *at = word; *at; at += mark_at(at) ? 2 : 1) {
        switch (mark_at(at)) {
        case 'h':
            dt_strbuf_puts(b, host);
            break;
        case 'c':
            dt_strbuf_puts(b, command);
            break;
        default:
            dt_strbuf_add(b, at, 1);
        }
    }
}

bool dt_rsh_takes_list(const struct dt_strs *words)
{
    return !has_mark(words, 'c');
}

void dt_rsh_argv(struct dt_strs *argv, const struct dt_strs *words, const char *host,
                 const char *command)
{
    for (uint32_t i = 0; i < words->n; i++) {
        struct dt_strbuf b = { 0 };

        expand(&b, words->v[i], host, command);
        dt_xstrs_add(argv, dt_strbuf_text(&b));
        dt_strbuf_free(&b);
    }
    if (!dt_rsh_takes_list(words))
        return;
    dt_xstrs_add(argv, "sh");
    dt_xstrs_add(argv, "-c");
    dt_xstrs_add(argv, command);
}
