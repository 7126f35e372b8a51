/* Text in columns. Pure. */
#ifndef DT_CHECK_TABLE_H
#define DT_CHECK_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/strbuf.h"

struct dt_table_column {
    const char *title;
    bool right; /* aligned there, as numbers are */
};

struct dt_table {
    const struct dt_table_column *columns;
    size_t ncolumns;
    char *const *cells; /* row by row; the first of a row names it */
    size_t nrows;
};

/* Appends a line of titles and a line for each row. Where they would be wider than width (0: there
 * is no limit), each row becomes a paragraph instead: its name, then title and cell on a line for
 * each other column. Widths count what a terminal shows: characters, not bytes. What would move the
 * cursor, or is no UTF-8, becomes a question mark. */
void dt_table_print(struct dt_strbuf *out, const struct dt_table *table, size_t width);

#endif
