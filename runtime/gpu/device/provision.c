#include "runtime/gpu/device/provision.h"

#include <pthread.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t asked; /* asking has become 0 */
    unsigned asking;      /* the number of threads that ask the driver */
    unsigned forbidden;   /* the number of calls that forbid it */
} dti_provision = { .mutex = PTHREAD_MUTEX_INITIALIZER, .asked = PTHREAD_COND_INITIALIZER };

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
    if (--dti_provision.asking == 0)
        pthread_cond_broadcast(&dti_provision.asked);
    pthread_mutex_unlock(&dti_provision.mutex);
}

void dt_gpu_provision_forbid(void)
{
    pthread_mutex_lock(&dti_provision.mutex);
    while (dti_provision.asking)
        pthread_cond_wait(&dti_provision.asked, &dti_provision.mutex);
    dti_provision.forbidden++;
    pthread_mutex_unlock(&dti_provision.mutex);
}

void dt_gpu_provision_allow(void)
{
    pthread_mutex_lock(&dti_provision.mutex);
    dti_provision.forbidden--;
    pthread_mutex_unlock(&dti_provision.mutex);
}
