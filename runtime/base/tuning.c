#include "runtime/base/tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KIB        UINT64_C(1024)
#define MIB        (1024 * KIB)
#define BYTES_MOST (1024 * 1024 * MIB)

/* Name, default, maximum, and whether the threshold depends on the number of hosts instead of the
 * number of ranks on a host. The network's were measured on two cores, where a packet costs some
 * microseconds; by calculation they also suit links of 10 Gbit/s. */
#define KEYS(KEY)                                                                                  \
    KEY(shm_small, 4 * KIB, BYTES_MOST, false)                                                     \
    KEY(shm_direct, 32 * KIB, BYTES_MOST, false)                                                   \
    KEY(shm_direct_reduce, BYTES_MOST, BYTES_MOST, false)                                          \
    KEY(shm_huge, 16 * MIB, BYTES_MOST, false)                                                     \
    KEY(net_exchange, 0, BYTES_MOST, true)                                                         \
    KEY(net_direct, 4 * MIB, BYTES_MOST, true)                                                     \
    KEY(net_leader, 2 * MIB, BYTES_MOST, true)                                                     \
    KEY(net_streams, 1, DT_TUNING_STREAMS, true)

enum {
#define NUMBER(name, builtin, most, of_hosts) KEY_##name,
    KEYS(NUMBER)
#undef NUMBER
        N_KEYS
};

