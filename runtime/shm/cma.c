#include "runtime/shm/cma.h"

#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/min.h"

enum { CHUNK = 1024 * 1024 }; /* bytes copied between two checks for a stop */

static uint64_t dti_word[2];

static void draw(void)
{
    randombytes_buf(dti_word, sizeof dti_word);
}

void dt_cma_introduce(struct dt_hostshm_card *card)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    static_assert(sizeof card->word == sizeof dti_word, "all of it is shown");
    pthread_once(&once, draw);
    card->pid = (uint64_t)getpid();
    card->at = (uintptr_t)dti_word;
    memcpy(card->word, dti_word, sizeof dti_word);
}

/* read_some and write_some return how many bytes were copied, which may be fewer than asked for, or
 * less than 1 after a failure. */
static ssize_t read_some(uint64_t pid, void *to, uint64_t from, size_t bytes)
{
    const struct iovec local = { to, bytes };
    const struct iovec remote = { (void *)(uintptr_t)from, bytes };

    return process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
}

static_assert(sizeof(struct iovec) == sizeof(struct dt_hostshm_target) &&
                  offsetof(struct iovec, iov_base) == offsetof(struct dt_hostshm_target, at) &&
                  offsetof(struct iovec, iov_len) == offsetof(struct dt_hostshm_target, bytes),
              "the kernel reads one as the other");

/* The target is set before the stop is checked. A process that stops h and then clears the target
 * either is seen to have stopped it, or clears the target after this. */
static ssize_t write_some(const struct dt_hostshm *h, uint64_t pid,
                          struct dt_hostshm_target *target, uint64_t to, const void *from,
                          size_t bytes)
{
    const struct iovec local = { (void *)(uintptr_t)from, bytes };

    atomic_store_explicit(&target->at, to, memory_order_relaxed);
    atomic_store_explicit(&target->bytes, bytes, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (dt_hostshm_stopped(h, NULL))
        return -1;
    return process_vm_writev((pid_t)pid, &local, 1, (const struct iovec *)(const void *)target, 1,
                             0);
}

void dt_cma_refuse(struct dt_hostshm_target *target)
{
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store_explicit(&target->bytes, 0, memory_order_seq_cst);
}

/* Writes what the peer's word contains already, so this changes nothing. */
static bool may_write(const struct dt_hostshm_card *card)
{
    const struct iovec local = { (void *)(uintptr_t)card->word, sizeof card->word };
    const struct iovec remote = { (void *)(uintptr_t)card->at, sizeof card->word };

    return process_vm_writev((pid_t)card->pid, &local, 1, &remote, 1, 0) == sizeof card->word;
}

bool dt_cma_finds(const struct dt_hostshm_card *card)
{
    uint64_t found[2] = { 0 };

    return card->pid && read_some(card->pid, found, card->at, sizeof found) == sizeof found &&
           memcmp(found, card->word, sizeof found) == 0 && may_write(card);
}

bool dt_cma_reaches(const struct dt_hostshm *h, uint32_t me, uint32_t peer)
{
    return h->ranks[me].card.pid && dt_cma_finds(&h->ranks[peer].card);
}

bool dt_cma_read(const struct dt_hostshm *h, const struct dt_hostshm_card *card, void *to,
                 uint64_t from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = dt_hostshm_stopped(h, NULL) ? -1
                                                : read_some(card->pid, (uint8_t *)to + at,
                                                            from + at, dt_min(bytes - at, CHUNK));

        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

bool dt_cma_write(const struct dt_hostshm *h, const struct dt_hostshm_card *card,
                  struct dt_hostshm_target *target, uint64_t to, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = write_some(h, card->pid, target, to + at, (const uint8_t *)from + at,
                               dt_min(bytes - at, CHUNK));

        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}
