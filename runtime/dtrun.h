/* dtrun.h: the library that training programs link.  dtrun(3) tells the same at more length.
 *
 * A program calls dt_init, then collectives, which every rank must call in the same order with the
 * same count, type, operation and root, and dt_finalize at the end. Started by hand it is a job of
 * one rank. The library never exits, aborts or prints.
 *
 * Threads: any may make any call, dt_init and dt_finalize once in all. These rules hold:
 *  - Collective calls on one communicator (those that make and free communicators, dt_mem_alloc,
 *    dt_join among them) run one after another, in the order in which threads made
 *    them, which must be the same on all ranks. Checkpoint calls count as calls on DT_WORLD. Calls
 *    on different communicators run beside each other.
 *  - Calls between two ranks have an order of their own for each peer and direction, and run beside
 *    each other and beside collectives.
 *  - Calls in the background stand in these orders as made by the thread that asked for them. Any
 *    thread may wait for a request or test it; one at a time, though, for one request.
 *  - A bucket is for one thread at a time; several threads may have one each. So is a communicator
 *    that has views, together with these (dt_comm_on_stream).
 *  - dt_comm_abort, dt_comm_set_timeout, dt_comm_status, _rank and _size, dt_mem_free,
 * dt_recorder_dump, and what tells numbers and texts are for any thread at any time, whatever
 * others are inside of.
 *  - dt_last_error and dt_last_error_info tell of the calling thread's calls alone.
 *  - dt_step is for one thread. dt_finalize fails while another thread is inside a call; once it
 *    waits for the other ranks, what other threads ask for is DT_ERR_STATE.
 *  - A signal handler may ask for numbers (dt_rank to dt_generation), and make no other call:
 *    what it has interrupted may hold the lock that it would wait for. dt_comm_abort, too, is for
 *    a thread, such as one that waits for signals. A thread stays in a call until that returns:
 *    one that is cancelled there, or jumps out of it, keeps the lock.
 *  - A child that a rank has forked can make none of these calls: DT_ERR_STATE.
 *
 * Except where a function says otherwise, failures are final: after DT_ERR_PEER, DT_ERR_MISMATCH
 * and the like every later call returns the same, and the program should end; dtrun starts the job
 * again.
 *
 * Calls that do not fit return DT_ERR_MISMATCH on all ranks of the communicator; a rank that has
 * not returned from the call before may get it there. No collective returns DT_OK before all ranks
 * have come to it: the root of a broadcast waits for all, and so does every rank in a reduce. */
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
#define DT_VERSION       (DT_VERSION_MAJOR * 10000 + DT_VERSION_MINOR * 100 + DT_VERSION_PATCH)

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
    DT_ERR_TIMEOUT = -5,  /* a rank did not come to the call in time, or hosts did not connect */
    DT_ERR_IO = -6,       /* a file or socket failed; dt_last_error tells which */
    DT_ERR_NOMEM = -7,
    DT_ERR_UNSUPPORTED = -8,
    DT_ERR_VERSION = -9, /* program, library and agent do not fit each other */
    DT_ERR_CUDA = -10,
    DT_ERR_NCCL = -11,
    DT_ERR_INTERNAL = -12,
    DT_ERR_ABORTED = -13 /* a rank called dt_comm_abort */
} dt_result_t;

typedef enum dt_dtype {
    DT_I8 = 0,
    DT_U8 = 1,
    DT_I16 = 2,
    DT_U16 = 3,
    DT_I32 = 4,
    DT_U32 = 5,
    DT_I64 = 6,
    DT_U64 = 7,
    DT_F16 = 8,  /* IEEE 754 binary16 */
    DT_BF16 = 9, /* the upper half of an f32 */
    DT_F32 = 10,
    DT_F64 = 11
} dt_dtype_t;

typedef enum dt_op {
    DT_SUM = 0,
    DT_PROD = 1,
    DT_MIN = 2,
    DT_MAX = 3,
    DT_AVG = 4,
    DT_BAND = 5, /* bits: integers only */
    DT_BOR = 6,
    DT_BXOR = 7,
    DT_ADASUM = 8 /* dt_all_reduce of floats, among a power of two of ranks */
} dt_op_t;

