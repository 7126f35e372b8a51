#include "launcher/check/table.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "launcher/base/mem.h"

enum { GAP = 2, INDENT = 2 };

/* Appends text to out (or nowhere) without control characters. Returns how many columns it takes.
 */
static size_t put(struct dt_strbuf *out, const char *text)
{
    mbstate_t state = { 0 };
    size_t columns = 0;

    while (*text) {
        wchar_t c;
        size_t n = mbrtowc(&c, text, strlen(text), &state);
        bool valid = n != (size_t)-1 && n != (size_t)-2;
        int w = valid ? wcwidth(c) : -1;

        if (!valid) {
            n = 1;
            state = (mbstate_t){ 0 };
        }
        if (out)
            dt_strbuf_add(out, w < 0 ? "?" : text, w < 0 ? 1 : n);
        columns += w < 0 ? 1 : (size_t)w;
        text += n;
    }
    return columns;
}

static void pad(struct dt_strbuf *out, size_t n)
{
    while (n-- > 0)
        dt_strbuf_puts(out, " ");
}

static const char *cell(const struct dt_table *t, size_t row, size_t column)
{
    return t->cells[row * t->ncolumns + column];
}

/* Returns the width of a line. */
static size_t measure(const struct dt_table *t, size_t *widths)
{
    size_t sum = 0;

    for (size_t c = 0; c < t->ncolumns; c++) {
        widths[c] = put(NULL, t->columns[c].title);
        for (size_t r = 0; r < t->nrows; r++) {
            size_t w = put(NULL, cell(t, r, c));

            widths[c] = w > widths[c] ? w : widths[c];
        }
        sum += widths[c] + (c ? GAP : 0);
    }
    return sum;
}

/* Ends a line, without the blanks after its last word. */
static void end_line(struct dt_strbuf *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
    dt_strbuf_puts(out, "\n");
}

static void print_line(struct dt_strbuf *out, const struct dt_table *t, const size_t *widths,
                       const size_t *row)
{
    for (size_t c = 0; c < t->ncolumns; c++) {
        const char *text = row ? cell(t, *row, c) : t->columns[c].title;
        size_t blanks = widths[c] - put(NULL, text);

        pad(out, (c ? GAP : 0) + (t->columns[c].right ? blanks : 0));
        put(out, text);
        pad(out, t->columns[c].right ? 0 : blanks);
    }
    end_line(out);
}

static void print_paragraph(struct dt_strbuf *out, const struct dt_table *t, size_t row)
{
    size_t widest = 0;

    for (size_t c = 1; c < t->ncolumns; c++) {
        size_t w = put(NULL, t->columns[c].title);

        widest = w > widest ? w : widest;
    }
    put(out, cell(t, row, 0));
    end_line(out);
    for (size_t c = 1; c < t->ncolumns; c++) {
        size_t used;

        pad(out, INDENT);
        used = put(out, t->columns[c].title);
        pad(out, widest - used + GAP);
        put(out, cell(t, row, c));
        end_line(out);
    }
}

static void print(struct dt_strbuf *out, const struct dt_table *t, size_t width)
{
    size_t *widths = dt_xcalloc(t->ncolumns, sizeof *widths);
    bool fits = measure(t, widths) <= width || width == 0;

    if (fits)
        print_line(out, t, widths, NULL);
    for (size_t r = 0; r < t->nrows; r++) {
        if (fits)
            print_line(out, t, widths, &r);
        else
            print_paragraph(out, t, r);
    }
    free(widths);
}

/* Names of hosts and GPUs come from other machines, so the user's locale must not decide what a
 * character is. */
void dt_table_print(struct dt_strbuf *out, const struct dt_table *table, size_t width)
{
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;

    print(out, table, width);
    if (utf8) {
        uselocale(before);
        freelocale(utf8);
    }
}
