/* Base64 (RFC 4648) as SSH key files and fingerprints use it. */
#ifndef DT_REMOTE_SSH_BASE64_H
#define DT_REMOTE_SSH_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/base/strbuf.h"

void dt_base64_encode(struct dt_strbuf *out, const void *data, size_t n, bool padding);

/* Appends the bytes that n characters encode; skips blanks and line ends between them. Returns 0,
 * or -1 for anything else. */
int dt_base64_decode(struct dt_strbuf *out, const char *text, size_t n);

#endif
