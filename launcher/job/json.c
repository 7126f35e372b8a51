#include "launcher/job/json.h"

#include <stdlib.h>

#include "launcher/base/utf8.h"

void dt_json_add_text(cJSON *object, const char *key, const char *text)
{
    char *clean = text ? dt_utf8_clean(text) : NULL;

    if (clean)
        cJSON_AddStringToObject(object, key, clean);
    else
        cJSON_AddNullToObject(object, key);
    free(clean);
}

void dt_json_add_number(cJSON *object, const char *key, bool known, double value)
{
    if (known)
        cJSON_AddNumberToObject(object, key, value);
    else
        cJSON_AddNullToObject(object, key);
}
