#include "launcher/io/json.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/base/utf8.h"

static void *allocate(size_t bytes)
{
    return dt_xrealloc(NULL, bytes, 1);
}

void dt_json_init(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){ allocate, free });
}

void dt_json_add_text(cJSON *object, const char *key, const char *text)
{
    char *clean = text ? dt_utf8_clean(text) : NULL;

    if (clean)
        cJSON_AddStringToObject(object, key, clean);
    else
        cJSON_AddNullToObject(object, key);
    free(clean);
}

void dt_json_append_text(cJSON *array, const char *text)
{
    char *clean = dt_utf8_clean(text);

    cJSON_AddItemToArray(array, cJSON_CreateString(clean));
    free(clean);
}

void dt_json_add_texts(cJSON *object, const char *key, const struct dt_strs *texts)
{
    cJSON *array = cJSON_AddArrayToObject(object, key);

    for (uint32_t i = 0; i < texts->n; i++)
        dt_json_append_text(array, texts->v[i]);
}

void dt_json_add_number(cJSON *object, const char *key, bool known, double value)
{
    if (known)
        cJSON_AddNumberToObject(object, key, value);
    else
        cJSON_AddNullToObject(object, key);
}

/* Escapes the control characters from U+007F to U+009F, which cJSON leaves as they are. They stand
 * only in strings. */
static char *escape_controls(const char *text)
{
    struct dt_strbuf b = { 0 };
    size_t n;

    for (; *text; text += n) {
        const unsigned char *p = (const unsigned char *)text;

        n = *p == 0x7f ? 1 : *p == 0xc2 && p[1] < 0xa0 ? 2 : 0;
        if (n)
            dt_strbuf_printf(&b, "\\u%04x", p[n - 1]);
        else
            dt_strbuf_add(&b, text, n = strcspn(text + 1, "\x7f\xc2") + 1);
    }
    return dt_strbuf_take(&b);
}

char *dt_json_text(cJSON *json)
{
    char *printed = cJSON_Print(json), *text = escape_controls(printed);

    cJSON_Delete(json);
    free(printed);
    return text;
}
