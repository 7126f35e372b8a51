/* dtrun.h: the library that training programs link. dtrun(3) and the pages that it names say more.
 *
 * A program calls dt_init, then collectives, and dt_finalize at the end. All ranks call collectives
 * in the same order, with the same count, type, operation and root. A program that is started by
 * hand is a job of one rank. The library never prints or aborts. It exits only if dtrun's --inject
 * exit asks for it, and with 123 if a failed job leaves a thread stuck in NCCL (dtrun-gpu(7)).
 *
 * Threads. A process calls dt_init and dt_finalize once. Any thread may make any call, as follows:
 *  - Collectives on one communicator run one after another, in the order in which threads call
 *    them, which must be the same on all ranks. Calls that make or free communicators,
 *    dt_mem_alloc and dt_join are collectives too. Checkpoint calls count as calls on DT_WORLD.
 *    Calls on different communicators run concurrently.
 *  - Sends and receives have an order of their own for each peer and direction. They run
 *    concurrently with each other and with collectives.
 *  - A nonblocking call takes its place in these orders when a thread makes it. Any thread may wait
 *    for a request or test it, but only one at a time.
 *  - A bucket is used by one thread at a time; several threads may have a bucket each. A
 *    communicator that has views is used by one thread at a time, together with its views
 *    (dt_comm_on_stream).
 *  - Any thread may call dt_comm_abort, dt_comm_set_timeout, dt_comm_status, dt_comm_rank,
 *    dt_comm_size, dt_mem_free, dt_recorder_dump and the functions that return numbers and texts at
 *    any time, whatever calls the other threads are inside.
 *  - dt_last_error and dt_last_error_info report the calling thread's calls alone.
 *  - dt_step is for one thread. dt_finalize fails while another thread is inside a call. Once it
 *    waits for the other ranks, calls of other threads return DT_ERR_STATE.
 *  - A signal handler may call dt_rank, dt_size, dt_local_rank, dt_local_size, dt_node, dt_nodes
 *    and dt_generation, and nothing else, not even dt_comm_abort: the thread that it interrupted
 *    may hold the lock that the handler would wait for. A thread must not be cancelled inside a
 *    call, nor jump out of one: it would keep the lock.
 *  - A forked child is no rank: its calls fail with DT_ERR_STATE.
 *
 * After DT_ERR_ARG, DT_ERR_STATE, DT_ERR_UNSUPPORTED and DT_ERR_VERSION the communicator still
 * works. Other failures are final unless a function says otherwise: every later call on the
 * communicator returns the same result. The program should then exit; dtrun starts the job again.
 *
 * If the ranks' calls do not match, all ranks of the communicator get DT_ERR_MISMATCH; a rank still
 * inside the previous call may get it from that call. No collective returns DT_OK before all ranks
 * have called it, not even at the root of a broadcast or at the other ranks of a reduce. */
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
    DT_ERR_STATE = -2,    /* not possible now, such as before dt_init; see dt_error(3) */
    DT_ERR_MISMATCH = -3, /* ranks made different calls */
    DT_ERR_PEER = -4,     /* a rank died or left; the job must be started again */
    DT_ERR_TIMEOUT = -5,  /* a rank did not make the call in time, or hosts did not connect */
    DT_ERR_IO = -6,       /* a file or socket failed; dt_last_error names it */
    DT_ERR_NOMEM = -7,
    DT_ERR_UNSUPPORTED = -8,
    DT_ERR_VERSION = -9, /* program, library and agent are of different versions */
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
    DT_BAND = 5, /* bitwise: integers only */
    DT_BOR = 6,
    DT_BXOR = 7,
    DT_ADASUM = 8 /* dt_all_reduce of floats; the number of ranks is a power of two */
} dt_op_t;

/* How numbers travel between hosts. Within a host they are never changed. */
typedef enum dt_wire {
    DT_WIRE_DEFAULT = -1, /* as DTRUN_WIRE or dt_config_t says */
    DT_WIRE_EXACT = 0,
    DT_WIRE_F16 = 1,
    DT_WIRE_BF16 = 2,
    DT_WIRE_INT8 = 3, /* one scale for each 256 numbers */
    DT_WIRE_2BIT = 4  /* plus or minus the threshold, or 0 */
} dt_wire_t;

typedef struct dt_comm dt_comm_t;

