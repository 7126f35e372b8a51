/* The options of horovodrun 0.28, torchrun 2, deepspeed, Open MPI's mpirun 4 and 5, and the mpiexec
 * of MPICH 4 and Intel MPI, and the common ones of accelerate, srun, jsrun and others: what dtrun
 * does for each of them, or why it has no counterpart. Pure. dtrun-migrate(7) has the same tables.
 */
#ifndef DT_CMD_FOREIGN_H
#define DT_CMD_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/wire/codec.h"

enum dt_launcher {
    DT_HOROVODRUN = 1,
    DT_TORCHRUN = 2,
    DT_MPIRUN = 4,
    DT_MPIEXEC = 8,
    DT_SRUN = 16,
    DT_ACCELERATE = 32,
    DT_DEEPSPEED = 64,
    DT_JSRUN = 128 /* and aprun, flux run and the mpiexec of PALS */
};

enum dt_foreign_kind {
    DT_FOREIGN_SAME,     /* dtrun has an option of this name that does the same */
    DT_FOREIGN_CLASHES,  /* dtrun has an option of this name that does something else */
    DT_FOREIGN_BECOMES,  /* becomes options of dtrun */
    DT_FOREIGN_NEEDLESS, /* asks for what dtrun always does: accepted silently */
    DT_FOREIGN_IGNORED,  /* the job runs without it: accepted with a message */
    DT_FOREIGN_REFUSED,
};

enum { DT_FOREIGN_NAMES = 6, DT_FOREIGN_OPTIONAL = -1 };

struct dt_foreign {
    unsigned launchers; /* a set of enum dt_launcher */
    int values;         /* number of words that follow it; two become one value, and NAME=VALUE
                           takes the place of two.
                           DT_FOREIGN_OPTIONAL: none, but it may have a value after "=" */
    bool list;          /* its value is a comma-separated list; each item has a row */
    enum dt_foreign_kind kind;
    const char *match;   /* the row applies to values like this one, whatever their case, where *
                            stands for any text; NULL: to all values that no earlier row matches */
    const char *becomes; /* "name=value name ...": % stands for the value, or for the text that *
                            matched; # stands for that many MiB in bytes; & stands for the two
                            values, joined by "="; "no" undoes an option that takes no value */
    const char *text;    /* a sentence that says what differs, or why nothing is done; or NULL */
    const char *names[DT_FOREIGN_NAMES]; /* without dashes; * at the end stands for any text */
};

/* Returns the i-th row of the table, or NULL beyond the last. */
const struct dt_foreign *dt_foreign_row(size_t i);

/* Returns the first row that has the name (n bytes) and matches value, or NULL. value NULL: returns
 * the first row of that name, but no row for an optional value. */
const struct dt_foreign *dt_foreign_find(const char *name, size_t n, const char *value);

/* Returns the text that the marks in row->becomes stand for: the part of value from the first * of
 * row->match to the last. The caller frees it. */
char *dt_foreign_part(const struct dt_foreign *row, const char *value);

/* Returns the name of the launcher that argv starts, or NULL. *instead is then what dtrun starts in
 * its place. */
const char *dt_foreign_launcher(const struct dt_strs *argv, const char **instead);

#endif
