#include "launcher/remote/ssh/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void dt_base64_encode(struct dt_strbuf *out, const void *data, size_t n, bool padding)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i < 3 ? n - i : 3;
        uint32_t v = (uint32_t)p[i] << 16;
        char four[4];

        if (left > 1)
            v |= (uint32_t)p[i + 1] << 8;
        if (left > 2)
            v |= p[i + 2];
        for (size_t k = 0; k < 4; k++)
            four[k] = k <= left ? digits[v >> (18 - 6 * k) & 63] : '=';
        dt_strbuf_add(out, four, padding ? 4 : left + 1);
    }
}

int dt_base64_decode(struct dt_strbuf *out, const char *text, size_t n)
{
    uint32_t v = 0;
    unsigned bits = 0;
    size_t count = 0;
    bool padded = false;

    for (size_t i = 0; i < n; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

        if (text[i] == '\n' || text[i] == '\r' || text[i] == ' ' || text[i] == '\t')
            continue;
        count++;
        if (text[i] == '=') {
            padded = true;
            continue;
        }
        if (!digit || padded)
            return -1;
        v = v << 6 | (uint32_t)(digit - digits);
        bits += 6;
        if (bits >= 8) {
            char byte = (char)(v >> (bits - 8));

            bits -= 8;
            dt_strbuf_add(out, &byte, 1);
        }
    }
    return count % 4 ? -1 : 0;
}
