/* Passes the events of a byte stream on unchanged. struct dt_pass is the first member of the struct
 * that is given as arg. */
#ifndef DT_REMOTE_PASS_H
#define DT_REMOTE_PASS_H

#include "launcher/remote/transport.h"

struct dt_pass {
    struct dt_transport_events events; /* the receiver's */
    void *arg;
};

void dt_pass_data(void *arg, const void *data, size_t n);
void dt_pass_noise(void *arg, const void *data, size_t n);
void dt_pass_drained(void *arg);

#endif
