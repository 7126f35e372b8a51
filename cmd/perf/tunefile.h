/* The file of thresholds, as --tune changes it. */
#ifndef DT_CMD_PERF_TUNEFILE_H
#define DT_CMD_PERF_TUNEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_perf_threshold {
    char name[32];
    uint32_t number; /* as in struct dt_tuning_entry */
    uint64_t value;
    char comment[120];
};

/* Returns the text of a file that sets these n thresholds: old (or NULL) without the lines that set
 * them for the same number, followed by new lines. Returns NULL out of memory; the caller frees it.
 */
char *dt_perf_merge(const char *old, const struct dt_perf_threshold *set, size_t n);

/* Returns whether the next function can succeed, as far as that is known in advance. Creates
 * directories and fails as that one does. */
bool dt_perf_may_write_thresholds(char *path);
/* Sets the thresholds in the file at path, and creates its directories. A process that reads the
 * file meanwhile sees all of the old or all of the new text. Returns false with errno if nothing
 * has changed; EINVAL: path is neither a file nor a directory. */
bool dt_perf_write_thresholds(char *path, const struct dt_perf_threshold *set, size_t n);

#endif
