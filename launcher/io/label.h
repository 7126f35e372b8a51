/* What stands before each line of a rank when several ranks write: "[3] ". Pure. */
#ifndef DT_IO_LABEL_H
#define DT_IO_LABEL_H

#include <stddef.h>
#include <stdint.h>

enum { DT_LABEL_MAX = 16 };

/* Writes the label and its NUL; returns its length. */
size_t dt_label(char out[DT_LABEL_MAX], uint32_t rank);

#endif
