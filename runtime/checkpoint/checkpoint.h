/* What dt_finalize and fork do about checkpoints. */
#ifndef DT_CHECKPOINT_CHECKPOINT_H
#define DT_CHECKPOINT_CHECKPOINT_H

/* Gives the checkpoint directory back: another job may use it. */
void dt_checkpoint_end(void);
/* In a child process: it keeps nothing that is its parent's. */
void dt_checkpoint_forked(void);

#endif