/* DT_WORLD: the communicator of all ranks. DT_COMM_NULL: no communicator. DT_IN_PLACE as "in": the
 * input is in "out". In C++ they are casts that -Wold-style-cast, a warning of programs, allows. */
#ifdef __cplusplus
#define DT_WORLD     (static_cast<dt_comm_t *>(NULL))
#define DT_COMM_NULL (reinterpret_cast<dt_comm_t *>(static_cast<intptr_t>(-1)))
#define DT_IN_PLACE  (reinterpret_cast<const void *>(static_cast<intptr_t>(-1)))
#else
#define DT_WORLD     ((dt_comm_t *)0)
#define DT_COMM_NULL ((dt_comm_t *)-1)
#define DT_IN_PLACE  ((const void *)-1)
#endif
#define DT_UNDEFINED (-1) /* as "color": this rank joins no new communicator */

/* Joins the job. Returns when all ranks have called it. Once in a process.
 * DT_ERR_STATE: dt_init was called before, or by another process for this rank; or the environment
 * names another rank or job than dtrun-agent does; or another launcher (mpirun, mpiexec, srun)
 * started this process as one of several. With DTRUN_ALONE=1 in the environment the process is
 * always a job of one rank. DT_ERR_VERSION: dtrun is of another version. DT_ERR_IO: a program that
 * started this one closed the socket to dtrun-agent, or removed some of dtrun's variables. */
DT_API dt_result_t dt_init(void);

/* What a program may ask for at the start. Where a field names an environment variable, the
 * variable overrides it if set: the user who starts the program has the last word. */
typedef struct dt_config {
    size_t size;          /* of this structure */
    int version;          /* DT_VERSION when the program was compiled */
    int deterministic;    /* DTRUN_DETERMINISTIC: 1 or 0; -1: unset. The same on all ranks */
    dt_wire_t wire;       /* DTRUN_WIRE: for calls without options or with DT_WIRE_DEFAULT. The same
                             on all ranks */
    const char *isa;      /* DTRUN_ISA: the instruction set of reductions; NULL: the best one */
    int recorder_calls;   /* DTRUN_RECORDER_CALLS: see dt_recorder_dump; 0: none, -1: 64 */
    const char *recorder; /* DTRUN_RECORDER: a directory for dumps; NULL: unset; "off": none */
    int program_order;    /* DTRUN_PROGRAM_ORDER: 1 or 0; -1: unset. See dt_comm_on_stream */
} dt_config_t;

#define DT_CONFIG_INIT                                                                             \
    {                                                                                              \
        sizeof(dt_config_t), DT_VERSION, -1, DT_WIRE_DEFAULT, NULL, -1, NULL, -1                   \
    }

/* dt_init with a configuration; NULL: as dt_init. DT_ERR_VERSION, before anything else is done: the
 * program was compiled with a dtrun.h that does not fit this library. */
DT_API dt_result_t dt_init_with(const dt_config_t *config);
/* The version of the library; that of the header is DT_VERSION. Pointers may be NULL. */
DT_API void dt_version(int *major, int *minor, int *patch);
/* Waits until all ranks call it, then leaves the job. For its peers, a rank that exits without it
 * has failed. After a failure that ended DT_WORLD it does not wait, and returns that failure.
 *
 * It frees all communicators and ends the library's threads. Requests that are complete may still
 * be waited for. Buckets must still be freed; what was pushed to them and has not been sent is
 * lost. Memory of dt_mem_alloc stays until it is freed. dt_finalize first waits for a save of
 * dt_checkpoint_isave. DT_ERR_STATE, without any effect: another thread is inside a call; or a
 * bucket's all-reduce, a call on a stream or a request other than that save's is not complete. */
DT_API dt_result_t dt_finalize(void);

/* Known from dt_init on, also after dt_finalize; -1 before. Ranks are 0 .. size - 1; local ranks
 * are numbered likewise among the ranks of this host. A node is a host that has ranks; nodes are
 * 0 .. nodes - 1, and dt_comm_split with dt_node() as color makes a communicator for each host. The
 * generation grows with every restart of the job. */
DT_API int dt_rank(void);
DT_API int dt_size(void);
DT_API int dt_local_rank(void);
DT_API int dt_local_size(void);
DT_API int dt_node(void);
DT_API int dt_nodes(void);
DT_API int dt_generation(void);

