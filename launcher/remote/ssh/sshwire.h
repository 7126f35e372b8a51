/* The data types of the SSH protocols (RFC 4251): integers big-endian, strings with a u32 length.
 */
#ifndef DT_REMOTE_SSH_SSHWIRE_H
#define DT_REMOTE_SSH_SSHWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/base/strbuf.h"

struct dt_sshget {
    const char *p;
    size_t n;
    bool failed; /* sticky; later values are empty */
};

uint8_t dt_sshget_u8(struct dt_sshget *g);
uint32_t dt_sshget_u32(struct dt_sshget *g);
struct dt_sshget dt_sshget_string(struct dt_sshget *g); /* points into the input */

void dt_sshput_u32(struct dt_strbuf *b, uint32_t v);
void dt_sshput_string(struct dt_strbuf *b, const void *data, size_t n);

#endif
