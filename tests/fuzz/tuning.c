/* A file of thresholds: any bytes. */
#include "runtime/base/tuning.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

struct lines {
    unsigned last; /* the last line that was refused */
    unsigned n;
};

static void refuse(void *arg, unsigned line, const char *why)
{
    struct lines *l = arg;

    REQUIRE(line > l->last && line <= l->n);
    REQUIRE(*why && strlen(why) < 500 && !strchr(why, '\n'));
    l->last = line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct dt_tuning_table table;
    struct lines lines = { .n = 1 };
    struct dt_tuning t;

    for (size_t i = 0; i < n; i++)
        lines.n += data[i] == '\n';
    table.n = 0;
    dt_tuning_read(&table, (const char *)data, n, refuse, &lines);
    REQUIRE(table.n <= DT_TUNING_ENTRIES && table.n <= lines.n);
    for (uint32_t number = 1; number <= 17; number++) {
        dt_tuning_choose(&t, &table, number, 18 - number);
        for (size_t i = 0; i < sizeof t / sizeof(uint64_t); i++)
            REQUIRE(((const uint64_t *)&t)[i] <= UINT64_C(1) << 40);
        REQUIRE(t.net_streams <= DT_TUNING_STREAMS);
    }
    /* Any bytes as a table, too. */
    memcpy(&table, data, n < sizeof table ? n : sizeof table);
    dt_tuning_choose(&t, &table, 2, 2);
    REQUIRE(t.net_streams <= DT_TUNING_STREAMS);
    return 0;
}
