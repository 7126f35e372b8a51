/* Adds members to JSON objects. Unknown values become null. JSON must be UTF-8, so U+FFFD replaces
 * invalid bytes in text. All control characters are escaped, because users look at JSON on
 * terminals, too. */
#ifndef DT_IO_JSON_H
#define DT_IO_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "runtime/wire/codec.h"

/* From this call on cJSON ends the process when memory runs out, as mem.h does. */
void dt_json_init(void);

void dt_json_add_text(cJSON *object, const char *key, const char *text); /* text NULL adds null */
void dt_json_add_texts(cJSON *object, const char *key, const struct dt_strs *texts);
void dt_json_append_text(cJSON *array, const char *text);
void dt_json_add_number(cJSON *object, const char *key, bool known, double value);
/* Returns the text of json, which the caller frees. Frees json. */
char *dt_json_text(cJSON *json);

#endif
