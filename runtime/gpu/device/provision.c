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

static void add(unsigned *counter, int n)
{
    pthread_mutex_lock(&dti_provision.mutex);
    *counter += (unsigned)n;
    pthread_mutex_unlock(&dti_provision.mutex);
}

void dt_gpu_provision_end(void)
{
    add(&dti_provision.asking, -1);
}

static bool is_asked(void)
{
    bool asked;

    pthread_mutex_lock(&dti_provision.mutex);
    asked = dti_provision.asking;
    pthread_mutex_unlock(&dti_provision.mutex);
    return asked;
}

/* Forbids before it waits, so that no thread begins to ask meanwhile. */
void dt_gpu_provision_forbid(const struct dt_comm *c)
{
    add(&dti_provision.forbidden, 1);
    for (unsigned turn = 0; is_asked() && !dt_comm_stopped(c); turn++)
        dt_gpu_pause(turn);
}

void dt_gpu_provision_allow(void)
{
    add(&dti_provision.forbidden, -1);
}