static const struct key {
    const char *name;
    size_t offset; /* in struct dt_tuning */
    uint64_t most;
    bool of_hosts;
} keys[N_KEYS] = {
#define ROW(name, builtin, most, of_hosts)                                                         \
    { #name, offsetof(struct dt_tuning, name), most, of_hosts },
    KEYS(ROW)
#undef ROW
};

const struct dt_tuning dt_tuning_builtin = {
#define VALUE(name, builtin, most, of_hosts) .name = (builtin),
    KEYS(VALUE)
#undef VALUE
};

/* Defaults for certain numbers of hosts. Between two, no other algorithm sends less. */
static const struct dt_tuning_table exceptions = {
    .n = 3,
    .entries = { { KEY_net_exchange, 2, MIB },
                 { KEY_net_leader, 2, 256 * KIB },
                 { KEY_net_exchange, 3, 32 * KIB } },
};

/* Defaults for certain numbers of ranks, where sharing is slow. Two ranks that copy directly take
 * 0.55 to 0.78 of the time; three and four gain too little, and six lose. */
static const struct dt_tuning_table exceptions_slow_sharing = {
    .n = 1,
    .entries = { { KEY_shm_direct_reduce, 2, 16 * KIB } },
};

static uint64_t *value_of(struct dt_tuning *t, uint32_t key)
{
    return (uint64_t *)((char *)t + keys[key].offset);
}

static void apply(struct dt_tuning *t, const struct dt_tuning_table *table, uint32_t number,
                  bool of_hosts)
{
    for (uint64_t i = 0; table->n <= DT_TUNING_ENTRIES && i < table->n; i++) {
        const struct dt_tuning_entry *e = &table->entries[i];

        if (e->key < N_KEYS && keys[e->key].of_hosts == of_hosts && e->number == number &&
            e->value <= keys[e->key].most)
            *value_of(t, e->key) = e->value;
    }
}

void dt_tuning_add(struct dt_tuning *t, const struct dt_tuning_table *table, uint32_t ranks,
                   uint32_t hosts)
{
    apply(t, table, 0, false);
    apply(t, table, 0, true);
    apply(t, table, ranks, false);
    apply(t, table, hosts, true);
}

void dt_tuning_choose(struct dt_tuning *t, const struct dt_tuning_table *table, uint32_t ranks,
                      uint32_t hosts)
{
    *t = dt_tuning_builtin;
    dt_tuning_add(t, &exceptions, ranks, hosts);
    if (table->slow_sharing)
        dt_tuning_add(t, &exceptions_slow_sharing, ranks, hosts);
    dt_tuning_add(t, table, ranks, hosts);
}

/* ---- the text of a file ---- */

enum { LINE = 200, WHY = 2 * LINE, NUMBER_MOST = 1 << 20 };

static void skip_blanks(const char **at)
{
    *at += strspn(*at, " \t\r\v\f");
}

/* Reads digits. False: there are none, or too many. */
static bool take_number(const char **at, uint64_t *value)
{
    size_t digits = strspn(*at, "0123456789");

    *value = 0;
    for (size_t i = 0; i < digits && i < 19; i++)
        *value = *value * 10 + (uint64_t)((*at)[i] - '0');
    *at += digits;
    return digits > 0 && digits < 19;
}

static bool take_value(const char **at, uint64_t *value)
{
    static const char units[] = "KMG";
    const char *unit;

    if (!take_number(at, value))
        return false;
    unit = **at ? strchr(units, **at) : NULL;
    for (const char *u = units; unit && u <= unit; u++) {
        if (*value > UINT64_MAX / 1024)
            return false;
        *value *= 1024;
    }
    *at += unit != NULL;
    return true;
}

/* Reads "[2]", if present. */
static bool take_scope(const char **at, uint32_t *number)
{
    uint64_t n = 0;

    *number = 0;
    if (**at != '[')
        return true;
    ++*at;
    if (!take_number(at, &n) || n < 1 || n > NUMBER_MOST || **at != ']')
        return false;
    ++*at;
    *number = (uint32_t)n;
    return true;
}

static uint32_t find_key(const char *name, size_t n)
{
    uint32_t key = 0;

    while (key < N_KEYS && (strlen(keys[key].name) != n || memcmp(keys[key].name, name, n) != 0))
        key++;
    return key;
}

static bool wrong(char why[WHY], const char *line, const char *text)
{
    snprintf(why, WHY, "'%s': %s", line, text);
    return false;
}

/* Parses a line that is not blank. */
static bool take_entry(const char *line, struct dt_tuning_entry *e, char why[WHY])
{
    const char *at = line;
    size_t n = strspn(line, "abcdefghijklmnopqrstuvwxyz_");

    e->key = find_key(line, n);
    if (e->key == N_KEYS)
        return wrong(why, line, "no threshold has this name");
    at += n;
    skip_blanks(&at);
    if (!take_scope(&at, &e->number))
        return wrong(why, line, "the brackets must hold a number of ranks or hosts");
    skip_blanks(&at);
    if (*at++ != '=')
        return wrong(why, line, "name = value was expected");
    skip_blanks(&at);
    if (take_value(&at, &e->value) && !*at && e->value <= keys[e->key].most)
        return true;
    snprintf(why, WHY, "'%s': the value is a number from 0 to %" PRIu64 "; K, M and G are units",
             line, keys[e->key].most);
    return false;
}

static void take_line(struct dt_tuning_table *table, char *line, unsigned number,
                      void (*refuse)(void *arg, unsigned line, const char *why), void *arg)
{
    struct dt_tuning_entry e;
    const char *at = line;
    char why[WHY];

    line[strcspn(line, "#")] = '\0';
    for (size_t n = strlen(line); n > 0 && strchr(" \t\r\v\f", line[n - 1]); n--)
        line[n - 1] = '\0';
    skip_blanks(&at);
    if (!*at)
        return;
    if (!take_entry(at, &e, why))
        refuse(arg, number, why);
    else if (table->n == DT_TUNING_ENTRIES)
        refuse(arg, number, "there are more entries than fit");
    else
        table->entries[table->n++] = e;
}

void dt_tuning_read(struct dt_tuning_table *table, const char *text, size_t n,
                    void (*refuse)(void *arg, unsigned line, const char *why), void *arg)
{
    unsigned number = 1;

    for (const char *end = text + n; text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t bytes = (size_t)((stop ? stop : end) - text);
        char line[LINE + 1];

        if (memchr(text, '\0', bytes)) {
            refuse(arg, number, "it contains a NUL byte, so this is not a text file");
        } else if (bytes > LINE) {
            refuse(arg, number, "the line is longer than 200 characters");
        } else {
            memcpy(line, text, bytes);
            line[bytes] = '\0';
            take_line(table, line, number, refuse, arg);
        }
        text += bytes + 1;
    }
}
