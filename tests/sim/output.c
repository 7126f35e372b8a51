/* What the engine must show of the ranks' output: each stream once, in order, as a whole, and its
 * end. A stream that is cut short, because its host is lost or dtrun drops output, is shown up to
 * some point, and then ends. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/world.h"

enum { CHUNK = 16 * 1024, READER_MS = 2000 };

/* What has been shown of the stream in this generation. */
static struct sim_shown *stream_of(struct sim_world *w, uint32_t rank, int fd)
{
    struct sim_shown *s = &w->shown[rank][fd - 1];

    if (s->generation != w->witness.generation) {
        if (s->generation && !s->ended)
            sim_broken(w, "rank %u's stream %d of generation %u has not ended", rank, fd,
                       s->generation);
        *s = (struct sim_shown){ .generation = w->witness.generation };
    }
    return s;
}

void sim_check_output(struct sim_world *w, uint32_t rank, int fd, const char *data, size_t n)
{
    struct sim_shown *s = stream_of(w, rank, fd);
    char expected[CHUNK];

    if (s->ended)
        sim_broken(w, "rank %u prints on stream %d after its end", rank, fd);
    sim_stream_bytes(expected, s->bytes, n, s->generation, rank, fd);
    if (memcmp(expected, data, n) != 0)
        sim_broken(w, "rank %u's stream %d is torn at byte %" PRIu64, rank, fd, s->bytes);
    s->bytes += n;
}

void sim_check_quiet_told(struct sim_world *w, const struct dt_msg_output_quiet *m)
{
    w->witness.quiet = *m;
}

void sim_check_output_quiet(struct sim_world *w, uint32_t rank, int fd)
{
    const struct sim_shown *s = stream_of(w, rank, fd);
    struct dt_msg_output_quiet *quiet = &w->witness.quiet;

    if (quiet->fd != fd || quiet->rank != rank)
        sim_broken(w, "dtrun takes rank %u's stream %d for quiet by itself", rank, fd);
    if (s->ended || (!w->witness.dropped[fd - 1] && !sim_is_line_unfinished(s->bytes)))
        sim_broken(w, "rank %u's stream %d has no unfinished line", rank, fd);
    quiet->fd = 0;
}

void sim_check_quiet_shown(struct sim_world *w)
{
    if (w->witness.quiet.fd)
        sim_broken(w, "an unfinished line of rank %u is not shown", w->witness.quiet.rank);
}

void sim_check_output_eof(struct sim_world *w, uint32_t rank, int fd)
{
    stream_of(w, rank, fd)->ended = true;
}

void sim_check_streams_whole(struct sim_world *w, const struct sim_agent *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        for (int fd = 1; fd <= SIM_STREAMS; fd++) {
            uint32_t rank = a->ranks[i].rank;
            uint64_t produced = a->ranks[i].streams[fd - 1].produced;
            const struct sim_shown *s = &w->shown[rank][fd - 1];
            uint64_t bytes = s->generation == a->generation ? s->bytes : 0;

            if (bytes > produced || (bytes < produced && !w->witness.dropped[fd - 1]))
                sim_broken(w, "%" PRIu64 " bytes of rank %u's stream %d are shown, not %" PRIu64,
                           bytes, rank, fd, produced);
            if (s->generation != a->generation || !s->ended)
                sim_broken(w, "the end of rank %u's stream %d is not shown", rank, fd);
        }
    }
}

void sim_check_streams_ended(struct sim_world *w, const struct sim_agent *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        for (int fd = 1; fd <= SIM_STREAMS; fd++) {
            const struct sim_shown *s = &w->shown[a->ranks[i].rank][fd - 1];

            if (s->generation == a->generation && !s->ended)
                sim_broken(w, "rank %u's stream %d of generation %u has not ended",
                           a->ranks[i].rank, fd, s->generation);
        }
    }
}

uint64_t sim_unread_ns(const struct sim_world *w, int fd)
{
    const struct sim_reader *r = &w->readers[fd - 1];

    return w->now_ns - (r->read_ns > r->owed_ns ? r->read_ns : r->owed_ns);
}

bool sim_has_dropped(const struct sim_world *w)
{
    return w->witness.dropped[0] || w->witness.dropped[1];
}

/* If the user insists, or after the last rank, a signal ends dtrun although output is left. */
void sim_check_all_read(struct sim_world *w)
{
    const struct sim_witness *x = &w->witness;
    bool cut = x->insisted || x->ordered > x->finished;

    for (int fd = 1; fd <= SIM_STREAMS; fd++) {
        uint64_t owed = w->readers[fd - 1].owed;

        if (owed && !x->dropped[fd - 1] && !cut)
            sim_broken(w, "dtrun ends although %" PRIu64 " bytes of stream %d have not been read",
                       owed, fd);
    }
}

static void check_in_vain(struct sim_world *w, int fd)
{
    const struct sim_witness *x = &w->witness;
    uint64_t ordered_ns = x->norders ? w->now_ns - x->orders[0].at_ns : 0;

    if (!w->readers[fd - 1].owed)
        sim_broken(w, "dtrun drops stream %d although all has been read", fd);
    if (!sim_is_reader_late(w) && sim_unread_ns(w, fd) < READER_MS * SIM_MS)
        sim_broken(w, "dtrun drops stream %d although some was read %" PRIu64 " ms ago", fd,
                   sim_unread_ns(w, fd) / SIM_MS);
    if (!sim_is_reader_late(w) && ordered_ns < READER_MS * SIM_MS)
        sim_broken(w, "dtrun drops output %" PRIu64 " ms after it was told to stop",
                   ordered_ns / SIM_MS);
}

static bool awaits_reader(const struct sim_world *w, const struct sim_agent *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        for (int k = 0; k < SIM_STREAMS; k++) {
            const struct sim_stream *s = &a->ranks[i].streams[k];

            if (s->credit == 0 && s->sent < s->produced &&
                w->now_ns - w->readers[k].read_ns > SIM_S)
                return true;
        }
    }
    return false;
}

/* Agents report the ends of ranks after their output. */
static void check_silent(struct sim_world *w, const char *line)
{
    for (const struct sim_conn *c = w->conns; c; c = c->next) {
        size_t n = strlen(c->host->name);

        if (c->open && !c->lost_ns && c->agent && w->now_ns - c->heard_ns < SIM_S &&
            awaits_reader(w, c->agent) && strncmp(line, c->host->name, n) == 0 && line[n] == ' ')
            sim_broken(w, "%s is called silent although it waits for a reader", c->host->name);
    }
}

void sim_check_output_said(struct sim_world *w, const char *line)
{
    for (int fd = 1; fd <= SIM_STREAMS; fd++) {
        const char *only = fd == 1 ? "the last output on standard output was not "
                                   : "the last output on standard error was not ";

        if (!strstr(line, "the last output was not ") && !strstr(line, only))
            continue;
        check_in_vain(w, fd);
        w->witness.dropped[fd - 1] = true;
    }
    if (strstr(line, " has not confirmed that "))
        check_silent(w, line + strlen("dtrun: "));
}
