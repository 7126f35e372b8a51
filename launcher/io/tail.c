#include "launcher/io/tail.h"

#include <stdbool.h>
#include <stdlib.h>

#include "launcher/base/mem.h"

static void end_line(struct dt_tail *t)
{
    if (t->open.len == 0)
        return;
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
