#include "launcher/io/outmux.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/io/label.h"
#include "launcher/io/linebuf.h"
#include "launcher/io/outfd.h"
#include "launcher/io/stamp.h"

enum {
    HELD_ALL = 64 * 1024 * 1024, /* unfinished lines of all streams together */
    HELD_MIN = 64 * 1024,
    HELD_MAX = 4 * 1024 * 1024,
    CREDIT_STEP = 32 * 1024, /* smaller amounts wait until the stream has nothing queued */
};

struct sink {
    struct dt_outmux *mux;
    struct dt_outfd *out;
    int fd;
    bool colour;
    const void *open; /* the stream whose unfinished line stands at the end, or NULL */
};

struct stream {
    struct sink *sink;
    struct dt_linebuf lines;
    uint32_t number;
    int fd;
    size_t taken;  /* received and not credited yet */
    size_t queued; /* added to the sink and not written yet */
    size_t ready;  /* written and not credited yet */
};

struct dt_outmux {
    struct dt_outmux_events events;
    void *arg;
    bool lines; /* only whole lines */
    bool labels;
    bool stamps;
    bool marks; /* labels or stamps: something stands before each line */
    struct sink sinks[2];
    unsigned nsinks;        /* 1 where both descriptors are one file */
    struct stream *streams; /* nprocs of standard output, nprocs of standard error */
    uint32_t np;
    uint32_t nprocs;
};

static void credit(struct stream *s)
{
    struct dt_outmux *m = s->sink->mux;
    size_t n = s->queued == 0 ? s->taken : s->ready;

    if (n == 0 || (s->queued > 0 && n < CREDIT_STEP))
        return;
    s->taken -= n;
    s->ready = 0;
    m->events.credit(m->arg, s->number, s->fd, (uint32_t)n);
}

static void on_wrote(void *arg, void *owner, size_t n)
{
    struct stream *s = owner;
    size_t left;

    (void)arg;
    s->queued -= n;
    /* Labels and inserted line ends are written but were never received. */
    left = s->taken - s->ready;
    s->ready += n < left ? n : left;
    credit(s);
}

static void on_failed(void *arg, int error)
{
    struct sink *sink = arg;

    sink->mux->events.failed(sink->mux->arg, sink->fd, error);
}

static void on_drained(void *arg)
{
    struct sink *sink = arg;

    if (dt_outmux_is_drained(sink->mux))
        sink->mux->events.drained(sink->mux->arg);
}

static void put(struct stream *s, const char *text, size_t n)
{
    s->queued += n;
    dt_outfd_add(s->sink->out, text, n, s);
}

/* Another stream's unfinished line is ended before a new one begins beside it. Where nothing stands
 * before the lines, nothing is ever inserted. */
static void begin_line(struct stream *s)
{
    struct dt_outmux *m = s->sink->mux;
    char stamp[DT_STAMP_MAX], label[DT_LABEL_MAX];
    struct timespec now;

    if (!m->marks)
        return;
    if (s->sink->open)
        put(s, "\n", 1);
    if (m->stamps) {
        clock_gettime(CLOCK_REALTIME, &now);
        put(s, stamp, dt_stamp(stamp, &now));
    }
    if (m->labels)
        put(s, label, dt_label(label, s->number, m->np, s->sink->colour));
}

static void on_piece(void *arg, const char *text, size_t n, unsigned piece)
{
    struct stream *s = arg;

    if (!(piece & DT_PIECE_LF) && ((piece & DT_PIECE_BEGINS) || s->sink->open != s))
        begin_line(s);
    put(s, text, n);
    if (!(piece & DT_PIECE_LF))
        s->sink->open = (piece & DT_PIECE_ENDS) ? NULL : s;
}

static struct stream *stream_of(struct dt_outmux *m, uint32_t number, int fd)
{
    return &m->streams[(size_t)(fd == STDERR_FILENO) * m->nprocs + number];
}

void dt_outmux_add(struct dt_outmux *m, uint32_t number, int fd, const void *data, size_t n)
{
    struct stream *s;

    if (number >= m->nprocs || n == 0)
        return;
    s = stream_of(m, number, fd);
    s->taken += n;
    if (m->lines)
        dt_linebuf_feed(&s->lines, data, n, on_piece, s);
    else
        put(s, data, n);
    credit(s);
}

