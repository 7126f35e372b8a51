/* Finds the other parts of this installation (or build tree). */
#ifndef DT_BASE_PROGRAM_INSTALLED_H
#define DT_BASE_PROGRAM_INSTALLED_H

#include "launcher/base/error.h"

#define DT_LIBRARY_FILE "libdtrun.so.0" /* the soname of libdtrun */

/* dtrun-agent: $DTRUN_AGENT, else beside dtrun, else in ../libexec/dtrun from there, else where it
 * was installed. Returns a path to free, or NULL with err. */
char *dt_installed_agent(struct dt_error *err);

/* dtrun-pmix: beside dtrun, in ../libexec/dtrun from there, or where it was installed. Returns a
 * path to free, or NULL if it is in none of them. */
char *dt_installed_pmix(void);

/* libdtrun: in ../lib from dtrun, in the build tree, or where it was installed. Returns a path to
 * free, or NULL if it is in none of them. */
char *dt_installed_library(void);

#endif
