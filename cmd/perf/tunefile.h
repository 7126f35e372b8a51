/* The file of thresholds, as --tune changes it. */
#ifndef DT_CMD_PERF_TUNEFILE_H
#define DT_CMD_PERF_TUNEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_perf_threshold {
    char name[32];
    uint32_t number; /* as of struct dt_tuning_entry */
    uint64_t value;
    char comment[120];
};

/* The text of a file with so many thresholds set: old, or NULL, without the lines that set them for
 * the same number, and with new ones. NULL: out of memory; else to be freed. */
char *dt_perf_merge(const char *old, const struct dt_perf_threshold *set, size_t n);

/* Whether the next function may do what it is asked for, as far as that can be seen before; makes
 * directories and fails as that does. */
bool dt_perf_may_write_thresholds(char *path);
/* Sets them in the file at path, and makes its directories; whoever reads it meanwhile sees the old
 * file or the new one, whole. False, with errno: nothing has changed; EINVAL: what is there is
 * neither a file nor a directory. */
bool dt_perf_write_thresholds(char *path, const struct dt_perf_threshold *set, size_t n);

#endif
