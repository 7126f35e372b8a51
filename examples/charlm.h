/* What charlm trains, and where. */
#ifndef CHARLM_H
#define CHARLM_H

#include <stddef.h>
#include <stdint.h>

enum { BYTES = 256, EMBED = 16, LAYERS = 3 };

extern int context; /* how many bytes the next one is predicted from */
extern uint8_t *text;
extern int64_t text_len;

/* Weights, their gradient and Adam's moments are arrays of one shape: a vector for each
 * byte, then w[in][out] and b[out] of each layer; in a gradient, the loss stands behind them. */
struct net {
    float *all;
    size_t size;
    struct layer {
        float *w, *b;
        size_t in, out;
    } layer[LAYERS];
};

size_t net_size(void);
struct net net_at(float *all); /* whose arrays begin there */

struct model {
    struct net weights, m, v; /* m, v: Adam's moments */
};

/* Computes the steps. What fails there ends the program. */
struct device {
    /* Takes the model over, for so many examples a step: its arrays lie in the device's memory from
     * now on. */
    void (*open)(struct model *model, size_t rows);
    /* The gradient of weight * loss for the examples that predict text[next[i]], and the loss. They
     * lie in the device's memory, where dt_all_reduce adds them up. */
    float *(*gradient)(const int64_t *next, float weight);
    /* Makes Adam's step by the gradient and returns the loss behind it. */
    float (*step)(float scale, float keep);
    /* Brings weights back to this machine's memory. */
    void (*fetch)(struct net *weights);
};

extern const struct device gpu; /* charlm_gpu.c */

#endif
