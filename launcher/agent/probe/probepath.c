#include "launcher/agent/probe/probepath.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "launcher/base/clock.h"

/* How long the data may make no progress. The host waits twice as long, so that the caller notices
 * first and reports it. */
enum { STALL_MS = 5000 };

void dt_probepath_call(struct dt_probepath *p, int fd, const struct dt_auth *auth)
{
    p->calling = true;
    dt_handshake_call(&p->shake, fd, auth);
}

void dt_probepath_host(struct dt_probepath *p, int fd)
{
    dt_handshake_host(&p->shake, fd);
}

bool dt_probepath_is_sending(const struct dt_probepath *p)
{
    if (p->phase == DT_PATH_SHAKING)
        return p->shake.sending;
    return p->phase == (p->calling ? DT_PATH_THERE : DT_PATH_BACK) ||
           (p->phase == DT_PATH_RECEIPT && !p->calling);
}

bool dt_probepath_is_shaking(const struct dt_probepath *p)
{
    return p->phase == DT_PATH_SHAKING && dt_handshake_is_connected(&p->shake);
}

static void postpone_deadline(struct dt_probepath *p)
{
    p->deadline_ns = dt_now_ns() + (p->calling ? 1 : 2) * STALL_MS * UINT64_C(1000000);
}

static void enter_next_phase(struct dt_probepath *p, uint32_t bytes)
{
    p->phase++;
    p->left = p->phase == DT_PATH_RECEIPT || p->phase == DT_PATH_LEAVING ? 1 : bytes;
    postpone_deadline(p);
    if (p->phase == DT_PATH_THERE)
        p->began_ns = dt_now_ns();
    if (p->phase == DT_PATH_BACK)
        p->bulk_ns = dt_now_ns() - p->began_ns;
    if (p->phase == DT_PATH_LEAVING)
        p->both_ns = dt_now_ns() - p->began_ns;
}

/* Sends or receives the bytes of this phase. Their value does not matter. */
static enum dt_verdict move_bytes(struct dt_probepath *p)
{
    static char buf[64 * 1024];

    while (p->left > 0) {
        size_t size = p->left < sizeof buf ? p->left : sizeof buf;
        ssize_t n = dt_probepath_is_sending(p) ? send(p->shake.fd, buf, size, MSG_NOSIGNAL)
                                               : recv(p->shake.fd, buf, size, 0);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? DT_SHAKE_PENDING : DT_SHAKE_FAILED;
        if (n == 0) {
            errno = ECONNRESET;
            return DT_SHAKE_FAILED;
        }
        p->left -= (uint32_t)n;
        postpone_deadline(p);
    }
    return DT_SHAKE_THROUGH;
}

static enum dt_verdict shake(struct dt_probepath *p, const struct dt_auth *auth)
{
    return p->calling ? dt_handshake_calling(&p->shake, auth)
                      : dt_handshake_hosting(&p->shake, auth);
}

enum dt_verdict dt_probepath_step(struct dt_probepath *p, const struct dt_auth *auth,
                                  uint32_t bytes)
{
    enum dt_verdict verdict = DT_SHAKE_THROUGH;

    while (verdict == DT_SHAKE_THROUGH &&
           p->phase != (p->calling ? DT_PATH_LEAVING : DT_PATH_LEFT)) {
        verdict = p->phase == DT_PATH_SHAKING ? shake(p, auth) : move_bytes(p);
        if (verdict == DT_SHAKE_THROUGH)
            enter_next_phase(p, bytes);
    }
    return verdict;
}

bool dt_probepath_has_arrived(const struct dt_probepath *p)
{
    int left = -1;

    return p->phase == DT_PATH_RECEIPT && ioctl(p->shake.fd, SIOCOUTQ, &left) == 0 && left == 0;
}

enum dt_reach_state dt_probepath_failure(const struct dt_probepath *p, int error)
{
    if (p->phase == DT_PATH_SHAKING && error == EACCES)
        return DT_REACH_STRANGER;
    if (p->phase == DT_PATH_SHAKING)
        return dt_handshake_is_connected(&p->shake) ? DT_REACH_SILENT : DT_REACH_CONNECT;
    if (error == ETIMEDOUT && dt_probepath_has_arrived(p))
        return DT_REACH_SILENT;
    return p->phase == DT_PATH_BACK ? DT_REACH_LOST_HERE : DT_REACH_LOST_THERE;
}
