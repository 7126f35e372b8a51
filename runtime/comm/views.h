/* The table of views: handles (dt_comm_t) for a communicator and a stream (api/view.h). Their bit
 * 62 is set, which no communicator's handle has. For any thread. */
#ifndef DT_COMM_VIEWS_H
#define DT_COMM_VIEWS_H

#include <stdbool.h>

#include "runtime/dtrun.h"

enum { DT_VIEWS = 4096 };

/* Makes a handle for a view of that communicator. NULL: there are DT_VIEWS of them. */
dt_comm_t *dt_views_add(dt_comm_t *comm, void *view);
void dt_views_remove(const dt_comm_t *handle);
/* NULL: no existing view has this handle. */
void *dt_views_find(const dt_comm_t *handle);
/* The handle of any existing view; NULL: there is none. */
dt_comm_t *dt_views_any(void);

/* Enclose each call that uses or makes a view: dt_finalize is refused meanwhile. */
void dt_views_enter(void);
void dt_views_leave(void);
bool dt_views_are_used(void);

/* Whether the handle names a view that exists or has existed. */
bool dt_views_have_issued(const dt_comm_t *handle);
/* The communicator of a view. Returns any other handle unchanged. */
dt_comm_t *dt_views_comm(const dt_comm_t *handle);

#endif
