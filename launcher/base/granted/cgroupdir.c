#include "launcher/base/granted/cgroupdir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"

enum { FILE_MAX = 1024 * 1024 };

/* list is comma-separated: "rw,cpu,cpuacct". */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (; *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && memcmp(list, word, n) == 0)
            return true;
    return false;
}

/* Returns the group in a line "0::/GROUP" (version 2) or "4:cpu,cpuacct:/GROUP" (version 1), or
 * NULL for any other line. Modifies the line. */
static const char *group_in(char *line, const char *controller)
{
    char *list = strchr(line, ':');
    char *group = list ? strchr(list + 1, ':') : NULL;

    if (!group)
        return NULL;
    *group++ = '\0';
    return (*controller ? has_word(list + 1, controller) : !list[1]) ? group : NULL;
}

static char *find_group(const char *cgroup, const char *controller)
{
    char *text = dt_xstrdup(cgroup), *rest = text, *line, *found = NULL;
    const char *group = NULL;

    while (!group && (line = strsep(&rest, "\n")))
        group = group_in(line, controller);
    if (group)
        found = dt_xstrdup(group);
    free(text);
    return found;
}

/* The kernel writes blanks and similar characters as "\040". */
static void unescape(char *s)
{
    char *to = s;
    unsigned c;

    for (; *s; to++) {
        if (*s == '\\' && strspn(s + 1, "01234567") >= 3 && sscanf(s + 1, "%3o", &c) == 1) {
            *to = (char)c;
            s += 4;
        } else {
            *to = *s++;
        }
    }
    *to = '\0';
}

struct mount {
    char *root;       /* the part of the hierarchy that is mounted */
    char *at;         /* where it is mounted */
    const char *type; /* "cgroup2", or "cgroup", which has its controllers in options */
    const char *options;
};

/* Parses a line "36 35 0:30 ROOT AT rw,nosuid shared:9 - TYPE SOURCE OPTIONS" and modifies it.
 * Returns false if it has another form. */
static bool parse_mount(struct mount *m, char *line)
{
    char *words[5], *end = strstr(line, " - ");

    if (!end)
        return false;
    *end = '\0';
    end += 3;
    for (int i = 0; i < 5; i++)
        words[i] = strsep(&line, " ");
    *m = (struct mount){ .root = words[3], .at = words[4], .type = strsep(&end, " ") };
    strsep(&end, " ");
    m->options = end;
    if (!m->at || !end)
        return false;
    unescape(m->root);
    unescape(m->at);
    return true;
}

/* Returns the rest of the group's path below root, "" if it is root itself, or NULL if it is not
 * below. */
static const char *path_below(const char *group, const char *root)
{
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(group, root, n) != 0 || (group[n] && group[n] != '/'))
        return NULL;
    return strcmp(group + n, "/") == 0 ? "" : group + n;
}

/* A path such as "/../b" lies outside of the namespace, and so outside of what is mounted. */
static bool is_outside(const char *group)
{
    return strcmp(group, "/..") == 0 || strncmp(group, "/../", 4) == 0;
}

static bool find_mount(struct dt_cgroupdir *d, const char *mountinfo, const char *controller,
                       const char *group)
{
    char *text = dt_xstrdup(mountinfo), *rest = text, *line;
    const char *path = NULL;
    struct mount m;

    while (!path && (line = strsep(&rest, "\n"))) {
        if (parse_mount(&m, line) && strcmp(m.type, *controller ? "cgroup" : "cgroup2") == 0 &&
            (!*controller || has_word(m.options, controller)))
            path = path_below(group, m.root);
    }
    if (path) {
        d->mount = dt_xstrdup(m.at);
        d->path = dt_xstrdup(path);
    }
    free(text);
    return path != NULL;
}

bool dt_cgroupdir_parse(struct dt_cgroupdir *d, const char *cgroup, const char *mountinfo,
                        const char *controller)
{
    char *group = find_group(cgroup, controller);
    bool found;

    if (!group) {
        controller = "";
        group = find_group(cgroup, controller);
    }
    *d = (struct dt_cgroupdir){ .version = *controller ? 1 : 2 };
    found = group && !is_outside(group) && find_mount(d, mountinfo, controller, group);
    free(group);
    return found;
}

static void read_own(struct dt_strbuf *text, const char *root, const char *name)
{
    char *path = dt_xasprintf("%s/proc/self/%s", root, name);

    dt_slurp(text, path, FILE_MAX, NULL);
    free(path);
}

bool dt_cgroupdir_find(struct dt_cgroupdir *d, const char *root, const char *controller)
{
    struct dt_strbuf cgroup = { 0 }, mountinfo = { 0 };
    bool found;
    char *mount;

    read_own(&cgroup, root, "cgroup");
    read_own(&mountinfo, root, "mountinfo");
    found = dt_cgroupdir_parse(d, dt_strbuf_text(&cgroup), dt_strbuf_text(&mountinfo), controller);
    dt_strbuf_free(&cgroup);
    dt_strbuf_free(&mountinfo);
    if (!found)
        return false;
    mount = dt_xasprintf("%s%s", root, d->mount);
    free(d->mount);
    d->mount = mount;
    return true;
}

void dt_cgroupdir_climb(const struct dt_cgroupdir *d, void (*look)(void *arg, const char *dir),
                        void *arg)
{
    char *dir = dt_xasprintf("%s%s", d->mount, d->path);
    char *top = dir + strlen(d->mount), *slash;

    do {
        look(arg, dir);
        slash = strrchr(top, '/');
        if (slash)
            *slash = '\0';
    } while (slash);
    free(dir);
}

void dt_cgroupdir_free(struct dt_cgroupdir *d)
{
    free(d->mount);
    free(d->path);
    *d = (struct dt_cgroupdir){ 0 };
}
