#include "runtime/wire/dataframe.h"

#include <assert.h>

#include "runtime/wire/codec.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "data travel as they stand in memory");

enum { MAGIC = 0x46525444 }; /* "DTRF" */

void dt_dataframe_put(const struct dt_dataframe *f, uint8_t out[DT_DATAFRAME_HEADER])
{
    struct dt_put p = { .data = out, .cap = DT_DATAFRAME_HEADER, .max = DT_DATAFRAME_HEADER };

    dt_put_u32(&p, MAGIC);
    dt_put_u8(&p, f->type);
    dt_put_u8(&p, f->call.kind);
    dt_put_u8(&p, f->call.dtype);
    dt_put_u8(&p, f->call.op);
    dt_put_u32(&p, (uint32_t)f->call.root);
    dt_put_u32(&p, f->rank);
    dt_put_u64(&p, f->call.number);
    dt_put_u64(&p, f->call.count);
    dt_put_u32(&p, f->bytes);
    dt_put_u32(&p, (uint32_t)f->code);
    dt_put_u32(&p, f->call.device);
    dt_put_u64(&p, f->call.options);
}

static bool is_device(uint32_t device)
{
    return device == DT_DEVICE_NONE || device == DT_DEVICE_MEMORY || device == DT_DEVICE_ORDERED;
}

bool dt_dataframe_get(struct dt_dataframe *f, const uint8_t in[DT_DATAFRAME_HEADER])
{
    struct dt_get g = dt_get_init(in, DT_DATAFRAME_HEADER);
    bool magic = dt_get_u32(&g) == MAGIC;
    uint32_t device;

    *f = (struct dt_dataframe){ .type = dt_get_u8(&g) };
    f->call.kind = dt_get_u8(&g);
    f->call.dtype = dt_get_u8(&g);
    f->call.op = dt_get_u8(&g);
    f->call.root = (int32_t)dt_get_u32(&g);
    f->rank = dt_get_u32(&g);
    f->call.number = dt_get_u64(&g);
    f->call.count = dt_get_u64(&g);
    f->bytes = dt_get_u32(&g);
    f->code = (int32_t)dt_get_u32(&g);
    device = dt_get_u32(&g);
    f->call.device = (uint8_t)device;
    f->call.options = dt_get_u64(&g);
    return magic && f->type <= DT_DATAFRAME_FAILURE && is_device(device) && dt_get_end(&g) == 0;
}
