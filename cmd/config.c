#include "cmd/config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commandline.h"
#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"
#include "launcher/base/utf8.h"

#define BLANKS " \t\r\v\f"

enum { CONFIG_BYTES_MAX = 1024 * 1024 };

/* Removes blanks at both ends. */
static char *trim(char *text)
{
    text += strspn(text, BLANKS);
    for (size_t n = strlen(text); n > 0 && strchr(BLANKS, text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

/* No shell has expanded the value, so this expands a path below the home directory. */
static char *expand_home(const char *value)
{
    const char *home = getenv("HOME");

    return home && *home && strncmp(value, "~/", 2) == 0 ? dt_xasprintf("%s%s", home, value + 1)
                                                         : dt_xstrdup(value);
}

static int take_line(struct dt_options *o, char *line, struct dt_error *err)
{
    char *value;
    int rc;

    line = trim(line);
    if (!*line || *line == '#' || *line == ';')
        return 0;
    value = strchr(line, '=');
    if (!value || value == line)
        return dt_error_usage(err, "%.200s: option = value was expected", line);
    *value++ = '\0';
    value = expand_home(trim(value));
    rc = dt_options_set(o, trim(line), value, err);
    free(value);
    return rc;
}

int dt_config_text(struct dt_options *o, const char *name, const char *text, size_t n,
                   struct dt_error *err)
{
    size_t bom = dt_utf8_bom_size(text, n);
    char *copy = n > bom ? dt_xstrndup(text + bom, n - bom) : dt_xstrdup("");
    char *rest = copy, *line;
    int rc = 0;

    if (strlen(copy) != n - bom)
        rc = dt_error_usage(err, "%s: it contains a NUL byte, so it is not a text file", name);
    for (int number = 1; rc == 0 && (line = strsep(&rest, "\n")); number++)
        if (take_line(o, line, err) < 0)
            rc = dt_error_prefix(err, "%s:%d: ", name, number);
    free(copy);
    return rc;
}

/* Options name commands that dtrun runs. So, like ssh, it does not read a file of another user just
 * because HOME leads there, as it does for root after some kinds of su and sudo. */
static int take_file(struct dt_options *o, const char *path, bool named, struct dt_error *err)
{
    struct dt_strbuf text = { 0 };
    int rc = (named ? dt_slurp : dt_slurp_own)(&text, path, CONFIG_BYTES_MAX, err);

    if (rc < 0) {
        err->exit_code = DT_EXIT_USAGE;
        dt_error_prefix(err, "configuration file %s: ", path);
    } else {
        rc = dt_config_text(o, path, dt_strbuf_text(&text), text.len, err);
    }
    dt_strbuf_free(&text);
    return rc;
}

/* Returns the file that the user named, else the user's own if it exists, else NULL. */
static char *file_of(const struct dt_options *typed)
{
    const char *home = getenv("HOME");
    char *path;

    if (typed->config)
        return dt_xstrdup(typed->config);
    if (!home || !*home)
        return NULL;
    path = dt_xasprintf("%s/.config/dtrun/config", home);
    if (access(path, F_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* Reads the command line twice: first to learn which file to read, then to override the file. */
int dt_config_parse(struct dt_options *o, int argc, char **argv, struct dt_error *err)
{
    struct dt_options typed;
    char *path;
    int rc;

    dt_options_init(o);
    dt_options_init(&typed);
    rc = dt_commandline_read(&typed, argc, argv, err);
    path = rc == 0 && !dt_options_ask_for_text(&typed) ? file_of(&typed) : NULL;
    if (rc == 0 && path)
        rc = take_file(o, path, typed.config != NULL, err);
    dt_options_free(&typed);
    free(path);
    if (rc == 0)
        rc = dt_commandline_read(o, argc, argv, err);
    return rc == 0 && !dt_options_ask_for_text(o) ? dt_options_check(o, err) : rc;
}
