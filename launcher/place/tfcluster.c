#include "launcher/place/tfcluster.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

char *dt_tfcluster(const char *const *addrs, const uint16_t *ports, uint32_t n)
{
    cJSON *cluster = cJSON_CreateObject();
    cJSON *workers = cJSON_AddArrayToObject(cluster, "worker");
    char *text;

    for (uint32_t i = 0; i < n; i++) {
        bool v6 = strchr(addrs[i], ':') != NULL;
        char *address =
            dt_xasprintf("%s%s%s:%u", v6 ? "[" : "", addrs[i], v6 ? "]" : "", (unsigned)ports[i]);

        cJSON_AddItemToArray(workers, cJSON_CreateString(address));
        free(address);
    }
    text = cJSON_PrintUnformatted(cluster);
    cJSON_Delete(cluster);
    return text;
}
