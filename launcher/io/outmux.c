#include "launcher/io/outmux.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/base/clock.h"
#include "launcher/base/mem.h"
#include "launcher/io/backlog.h"
#include "launcher/io/label.h"
#include "launcher/io/linebuf.h"
#include "launcher/io/outfd.h"
#include "launcher/io/stamp.h"

enum {
    HELD_ALL = 64 * 1024 * 1024, /* bytes of unfinished lines of all streams together */
    HELD_MIN = 64 * 1024,        /* bounds for the share of one stream, see held_max */
    HELD_MAX = 4 * 1024 * 1024,
    CREDIT_STEP = 32 * 1024,   /* smaller amounts wait until the stream has nothing queued */
    PENDING_MAX = 128 * 1024,  /* lines are made only while less than this waits to be written */
    PIECE_MAX = 4 * 1024,      /* made into lines at once; labels can multiply the size */
    FOREIGN_MAX = 1024 * 1024, /* bytes of messages that wait when a host's is dropped */
    MESSAGES_MAX = 4 * 1024 * 1024, /* the same for dtrun's own */
};

struct sink {
    struct dt_outmux *mux;
    struct dt_backlog *backlog; /* of the streams, by index, and of messages */
    struct dt_outfd *out;
    int fd;
    bool colour;
    bool pumping;
    size_t nquiet;    /* number of its quiet streams */
    const void *open; /* the stream whose unfinished line was written last, or NULL */
    size_t ndropped;  /* number of messages that were dropped and are not reported yet */
};

struct stream {
    struct sink *sink;
    struct dt_linebuf lines;
    uint32_t number;
    int fd;
    size_t taken;         /* bytes taken from the backlog that are not credited yet */
    struct timespec came; /* arrival time of the bytes that are being made into lines */
    bool quiet;           /* nothing follows for now, so an unfinished line is to be shown */
};

struct dt_outmux {
    struct dt_outmux_events events;
    void *arg;
    bool lines; /* cut output into lines; false: pass it on as it comes */
    bool labels;
    bool stamps;
    bool marks; /* labels or stamps stand in front of each line */
    struct sink sinks[2];
    unsigned nsinks;        /* 1 if both descriptors refer to one file */
    struct stream *streams; /* nprocs of standard output, then nprocs of standard error */
    size_t nstreams;
    uint32_t np;
    uint32_t nprocs;
};

static unsigned sink_of(const struct dt_outmux *m, int fd)
{
    return fd == STDERR_FILENO ? m->nsinks - 1 : 0;
}

static size_t index_of(const struct stream *s)
{
    return (size_t)(s - s->sink->mux->streams);
}

static void credit(struct stream *s)
{
    struct dt_outmux *m = s->sink->mux;
    size_t n = s->taken;

    if (n == 0 || (n < CREDIT_STEP && dt_backlog_waiting(s->sink->backlog, index_of(s)) > 0))
        return;
    s->taken = 0;
    m->events.credit(m->arg, s->number, s->fd, (uint32_t)n);
}

static bool has_room(const struct sink *sink)
{
    return dt_outfd_pending(sink->out) < PENDING_MAX;
}

static void put(struct stream *s, const char *text, size_t n)
{
    dt_outfd_add(s->sink->out, text, n);
}

/* Ends another stream's unfinished line before it begins a new one. Without marks nothing is ever
 * inserted. */
static void begin_line(struct stream *s)
{
    struct dt_outmux *m = s->sink->mux;
    char stamp[DT_STAMP_MAX], label[DT_LABEL_MAX];
    size_t n;

    if (!m->marks)
        return;
    if (s->sink->open)
        put(s, "\n", 1);
    if (m->stamps) {
        n = dt_stamp(stamp, &s->came);
        put(s, stamp, n);
    }
    if (m->labels) {
        n = dt_label(label, s->number, m->np, s->sink->colour);
        put(s, label, n);
    }
}

/* Returns whether the piece is only the newline of a line that was shown unfinished, after another
 * stream has already ended that line. */
static bool is_ended_already(const struct stream *s, const char *text, size_t n, unsigned flags)
{
    bool only_end = (n == 1 && text[0] == '\n') || (n == 2 && memcmp(text, "\r\n", 2) == 0);

    return s->sink->mux->marks && only_end && s->sink->open != s &&
           !(flags & (DT_PIECE_BEGINS | DT_PIECE_LF));
}

