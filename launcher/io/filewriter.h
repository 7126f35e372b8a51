/* Writes regular files in a thread: if a file system hangs, output stops but the loop runs on. If
 * no thread can be started, the loop writes them.
 *
 * Each file has its own queue. The thread writes the queues one after the other. */
#ifndef DT_IO_FILEWRITER_H
#define DT_IO_FILEWRITER_H

#include <stddef.h>
#include <uv.h>

struct dt_filewriter;
struct dt_filewriter_file;

/* n bytes of the file were written or, if error is set, lost. After an error the writer drops all
 * later bytes of the file and reports them with error 0. */
typedef void (*dt_filewriter_wrote_f)(void *arg, size_t n, int error);

struct dt_filewriter *dt_filewriter_open(uv_loop_t *loop);
/* The caller owns fd and keeps it open until the writer is closed. */
struct dt_filewriter_file *dt_filewriter_file(struct dt_filewriter *w, int fd,
                                              dt_filewriter_wrote_f wrote, void *arg);
void dt_filewriter_add(struct dt_filewriter_file *f, const void *data, size_t n);
size_t dt_filewriter_pending(const struct dt_filewriter_file *f);
/* Drops what is not written yet. If a write hangs, the thread frees everything when the write
 * returns. Accepts NULL. */
void dt_filewriter_close(struct dt_filewriter *w);

#endif
