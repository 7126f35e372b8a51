/* Names and meetings of MPI ranks: what every host carries out in the same order. */
#include "cmd/pmix/names.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

enum { HOSTS = 3 };

/* Of each host: its copy, and what its ranks were answered, as "3+1:port ". */
static struct host {
    struct dt_names *names;
    char heard[256];
    uint64_t meetings; /* of the last answer */
} hosts[HOSTS];

static void on_answer(void *arg, const struct dt_names_answer *a)
{
    struct host *h = arg;
    size_t have = strlen(h->heard);

    h->meetings = a->meetings;
    snprintf(h->heard + have, sizeof h->heard - have, "%u%c%u:%.*s ", a->request, a->ok ? '+' : '-',
             a->rank, (int)a->n, a->n ? a->data : "");
}

static int begin(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++) {
        hosts[i].names = dt_names_create(i, HOSTS, on_answer, &hosts[i]);
        hosts[i].heard[0] = '\0';
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < HOSTS; i++)
        dt_names_destroy(hosts[i].names);
    return 0;
}

/* The rank is ten times the host. */
static void share(uint32_t node, uint32_t request, uint8_t op, uint8_t flag, const char *key,
                  const char *data)
{
    char text[32];
    const struct dt_msg_share m = { .node = node,
                                    .request = request,
                                    .rank = 10 * node,
                                    .op = op,
                                    .flag = op == DT_SHARE_MEET ? 0 : flag,
                                    .nodes = op == DT_SHARE_MEET ? flag : 0,
                                    .key = text,
                                    .data = { (const uint8_t *)data, strlen(data) } };

    snprintf(text, sizeof text, "%s", key);
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_true(dt_names_apply(hosts[i].names, &m));
}

/* Forgets what was heard. */
static void heard(const char *first, const char *second, const char *third)
{
    const char *wanted[HOSTS] = { first, second, third };

    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_string_equal(hosts[i].heard, wanted[i]);
        hosts[i].heard[0] = '\0';
    }
}

static void a_name_can_be_looked_up_until_it_is_unpublished(void **state)
{
    (void)state;
    share(0, 1, DT_SHARE_LOOK_UP, 0, "service", "");
    share(1, 1, DT_SHARE_PUBLISH, 0, "service", "port");
    share(2, 2, DT_SHARE_LOOK_UP, 0, "service", "");
    share(2, 3, DT_SHARE_PUBLISH, 0, "service", "newer");
    share(0, 2, DT_SHARE_LOOK_UP, 1, "service", "");
    heard("1-0: 2+20:newer ", "1+10: ", "2+10:port 3+20: ");
    share(0, 3, DT_SHARE_UNPUBLISH, 0, "service", "");
    share(0, 4, DT_SHARE_UNPUBLISH, 0, "service", "");
    share(1, 2, DT_SHARE_LOOK_UP, 0, "service", "");
    share(2, 3, DT_SHARE_PUBLISH, 0, "service", "other");
    heard("3+0: 4-0: ", "2-0: ", "3+20: ");
}

static void a_rank_can_wait_for_a_name(void **state)
{
    (void)state;
    share(0, 1, DT_SHARE_LOOK_UP, 1, "a", "");
    share(0, 2, DT_SHARE_LOOK_UP, 1, "b", "");
    share(2, 1, DT_SHARE_LOOK_UP, 1, "a", "");
    heard("", "", "");
    share(1, 1, DT_SHARE_PUBLISH, 0, "a", "port");
    heard("1+10:port ", "1+10: ", "1+10:port ");
}

static void a_name_for_one_reader_is_gone_when_it_has_been_read(void **state)
{
    (void)state;
    share(0, 1, DT_SHARE_PUBLISH, 1, "a", "x");
    share(1, 1, DT_SHARE_LOOK_UP, 1, "a", "");
    share(2, 1, DT_SHARE_LOOK_UP, 1, "a", "");
    share(1, 2, DT_SHARE_LOOK_UP, 1, "a", "");
    heard("1+0: ", "1+0:x ", "");
    share(0, 2, DT_SHARE_PUBLISH, 1, "a", "y");
    heard("2+0: ", "", "1+0:y ");
    share(0, 3, DT_SHARE_PUBLISH, 1, "a", "z");
    heard("3+0: ", "2+0:z ", "");
    share(0, 4, DT_SHARE_PUBLISH, 1, "a", "1");
    share(2, 2, DT_SHARE_PUBLISH, 1, "a", "2");
    share(1, 3, DT_SHARE_LOOK_UP, 0, "a", "");
    share(1, 4, DT_SHARE_LOOK_UP, 0, "a", "");
    share(1, 5, DT_SHARE_LOOK_UP, 0, "a", "");
    heard("4+0: ", "3+0:1 4+20:2 5-0: ", "2+20: ");
    share(0, 5, DT_SHARE_PUBLISH, 1, "a", "1");
    share(0, 6, DT_SHARE_PUBLISH, 1, "a", "2");
    share(0, 7, DT_SHARE_UNPUBLISH, 0, "a", "");
    share(1, 6, DT_SHARE_LOOK_UP, 0, "a", "");
    heard("5+0: 6+0: 7+0: ", "6-0: ", "");
}

static void hosts_meet_again_and_again(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        share(2, 5, DT_SHARE_MEET, 2, "fence 0 2", "c");
        share(1, 6, DT_SHARE_MEET, 1, "fence 1", "b");
        heard("", "6+10:b ", "");
        assert_int_equal(hosts[1].meetings, 2 * i);
        share(0, 7, DT_SHARE_MEET, 2, "fence 0 2", "a");
        heard("7+0:ca ", "", "5+0:ca ");
        assert_int_equal(hosts[0].meetings, 2 * i + 1);
        assert_int_equal(hosts[2].meetings, 2 * i + 1);
    }
}

static void what_no_host_can_have_sent_is_refused(void **state)
{
    const struct dt_msg_share wrong[] = {
        { .node = HOSTS, .key = (char *)(uintptr_t) "a" },
        { .nodes = HOSTS + 1, .key = (char *)(uintptr_t) "a" },
        { .op = DT_SHARE_MEET + 1, .key = (char *)(uintptr_t) "a" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(dt_names_apply(hosts[0].names, &wrong[i]));
    share(0, 1, DT_SHARE_PUBLISH, 0, "left", "x"); /* what is left is freed */
    share(0, 2, DT_SHARE_LOOK_UP, 1, "never", "");
    share(0, 3, DT_SHARE_MEET, 2, "alone", "x");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_name_can_be_looked_up_until_it_is_unpublished),
        TEST(a_rank_can_wait_for_a_name),
        TEST(a_name_for_one_reader_is_gone_when_it_has_been_read),
        TEST(hosts_meet_again_and_again),
        TEST(what_no_host_can_have_sent_is_refused),
    };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
