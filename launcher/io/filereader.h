/* Reads a file in a thread: if its file system hangs, its reader waits, but the loop runs on. If no
 * thread can be started, the loop reads it. */
#ifndef DT_IO_FILEREADER_H
#define DT_IO_FILEREADER_H

#include <stddef.h>
#include <uv.h>

struct dt_filereader;

enum { DT_FILEREADER_MAX = 64 * 1024 };

/* n bytes were read; n is 0 at the end of the file, and if error (as errno) is set. Returns how
 * many of them the callee takes. It is given the others again after the next dt_filereader_start.
 */
typedef size_t (*dt_filereader_read_f)(void *arg, const char *data, size_t n, int error);

/* The caller owns fd. A thread may read it until the process ends. */
struct dt_filereader *dt_filereader_open(uv_loop_t *loop, int fd, dt_filereader_read_f read,
                                         void *arg);
/* The same for files that the thread opens, too: the file of dt_filereader_switch. */
struct dt_filereader *dt_filereader_open_paths(uv_loop_t *loop, dt_filereader_read_f read,
                                               void *arg);
/* The next read begins that file. The last one must be over, and all of its bytes taken. */
void dt_filereader_switch(struct dt_filereader *r, const char *path);
/* Calls read once, from the loop. Reads at most n bytes, and at most DT_FILEREADER_MAX. */
void dt_filereader_start(struct dt_filereader *r, size_t n);
/* read is no longer called. If a read hangs, the thread frees r when it returns. Accepts NULL. */
void dt_filereader_close(struct dt_filereader *r);

#endif
