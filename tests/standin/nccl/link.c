#include "tests/standin/nccl/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/standin/standin.h"

enum { SEND_MS = 1000 }; /* how long a peer that accepts nothing may delay the end of a link */

struct hello {
    struct standin_place place;
    int size, rank;
};

enum kind { MEMBER, SLOT, WRITTEN, READ };

/* One changed value, with `bytes` of data. */
struct record {
    int kind, from, to;
    uint32_t bytes;
    uint64_t at; /* WRITTEN, READ: the position in the pipe */
};

/* The last state of each member and pipe that a side has sent. */
struct told { /* has no padding, for memcmp */
    int stage, lost;
    uint64_t met[STANDIN_REASONS], fills;
    uint64_t written, read; /* in the pipe to the connected member, and in the one from it */
};

struct standin_link {
    int socket;
    struct standin_shared *shared;
    int size, rank;  /* of the connected member */
    bool is_founder; /* sends what all other members write */
    _Atomic bool ending, ended;
    _Atomic uint32_t current; /* all changes up to this one have been sent */
    struct told *told;
    pthread_t writer, reader;
    struct standin_link *next; /* in the founder's list */
};

static pthread_mutex_t dti_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct standin_link *dti_served;

static bool speaks_for(const struct standin_link *link, int rank)
{
    return link->is_founder ? rank != link->rank : rank == link->rank;
}

/* ---- bytes ---- */

