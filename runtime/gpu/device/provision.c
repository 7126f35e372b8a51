#include "runtime/gpu/device/provision.h"

#include <pthread.h>
#include <stddef.h>

#include "runtime/comm/comm.h"
#include "runtime/gpu/device/wait.h"

static struct {
    pthread_mutex_t mutex;
    unsigned asking;    /* the number of threads that ask the driver */
    unsigned forbidden; /* the number of calls that forbid it */
} dti_provision = { .mutex = PTHREAD_MUTEX_INITIALIZER };

bool dt_gpu_provision_begin(void)
{
    bool allowed;

    pthread_mutex_lock(&dti_provision.mutex);
    allowed = !dti_provision.forbidden;
    dti_provision.asking += allowed;
    pthread_mutex_unlock(&dti_provision.mutex);
    return allowed;
}

void dt_gpu_provision_end(void)
{
    pthread_mutex_lock(&dti_provision.mutex);
    dti_provision.asking--;
    pthread_mutex_unlock(&dti_provision.mutex);
}

/* Returns whether no thread asks. */
static bool forbid(unsigned calls)
{
    bool quiet;

    pthread_mutex_lock(&dti_provision.mutex);
    dti_provision.forbidden += calls;
    quiet = !dti_provision.asking;
    pthread_mutex_unlock(&dti_provision.mutex);
    return quiet;
}

/* Forbids before it waits, so that no thread begins to ask meanwhile. */
void dt_gpu_provision_forbid(const struct dt_comm *c)
{
    bool quiet = forbid(1);

    for (unsigned turn = 0; !quiet && !dt_comm_stopped(c, NULL); turn++) {
        dt_gpu_pause(turn);
        quiet = forbid(0);
    }
}

void dt_gpu_provision_allow(void)
{
    pthread_mutex_lock(&dti_provision.mutex);
    dti_provision.forbidden--;
    pthread_mutex_unlock(&dti_provision.mutex);
}
