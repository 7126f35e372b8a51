/* Closes all descriptors from a number on. */
#ifndef DT_BASE_CLOSEFROM_H
#define DT_BASE_CLOSEFROM_H

#include <stdbool.h>

/* With on_exec, exec closes them. */
void dt_close_from(int first, bool on_exec);

#endif
