#include "runtime/wire/msg.h"

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
    STRINGS_MAX = 1000000,              /* more than Linux lets a program begin with */
    ADDRS_MAX = 4096,
    COMMS_MAX = 1000000,
};

#define F(st, member, k, ...)                                                                      \
    {                                                                                              \
        k, offsetof(struct dt_msg_##st, member), __VA_ARGS__                                       \
    }
#define SHAPE(st, ...)                                                                             \
    static const struct field st##_fields[] = { __VA_ARGS__ };                                     \
    static const struct shape st##_shape = { #st, sizeof(struct dt_msg_##st), st##_fields,         \
                                             sizeof st##_fields / sizeof *st##_fields }

/* clang-format off */
SHAPE(start,
    F(start, generation, U32, 0, NULL), F(start, job_id, STR, 64, NULL),
    F(start, secret, KEY, 0, NULL), F(start, np, U32, 0, NULL), F(start, nodes, U32, 0, NULL),
    F(start, node_rank, U32, 0, NULL), F(start, restart_count, U32, 0, NULL),
    F(start, max_restarts, U32, 0, NULL), F(start, heartbeat_ms, U32, 0, NULL),
    F(start, slots, U32, 0, NULL), F(start, gpus, STRS, 4096, NULL),
    F(start, gpus_given, U8, 0, NULL), F(start, stdin_rank, U32, 0, NULL),
    F(start, merge_stderr, U8, 0, NULL), F(start, ranks, U32S, DT_RANKS_MAX, NULL),
    F(start, auxiliaries, U32S, DT_RANKS_MAX, NULL), F(start, servers, U32, 0, NULL),
    F(start, host, STR, NAME_MAX_BYTES, NULL), F(start, wdir, STR, PATH_MAX_BYTES, NULL),
    F(start, master_port, U16, 0, NULL), F(start, scheduler_port, U16, 0, NULL),
    F(start, checkpoint_dir, STR, PATH_MAX_BYTES, NULL),
    F(start, check_checkpoint_dir, U8, 0, NULL), F(start, fresh, U8, 0, NULL),
    F(start, resume, U8, 0, NULL),
    F(start, file_dir, STR, PATH_MAX_BYTES, NULL), F(start, argv, STRS, STRINGS_MAX, NULL),
    F(start, env, STRS, STRINGS_MAX, NULL), F(start, unset, STRS, STRINGS_MAX, NULL),
    F(start, inject, STRS, STRINGS_MAX, NULL), F(start, gpu_bind, U8, 0, NULL),
    F(start, bind_to, U8, 0, NULL), F(start, report_bindings, U8, 0, NULL),
    F(start, virtual_local_rank, U8, 0, NULL), F(start, frameworks, U8, 0, NULL),
    F(start, universe, U32, 0, NULL),
    F(start, mpi_map, U32S, 3 * DT_RANKS_MAX, NULL));
SHAPE(go,
    F(go, generation, U32, 0, NULL), F(go, master_addr, STR, NAME_MAX_BYTES, NULL),
    F(go, addr, STR, NAME_MAX_BYTES, NULL), F(go, iface, STR, NAME_MAX_BYTES, NULL),
    F(go, tf_cluster, STR, STRING_MAX_BYTES, NULL), F(go, rendezvous_port, U16, 0, NULL),
    F(go, local_sizes, U32S, DT_RANKS_MAX, NULL), F(go, mpi_env, STRS, 4096, NULL));
SHAPE(target,
    F(target, node, U32, 0, NULL), F(target, port, U16, 0, NULL),
    F(target, addrs, STRS, ADDRS_MAX, NULL));
SHAPE(probe,
    F(probe, generation, U32, 0, NULL), F(probe, secret, KEY, 0, NULL),
    F(probe, node, U32, 0, NULL), F(probe, all, U8, 0, NULL), F(probe, bytes, U32, 0, NULL),
    F(probe, targets, LIST, DT_RANKS_MAX, &target_shape));
SHAPE(addr,
    F(addr, host, STR, NAME_MAX_BYTES, NULL), F(addr, port, U16, 0, NULL),
    F(addr, node, U32, 0, NULL));
SHAPE(table,
    F(table, generation, U32, 0, NULL), F(table, addrs, LIST, DT_RANKS_MAX, &addr_shape),
    F(table, hosts, STRS, DT_RANKS_MAX, NULL));
SHAPE(signal, F(signal, signo, U32, 0, NULL));
SHAPE(stop, F(stop, grace_ms, U32, 0, NULL));
SHAPE(abort,
    F(abort, generation, U32, 0, NULL), F(abort, comm, U64, 0, NULL), F(abort, rank, U32, 0, NULL),
    F(abort, code, U32, 0, NULL), F(abort, text, STR, TEXT_MAX_BYTES, NULL),
    F(abort, ending, U32, 0, NULL));
SHAPE(asked, F(asked, comm, U64, 0, NULL));
SHAPE(ping, F(ping, time_ns, U64, 0, NULL), F(ping, comms, LIST, COMMS_MAX, &asked_shape));
SHAPE(query, F(query, id, U32, 0, NULL));
SHAPE(credit, F(credit, rank, U32, 0, NULL), F(credit, fd, U8, 0, NULL),
    F(credit, bytes, U32, 0, NULL));
SHAPE(end, F(end, unused, U8, 0, NULL));
SHAPE(file,
    F(file, id, U32, 0, NULL), F(file, name, STR, PATH_MAX_BYTES, NULL),
    F(file, mode, U32, 0, NULL), F(file, size, U64, 0, NULL), F(file, hash, U64, 0, NULL),
    F(file, target, STR, PATH_MAX_BYTES, NULL), F(file, keep, U8, 0, NULL),
    F(file, job_id, STR, 64, NULL));
SHAPE(check, F(check, dir, STR, PATH_MAX_BYTES, NULL));
SHAPE(stdin, F(stdin, generation, U32, 0, NULL), F(stdin, data, BLOB, 0, NULL));
SHAPE(stdin_eof, F(stdin_eof, generation, U32, 0, NULL));
SHAPE(stdin_credit,
    F(stdin_credit, generation, U32, 0, NULL), F(stdin_credit, bytes, U32, 0, NULL));
SHAPE(file_data, F(file_data, id, U32, 0, NULL), F(file_data, data, BLOB, 0, NULL));
SHAPE(netaddr,
    F(netaddr, iface, STR, NAME_MAX_BYTES, NULL), F(netaddr, addr, STR, NAME_MAX_BYTES, NULL),
    F(netaddr, mtu, U32, 0, NULL));
SHAPE(hello,
    F(hello, protocol, U32, 0, NULL), F(hello, version, STR, 64, NULL),
    F(hello, identity, STR, NAME_MAX_BYTES, NULL), F(hello, hostname, STR, NAME_MAX_BYTES, NULL),
    F(hello, addr, STR, NAME_MAX_BYTES, NULL), F(hello, peer_addr, STR, NAME_MAX_BYTES, NULL),
    F(hello, free_port, U16, 0, NULL), F(hello, cores, U32, 0, NULL),
    F(hello, memory, U64, 0, NULL), F(hello, time_ns, U64, 0, NULL), F(hello, pid, U32, 0, NULL),
    F(hello, gpus, STRS, 4096, NULL), F(hello, probe_port, U16, 0, NULL),
    F(hello, addrs, LIST, ADDRS_MAX, &netaddr_shape));
SHAPE(reached,
    F(reached, node, U32, 0, NULL), F(reached, addr, U32, 0, NULL), F(reached, state, U8, 0, NULL),
    F(reached, error, U32, 0, NULL), F(reached, rtt_us, U32, 0, NULL),
    F(reached, bulk_ns, U64, 0, NULL));
SHAPE(reach,
    F(reach, generation, U32, 0, NULL), F(reach, all, U8, 0, NULL),
    F(reach, results, LIST, DT_RANKS_MAX, &reached_shape));
SHAPE(ready, F(ready, generation, U32, 0, NULL), F(ready, rendezvous_port, U16, 0, NULL));
SHAPE(started_rank,
    F(started_rank, rank, U32, 0, NULL), F(started_rank, pid, U32, 0, NULL),
    F(started_rank, device, STR, TEXT_MAX_BYTES, NULL));
SHAPE(started,
    F(started, generation, U32, 0, NULL),
    F(started, ranks, LIST, DT_RANKS_MAX, &started_rank_shape));
SHAPE(spawn_failed,
    F(spawn_failed, generation, U32, 0, NULL), F(spawn_failed, rank, U32, 0, NULL),
    F(spawn_failed, step, U8, 0, NULL), F(spawn_failed, error, U32, 0, NULL),
    F(spawn_failed, what, STR, TEXT_MAX_BYTES, NULL));
SHAPE(rank_hello,
    F(rank_hello, generation, U32, 0, NULL), F(rank_hello, rank, U32, 0, NULL),
    F(rank_hello, port, U16, 0, NULL));
SHAPE(exit,
    F(exit, generation, U32, 0, NULL), F(exit, rank, U32, 0, NULL), F(exit, pid, U32, 0, NULL),
    F(exit, code, U32, 0, NULL), F(exit, signo, U32, 0, NULL), F(exit, time_ns, U64, 0, NULL),
    F(exit, step, U64, 0, NULL), F(exit, flags, U32, 0, NULL));
SHAPE(failed,
    F(failed, generation, U32, 0, NULL), F(failed, comm, U64, 0, NULL),
    F(failed, rank, U32, 0, NULL), F(failed, code, U32, 0, NULL), F(failed, text, STR, TEXT_MAX_BYTES, NULL));
SHAPE(step,
    F(step, rank, U32, 0, NULL), F(step, step, U64, 0, NULL), F(step, stopped, U8, 0, NULL));
SHAPE(called,
    F(called, rank, U32, 0, NULL), F(called, place, U8, 0, NULL), F(called, call, U64, 0, NULL),
    F(called, signature, U64, 0, NULL), F(called, limit_ms, U32, 0, NULL), F(called, waited_ms, U32, 0, NULL));
SHAPE(comm,
    F(comm, comm, U64, 0, NULL), F(comm, members, U32S, DT_RANKS_MAX, NULL),
    F(comm, ranks, LIST, (1 + DT_HOSTSHM_PAIRS) * DT_RANKS_MAX, &called_shape));
SHAPE(pong,
    F(pong, ping_time_ns, U64, 0, NULL), F(pong, time_ns, U64, 0, NULL),
    F(pong, generation, U32, 0, NULL), F(pong, limit_ms, U32, 0, NULL),
    F(pong, more, U32, 0, NULL),
    F(pong, steps, LIST, DT_RANKS_MAX, &step_shape),
    F(pong, comms, LIST, COMMS_MAX, &comm_shape));
SHAPE(limit, F(limit, generation, U32, 0, NULL), F(limit, ms, U32, 0, NULL));
SHAPE(last_call,
    F(last_call, call, U64, 0, NULL), F(last_call, ns, U64, 0, NULL),
    F(last_call, what, STR, NAME_MAX_BYTES, NULL), F(last_call, result, STR, NAME_MAX_BYTES, NULL),
    F(last_call, way, STR, NAME_MAX_BYTES, NULL));
SHAPE(last_calls,
    F(last_calls, generation, U32, 0, NULL), F(last_calls, rank, U32, 0, NULL),
    F(last_calls, comm, U64, 0, NULL), F(last_calls, code, U32, 0, NULL),
    F(last_calls, dump, STR, PATH_MAX_BYTES, NULL), F(last_calls, trouble, STR, TEXT_MAX_BYTES, NULL),
    F(last_calls, calls, LIST, DT_LAST_CALLS, &last_call_shape));
SHAPE(commit,
    F(commit, generation, U32, 0, NULL), F(commit, step, U64, 0, NULL),
    F(commit, restored, U8, 0, NULL));
SHAPE(struck, F(struck, fault, STR, STRING_MAX_BYTES, NULL));
SHAPE(answer, F(answer, id, U32, 0, NULL), F(answer, leaving, U32S, DT_RANKS_MAX, NULL));
SHAPE(log, F(log, text, STR, TEXT_MAX_BYTES, NULL));
SHAPE(file_done,
    F(file_done, id, U32, 0, NULL), F(file_done, dir, STR, PATH_MAX_BYTES, NULL),
    F(file_done, error, STR, TEXT_MAX_BYTES, NULL));
SHAPE(facts,
    F(facts, wall_ahead_ns, U64, 0, NULL), F(facts, kernel, STR, NAME_MAX_BYTES, NULL),
    F(facts, machine, STR, NAME_MAX_BYTES, NULL), F(facts, cpus, U32, 0, NULL),
    F(facts, physical_cores, U32, 0, NULL), F(facts, cpu_limit, U32, 0, NULL),
    F(facts, load, U32, 0, NULL), F(facts, memory_limit, U64, 0, NULL),
    F(facts, memory_available, U64, 0, NULL), F(facts, gpu_models, STRS, 4096, NULL),
    F(facts, gpu_driver, STR, NAME_MAX_BYTES, NULL), F(facts, gpu_ecc, STRS, 4096, NULL),
    F(facts, gpu_xids, STRS, 4096, NULL), F(facts, gpu_links, STR, TEXT_MAX_BYTES, NULL),
    F(facts, gpu_silent, U8, 0, NULL), F(facts, nccl, STR, NAME_MAX_BYTES, NULL), F(facts, disk_dir, STR, PATH_MAX_BYTES, NULL),
    F(facts, disk_free, U64, 0, NULL), F(facts, disk_error, U32, 0, NULL));
SHAPE(output,
    F(output, rank, U32, 0, NULL), F(output, fd, U8, 0, NULL), F(output, data, BLOB, 0, NULL));
SHAPE(output_eof, F(output_eof, rank, U32, 0, NULL), F(output_eof, fd, U8, 0, NULL));
SHAPE(output_quiet, F(output_quiet, rank, U32, 0, NULL), F(output_quiet, fd, U8, 0, NULL));
SHAPE(done, F(done, generation, U32, 0, NULL));
SHAPE(signalled, F(signalled, signo, U32, 0, NULL));
SHAPE(fence, F(fence, generation, U32, 0, NULL), F(fence, data, BLOB, 0, NULL));
SHAPE(fenced, F(fenced, generation, U32, 0, NULL), F(fenced, data, BLOB, 0, NULL));
/* clang-format on */

static const struct shape *const shapes[256] = {
    [DT_MSG_START] = &start_shape,
    [DT_MSG_GO] = &go_shape,
    [DT_MSG_PROBE] = &probe_shape,
    [DT_MSG_TABLE] = &table_shape,
    [DT_MSG_SIGNAL] = &signal_shape,
    [DT_MSG_STOP] = &stop_shape,
    [DT_MSG_ABORT] = &abort_shape,
    [DT_MSG_PING] = &ping_shape,
    [DT_MSG_QUERY] = &query_shape,
    [DT_MSG_CREDIT] = &credit_shape,
    [DT_MSG_END] = &end_shape,
    [DT_MSG_FILE] = &file_shape,
    [DT_MSG_CHECK] = &check_shape,
    [DT_MSG_FENCED] = &fenced_shape,
    [DT_MSG_STDIN] = &stdin_shape,
    [DT_MSG_STDIN_EOF] = &stdin_eof_shape,
    [DT_MSG_FILE_DATA] = &file_data_shape,
    [DT_MSG_HELLO] = &hello_shape,
    [DT_MSG_READY] = &ready_shape,
    [DT_MSG_REACH] = &reach_shape,
    [DT_MSG_STARTED] = &started_shape,
    [DT_MSG_SPAWN_FAILED] = &spawn_failed_shape,
    [DT_MSG_RANK_HELLO] = &rank_hello_shape,
    [DT_MSG_EXIT] = &exit_shape,
    [DT_MSG_FAILED] = &failed_shape,
    [DT_MSG_PONG] = &pong_shape,
    [DT_MSG_LIMIT] = &limit_shape,
    [DT_MSG_LAST_CALLS] = &last_calls_shape,
    [DT_MSG_COMMIT] = &commit_shape,
    [DT_MSG_STRUCK] = &struck_shape,
    [DT_MSG_ANSWER] = &answer_shape,
    [DT_MSG_LOG] = &log_shape,
    [DT_MSG_STDIN_CREDIT] = &stdin_credit_shape,
    [DT_MSG_FILE_DONE] = &file_done_shape,
    [DT_MSG_FACTS] = &facts_shape,
    [DT_MSG_SIGNALLED] = &signalled_shape,
    [DT_MSG_FENCE] = &fence_shape,
    [DT_MSG_OUTPUT] = &output_shape,
    [DT_MSG_OUTPUT_EOF] = &output_eof_shape,
    [DT_MSG_OUTPUT_QUIET] = &output_quiet_shape,
    [DT_MSG_DONE] = &done_shape,
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

/* An array for as many elements as come next, each of which takes at least one byte: a count beyond
 * what is left is a lie, and nothing is allocated for it. NULL when failed. */
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

    memset(msg, 0, sizeof *msg);
    if (!shapes[type])
        return -1;
    get_shape(&g, shapes[type], msg);
    if (dt_get_end(&g) == 0)
        return 0;
    dt_msg_free(type, msg);
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
