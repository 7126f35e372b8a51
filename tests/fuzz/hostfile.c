/* A hostfile: any bytes. */
#include "launcher/hosts/hostfile.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/hosts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dt_hostlist list = { 0 };
    struct dt_error err = { 0 };
    int rc = dt_hostfile_parse(&list, "FILE", (const char *)data, n, &err);

    require_result(&list, rc, &err);
    REQUIRE(rc == 0 || strncmp(err.text, "FILE:", 5) == 0);
    dt_hostlist_free(&list);
    return 0;
}