/* How numbers travel between hosts; within a host they always stay as they are. */
typedef enum dt_wire {
    DT_WIRE_DEFAULT = -1, /* as DTRUN_WIRE says */
    DT_WIRE_EXACT = 0,
    DT_WIRE_F16 = 1,
    DT_WIRE_BF16 = 2,
    DT_WIRE_INT8 = 3, /* with a scale for 256 numbers each */
    DT_WIRE_2BIT = 4  /* the threshold, its negative, or 0 */
} dt_wire_t;

typedef struct dt_comm dt_comm_t;

#define DT_WORLD     ((dt_comm_t *)0)   /* the communicator of all ranks */
#define DT_COMM_NULL ((dt_comm_t *)-1)  /* no communicator */
#define DT_UNDEFINED (-1)               /* as "color": this rank will be in none */
#define DT_IN_PLACE  ((const void *)-1) /* as "in": the input stands in "out" */

/* Joins the job, and returns when all its ranks have called it. Once in a process.
 * DT_ERR_STATE: called before, or for a rank of which another process has; or the environment tells
 * of another rank, or another job, than dtrun-agent; or another launcher (mpirun, mpiexec, srun)
 * has started this process as one of several. DTRUN_ALONE=1 in the environment makes it a job of
 * one rank in any case. DT_ERR_VERSION: dtrun is of another version. DT_ERR_IO: the socket to
 * dtrun-agent was closed on the way to this program.
 */
DT_API dt_result_t dt_init(void);

/* What a program may ask for at the start, where the environment variable that is named does not
 * say otherwise: who starts the program has the last word. */
typedef struct dt_config {
    size_t size;        /* of this structure, */
    int version;        /* and DT_VERSION, as the program was compiled */
    int deterministic;  /* DTRUN_DETERMINISTIC: 1 or 0; -1: not said. The same on all ranks */
    dt_wire_t wire;     /* DTRUN_WIRE: of calls that do not say; the same on all ranks */
    const char *isa;    /* DTRUN_ISA: the instruction set of reductions; NULL: the best there is */
    int recorder_calls; /* DTRUN_RECORDER_CALLS: see dt_recorder_dump; 0: none, -1: 64 */
    const char *recorder; /* DTRUN_RECORDER: a directory for dumps; NULL: none; "off": see there */
} dt_config_t;

#define DT_CONFIG_INIT                                                                             \
    {                                                                                              \
        sizeof(dt_config_t), DT_VERSION, -1, DT_WIRE_DEFAULT, NULL, -1, NULL                       \
    }

/* dt_init, with what is asked for; NULL: the same as dt_init. DT_ERR_VERSION, before anything else
 * is done: the program was compiled with a dtrun.h that this library does not fit. */
DT_API dt_result_t dt_init_with(const dt_config_t *config);
/* The version of the library; that of the header is DT_VERSION. Pointers may be NULL. */
DT_API void dt_version(int *major, int *minor, int *patch);
/* Waits for all ranks to call it, then leaves the job. A rank that ends without it has failed.
 * After an earlier failure it waits for nobody and returns that failure.
 *
 * It frees all communicators, and ends the threads of the library. Requests that are done may still
 * be waited for. Buckets are still to be freed; what was pushed and has not been sent off is lost.
 * Memory of dt_mem_alloc stays until it is freed. DT_ERR_STATE, and nothing has changed: another
 * thread is inside a call, or a request or what a bucket has sent off is not done. */
DT_API dt_result_t dt_finalize(void);

/* Known from dt_init on, and still after dt_finalize; -1 before. Ranks are 0 .. size - 1; local
 * ranks likewise, among the ranks of this host; a node is a host that has ranks, and nodes are
 * 0 .. nodes - 1: dt_comm_split with dt_node() as color gives the ranks of each host. The
 * generation grows with every restart of the job. */
DT_API int dt_rank(void);
DT_API int dt_size(void);
DT_API int dt_local_rank(void);
DT_API int dt_local_size(void);
DT_API int dt_node(void);
DT_API int dt_nodes(void);
DT_API int dt_generation(void);

/* Says that training step number "step" begins: for reports, and for faults asked for with
 * --inject. Costs nanoseconds; does nothing outside dt_init and dt_finalize. */
DT_API void dt_step(int64_t step);

