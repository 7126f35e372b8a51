#include "tests/standin/nccl/shared.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/standin/nccl/link.h"
#include "tests/standin/standin.h"

static size_t slots_at(int size)
{
    size_t end = sizeof(struct standin_shared) + (size_t)size * sizeof(struct standin_member);

    return (end + 4095) & ~(size_t)4095;
}

static size_t pipes_at(int size)
{
    return slots_at(size) + (size_t)size * STANDIN_SLOT;
}

static size_t whole(int size)
{
    return pipes_at(size) + (size_t)size * (size_t)size * sizeof(struct standin_pipe);
}

bool standin_found(struct standin_place *place)
{
    place->host = standin_host();
    place->process = getpid();
    place->file = memfd_create("standin-nccl", MFD_CLOEXEC);
    if (place->file < 0 || getrandom(&place->id, sizeof(place->id), 0) != sizeof(place->id))
        return false;
    if (pwrite(place->file, &place->id, sizeof(place->id), 0) != sizeof(place->id))
        return false;
    standin_listen(place);
    return true;
}

/* Writing a byte behind the end makes the file longer and never shorter. That is needed since
 * members may disagree on their number; they find out when they compare what they say. */
static bool make_room(int file, size_t size)
{
    return pwrite(file, "", 1, (off_t)size) == 1;
}

struct standin_shared *standin_join(const struct standin_place *place, int size)
{
    struct standin_shared *shared = MAP_FAILED;
    char path[64];
    int file;

    if (place->host != standin_host())
        return NULL;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->process, place->file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL;
    if (make_room(file, whole(size)))
        shared = mmap(NULL, whole(size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED)
        return NULL;
    if (shared->id != place->id) {
        standin_part(shared, size);
        return NULL;
    }
    return shared;
}

void standin_part(struct standin_shared *shared, int size)
{
    munmap(shared, whole(size));
}

struct standin_shared *standin_copy(const struct standin_place *place, int size)
{
    struct standin_shared *copy =
        mmap(NULL, whole(size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED)
        return NULL;
    copy->id = place->id;
    return copy;
}

/* The descriptor's number may belong to another file by now, so the id is checked again. */
void standin_forget_place(const struct standin_place *place)
{
    unsigned long long id;

    if (place->host != standin_host() || place->process != getpid() ||
        pread(place->file, &id, sizeof(id), 0) != sizeof(id) || id != place->id)
        return;
    close(place->file);
    if (place->listener >= 0)
        shutdown(place->listener, SHUT_RDWR);
}

char *standin_slot(struct standin_shared *shared, int size, int rank)
{
    return (char *)shared + slots_at(size) + (size_t)rank * STANDIN_SLOT;
}

struct standin_pipe *standin_pipe(struct standin_shared *shared, int size, int from, int to)
{
    struct standin_pipe *pipes = (void *)((char *)shared + pipes_at(size));

    return &pipes[from * size + to];
}

uint32_t standin_changes(struct standin_shared *shared)
{
    return atomic_load(&shared->changes);
}

void standin_tell(struct standin_shared *shared)
{
    atomic_fetch_add(&shared->changes, 1);
    syscall(SYS_futex, &shared->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void standin_sleep(struct standin_shared *shared, uint32_t seen)
{
    struct timespec most = { .tv_nsec = 10 * 1000 * 1000 };

    syscall(SYS_futex, &shared->changes, FUTEX_WAIT, seen, &most, NULL, 0);
}

static bool has_ended(int process)
{
    char path[32], text[512];
    const char *after;
    ssize_t length;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/stat", process);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return true;
    length = read(file, text, sizeof(text) - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    after = strrchr(text, ')');
    return !after || after[2] == 'Z' || after[2] == 'X';
}

bool standin_is_own(const struct standin_member *member)
{
    return member->said.machine == standin_host() && member->said.process == getpid();
}

bool standin_has_ended(const struct standin_member *member)
{
    if (member->said.machine == standin_host())
        return has_ended(member->said.process);
    return atomic_load(&member->lost);
}

/* A member may leave and then end, so its stage is asked again once its end is seen. */
bool standin_has_died(const struct standin_member *member)
{
    return atomic_load(&member->stage) == STANDIN_PRESENT && !standin_is_own(member) &&
           standin_has_ended(member) && atomic_load(&member->stage) == STANDIN_PRESENT;
}
