#include "runtime/tcp/silence.h"

#include <netinet/in.h>
#include <sys/socket.h>

bool dt_silence_continues(int64_t *since, const struct tcp_info *info, int64_t now)
{
    bool tries_again = info->tcpi_retransmits > 0 || info->tcpi_probes > 0;
    int64_t heard = now - (int64_t)info->tcpi_last_ack_recv;

    if (!tries_again)
        *since = 0;
    else if (*since == 0 || heard > *since)
        *since = now;
    return *since && now - *since >= DT_SILENCE_S * 1000;
}

bool dt_silence_is_long(int64_t *since, int fd, int64_t now)
{
    struct tcp_info info = { 0 };
    socklen_t size = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           dt_silence_continues(since, &info, now);
}
