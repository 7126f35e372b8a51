/* charlm: learns to write like the text files it is given, one byte after the other.
 *
 * An example of a data-parallel training program that uses dtrun.h. Every rank holds the whole
 * model and computes the gradient of its share of each batch. One all-reduce per step sums the
 * shares. A step depends only on the seed, its number and the previous model, so a run that resumes
 * from a checkpoint ends with the same bytes as an undisturbed one.
 *
 * The model concatenates the learned vectors of the last bytes and passes them through three
 * layers, which end in the probabilities of the next byte. With --device cuda a GPU computes
 * (charlm_gpu.c). */
#include <err.h>
#include <getopt.h>
#include <glob.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dtrun.h>

#include "charlm.h"

#ifndef TEXT_DIR
#define TEXT_DIR "/usr/share/doc/dtrun/examples" /* where the text is, if no file is named */
#endif

static int context = 10; /* how many preceding bytes predict the next one */
static int steps = 1500, batch = 512, width = 160, seed = 1;
static int checkpoint_every = 100, sample_length = 400;
static bool isave; /* save in the background */
static double rate = 0.012;

/* With --wire, gradients travel between hosts in fewer bytes. The loss of precision is added to the
 * next step's gradient, so it is part of a checkpoint. */
static const char *const wires[] = { "exact", "f16", "bf16", "int8", "2bit" };
static dt_all_reduce_options_t summing = DT_ALL_REDUCE_OPTIONS_INIT;

static uint8_t *text;
static int64_t text_len;

/* Every call of dtrun.h that can fail goes through CHECK. A lost peer needs no message: dtrun
 * reports it, and restarts all ranks from the last checkpoint. */
static void check(dt_result_t result, const char *call)
{
    if (result == DT_ERR_PEER)
        exit(1);
    if (result != DT_OK)
        errx(1, "rank %d: %s: %s: %s", dt_rank(), call, dt_strerror(result), dt_last_error());
}
#define CHECK(call) check((call), #call)

static void *allocate(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (!p)
        errx(1, "rank %d: out of memory for %zu x %zu bytes", dt_rank(), count, size);
    return p;
}