static void end_stream(struct stream *s)
{
    struct dt_outmux *m = s->sink->mux;

    dt_linebuf_end(&s->lines, on_piece, s);
    if (m->marks && s->sink->open == s) {
        put(s, "\n", 1);
        s->sink->open = NULL;
    }
}

void dt_outmux_eof(struct dt_outmux *m, uint32_t number, int fd)
{
    if (number < m->nprocs)
        end_stream(stream_of(m, number, fd));
}

void dt_outmux_end_all(struct dt_outmux *m)
{
    for (size_t i = 0; i < 2 * (size_t)m->nprocs; i++)
        end_stream(&m->streams[i]);
}

void dt_outmux_message(struct dt_outmux *m, const char *text, size_t n)
{
    struct sink *sink = &m->sinks[m->nsinks - 1];

    if (m->marks && sink->open)
        dt_outfd_add(sink->out, "\n", 1, NULL);
    sink->open = NULL;
    dt_outfd_add(sink->out, text, n, NULL);
}

bool dt_outmux_is_drained(const struct dt_outmux *m)
{
    for (unsigned i = 0; i < m->nsinks; i++) {
        if (dt_outfd_pending(m->sinks[i].out) > 0)
            return false;
    }
    return true;
}

/* Standard output and error of "2>&1": two queues to one file would cut each other's lines. */
static bool same_file(int a, int b)
{
    struct stat sa, sb;

    return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino && sa.st_rdev == sb.st_rdev;
}

/* As users ask for it everywhere: see no-color.org. */
static bool shows_colour(int fd)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

    return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

static void open_sinks(struct dt_outmux *m, uv_loop_t *loop)
{
    struct dt_outfd_events events = { on_wrote, on_failed, on_drained };

    m->nsinks = same_file(STDOUT_FILENO, STDERR_FILENO) ? 1 : 2;
    for (unsigned i = 0; i < m->nsinks; i++) {
        m->sinks[i].mux = m;
        m->sinks[i].fd = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
        m->sinks[i].colour = shows_colour(m->sinks[i].fd);
        m->sinks[i].out = dt_outfd_open(loop, m->sinks[i].fd, &events, &m->sinks[i]);
    }
}

static size_t held_max(uint32_t nprocs)
{
    size_t share = HELD_ALL / (2 * (size_t)nprocs);

    return share < HELD_MIN ? HELD_MIN : share > HELD_MAX ? HELD_MAX : share;
}

struct dt_outmux *dt_outmux_open(uv_loop_t *loop, const struct dt_outmux_config *config,
                                 const struct dt_outmux_events *events, void *arg)
{
    struct dt_outmux *m = dt_xcalloc(1, sizeof *m);

    m->events = *events;
    m->arg = arg;
    m->np = config->np;
    m->nprocs = config->nprocs;
    m->labels = config->labels;
    m->stamps = config->stamps;
    m->marks = m->labels || m->stamps;
    m->lines = m->nprocs > 1 || m->marks;
    open_sinks(m, loop);
    m->streams = dt_xcalloc(2 * (size_t)m->nprocs, sizeof *m->streams);
    for (size_t i = 0; i < 2 * (size_t)m->nprocs; i++) {
        struct stream *s = &m->streams[i];

        s->fd = i < m->nprocs ? STDOUT_FILENO : STDERR_FILENO;
        s->sink = &m->sinks[s->fd == STDERR_FILENO ? m->nsinks - 1 : 0];
        s->number = (uint32_t)(i % m->nprocs);
        s->lines.max = held_max(m->nprocs);
    }
    return m;
}

void dt_outmux_close(struct dt_outmux *m)
{
    if (!m)
        return;
    for (unsigned i = 0; i < m->nsinks; i++)
        dt_outfd_close(m->sinks[i].out);
    for (size_t i = 0; i < 2 * (size_t)m->nprocs; i++)
        dt_linebuf_free(&m->streams[i].lines);
    free(m->streams);
    free(m);
}