/* Reports that training step number "step" begins, for dtrun's reports and for faults requested
 * with --inject. Costs nanoseconds. Does nothing before dt_init and after dt_finalize. */
DT_API void dt_step(int64_t step);

/* Communicators: a communicator is a group of ranks, numbered from 0, that call collectives among
 * themselves. DT_WORLD exists from dt_init to dt_finalize; a process may have 4095 others at a
 * time. A failure ends only its own communicator, except that all end when a rank dies, when
 * DT_WORLD fails, or when a call exceeds the limit of --collective-timeout.
 *
 * dt_comm_split is collective on parent: ranks that pass the same color >= 0 form one communicator,
 * ordered by key, then by their rank in parent. A rank whose color is negative gets DT_COMM_NULL.
 * After any failure *out is DT_COMM_NULL. */
DT_API dt_result_t dt_comm_split(dt_comm_t *parent, int color, int key, dt_comm_t **out);
/* Collective: a communicator of the same ranks, whose calls are separate from those on comm. */
DT_API dt_result_t dt_comm_dup(dt_comm_t *comm, dt_comm_t **out);
/* Collective: waits until all ranks of comm call it, then frees comm. If comm has failed, it frees
 * comm without waiting and returns that failure. For a view (dt_comm_on_stream) it is not
 * collective: it waits for the calls that this rank enqueued through the view, frees the view, and
 * returns the first failure among those calls. */
DT_API dt_result_t dt_comm_free(dt_comm_t *comm);
/* Makes every call on comm return DT_ERR_ABORTED, on all its ranks, now and later. It never waits,
 * and may be called while other threads are inside calls. Other hosts learn of it a moment later: a
 * call that all ranks had made may still succeed there. DT_WORLD: aborts every communicator. */
DT_API dt_result_t dt_comm_abort(dt_comm_t *comm);
/* Sets how many seconds calls on comm may wait for ranks that do not make them, or for their data.
 * The limit must be longer than the largest call takes. It applies to calls that this process makes
 * from now on, and to buckets that are sent from now on. Nonblocking calls under way keep the limit
 * that was set when they were made, so each may have its own. The time of a collective counts from
 * its beginning, and it begins only when the calls before it have ended. The function does not wait
 * for calls under way. 0: no limit; DT_TIMEOUT_DEFAULT: the limit of dtrun's --collective-timeout.
 * A communicator that is made by a split or dup begins with the limit of its parent.
 * When a call has waited for that long, it and all other calls on comm return DT_ERR_TIMEOUT on all
 * ranks, with the names of the missing ranks and what they do instead. dtrun warns of them after
 * half of the limit, or after a minute if that is less. A timeout on DT_WORLD, or by
 * --collective-timeout, ends all communicators. DT_ERR_ARG: seconds is none of these: 0,
 * DT_TIMEOUT_DEFAULT, a number from 0.1 to 1000000. */
#define DT_TIMEOUT_DEFAULT (-1.0)
DT_API dt_result_t dt_comm_set_timeout(dt_comm_t *comm, double seconds);
/* DT_OK while comm works. Otherwise the failure that ended it for good, which every later call
 * returns too (compare ncclCommGetAsyncError); dt_last_error then has the cause. It does not wait,
 * and notices a death or an abort elsewhere even if no call is made. So a thread can watch comm
 * with it. */
DT_API dt_result_t dt_comm_status(dt_comm_t *comm);
/* This rank's number in comm, and the number of ranks; -1 if comm is not a communicator. */
DT_API int dt_comm_rank(dt_comm_t *comm);
DT_API int dt_comm_size(dt_comm_t *comm);

