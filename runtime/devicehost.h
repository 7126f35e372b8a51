/* What a device backend asks of its communicator. */
#ifndef DT_RUNTIME_DEVICEHOST_H
#define DT_RUNTIME_DEVICEHOST_H

#include "runtime/comm.h"

/* Fills c->device_host, which c->device serves. */
void dt_devicehost_init(struct dt_comm *c);

#endif
