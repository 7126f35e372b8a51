/* What all-reduces of several ranks are to give, bit for bit. */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

enum { REFERENCE_CANARY = 64 };

uint64_t reference_mix(uint64_t x);

/* Makes the inputs of all ranks, before these start. exact: such that the order in which hosts are
 * folded does not show. */
void reference_inputs(bool exact);
/* A rank's: floats of all kinds, integers of any bits. */
void reference_fill(void *buf, int rank, size_t count, dt_dtype_t dtype, dt_op_t op);
/* Element i is input first + i of the rank. */
void reference_fill_from(size_t first, void *buf, int rank, size_t count, dt_dtype_t dtype,
                         dt_op_t op);
/* Whether REFERENCE_CANARY bytes are still 0xa5. */
bool reference_canaries(const uint8_t *p);

/* In a rank: one all-reduce in place and one out of place, offset bytes from an aligned address,
 * with canaries around everything, compared with what the plain kernels give. hosts: where the
 * ranks are (testjob_place). 0, or why it failed is on standard error. */
int reference_try(const char *hosts, size_t count, dt_dtype_t dtype, dt_op_t op, size_t offset);

#endif
