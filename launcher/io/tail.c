#include "launcher/io/tail.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

/* PyTorch's ranks begin each line of an exception with "[rank3]: ". */
static const char *after_rank(const char *line)
{
    static const char prefix[] = "[rank";
    size_t digits;

    if (strncmp(line, prefix, strlen(prefix)) != 0)
        return line;
    digits = strspn(line + strlen(prefix), "0123456789");
    return strncmp(line + strlen(prefix) + digits, "]:", 2) == 0
               ? line + strlen(prefix) + digits + 2
               : line;
}

/* Frames of PyTorch's C++ ("frame #3: ...") and glog ("    @     0x7f... f()"), and of glibc and
 * LLVM ("12  /usr/bin/python3(main+0x2b) [0x6831eb]"). */
static bool is_stack_frame(const char *text)
{
    const char *last = strrchr(text, '[');
    size_t digits = strspn(text, "0123456789");

    if (strncmp(text, "frame #", strlen("frame #")) == 0)
        return true;
    if (*text == '@')
        return strncmp(text + 1 + strspn(text + 1, " "), "0x", 2) == 0;
    return digits && text[digits] == ' ' && last && strncmp(last, "[0x", 3) == 0;
}

/* As the lines of ^ and ~ below Python's source do not. Letters may have several bytes. */
static bool has_words(const char *text)
{
    for (; *text; text++) {
        if (isalnum((unsigned char)*text) || (unsigned char)*text >= 0x80)
            return true;
    }
    return false;
}

static void end_line(struct dt_tail *t)
{
    const char *text;

    if (t->open.len == 0)
        return;
    text = after_rank(t->open.data);
    text += strspn(text, " \t");
    if (!has_words(text) || is_stack_frame(text)) {
        t->open.len = 0;
        return;
    }
    free(t->lines[t->next]);
    t->lines[t->next] = dt_xstrndup(t->open.data, t->open.len);
    t->next = (t->next + 1) % DT_TAIL_LINES;
    t->open.len = 0;
}

/* Control bytes would move the cursor in the middle of dtrun's own message. */
static bool is_printable(char c)
{
    return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f);
}

static void add(struct dt_tail *t, const char *text, size_t n)
{
    size_t room = DT_TAIL_WIDTH - t->open.len;

    dt_strbuf_add(&t->open, text, n < room ? n : room);
}

void dt_tail_feed(struct dt_tail *t, const char *data, size_t n)
{
    size_t from = 0; /* the text that has not been added yet */

    for (size_t i = 0; i < n; i++) {
        if (is_printable(data[i]))
            continue;
        add(t, data + from, i - from);
        from = i + 1;
        if (data[i] == '\n' || data[i] == '\r')
            end_line(t);
    }
    add(t, data + from, n - from);
}

const char *dt_tail_line(struct dt_tail *t, unsigned i)
{
    end_line(t);
    for (unsigned k = 0; k < DT_TAIL_LINES; k++) {
        const char *line = t->lines[(t->next + k) % DT_TAIL_LINES];

        if (line && i-- == 0)
            return line;
    }
    return NULL;
}

void dt_tail_reset(struct dt_tail *t)
{
    for (unsigned k = 0; k < DT_TAIL_LINES; k++)
        free(t->lines[k]);
    dt_strbuf_free(&t->open);
    *t = (struct dt_tail){ 0 };
}