static uint64_t scramble(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* A random number in [0, 1). It depends only on the arguments and is the same on every rank. */
static double uniform(const char *purpose, int64_t a, int64_t b)
{
    uint64_t key = scramble(scramble((uint64_t)seed * 256 + (uint8_t)*purpose) + (uint64_t)a);

    return (double)(scramble(key + (uint64_t)b) >> 11) * 0x1p-53;
}

static void read_file(const char *name)
{
    FILE *f = fopen(name, "rb");
    uint8_t *longer;
    long len;

    if (!f || fseek(f, 0, SEEK_END) || (len = ftell(f)) < 0 || fseek(f, 0, SEEK_SET))
        err(1, "%s", name);
    longer = realloc(text, (size_t)(text_len + len) + 1);
    if (!longer || fread(longer + text_len, 1, (size_t)len, f) != (size_t)len)
        err(1, "%s", name);
    fclose(f);
    text = longer;
    text_len += len;
}

/* Rank 0 reads the text and sends it to all ranks, so that only one host needs the files. */
static void share_text(char **names)
{
    glob_t found = { 0 };

    if (dt_rank() == 0) {
        if (!*names)
            glob(TEXT_DIR "/*.c", 0, NULL, &found);
        for (char **name = *names ? names : found.gl_pathv; name && *name; name++)
            read_file(*name);
        globfree(&found);
        if (text_len <= context)
            errx(1, "%lld bytes of text are too few; name more files", (long long)text_len);
    }
    CHECK(dt_broadcast(DT_WORLD, &text_len, 1, DT_I64, 0));
    text = realloc(text, (size_t)text_len + 4);
    if (!text)
        errx(1, "rank %d: out of memory for the text", dt_rank());
    CHECK(dt_broadcast(DT_WORLD, text, (size_t)text_len / 4 + 1, DT_I32, 0));
}

static void widths(size_t n[LAYERS + 1])
{
    memcpy(n, (size_t[]){ (size_t)context * EMBED, (size_t)width, (size_t)width, BYTES },
           (LAYERS + 1) * sizeof *n);
}

static size_t net_size(void)
{
    size_t n[LAYERS + 1], size = (size_t)BYTES * EMBED;

    widths(n);
    for (int l = 0; l < LAYERS; l++)
        size += (n[l] + 1) * n[l + 1];
    return size;
}

/* A net whose arrays begin at `all`. */
static struct net net_at(float *all)
{
    struct net net = { .all = all, .size = net_size() };
    float *w = all + BYTES * EMBED;
    size_t n[LAYERS + 1];

    widths(n);
    for (int l = 0; l < LAYERS; l++) {
        net.layer[l] = (struct layer){ w, w + n[l] * n[l + 1], n[l], n[l + 1] };
        w += (n[l] + 1) * n[l + 1];
    }
    return net;
}

static struct net net_new(void)
{
    return net_at(allocate(net_size() + 1, sizeof(float)));
}

static void net_randomize(struct net *net)
{
    for (int64_t i = 0; i < BYTES * EMBED; i++)
        net->all[i] = (float)(2 * uniform("embed", 0, i) - 1);
    for (int l = 0; l < LAYERS; l++) {
        const struct layer *y = &net->layer[l];
        double range = sqrt(6.0 / (double)y->in) * (l == LAYERS - 1 ? 0.1 : 1);

        for (size_t i = 0; i < y->in * y->out; i++)
            y->w[i] = (float)((2 * uniform("weights", l, (int64_t)i) - 1) * range);
    }
}

/* For some examples: the input of each layer, the output of the last, and the derivatives of the
 * loss with respect to both. Example i predicts the byte *next[i] from those before it. */
struct work {
    size_t rows;
    const uint8_t **next;
    float *value[LAYERS + 1], *slope[LAYERS + 1], *transposed;
};

static struct work work_new(const struct net *net, size_t rows)
{
    struct work k = { .rows = rows, .next = allocate(rows + 1, sizeof *k.next) };

    for (int l = 0; l <= LAYERS; l++) {
        size_t n = (rows + 4) * (l < LAYERS ? net->layer[l].in : BYTES);

        k.value[l] = allocate(n, sizeof(float));
        k.slope[l] = allocate(n, sizeof(float));
    }
    k.transposed = allocate(net->size, sizeof(float));
    return k;
}

typedef float vec __attribute__((vector_size(16), aligned(4), may_alias));

/* c[m][n] += a[m][k] b[k][n], four rows by eight columns at a time. n is a multiple of 8, and a and
 * c have room for a multiple of 4 rows. Element (i, p) of a is at a[i * row + p * col], so
 * transposing it costs nothing. */
static void matmul(float *c, const float *a, size_t row, size_t col, const float *b, size_t m,
                   size_t k, size_t n)
{
    for (size_t j = 0; j < n; j += 8)
        for (size_t i = 0; i < m; i += 4) {
            vec sum[4][2] = { 0 };

            for (size_t p = 0; p < k; p++)
#pragma GCC unroll 4
                for (size_t r = 0; r < 4; r++) {
                    sum[r][0] += a[(i + r) * row + p * col] * *(const vec *)(b + p * n + j);
                    sum[r][1] += a[(i + r) * row + p * col] * *(const vec *)(b + p * n + j + 4);
                }
#pragma GCC unroll 4
            for (size_t r = 0; r < 4; r++) {
                *(vec *)(c + (i + r) * n + j) += sum[r][0];
                *(vec *)(c + (i + r) * n + j + 4) += sum[r][1];
            }
        }
}

/* Leaves the next bytes' probabilities in k->value[LAYERS]. A temperature below 1 sharpens them. */
static void forward(const struct net *net, struct work *k, float temperature)
{
    for (size_t i = 0; i < k->rows; i++)
        for (size_t c = 0; c < (size_t)context; c++)
            memcpy(k->value[0] + (i * (size_t)context + c) * EMBED,
                   net->all + k->next[i][-1 - (ptrdiff_t)c] * EMBED, EMBED * sizeof(float));
    for (int l = 0; l < LAYERS; l++) {
        const struct layer *y = &net->layer[l];
        float *out = k->value[l + 1];

        for (size_t i = 0; i < k->rows; i++)
            memcpy(out + i * y->out, y->b, y->out * sizeof(float));
        matmul(out, k->value[l], y->in, 1, y->w, k->rows, y->in, y->out);
        for (size_t i = 0; l < LAYERS - 1 && i < k->rows * y->out; i++)
            out[i] = out[i] > 0 ? out[i] : 0;
    }
    for (float *p = k->value[LAYERS]; p < k->value[LAYERS] + k->rows * BYTES; p += BYTES) {
        float max = p[0], sum = 0;

        for (int j = 1; j < BYTES; j++)
            max = p[j] > max ? p[j] : max;
        for (int j = 0; j < BYTES; j++)
            sum += p[j] = expf((p[j] - max) / temperature);
        for (int j = 0; j < BYTES; j++)
            p[j] /= sum;
    }
}

/* From the derivatives of a layer's output, adds those of its weights and computes those of its
 * input. */
static void layer_backward(const struct layer *y, const struct layer *grad, struct work *k, int l)
{
    const float *slope = k->slope[l + 1];

    for (size_t i = 0; i < k->rows; i++)
        for (size_t j = 0; j < y->out; j++)
            grad->b[j] += slope[i * y->out + j];
    matmul(grad->w, k->value[l], 1, y->in, slope, y->in, k->rows, y->out);
    for (size_t i = 0; i < y->in; i++)
        for (size_t j = 0; j < y->out; j++)
            k->transposed[j * y->in + i] = y->w[i * y->out + j];
    memset(k->slope[l], 0, k->rows * y->in * sizeof(float));
    matmul(k->slope[l], slope, y->out, 1, k->transposed, k->rows, y->out, y->in);
    for (size_t i = 0; l > 0 && i < k->rows * y->in; i++)
        k->slope[l][i] = k->value[l][i] > 0 ? k->slope[l][i] : 0;
}

/* After forward: adds the gradient of weight * loss in nats, and weight * loss in bits. */
static void backward(const struct net *net, const struct net *grad, struct work *k, float weight)
{
    for (size_t i = 0; i < k->rows; i++) {
        const float *p = k->value[LAYERS] + i * BYTES;

        for (int j = 0; j < BYTES; j++)
            k->slope[LAYERS][i * BYTES + (size_t)j] = (p[j] - (j == *k->next[i])) * weight;
        grad->all[net->size] -= weight * log2f(p[*k->next[i]] + 1e-30f);
    }
    for (int l = LAYERS - 1; l >= 0; l--)
        layer_backward(&net->layer[l], &grad->layer[l], k, l);
    for (size_t i = 0; i < k->rows; i++)
        for (size_t c = 0; c < (size_t)context; c++)
            for (size_t e = 0; e < EMBED; e++)
                grad->all[k->next[i][-1 - (ptrdiff_t)c] * EMBED + e] +=
                    k->slope[0][(i * (size_t)context + c) * EMBED + e];
}

static void adam(float *w, float *m, float *v, const float *grad, size_t size, float scale,
                 float keep)
{
    for (size_t i = 0; i < size; i++) {
        m[i] += 0.1f * (grad[i] - m[i]);
        v[i] += 0.01f * (grad[i] * grad[i] - v[i]);
        w[i] = keep * w[i] - scale * m[i] / (sqrtf(v[i]) + 1e-8f);
    }
}

/* ---- on the host's CPUs ---- */

static struct {
    struct model *model;
    struct net grad;
    struct work work;
} host;

static void host_open(struct model *model, const uint8_t *its_text, size_t n, size_t rows)
{
    (void)its_text;
    (void)n;
    host.model = model;
    host.grad = net_new();
    host.work = work_new(&model->weights, rows);
}

static float *host_gradient(const int64_t *next, float weight)
{
    memset(host.grad.all, 0, (host.grad.size + 1) * sizeof(float));
    for (size_t i = 0; i < host.work.rows; i++)
        host.work.next[i] = text + next[i];
    forward(&host.model->weights, &host.work, 1);
    backward(&host.model->weights, &host.grad, &host.work, weight);
    return host.grad.all;
}

static float host_step(float scale, float keep)
{
    struct model *model = host.model;

    adam(model->weights.all, model->m.all, model->v.all, host.grad.all, host.grad.size, scale,
         keep);
    return host.grad.all[host.grad.size];
}

static void host_fetch(struct net *weights)
{
    (void)weights; /* they are in host memory already */
}

static const struct device processor = { host_open, host_gradient, host_step, host_fetch };
static const struct device *device = &processor;

/* ---- training ---- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The loss is a single number, so it always travels in full precision. */
static void add_up(float *grad, size_t size)
{
    size_t with_loss = summing.wire == DT_WIRE_EXACT;

    CHECK(dt_all_reduce_with(DT_WORLD, DT_IN_PLACE, grad, size + with_loss, DT_F32, DT_SUM,
                             &summing));
    if (!with_loss)
        CHECK(dt_all_reduce(DT_WORLD, DT_IN_PLACE, grad + size, 1, DT_F32, DT_SUM));
}

/* AdamW's learning rate rises for 100 steps, then falls linearly. Returns the loss. */
static float update(double step)
{
    double now = rate * (step < 100 ? step / 100 : 1) * (1.02 - step / steps);
    double scale = now * sqrt(1 - pow(0.99, step)) / (1 - pow(0.9, step));

    return device->step((float)scale, (float)(1 - 0.01 * now));
}

/* A model in GPU memory is saved from there and restored to there. Returns the step that the model
 * comes from. */
static int64_t restore(struct model *model, double *loss)
{
    size_t bytes = model->weights.size * sizeof(float);
    int64_t restored;

    if (summing.wire != DT_WIRE_EXACT) {
        summing.residual = allocate(model->weights.size, sizeof(float));
        CHECK(dt_checkpoint_register("residual", summing.residual, bytes));
    }
    CHECK(dt_checkpoint_register("weights", model->weights.all, bytes));
    CHECK(dt_checkpoint_register("adam m", model->m.all, bytes));
    CHECK(dt_checkpoint_register("adam v", model->v.all, bytes));
    CHECK(dt_checkpoint_register("loss", loss, sizeof *loss));
    CHECK(dt_checkpoint_restore(&restored));
    if (restored > 0 && dt_rank() == 0)
        printf("continuing after step %lld\n", (long long)restored);
    return restored < 0 ? 0 : restored;
}

/* request: of the save in the background, if there is one. */
static void save(int64_t step, dt_request_t *request)
{
    if (!isave) {
        CHECK(dt_checkpoint_save(step));
        return;
    }
    CHECK(dt_wait(request));
    CHECK(dt_checkpoint_isave(step, request));
}

static void train(struct model *model)
{
    int64_t first = (int64_t)batch * dt_rank() / dt_size();
    int64_t rows = (int64_t)batch * (dt_rank() + 1) / dt_size() - first;
    int64_t *next = allocate((size_t)rows + 1, sizeof *next);
    double loss = 8; /* a moving average */
    double choices = (double)(text_len - context), start;
    dt_request_t request = { 0 };
    int64_t restored;

    device->open(model, text, (size_t)text_len, (size_t)rows);
    restored = restore(model, &loss);
    start = seconds();
    for (int64_t step = restored + 1; step <= steps; step++) {
        dt_step(step);
        for (int64_t i = 0; i < rows; i++)
            next[i] = context + (int64_t)(choices * uniform("examples", step, first + i));
        add_up(device->gradient(next, 1 / (float)batch), model->weights.size);
        loss += (update((double)step) - loss) * 0.05;
        if (dt_rank() == 0 && (step == 1 || step % 100 == 0 || step == steps))
            printf("step %5lld of %d  loss %.4f bits/byte  %5.1f kB/s\n", (long long)step, steps,
                   loss, (double)((step - restored) * batch) / (seconds() - start) * 1e-3);
        if (step == steps || (checkpoint_every && step % checkpoint_every == 0))
            save(step, &request);
    }
    CHECK(dt_wait(&request));
    free(next);
}

/* Continues the beginning of the text. */
static void sample(const struct net *net)
{
    struct work k = work_new(net, 1);
    uint8_t *out = allocate((size_t)(context + sample_length), 1);

    memcpy(out, text, (size_t)context);
    printf("--- a sample ---\n");
    for (int i = 0; i < sample_length; i++) {
        double left = uniform("sample", 0, i);
        int c = 0;

        k.next[0] = out + context + i;
        forward(net, &k, 0.7f);
        while (c < BYTES - 1 && (left -= k.value[LAYERS][c]) >= 0)
            c++;
        out[context + i] = (uint8_t)c;
        putchar(c == '\n' || (c >= ' ' && c <= '~') ? c : '?');
    }
    printf("\n--- the end ---\n");
}

static dt_wire_t read_wire(const char *name)
{
    for (int i = 0; i < (int)(sizeof wires / sizeof *wires); i++)
        if (strcmp(name, wires[i]) == 0)
            return (dt_wire_t)i;
    errx(1, "%s: --wire takes exact, f16, bf16, int8 or 2bit", name);
}

static const struct device *read_device(const char *name)
{
    if (strcmp(name, "host") == 0)
        return &processor;
    if (strcmp(name, "cuda") != 0)
        errx(1, "%s: --device takes host or cuda", name);
#ifdef CHARLM_PTX
    return &gpu;
#else
    errx(1, "--device cuda: this charlm was built where there was no CUDA compiler: install nvcc "
            "(developer.nvidia.com/cuda-downloads), then run configure and make again");
#endif
}

static void print_help(void)
{
    printf("usage: charlm [OPTION]... [FILE]...\n"
           "Learns to write like the files, by default the C files in\n"
           "%s.\n\n"
           "  --steps N             steps of training (%d)\n"
           "  --batch N             bytes that each step predicts (%d)\n"
           "  --lr RATE             how far each step goes (%g)\n"
           "  --context N           bytes that each prediction sees (%d)\n"
           "  --width N             values in a layer, a multiple of 8 (%d)\n"
           "  --seed N              begins the random numbers (%d)\n"
           "  --sample N            bytes to write in the end (%d)\n"
           "  --checkpoint-every N  steps between checkpoints; 0: only one in the end (%d)\n"
           "  --isave               saves checkpoints in the background\n"
           "  --wire FORMAT         between hosts: exact (default), f16, bf16, int8 or 2bit\n"
           "  --threshold VALUE     the number that 2bit sends (%g)\n"
           "  --device DEVICE       computes: host (default) or cuda\n",
           TEXT_DIR, steps, batch, rate, context, width, seed, sample_length, checkpoint_every,
           (double)summing.threshold);
}

/* Returns what follows the options: the names of the text files. */
static char **read_options(int argc, char **argv)
{
    int *const numbers[] = { &steps, &batch,         &context,         &width,
                             &seed,  &sample_length, &checkpoint_every };
    const struct option names[] = {
        { "steps", 1, NULL, 0 },
        { "batch", 1, NULL, 1 },
        { "context", 1, NULL, 2 },
        { "width", 1, NULL, 3 },
        { "seed", 1, NULL, 4 },
        { "sample", 1, NULL, 5 },
        { "checkpoint-every", 1, NULL, 6 },
        { "isave", 0, NULL, 'i' },
        { "lr", 1, NULL, 'l' },
        { "wire", 1, NULL, 'w' },
        { "device", 1, NULL, 'd' },
        { "threshold", 1, NULL, 't' },
        { "help", 0, NULL, 'h' },
        { 0 },
    };

    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        char *end = "";

        if (c == '?')
            exit(2);
        if (c == 'h') {
            print_help();
            exit(0);
        }
        if (c == 'l')
            rate = strtod(optarg, &end);
        else if (c == 't')
            summing.threshold = strtof(optarg, &end);
        else if (c == 'w')
            summing.wire = read_wire(optarg);
        else if (c == 'i')
            isave = true;
        else if (c == 'd')
            device = read_device(optarg);
        else
            *numbers[c] = (int)strtol(optarg, &end, 10);
        if (*end)
            errx(1, "%s: a number was expected", optarg);
    }
    if (steps < 1 || batch < 1 || context < 1 || width < 8 || width % 8 || sample_length < 0)
        errx(1, "an option is too small, or --width is not a multiple of 8");
    return argv + optind;
}

int main(int argc, char **argv)
{
    char **files = read_options(argc, argv);
    struct model model;

    setvbuf(stdout, NULL, _IOLBF, 0);
    CHECK(dt_init());
    share_text(files);
    model = (struct model){ net_new(), net_new(), net_new() };
    net_randomize(&model.weights);
    train(&model);
    device->fetch(&model.weights);
    if (dt_rank() == 0 && sample_length)
        sample(&model.weights);
    CHECK(dt_finalize());
    return 0;
}
