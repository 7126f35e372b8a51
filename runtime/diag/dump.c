#include "runtime/diag/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/diag/lastcalls.h"
#include "runtime/kernels/dtype.h"
#include "runtime/wire/env.h"
#include "runtime/wire/highfd.h"
#include "runtime/wire/writeall.h"

enum { NS = 1000000000, TIME_TEXT = 48 };
/* Limits of the texts sent to dtrun, so that they and the calls fit into one packet. */
enum { DIR_SENT = 400, ERROR_SENT = 400 };

/* ---- pure ---- */

/* Converts CLOCK_MONOTONIC to the wall clock. */
static uint64_t wall_time(const struct dt_dump_about *a, uint64_t at)
{
    return a->wall - (a->now - at);
}

/* Writes "09:41:00.123456". Returns text. */
static const char *time_of_day(uint64_t wall, char text[TIME_TEXT])
{
    time_t s = (time_t)(wall / NS);
    struct tm tm;
    size_t n;

    gmtime_r(&s, &tm);
    n = strftime(text, TIME_TEXT, "%H:%M:%S", &tm);
    snprintf(text + n, TIME_TEXT - n, ".%06" PRIu64, wall % NS / 1000);
    return text;
}

static void write_text_line(FILE *out, const struct dt_dump_about *a, const struct dt_record *r)
{
    uint64_t until = r->ended ? r->ended : a->now;
    uint64_t us = (until - r->begun) / 1000;
    char comm[DT_COMM_NAME], at[TIME_TEXT], algorithm[DT_LASTCALLS_ALGORITHM], call[DT_CALL_TEXT];

    fprintf(out, "%-11s %8" PRIu64 "  %s %4" PRIu64 ".%06" PRIu64 "  %-15s  %-26s  %s\n",
            dt_comm_name(r->comm, comm), r->call.number, time_of_day(wall_time(a, r->begun), at),
            us / 1000000, us % 1000000, dt_lastcalls_result(r),
            dt_lastcalls_algorithm(r, algorithm), dt_lastcalls_call(&r->call, call));
}

void dt_dump_text(FILE *out, const struct dt_dump_about *a, const struct dt_record *records,
                  size_t n)
{
    time_t s = (time_t)(a->wall / NS);
    struct tm tm;
    char day[TIME_TEXT];

    gmtime_r(&s, &tm);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%SZ", &tm);
    fprintf(out, "dtrun flight recorder: rank %d of %d (%s), process %d, generation %u, %s\n",
            a->rank, a->size, a->host, (int)getpid(), a->generation, day);
    if (*a->why)
        fprintf(out, "failure: %s\n", a->why);
    fprintf(out, "\n%-11s %8s  %-15s %11s  %-15s  %-26s  %s\n", "comm", "call", "begun (UTC)",
            "seconds", "result", "algorithm", "what");
    for (size_t i = 0; i < n; i++)
        write_text_line(out, a, &records[i]);
}

static void write_json_string(FILE *out, const char *s)
{
    fputc('"', out);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if ((unsigned char)*s < ' ')
            fprintf(out, "\\u%04x", (unsigned)*s);
        else
            fputc(*s, out);
    }
    fputc('"', out);
}

static void write_json_time(FILE *out, const char *name, uint64_t wall)
{
    fprintf(out, ",\"%s\":%" PRIu64 ".%09" PRIu64, name, wall / NS, wall % NS);
}

static void write_json_line(FILE *out, const struct dt_dump_about *a, const struct dt_record *r)
{
    unsigned traits = dt_call_traits(r->call.kind);
    char comm[DT_COMM_NAME], algorithm[DT_LASTCALLS_ALGORITHM];

    fprintf(out, "{\"comm\":\"%s\",\"call\":%" PRIu64 ",\"kind\":\"%s\"",
            dt_comm_name(r->comm, comm), r->call.number, dt_hostshm_call_name(r->call.kind));
    if (traits & DT_CALL_TELLS_TYPE)
        fprintf(out, ",\"type\":\"%s\"", dt_dtype_name((dt_dtype_t)r->call.dtype));
    if (traits & DT_CALL_TELLS_COUNT)
        fprintf(out, ",\"count\":%" PRIu64 ",\"bytes\":%" PRIu64, r->call.count,
                r->call.count * dt_dtype_size((dt_dtype_t)r->call.dtype));
    if (traits & DT_CALL_TELLS_OP)
        fprintf(out, ",\"op\":\"%s\"", dt_op_name((dt_op_t)r->call.op));
    if (traits & (DT_CALL_TELLS_TO | DT_CALL_TELLS_FROM))
        fprintf(out, ",\"root\":%d", (int)r->call.root);
    fprintf(out, ",\"device\":%s", r->call.device ? "true" : "false");
    write_json_time(out, "begun", wall_time(a, r->begun));
    if (r->ended) {
        write_json_time(out, "ended", wall_time(a, r->ended));
        fprintf(out, ",\"result\":\"%s\",\"algorithm\":\"%s\"", dt_result_name(r->result),
                dt_lastcalls_algorithm(r, algorithm));
    }
    fputs("}\n", out);
}

void dt_dump_json(FILE *out, const struct dt_dump_about *a, const struct dt_record *records,
                  size_t n)
{
    fprintf(out, "{\"dtrun_recorder\":1,\"rank\":%d,\"size\":%d,\"host\":", a->rank, a->size);
    write_json_string(out, a->host);
    fprintf(out, ",\"pid\":%d,\"generation\":%u", (int)getpid(), a->generation);
    write_json_time(out, "written", a->wall);
    fputs(",\"failure\":", out);
    write_json_string(out, a->why);
    fputs("}\n", out);
    for (size_t i = 0; i < n; i++)
        write_json_line(out, a, &records[i]);
}

