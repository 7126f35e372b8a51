#include "launcher/base/program/script.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/base/program/head.h"
#include "launcher/base/program/imports.h"
#include "launcher/base/program/words.h"

enum { FILES_MAX = 32 };

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

/* A script, and the files from its folder or below that it imports, directly or not. */
static struct {
    char root[PATH_MAX]; /* where Python looks for its modules; empty, or ends with a slash */
    char paths[FILES_MAX][PATH_MAX];
    size_t n;
    size_t read; /* the number of the file that is being read */
} dti_script;

static void add_file(const char *folder, int folder_n, const char *name, const char *ending)
{
    char *path;
    int n;

    if (dti_script.n == FILES_MAX)
        return;
    path = dti_script.paths[dti_script.n];
    n = snprintf(path, PATH_MAX, "%.*s%s%s", folder_n, folder, name, ending);
    if (n >= PATH_MAX || access(path, R_OK) != 0)
        return;
    for (size_t i = 0; i < dti_script.n; i++) {
        if (strcmp(dti_script.paths[i], path) == 0)
            return;
    }
    dti_script.n++;
}

static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (int)(slash + 1 - path) : 0;
}

/* Imports from folders above a package ("..") are left out. */
static bool add_module(const char *module)
{
    bool relative = module[0] == '.';
    const char *folder = relative ? dti_script.paths[dti_script.read] : dti_script.root;
    int n = relative ? folder_length(folder) : (int)strlen(folder);
    char name[DT_IMPORT_MAX];

    snprintf(name, sizeof name, "%s", module + relative);
    for (char *dot = name; (dot = strchr(dot, '.'));)
        *dot = '/';
    if (!name[0] || name[0] == '/')
        return false;
    add_file(folder, n, name, ".py");
    add_file(folder, n, name, "/__init__.py");
    return false;
}

static char bytes[DT_HEAD_BYTES];

static bool is_script(const char *path)
{
    return has_script_name(path) || names_python(bytes, dt_head_read(path, bytes, sizeof bytes));
}

static void begin_script(const char *root, int root_n)
{
    snprintf(dti_script.root, sizeof dti_script.root, "%.*s", root_n, root);
    dti_script.n = dti_script.read = 0;
    dti_script.paths[0][0] = '\0';
}

/* Returns the first file that passes, of those that are listed and those that they import. */
static const char *find_in_files(dt_script_test *passes)
{
    for (size_t i = 0; i < dti_script.n; i++) {
        size_t n = dt_head_read(dti_script.paths[i], bytes, sizeof bytes);

        if (n && passes(bytes, n))
            return dti_script.paths[i];
        dti_script.read = i;
        dt_imports_find(bytes, n, add_module);
    }
    return NULL;
}

/* An argument may name any file, so only scripts among arguments are read. The program itself is
 * always read. Returns the file that passes: the script, or one that it imports. */
static const char *find_passing(const char *path, int root_n, bool is_program,
                                dt_script_test *passes)
{
    if (is_program ? !is_script(path) : !has_script_name(path))
        return NULL;
    begin_script(path, root_n);
    add_file("", 0, path, "");
    return find_in_files(passes);
}

/* text is that of "python3 -c". Python looks for its modules in the working directory. */
static const char *find_in_text(const char *text, dt_script_test *passes)
{
    size_t n = strlen(text);

    if (passes(text, n))
        return "the text of -c";
    begin_script("", 0);
    dt_imports_find(text, n, add_module);
    return find_in_files(passes);
}

/* Finds the file of "python3 -m pkg.train", which looks for modules in the working directory. */
static const char *find_module(const char *name, dt_script_test *passes)
{
    static const char *const endings[] = { ".py", "/__main__.py" };
    char path[PATH_MAX];
    const char *found = NULL;

    for (size_t i = 0; i < sizeof endings / sizeof *endings && !found; i++) {
        if (snprintf(path, sizeof path, "%s%s", name, endings[i]) >= (int)sizeof path)
            continue;
        for (char *dot = path; dot < path + strlen(name); dot++) {
            if (*dot == '.')
                *dot = '/';
        }
        found = find_passing(path, 0, false, passes);
    }
    return found;
}

struct hunt {
    dt_script_test *passes;
    bool after_python; /* one of the words so far was Python */
    char option;       /* 'm' or 'c' if the last word was "-m" or "-c" */
    char found[PATH_MAX];
};

static bool is_python(const char *word)
{
    return strncmp(basename(word), "python", strlen("python")) == 0;
}

static bool names_passing_script(void *arg, const char *word)
{
    struct hunt *h = arg;
    const char *found = find_passing(word, folder_length(word), false, h->passes);

    if (!found && h->option == 'm')
        found = find_module(word, h->passes);
    if (!found && h->option == 'c' && h->after_python)
        found = find_in_text(word, h->passes);
    h->option = strcmp(word, "-m") == 0 ? 'm' : strcmp(word, "-c") == 0 ? 'c' : '\0';
    h->after_python |= is_python(word);
    if (found)
        snprintf(h->found, sizeof h->found, "%s", found);
    return found;
}

const char *dt_script_find(const char *path, const struct dt_strs *argv, dt_script_test *passes)
{
    static struct hunt h;
    const char *found = find_passing(path, folder_length(path), true, passes);

    h = (struct hunt){ .passes = passes, .after_python = is_python(path) };
    if (found)
        return found;
    return dt_words_find(path, argv, names_passing_script, &h) ? h.found : NULL;
}
