/* charlm's steps on a GPU, with the CUDA driver's API. The driver is loaded only if it is needed,
 * so that the same program runs on hosts without one. */
#include <cuda.h>
#include <dlfcn.h>
#include <err.h>
#include <stdlib.h>

#include <dtrun.h>

#include "charlm_kernels.h"

/* nvcc's output for charlm.cu, as text. */
__asm__(".pushsection .rodata\n"
        "charlm_ptx: .incbin \"" CHARLM_PTX "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char charlm_ptx[];

/* ---- the driver ---- */

#define FUNCTIONS(X)                                                                               \
    X(cuInit)                                                                                      \
    X(cuDeviceGet)                                                                                 \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuCtxSetCurrent)                                                                             \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleGetFunction)                                                                         \
    X(cuMemAlloc)                                                                                  \
    X(cuMemcpyHtoD)                                                                                \
    X(cuMemcpyDtoH)                                                                                \
    X(cuLaunchKernel)                                                                              \
    X(cuGetErrorString)

/* cuda.h defines some names with a version: cuMemAlloc is cuMemAlloc_v2. */
#define NAME(text)    #text
#define DECLARE(name) __typeof__(&name) name##_;
#define KERNEL(name)  CUfunction name;
static struct {
    FUNCTIONS(DECLARE)
} cuda;
static struct {
    CHARLM_KERNELS(KERNEL)
} kernels;

static void check(CUresult result, const char *call)
{
    const char *what = "unknown error";

    if (result == CUDA_SUCCESS)
        return;
    cuda.cuGetErrorString_(result, &what);
    errx(1, "rank %d: %s: %s", dt_rank(), call, what);
}
#define CUDA(name, ...) check(cuda.name##_(__VA_ARGS__), #name)

static void *find(void *driver, const char *name)
{
    void *function = driver ? dlsym(driver, name) : NULL;

    if (!function)
        errx(1, "rank %d: --device cuda: %s", dt_rank(), dlerror());
    return function;
}

/* By default a rank sees only the GPU that dtrun has chosen for it, as device 0. */
static void load_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUcontext primary;
    CUdevice device;
    CUmodule module;

#define FIND(name) *(void **)&cuda.name##_ = find(driver, NAME(name));
    FUNCTIONS(FIND)
    CUDA(cuInit, 0);
    CUDA(cuDeviceGet, &device, 0);
    CUDA(cuDevicePrimaryCtxRetain, &primary, device);
    CUDA(cuCtxSetCurrent, primary);
    CUDA(cuModuleLoadData, &module, charlm_ptx);
#define GET(name) CUDA(cuModuleGetFunction, &kernels.name, module, "charlm_" #name);
    CHARLM_KERNELS(GET)
}

static void launch(CUfunction kernel, void *parameters, uint64_t n)
{
    enum { THREADS = 256, MOST_BLOCKS = 4096 };
    void *both[] = { parameters, &n };
    uint64_t blocks = (n + THREADS - 1) / THREADS;

    if (n)
        CUDA(cuLaunchKernel, kernel, blocks < MOST_BLOCKS ? (unsigned)blocks : MOST_BLOCKS, 1, 1,
             THREADS, 1, 1, 0, NULL, both, NULL);
}

/* LAUNCH(matmul, n, .c = c, ...) runs a kernel for n elements with these parameters. */
#define LAUNCH(name, n, ...) launch(kernels.name, &(struct charlm_##name){ __VA_ARGS__ }, (n))

static void *new (size_t bytes)
{
    CUdeviceptr at;

    CUDA(cuMemAlloc, &at, bytes ? bytes : 1);
    return (void *)(uintptr_t)at;
}

static void put(void *to, const void *from, size_t bytes)
{
    if (bytes)
        CUDA(cuMemcpyHtoD, (CUdeviceptr)(uintptr_t)to, from, bytes);
}

static void get(void *to, const void *from, size_t bytes)
{
    CUDA(cuMemcpyDtoH, to, (CUdeviceptr)(uintptr_t)from, bytes);
}

/* ---- the model: all pointers are to device memory ---- */

