/* Drives a fuzz target without libFuzzer: first every file of the corpus, then, for a short time,
 * random changes of them. Prints TAP. A target that breaks a promise aborts, after the driver has
 * printed the seed.
 *
 * usage: PROGRAM [FILE...]      FILEs replace corpus and random inputs, to look at one failure
 * DTRUN_FUZZ_SECONDS (2) and DTRUN_FUZZ_SEED (the time) change what runs. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"
#include "tests/fuzz/fuzz.h"

enum { INPUT_MAX = 4096 };

struct input {
    uint8_t *data;
    size_t n;
};

static struct input *corpus;
static size_t ncorpus;
static uint64_t random_state;

/* xorshift64* */
static size_t random_below(size_t limit)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return limit ? (size_t)((random_state * 2685821657736338717u) >> 33) % limit : 0;
}

/* The target gets a buffer of exactly the input's size, so that sanitizers find reads past its
 * end. */
static void try_input(const uint8_t *data, size_t n)
{
    uint8_t *copy = dt_xcalloc(n, 1);

    if (n)
        memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static int load(const char *path)
{
    struct dt_strbuf b = { 0 };
    struct dt_error err = { 0 };

    if (dt_slurp(&b, path, 1 << 20, &err) < 0) {
        printf("Bail out! %s: %s\n", path, err.text);
        return -1;
    }
    corpus = dt_xrealloc(corpus, ncorpus + 1, sizeof *corpus);
    corpus[ncorpus++] = (struct input){ (uint8_t *)b.data, b.len };
    return 0;
}

static int load_corpus(const char *directory)
{
    struct dirent **names;
    int n = scandir(directory, &names, NULL, alphasort), rc = n < 0 ? -1 : 0;

    for (int i = 0; i < n; i++) {
        char *path = dt_xasprintf("%s/%s", directory, names[i]->d_name);

        if (rc == 0 && names[i]->d_name[0] != '.')
            rc = load(path);
        free(path);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    if (n < 0 || !ncorpus)
        printf("Bail out! no corpus in %s\n", directory);
    return ncorpus ? rc : -1;
}

/* Makes one change to the n bytes at data, which has room for INPUT_MAX. Returns the new length. */
static size_t change(uint8_t *data, size_t n)
{
    const struct input *other = &corpus[random_below(ncorpus)];
    size_t at = random_below(n + 1), length = random_below(16) + 1, from;

    switch (random_below(6)) {
    case 0: /* flip a bit */
        if (at < n)
            data[at] ^= (uint8_t)(1u << random_below(8));
        return n;
    case 1: /* any byte */
        if (at < n)
            data[at] = (uint8_t)random_below(256);
        return n;
    case 2: /* a byte from elsewhere in the input, which is more likely to have a meaning */
        if (at < n && other->n)
            data[at] = other->data[random_below(other->n)];
        return n;
    case 3: /* remove a piece */
        if (length > n - at)
            length = n - at;
        memmove(data + at, data + at + length, n - at - length);
        return n - length;
    case 4: /* cut off the end */
        return at;
    default: /* insert a piece of another input */
        from = random_below(other->n + 1);
        if (length > other->n - from)
            length = other->n - from;
        if (length > INPUT_MAX - n)
            length = INPUT_MAX - n;
        memmove(data + at + length, data + at, n - at);
        if (length)
            memcpy(data + at, other->data + from, length);
        return n + length;
    }
}

static size_t run_random(double seconds)
{
    uint8_t data[INPUT_MAX];
    struct timespec begin, now;
    size_t runs = 0;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        const struct input *base = &corpus[random_below(ncorpus)];
        size_t n = base->n < INPUT_MAX ? base->n : INPUT_MAX;

        if (n)
            memcpy(data, base->data, n);
        for (size_t changes = random_below(6) + 1; changes; changes--)
            n = change(data, n);
        try_input(data, n);
        runs++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 <
             seconds);
    return runs;
}

int main(int argc, char **argv)
{
    const char *source = getenv("DTRUN_SOURCE"), *seconds = getenv("DTRUN_FUZZ_SECONDS");
    const char *seed = getenv("DTRUN_FUZZ_SEED");
    char *directory = dt_xasprintf("%s/tests/fuzz/corpus/%s", source ? source : ".",
                                   program_invocation_short_name);
    int rc = 0;

    for (int i = 1; i < argc && rc == 0; i++)
        rc = load(argv[i]);
    if (argc == 1)
        rc = load_corpus(directory);
    free(directory);
    if (rc < 0)
        return 1;
    random_state = (seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) << 16) | 1;
    printf("1..%d\n# DTRUN_FUZZ_SEED=%#llx\n", argc == 1 ? 2 : 1, (unsigned long long)random_state);
    fflush(stdout);
    for (size_t i = 0; i < ncorpus; i++)
        try_input(corpus[i].data, corpus[i].n);
    printf("ok 1 - %zu given inputs\n", ncorpus);
    fflush(stdout);
    if (argc == 1)
        printf("ok 2 - %zu random inputs\n", run_random(seconds ? atof(seconds) : 2));
    for (size_t i = 0; i < ncorpus; i++)
        free(corpus[i].data);
    free(corpus);
    return 0;
}
