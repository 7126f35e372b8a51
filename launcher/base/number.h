/* Whole numbers that a user typed. */
#ifndef DT_BASE_NUMBER_H
#define DT_BASE_NUMBER_H

#include "launcher/base/error.h"

/* Reads all of text, decimal digits only, into *value. min is not negative. Returns 0, or -1 with
 * "a number was expected" or "a number from MIN to MAX was expected" in err (exit code 2). */
int dt_number_parse(const char *text, int min, int max, int *value, struct dt_error *err);

#endif