static size_t rows;
static uint8_t *text_there;
static int64_t *next;
static struct net weights, m, v, gradient;
static float *value[LAYERS + 1], *slope[LAYERS + 1]; /* as in charlm.c */

static struct net new_net(const struct net *shape)
{
    return net_like(shape, new ((shape->size + 1) * sizeof(float)));
}

static void move_there(struct net *net)
{
    struct net there = new_net(net);

    put(there.all, net->all, net->size * sizeof(float));
    free(net->all);
    *net = there;
}

static void gpu_open(struct model *model, const uint8_t *text, size_t text_len, size_t examples)
{
    load_driver();
    rows = examples;
    text_there = new (text_len);
    put(text_there, text, text_len);
    next = new (rows * sizeof *next);
    move_there(&model->weights);
    move_there(&model->m);
    move_there(&model->v);
    weights = model->weights;
    m = model->m;
    v = model->v;
    gradient = new_net(&weights);
    for (int l = 0; l <= LAYERS; l++) {
        size_t bytes = rows * (l < LAYERS ? weights.layer[l].in : BYTES) * sizeof(float);

        value[l] = new (bytes);
        slope[l] = new (bytes);
    }
}

static void forward(void)
{
    LAUNCH(embed, rows * weights.layer[0].in, .out = value[0], .vectors = weights.all,
           .text = text_there, .next = next, .context = weights.layer[0].in / EMBED);
    for (int l = 0; l < LAYERS; l++) {
        const struct layer *y = &weights.layer[l];

        LAUNCH(matmul, rows * y->out, .c = value[l + 1], .a = value[l], .a_row = y->in, .a_col = 1,
               .b = y->w, .b_row = y->out, .b_col = 1, .depth = y->in, .n = y->out, .bias = y->b,
               .rectify = l < LAYERS - 1);
    }
    LAUNCH(softmax, rows, .rows = value[LAYERS]);
}

static void backward(float weight)
{
    LAUNCH(slope, rows * BYTES, .out = slope[LAYERS], .p = value[LAYERS], .text = text_there,
           .next = next, .weight = weight);
    LAUNCH(loss, 1, .out = gradient.all + gradient.size, .p = value[LAYERS], .text = text_there,
           .next = next, .rows = rows, .weight = weight);
    for (int l = LAYERS - 1; l >= 0; l--) {
        const struct layer *y = &weights.layer[l], *g = &gradient.layer[l];

        LAUNCH(bias, y->out, .out = g->b, .slope = slope[l + 1], .rows = rows, .n = y->out);
        LAUNCH(matmul, y->in * y->out, .c = g->w, .a = value[l], .a_row = 1, .a_col = y->in,
               .b = slope[l + 1], .b_row = y->out, .b_col = 1, .depth = rows, .n = y->out);
        LAUNCH(matmul, rows * y->in, .c = slope[l], .a = slope[l + 1], .a_row = y->out, .a_col = 1,
               .b = y->w, .b_row = 1, .b_col = y->out, .depth = y->out, .n = y->in,
               .mask = l > 0 ? value[l] : NULL);
    }
    LAUNCH(vectors, BYTES * EMBED, .out = gradient.all, .slope = slope[0], .text = text_there,
           .next = next, .rows = rows, .context = weights.layer[0].in / EMBED);
}

static float *gpu_gradient(const int64_t *examples, float weight)
{
    put(next, examples, rows * sizeof *next);
    forward();
    backward(weight);
    return gradient.all;
}

static float gpu_step(float scale, float keep)
{
    float loss;

    LAUNCH(adam, weights.size, .w = weights.all, .m = m.all, .v = v.all, .gradient = gradient.all,
           .scale = scale, .keep = keep);
    get(&loss, gradient.all + gradient.size, sizeof loss);
    return loss;
}

static void gpu_fetch(struct net *from)
{
    struct net here = net_like(from, calloc(from->size + 1, sizeof(float)));

    if (!here.all)
        errx(1, "rank %d: out of memory", dt_rank());
    get(here.all, from->all, from->size * sizeof(float));
    *from = here;
}

const struct device gpu = { gpu_open, gpu_gradient, gpu_step, gpu_fetch };