/* Communicators: some ranks of the job, numbered from 0, that make collective calls among each
 * other alone. Beside DT_WORLD, which is there from dt_init to dt_finalize, a process may have 4095
 * at a time. A failure of one does not touch the others, but for the death of a rank, which ends
 * all.
 *
 * Collective on parent: ranks that give the same color >= 0 come to be in one communicator, in the
 * order of their keys, then of their ranks in parent. A rank whose color is negative gets
 * DT_COMM_NULL. After any failure *out is DT_COMM_NULL. */
DT_API dt_result_t dt_comm_split(dt_comm_t *parent, int color, int key, dt_comm_t **out);
/* Collective: the same ranks again, for calls that are to be apart from those on comm. */
DT_API dt_result_t dt_comm_dup(dt_comm_t *comm, dt_comm_t **out);
/* Collective: waits for all ranks of comm to call it, then frees what it has. On one that has
 * failed it waits for nobody, frees all the same, and returns that failure. Of a view
 * (dt_comm_on_stream) it is not collective: it waits until this rank's calls that were enqueued
 * through it are over, frees it, and returns the first failure among these. */
DT_API dt_result_t dt_comm_free(dt_comm_t *comm);
/* Makes every call on comm, on all its ranks, now and later, return DT_ERR_ABORTED. Never waits,
 * and may be called while other threads are inside calls. Other hosts hear of it a moment later: a
 * call to which all had come may end well there. DT_WORLD: on every communicator. */
DT_API dt_result_t dt_comm_abort(dt_comm_t *comm);
/* For how long calls on comm may wait for ranks that do not come: those that this process makes or
 * asks for from now on, and buckets that leave from now on. What was asked for before, in the
 * background, too, keeps the time that it was asked for with, so that each of several calls that
 * are under way has its own; that of a collective counts from when it begins, after those before
 * it. Never waits for them. 0: for ever; DT_TIMEOUT_DEFAULT: as dtrun's --collective-timeout says.
 * What comes of a split or dup begins with what that call had. A call that has waited for so long
 * returns DT_ERR_TIMEOUT on all ranks of comm, with the names of those who have not come and what
 * they do instead, and so do all others on comm; dtrun has warned of them after half of that (a
 * minute at most). DT_WORLD's ends all communicators.
 * DT_ERR_ARG: seconds is neither, nor from 0.1 to 1000000. */
#define DT_TIMEOUT_DEFAULT (-1.0)
DT_API dt_result_t dt_comm_set_timeout(dt_comm_t *comm, double seconds);
/* DT_OK while calls on comm can be made; or the failure that has ended it for good, which every
 * later call returns (as ncclCommGetAsyncError tells), and then dt_last_error says why. It waits
 * for nobody, and learns of a death or an abort elsewhere without a call: for a thread that
 * watches. */
DT_API dt_result_t dt_comm_status(dt_comm_t *comm);
/* This rank's number in comm, and how many there are; -1 where comm is none. */
DT_API int dt_comm_rank(dt_comm_t *comm);
DT_API int dt_comm_size(dt_comm_t *comm);

/* Folds count elements of all ranks' "in" into every rank's "out" with op. in and out are both in
 * host memory or both on the rank's GPU; they are one buffer (DT_IN_PLACE, or the same pointer) or
 * do not overlap; they need no alignment. "in" is left as it is. count may be 0 on all ranks.
 *
 * DT_SUM, DT_PROD: integers wrap. DT_AVG: the sum, which may have wrapped, divided once by the
 * number of ranks; integers truncate toward zero. DT_MIN, DT_MAX: a NaN gives way to a number. f16
 * and bf16 are folded in f32 and rounded once on each host and once for all hosts, to the nearest,
 * ties to even. With several hosts a host's sum has to fit into the type; but of an average it is
 * divided by a power of two first. A NaN that results is always the same one.
 *
 * DT_ADASUM (Maleki et al., Scaling Distributed Training with Adaptive Summation, MLSys 2021) takes
 * the ranks' numbers as vectors. Two of them, a and b, become (1 - ab/2aa) a + (1 - ab/2bb) b:
 * their sum where they are orthogonal, their average where they are equal; a vector of zeros
 * changes nothing. Ranks 0 and 1, 2 and 3 and so on are combined first, then pairs of these: so
 * their number is a power of two. One call is for one vector, such as the gradient of one layer:
 * reduces, reduce-scatters and buckets do not have it. For floats; computed in f64
 * and rounded once (f64 itself: for each rank). One NaN or infinity, or f64 whose squares are
 * infinite, makes NaNs of all. It takes as much memory again (of a few KiB: as all ranks' take).
 * DT_ERR_ARG: another type, number of ranks, or call.
 *
 * All ranks have the same bytes, and every run with the same placement of ranks on hosts has the
 * same again. Other placements fold floating-point numbers in another order, and may round
 * otherwise. All of this holds while the threads that make calls round as they do from the start
 * and keep subnormal numbers; where one does not (fesetround(3), -ffast-math), all ranks' have to
 * be alike.
 *
 * DT_ERR_ARG and DT_ERR_STATE leave everything as it was. After any other failure "out" is
 * undefined.
 *
 * Within a host the ranks fold slices through shared memory, in the order of ranks. Hosts exchange
 * little data whole; of more each folds a slice for all others, by several ranks of each host if
 * all have several; where one rank talks for each, most of all, among three hosts and more, goes
 * round a ring (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of
 * workstations, JPDC 69(2), 2009) in segments, but for f16 and bf16, which it would round at every
 * host. dtrun-tuning(5) has the limits. */
