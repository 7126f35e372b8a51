#include "runtime/dtrun.h"

const char *dt_strerror(dt_result_t result)
{
    return result == DT_OK ? "success" : "failure";
}
