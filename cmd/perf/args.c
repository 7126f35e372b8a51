#include "cmd/perf/args.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/perf/ops.h"

static const char *const type_names[DT_DTYPE_MAX] = {
    [DT_I8] = "int8",   [DT_U8] = "uint8",      [DT_I16] = "int16", [DT_U16] = "uint16",
    [DT_I32] = "int32", [DT_U32] = "uint32",    [DT_I64] = "int64", [DT_U64] = "uint64",
    [DT_F16] = "half",  [DT_BF16] = "bfloat16", [DT_F32] = "float", [DT_F64] = "double",
};

const char *dt_perf_type_name(dt_dtype_t dtype)
{
    return type_names[dtype];
}

/* Accepts 4, 32K, 1.5M, 256M, 1G, with binary units. */
static bool parse_bytes(const char *text, size_t *bytes)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);

    if (end == text || !(value >= 0))
        return false;
    if (*end) {
        const char *unit = strchr(units, *end >= 'a' ? *end - 'a' + 'A' : *end);

        if (!unit)
            return false;
        for (const char *u = units; u <= unit; u++)
            value *= 1024;
        end++;
    }
    if (*end == 'B' || *end == 'b')
        end++;
    if (*end || value > (double)(SIZE_MAX / 4))
        return false;
    *bytes = (size_t)value;
    return true;
}

static bool parse_count(const char *text, int *count)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    *count = (int)value;
    return errno == 0 && end != text && *end == '\0' && value >= 0 && value <= 1000000000;
}

static bool is_all(const char *text, int *value)
{
    if (strcmp(text, "all") != 0)
        return false;
    *value = DT_PERF_ALL;
    return true;
}

static bool parse_type(const char *text, int *dtype)
{
    if (is_all(text, dtype))
        return true;
    for (dt_dtype_t t = DT_I8; t <= DT_F64; t++) {
        if (strcmp(text, type_names[t]) == 0 || strcmp(text, dt_dtype_name(t)) == 0) {
            *dtype = (int)t;
            return true;
        }
    }
    return false;
}

static bool parse_op(const char *text, int *op)
{
    if (is_all(text, op))
        return true;
    for (dt_op_t o = DT_SUM; o <= DT_ADASUM; o++) {
        if (strcmp(text, dt_op_name(o)) == 0) {
            *op = (int)o;
            return true;
        }
    }
    return false;
}

/* nccl-tests uses -1 for all roots. */
static bool parse_root(const char *text, int *root)
{
    return is_all(text, root) || parse_count(text, root) ||
           (strcmp(text, "-1") == 0 && is_all("all", root));
}

/* For options of nccl-tests that dtrun-perf accepts with one value only. */
static bool parse_only(const char *text, int only)
{
    int n;

    return parse_count(text, &n) && n == only;
}

static bool parse_average(const char *text, enum dt_perf_average *average)
{
    int n;

    if (!parse_count(text, &n) || n > DT_PERF_MAX)
        return false;
    *average = (enum dt_perf_average)n;
    return true;
}

static bool parse_above(const char *text, double least, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return end != text && *end == '\0' && *value > least && *value <= 1e6;
}

/* OSU's benchmarks use -d for the device, nccl-tests for the type. No type has a device's name. */
static bool parse_device(const char *text, bool *gpu)
{
    *gpu = *gpu || strcmp(text, "cuda") == 0;
    return strcmp(text, "cuda") == 0 || strcmp(text, "host") == 0;
}

static bool parse_check(const char *text, bool *check)
{
    int n;

    if (!parse_count(text, &n))
        return false;
    *check = n > 0;
    return true;
}

/* Options without a letter. */
enum { LONG_LINK = 256, LONG_DEVICE, LONG_RAW, LONG_TUNE, LONG_VERSION };

static const struct option options[] = {
    { "minbytes", required_argument, NULL, 'b' },
    { "maxbytes", required_argument, NULL, 'e' },
    { "stepbytes", required_argument, NULL, 'i' },
    { "stepfactor", required_argument, NULL, 'f' },
    { "iters", required_argument, NULL, 'n' },
    { "warmup_iters", required_argument, NULL, 'w' },
    { "datatype", required_argument, NULL, 'd' },
    { "op", required_argument, NULL, 'o' },
    { "root", required_argument, NULL, 'r' },
    { "check", required_argument, NULL, 'c' },
    { "average", required_argument, NULL, 'a' },
    { "unalign", required_argument, NULL, 'u' },
    { "ngpus", required_argument, NULL, 'g' },
    { "nthreads", required_argument, NULL, 't' },
    { "agg_iters", required_argument, NULL, 'm' },
    { "cudagraph", required_argument, NULL, 'G' },
    { "device", required_argument, NULL, LONG_DEVICE },
    { "link", required_argument, NULL, LONG_LINK },
    { "json", required_argument, NULL, 'J' },
    { "raw", no_argument, NULL, LONG_RAW },
    { "tune", no_argument, NULL, LONG_TUNE },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, LONG_VERSION },
    { NULL, 0, NULL, 0 },
};