/* ---- files ---- */

static struct dt_dump_about dump_about(const struct dt_world *w, const char *why)
{
    return (struct dt_dump_about){ .rank = w->rank,
                                   .size = w->size,
                                   .generation = w->generation,
                                   .host = w->host,
                                   .why = why,
                                   .now = dt_clock_ns(),
                                   .wall = dt_clock_read(CLOCK_REALTIME) };
}

/* A dump of this rank. */
struct dump_file {
    const char *path;
    bool json;
    int nofollow; /* O_NOFOLLOW, or 0 if the program has named the file */
};

/* Usually one write(2): the process may be about to be killed. */
static dt_result_t write_file(const struct dump_file *f, const char *text, size_t bytes)
{
    int fd =
        dt_fd_high(open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | f->nofollow, 0666));
    int error = fd >= 0 && dt_write_all(fd, text, bytes) == 0 ? 0 : errno;

    if (fd >= 0 && close(fd) < 0 && errno != EINTR && !error)
        error = errno;
    return error ? dt_fail_errno(DT_ERR_IO, error, "the flight recorder's dump %s", f->path)
                 : DT_OK;
}

/* Reads the calls before the clock: no call in the dump begins after it. */
static dt_result_t write_dump(const struct dt_world *w, const struct dump_file *f, const char *why)
{
    struct dt_record *records;
    size_t n = dt_recorder_read(&records), bytes = 0;
    const struct dt_dump_about a = dump_about(w, why);
    char *text = NULL;
    FILE *out = records ? open_memstream(&text, &bytes) : NULL;
    dt_result_t r = DT_ERR_NOMEM;

    if (out)
        (f->json ? dt_dump_json : dt_dump_text)(out, &a, records, n);
    if (out && fclose(out) == 0)
        r = write_file(f, text, bytes);
    else
        dt_fail(r, "dt_recorder_dump: out of memory");
    free(text);
    free(records);
    return r;
}

/* Writes both forms into the configured directory. Another user may have put links there. */
static dt_result_t write_dumps(const struct dt_world *w, const char *why)
{
    static const char *const suffixes[] = { "txt", "jsonl" };
    dt_result_t r = dt_dir_make(w->settings.recorder);

    for (int json = 0; json < 2 && r == DT_OK; json++) {
        char path[PATH_MAX + 64];

        snprintf(path, sizeof path, "%s/rank.%05d.%u.%s", w->settings.recorder, w->rank,
                 w->generation, suffixes[json]);
        r = write_dump(w, &(struct dump_file){ path, json, O_NOFOLLOW }, why);
    }
    return r;
}

/* Sends the last calls to dtrun, which prints those of all ranks together. */
static void send_last_calls(const struct dt_world *w, uint64_t comm, dt_result_t result,
                            const char *dump_error)
{
    const char *dir = strlen(w->settings.recorder) < DIR_SENT ? w->settings.recorder : "";
    char why[ERROR_SENT];
    struct dt_msg_last_calls m = { .comm = comm,
                                   .code = result,
                                   .dump = (char *)(uintptr_t)(*dump_error ? "" : dir),
                                   .dump_error = why };
    struct dt_record *records;
    size_t n = dt_recorder_read(&records);

    snprintf(why, sizeof why, "%s", dump_error);
    dt_lastcalls_send(dt_agentlink_fd(&w->agent), &m, records, n, dt_clock_ns());
    free(records);
}

static void dump_and_send(const struct dt_world *w, uint64_t comm, const dt_error_info_t *failure)
{
    dt_result_t r = DT_OK;

    if (*w->settings.recorder)
        r = write_dumps(w, failure->message);
    send_last_calls(w, comm, failure->code, r == DT_OK ? "" : dt_last_error());
}

void dt_dump_failure(const struct dt_world *w, uint64_t comm)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    _Atomic uint32_t *flags = &w->shm.ranks[w->local_rank].flags;
    dt_error_info_t failure;

    if (w->settings.recorder_is_off || !w->settings.recorder_calls ||
        atomic_flag_test_and_set(&done))
        return;
    /* dtrun is about to end this process. The agent delays SIGTERM while the flag is set. */
    atomic_fetch_or(flags, DT_HOSTSHM_DUMPING);
    dt_error_save(&failure);
    dump_and_send(w, comm, &failure);
    dt_error_restore(&failure);
    atomic_fetch_and(flags, ~(uint32_t)DT_HOSTSHM_DUMPING);
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

dt_result_t dt_dump_now(const struct dt_world *w, const char *path)
{
    if (!w->settings.recorder_calls)
        return dt_fail(DT_ERR_STATE, "dt_recorder_dump: nothing is recorded (" DT_ENV_RECORDER_CALLS
                                     "=0, or recorder_calls of dt_init_with)");
    if (path)
        return write_dump(w, &(struct dump_file){ path, ends_in(path, ".jsonl"), 0 }, "");
    if (*w->settings.recorder)
        return write_dumps(w, "");
    return dt_fail(DT_ERR_ARG, "dt_recorder_dump: no path was given, and there is no directory for "
                               "dumps (" DT_ENV_RECORDER ", or recorder of dt_init_with)");
}
