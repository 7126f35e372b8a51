#include "launcher/remote/ssh/knownfile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"
#include "launcher/remote/ssh/base64.h"

enum { FILE_MAX = 64 * 1024 * 1024 };

#define BLANKS " \t\r\n"

/* Takes the next word out of *p, or returns NULL. */
static char *next_word(char **p)
{
    char *word = *p + strspn(*p, BLANKS);
    size_t n = strcspn(word, BLANKS);

    if (n == 0)
        return NULL;
    *p = word + n + (word[n] != '\0');
    word[n] = '\0';
    return word;
}

static bool take_marker(struct dt_knownline *line, const char *word)
{
    if (strcmp(word, "@revoked") == 0)
        line->marker = DT_KNOWNLINE_REVOKED;
    else if (strcmp(word, "@cert-authority") == 0)
        line->marker = DT_KNOWNLINE_AUTHORITY;
    else
        return false;
    return true;
}

static void parse_line(struct dt_knownfile *f, char *at, unsigned number)
{
    struct dt_knownline line = { .number = number };
    char *word = next_word(&at);
    bool sound = true;

    if (!word || *word == '#')
        return;
    if (*word == '@') {
        sound = take_marker(&line, word);
        word = next_word(&at);
    }
    line.names = word;
    line.type = word ? next_word(&at) : NULL;
    line.key = line.type ? next_word(&at) : NULL;
    if (sound && line.key) {
        f->v = dt_xrealloc(f->v, f->n + 1, sizeof *f->v);
        f->v[f->n++] = line;
    } else if (!f->garbage) {
        f->garbage = number;
    }
}

void dt_knownfile_parse(struct dt_knownfile *f, const char *text, size_t n, const char *path)
{
    char *at, *end;

    f->path = dt_xstrdup(path);
    f->text = at = dt_xcalloc(n + 1, 1);
    if (n)
        memcpy(f->text, text, n);
    end = f->text + n;
    for (unsigned number = 1; at < end; number++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));

        if (newline)
            *newline = '\0';
        parse_line(f, at, number);
        at = newline ? newline + 1 : end;
    }
}

void dt_knownfile_free(struct dt_knownfile *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].hashed)
            libssh2_knownhost_free(f->v[i].hashed);
    free(f->v);
    free(f->text);
    free(f->path);
    *f = (struct dt_knownfile){ 0 };
}

struct cached {
    struct dt_knownfile file;
    struct stat read_as; /* the file's state when it was read */
    struct cached *next;
};

static struct cached *cached_at(const char *path)
{
    static struct cached *first;
    struct cached *c = first;

    while (c && strcmp(c->file.path, path) != 0)
        c = c->next;
    if (c)
        return c;
    c = dt_xcalloc(1, sizeof *c);
    c->file.path = dt_xstrdup(path);
    c->next = first;
    first = c;
    return c;
}

/* Whether it is the same file, and unchanged. */
static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

const struct dt_knownfile *dt_knownfile_get(const char *path)
{
    struct cached *c = cached_at(path);
    struct dt_strbuf text = { 0 };
    struct stat now = { 0 };

    stat(path, &now);
    if (same_file(&c->read_as, &now))
        return &c->file;
    c->read_as = now;
    dt_knownfile_free(&c->file);
    dt_slurp(&text, path, FILE_MAX, NULL);
    dt_knownfile_parse(&c->file, text.data, text.len, path);
    dt_strbuf_free(&text);
    return &c->file;
}

static bool is_sha1(const char *text, size_t n)
{
    struct dt_strbuf bytes = { 0 };
    bool is = dt_base64_decode(&bytes, text, n) == 0 && bytes.len == 20;

    dt_strbuf_free(&bytes);
    return is;
}

/* Accepts only well-formed "|1|salt|hash": libssh2 1.10 leaks memory on malformed ones. */
static bool is_hashed(const char *names)
{
    const char *salt = names + 3, *bar = strncmp(names, "|1|", 3) == 0 ? strchr(salt, '|') : NULL;

    return bar && is_sha1(salt, (size_t)(bar - salt)) && is_sha1(bar + 1, strlen(bar + 1));
}

/* libssh2 computes the HMAC only together with a key, so this is a placeholder. */
static const char any_key[] = "AAAAAAAAAAAAAAAAAAAAAAAA";

static LIBSSH2_KNOWNHOSTS *make_list(const char *names)
{
    static LIBSSH2_SESSION *session; /* one for all, for the life of this process */
    LIBSSH2_KNOWNHOSTS *list;
    char *line;

    if (!session)
        session = libssh2_session_init();
    list = session ? libssh2_knownhost_init(session) : NULL;
    if (!list)
        return NULL;
    line = dt_xasprintf("%s ssh-ed25519 %s", names, any_key);
    libssh2_knownhost_readline(list, line, strlen(line), LIBSSH2_KNOWNHOST_FILE_OPENSSH);
    free(line);
    return list;
}

bool dt_knownline_is_hash_of(struct dt_knownline *line, const char *name)
{
    int mask = LIBSSH2_KNOWNHOST_TYPE_PLAIN | LIBSSH2_KNOWNHOST_KEYENC_BASE64 |
               LIBSSH2_KNOWNHOST_KEY_ED25519;

    if (!line->hashed && is_hashed(line->names))
        line->hashed = make_list(line->names);
    return line->hashed && libssh2_knownhost_check(line->hashed, name, any_key, strlen(any_key),
                                                   mask, NULL) == LIBSSH2_KNOWNHOST_CHECK_MATCH;
}
