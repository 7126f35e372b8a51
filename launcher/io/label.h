/* The label in front of each line when several processes write: "[3] ", "[server 0] ". Pure. */
#ifndef DT_IO_LABEL_H
#define DT_IO_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/place/role.h"

enum { DT_LABEL_MAX = DT_ROLE_NAME_MAX + 16 };

/* Writes the label of the process with that number (role.h) and a NUL. Returns its length. In
 * colour, neighbouring numbers differ. */
size_t dt_label(char out[DT_LABEL_MAX], uint32_t number, uint32_t np, bool colour);

#endif
