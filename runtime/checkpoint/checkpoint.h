/* The parts of dt_finalize and fork that concern checkpoints. */
#ifndef DT_CHECKPOINT_CHECKPOINT_H
#define DT_CHECKPOINT_CHECKPOINT_H

/* Releases the checkpoint directory for other jobs. */
void dt_checkpoint_end(void);
/* In a child process: drops everything that belongs to the parent. */
void dt_checkpoint_forked(void);

#endif
