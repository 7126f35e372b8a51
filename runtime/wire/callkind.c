#include "runtime/wire/callkind.h"

#include <stddef.h>

/* Short names for the rows. */
enum {
    COUNT = DT_CALL_TELLS_COUNT,
    TYPE = DT_CALL_TELLS_TYPE,
    OP = DT_CALL_TELLS_OP,
    TO = DT_CALL_TELLS_TO,
    FROM = DT_CALL_TELLS_FROM,
    IN = DT_CALL_IN,
    IN_BLOCKS = DT_CALL_IN_BLOCKS,
    IN_OWN = DT_CALL_IN_OWN,
    OUT = DT_CALL_OUT,
    OUT_BLOCKS = DT_CALL_OUT_BLOCKS,
    ONE_BUFFER = DT_CALL_ONE_BUFFER,
    VARIED = DT_CALL_VARIED,
    PAIRS = DT_CALL_PAIRS,
};

static const struct kind {
    const char *name;
    unsigned traits;
} kinds[] = {
#define ROW(kind, number, name, traits) [number] = { name, traits },
    DT_CALL_KINDS(ROW)
#undef ROW
};

const char *dt_call_name(unsigned kind)
{
    const char *name = kind < sizeof kinds / sizeof *kinds ? kinds[kind].name : NULL;

    return name ? name : "an unknown call";
}

unsigned dt_call_traits(unsigned kind)
{
    return kind < sizeof kinds / sizeof *kinds ? kinds[kind].traits : 0;
}
