/* Reads and writes the memory of another process of this host (cross-memory attach,
 * process_vm_readv(2)). This takes one copy instead of two, and both sides of a transfer can do
 * half of it.
 *
 * The kernel may refuse it (ptrace rights, a seccomp filter). In a PID namespace of its own a
 * process may know another process by the same number. So every process publishes a card with a
 * random word and the word's address. A process that finds the word there has the right process. A
 * failure is not an error: the caller uses another algorithm. */
#ifndef DT_SHM_CMA_H
#define DT_SHM_CMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"

/* What is known about access to a peer's memory. */
enum dt_cma_reach { DT_CMA_UNTRIED, DT_CMA_REACHED, DT_CMA_REFUSED };

/* Fills in the card of this process. */
void dt_cma_introduce(struct dt_hostshm_card *card);
/* Whether the card's process can be accessed. pid 0: it has no card. */
bool dt_cma_finds(const struct dt_hostshm_card *card);
/* Whether this process, local rank me, can access that peer. A process without a card does not try:
 * a seccomp filter may kill it for the attempt. */
bool dt_cma_reaches(const struct dt_hostshm *h, uint32_t me, uint32_t peer);

/* Copy bytes from or to an address in a process that was found. They stop early if memory h is
 * stopped: the process may be gone, and its number belong to another. False: not all was copied. */
bool dt_cma_read(const struct dt_hostshm *h, const struct dt_hostshm_card *card, void *to,
                 uint64_t from, size_t bytes);
/* target: shared with that process. */
bool dt_cma_write(const struct dt_hostshm *h, const struct dt_hostshm_card *card,
                  struct dt_hostshm_target *target, uint64_t to, const void *from, size_t bytes);
/* Called by that process after h was stopped: no write begins any more. A write that has begun ends
 * soon. */
void dt_cma_refuse(struct dt_hostshm_target *target);

#endif