static void on_piece(void *arg, const char *text, size_t n, unsigned flags)
{
    struct stream *s = arg;

    if (is_ended_already(s, text, n, flags))
        return;
    if (!(flags & DT_PIECE_LF) && ((flags & DT_PIECE_BEGINS) || s->sink->open != s))
        begin_line(s);
    put(s, text, n);
    if (!(flags & DT_PIECE_LF))
        s->sink->open = (flags & DT_PIECE_ENDS) ? NULL : s;
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

static void make_lines(struct stream *s, const struct dt_backlog_piece *p)
{
    if (p->n > 0) /* at its end a stream has no time of its own, but perhaps an unfinished line */
        s->came = p->came;
    s->taken += p->n;
    if (p->n == 0)
        end_stream(s);
    else if (s->sink->mux->lines)
        dt_linebuf_feed(&s->lines, p->data, p->n, on_piece, s);
    else
        put(s, p->data, p->n);
    credit(s);
}

static void write_message(struct sink *sink, const char *text, size_t n)
{
    if (sink->mux->marks && sink->open)
        dt_outfd_add(sink->out, "\n", 1);
    sink->open = NULL;
    dt_outfd_add(sink->out, text, n);
}

static void set_quiet(struct stream *s, bool quiet)
{
    if (s->quiet == quiet)
        return;
    s->quiet = quiet;
    if (quiet)
        s->sink->nquiet++;
    else
        s->sink->nquiet--;
}

/* Shows nothing while other output waits: it would follow at once, and split the unfinished line
 * needlessly. */
static void show_quiet(struct sink *sink)
{
    struct dt_outmux *m = sink->mux;

    if (sink->nquiet == 0 || !dt_backlog_is_empty(sink->backlog) || !has_room(sink))
        return;
    for (size_t i = 0; i < m->nstreams; i++) {
        struct stream *s = &m->streams[i];

        if (s->sink != sink || !s->quiet)
            continue;
        set_quiet(s, false);
        dt_linebuf_show(&s->lines, on_piece, s);
    }
}

static void add_to_backlog(struct sink *sink, size_t stream, const void *data, size_t n)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    dt_backlog_add(sink->backlog, stream, data, n, now);
}

/* Reports them once all messages that waited have been taken. */
static void report_dropped(struct sink *sink)
{
    size_t stream = sink->mux->nstreams;
    char line[100];

    if (sink->ndropped == 0 || dt_backlog_waiting(sink->backlog, stream) > 0)
        return;
    snprintf(line, sizeof line,
             "dtrun: %zu messages were dropped, because standard error was not read in time\n",
             sink->ndropped);
    sink->ndropped = 0;
    add_to_backlog(sink, stream, line, strlen(line));
}

/* The loop also handles bytes that are added while it runs. */
static void pump(struct sink *sink)
{
    struct dt_outmux *m = sink->mux;
    struct dt_backlog_piece p;

    if (sink->pumping)
        return;
    sink->pumping = true;
    while (has_room(sink) && dt_backlog_take(sink->backlog, PIECE_MAX, &p)) {
        if (p.stream == m->nstreams)
            write_message(sink, p.data, p.n);
        else
            make_lines(&m->streams[p.stream], &p);
        report_dropped(sink);
    }
    sink->pumping = false;
    show_quiet(sink);
}

static void on_sink_wrote(void *arg)
{
    pump(arg);
}

static void on_sink_drained(void *arg)
{
    struct sink *sink = arg;

    sink->mux->events.drained(sink->mux->arg);
}

static void on_sink_failed(void *arg, int error)
{
    struct sink *sink = arg;

    pump(sink); /* drops what waits */
    sink->mux->events.failed(sink->mux->arg, sink->fd, error);
}

static struct stream *stream_of(struct dt_outmux *m, uint32_t number, int fd)
{
    return &m->streams[(size_t)(fd == STDERR_FILENO) * m->nprocs + number];
}

static void add_bytes(struct sink *sink, size_t stream, const void *data, size_t n)
{
    add_to_backlog(sink, stream, data, n);
    pump(sink);
}

void dt_outmux_add(struct dt_outmux *m, uint32_t number, int fd, const void *data, size_t n)
{
    struct stream *s;

    if (number >= m->nprocs)
        return;
    s = stream_of(m, number, fd);
    set_quiet(s, false);
    add_bytes(s->sink, index_of(s), data, n);
}

static void end_stream_later(struct stream *s)
{
    dt_backlog_end(s->sink->backlog, index_of(s));
    pump(s->sink);
}

