/* The options of horovodrun 0.28, torchrun 2 and Open MPI's mpirun 4 and 5: what each becomes here,
 * or why it has no counterpart. Pure. dtrun-migrate(7) has the same tables. */
#ifndef DT_CMD_FOREIGN_H
#define DT_CMD_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

enum dt_launcher { DT_HOROVODRUN = 1, DT_TORCHRUN = 2, DT_MPIRUN = 4 };

enum dt_foreign_kind {
    DT_FOREIGN_SAME,     /* dtrun has an option of this name that does the same */
    DT_FOREIGN_CLASHES,  /* dtrun has one of this name that does something else */
    DT_FOREIGN_BECOMES,  /* options of dtrun's */
    DT_FOREIGN_NEEDLESS, /* what it asks for is so anyway: accepted in silence */
    DT_FOREIGN_IGNORED,  /* the job runs without it: accepted, and a line says so */
    DT_FOREIGN_REFUSED,
};

enum { DT_FOREIGN_NAMES = 6 };

struct dt_foreign {
    unsigned launchers; /* set of enum dt_launcher */
    int values;         /* how many words follow it */
    bool list;          /* its value is a list with commas, of which each item has a row */
    enum dt_foreign_kind kind;
    const char *match;   /* the row is for values like this one, where * stands for any text; NULL:
                            for all values that no row before it matches */
    const char *becomes; /* "name=value name ...": % stands for the value, or for the text that *
                            matched, # for as many bytes as it is MiB; "no" undoes an option that
                            takes no value */
    const char *text;    /* a sentence: how it differs, or why nothing is done; or NULL */
    const char *names[DT_FOREIGN_NAMES]; /* without dashes */
};

/* The i-th row of the table; NULL beyond the last. */
const struct dt_foreign *dt_foreign_row(size_t i);

/* The first row that has the n bytes of name and matches value, in which *part then is what * or %
 * stands for, *length bytes. NULL where there is none; value NULL: the first row of that name. */
const struct dt_foreign *dt_foreign_find(const char *name, size_t n, const char *value,
                                         const char **part, size_t *length);

#endif
