/* The model that charlm trains, and the device that trains it. */
#ifndef CHARLM_H
#define CHARLM_H

#include <stddef.h>
#include <stdint.h>

enum { BYTES = 256, EMBED = 16, LAYERS = 3 };

extern int context; /* how many preceding bytes predict the next one */
extern uint8_t *text;
extern int64_t text_len;

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

size_t net_size(void);
struct net net_at(float *all); /* a net whose arrays begin at `all` */

struct model {
    struct net weights, m, v; /* m, v: Adam's moments */
};

/* Computes the steps. An error ends the program. */
struct device {
    /* Prepares for steps of `rows` examples. From now on the model's arrays are in the device's
     * memory. */
    void (*open)(struct model *model, size_t rows);
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