/* Without marks unfinished lines stay hidden, because another stream's text would end up in the
 * middle of them. */
void dt_outmux_quiet(struct dt_outmux *m, uint32_t number, int fd)
{
    struct stream *s;

    if (number >= m->nprocs || !m->marks)
        return;
    s = stream_of(m, number, fd);
    set_quiet(s, true);
    show_quiet(s->sink);
}

void dt_outmux_eof(struct dt_outmux *m, uint32_t number, int fd)
{
    if (number < m->nprocs)
        end_stream_later(stream_of(m, number, fd));
}

void dt_outmux_end_all(struct dt_outmux *m)
{
    for (size_t i = 0; i < m->nstreams; i++)
        end_stream_later(&m->streams[i]);
}

void dt_outmux_message(struct dt_outmux *m, const char *text, size_t n, bool foreign)
{
    struct sink *sink = &m->sinks[sink_of(m, STDERR_FILENO)];
    size_t waiting = dt_backlog_waiting(sink->backlog, m->nstreams);

    /* After the first, foreign ones are dropped until that is reported: in one line, not in many.
     */
    if (waiting >= MESSAGES_MAX || (foreign && (waiting >= FOREIGN_MAX || sink->ndropped > 0)))
        sink->ndropped++;
    else
        add_bytes(sink, m->nstreams, text, n);
}

static bool is_drained(const struct sink *sink)
{
    return dt_backlog_is_empty(sink->backlog) && dt_outfd_pending(sink->out) == 0;
}

/* Messages and output that has been credited keep nobody waiting. */
static bool holds_up_ranks(const struct sink *sink)
{
    for (size_t i = 0; i < sink->mux->nstreams; i++) {
        if (dt_backlog_waiting(sink->backlog, i) > 0)
            return true;
    }
    return false;
}

bool dt_outmux_awaits(const struct dt_outmux *m, int fd, uint64_t ms)
{
    const struct sink *sink = &m->sinks[sink_of(m, fd)];
    uint64_t moved_ns = dt_outfd_moved_ns(sink->out);

    if (is_drained(sink) || (ms > 0 && !holds_up_ranks(sink)))
        return false;
    return dt_now_ns() - moved_ns >= ms * 1000000;
}

/* With "2>&1" standard output and error are one file, and two queues to it would split each other's
 * lines. */
static bool same_file(int a, int b)
{
    struct stat sa, sb;

    return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino && sa.st_rdev == sb.st_rdev;
}

/* Follows the convention of no-color.org. */
static bool shows_colour(int fd)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

    return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

static void open_sinks(struct dt_outmux *m, uv_loop_t *loop)
{
    struct dt_outfd_events events = { on_sink_wrote, on_sink_drained, on_sink_failed };

    m->nsinks = same_file(STDOUT_FILENO, STDERR_FILENO) ? 1 : 2;
    for (unsigned i = 0; i < m->nsinks; i++) {
        m->sinks[i].mux = m;
        m->sinks[i].fd = i == 0 ? STDOUT_FILENO : STDERR_FILENO;
        m->sinks[i].backlog = dt_backlog_create(m->nstreams + 1);
        m->sinks[i].colour = shows_colour(m->sinks[i].fd);
        m->sinks[i].out = dt_outfd_open(loop, m->sinks[i].fd, m->lines, &events, &m->sinks[i]);
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
    m->nstreams = 2 * (size_t)m->nprocs;
    open_sinks(m, loop);
    m->streams = dt_xcalloc(m->nstreams, sizeof *m->streams);
    for (size_t i = 0; i < m->nstreams; i++) {
        struct stream *s = &m->streams[i];

        s->fd = i < m->nprocs ? STDOUT_FILENO : STDERR_FILENO;
        s->sink = &m->sinks[sink_of(m, s->fd)];
        s->number = (uint32_t)(i % m->nprocs);
        s->lines.max = held_max(m->nprocs);
    }
    return m;
}

void dt_outmux_close(struct dt_outmux *m)
{
    if (!m)
        return;
    for (unsigned i = 0; i < m->nsinks; i++) {
        dt_outfd_close(m->sinks[i].out);
        dt_backlog_free(m->sinks[i].backlog);
    }
    for (size_t i = 0; i < m->nstreams; i++)
        dt_linebuf_free(&m->streams[i].lines);
    free(m->streams);
    free(m);
}