DT_API dt_result_t dt_all_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                                 dt_dtype_t dtype, dt_op_t op);

/* What a call may ask for beside the rest. All but the residual must be the same on all ranks. */
typedef struct dt_all_reduce_options {
    size_t size;      /* of this structure: which version of it the program was compiled with */
    double prescale;  /* floats: by what "in" is multiplied first, */
    double postscale; /* and "out" last, each time in f32 (f64), then rounded to the type */
    float *residual;  /* NULL, or count numbers that begin as 0; see below */
    dt_wire_t wire;   /* other than exact: sums and averages of f32 */
    float threshold;  /* DT_WIRE_2BIT: above 0 */
} dt_all_reduce_options_t;

#define DT_ALL_REDUCE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(dt_all_reduce_options_t), 1.0, 1.0, NULL, DT_WIRE_EXACT, 0.5F                       \
    }

/* dt_all_reduce with options; NULL: the same as dt_all_reduce. Where a wire format is chosen each
 * host's sum is rounded to it once, and the sum of all hosts once more, by one host for all, so
 * that all ranks still have the same bytes. f16 and bf16 round to the nearest, ties to even (errors
 * of 2^-11 and 2^-8 each time); int8 to multiples of 1/127 of the largest magnitude among 256
 * numbers; 2bit, which rounds each host's sum only, to +threshold from the threshold on,
 * -threshold from its negative on, 0 between (MXNet's gradient compression).
 *
 * A residual makes up for that in later calls (Seide et al., 1-Bit Stochastic Gradient Descent,
 * Interspeech 2014): it is added to the input, and then has what rounding lost. All results and the
 * residuals that are left add up to all inputs. DT_WIRE_2BIT needs it. It belongs to the program,
 * overlaps neither in nor out, and should be registered with dt_checkpoint_register: a job that
 * goes on without it goes on otherwise.
 *
 * DT_ERR_ARG: the options do not fit the call. DT_ERR_VERSION: one is set that this library does
 * not know. DT_ERR_UNSUPPORTED: a residual of device memory without a wire format; 2bit among more
 * than 127 hosts. */
DT_API dt_result_t dt_all_reduce_with(dt_comm_t *comm, const void *in, void *out, size_t count,
                                      dt_dtype_t dtype, dt_op_t op,
                                      const dt_all_reduce_options_t *options);
/* Copies count elements of root's buf to every other rank's. Host or GPU memory, the same on all.
 */
DT_API dt_result_t dt_broadcast(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype,
                                int root);
/* Returns when every rank has called it. */
DT_API dt_result_t dt_barrier(dt_comm_t *comm);

/* Collectives that give ranks parts of their own, in host or GPU memory. Blocks of a buffer follow
 * each other in the order of ranks. in and out do not overlap, but where DT_IN_PLACE is spoken of,
 * which means the same as the pointer there. A buffer that has no element may be NULL.
 *
 * reduce: as dt_all_reduce, but only root has the result, and needs out; there "in" may be
 * DT_IN_PLACE. */
