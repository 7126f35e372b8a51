/* What the engine must show of the ranks' output: each stream once, in order, as a whole, and its
 * end. A stream that is cut short by the loss of its host is shown up to some point, and then
 * ends. */
#include <inttypes.h>
#include <string.h>

#include "tests/sim/world.h"

enum { CHUNK = 16 * 1024 };

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
    if (s->ended || !sim_is_line_unfinished(s->bytes))
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

            if (bytes != produced)
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
