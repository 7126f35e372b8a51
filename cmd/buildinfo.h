/* --check-build: the libraries with which dtrun was built, and what it can therefore do. */
#ifndef DT_CMD_BUILDINFO_H
#define DT_CMD_BUILDINFO_H

void dt_buildinfo_print(void); /* to standard output */

#endif