/* Combines count elements of all ranks' "in" with op into every rank's "out". in and out are both
 * in host memory or both on the rank's GPU. They are one buffer (DT_IN_PLACE, or the same pointer)
 * or do not overlap, and need no alignment; on a GPU their addresses are multiples of an element's
 * size. "in" is not modified unless it is also "out". count may be 0, on all ranks.
 *
 * DT_SUM, DT_PROD: integers wrap. DT_AVG: the sum, which may have wrapped, divided once by the
 * number of ranks; integers truncate toward zero. DT_MIN, DT_MAX: a number wins over a NaN. f16 and
 * bf16 are combined in f32, and rounded to nearest, ties to even, once on each host and once for
 * all hosts. With several hosts each host's sum must fit into the type. An average of f16 divides
 * it by a power of two first, so that it fits. All NaNs in a result have the same bytes.
 *
 * DT_ADASUM (Maleki et al., Scaling Distributed Training with Adaptive Summation, MLSys 2021) takes
 * each rank's numbers as a vector. Two vectors a and b become (1 - ab/2aa) a + (1 - ab/2bb) b, with
 * the inner products ab, aa and bb: their sum if they are orthogonal, their average if they are
 * equal. A vector of zeros changes nothing. First ranks 0 and 1, 2 and 3 and so on are combined,
 * then pairs of the results; so the number of ranks must be a power of two. One call is for one
 * vector, such as the gradient of one layer. Reduces, reduce-scatters and buckets do not offer it.
 * It is for floats and is computed in f64. The result is a weighted sum of all ranks' vectors,
 * rounded once to the type. An f64 sum is rounded as each vector is added. One NaN or infinity, or
 * an f64 whose square overflows, makes all results NaN. The call allocates as much memory as "in"
 * has, or, if "in" is short, up to 8 KiB. DT_ERR_ARG: the type is not a float, the number of ranks
 * is not a power of two, or the call is not an all-reduce.
 *
 * All ranks get the same bytes, and every run with the same placement of ranks on hosts gets the
 * same bytes again. With another placement floating-point numbers are combined in another order,
 * and may round differently. The bytes are the same only if the threads that make calls have the
 * same rounding mode (fesetround(3)) on all ranks, and treat subnormal numbers alike (-ffast-math).
 *
 * A call that returns DT_ERR_ARG or DT_ERR_STATE has no effect. After any other failure "out" is
 * undefined.
 *
 * Algorithms: within a host each rank reduces a small message whole, and one block of a larger one,
 * in shared memory and in the order of ranks. Hosts exchange small messages whole. For larger ones
 * each host reduces one block for all others. On up to 8 hosts that all have several ranks, several
 * ranks of each host share this work for large messages. Other large messages among three or more
 * hosts, and all but small ones among more than 16, take a ring (Patarasuk and Yuan, Bandwidth
 * optimal all-reduce algorithms for clusters of workstations, JPDC 69(2), 2009). f16 and bf16 never
 * do, because a ring would round them at every host. dtrun-tuning(5) has the thresholds. */
DT_API dt_result_t dt_all_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                                 dt_dtype_t dtype, dt_op_t op);

/* The options of a call. All but the residual must be the same on all ranks. */
typedef struct dt_all_reduce_options {
    size_t size;      /* of this structure: tells the library which version of it the program has */
    double prescale;  /* for floats: "in" is multiplied by this first */
    double postscale; /* "out" is multiplied by this last, in f32 (f64: in f64), then rounded */
    float *residual;  /* NULL, or count numbers, initially 0; see below */
    dt_wire_t wire;   /* formats other than exact: sums and averages of f32 */
    float threshold;  /* for DT_WIRE_2BIT: above 0 */
} dt_all_reduce_options_t;

#define DT_ALL_REDUCE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(dt_all_reduce_options_t), 1.0, 1.0, NULL, DT_WIRE_EXACT, 0.5F                       \
    }

/* dt_all_reduce with options; NULL: as dt_all_reduce. With a wire format each host's sum is rounded
 * once, and the sum of all hosts once more, by one host for all: all ranks still get the same
 * bytes. f16 and bf16 round to nearest, ties to even, with relative errors of at most 2^-11 and
 * 2^-8. int8 rounds to multiples of 1/127 of the largest magnitude among 256 numbers. 2bit rounds
 * only each host's sum: to +threshold if it is at least that, to -threshold if it is at most that,
 * else to 0 (MXNet's gradient compression).
 *
 * A residual compensates for the rounding in later calls (Seide et al., 1-Bit Stochastic Gradient
 * Descent, Interspeech 2014): the call adds it to the input and then stores in it what was lost by
 * rounding. The results of all calls plus the final residuals of all ranks add up to all inputs.
 * DT_WIRE_2BIT needs one. The residual belongs to the program, overlaps neither in nor out, and
 * should be registered with dt_checkpoint_register: a job that resumes without it computes other
 * results.
 *
 * DT_ERR_ARG: the options do not fit the call, or the residual is not in host memory.
 * DT_ERR_VERSION: an option is set that this library does not know. DT_ERR_UNSUPPORTED: buffers in
 * device memory have a residual but no wire format, or 2bit is used with more than 127 hosts. */
