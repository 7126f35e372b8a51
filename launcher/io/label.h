/* What stands before each line of a rank when several ranks write: "[3] ". Pure. */
#ifndef DT_IO_LABEL_H
#define DT_IO_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DT_LABEL_MAX = 32 };

/* Writes the label and its NUL; returns its length. In colour, ranks that follow each other have
 * different ones. */
size_t dt_label(char out[DT_LABEL_MAX], uint32_t rank, bool colour);

#endif
