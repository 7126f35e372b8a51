/* Text in columns. Pure. */
#ifndef DT_CHECK_TABLE_H
#define DT_CHECK_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/strbuf.h"

struct dt_table_column {
    const char *title;
    bool right; /* aligned to the right, as numbers are */
};

struct dt_table {
    const struct dt_table_column *columns;
    size_t ncolumns;
    char *const *cells; /* row by row; the first cell names the row */
    size_t nrows;
};

/* Appends a line of titles and a line for each row. If the lines would be wider than width (0: no
 * limit), each row becomes a paragraph instead: its name, then a line with title and cell for each
 * other column. Widths count the columns of a terminal, not bytes. Bytes that would move the
 * cursor, or are not UTF-8, become question marks. */
void dt_table_print(struct dt_strbuf *out, const struct dt_table *table, size_t width);

#endif
