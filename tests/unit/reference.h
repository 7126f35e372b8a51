/* The expected results of all-reduces of several ranks, bit for bit. */
#ifndef TESTS_UNIT_REFERENCE_H
#define TESTS_UNIT_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/dtrun.h"

enum { REFERENCE_CANARY = 64 };

uint64_t reference_mix(uint64_t x);

/* Makes the inputs of all ranks before these start. exact: inputs whose sum does not depend on the
 * order of hosts. */
void reference_inputs(bool exact);
/* Fills in the inputs of a rank: floats of all kinds, integers with any bits. */
void reference_fill(void *buf, int rank, size_t count, dt_dtype_t dtype, dt_op_t op);
/* Element i becomes input first + i of the rank. */
void reference_fill_from(size_t first, void *buf, int rank, size_t count, dt_dtype_t dtype,
                         dt_op_t op);
/* Whether REFERENCE_CANARY bytes are still 0xa5. */
bool reference_canaries(const uint8_t *p);

/* In a rank: makes one all-reduce in place and one out of place, offset bytes from an aligned
 * address, with canaries around everything, and compares them with the results of the plain
 * kernels. hosts: where the ranks are (testjob_place). Returns 0, or prints to standard error why
 * it failed. */
int reference_try(const char *hosts, size_t count, dt_dtype_t dtype, dt_op_t op, size_t offset);

#endif
