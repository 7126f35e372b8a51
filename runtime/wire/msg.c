#include "runtime/wire/msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/wire/frame.h"
#include "runtime/wire/hostshm.h"

enum kind { U8, U16, U32, U64, KEY, STR, STRS, U32S, LIST, BLOB };

struct shape;

struct field {
    enum kind kind;
    size_t at;
    uint32_t max; /* STR: bytes; STRS, U32S, LIST: entries */
    const struct shape *of;
};

struct shape {
    const char *name;
    size_t size;
    const struct field *fields;
    size_t n;
};

enum {
    NAME_MAX_BYTES = 1024,
    PATH_MAX_BYTES = 4096,
    TEXT_MAX_BYTES = 8192,
    STRING_MAX_BYTES = 8 * 1024 * 1024, /* one argument or variable */
    STRINGS_MAX = 1000000,              /* Linux allows no more arguments */
    ADDRS_MAX = 4096,
    COMMS_MAX = 1000000,
    SHARE_KEY_BYTES = 16 * 1024 * 1024, /* it may list ranks */
};

#define F(st, member, k, ...)                                                                      \
    {                                                                                              \
        .kind = k, .at = offsetof(struct dt_msg_##st, member), __VA_ARGS__                         \
    }
#define SHAPE(st, ...)                                                                             \
    static const struct field st##_fields[] = { __VA_ARGS__ };                                     \
    static const struct shape st##_shape = { #st, sizeof(struct dt_msg_##st), st##_fields,         \
                                             sizeof st##_fields / sizeof *st##_fields }

/* clang-format off */
SHAPE(start,
    F(start, generation, U32), F(start, job_id, STR, 64), F(start, secret, KEY), F(start, np, U32),
    F(start, nodes, U32), F(start, node_rank, U32), F(start, restart_count, U32),
    F(start, max_restarts, U32), F(start, heartbeat_ms, U32), F(start, slots, U32),
    F(start, gpus, STRS, 4096), F(start, gpus_given, U8), F(start, stdin_rank, U32),
    F(start, merge_stderr, U8), F(start, unbuffered, U8), F(start, ranks, U32S, DT_RANKS_MAX),
    F(start, auxiliaries, U32S, DT_RANKS_MAX), F(start, servers, U32),
    F(start, host, STR, NAME_MAX_BYTES), F(start, wdir, STR, PATH_MAX_BYTES),
    F(start, master_port, U16), F(start, scheduler_port, U16),
    F(start, checkpoint_dir, STR, PATH_MAX_BYTES), F(start, check_checkpoint_dir, U8),
    F(start, fresh, U8), F(start, resume, U8),
    F(start, file_dir, STR, PATH_MAX_BYTES), F(start, argv, STRS, STRINGS_MAX),
    F(start, env, STRS, STRINGS_MAX), F(start, unset, STRS, STRINGS_MAX),
    F(start, inject, STRS, STRINGS_MAX), F(start, gpu_bind, U8), F(start, bind_to, U8),
    F(start, report_bindings, U8), F(start, virtual_local_rank, U8), F(start, frameworks, U8),
    F(start, universe, U32), F(start, mpi_map, U32S, 3 * DT_RANKS_MAX),
    F(start, hosts, STRS, DT_RANKS_MAX));
SHAPE(go,
    F(go, generation, U32), F(go, master_addr, STR, NAME_MAX_BYTES),
    F(go, addr, STR, NAME_MAX_BYTES), F(go, iface, STR, NAME_MAX_BYTES),
    F(go, tf_cluster, STR, STRING_MAX_BYTES), F(go, rendezvous_port, U16),
    F(go, local_sizes, U32S, DT_RANKS_MAX), F(go, mpi_env, STRS, 4096));
SHAPE(target, F(target, node, U32), F(target, port, U16), F(target, addrs, STRS, ADDRS_MAX));
SHAPE(probe,
    F(probe, generation, U32), F(probe, secret, KEY), F(probe, node, U32), F(probe, all, U8),
    F(probe, bytes, U32), F(probe, targets, LIST, DT_RANKS_MAX, &target_shape));
SHAPE(addr, F(addr, host, STR, NAME_MAX_BYTES), F(addr, port, U16), F(addr, node, U32));
SHAPE(table,
    F(table, generation, U32), F(table, addrs, LIST, DT_RANKS_MAX, &addr_shape),
    F(table, hosts, STRS, DT_RANKS_MAX));
SHAPE(signal, F(signal, signo, U32));
SHAPE(stop, F(stop, grace_ms, U32));
SHAPE(abort,
    F(abort, generation, U32), F(abort, comm, U64), F(abort, rank, U32), F(abort, code, U32),
    F(abort, text, STR, TEXT_MAX_BYTES), F(abort, ending, U32));
SHAPE(asked, F(asked, comm, U64));
SHAPE(ping, F(ping, time_ns, U64), F(ping, comms, LIST, COMMS_MAX, &asked_shape));
SHAPE(query, F(query, id, U32));
SHAPE(credit, F(credit, rank, U32), F(credit, fd, U8), F(credit, bytes, U32));
SHAPE(end, F(end, unused, U8));
SHAPE(file,
    F(file, id, U32), F(file, name, STR, PATH_MAX_BYTES), F(file, mode, U32), F(file, size, U64),
    F(file, hash, U64), F(file, target, STR, PATH_MAX_BYTES), F(file, keep, U8),
    F(file, job_id, STR, 64));
SHAPE(check, F(check, dir, STR, PATH_MAX_BYTES));
SHAPE(stdin, F(stdin, generation, U32), F(stdin, data, BLOB));
SHAPE(stdin_eof, F(stdin_eof, generation, U32));
SHAPE(stdin_credit, F(stdin_credit, generation, U32), F(stdin_credit, bytes, U32));
SHAPE(file_data, F(file_data, id, U32), F(file_data, data, BLOB));
SHAPE(netaddr,
    F(netaddr, iface, STR, NAME_MAX_BYTES), F(netaddr, addr, STR, NAME_MAX_BYTES),
    F(netaddr, mtu, U32));
SHAPE(hello,
    F(hello, protocol, U32), F(hello, version, STR, 64), F(hello, identity, STR, NAME_MAX_BYTES),
    F(hello, hostname, STR, NAME_MAX_BYTES), F(hello, addr, STR, NAME_MAX_BYTES),
    F(hello, peer_addr, STR, NAME_MAX_BYTES), F(hello, free_port, U16), F(hello, cores, U32),
    F(hello, memory, U64), F(hello, time_ns, U64), F(hello, pid, U32), F(hello, gpus, STRS, 4096),
    F(hello, probe_port, U16), F(hello, addrs, LIST, ADDRS_MAX, &netaddr_shape),
    F(hello, in_step, U8));
SHAPE(reached,
    F(reached, node, U32), F(reached, addr, U32), F(reached, state, U8), F(reached, error, U32),
    F(reached, rtt_us, U32), F(reached, bulk_ns, U64), F(reached, both_ns, U64));
SHAPE(reach,
    F(reach, generation, U32), F(reach, all, U8),
    F(reach, results, LIST, DT_RANKS_MAX, &reached_shape));
SHAPE(ready, F(ready, generation, U32), F(ready, rendezvous_port, U16));
SHAPE(started_rank,
    F(started_rank, rank, U32), F(started_rank, pid, U32),
    F(started_rank, device, STR, TEXT_MAX_BYTES));
SHAPE(started,
    F(started, generation, U32), F(started, ranks, LIST, DT_RANKS_MAX, &started_rank_shape));
SHAPE(spawn_failed,
    F(spawn_failed, generation, U32), F(spawn_failed, rank, U32), F(spawn_failed, step, U8),
    F(spawn_failed, error, U32), F(spawn_failed, what, STR, TEXT_MAX_BYTES));
SHAPE(rank_hello,
    F(rank_hello, generation, U32), F(rank_hello, rank, U32), F(rank_hello, port, U16));
SHAPE(exit,
    F(exit, generation, U32), F(exit, rank, U32), F(exit, pid, U32), F(exit, code, U32),
    F(exit, signo, U32), F(exit, time_ns, U64), F(exit, step, U64), F(exit, flags, U32));
SHAPE(mpi_state,
    F(mpi_state, generation, U32), F(mpi_state, rank, U32), F(mpi_state, inside, U8));
SHAPE(failed,
    F(failed, generation, U32), F(failed, comm, U64), F(failed, rank, U32), F(failed, code, U32),
    F(failed, text, STR, TEXT_MAX_BYTES));
SHAPE(step, F(step, rank, U32), F(step, step, U64), F(step, stopped, U8));
SHAPE(called,
    F(called, rank, U32), F(called, place, U8), F(called, call, U64), F(called, signature, U64),
    F(called, limit_ms, U32), F(called, waited_ms, U32));
SHAPE(comm,
    F(comm, comm, U64), F(comm, members, U32S, DT_RANKS_MAX),
    F(comm, ranks, LIST, (1 + DT_HOSTSHM_PAIRS) * DT_RANKS_MAX, &called_shape));
SHAPE(pong,
    F(pong, ping_time_ns, U64), F(pong, time_ns, U64), F(pong, generation, U32),
    F(pong, limit_ms, U32), F(pong, more, U32), F(pong, steps, LIST, DT_RANKS_MAX, &step_shape),
    F(pong, comms, LIST, COMMS_MAX, &comm_shape));
SHAPE(limit, F(limit, generation, U32), F(limit, ms, U32));
SHAPE(last_call,
    F(last_call, call, U64), F(last_call, ns, U64), F(last_call, what, STR, NAME_MAX_BYTES),
    F(last_call, result, STR, NAME_MAX_BYTES), F(last_call, algorithm, STR, NAME_MAX_BYTES));
SHAPE(last_calls,
    F(last_calls, generation, U32), F(last_calls, rank, U32), F(last_calls, comm, U64),
    F(last_calls, code, U32), F(last_calls, dump, STR, PATH_MAX_BYTES),
    F(last_calls, dump_error, STR, TEXT_MAX_BYTES),
    F(last_calls, calls, LIST, DT_LAST_CALLS, &last_call_shape));
SHAPE(commit, F(commit, generation, U32), F(commit, step, U64), F(commit, kind, U8));
SHAPE(triggered, F(triggered, fault, STR, STRING_MAX_BYTES));
SHAPE(answer, F(answer, id, U32), F(answer, leaving, U32S, DT_RANKS_MAX));
SHAPE(log, F(log, text, STR, TEXT_MAX_BYTES), F(log, detail, U8));
SHAPE(file_done,
    F(file_done, id, U32), F(file_done, dir, STR, PATH_MAX_BYTES),
    F(file_done, error, STR, TEXT_MAX_BYTES));
SHAPE(facts,
    F(facts, wall_ahead_ns, U64), F(facts, kernel, STR, NAME_MAX_BYTES),
    F(facts, machine, STR, NAME_MAX_BYTES), F(facts, cpus, U32), F(facts, physical_cores, U32),
    F(facts, cpu_limit, U32), F(facts, load, U32), F(facts, memory_limit, U64),
    F(facts, memory_available, U64), F(facts, gpu_models, STRS, 4096),
    F(facts, gpu_driver, STR, NAME_MAX_BYTES), F(facts, gpu_ecc, STRS, 4096),
    F(facts, gpu_xids, STRS, 4096), F(facts, gpu_links, STR, TEXT_MAX_BYTES),
    F(facts, gpu_silent, U8), F(facts, nccl, STR, NAME_MAX_BYTES),
    F(facts, disk_dir, STR, PATH_MAX_BYTES), F(facts, disk_free, U64), F(facts, disk_error, U32));
SHAPE(output, F(output, rank, U32), F(output, fd, U8), F(output, data, BLOB));
SHAPE(output_eof, F(output_eof, rank, U32), F(output_eof, fd, U8));
SHAPE(output_quiet, F(output_quiet, rank, U32), F(output_quiet, fd, U8));
SHAPE(done, F(done, generation, U32));
SHAPE(signalled, F(signalled, signo, U32));
SHAPE(fence, F(fence, generation, U32), F(fence, data, BLOB));
SHAPE(share,
    F(share, generation, U32), F(share, node, U32), F(share, request, U32), F(share, rank, U32),
    F(share, op, U8), F(share, flag, U8), F(share, nodes, U32), F(share, key, STR, SHARE_KEY_BYTES),
    F(share, data, BLOB));
SHAPE(fenced, F(fenced, generation, U32), F(fenced, data, BLOB));
/* clang-format on */

static const struct shape *const shapes[256] = {
#define ROW(name, number, st) [number] = &st##_shape,
    DT_MSGS(ROW)
#undef ROW
};

const char *dt_msg_name(uint8_t type)
{
    return shapes[type] ? shapes[type]->name : NULL;
}

static void put_strs(struct dt_put *out, const struct dt_strs *s)
{
    dt_put_u32(out, s->n);
    for (uint32_t i = 0; i < s->n; i++)
        dt_put_str(out, s->v[i]);
}

static void put_u32s(struct dt_put *out, const struct dt_u32s *list)
{
    dt_put_u32(out, list->n);
    for (uint32_t i = 0; i < list->n; i++)
        dt_put_u32(out, list->v[i]);
}

static void put_shape(struct dt_put *out, const struct shape *shape, const void *msg);

static void put_list(struct dt_put *out, const struct shape *of, const struct dt_msg_list *list)
{
    dt_put_u32(out, list->n);
    for (uint32_t i = 0; i < list->n; i++)
        put_shape(out, of, (const char *)list->v + (size_t)i * of->size);
}

static void put_field(struct dt_put *out, const struct field *f, const void *at)
{
    const struct dt_msg_blob *blob = at;

    switch (f->kind) {
    case U8:
        dt_put_u8(out, *(const uint8_t *)at);
        break;
    case U16:
        dt_put_u16(out, *(const uint16_t *)at);
        break;
    case U32:
        dt_put_u32(out, *(const uint32_t *)at);
        break;
    case U64:
        dt_put_u64(out, *(const uint64_t *)at);
        break;
    case KEY:
        dt_put_bytes(out, at, DT_SECRET_BYTES);
        break;
    case STR:
        dt_put_str(out, *(char *const *)at);
        break;
    case STRS:
        put_strs(out, at);
        break;
    case U32S:
        put_u32s(out, at);
        break;
    case LIST:
        put_list(out, f->of, at);
        break;
    case BLOB:
        dt_put_bytes(out, blob->p, blob->n);
        break;
    }
}

static void put_shape(struct dt_put *out, const struct shape *shape, const void *msg)
{
    for (size_t i = 0; i < shape->n; i++)
        put_field(out, &shape->fields[i], (const char *)msg + shape->fields[i].at);
}

static void get_strs(struct dt_get *g, struct dt_strs *s, uint32_t max)
{
    uint32_t n = dt_get_u32(g);

    if (n > max)
        g->failed = true;
    for (uint32_t i = 0; i < n && !g->failed; i++) {
        char *text = dt_get_str(g, STRING_MAX_BYTES);

        if (!text || dt_strs_add(s, text) < 0)
            g->failed = true;
        free(text);
    }
}

/* Reads a count, and allocates an array for that many elements. Each takes at least one byte, so a
 * count beyond the rest of the input is invalid, and nothing is allocated for it. NULL: failed. */
static void *get_array(struct dt_get *g, uint32_t max, size_t size, uint32_t *n)
{
    uint32_t count = dt_get_u32(g);
    void *v = NULL;

    if (!g->failed && count <= max && count <= (size_t)(g->end - g->p))
        v = calloc(count ? count : 1, size);
    g->failed |= !v;
    *n = v ? count : 0;
    return v;
}

static void get_u32s(struct dt_get *g, struct dt_u32s *list, uint32_t max)
{
    list->v = get_array(g, max, sizeof *list->v, &list->n);
    for (uint32_t i = 0; i < list->n; i++)
        list->v[i] = dt_get_u32(g);
}

static void get_shape(struct dt_get *g, const struct shape *shape, void *msg);

static void get_list(struct dt_get *g, const struct field *f, struct dt_msg_list *list)
{
    list->v = get_array(g, f->max, f->of->size, &list->n);
    for (uint32_t i = 0; i < list->n && !g->failed; i++)
        get_shape(g, f->of, (char *)list->v + (size_t)i * f->of->size);
}

static void get_field(struct dt_get *g, const struct field *f, void *at)
{
    struct dt_msg_blob *blob = at;
    const uint8_t *key;

    switch (f->kind) {
    case U8:
        *(uint8_t *)at = dt_get_u8(g);
        break;
    case U16:
        *(uint16_t *)at = dt_get_u16(g);
        break;
    case U32:
        *(uint32_t *)at = dt_get_u32(g);
        break;
    case U64:
        *(uint64_t *)at = dt_get_u64(g);
        break;
    case KEY:
        key = dt_get_bytes(g, DT_SECRET_BYTES);
        if (key)
            memcpy(at, key, DT_SECRET_BYTES);
        break;
    case STR:
        *(char **)at = dt_get_str(g, f->max);
        break;
    case STRS:
        get_strs(g, at, f->max);
        break;
    case U32S:
        get_u32s(g, at, f->max);
        break;
    case LIST:
        get_list(g, f, at);
        break;
    case BLOB:
        blob->n = (size_t)(g->end - g->p);
        blob->p = dt_get_bytes(g, blob->n);
        break;
    }
}

static void get_shape(struct dt_get *g, const struct shape *shape, void *msg)
{
    for (size_t i = 0; i < shape->n && !g->failed; i++)
        get_field(g, &shape->fields[i], (char *)msg + shape->fields[i].at);
}

static void free_shape(const struct shape *shape, void *msg)
{
    for (size_t i = 0; i < shape->n; i++) {
        const struct field *f = &shape->fields[i];
        void *at = (char *)msg + f->at;
        struct dt_msg_list *list = at;

        if (f->kind == STR) {
            free(*(char **)at);
            *(char **)at = NULL;
        } else if (f->kind == STRS) {
            dt_strs_free(at);
        } else if (f->kind == U32S) {
            free(((struct dt_u32s *)at)->v);
            *(struct dt_u32s *)at = (struct dt_u32s){ 0 };
        } else if (f->kind == LIST) {
            for (uint32_t k = 0; k < list->n; k++)
                free_shape(f->of, (char *)list->v + (size_t)k * f->of->size);
            free(list->v);
            *list = (struct dt_msg_list){ 0 };
        }
    }
}

void dt_msg_encode(struct dt_put *out, uint8_t type, const void *msg)
{
    if (shapes[type])
        put_shape(out, shapes[type], msg);
    else
        out->failed = true;
}

int dt_msg_decode(uint8_t type, const void *payload, size_t len, union dt_msg *msg)
{
    struct dt_get g = dt_get_init(payload, len);
    int error;

    memset(msg, 0, sizeof *msg);
    errno = EPROTO; /* an allocation that fails sets another */
    if (!shapes[type])
        return -1;
    get_shape(&g, shapes[type], msg);
    if (dt_get_end(&g) == 0)
        return 0;
    error = errno;
    dt_msg_free(type, msg);
    errno = error;
    return -1;
}

void dt_msg_free(uint8_t type, union dt_msg *msg)
{
    if (shapes[type])
        free_shape(shapes[type], msg);
}

void dt_msg_frame(struct dt_put *out, uint8_t type, const void *msg)
{
    struct dt_put payload = { 0 };

    dt_msg_encode(&payload, type, msg);
    if (payload.failed)
        out->failed = true;
    else
        dt_frame_message(out, type, payload.data, payload.len);
    dt_put_free(&payload);
}
