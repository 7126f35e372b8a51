/* Which addresses of a host are tried, and in which order. */
#include <stdlib.h>
#include <string.h>

#include "launcher/place/iface.h"
#include "tests/unit/unit.h"

/* "eth0=10.0.0.1 lo=127.0.0.1" */
static void addresses(struct dt_msg_list *list, char *words)
{
    struct dt_msg_netaddr *v = calloc(32, sizeof *v);
    char *word;

    *list = (struct dt_msg_list){ v, 0 };
    while ((word = strsep(&words, " "))) {
        char *addr = strchr(word, '=');

        if (!addr)
            continue;
        *addr++ = '\0';
        v[list->n++] = (struct dt_msg_netaddr){ word, addr, 1500 };
    }
}

#define USUAL "lo=127.0.0.1 eth0=10.0.0.3 docker0=172.17.0.1 ib0=192.168.5.3 lo=::1 eth0=fd00::3"

static const struct {
    const char *addrs;
    const char *list, *addr, *preferred;
    const char *want; /* addresses, best first */
} cases[] = {
    /* no request: in the order of the host */
    { USUAL, NULL, NULL, NULL, "10.0.0.3 172.17.0.1 192.168.5.3 fd00::3" },
    { USUAL, NULL, NULL, "192.168.5.3", "192.168.5.3 10.0.0.3 172.17.0.1 fd00::3" },
    { USUAL, NULL, NULL, "fd00:0::3", "fd00::3 10.0.0.3 172.17.0.1 192.168.5.3" },
    { USUAL, NULL, NULL, "::ffff:192.168.5.3", "192.168.5.3 10.0.0.3 172.17.0.1 fd00::3" },
    { USUAL, NULL, NULL, "10.9.9.9", "10.0.0.3 172.17.0.1 192.168.5.3 fd00::3" },
    { USUAL, NULL, NULL, "127.0.0.1", "10.0.0.3 172.17.0.1 192.168.5.3 fd00::3" },
    /* link-local addresses only if there are no others, loopback only if there are not even
     * these */
    { "lo=127.0.0.1 eth0=169.254.1.2 eth0=10.0.0.3", NULL, NULL, "169.254.1.2", "10.0.0.3" },
    { "lo=127.0.0.1 eth0=169.254.1.2 eth0=fe80::1%eth0", NULL, NULL, NULL,
      "169.254.1.2 fe80::1%eth0" },
    { "lo=127.0.0.1 lo=127.9.0.1 lo=::1", NULL, NULL, NULL, "127.0.0.1 127.9.0.1 ::1" },
    { "", NULL, NULL, NULL, "" },
    /* names by prefix, in the order of the list */
    { USUAL, "ib0", NULL, NULL, "192.168.5.3" },
    { USUAL, "ib", NULL, NULL, "192.168.5.3" },
    { USUAL, "ib,eth", NULL, NULL, "192.168.5.3 10.0.0.3 fd00::3" },
    { USUAL, "ib,eth", NULL, "fd00::3", "192.168.5.3 fd00::3 10.0.0.3" },
    { USUAL, "eth0,eth0", NULL, NULL, "10.0.0.3 fd00::3" },
    { USUAL, "lo", NULL, NULL, "127.0.0.1 ::1" },
    { USUAL, "e,lo", NULL, NULL, "10.0.0.3 fd00::3 127.0.0.1 ::1" },
    { "eth0=169.254.1.2 eth0=10.0.0.3", "eth0", NULL, NULL, "10.0.0.3" },
    { "eth0=169.254.1.2 ib0=10.0.0.3", "eth0", NULL, NULL, "169.254.1.2" },
    { USUAL, "eth00", NULL, NULL, "" },
    { USUAL, "eth1,ib1", NULL, NULL, "" },
    /* whole names */
    { "eth1=10.0.0.1 eth10=10.0.0.10", "eth1", NULL, NULL, "10.0.0.1 10.0.0.10" },
    { "eth1=10.0.0.1 eth10=10.0.0.10", "=eth1", NULL, NULL, "10.0.0.1" },
    { "eth1=10.0.0.1 eth10=10.0.0.10", "=eth,eth10", NULL, NULL, "10.0.0.10" },
    /* all except */
    { USUAL, "^docker", NULL, NULL, "10.0.0.3 192.168.5.3 fd00::3" },
    { USUAL, "^docker,eth0,ib", NULL, NULL, "127.0.0.1 ::1" },
    { USUAL, "^docker", NULL, "192.168.5.3", "192.168.5.3 10.0.0.3 fd00::3" },
    { "eth1=10.0.0.1 eth10=10.0.0.10", "^=eth1", NULL, NULL, "10.0.0.10" },
    { USUAL, "^d,e,i,l", NULL, NULL, "" },
    /* networks and addresses */
    { USUAL, "192.168.0.0/16", NULL, NULL, "192.168.5.3" },
    { USUAL, "172.16.0.0/12,10.0.0.0/8", NULL, NULL, "172.17.0.1 10.0.0.3" },
    { USUAL, "10.0.0.3", NULL, NULL, "10.0.0.3" },
    { USUAL, "10.0.0.2/31", NULL, NULL, "10.0.0.3" },
    { USUAL, "10.0.0.0/31", NULL, NULL, "" },
    { USUAL, "0.0.0.0/0", NULL, NULL, "10.0.0.3 172.17.0.1 192.168.5.3 127.0.0.1" },
    { USUAL, "fd00::/8", NULL, NULL, "fd00::3" },
    { USUAL, "::/0", NULL, "10.0.0.3", "10.0.0.3 172.17.0.1 192.168.5.3 fd00::3 127.0.0.1 ::1" },
    { USUAL, "^10.0.0.0/8,fd00::/8", NULL, NULL, "172.17.0.1 192.168.5.3" },
    { "eth0=fe80::1%eth0 eth0=10.0.0.1", "fe80::/10", NULL, NULL, "fe80::1%eth0" },
    /* addr= of the hostfile, of this host or of a router before it */
    { USUAL, NULL, "192.168.5.3", "10.0.0.3", "192.168.5.3" },
    { USUAL, "eth0", "192.168.5.3", NULL, "192.168.5.3" },
    { USUAL, NULL, "203.0.113.9", "10.0.0.3", "203.0.113.9" },
};