DT_API dt_result_t dt_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                             dt_dtype_t dtype, dt_op_t op, int root);
/* "in" has a block for each rank, which gets the folded one: the same bytes as of dt_all_reduce.
 * Blocks are of count elements, or of counts[rank], which all ranks give alike. In place there are
 * two forms: with DT_IN_PLACE, out has all blocks and the result stands at its beginning; or, as
 * NCCL has it, out is this rank's block of "in". The rest of the buffer is undefined then. */
DT_API dt_result_t dt_reduce_scatter(dt_comm_t *comm, const void *in, void *out, size_t count,
                                     dt_dtype_t dtype, dt_op_t op);
DT_API dt_result_t dt_reduce_scatterv(dt_comm_t *comm, const void *in, void *out,
                                      const size_t *counts, dt_dtype_t dtype, dt_op_t op);
/* Every rank's block to all others: of count elements, or of counts[rank], which all ranks give
 * alike. In place, "in" is this rank's block of out. */
DT_API dt_result_t dt_all_gather(dt_comm_t *comm, const void *in, void *out, size_t count,
                                 dt_dtype_t dtype);
DT_API dt_result_t dt_all_gatherv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                                  dt_dtype_t dtype);
/* Block i of "in" to rank i, whose out has it as the block of this rank. What a rank sends must be
 * what the other expects: else DT_ERR_MISMATCH, on all ranks. In place, "in" is out, and
 * send_counts are recv_counts, whatever they are; it takes as much memory again meanwhile. */
DT_API dt_result_t dt_all_to_all(dt_comm_t *comm, const void *in, void *out, size_t count,
                                 dt_dtype_t dtype);
DT_API dt_result_t dt_all_to_allv(dt_comm_t *comm, const void *in, const size_t *send_counts,
                                  void *out, const size_t *recv_counts, dt_dtype_t dtype);
/* Every rank's count elements to root, which alone needs out and counts. In place at root, "in" is
 * its block of out. */
DT_API dt_result_t dt_gather(dt_comm_t *comm, const void *in, void *out, size_t count,
                             dt_dtype_t dtype, int root);
DT_API dt_result_t dt_gatherv(dt_comm_t *comm, const void *in, size_t count, void *out,
                              const size_t *counts, dt_dtype_t dtype, int root);
/* A block to every rank from root, which alone needs "in" and counts. Root's out may be its block
 * of "in". */
DT_API dt_result_t dt_scatter(dt_comm_t *comm, const void *in, void *out, size_t count,
                              dt_dtype_t dtype, int root);
DT_API dt_result_t dt_scatterv(dt_comm_t *comm, const void *in, const size_t *counts, void *out,
                               size_t count, dt_dtype_t dtype, int root);

/* From one rank to another: peer makes the other call with the same count and type. dt_send returns
 * when the peer has come to its call and buf may be written again. What one rank gives another is
 * matched in order; these calls have no place among those of other ways or among collectives. One
 * whose peer never makes its own ends as dt_comm_set_timeout says, when a rank dies, or with
 * dt_comm_abort. To exchange, begin one of the two with dt_irecv or dt_isend (below), which no
 * timeout ends before it is waited for: two ranks that are both in dt_send wait for each other. */
DT_API dt_result_t dt_send(dt_comm_t *comm, const void *buf, size_t count, dt_dtype_t dtype,
                           int peer);
DT_API dt_result_t dt_recv(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int peer);

/* Memory that all ranks of a host can reach: calls whose buffers stand in it move them without the
 * copies in between. It is as good as any other memory for everything else, and a buffer may stand
 * anywhere in it, at another place on every rank. dt_mem_alloc(3) tells which calls gain.
 *
 * Collective: stores a pointer to bytes of zeros, that begin at a page, in *p. bytes must be the
 * same on all ranks; 0: *p is NULL. What is had on DT_WORLD serves all communicators, what is had
 * on another only that one; for all other calls it is memory like any other. It outlives the
 * communicator, failures, and dt_finalize.
 *
 * DT_ERR_NOMEM: some rank cannot have it; dt_last_error tells which, and how much it was. No rank
 * has it then, and the communicator works on. */
DT_API dt_result_t dt_mem_alloc(dt_comm_t *comm, size_t bytes, void **p);
/* Frees it on this rank alone; the ranks need not do so together. NULL is nothing to free.
 * As with free(3), no call may be using it. DT_ERR_ARG: p is not what dt_mem_alloc gave, or has
 * been freed. DT_ERR_STATE: in a forked child, which shares it with the rank. */
