#include "launcher/base/inject.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/wire/msg.h"

static const char *const kinds[] = {
    [DT_INJECT_KILL] = "kill", [DT_INJECT_STOP] = "stop",   [DT_INJECT_EXIT] = "exit",
    [DT_INJECT_HOST] = "host", [DT_INJECT_AGENT] = "agent",
};

enum { CODE_MAX = 255, UNSET = -1 };

static int parse_kind(struct dt_inject *fault, const char *text, size_t n)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i]) == n && memcmp(kinds[i], text, n) == 0) {
            fault->kind = (enum dt_inject_kind)i;
            return 0;
        }
    }
    return -1;
}

/* Accepts decimal digits only, up to end. */
static int parse_whole(const char *text, const char *end, int64_t max, int64_t *value)
{
    int64_t v = 0;

    if (text == end)
        return -1;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9' || v > (max - (*text - '0')) / 10)
            return -1;
        v = v * 10 + (*text - '0');
    }
    *value = v;
    return 0;
}

static int parse_seconds(const char *text, const char *end, int64_t *ms)
{
    char *stop;
    double seconds = *text >= '0' && *text <= '9' ? strtod(text, &stop) : -1;

    if (!(seconds >= 0 && seconds <= 1e6) || stop != end)
        return -1;
    *ms = (int64_t)(seconds * 1000 + 0.5);
    return 0;
}

/* Parses one NAME=VALUE, from text to end. */
static int parse_field(struct dt_inject *fault, const char *text, const char *end)
{
    int64_t code = UNSET;
    const struct {
        const char *name;
        int64_t max; /* 0: the value is a number of seconds */
        int64_t *value;
    } fields[] = {
        { "rank=", DT_RANKS_MAX - 1, &fault->rank },
        { "node=", DT_RANKS_MAX - 1, &fault->node },
        { "step=", INT64_MAX - 1, &fault->step },
        { "restart=", INT32_MAX, &fault->restart },
        { "code=", CODE_MAX, &code },
        { "after=", 0, &fault->after_ms },
    };

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        size_t n = strlen(fields[i].name);

        if (strncmp(text, fields[i].name, n) != 0 || *fields[i].value != UNSET)
            continue;
        if (!fields[i].max)
            return parse_seconds(text + n, end, fields[i].value);
        if (parse_whole(text + n, end, fields[i].max, fields[i].value) < 0)
            return -1;
        if (code != UNSET)
            fault->code = (int)code;
        return 0;
    }
    return -1;
}

/* All fields are well-formed. Returns NULL if they make sense together, else what is wrong. */
static const char *check_fields(const struct dt_inject *fault, bool has_code)
{
    bool host = dt_inject_takes_all_ranks(fault);

    if (host ? (fault->node == UNSET) == (fault->rank == UNSET) : fault->rank == UNSET)
        return host ? "it needs node=K or rank=R, as in host:node=1,step=50"
                    : "it needs rank=R, as in kill:rank=1,step=50";
    if (!host && fault->node != UNSET)
        return "node= goes with host and agent only";
    if (fault->step != UNSET && fault->after_ms != UNSET)
        return "step= and after= exclude each other";
    if (fault->kind == DT_INJECT_EXIT && fault->step == UNSET)
        return "it needs step=N: a rank can be made to exit only inside dt_step";
    if (fault->kind != DT_INJECT_EXIT && has_code)
        return "code= goes with exit only";
    return NULL;
}

int dt_inject_parse(struct dt_inject *fault, const char *text, struct dt_error *err)
{
    size_t n = strcspn(text, ":");
    const char *field = text + n;
    const char *why;

    *fault = (struct dt_inject){
        .rank = UNSET,
        .node = UNSET,
        .step = UNSET,
        .after_ms = UNSET,
        .restart = UNSET,
        .code = UNSET,
    };
    if (parse_kind(fault, text, n) < 0)
        return dt_error_usage(err,
                              "--inject %s: unknown fault; there are kill, stop, exit, "
                              "host, agent",
                              text);
    while (*field) {
        const char *end;

        field++;
        end = field + strcspn(field, ",");
        if (parse_field(fault, field, end) < 0)
            return dt_error_usage(err,
                                  "--inject %s: \"%.*s\" is not rank=R, node=K, step=N, "
                                  "after=SECONDS, code=0-255 or restart=K, or it is given twice",
                                  text, (int)(end - field), field);
        field = end;
    }
    why = check_fields(fault, fault->code != UNSET);
    if (why)
        return dt_error_usage(err, "--inject %s: %s", text, why);
    if (fault->code == UNSET)
        fault->code = 1;
    return 0;
}

bool dt_inject_takes_all_ranks(const struct dt_inject *fault)
{
    return fault->kind == DT_INJECT_HOST || fault->kind == DT_INJECT_AGENT;
}

bool dt_inject_concerns(const struct dt_inject *fault, uint32_t node_rank,
                        const struct dt_u32s *ranks)
{
    if (fault->node != UNSET)
        return fault->node == node_rank;
    return dt_u32s_find(ranks, (uint32_t)fault->rank) >= 0;
}