static bool send_all(struct standin_link *link, const void *from, size_t bytes)
{
    while (bytes) {
        ssize_t n = send(link->socket, from, bytes, MSG_NOSIGNAL);

        if (n < 0 && (errno == EINTR || (errno == EAGAIN && !atomic_load(&link->ending))))
            continue;
        if (n < 0)
            return false;
        from = (const char *)from + n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool receive_all(int socket, void *to, size_t bytes)
{
    while (bytes) {
        ssize_t n = recv(socket, to, bytes, MSG_WAITALL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        to = (char *)to + n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool send_record(struct standin_link *link, struct record record, const void *bytes)
{
    return send_all(link, &record, sizeof(record)) && send_all(link, bytes, record.bytes);
}

/* ---- telling ---- */

static bool tell_member(struct standin_link *link, int rank, bool *news)
{
    const struct standin_member *member = &link->shared->members[rank];
    struct told *told = &link->told[rank], now = *told;
    struct standin_member copy;

    now.lost = atomic_load(&member->lost);
    now.stage = atomic_load(&member->stage);
    for (int i = 0; i < STANDIN_REASONS; i++)
        now.met[i] = atomic_load(&member->met[i]);
    now.fills = atomic_load(&member->fills);
    if (memcmp(&now, told, sizeof(now)) == 0)
        return true;
    copy.said = member->said;
    if (now.fills != told->fills &&
        !send_record(link, (struct record){ SLOT, rank, 0, (uint32_t)copy.said.filled, 0 },
                     standin_slot(link->shared, link->size, rank)))
        return false;
    *told = now;
    *news = true;
    atomic_init(&copy.stage, now.stage);
    atomic_init(&copy.lost, now.lost);
    for (int i = 0; i < STANDIN_REASONS; i++)
        atomic_init(&copy.met[i], now.met[i]);
    atomic_init(&copy.fills, now.fills);
    return send_record(link, (struct record){ MEMBER, rank, 0, sizeof(copy), 0 }, &copy);
}

static bool tell_written(struct standin_link *link, int from, int to, uint64_t *told, bool *news)
{
    struct standin_pipe *pipe = standin_pipe(link->shared, link->size, from, to);
    uint64_t written = atomic_load(&pipe->written);
    char bytes[STANDIN_PIPE];
    size_t count = 0;

    while (*told + count < written) {
        bytes[count] = pipe->bytes[(*told + count) % STANDIN_PIPE];
        count++;
    }
    if (count == 0)
        return true;
    *told = written;
    *news = true;
    return send_record(link, (struct record){ WRITTEN, from, to, (uint32_t)count, written }, bytes);
}

static bool tell_read(struct standin_link *link, int from, int to, uint64_t *told, bool *news)
{
    uint64_t read = atomic_load(&standin_pipe(link->shared, link->size, from, to)->read);

    if (read == *told)
        return true;
    *told = read;
    *news = true;
    return send_record(link, (struct record){ READ, from, to, 0, read }, NULL);
}

/* Sends how far this side's members have come in the pipes to and from the connected member. */
static bool tell_pipes(struct standin_link *link, bool *news)
{
    for (int r = 0; r < link->size; r++) {
        int own = link->is_founder ? r : link->rank, other = link->is_founder ? link->rank : r;

        if (!speaks_for(link, own) || speaks_for(link, other))
            continue;
        if (!tell_written(link, own, other, &link->told[r].written, news) ||
            !tell_read(link, other, own, &link->told[r].read, news))
            return false;
    }
    return true;
}

static bool tell_all(struct standin_link *link, bool *news)
{
    *news = false;
    for (int r = 0; r < link->size; r++)
        if (speaks_for(link, r) && !tell_member(link, r, news))
            return false;
    return tell_pipes(link, news);
}

/* The members of a host see when another one ends. Those elsewhere have to be told. */
static void note_ends(struct standin_link *link)
{
    for (int r = 0; r < link->size; r++) {
        struct standin_member *member = &link->shared->members[r];

        if (speaks_for(link, r) && standin_has_died(member) &&
            member->said.machine == standin_host())
            atomic_store(&member->lost, true);
    }
}

static void *write_link(void *arg)
{
    struct standin_link *link = arg;
    bool news = true, ending = false, goes_on = true;
    uint32_t seen;

    while (goes_on && !ending) {
        ending = atomic_load(&link->ending);
        seen = standin_changes(link->shared);
        if (!news)
            note_ends(link);
        goes_on = tell_all(link, &news);
        atomic_store(&link->current, seen);
        if (goes_on && !news && !ending)
            standin_sleep(link->shared, seen);
    }
    atomic_store(&link->ended, true);
    shutdown(link->socket, SHUT_WR);
    return NULL;
}

static bool has_told(const struct standin_link *link, uint32_t change)
{
    return atomic_load(&link->ended) || (int32_t)(atomic_load(&link->current) - change) >= 0;
}

static bool all_have_told(const struct standin_shared *shared, uint32_t change)
{
    bool all = true;

    pthread_mutex_lock(&dti_mutex);
    for (const struct standin_link *link = dti_served; link; link = link->next)
        all = all && (link->shared->id != shared->id || has_told(link, change));
    pthread_mutex_unlock(&dti_mutex);
    return all;
}

void standin_flush(struct standin_shared *shared)
{
    uint32_t change = standin_changes(shared);

    while (!all_have_told(shared, change))
        usleep(100);
}

/* ---- hearing ---- */

static bool hear_member(struct standin_link *link, int rank)
{
    struct standin_member *member = &link->shared->members[rank], now;

    if (!receive_all(link->socket, &now, sizeof(now)))
        return false;
    member->said = now.said;
    /* A member fills its slot before it meets. A thread that passes this on to another host must
     * not see the meeting without the slot. */
    atomic_store(&member->fills, atomic_load(&now.fills));
    for (int i = 0; i < STANDIN_REASONS; i++)
        atomic_store(&member->met[i], atomic_load(&now.met[i]));
    /* A member meets before it fails, so its stage comes after its meetings. */
    atomic_store(&member->stage, atomic_load(&now.stage));
    atomic_store(&member->lost, atomic_load(&now.lost));
    return true;
}

static bool hear_written(struct standin_link *link, const struct record *record)
{
    struct standin_pipe *pipe = standin_pipe(link->shared, link->size, record->from, record->to);
    uint64_t at = record->at - record->bytes;
    char bytes[STANDIN_PIPE];

    if (!receive_all(link->socket, bytes, record->bytes))
        return false;
    for (uint32_t i = 0; i < record->bytes; i++)
        pipe->bytes[(at + i) % STANDIN_PIPE] = bytes[i];
    atomic_store(&pipe->written, record->at);
    return true;
}

static bool hear(struct standin_link *link)
{
    struct record record;

    if (!receive_all(link->socket, &record, sizeof(record)))
        return false;
    switch (record.kind) {
    case MEMBER:
        return hear_member(link, record.from);
    case SLOT:
        return receive_all(link->socket, standin_slot(link->shared, link->size, record.from),
                           record.bytes);
    case WRITTEN:
        return hear_written(link, &record);
    default:
        atomic_store(&standin_pipe(link->shared, link->size, record.from, record.to)->read,
                     record.at);
        return true;
    }
}

static void *read_link(void *arg)
{
    struct standin_link *link = arg;

    while (hear(link))
        standin_tell(link->shared);
    for (int r = 0; r < link->size; r++)
        if (!speaks_for(link, r))
            atomic_store(&link->shared->members[r].lost, true);
    standin_tell(link->shared);
    return NULL;
}

/* ---- links ---- */

static struct standin_link *new_link(int socket, struct standin_shared *shared,
                                     const struct hello *hello, bool is_founder)
{
    struct timeval most = { .tv_sec = SEND_MS / 1000 };
    struct standin_link *link = calloc(1, sizeof(*link));

    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    link->socket = socket;
    link->shared = shared;
    link->size = hello->size;
    link->rank = hello->rank;
    link->is_founder = is_founder;
    link->told = calloc((size_t)hello->size, sizeof(*link->told));
    pthread_create(&link->writer, NULL, write_link, link);
    return link;
}

void standin_link_end(struct standin_link *link)
{
    atomic_store(&link->ending, true);
    standin_tell(link->shared);
    pthread_join(link->writer, NULL);
    shutdown(link->socket, SHUT_RDWR);
    if (!link->is_founder)
        pthread_join(link->reader, NULL);
    close(link->socket);
    free(link->told);
    free(link);
}

static void add_served(struct standin_link *link)
{
    pthread_mutex_lock(&dti_mutex);
    link->next = dti_served;
    dti_served = link;
    pthread_mutex_unlock(&dti_mutex);
}

static void remove_served(struct standin_link *link)
{
    struct standin_link **at = &dti_served;

    pthread_mutex_lock(&dti_mutex);
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    pthread_mutex_unlock(&dti_mutex);
}

/* At the founder: the link lasts until the member ends it. */
static void *serve(void *arg)
{
    struct standin_shared *shared;
    struct standin_link *link;
    int socket = (int)(intptr_t)arg;
    struct hello hello;

    shared =
        receive_all(socket, &hello, sizeof(hello)) ? standin_join(&hello.place, hello.size) : NULL;
    if (!shared) {
        close(socket);
        return NULL;
    }
    link = new_link(socket, shared, &hello, true);
    add_served(link);
    read_link(link);
    remove_served(link);
    standin_link_end(link);
    standin_part(shared, hello.size);
    return NULL;
}

static void detach(void *(*run)(void *), int socket)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, (void *)(intptr_t)socket) == 0)
        pthread_detach(thread);
    else
        close(socket);
}

static void *accept_members(void *arg)
{
    int listener = (int)(intptr_t)arg, socket;

    while ((socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        detach(serve, socket);
    close(listener);
    return NULL;
}

/* Like NCCL, takes the address of the first network card that is up, else the loopback address. */
static struct in_addr own_address(void)
{
    struct in_addr address = { htonl(INADDR_LOOPBACK) };
    struct ifaddrs *all, *at;

    if (getifaddrs(&all))
        return address;
    for (at = all; at; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET ||
            (at->ifa_flags & (IFF_UP | IFF_LOOPBACK)) != IFF_UP)
            continue;
        address = ((struct sockaddr_in *)(void *)at->ifa_addr)->sin_addr;
        break;
    }
    freeifaddrs(all);
    return address;
}

void standin_listen(struct standin_place *place)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = own_address() };
    socklen_t length = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    place->listener = -1;
    if (listener < 0)
        return;
    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, SOMAXCONN) ||
        getsockname(listener, (struct sockaddr *)&at, &length)) {
        close(listener);
        return;
    }
    place->listener = listener;
    place->address = at.sin_addr.s_addr;
    place->port = at.sin_port;
    detach(accept_members, listener);
}

struct standin_shared *standin_link(struct standin_link **link, const struct standin_place *place,
                                    int size, int rank)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = place->address,
                              .sin_port = place->port };
    struct hello hello = { .place = *place, .size = size, .rank = rank };
    struct standin_shared *copy;
    int socket_;

    if (place->host == standin_host() || place->listener < 0)
        return NULL;
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    copy = standin_copy(place, size);
    if (socket_ < 0 || !copy || connect(socket_, (struct sockaddr *)&at, sizeof(at)) ||
        send(socket_, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello)) {
        if (copy)
            standin_part(copy, size);
        close(socket_);
        return NULL;
    }
    *link = new_link(socket_, copy, &hello, false);
    pthread_create(&(*link)->reader, NULL, read_link, *link);
    return copy;
}
