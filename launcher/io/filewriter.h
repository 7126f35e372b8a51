/* Writes to regular files in a thread: a file system that stands still stops output, not the loop.
 *
 * Each file has a queue of its own; the thread writes one file's queue after the other. */
#ifndef DT_IO_FILEWRITER_H
#define DT_IO_FILEWRITER_H

#include <stddef.h>
#include <uv.h>

struct dt_filewriter;
struct dt_filewriter_file;

/* n bytes of the file are written or, with an error, lost. After an error nothing more is written
 * to the file: later bytes are reported with error 0 and dropped. */
typedef void (*dt_filewriter_wrote_f)(void *arg, size_t n, int error);

struct dt_filewriter *dt_filewriter_open(uv_loop_t *loop);
/* fd remains the caller's, who keeps it open as long as the writer. */
struct dt_filewriter_file *dt_filewriter_file(struct dt_filewriter *w, int fd,
                                              dt_filewriter_wrote_f wrote, void *arg);
void dt_filewriter_add(struct dt_filewriter_file *f, const void *data, size_t n);
size_t dt_filewriter_pending(const struct dt_filewriter_file *f);
/* Drops what is not written yet. A write that stands still is left to the thread, which frees all
 * when it returns. Accepts NULL. */
void dt_filewriter_close(struct dt_filewriter *w);

#endif
