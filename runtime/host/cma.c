#include "runtime/host/cma.h"

#include <pthread.h>
#include <sodium.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/host/least.h"

enum { PIECE = 1024 * 1024 }; /* bytes between two looks at whether all is well */

/* process_vm_readv or process_vm_writev. */
typedef ssize_t (*transfer)(pid_t pid, const struct iovec *here, unsigned long n,
                            const struct iovec *there, unsigned long m, unsigned long flags);

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

/* Returns how many bytes have moved, which may be fewer; or less than 1. */
static ssize_t move(transfer how, uint64_t pid, void *here, uint64_t there, size_t bytes)
{
    const struct iovec local = { here, bytes };
    const struct iovec remote = { (void *)(uintptr_t)there, bytes };

    return how((pid_t)pid, &local, 1, &remote, 1, 0);
}

bool dt_cma_finds(const struct dt_hostshm_card *card)
{
    uint64_t found[2] = { 0 };

    return card->pid &&
           move(process_vm_readv, card->pid, found, card->at, sizeof found) == sizeof found &&
           memcmp(found, card->word, sizeof found) == 0;
}

static bool move_all(const struct dt_hostshm *h, transfer how, uint64_t pid, uint8_t *here,
                     uint64_t there, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = dt_hostshm_stopped(h, NULL)
                        ? -1
                        : move(how, pid, here + at, there + at, dt_least(bytes - at, PIECE));

        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

bool dt_cma_read(const struct dt_hostshm *h, const struct dt_hostshm_card *card, void *to,
                 uint64_t from, size_t bytes)
{
    return move_all(h, process_vm_readv, card->pid, to, from, bytes);
}

bool dt_cma_write(const struct dt_hostshm *h, const struct dt_hostshm_card *card, uint64_t to,
                  const void *from, size_t bytes)
{
    return move_all(h, process_vm_writev, card->pid, (void *)(uintptr_t)from, to, bytes);
}
