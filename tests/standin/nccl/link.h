/* Members on other hosts than the founder's. Each is connected by TCP to the founder's process,
 * which tells it what all others write into the memory that they share, and writes there what it
 * says. So the founder's process has to live while members on other hosts use the communicator, and
 * whom its end cuts off takes all others for lost.
 *
 * A member reads what another one has written after a number of that member's has gone up. So each
 * side reads the numbers first, then what goes with them, and sends the numbers last. */
#ifndef TESTS_STANDIN_NCCL_LINK_H
#define TESTS_STANDIN_NCCL_LINK_H

#include "tests/standin/nccl/shared.h"

struct standin_link;

/* Accepts members until the place is forgotten, and says where in the place. */
void standin_listen(struct standin_place *place);

/* A member's copy of what is shared. NULL: the founder does not answer. */
struct standin_shared *standin_link(struct standin_link **link, const struct standin_place *place,
                                    int size, int rank);
/* At the founder: waits until members on other hosts have been told all that has happened. */
void standin_flush(struct standin_shared *shared);
/* Tells what is left to tell, and disconnects; the copy stays. */
void standin_link_end(struct standin_link *link);

#endif
