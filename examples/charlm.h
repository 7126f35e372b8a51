/* The model that charlm trains, and the device that trains it. */
#ifndef CHARLM_H
#define CHARLM_H

#include <stddef.h>
#include <stdint.h>

enum { BYTES = 256, EMBED = 16, LAYERS = 3 };

/* Weights, their gradient and Adam's moments are arrays of one shape: a vector for each byte, then
 * w[in][out] and b[out] of each layer. In a gradient, the loss follows them. */
struct net {
    float *all;
    size_t size;
    struct layer {
        float *w, *b;
        size_t in, out;
    } layer[LAYERS];
};

/* A net of the same shape whose arrays begin at `all`. */
static inline struct net net_like(const struct net *shape, float *all)
{
    struct net net = *shape;

    net.all = all;
    for (int l = 0; l < LAYERS; l++) {
        net.layer[l].w = all + (shape->layer[l].w - shape->all);
        net.layer[l].b = all + (shape->layer[l].b - shape->all);
    }
    return net;
}

struct model {
    struct net weights, m, v; /* m, v: Adam's moments */
};

/* Computes the steps. An error ends the program. */
struct device {
    /* Prepares for steps of `rows` examples from the text. From now on the model's arrays are in
     * the device's memory. */
    void (*open)(struct model *model, const uint8_t *text, size_t text_len, size_t rows);
    /* Returns the gradient of weight * loss for the examples that predict text[next[i]], and the
     * loss, both in the device's memory, where dt_all_reduce sums them. */
    float *(*gradient)(const int64_t *next, float weight);
    /* Takes Adam's step with the gradient, and returns the loss that follows the gradient. */
    float (*step)(float scale, float keep);
    /* Copies the weights to host memory. */
    void (*fetch)(struct net *weights);
};

extern const struct device gpu; /* charlm_gpu.c */

#endif
