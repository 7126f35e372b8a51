/* Shared by the parts of the stand-in for libcuda.so.1. One lock guards all their state. */
#ifndef TESTS_STANDIN_DRIVER_H
#define TESTS_STANDIN_DRIVER_H

#include <pthread.h>

#include "tests/standin/standin.h"

enum { STANDIN_MOST_DEVICES = 16, STANDIN_MOST_CONNECTIONS = 32 };

struct handle; /* memory that can be mapped */
struct mark;   /* becomes done when a piece of a stream's work is done */

struct CUctx_st {
    CUcontext next;
    CUdevice device;
    unsigned long life; /* unique, even among contexts that had this address before */
    unsigned retained;  /* the number of retains, for a primary context */
    bool primary;
    _Atomic bool faulted;
    CUstream streams;                                   /* includes the legacy default stream */
    unsigned high_streams;                              /* how many of them have a priority */
    struct mark *queued_last[STANDIN_MOST_CONNECTIONS]; /* in each hardware queue of these */
};

struct CUstream_st {
    CUstream next;
    CUcontext context;
    CUstream kind; /* CU_STREAM_LEGACY, CU_STREAM_PER_THREAD (owner's) or NULL (created) */
    pthread_t owner;
    unsigned flags;
    int priority;
    unsigned number; /* among the context's streams that have a priority */
    struct work *first, **end;
    long queued;
    pthread_cond_t wake; /* its thread has work, or is to end */
    struct mark *last;
    bool has_thread, destroyed;
    CUstreamCaptureStatus capture;
    CUstreamCaptureMode capture_mode;
    pthread_t capturer;
};

extern pthread_mutex_t standin_mutex;
extern pthread_cond_t standin_changed; /* work is done, or a queue has room */

/* devices.c: whether the calling thread may call the driver (after cuInit, not after a fork, not in
 * a host function). */
CUresult standin_ready(void);
void standin_in_host_function(bool inside);
/* The error that STANDIN_REFUSES, such as "cuMemMap:801,cuModuleLoadData:221", gives a function. */
CUresult standin_refused(const char *function);
bool standin_device_exists(CUdevice device);

/* contexts.c: sets the context even if the result is the error of a fault. */
CUresult standin_current(CUcontext *context);
CUresult standin_fault_of(CUcontext context);
/* Ends the program if the context or stream that the caller uses is gone: `life` is the life of the
 * context in which `what` was made. */
void standin_need_life_locked(CUcontext context, unsigned long life, const char *what);
void standin_need_stream_locked(CUstream stream);

/* streams.c; the caller of a _locked function holds the lock. */
CUresult standin_stream_locked(CUstream handle, CUstream *stream);
/* Returns CUDA_ERROR_INVALID_HANDLE if the stream belongs to another context. */
CUresult standin_check_place(CUstream handle, CUcontext context);
CUresult standin_put_locked(CUstream stream, struct mark *after, CUhostFn function, void *data,
                            struct mark **done);
bool standin_done_locked(const struct mark *mark);
double standin_time_locked(const struct mark *mark);
struct mark *standin_keep_locked(struct mark *mark);
void standin_drop_locked(struct mark *mark);
void standin_await_locked(struct mark *mark);
void standin_await_context_locked(CUcontext context);
/* If STANDIN_STERN is set, waits for all work of the current context. */
void standin_await_stern(void);
/* The same, if STANDIN_STERN or STANDIN_LAZY is set: a kernel is loaded. */
void standin_await_load(void);
/* Waits while another thread waits for room in a stream's queue. */
void standin_await_jam_locked(void);
CUstream standin_new_stream_locked(CUcontext context, CUstream kind, unsigned flags, int priority);
void standin_end_stream_locked(CUstream stream);
CUresult standin_sync(CUstream handle);

/* fold.c */
extern const struct standin_kernel standin_fold;

/* capture.c: whether this thread may make a call that captures forbid. If not, invalidates the
 * capture. */
CUresult standin_unsafe_locked(void);
CUresult standin_implicit_locked(CUstream stream);

/* memory.c */
enum standin_kind { STANDIN_DEVICE, STANDIN_MAPPED, STANDIN_MANAGED, STANDIN_HOST, STANDIN_PINNED };

struct block {
    struct block *next;
    char *base, *view;
    size_t size;
    enum standin_kind kind;
    int file;              /* -1 if the memory has none */
    struct handle *handle; /* of mapped memory */
    bool imported, accessible;
    bool pooled; /* allocated in stream order, so that it belongs to no context */
    CUcontext context;
    CUdevice device;
    unsigned long long id;
};

/* The allocation that holds all of [ptr, ptr + size), or NULL. */
struct block *standin_block_locked(CUdeviceptr ptr, size_t size);
struct block *standin_add_locked(struct block block);
void standin_forget_locked(struct block *block);
/* Unmaps the host memory that was pinned in the context, and forgets what was registered there. */
void standin_end_pinned_locked(CUcontext context);
/* Maps a file twice: at base (NULL: anywhere), which the host must not touch, and as the view. */
CUresult standin_map(int file, size_t offset, size_t size, void *base, struct block *block);

#endif
