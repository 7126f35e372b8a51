/* Members of JSON objects that may be unknown, which is null, and text that may be no UTF-8, which
 * JSON must be: U+FFFD stands for what is none. */
#ifndef DT_IO_JSON_H
#define DT_IO_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "runtime/wire/codec.h"

/* From here on cJSON ends the process when memory runs out, as mem.h does. */
void dt_json_init(void);

void dt_json_add_text(cJSON *object, const char *key, const char *text); /* NULL: null */
void dt_json_add_texts(cJSON *object, const char *key, const struct dt_strs *texts);
void dt_json_append_text(cJSON *array, const char *text);
void dt_json_add_number(cJSON *object, const char *key, bool known, double value);
/* The text of json, for the caller to free. Frees json. */
char *dt_json_text(cJSON *json);

#endif