DT_API dt_result_t dt_all_reduce_with(dt_comm_t *comm, const void *in, void *out, size_t count,
                                      dt_dtype_t dtype, dt_op_t op,
                                      const dt_all_reduce_options_t *options);
/* Copies count elements of root's buf to buf of every other rank. Host or GPU memory, the same on
 * all ranks. */
DT_API dt_result_t dt_broadcast(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype,
                                int root);
/* Returns when every rank has called it. */
DT_API dt_result_t dt_barrier(dt_comm_t *comm);

/* Collectives in which each rank has a block, in host or GPU memory. The blocks of a buffer follow
 * each other in the order of ranks. in and out do not overlap, except in place, as each function
 * describes it. If "in" then lies in out, the program may pass DT_IN_PLACE for it. A buffer without
 * elements may be NULL.
 *
 * dt_reduce: as dt_all_reduce, but only root gets the result and needs out. In place at root, "in"
 * is out. */
DT_API dt_result_t dt_reduce(dt_comm_t *comm, const void *in, void *out, size_t count,
                             dt_dtype_t dtype, dt_op_t op, int root);
/* "in" has a block for each rank. Each rank gets its block of the result, with the same bytes as
 * from dt_all_reduce. Blocks have count elements, or counts[rank]; all ranks pass the same counts.
 * There are two in-place forms: with DT_IN_PLACE, out has all blocks and the result is stored at
 * its beginning; or, as in NCCL, out is this rank's block of "in". The rest of the buffer is
 * undefined afterwards. */
DT_API dt_result_t dt_reduce_scatter(dt_comm_t *comm, const void *in, void *out, size_t count,
                                     dt_dtype_t dtype, dt_op_t op);
DT_API dt_result_t dt_reduce_scatterv(dt_comm_t *comm, const void *in, void *out,
                                      const size_t *counts, dt_dtype_t dtype, dt_op_t op);
/* Gives every rank's block to all others. Blocks have count elements, or counts[rank]; all ranks
 * pass the same counts. In place, "in" is this rank's block of out. */
DT_API dt_result_t dt_all_gather(dt_comm_t *comm, const void *in, void *out, size_t count,
                                 dt_dtype_t dtype);
DT_API dt_result_t dt_all_gatherv(dt_comm_t *comm, const void *in, void *out, const size_t *counts,
                                  dt_dtype_t dtype);
/* Sends block i of "in" to rank i, which stores it as the block of the sender. The sender's and the
 * receiver's counts must be equal: otherwise DT_ERR_MISMATCH on all ranks. In place, "in" is out
 * and send_counts is ignored in favour of recv_counts; the call allocates as much memory again. */
DT_API dt_result_t dt_all_to_all(dt_comm_t *comm, const void *in, void *out, size_t count,
                                 dt_dtype_t dtype);
DT_API dt_result_t dt_all_to_allv(dt_comm_t *comm, const void *in, const size_t *send_counts,
                                  void *out, const size_t *recv_counts, dt_dtype_t dtype);
/* Gives every rank's count elements to root, which alone needs out and counts. In place at root,
 * "in" is its block of out. */
DT_API dt_result_t dt_gather(dt_comm_t *comm, const void *in, void *out, size_t count,
                             dt_dtype_t dtype, int root);
DT_API dt_result_t dt_gatherv(dt_comm_t *comm, const void *in, size_t count, void *out,
                              const size_t *counts, dt_dtype_t dtype, int root);
/* Gives every rank a block of root's "in"; root alone needs "in" and counts. In place at root, out
 * is its block of "in". */
DT_API dt_result_t dt_scatter(dt_comm_t *comm, const void *in, void *out, size_t count,
                              dt_dtype_t dtype, int root);
DT_API dt_result_t dt_scatterv(dt_comm_t *comm, const void *in, const size_t *counts, void *out,
                               size_t count, dt_dtype_t dtype, int root);

/* Sends to, or receives from, one rank. The peer makes the other call with the same count and type.
 * dt_send returns when the peer has called dt_recv and buf may be reused. Messages from one rank to
 * another match in order; sends and receives have no order with respect to the other direction,
 * other pairs of ranks, or collectives. If the peer never makes its call, the call ends when the
 * limit set with dt_comm_set_timeout expires, when a rank dies, or when dt_comm_abort is called.
 * Two ranks that are both in dt_send wait for each other: to exchange, begin one of the two calls
 * with dt_irecv or dt_isend (below), whose limit starts only when they are waited for. */
