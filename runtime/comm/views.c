#include "runtime/comm/views.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define MARK ((uintptr_t)1 << 62) /* the top two bits of a view's handle are 01 */

struct entry {
    dt_comm_t *handle; /* NULL: free */
    dt_comm_t *comm;
    void *view;
};

static struct {
    pthread_mutex_t mutex;
    _Atomic uint32_t users; /* threads in calls on views */
    _Atomic uintptr_t made; /* number of views made so far, which makes every handle unique */
    struct entry all[DT_VIEWS];
} dti_views = { .mutex = PTHREAD_MUTEX_INITIALIZER };

bool dt_views_have_issued(const dt_comm_t *handle)
{
    uintptr_t number = ((uintptr_t)handle & ~MARK) / DT_VIEWS;

    return (uintptr_t)handle >> 62 == MARK >> 62 && number > 0 && number <= dti_views.made;
}

void dt_views_enter(void)
{
    atomic_fetch_add(&dti_views.users, 1);
}

void dt_views_leave(void)
{
    atomic_fetch_sub(&dti_views.users, 1);
}

bool dt_views_are_used(void)
{
    return atomic_load(&dti_views.users);
}

dt_comm_t *dt_views_add(dt_comm_t *comm, void *view)
{
    dt_comm_t *handle = NULL;
    uintptr_t i = 0;

    pthread_mutex_lock(&dti_views.mutex);
    while (i < DT_VIEWS && dti_views.all[i].handle)
        i++;
    if (i < DT_VIEWS) {
        handle = (dt_comm_t *)((MARK | i) + ++dti_views.made * DT_VIEWS);
        dti_views.all[i] = (struct entry){ handle, comm, view };
    }
    pthread_mutex_unlock(&dti_views.mutex);
    return handle;
}

static struct entry look(const dt_comm_t *handle)
{
    struct entry e = { 0 };

    if (!dt_views_have_issued(handle))
        return e;
    pthread_mutex_lock(&dti_views.mutex);
    if (dti_views.all[(uintptr_t)handle % DT_VIEWS].handle == handle)
        e = dti_views.all[(uintptr_t)handle % DT_VIEWS];
    pthread_mutex_unlock(&dti_views.mutex);
    return e;
}

void *dt_views_find(const dt_comm_t *handle)
{
    return look(handle).view;
}

dt_comm_t *dt_views_comm(const dt_comm_t *handle)
{
    struct entry e = look(handle);

    return e.handle ? e.comm : (dt_comm_t *)(uintptr_t)handle;
}

void dt_views_remove(const dt_comm_t *handle)
{
    pthread_mutex_lock(&dti_views.mutex);
    dti_views.all[(uintptr_t)handle % DT_VIEWS] = (struct entry){ 0 };
    pthread_mutex_unlock(&dti_views.mutex);
}

dt_comm_t *dt_views_any(void)
{
    dt_comm_t *any = NULL;

    pthread_mutex_lock(&dti_views.mutex);
    for (size_t i = 0; i < DT_VIEWS && !any; i++)
        any = dti_views.all[i].handle;
    pthread_mutex_unlock(&dti_views.mutex);
    return any;
}
