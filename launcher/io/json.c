#include "launcher/io/json.h"

#include <stdlib.h>

#include "launcher/base/mem.h"
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

char *dt_json_text(cJSON *json)
{
    char *text = cJSON_Print(json);

    cJSON_Delete(json);
    return text;
}