static void addresses_are_tried_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *words = strdup(cases[i].addrs);
        struct dt_iface_want want = { cases[i].list, cases[i].addr, cases[i].preferred };
        struct dt_candidates got;
        struct dt_strbuf text = { 0 };
        struct dt_msg_list list;

        addresses(&list, words);
        dt_iface_choose(&got, &list, &want);
        for (uint32_t k = 0; k < got.n; k++)
            dt_strbuf_printf(&text, "%s%s", k ? " " : "", got.v[k].addr);
        if (strcmp(dt_strbuf_text(&text), cases[i].want) != 0)
            fail_msg("case %zu (--iface %s): got \"%s\", want \"%s\"", i,
                     cases[i].list ? cases[i].list : "-", dt_strbuf_text(&text), cases[i].want);
        dt_strbuf_free(&text);
        free(list.v);
        free(words);
    }
}

static void a_candidate_has_its_interface(void **state)
{
    char words[] = USUAL;
    struct dt_iface_want want = { .addr = "192.168.5.3" };
    struct dt_candidates got;
    struct dt_msg_list list;

    (void)state;
    addresses(&list, words);
    dt_iface_choose(&got, &list, &want);
    assert_string_equal(got.v[0].iface, "ib0");
    assert_int_equal(got.v[0].mtu, 1500);
    want.addr = "203.0.113.9";
    dt_iface_choose(&got, &list, &want);
    assert_string_equal(got.v[0].iface, "");
    free(list.v);
}

static void candidates_are_limited_to_the_maximum(void **state)
{
    struct dt_msg_netaddr v[3 * DT_CANDIDATES_MAX];
    struct dt_msg_list list = { v, 3 * DT_CANDIDATES_MAX };
    struct dt_iface_want want = { 0 };
    struct dt_candidates got;

    (void)state;
    for (size_t i = 0; i < list.n; i++)
        v[i] = (struct dt_msg_netaddr){ "eth0", "10.0.0.1", 0 };
    dt_iface_choose(&got, &list, &want);
    assert_int_equal(got.n, DT_CANDIDATES_MAX);
}

static const struct {
    const char *list;
    const char *why; /* part of the message, or NULL: valid */
} lists[] = {
    { "eth0", NULL },
    { "eth0,ib0", NULL },
    { "=eth0", NULL },
    { "^docker0,lo", NULL },
    { "^=eth0", NULL },
    { "10.0.0.0/8,eth0", NULL },
    { "fd00::/64", NULL },
    { "10.0.0.1", NULL },
    { "::1", NULL },
    { "0.0.0.0/0", NULL },
    { "", "a name is missing" },
    { "^", "a name is missing" },
    { "=", "a name is missing" },
    { "eth0,", "a name is missing" },
    { "eth0,,ib0", "a name is missing" },
    { "eth0,^lo", "^ may stand only once, before the whole list" },
    { "=^eth0", "^ may stand only once, before the whole list" },
    { "eth0,=ib0", "= may stand only once, before the whole list" },
    { "eth0, ib0", "no blank" },
    { "eth0\n", "no blank" },
    { "10.0.0.0/33", "10.0.0.0/33 is not a network" },
    { "10.0.0.0/", "10.0.0.0/ is not a network" },
    { "10.0.0.0/-1", "is not a network" },
    { "10.0.0.0/8x", "is not a network" },
    { "10.0.0/8", "is not a network" },
    { "fd00::/129", "is not a network" },
    { "eth0,fd00:/64", "fd00:/64 is not a network" },
    { "eth0/8", "eth0/8 is not a network" },
};

static void lists_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct dt_error err = { 0 };
        int rc = dt_iface_check(lists[i].list, &err);

        if (rc != (lists[i].why ? -1 : 0) || (lists[i].why && !strstr(err.text, lists[i].why)))
            fail_msg("\"%s\": %d, \"%s\"", lists[i].list, rc, err.text);
        assert_int_equal(err.exit_code, lists[i].why ? DT_EXIT_USAGE : 0);
    }
}

static void interfaces_are_described(void **state)
{
    char words[] = USUAL;
    struct dt_msg_list list;
    struct dt_strbuf text = { 0 };

    (void)state;
    addresses(&list, words);
    dt_iface_describe(&text, &list);
    assert_string_equal(dt_strbuf_text(&text), "lo (127.0.0.1, ::1), eth0 (10.0.0.3, fd00::3), "
                                               "docker0 (172.17.0.1), ib0 (192.168.5.3)");
    dt_strbuf_free(&text);
    list.n = 0;
    dt_iface_describe(&text, &list);
    assert_string_equal(dt_strbuf_text(&text), "none");
    dt_strbuf_free(&text);
    free(list.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_tried_in_order),
        cmocka_unit_test(a_candidate_has_its_interface),
        cmocka_unit_test(candidates_are_limited_to_the_maximum),
        cmocka_unit_test(lists_are_checked),
        cmocka_unit_test(interfaces_are_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