DT_API dt_result_t dt_send(dt_comm_t *comm, const void *buf, size_t count, dt_dtype_t dtype,
                           int peer);
DT_API dt_result_t dt_recv(dt_comm_t *comm, void *buf, size_t count, dt_dtype_t dtype, int peer);

/* Memory that all ranks of a host can reach: calls whose buffers are in it need no intermediate
 * copies. It may be used like any other memory, and a buffer may be anywhere in it, at a different
 * place on every rank. dt_mem_alloc(3) lists the calls that gain.
 *
 * Collective: stores in *p a pointer to zeroed, page-aligned memory. bytes is the same on all
 * ranks; 0: *p is NULL. Memory allocated on DT_WORLD serves all communicators; memory allocated on
 * another communicator serves that one, and is ordinary memory for all other calls. It outlives the
 * communicator, failures, and dt_finalize.
 *
 * DT_ERR_NOMEM: a rank cannot allocate it; dt_last_error names the rank and the size. Then no rank
 * has it, and the communicator still works. */
DT_API dt_result_t dt_mem_alloc(dt_comm_t *comm, size_t bytes, void **p);
/* Frees it on this rank; ranks need not do so together. NULL is ignored. As with free(3), no call
 * may be using it. DT_ERR_ARG: p is not from dt_mem_alloc, or was freed. DT_ERR_STATE: in a forked
 * child, which shares the memory with the rank. */
DT_API dt_result_t dt_mem_free(void *p);

/* Uneven data: ranks that have run out of data take part in the calls of those that have not (as
 * PyTorch's Join and Horovod's join do).
 *
 * After dt_join_begin, which all ranks call, ranks may make different numbers of barriers and of
 * all-reduces, nonblocking and bucketed ones included; buffers in GPU memory are staged. Other
 * collectives return DT_ERR_UNSUPPORTED. Each call costs an additional small all-reduce. A rank
 * without data calls dt_join, which returns when all ranks have called it, and stores a rank that
 * called it last (last may be NULL). Until then the rank contributes nothing to the others'
 * results; DT_AVG still divides by the number of all ranks. */
DT_API dt_result_t dt_join_begin(dt_comm_t *comm);
DT_API dt_result_t dt_join(dt_comm_t *comm, int *last);

/* Nonblocking calls: as the calls without the i in their name, but they return at once. A thread of
 * the communicator makes the collectives one after another. So all ranks make the collectives on a
 * communicator, blocking and nonblocking ones together, in the same order. Sends have a thread for
 * each destination, receives one for each source. A call that cannot begin returns its error at
 * once: for example DT_ERR_ARG, or DT_ERR_NOMEM if no thread can be created; dt_last_error says
 * why. Calls that need no thread can still be made then. Errors of a call that has begun are
 * reported when the request is waited for; requests may be waited for in any order. Until then the
 * buffers belong to the library; counts and options may be reused at once. */