/* Prints lines of at most 90 characters. */
static void print_collectives(void)
{
    const struct dt_perf_op *op;
    size_t column = 0;

    for (size_t i = 0; (op = dt_perf_op_at(i)) != NULL; i++) {
        size_t width = strlen(op->name) + 2;
        bool wraps = column + width > 90;

        printf("%s%s%s", i ? "," : "", wraps ? "\n" : i ? " " : "", op->name);
        column = wraps ? width : column + width;
    }
    putchar('\n');
}

void dt_perf_args_help(void)
{
    puts("usage: dtrun -np N dtrun-perf COLLECTIVE [OPTION]...\n"
         "       dtrun -np N dtrun-perf --tune [-n N]\n"
         "\n"
         "Measures a collective and prints the table of nccl-tests, with the 50th and 99th "
         "percentile\n"
         "of the times, and the least possible time as a percentage of the time taken. COLLECTIVE "
         "is one of");
    print_collectives();
    puts("\n"
         "  -b, --minbytes SIZE       the smallest size (32M; 4, 32K, 1G: binary units)\n"
         "  -e, --maxbytes SIZE       the largest size (that of -b)\n"
         "  -f, --stepfactor F        multiply the size by F (2)\n"
         "  -i, --stepbytes SIZE      add SIZE instead\n"
         "  -n, --iters N             calls at each size (as many as take 0.1 s, at least 20)\n"
         "  -w, --warmup_iters N      calls before those, not measured (5)\n"
         "  -d, --datatype TYPE       float (default), double, half, bfloat16, int8, uint8 ... "
         "uint64, all\n"
         "  -o, --op OP               sum (default), prod, min, max, avg, band, bor, bxor, "
         "all,\n"
         "                            or adasum, for all_reduce\n"
         "  -r, --root RANK           root of reduce, broadcast, gather and scatter (0), or all\n"
         "  -c, --check 0|1           check the results (1)\n"
         "  -a, --average N           times of: 0 rank 0, 1 the mean (default), 2 the shortest,\n"
         "                            3 the longest of all ranks\n"
         "  -u, --unalign BYTES       distance of buffers from an aligned address (0)\n"
         "  -g, --ngpus 1, -t, --nthreads 1, -m, --agg_iters 1, -G, --cudagraph 0\n"
         "                            accepted, so that command lines of nccl-tests work\n"
         "      --device host|cuda    where the buffers lie (host); -d cuda means the same\n"
         "      --raw                 with -d cuda: also call NCCL itself on the same buffers\n"
         "      --link GBITS          rate of a host's network in each direction, for %bound with\n"
         "                            several hosts (measured)\n"
         "  -J, --json FILE           also write JSON there; -: to standard output, and no table\n"
         "      --tune                instead: measure the thresholds of dtrun-tuning(5) with "
         "these\n"
         "                            ranks, and write them where libdtrun finds them\n"
         "  -h, --help, --version");
}

static bool set_option(struct dt_perf_args *a, int c, const char *value)
{
    switch (c) {
    case 'b':
        return parse_bytes(value, &a->min_bytes);
    case 'e':
        return parse_bytes(value, &a->max_bytes);
    case 'i':
        return parse_bytes(value, &a->step) && a->step > 0;
    case 'f':
        return parse_above(value, 1, &a->factor);
    case 'n':
        return parse_count(value, &a->iterations) && a->iterations > 0;
    case 'w':
        return parse_count(value, &a->warmup);
    case 'd':
        return parse_device(value, &a->gpu) || parse_type(value, &a->dtype);
    case LONG_DEVICE:
        return parse_device(value, &a->gpu);
    case 'o':
        return parse_op(value, &a->op);
    case 'r':
        return parse_root(value, &a->root);
    case 'c':
        return parse_check(value, &a->check);
    case 'a':
        return parse_average(value, &a->average);
    case 'u':
        return parse_bytes(value, &a->offset) && a->offset <= 4096;
    case LONG_LINK:
        return parse_above(value, 0, &a->link);
    case 'g':
    case 't':
    case 'm':
        return parse_only(value, 1);
    case 'G':
        return parse_only(value, 0);
    case 'J':
        a->json = value;
        return *value;
    case LONG_RAW:
        a->raw = true;
        return true;
    case LONG_TUNE:
        a->tune = true;
        return true;
    case 'h':
        a->help = true;
        return true;
    default:
        a->version = true;
        return true;
    }
}

