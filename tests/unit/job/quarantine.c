#include <stdio.h>
#include <string.h>

#include "launcher/job/state/quarantine.h"
#include "tests/unit/unit.h"

enum { HOSTS = 3 };

/* A job's failures, a word each: the host where one began ("a", "b", "c"), then the rank ("-": the
 * host was lost). "+" before it: a checkpoint was saved since the last one. "60:" before that: this
 * many seconds have passed since the last one. The expected result has, for each failure, the hosts
 * that are left out then, or ".". */
static const struct {
    const char *failures;
    const char *want;
} cases[] = {
    /* three in a row, of any ranks of the host */
    { "b2 b2 b2", ". . b" },
    { "b2 b3 b2", ". . b" },
    { "b- b- b-", ". . b" },
    { "a0 b2 b2 b2", ". . . b" },
    /* elsewhere in between, or progress: other reasons are as likely */
    { "b2 b2 a0 b2 b2", ". . . . ." },
    { "b2 b2 +b2 b2 +b2", ". . . . ." },
    /* the next host may be bad, too */
    { "b2 b3 b2 a0 a1 a0", ". . b b b ab" },
    /* a rank that fails wherever it runs is the program's fault */
    { "b2 b2 b2 a2 a2 a2 a2", ". . b . . . ." },
    { "b2 b2 b2 a1", ". . b b" },
    { "b2 b3 b2 a2", ". . b b" },
    { "b- b- b- a2", ". . b b" },
    { "b2 b2 b2 a2 +b2 b2 b2", ". . b . . . b" },
    /* back after a minute: a failure there then counts at once, and for twice as long */
    { "b2 b3 b2 59:a0 1:a1", ". . b b ." },
    { "b2 b3 b2 60:+a0 b3 119:+a0 1:+a0", ". . b . b b ." },
    { "b2 b3 b2 60:a0 b3 120:a0 b3 239:+a1 1:+a1", ". . b . b . b b ." },
    /* back, and the job went on: the earlier failures are forgotten */
    { "b2 b3 b2 60:a0 +a1 b2 b2", ". . b . . . ." },
};

static void take(struct dt_quarantine *q, const char *word, uint64_t *now_ns)
{
    struct dt_quarantine_failure f = { .rank = DT_QUARANTINE_NO_RANK };
    unsigned seconds = 0;
    int n = 0;

    if (sscanf(word, "%u:%n", &seconds, &n) == 1)
        word += n;
    *now_ns += seconds * UINT64_C(1000000000);
    f.time_ns = *now_ns;
    f.progress = *word == '+';
    word += f.progress;
    f.host = (size_t)(*word++ - 'a');
    if (*word != '-')
        f.rank = (uint32_t)(*word - '0');
    dt_quarantine_failed(q, &f);
}

static void tell(const struct dt_quarantine *q, char *got)
{
    char *begin = got + strlen(got), *at = begin;

    if (begin > got)
        *at++ = ' ';
    begin = at;
    for (size_t i = 0; i < HOSTS; i++) {
        if (q->hosts[i].out)
            *at++ = (char)('a' + (int)i);
    }
    if (at == begin)
        *at++ = '.';
    *at = '\0';
}

static void a_host_where_failures_begin_is_left_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_quarantine q;
        char words[100], got[100] = "";
        uint64_t now_ns = 1;

        dt_quarantine_init(&q, HOSTS);
        snprintf(words, sizeof words, "%s", cases[i].failures);
        for (char *rest = words, *word; (word = strsep(&rest, " "));) {
            take(&q, word, &now_ns);
            tell(&q, got);
        }
        dt_quarantine_free(&q);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: %s instead of %s", cases[i].failures, got, cases[i].want);
    }
}

static void fail_on(struct dt_quarantine *q, size_t host, uint32_t rank, uint64_t second,
                    bool want_news)
{
    const struct dt_quarantine_failure f = { .host = host,
                                             .rank = rank,
                                             .time_ns = second * UINT64_C(1000000000) };

    assert_int_equal(dt_quarantine_failed(q, &f), want_news);
}

static void changes_are_reported_once(void **state)
{
    struct dt_quarantine q;

    (void)state;
    dt_quarantine_init(&q, HOSTS);
    fail_on(&q, 1, 2, 0, false);
    fail_on(&q, 1, 2, 1, false);
    fail_on(&q, 1, 3, 2, true);
    assert_int_equal(q.hosts[1].news, DT_QUARANTINE_OUT);
    assert_int_equal(dt_quarantine_seconds(&q.hosts[1]), DT_QUARANTINE_S);
    fail_on(&q, 0, 0, 3, false);
    assert_int_equal(q.hosts[1].news, DT_QUARANTINE_NOTHING);
    fail_on(&q, 0, 0, 62, true);
    assert_int_equal(q.hosts[1].news, DT_QUARANTINE_BACK);
    fail_on(&q, 1, 2, 63, true);
    assert_int_equal(dt_quarantine_seconds(&q.hosts[1]), 2 * DT_QUARANTINE_S);
    fail_on(&q, 0, 2, 64, true);
    assert_int_equal(q.hosts[1].news, DT_QUARANTINE_CLEARED);
    dt_quarantine_free(&q);
}

static void hosts_that_are_needed_come_back(void **state)
{
    struct dt_quarantine q;

    (void)state;
    dt_quarantine_init(&q, HOSTS);
    for (uint64_t i = 0; i < 3; i++)
        fail_on(&q, 1, 2, i, i == 2);
    assert_false(dt_quarantine_end_all(&q)); /* nothing was reported about it */
    assert_false(q.hosts[1].out);
    fail_on(&q, 1, 2, 4, true);
    fail_on(&q, 0, 0, 5, false);
    assert_true(dt_quarantine_end_all(&q));
    assert_int_equal(q.hosts[1].news, DT_QUARANTINE_BACK);
    dt_quarantine_free(&q);
}

static void the_time_in_quarantine_has_a_limit(void **state)
{
    struct dt_quarantine_host h = { .times = 1000 };

    (void)state;
    assert_int_equal(dt_quarantine_seconds(&h), DT_QUARANTINE_MAX_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_where_failures_begin_is_left_out),
        cmocka_unit_test(changes_are_reported_once),
        cmocka_unit_test(hosts_that_are_needed_come_back),
        cmocka_unit_test(the_time_in_quarantine_has_a_limit),
    };

    return cmocka_run_group_tests_name("quarantine", tests, NULL, NULL);
}
