#include "runtime/diag/lastcalls.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/error.h"
#include "runtime/wire/rankmsg.h"

/* ---- words ---- */

const char *dt_lastcalls_call(const struct dt_call *call, char text[DT_CALL_TEXT])
{
    char *number;

    dt_call_describe(call, text);
    number = strstr(text, ", call ");
    if (number)
        *number = '\0';
    return text;
}

const char *dt_lastcalls_result(const struct dt_record *r)
{
    if (!r->ended)
        return "inside";
    return r->result == DT_OK ? "ok" : dt_result_name(r->result);
}

const char *dt_lastcalls_algorithm(const struct dt_record *r, char text[DT_LASTCALLS_ALGORITHM])
{
    const char *within = r->ended && r->within ? r->within : "";
    const char *between = r->ended && r->between ? r->between : "";

    snprintf(text, DT_LASTCALLS_ALGORITHM, "%s%s%s", within, *within && *between ? "+" : "",
             between);
    return *text ? text : "-";
}

/* ---- telling ---- */

struct words {
    char what[DT_CALL_TEXT];
    char algorithm[DT_LASTCALLS_ALGORITHM];
};

static struct dt_msg_last_call call_of(const struct dt_record *r, uint64_t now, struct words *w)
{
    return (struct dt_msg_last_call){
        .call = r->call.number,
        .ns = (r->ended ? r->ended : now) - r->begun,
        .what = (char *)(uintptr_t)dt_lastcalls_call(&r->call, w->what),
        .result = (char *)(uintptr_t)dt_lastcalls_result(r),
        .algorithm = (char *)(uintptr_t)dt_lastcalls_algorithm(r, w->algorithm),
    };
}

static void send_packet(int sock, const struct dt_msg_last_calls *m)
{
    struct dt_put out = { .max = DT_RANK_LAST_CALLS_BYTES };
    struct dt_rankmsg msg = { .type = DT_RANK_LAST_CALLS };

    dt_msg_encode(&out, DT_MSG_LAST_CALLS, m);
    if (!out.failed) {
        msg.last_calls.bytes = (uint16_t)out.len;
        memcpy(msg.last_calls.payload, out.data, out.len);
        (void)dt_rankmsg_send(sock, &msg, -1, MSG_DONTWAIT);
    }
    dt_put_free(&out);
}

void dt_lastcalls_send(int sock, struct dt_msg_last_calls *m, const struct dt_record *records,
                       size_t n, uint64_t now)
{
    struct dt_msg_last_call calls[DT_LAST_CALLS];
    struct words words[DT_LAST_CALLS];
    uint32_t first = DT_LAST_CALLS;

    while (n-- > 0 && first > 0) {
        if (records[n].comm != m->comm)
            continue;
        first--;
        calls[first] = call_of(&records[n], now, &words[first]);
    }
    m->calls = (struct dt_msg_list){ calls + first, DT_LAST_CALLS - first };
    if (sock >= 0 && m->calls.n > 0)
        send_packet(sock, m);
}
