/* A rank of a random job (tests/cluster/random): randomjob SEED STEPS EVERY DIR [WORD...].
 *
 * In each step all ranks make a collective that follows from the seed, compare the result with a
 * plain computation, and add it to a state, which is saved every EVERY steps (0: never; -1: the
 * program never calls the library). Whatever is restored must be the state of an undisturbed run.
 * Each rank writes lines, "l RANK.GENERATION.NUMBER LENGTH SUM CONTENT", whose SUM (Adler-32) tells
 * whether they are whole; those on standard error begin with "e". Words are
 *
 *   binary, long     lines have any bytes but ends of lines; some lines are long
 *   ignore           it ignores SIGINT and SIGTERM
 *   family           it has two children, one in a session of its own, which never end
 *   input=BYTES      rank 0 reads standard input to its end; in the first run it must have BYTES
 *   all              the other ranks read it, too
 *   tell=RANK:STEP   the file DIR/told.RANK.STEP appears when this rank begins this step
 *   RANK:STEP:CODE   in the first run, this rank exits so when it begins this step
 *   RANK:STEP:-SIGNAL   likewise, it sends itself this signal
 *
 * Each rank first makes DIR/started.GENERATION.RANK, with the index of its host and the job's id. A
 * rank that exits makes DIR/ended.GENERATION.RANK, with its exit code and the number of lines that
 * it has written to standard output and to standard error; before a fault it makes
 * DIR/struck.RANK.STEP. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/dtrun.h"

enum { STATE = 4096, MOST = 16, COUNT = 20000, LONG = 300000, WRONG = 99 };

static uint64_t seed;
static int64_t steps, every;
static const char *dir;
static char **words;
static int rank, size, generation;
static long lines[3]; /* of standard output and standard error, by descriptor */
static bool binary, with_long;
static uint64_t state[STATE];

/* ---- random numbers ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static size_t below(uint64_t *dice, size_t n)
{
    *dice += 0x9e3779b97f4a7c15;
    return mix(*dice) % n;
}

/* ---- notes for tests/cluster/random ---- */

static void note(const char *name, const char *text)
{
    char path[512], made[520];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(made, sizeof made, "%s/.%s.%d", dir, name, rank);
    f = fopen(made, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0 || rename(made, path) != 0)
        abort();
}

static void note_start(void)
{
    char name[64], text[200];

    snprintf(name, sizeof name, "started.%d.%d", generation, rank);
    snprintf(text, sizeof text, "%s %s\n", getenv("DTRUN_NODE_RANK"), getenv("DTRUN_JOB_ID"));
    note(name, text);
}

static void leave(int code)
{
    char name[64], text[64];

    snprintf(name, sizeof name, "ended.%d.%d", generation, rank);
    snprintf(text, sizeof text, "%d %ld %ld\n", code, lines[1], lines[2]);
    note(name, text);
    exit(code);
}

/* ---- lines ---- */

static void write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, text, n);

        if (done < 0 && errno != EINTR)
            leave(2);
        text += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
}

