/* TensorFlow's list of workers, as JSON. Pure. */
#ifndef DT_PLACE_TFCLUSTER_H
#define DT_PLACE_TFCLUSTER_H

#include <stdint.h>

/* Returns the "cluster" of TF_CONFIG, the same for every rank: worker i is at addrs[i] and
 * ports[i]. The caller frees it. */
char *dt_tfcluster(const char *const *addrs, const uint16_t *ports, uint32_t n);

#endif
