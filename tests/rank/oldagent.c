/* Takes the place of a dtrun-agent of another version: sends HELLO and waits until it is told to
 * end. */
#include <unistd.h>

#include "runtime/wire/msg.h"

int main(void)
{
    struct dt_put out = { 0 };
    char byte;

    dt_put_bytes(&out, "DTRUN-AGENT 1\n", 14);
    dt_msg_frame(&out, DT_MSG_HELLO,
                 &(struct dt_msg_hello){ .protocol = DT_PROTOCOL,
                                         .version = (char *)"0.0.1",
                                         .identity = (char *)"",
                                         .hostname = (char *)"old",
                                         .addr = (char *)"",
                                         .peer_addr = (char *)"" });
    if (out.failed || write(STDOUT_FILENO, out.data, out.len) != (ssize_t)out.len)
        return 1;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    dt_put_free(&out);
    return 0;
}
