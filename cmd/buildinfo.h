/* --check-build: with which libraries dtrun was built, and what it can do therefore. */
#ifndef DT_CMD_BUILDINFO_H
#define DT_CMD_BUILDINFO_H

void dt_buildinfo_print(void); /* standard output */

#endif
