/* The memory of another process of this host, read and written where it stands (cross-memory
 * attach, process_vm_readv(2)): one copy, which both sides of a transfer can make a half of.
 *
 * The kernel may refuse it (ptrace rights, a seccomp filter), and a process number may mean another
 * process here, in a pid namespace of its own. So every process shows a card, with a word that it
 * has drawn by chance and where that stands in its memory; whoever finds the word there has found
 * the process. What fails is not an error: the caller goes another way. */
#ifndef DT_SHM_CMA_H
#define DT_SHM_CMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/wire/hostshm.h"

/* What is known of reaching somebody. */
enum dt_cma_reach { DT_CMA_UNTRIED, DT_CMA_REACHED, DT_CMA_REFUSED };

/* Makes out the card of this process. */
void dt_cma_introduce(struct dt_hostshm_card *card);
/* Whether the process whose card this is can be reached. pid 0: it does not show itself. */
bool dt_cma_finds(const struct dt_hostshm_card *card);
/* Whether this process, local rank me, reaches that peer. Who does not show itself does not look
 * for others either: the system may kill it for that (seccomp). */
bool dt_cma_reaches(const struct dt_hostshm *h, uint32_t me, uint32_t peer);

/* Copy bytes from or to an address of a process that was found. They end early, between two pieces,
 * once memory h has been stopped: the process may be gone, and its number another's. False: not all
 * was copied. */
bool dt_cma_read(const struct dt_hostshm *h, const struct dt_hostshm_card *card, void *to,
                 uint64_t from, size_t bytes);
/* target: which the process has, too. */
bool dt_cma_write(const struct dt_hostshm *h, const struct dt_hostshm_card *card,
                  struct dt_hostshm_target *target, uint64_t to, const void *from, size_t bytes);
/* For that process, once h has been stopped: no write begins any more. One that has begun does not
 * stand still in the kernel, and comes to its end. */
void dt_cma_refuse(struct dt_hostshm_target *target);

#endif
