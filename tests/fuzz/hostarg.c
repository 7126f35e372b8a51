/* -H LIST: any text. */
#include "launcher/hosts/hostarg.h"

#include "launcher/base/mem.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dt_hostlist list = { 0 };
    struct dt_error err = { 0 };
    char *text = n ? dt_xstrndup((const char *)data, n) : dt_xstrdup("");
    int rc = dt_hostarg_parse(&list, text, &err);

    require_result(&list, rc, &err);
    dt_hostlist_free(&list);
    free(text);
    return 0;
}