DT_API dt_result_t dt_mem_free(void *p);

/* Uneven data: where ranks run out of data after different numbers of steps, those that have none
 * left take part in the calls of the others (as PyTorch's Join and Horovod's join do).
 *
 * After dt_join_begin, which all ranks call, they may make different numbers of all-reduces in host
 * memory and barriers (in the background and by buckets, too); other collectives are
 * DT_ERR_UNSUPPORTED. Each costs a small all-reduce more. A rank that has no more data calls
 * dt_join, which returns when all ranks have, and stores a rank that came last (last may be NULL).
 * Until then it adds nothing to the others' results; DT_AVG still divides by the number of all
 * ranks. */
DT_API dt_result_t dt_join_begin(dt_comm_t *comm);
DT_API dt_result_t dt_join(dt_comm_t *comm, int *last);

/* Calls in the background: as those without the i, but they return at once. Collectives are made in
 * a thread of the communicator, in their turn: all ranks still make all collectives on it, these
 * and the others, in one order. Calls between two ranks are made in a thread for each rank that is
 * sent to, and for each that is received from. What is wrong with arguments is told at once, and
 * so is DT_ERR_NOMEM where there is no thread to be had (RLIMIT_NPROC): nothing has begun then, and
 * calls that need none can still be made. Everything else is told when the request is waited for,
 * which may be in any order. Until then the buffers belong to the library; counts and options are
 * the program's again at once. */
typedef struct dt_request {
    uint64_t id; /* 0: none, which counts as done */
} dt_request_t;

DT_API dt_result_t dt_iall_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                                  dt_dtype_t dtype, dt_op_t op, dt_request_t *request);
DT_API dt_result_t dt_iall_reduce_with(dt_comm_t *comm, const void *in, void *out, size_t count,
                                       dt_dtype_t dtype, dt_op_t op,
                                       const dt_all_reduce_options_t *options,
                                       dt_request_t *request);
DT_API dt_result_t dt_ibroadcast(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype,
                                 int root, dt_request_t *request);
DT_API dt_result_t dt_ibarrier(dt_comm_t *comm, dt_request_t *request);
DT_API dt_result_t dt_ireduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                              dt_dtype_t dtype, dt_op_t op, int root, dt_request_t *request);
DT_API dt_result_t dt_ireduce_scatter(dt_comm_t *comm, const void *in, void *out, size_t count,
                                      dt_dtype_t dtype, dt_op_t op, dt_request_t *request);
DT_API dt_result_t dt_ireduce_scatterv(dt_comm_t *comm, const void *in, void *out,
                                       const size_t *counts, dt_dtype_t dtype, dt_op_t op,
                                       dt_request_t *request);
DT_API dt_result_t dt_iall_gather(dt_comm_t *comm, const void *in, void *out, size_t count,
                                  dt_dtype_t dtype, dt_request_t *request);
DT_API dt_result_t dt_iall_gatherv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                                   dt_dtype_t dtype, dt_request_t *request);
DT_API dt_result_t dt_iall_to_all(dt_comm_t *comm, const void *in, void *out, size_t count,
                                  dt_dtype_t dtype, dt_request_t *request);
DT_API dt_result_t dt_iall_to_allv(dt_comm_t *comm, const void *in, const size_t *send_counts,
                                   void *out, const size_t *recv_counts, dt_dtype_t dtype,
                                   dt_request_t *request);
DT_API dt_result_t dt_igather(dt_comm_t *comm, const void *in, void *out, size_t count,
                              dt_dtype_t dtype, int root, dt_request_t *request);
DT_API dt_result_t dt_igatherv(dt_comm_t *comm, const void *in, size_t count, void *out,
                               const size_t *counts, dt_dtype_t dtype, int root,
                               dt_request_t *request);
DT_API dt_result_t dt_iscatter(dt_comm_t *comm, const void *in, void *out, size_t count,
                               dt_dtype_t dtype, int root, dt_request_t *request);
DT_API dt_result_t dt_iscatterv(dt_comm_t *comm, const void *in, const size_t *counts, void *out,
                                size_t count, dt_dtype_t dtype, int root, dt_request_t *request);
