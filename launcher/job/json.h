/* Members of JSON objects that may be unknown, which is null, and text that may be no UTF-8, which
 * JSON must be. */
#ifndef DT_JOB_JSON_H
#define DT_JOB_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>

void dt_json_add_text(cJSON *object, const char *key, const char *text); /* NULL: null */
void dt_json_add_number(cJSON *object, const char *key, bool known, double value);

#endif
