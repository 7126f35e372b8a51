/* Passes standard input to one rank or to all, and the output of all processes to the user. Agents
 * get credit for output once it has been shown. */
#ifndef DT_JOB_RANK_IO_H
#define DT_JOB_RANK_IO_H

#include "launcher/job/core/core.h"

struct dt_rank_io {
    struct dt_core *core;
    bool stdin_ended;
    bool told_stdin; /* the user knows that restarted ranks do not get all of it */
    uint64_t stdin_sent;
    uint64_t stdin_taken; /* bytes that every host with readers has taken in this generation */
    size_t stdin_owed;    /* credit that is held back while FAILING */
};

/* Returns false if the host has sent more than it had credit for. */
bool dt_rank_io_on_output(const struct dt_rank_io *io, const struct dt_msg_output *m);
void dt_rank_io_on_output_eof(const struct dt_rank_io *io, const struct dt_msg_output_eof *m);
void dt_rank_io_on_output_quiet(const struct dt_rank_io *io, const struct dt_msg_output_quiet *m);
/* n bytes of the process's output have been shown: gives its agent credit for as many. */
void dt_rank_io_shown(const struct dt_rank_io *io, uint32_t number, int fd, size_t n);
/* From now on dtrun drops the output of these streams, and ranks never wait for their reader again.
 */
void dt_rank_io_drop(struct dt_core *core, unsigned streams);

void dt_rank_io_begin(struct dt_rank_io *io); /* a generation begins */
void dt_rank_io_stdin(struct dt_rank_io *io, const void *data, size_t n);
void dt_rank_io_stdin_eof(struct dt_rank_io *io);
void dt_rank_io_on_stdin_credit(struct dt_rank_io *io, struct dt_hostlink *h,
                                const struct dt_msg_stdin_credit *m);
/* Nothing has failed after all: gives the credit that was held back while FAILING. */
void dt_rank_io_continue(struct dt_rank_io *io);

#endif