typedef struct dt_request {
    uint64_t id; /* 0: a null request, which counts as complete */
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
/* Waits until the call is complete, returns its result, and makes the request null. DT_ERR_ARG: the
 * request was waited for already, through another copy. */
DT_API dt_result_t dt_wait(dt_request_t *request);
/* Waits until any of n requests is complete, stores its index, and returns what dt_wait would for
 * that one. Null requests are ignored; if all are null, it stores n and returns DT_OK. While it
 * waits, the limit of dt_comm_set_timeout applies to each request. */
DT_API dt_result_t dt_wait_any(dt_request_t *requests, size_t n, size_t *index);
/* Waits for all n requests. Returns the first failure. */
DT_API dt_result_t dt_wait_all(dt_request_t *requests, size_t n);
/* Waits for at most "seconds"; 0: does not wait. Stores whether the call is complete. If so, does
 * the same as dt_wait; otherwise returns DT_OK and leaves the request as it was. */
DT_API dt_result_t dt_wait_for(dt_request_t *request, double seconds, int *done);
/* Stores whether the call is complete; if so, does the same as dt_wait. */
DT_API dt_result_t dt_test(dt_request_t *request, int *done);

/* Calls on a stream. A view is a communicator for one of the program's CUDA streams. A call that
 * gets a view instead of the communicator is enqueued on the stream: it returns at once, without
 * waiting for the GPU or for other ranks. It runs after all work already queued on the stream, and
 * before work queued later. Only NCCL's first call of a kind may wait for other ranks, and any call
 * waits while the stream is full.
 *
 * All collectives on buffers, dt_barrier, dt_send and dt_recv take views, and so do their
 * nonblocking forms, whose requests complete when the call is over. Buffers are in the memory of
 * the stream's device. dt_comm_rank, _size, _status, _abort and _set_timeout treat a view as its
 * communicator; dt_comm_free frees only the view. dt_stream_wait is for views alone. All other
 * calls refuse a view with DT_ERR_ARG.
 *
 * Enqueued calls take their place in the order of the communicator's calls, which is the same on
 * all ranks. On one stream a call waits for the one before it: two ranks that exchange with dt_send
 * and dt_recv must each use two views on two streams, or one of them must send first and the other
 * receive first. A communicator and its views are used by one thread at a time. While a graph is
 * captured, calls return DT_ERR_UNSUPPORTED.
 *
 * When a call fails, the stream continues, and the call's buffers are undefined. The next call with
 * the view, or dt_stream_wait, returns the failure. The time limit of a call counts from the end of
 * the calls before it, and includes the time until the stream reaches it. A program should queue at
 * most about 1000 operations behind a call before it calls dt_stream_wait; dt_comm_on_stream(3)
 * says why. */

/* Collective: makes a view. stream: a cudaStream_t or CUstream that outlives the view; NULL: the
 * legacy default stream; the per-thread default stream means, in each call, that of the calling
 * thread. Ranks may pass different kinds of streams. A process may have 4096 views. After any
 * failure *view is DT_COMM_NULL. Without waiting for other ranks it returns DT_ERR_CUDA if the
 * program has loaded no CUDA driver, or one before CUDA 12, and DT_ERR_UNSUPPORTED if the device
 * has no stream memory operations, or the stream is capturing a graph. */
DT_API dt_result_t dt_comm_on_stream(dt_comm_t *comm, void *stream, dt_comm_t **view);
/* Waits for all work queued on the stream before, as cudaStreamSynchronize does, but no longer than
 * calls on the communicator may wait. Returns the first failure of a call that was enqueued through
 * the view. */
DT_API dt_result_t dt_stream_wait(dt_comm_t *view);

/* Buckets: all-reduce gradients in place, many at a time, while the program computes the next ones
 * (Li et al., PyTorch Distributed, VLDB 2020, section 3.2.3). A bucket is sent when the next push
 * would make it larger than "bytes" (0: 1 MiB), which is the same on all ranks. Every rank pushes
 * the same counts in the same order; otherwise DT_ERR_MISMATCH. A pushed buffer is copied, and
 * overwritten with the result; a buffer as large as a bucket, or in managed memory, is reduced
 * where it is. Buffers in GPU memory are read when their bucket is sent. If every rank can allocate
 * GPU memory for the bucket, they are reduced there as one, else one by one; buffers in host memory
 * are reduced apart from them. GPU buffers smaller than the bucket must all belong to one CUDA
 * context: otherwise DT_ERR_ARG. A buffer belongs to the library until dt_bucket_wait returns. A
 * bucket is used by one thread at a time, and freed before its communicator.
 *
 * If all ranks are on one host, the library allocates shared memory when a bucket is sent for the
 * eighth time, as dt_mem_alloc does. This memory holds the data of up to eight sends of the bucket,
 * but at most 64 MiB for each rank, and 512 MiB for all ranks together. */
typedef struct dt_bucket dt_bucket_t;

DT_API dt_result_t dt_bucket_create(dt_comm_t *comm, size_t bytes, dt_dtype_t dtype, dt_op_t op,
                                    dt_bucket_t **bucket);
DT_API dt_result_t dt_bucket_push(dt_bucket_t *bucket, void *buf, size_t count);
/* Sends what has been pushed and waits for all of it. A failure, also of a push, is kept: later
 * calls return it too. Only DT_ERR_ARG has no effect. */
DT_API dt_result_t dt_bucket_wait(dt_bucket_t *bucket);
/* As dt_bucket_wait, then frees the bucket. */
DT_API dt_result_t dt_bucket_free(dt_bucket_t *bucket);

/* Checkpoints. Registers "bytes" of host memory, or of the memory of one GPU, to be saved and
 * restored under "name" (1 to 255 bytes, unique). The memory must stay valid. GPU memory is saved
 * and restored after the work that the calling thread queued on its default streams before; the
 * program must wait for what other streams write there (dt_stream_wait). Every rank registers its
 * own buffers, before the first save or restore; later, DT_ERR_STATE. A failure concerns this call
 * only. */
DT_API dt_result_t dt_checkpoint_register(const char *name, void *buf, size_t bytes);
/* Collective. Writes the registered buffers as the checkpoint of "step", durably. Returns DT_OK on
 * all ranks or on none. After DT_ERR_IO the older checkpoints are as before, and the job may go on.
 */
DT_API dt_result_t dt_checkpoint_save(int64_t step);
/* Collective. Begins the same save and returns as soon as the registered buffers may be changed:
 * they are copied, and a thread saves the copies while the program continues. dt_wait and dt_test
 * report the result of the save, DT_OK on all ranks or on none. If the call itself fails, no save
 * has begun; DT_ERR_NOMEM: a rank has no memory for the copies. They take as much host memory as
 * the buffers, from the first such call until dt_finalize. The next save or restore, and
 * dt_finalize, first wait until the save is complete. */
DT_API dt_result_t dt_checkpoint_isave(int64_t step, dt_request_t *request);
/* Collective. Fills the registered buffers from the newest complete checkpoint and stores its step.
 * If there is none, stores -1 and leaves the buffers as they are. */
DT_API dt_result_t dt_checkpoint_restore(int64_t *step);

/* The size of an element in bytes; 0: no such type. */
DT_API size_t dt_dtype_size(dt_dtype_t dtype);
/* A short description of a result; never NULL. */
DT_API const char *dt_strerror(dt_result_t result);
/* The error of this thread's last failing call, as a sentence; "" if none has failed. */
DT_API const char *dt_last_error(void);

/* The same error in parts. Unknown fields are 0, "" or -1. If the call was refused, "call" is 0. */
typedef struct dt_error_info {
    size_t size;        /* of this structure, set by the caller */
    dt_result_t code;   /* DT_OK: no call has failed */
    int rank;           /* the rank of the job that caused it; -1: not known */
    int error;          /* errno of the failure on this host; for a checkpoint, on any host */
    uint64_t call;      /* the sequence number of the call on its communicator */
    double seconds;     /* since the call began */
    char host[256];     /* of that rank */
    char comm[32];      /* "world"; "3.2", one whose first rank is rank 3 (the 2 tells it from
                           others of that rank); or "checkpoints", the communicator that
                           saves in the background use */
    char operation[32]; /* such as "all-reduce" */
    char message[512];  /* as dt_last_error returns it */
    int status;         /* for DT_ERR_PEER: the rank's exit status; -1: unknown, or it was killed */
    int signal;         /* and the signal that killed it, or 0 */
} dt_error_info_t;

/* The initial value of every dt_error_info_t. */
#define DT_ERROR_INFO_INIT                                                                         \
    {                                                                                              \
        sizeof(dt_error_info_t), DT_OK, -1, 0, 0, 0, "", "", "", "", -1, 0                         \
    }

/* DT_ERR_VERSION: this library knows no structure of info->size bytes. A failure of this function
 * does not replace the error. */
DT_API dt_result_t dt_last_error_info(dt_error_info_t *info);

/* The flight recorder keeps the last calls on every communicator (64, see dt_config_t): what they
 * were, when, and with which result. The first time that a call fails for good in a process, the
 * library sends dtrun the last four calls on its communicator; dtrun prints those of all ranks
 * together. If there is a directory for dumps, all kept calls are written there, to
 * rank.RANK.GENERATION.txt and .jsonl. dtrun's --output-dir is that directory unless another was
 * named. "off": nothing is sent or written.
 *
 * dt_recorder_dump writes the kept calls to a file at any time: as JSON lines if the path ends in
 * ".jsonl", else as text. NULL: both files, to the directory for dumps. Any thread may call it,
 * also while others are inside calls. A failure concerns this call only. */
DT_API dt_result_t dt_recorder_dump(const char *path);

#ifdef __cplusplus
}
#endif

#endif
