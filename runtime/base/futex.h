/* Sleeping on a word that the threads of this process share. */
#ifndef DT_BASE_FUTEX_H
#define DT_BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps until the word is woken, a signal arrives, or "most" has passed (NULL: no limit). Returns
 * at once if the word is not equal to seen. */
static inline void dt_futex_wait_for(_Atomic uint32_t *word, uint32_t seen,
                                     const struct timespec *most)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, most, NULL, 0);
}

static inline void dt_futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    dt_futex_wait_for(word, seen, NULL);
}

static inline void dt_futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

#endif
