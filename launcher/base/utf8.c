#include "launcher/base/utf8.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "launcher/base/strbuf.h"

size_t dt_utf8_sequence(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    /* By length: the smallest code point that needs so many bytes. */
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = *p < 0x80 ? 1 : (*p & 0xe0) == 0xc0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : 4;
    uint32_t point = *p & (0xffu >> (n + 1));

    if (n == 1)
        return 1;
    if ((*p & 0xc0) != 0xc0 || *p > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (p[i] & 0x3f);
    }
    return point < smallest[n] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? 0 : n;
}

char *dt_utf8_clean(const char *text)
{
    struct dt_strbuf b = { 0 };

    while (*text) {
        size_t n = dt_utf8_sequence(text);

        if (n)
            dt_strbuf_add(&b, text, n);
        else
            dt_strbuf_puts(&b, "\xef\xbf\xbd");
        text += n ? n : 1;
    }
    return dt_strbuf_take(&b);
}

size_t dt_utf8_bom_size(const char *text, size_t n)
{
    return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}