DT_API dt_result_t dt_isend(dt_comm_t *comm, const void *buf, size_t count, dt_dtype_t dtype,
                            int peer, dt_request_t *request);
DT_API dt_result_t dt_irecv(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int peer,
                            dt_request_t *request);
/* Waits until it is done, returns what came of it, and makes it none. DT_ERR_ARG: it has been
 * waited for already, through another copy. */
DT_API dt_result_t dt_wait(dt_request_t *request);
/* Waits until any of n is done, stores which (its index), and returns what dt_wait would of that
 * one. Requests that are none are left out; where all are, it stores n and returns DT_OK. While it
 * waits the limit of dt_comm_set_timeout holds for each of them. */
DT_API dt_result_t dt_wait_any(dt_request_t *requests, size_t n, size_t *index);
/* Waits for all n. Returns the first failure. */
DT_API dt_result_t dt_wait_all(dt_request_t *requests, size_t n);
/* Waits for so many seconds at most; 0: not at all. Stores whether it is done; if so, the same as
 * dt_wait. Otherwise DT_OK, and the request is as before. */
DT_API dt_result_t dt_wait_for(dt_request_t *request, double seconds, int *done);
/* Stores whether it is done; if so, the same as dt_wait. */
DT_API dt_result_t dt_test(dt_request_t *request, int *done);

/* Calls on a stream. A view is a communicator for a CUDA stream of the program's. A call that is
 * given a view in place of the communicator is enqueued on the stream: it returns at once, and
 * waits neither for the GPU nor for other ranks; it comes after all that has been queued on the
 * stream before, and what is queued there later comes after it.
 *
 * Views are taken by all collectives on buffers, by dt_barrier, dt_send and dt_recv, and by the
 * same calls with an i, whose requests tell when the call is over. Buffers lie in the memory of the
 * stream's device. dt_comm_rank, _size, _status, _abort and _set_timeout do the same with a view as
 * with its communicator, and dt_comm_free frees the view alone. All other calls refuse a view with
 * DT_ERR_ARG.
 *
 * Enqueued calls have their place in the order of the communicator's calls, which is the same on
 * all ranks. On one stream a call waits for the one before it: two ranks that exchange by dt_send
 * and dt_recv use views on two streams each. Calls on a communicator and on its views are for one
 * thread at a time. During the capture of a graph calls are DT_ERR_UNSUPPORTED.
 *
 * When a call fails the stream goes on, and the call's buffers are undefined. The next call that is
 * given the view returns the failure, and so does dt_stream_wait. The limit of a call counts from
 * when those before it are over, and so includes the time that the stream takes to come to it. A
 * program should queue no more than some 1000 pieces of work behind a call before it calls
 * dt_stream_wait (dt_comm_on_stream(3) tells why). */

/* Collective: makes a view. stream: a cudaStream_t or CUstream, which outlives the view; NULL: the
 * legacy default stream; the per-thread default stream is in each call that of the thread which
 * makes it. Each rank may name a stream of another kind. A process may have 4096 views. After any
 * failure *view is DT_COMM_NULL. Before other ranks are waited for: DT_ERR_CUDA, the program has
 * loaded no CUDA driver, or one older than CUDA 12; DT_ERR_UNSUPPORTED, the device has no stream
 * memory operations, or the stream is capturing a graph. */
DT_API dt_result_t dt_comm_on_stream(dt_comm_t *comm, void *stream, dt_comm_t **view);
/* Waits until the stream has done all that has been queued on it before, as cudaStreamSynchronize
 * does, but no longer than calls on the communicator may wait. Returns the first failure of a call
 * that was enqueued through the view, if there was one. */
DT_API dt_result_t dt_stream_wait(dt_comm_t *view);

/* Buckets: gradients that are all-reduced in place, many at a time, while the program computes the
 * next ones (Li et al., PyTorch Distributed, VLDB 2020, section 3.2.3). A bucket leaves when the
 * next push would make it larger than "bytes" (0: 1 MiB), which is the same on all ranks. Every
 * rank pushes the same counts in the same order; other counts, or another order of them, are
 * DT_ERR_MISMATCH. What is pushed is copied, and written when it has been reduced; what is as large
 * as a bucket is reduced where it stands. So it belongs to the library until dt_bucket_wait has
 * returned. Buckets are for one thread at a time, and gone before their communicator. On one host,
 * with the eighth one that leaves, the library takes memory for up to eight as dt_mem_alloc does:
 * 64 MiB at most, and of all ranks together 512 MiB. */