static uint32_t adler32(const char *text, size_t n)
{
    uint32_t a = 1, b = 0;

    for (size_t i = 0; i < n; i++) {
        a = (a + (uint8_t)text[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static void say(int fd, const char *text, size_t n)
{
    static char line[LONG + 100];
    size_t at = (size_t)snprintf(line, 100, "%c %d.%d.%ld %zu %" PRIu32 " ", fd == 1 ? 'l' : 'e',
                                 rank, generation, lines[fd], n, adler32(text, n));

    memcpy(line + at, text, n);
    line[at + n] = '\n';
    write_all(fd, line, at + n + 1);
    lines[fd]++;
}

static void say_something(uint64_t *dice, int fd)
{
    static char text[LONG];
    size_t n = below(dice, 3) ? below(dice, 80) : below(dice, 3000);

    if (with_long && below(dice, 20) == 0)
        n = below(dice, LONG);
    for (size_t i = 0; i < n; i++) {
        text[i] = (char)(binary ? below(dice, 256) : ' ' + below(dice, 95));
        if (text[i] == '\n' || text[i] == '\r')
            text[i] = '.';
    }
    say(fd, text, n);
}

static void write_output(int64_t step)
{
    uint64_t dice = mix(seed * 31 + (uint64_t)step) + (uint64_t)rank * 7919;
    size_t n = below(&dice, 8) ? below(&dice, 3) : below(&dice, 200);

    while (n-- > 0)
        say_something(&dice, below(&dice, 4) ? 1 : 2);
}

static void fail(int code, const char *what)
{
    say(2, what, strlen(what));
    leave(code);
}

static void must(dt_result_t result)
{
    if (result != DT_OK)
        fail(1, dt_last_error());
}

/* ---- a step ---- */

/* What a rank brings to a step. */
static uint64_t part(int64_t step, int r, size_t i)
{
    return mix(seed + (uint64_t)step * 1000003 + (uint64_t)r * 8191 + i);
}

enum kind { SUM, MAX, NONBLOCKING_SUM, GATHER, EXCHANGE, SCATTERED_SUM, BROADCAST, KINDS };

struct call {
    enum kind kind;
    size_t count; /* elements of the result, or of a block of it */
    int root;
};

static struct call call_of(int64_t step)
{
    uint64_t dice = mix(seed ^ (uint64_t)step << 32);
    struct call c = { .kind = (enum kind)below(&dice, KINDS),
                      .root = (int)below(&dice, (size_t)size) };

    c.count = 1 + (below(&dice, 4) ? below(&dice, 100) : below(&dice, COUNT));
    return c;
}

static uint64_t folded(const struct call *c, int64_t step, size_t i)
{
    uint64_t all = 0;

    for (int r = 0; r < size; r++) {
        uint64_t one = part(step, r, i);

        all = c->kind == MAX ? (one > all ? one : all) : all + one;
    }
    return all;
}

/* Element i of block b of the result, computed without the library. */
static uint64_t wanted(const struct call *c, int64_t step, int b, size_t i)
{
    switch (c->kind) {
    case GATHER:
        return part(step, b, i);
    case EXCHANGE:
        return part(step, b, (size_t)rank * c->count + i);
    case SCATTERED_SUM:
        return folded(c, step, (size_t)rank * c->count + i);
    case BROADCAST:
        return part(step, c->root, i);
    default:
        return folded(c, step, i);
    }
}

static int blocks_of(const struct call *c)
{
    return c->kind == GATHER || c->kind == EXCHANGE ? size : 1;
}

static void add_to_state(uint64_t *to, const struct call *c, int64_t step)
{
    for (int b = 0; b < blocks_of(c); b++) {
        for (size_t i = 0; i < c->count; i++) {
            uint64_t *at = &to[(i * 13 + (size_t)b) % STATE];

            *at = (*at ^ wanted(c, step, b, i)) * 0x100000001b3;
        }
    }
}

static dt_result_t make(const struct call *c, uint64_t *in, uint64_t *out)
{
    dt_request_t request;
    dt_result_t r;

    switch (c->kind) {
    case NONBLOCKING_SUM:
        r = dt_iall_reduce(DT_WORLD, in, out, c->count, DT_U64, DT_SUM, &request);
        return r == DT_OK ? dt_wait(&request) : r;
    case GATHER:
        return dt_all_gather(DT_WORLD, in, out, c->count, DT_U64);
    case EXCHANGE:
        return dt_all_to_all(DT_WORLD, in, out, c->count, DT_U64);
    case SCATTERED_SUM:
        return dt_reduce_scatter(DT_WORLD, in, out, c->count, DT_U64, DT_SUM);
    case BROADCAST:
        memcpy(out, in, c->count * sizeof *in);
        return dt_broadcast(DT_WORLD, out, c->count, DT_U64, c->root);
    default:
        return dt_all_reduce(DT_WORLD, in, out, c->count, DT_U64, c->kind == MAX ? DT_MAX : DT_SUM);
    }
}

static void compute(int64_t step)
{
    static uint64_t in[COUNT * MOST], out[COUNT * MOST];
    struct call c = call_of(step);

    for (size_t i = 0; i < c.count * (size_t)size; i++)
        in[i] = part(step, rank, i);
    must(make(&c, in, out));
    for (int b = 0; b < blocks_of(&c); b++) {
        for (size_t i = 0; i < c.count; i++) {
            if (out[(size_t)b * c.count + i] != wanted(&c, step, b, i))
                fail(WRONG, "wrong result");
        }
    }
    add_to_state(state, &c, step);
}

/* ---- checkpoints ---- */

static int64_t restore(void)
{
    static uint64_t replayed[STATE];
    int64_t step = -1;

    must(dt_checkpoint_register("state", state, sizeof state));
    must(dt_checkpoint_restore(&step));
    for (int64_t s = 1; s <= step; s++) {
        struct call c = call_of(s);

        add_to_state(replayed, &c, s);
    }
    if (memcmp(replayed, state, sizeof state) != 0)
        fail(WRONG, "wrong checkpoint");
    return step < 0 ? 0 : step;
}

static void save(int64_t step)
{
    static dt_request_t behind;
    dt_result_t r;

    if (every <= 0 || step % every != 0)
        return;
    r = dt_wait(&behind);
    if (r == DT_OK)
        r = mix(seed + (uint64_t)step) % 2 ? dt_checkpoint_isave(step, &behind)
                                           : dt_checkpoint_save(step);
    if (r != DT_ERR_IO) /* a full disk: the job goes on */
        must(r);
}

/* ---- words ---- */

static bool has(const char *word)
{
    for (char **w = words; *w; w++) {
        if (strcmp(*w, word) == 0)
            return true;
    }
    return false;
}

static void make_family(void)
{
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            if (i > 0)
                setsid();
            for (;;)
                pause();
        }
    }
}

static void act_on_words(int64_t step)
{
    int r, code;
    int64_t at;
    char name[64];

    for (char **w = words; *w; w++) {
        if (sscanf(*w, "tell=%d:%" SCNd64, &r, &at) == 2 && r == rank && at == step) {
            snprintf(name, sizeof name, "told.%d.%" PRId64, rank, step);
            note(name, "");
        }
        if (sscanf(*w, "%d:%" SCNd64 ":%d", &r, &at, &code) != 3 || r != rank || at != step ||
            atoi(getenv("DTRUN_RESTART_COUNT")) > 0)
            continue;
        snprintf(name, sizeof name, "struck.%d.%" PRId64, rank, step);
        note(name, "");
        if (code >= 0)
            leave(code);
        raise(-code);
    }
}

static void read_input(void)
{
    char buffer[65536];
    size_t all = 0, want = 0;
    bool expected = false;
    ssize_t n;

    for (char **w = words; *w; w++)
        expected |= sscanf(*w, "input=%zu", &want) == 1;
    if (!expected || (rank != 0 && !has("all")))
        return;
    while ((n = read(0, buffer, sizeof buffer)) > 0)
        all += (size_t)n;
    if (n < 0 || (all != want && atoi(getenv("DTRUN_RESTART_COUNT")) == 0))
        fail(WRONG, "wrong input");
}

static void take_time(int64_t step)
{
    usleep((useconds_t)(mix(seed + (uint64_t)(step * MOST + rank)) % 15000));
}

static void linked(void)
{
    int64_t step = 0;

    must(dt_init());
    if (every > 0)
        step = restore();
    while (step < steps) {
        dt_step(++step);
        act_on_words(step);
        if (step == steps / 2)
            read_input();
        take_time(step);
        compute(step);
        write_output(step);
        save(step);
    }
    must(dt_finalize());
}

static void plain(void)
{
    for (int64_t step = 1; step <= steps; step++) {
        act_on_words(step);
        if (step == steps / 2)
            read_input();
        take_time(step);
        write_output(step);
    }
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    seed = mix(strtoull(argv[1], NULL, 10));
    steps = atoll(argv[2]);
    every = atoll(argv[3]);
    dir = argv[4];
    words = argv + 5;
    rank = atoi(getenv("DTRUN_RANK"));
    size = atoi(getenv("DTRUN_SIZE"));
    generation = atoi(getenv("DTRUN_GENERATION"));
    binary = has("binary");
    with_long = has("long");
    if (has("ignore")) {
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
    }
    note_start();
    if (has("family"))
        make_family();
    act_on_words(0);
    every < 0 ? plain() : linked();
    leave(0);
}
