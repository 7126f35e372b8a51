/* Members on hosts other than the founder's. Each has a TCP connection to the founder's process.
 * The founder sends it what all others write into their shared memory, and writes there what the
 * member sends. The founder's process must therefore live while members on other hosts use the
 * communicator. A member that loses its connection takes all others for lost.
 *
 * A member reads another member's data once a counter of that member has gone up. Each side
 * therefore reads the counters first, then the data, and sends the counters last. */
#ifndef TESTS_STANDIN_NCCL_LINK_H
#define TESTS_STANDIN_NCCL_LINK_H

#include "tests/standin/nccl/shared.h"

struct standin_link;

/* Accepts members until the place is forgotten. Notes the address in the place. */
void standin_listen(struct standin_place *place);

/* A member's copy of the shared memory, or NULL if the founder does not answer. */
struct standin_shared *standin_link(struct standin_link **link, const struct standin_place *place,
                                    int size, int rank);
/* At the founder: waits until members on other hosts have been sent every change. */
void standin_flush(struct standin_shared *shared);
/* Sends what is left to send, and disconnects. The copy stays. */
void standin_link_end(struct standin_link *link);

#endif