typedef struct dt_bucket dt_bucket_t;

DT_API dt_result_t dt_bucket_create(dt_comm_t *comm, size_t bytes, dt_dtype_t dtype, dt_op_t op,
                                    dt_bucket_t **bucket);
DT_API dt_result_t dt_bucket_push(dt_bucket_t *bucket, void *buf, size_t count);
/* Sends off what has been pushed, and waits for all of it. A failure stays the bucket's. */
DT_API dt_result_t dt_bucket_wait(dt_bucket_t *bucket);
/* The same, then frees it. */
DT_API dt_result_t dt_bucket_free(dt_bucket_t *bucket);

/* Checkpoints. Names "bytes" of host memory, or of the memory of one GPU, to be saved and restored
 * under "name" (1 to 255 bytes, each name once); it must stay valid. GPU memory is saved and
 * restored after what the thread that makes the call has queued before on its default streams: what
 * other streams write there, the program waits for first (dt_stream_wait). Every rank registers its
 * own buffers, before the first save or restore: after it, DT_ERR_STATE. Failures concern this call
 * alone. */
DT_API dt_result_t dt_checkpoint_register(const char *name, void *buf, size_t bytes);
/* Collective. Writes what is registered as the checkpoint of "step", durably; returns DT_OK on all
 * ranks or on none. After DT_ERR_IO the older checkpoints are untouched, and the job may go on. */
DT_API dt_result_t dt_checkpoint_save(int64_t step);
/* Collective. Fills the registered buffers from the newest complete checkpoint and stores its step,
 * or stores -1 and leaves the buffers alone when there is none. */
DT_API dt_result_t dt_checkpoint_restore(int64_t *step);

/* The bytes of an element; 0: there is no such type. */
DT_API size_t dt_dtype_size(dt_dtype_t dtype);
/* A result in a few words; never NULL. */
DT_API const char *dt_strerror(dt_result_t result);
/* What went wrong in this thread's last failing call, in a sentence; "" when nothing has. */
DT_API const char *dt_last_error(void);

/* The same in parts. What is not known is 0, "" or -1; a call that was not made has no number. */
typedef struct dt_error_info {
    size_t size;        /* of this structure, set by the caller */
    dt_result_t code;   /* DT_OK: nothing has failed */
    int rank;           /* of the job: who is to blame; -1: not known */
    int error;          /* errno of what failed on this host; of a checkpoint on any host */
    uint64_t call;      /* the sequence number of the call on its communicator */
    double seconds;     /* since it began */
    char host[256];     /* that of the rank to blame */
    char comm[32];      /* "world", or by which rank it was made and as which, such as "3.2" */
    char operation[32]; /* such as "all-reduce" */
    char message[512];  /* as of dt_last_error */
    int status;         /* DT_ERR_PEER: the rank's exit status; -1: not known, or none, */
    int signal;         /* and the signal that killed it */
} dt_error_info_t;

/* What every one of them begins as. */
#define DT_ERROR_INFO_INIT                                                                         \
    {                                                                                              \
        sizeof(dt_error_info_t), DT_OK, -1, 0, 0, 0, "", "", "", "", -1, 0                         \
    }

/* DT_ERR_VERSION: info->size is none that this library knows. A failure of it is no "last" one. */
DT_API dt_result_t dt_last_error_info(dt_error_info_t *info);

/* The flight recorder keeps the last calls on every communicator (64, see dt_config_t): which they
 * were, when, and what came of them. When a call fails for good, once in a process, dtrun is told
 * of the last four on its communicator, and prints those of all ranks together; and where there is
 * a recorder's directory all are written there, to rank.RANK.GENERATION.txt and .jsonl. dtrun's
 * --output-dir is one, if nothing else was named; "off": nothing is told or written.
 *
 * This call writes them at any time, to a file: as text, or where the path ends in ".jsonl" as JSON
 * lines. NULL: both, to the recorder's directory. Any thread may call it, while others are inside
 * calls too. A failure concerns this call alone. */
DT_API dt_result_t dt_recorder_dump(const char *path);

#ifdef __cplusplus
}
#endif

#endif
