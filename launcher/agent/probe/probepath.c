#include "launcher/agent/probe/probepath.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "launcher/base/clock.h"

enum {
    BULK_MS =
        5000, /* without any progress; the host waits longer, because the caller is to judge */
};

void dt_probepath_call(struct dt_probepath *w, int fd, const struct dt_auth *auth)
{
    w->calling = true;
    dt_handshake_call(&w->shake, fd, auth);
}

void dt_probepath_host(struct dt_probepath *w, int fd)
{
    dt_handshake_host(&w->shake, fd);
}

bool dt_probepath_is_sending(const struct dt_probepath *w)
{
    if (w->phase == DT_PATH_SHAKING)
        return w->shake.sending;
    return w->phase == (w->calling ? DT_PATH_THERE : DT_PATH_BACK) ||
           (w->phase == DT_PATH_RECEIPT && !w->calling);
}

bool dt_probepath_is_shaking(const struct dt_probepath *w)
{
    return w->phase == DT_PATH_SHAKING && dt_handshake_is_connected(&w->shake);
}

static void be_patient(struct dt_probepath *w)
{
    w->deadline_ns = dt_now_ns() + (w->calling ? 1 : 2) * BULK_MS * UINT64_C(1000000);
}

static void enter(struct dt_probepath *w, uint32_t bytes)
{
    w->phase++;
    w->left = w->phase == DT_PATH_RECEIPT || w->phase == DT_PATH_LEAVING ? 1 : bytes;
    be_patient(w);
    if (w->phase == DT_PATH_THERE)
        w->began_ns = dt_now_ns();
    if (w->phase == DT_PATH_BACK)
        w->bulk_ns = dt_now_ns() - w->began_ns;
    if (w->phase == DT_PATH_LEAVING)
        w->both_ns = dt_now_ns() - w->began_ns;
}

/* Moves bytes of arbitrary value in the direction of the phase. */
static enum dt_verdict move(struct dt_probepath *w)
{
    static char room[64 * 1024];

    while (w->left > 0) {
        size_t size = w->left < sizeof room ? w->left : sizeof room;
        ssize_t n = dt_probepath_is_sending(w) ? send(w->shake.fd, room, size, MSG_NOSIGNAL)
                                               : recv(w->shake.fd, room, size, 0);

        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? DT_SHAKE_PENDING : DT_SHAKE_FAILED;
        if (n == 0) {
            errno = ECONNRESET;
            return DT_SHAKE_FAILED;
        }
        w->left -= (uint32_t)n;
        be_patient(w);
    }
    return DT_SHAKE_THROUGH;
}

static enum dt_verdict shake(struct dt_probepath *w, const struct dt_auth *auth)
{
    return w->calling ? dt_handshake_calling(&w->shake, auth)
                      : dt_handshake_hosting(&w->shake, auth);
}

enum dt_verdict dt_probepath_step(struct dt_probepath *w, const struct dt_auth *auth,
                                  uint32_t bytes)
{
    enum dt_verdict verdict = DT_SHAKE_THROUGH;

    while (verdict == DT_SHAKE_THROUGH &&
           w->phase != (w->calling ? DT_PATH_LEAVING : DT_PATH_LEFT)) {
        verdict = w->phase == DT_PATH_SHAKING ? shake(w, auth) : move(w);
        if (verdict == DT_SHAKE_THROUGH)
            enter(w, bytes);
    }
    return verdict;
}

bool dt_probepath_has_arrived(const struct dt_probepath *w)
{
    int left = -1;

    return w->phase == DT_PATH_RECEIPT && ioctl(w->shake.fd, SIOCOUTQ, &left) == 0 && left == 0;
}

enum dt_reach_state dt_probepath_failure(const struct dt_probepath *w, int error)
{
    if (w->phase == DT_PATH_SHAKING && error == EACCES)
        return DT_REACH_STRANGER;
    if (w->phase == DT_PATH_SHAKING)
        return dt_handshake_is_connected(&w->shake) ? DT_REACH_SILENT : DT_REACH_CONNECT;
    if (error == ETIMEDOUT && dt_probepath_has_arrived(w))
        return DT_REACH_SILENT;
    return w->phase == DT_PATH_BACK ? DT_REACH_LOST_HERE : DT_REACH_LOST_THERE;
}
