/* The event loop of dtrun. */
#ifndef DT_SESSION_LOOP_H
#define DT_SESSION_LOOP_H

#include <uv.h>

enum { DT_LOOP_SIGNALS_MAX = 6 };

struct dt_loop_signals {
    uv_signal_t v[DT_LOOP_SIGNALS_MAX];
    unsigned n;
};

/* If no loop can be created, ends the process with a message: nothing has been started yet. */
void dt_loop_open(uv_loop_t *loop);

/* From now on calls on_signal, with data in its handle, for each of these n signals. HUP, INT and
 * TSTP stay ignored if dtrun's parent ignores them: HUP under nohup, INT in the background of a
 * script (Ctrl-C is meant for the foreground), TSTP under a shell without job control. */
void dt_loop_watch_signals(struct dt_loop_signals *signals, uv_loop_t *loop, const int *signos,
                           unsigned n, uv_signal_cb on_signal, void *data);
/* From now on these signals alone do not keep the loop running. */
void dt_loop_release_signals(struct dt_loop_signals *signals);
void dt_loop_close_signals(struct dt_loop_signals *signals);

#endif