static const char *long_name(int c)
{
    for (const struct option *o = options; o->name; o++) {
        if (o->val == c)
            return o->name;
    }
    return NULL;
}

static bool is_for_tune(int c)
{
    return c == LONG_TUNE || (c < LONG_LINK && strchr("ngtmG", c));
}

/* Writes the sentence into text and returns it. */
__attribute__((format(printf, 2, 3))) static const char *complain(char text[DT_PERF_ARGS_ERROR],
                                                                  const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, DT_PERF_ARGS_ERROR, format, ap);
    va_end(ap);
    return text;
}

static const char *check_op(const struct dt_perf_args *a, char text[DT_PERF_ARGS_ERROR])
{
    if (a->op == DT_PERF_ALL || a->dtype == DT_PERF_ALL ||
        dt_perf_combines((dt_op_t)a->op, (dt_dtype_t)a->dtype))
        return NULL;
    if (a->op == DT_ADASUM)
        return complain(text, "-o adasum is for floats, not %s", type_names[a->dtype]);
    return complain(text, "-o %s works on the bits of integers, not on %s",
                    dt_op_name((dt_op_t)a->op), type_names[a->dtype]);
}

/* Finds options that contradict each other. */
static const char *check_options(struct dt_perf_args *a, bool has_max,
                                 char text[DT_PERF_ARGS_ERROR])
{
    if (!has_max)
        a->max_bytes = a->min_bytes;
    if (a->max_bytes < a->min_bytes)
        return complain(text, "the largest size (-e) is below the smallest (-b)");
    if (a->raw && !a->gpu)
        return complain(text, "--raw compares calls on GPU memory with NCCL's: add -d cuda");
    return check_op(a, text);
}

/* not_for_tune is the name of the last option that --tune does not allow, or NULL. */
static const char *check_tune(const char *not_for_tune, const char *word,
                              char text[DT_PERF_ARGS_ERROR])
{
    if (word)
        return complain(text, "--tune chooses the collectives itself: leave out %s", word);
    if (not_for_tune)
        return complain(text, "--tune chooses what to measure: leave out --%s", not_for_tune);
    return NULL;
}

/* Stores the collective, the only word that is not an option. words ends with NULL. */
static const char *set_collective(struct dt_perf_args *a, char *const *words,
                                  char text[DT_PERF_ARGS_ERROR])
{
    a->collective = words[0];
    if (!words[0])
        return complain(text, "name a collective, such as all_reduce");
    if (words[1])
        return complain(text, "only one collective can be measured, not also %s", words[1]);
    return NULL;
}

/* If other letters follow the wrong one, getopt has not advanced to the next word yet. */
static const char *wrong_option(char **argv, char letter[3])
{
    memcpy(letter, (char[]){ '-', (char)optopt, '\0' }, 3);
    return optopt && !long_name(optopt) ? letter : argv[optind - 1];
}

const char *dt_perf_args_parse(struct dt_perf_args *a, int argc, char **argv,
                               char text[DT_PERF_ARGS_ERROR])
{
    const char *not_for_tune = NULL, *error;
    bool has_max = false;
    char letter[3];
    int c;

    *a = (struct dt_perf_args){ .min_bytes = 32 << 20,
                                .max_bytes = 32 << 20,
                                .factor = 2,
                                .warmup = 5,
                                .dtype = DT_F32,
                                .op = DT_SUM,
                                .check = true,
                                .average = DT_PERF_MEAN };
    opterr = 0;
    while ((c = getopt_long(argc, argv, ":b:e:i:f:n:w:d:o:r:c:a:u:g:t:m:G:J:h", options, NULL)) !=
           -1) {
        if (c == ':')
            return complain(text, "%s needs a value", wrong_option(argv, letter));
        if (c == '?')
            return complain(text, "there is no option %s", wrong_option(argv, letter));
        if (!set_option(a, c, optarg))
            return complain(text, "--%s: '%s' is not a value it takes", long_name(c), optarg);
        has_max = has_max || c == 'e';
        if (!is_for_tune(c))
            not_for_tune = long_name(c);
    }
    if (a->help || a->version)
        return NULL;
    if (a->tune)
        return check_tune(not_for_tune, argv[optind], text);
    error = set_collective(a, argv + optind, text);
    return error ? error : check_options(a, has_max, text);
}

size_t dt_perf_next_size(const struct dt_perf_args *a, size_t bytes)
{
    double next = (double)bytes * a->factor;

    if (a->step)
        return bytes > SIZE_MAX - a->step ? SIZE_MAX : bytes + a->step;
    if (next >= (double)SIZE_MAX)
        return SIZE_MAX;
    return (size_t)next > bytes ? (size_t)next : bytes + 1;
}
