/* dtrun.h: the library that training programs link.  See dtrun(3). */
#ifndef DTRUN_H
#define DTRUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_VERSION_MAJOR 0
#define DT_VERSION_MINOR 1
#define DT_VERSION_PATCH 0

#if defined(__GNUC__)
#define DT_API __attribute__((visibility("default")))
#else
#define DT_API
#endif

typedef enum dt_result {
    DT_OK = 0,
    DT_ERR_ARG = -1,      /* an argument is wrong; the call had no effect */
    DT_ERR_STATE = -2,    /* called before dt_init, after dt_finalize, or twice */
    DT_ERR_MISMATCH = -3, /* ranks made different calls */
    DT_ERR_PEER = -4,     /* a rank died or left; the job cannot go on in this generation */
    DT_ERR_TIMEOUT = -5,
    DT_ERR_IO = -6, /* a file or socket failed; dt_last_error tells which */
    DT_ERR_NOMEM = -7,
    DT_ERR_UNSUPPORTED = -8,
    DT_ERR_VERSION = -9, /* library and agent do not fit each other */
    DT_ERR_CUDA = -10,
    DT_ERR_NCCL = -11,
    DT_ERR_INTERNAL = -12
} dt_result_t;

typedef enum dt_dtype { DT_I32 = 4, DT_I64 = 6, DT_F32 = 10, DT_F64 = 11 } dt_dtype_t;

typedef enum dt_op { DT_SUM = 0, DT_PROD = 1, DT_MIN = 2, DT_MAX = 3, DT_AVG = 4 } dt_op_t;

typedef struct dt_comm dt_comm_t;

#define DT_WORLD    ((dt_comm_t *)0)   /* the communicator of all ranks */
#define DT_IN_PLACE ((const void *)-1) /* as "in": the input stands in "out" */

DT_API dt_result_t dt_init(void);
DT_API dt_result_t dt_finalize(void);

DT_API int dt_rank(void);
DT_API int dt_size(void);
DT_API int dt_local_rank(void);
DT_API int dt_local_size(void);
DT_API int dt_generation(void);

DT_API void dt_step(int64_t step);

DT_API dt_result_t dt_all_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                                 dt_dtype_t dtype, dt_op_t op);
DT_API dt_result_t dt_broadcast(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype,
                                int root);
DT_API dt_result_t dt_barrier(dt_comm_t *comm);

/* Checkpoints: register each buffer once under a name, in the same order on every rank. */
DT_API dt_result_t dt_checkpoint_register(const char *name, void *buf, size_t bytes);
/* Collective. Commits the registered buffers as "step"; returns DT_OK on all ranks or on none. */
DT_API dt_result_t dt_checkpoint_save(int64_t step);
/* Collective. Fills the registered buffers from the newest complete checkpoint and stores its step,
 * or stores -1 and leaves the buffers alone when there is none. */
DT_API dt_result_t dt_checkpoint_restore(int64_t *step);

DT_API const char *dt_strerror(dt_result_t result);
/* What went wrong in this thread's last failing call, in a sentence; "" when nothing has. */
DT_API const char *dt_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
