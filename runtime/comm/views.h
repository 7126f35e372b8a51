/* The table of views: handles (dt_comm_t) that stand for a communicator as a stream sees it
 * (api/view.h). They differ from those of communicators, which have no bits so high. For any
 * thread.
 */
#ifndef DT_COMM_VIEWS_H
#define DT_COMM_VIEWS_H

#include <stdbool.h>

#include "runtime/dtrun.h"

enum { DT_VIEWS = 4096 };

/* A handle for a view of that communicator; NULL: there are DT_VIEWS of them. */
dt_comm_t *dt_views_add(dt_comm_t *comm, void *view);
void dt_views_remove(const dt_comm_t *handle);
/* NULL: it is the handle of no view that there is. */
void *dt_views_find(const dt_comm_t *handle);
/* Any that there is; NULL: there is none. */
dt_comm_t *dt_views_any(void);

/* Around each call that uses a view, or makes one: dt_finalize is refused meanwhile. */
void dt_views_enter(void);
void dt_views_leave(void);
bool dt_views_are_used(void);

/* Whether a handle is, or was, that of a view. */
bool dt_views_ever(const dt_comm_t *handle);
/* The communicator of a view; a handle that is of no view there is stays what it is. */
dt_comm_t *dt_views_comm(const dt_comm_t *handle);

#endif
