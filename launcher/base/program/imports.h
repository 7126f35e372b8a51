/* Finds the modules that a Python script imports. Pure. */
#ifndef DT_BASE_PROGRAM_IMPORTS_H
#define DT_BASE_PROGRAM_IMPORTS_H

#include <stdbool.h>
#include <stddef.h>

enum { DT_IMPORT_MAX = 256 }; /* bytes of a module's name; longer names are left out */

/* The name is as in the script: "a.b", or ".b" if relative. */
typedef bool dt_import_test(const char *module);

/* Returns whether an imported module passes the test. Looks at statements that begin with an
 * import. For "from a import b" it tries "a" and "a.b", since b may be a module. */
bool dt_imports_find(const char *text, size_t n, dt_import_test *passes);

#endif
