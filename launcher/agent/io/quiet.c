#include "launcher/agent/io/quiet.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <uv.h>

enum {
    STDIO_BLOCK = 4096,
    STDIO_TERMINAL_BLOCK = 1024,
    TERMINAL_PIECE = 2048, /* the kernel cuts what is written to a terminal into such pieces */
};

void dt_quiet_read(struct dt_quiet *q, const void *data, size_t n, bool emptied)
{
    char last = ((const char *)data)[n - 1];

    q->burst = (q->emptied ? 0 : q->burst) + n;
    q->emptied = emptied;
    q->undecided = last != '\n' && last != '\r';
    if (!q->undecided)
        return;
    q->wait_ns = DT_QUIET_MS * UINT64_C(1000000);
    q->due_ns = uv_hrtime() + q->wait_ns;
}

bool dt_quiet_is_empty(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, 0) >= 0 && !(p.revents & POLLIN);
}

/* Returns the fewest bytes that can fill the pipe: each of its pages holds some, and two
 * neighbouring pages together hold more than fits into one, because the kernel would have merged
 * them otherwise. */
static size_t least_of_full(int fd)
{
    int size = fcntl(fd, F_GETPIPE_SZ);
    int page = (int)sysconf(_SC_PAGESIZE);

    if (size < 0)
        return TERMINAL_PIECE;
    return size > 2 * page ? (size_t)(size / 2 - page) : 0;
}

/* A write fills the pipe at once as far as there is room. If the pipe may have been full, the rest
 * may still come from a process that was woken and waits for a CPU. */
static bool may_be_half_written(const struct dt_quiet *q, int fd)
{
    return q->burst >= least_of_full(fd);
}

/* A program that buffers its output, as C programs do when they write to pipes, writes whole
 * blocks; on a terminal it does so with a long line. If the last block ends inside a line, that
 * line is no prompt, and its rest will come. */
static bool is_cut_by_buffer(const struct dt_quiet *q, int fd)
{
    return q->burst % (isatty(fd) ? STDIO_TERMINAL_BLOCK : STDIO_BLOCK) == 0;
}

static enum dt_quiet_state decide(struct dt_quiet *q, int fd)
{
    q->undecided = false;
    return dt_quiet_is_empty(fd) && !is_cut_by_buffer(q, fd) ? DT_QUIET_BEGINS : DT_QUIET_OPEN;
}

enum dt_quiet_state dt_quiet_ask(struct dt_quiet *q, int fd)
{
    if (!q->undecided || uv_hrtime() < q->due_ns)
        return DT_QUIET_OPEN;
    return may_be_half_written(q, fd) ? DT_QUIET_NEEDS_LOOK : decide(q, fd);
}

/* The processes were examined before the pipe. What they have written since is visible in it, and
 * is decided on when it has been read. */
enum dt_quiet_state dt_quiet_looked(struct dt_quiet *q, int fd, bool awake)
{
    if (!awake)
        return decide(q, fd);
    q->wait_ns *= 2;
    q->due_ns = uv_hrtime() + q->wait_ns;
    return DT_QUIET_OPEN;
}
