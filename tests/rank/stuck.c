/* Ranks that wait half a second for messages that never come, and print what their call returned.
 * With the argument "any" they wait for either of two receives. */
#include <stdio.h>
#include <string.h>

#include "runtime/dtrun.h"

static dt_result_t wait_for_any(void)
{
    int32_t a, b;
    dt_request_t requests[2];
    int peer = (dt_rank() + 1) % dt_size();
    size_t index;
    dt_result_t r = dt_irecv(DT_WORLD, &a, 1, DT_I32, peer, &requests[0]);

    if (r == DT_OK)
        r = dt_irecv(DT_WORLD, &b, 1, DT_I32, peer, &requests[1]);
    return r == DT_OK ? dt_wait_any(requests, 2, &index) : r;
}

int main(int argc, char **argv)
{
    dt_result_t r = dt_init();

    if (r == DT_OK)
        r = dt_comm_set_timeout(DT_WORLD, 0.5);
    if (r == DT_OK && argc > 1 && strcmp(argv[1], "any") == 0)
        r = wait_for_any();
    printf("rank %d: %s\n", dt_rank(), dt_strerror(r));
    if (r != DT_OK)
        fprintf(stderr, "%s\n", dt_last_error());
    return r == DT_OK ? 0 : 1;
}
