#include "launcher/remote/boot.h"

#include <string.h>

static const struct sign {
    const char *text;
    enum dt_boot_line line;
} signs[] = {
    { "DTRUN-AGENT ", DT_BOOT_AGENT },
    { "DTRUN-NEED ", DT_BOOT_NEED },
    { "DTRUN-FAIL ", DT_BOOT_FAIL },
};

static void take(struct dt_strbuf *in, struct dt_strbuf *line, size_t skip, size_t n, size_t end)
{
    line->len = 0;
    for (size_t i = skip; i < n; i++) {
        unsigned char c = (unsigned char)in->data[i];
        char shown = c == '\t' || (c >= ' ' && c != 0x7f) ? (char)c : '?';

        if (c != '\r' || i + 1 < n)
            dt_strbuf_add(line, &shown, 1);
    }
    dt_strbuf_add(line, "", 0);
    dt_strbuf_consume(in, end);
}

bool dt_boot_text_line(struct dt_strbuf *in, struct dt_strbuf *line, bool all)
{
    const char *newline = in->len ? memchr(in->data, '\n', in->len) : NULL;
    size_t n = newline ? (size_t)(newline - in->data) : in->len;

    if (in->len == 0 || (!newline && !all))
        return false;
    take(in, line, 0, n, newline ? n + 1 : n);
    return true;
}

enum dt_boot_line dt_boot_next(struct dt_strbuf *in, struct dt_strbuf *line)
{
    const char *newline = in->len ? memchr(in->data, '\n', in->len) : NULL;
    size_t n;

    if (!newline)
        return DT_BOOT_INCOMPLETE;
    n = (size_t)(newline - in->data);
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t len = strlen(signs[i].text);
        const char *at = memmem(in->data, n, signs[i].text, len);
        size_t before = at ? (size_t)(at - in->data) : 0;

        if (at && before) {
            take(in, line, 0, before, before);
            return DT_BOOT_NOISE;
        }
        if (at) {
            take(in, line, len, n, n + 1);
            return signs[i].line;
        }
    }
    take(in, line, 0, n, n + 1);
    return DT_BOOT_NOISE;
}
