#include <string.h>

#include "launcher/hosts/hostarg.h"
#include "tests/unit/hosts/describe.h"
#include "tests/unit/unit.h"

struct good {
    const char *text;
    const char *want;
};

static const struct good goods[] = {
    { "host1", "host1:1" },
    { "host1:4,host2:4", "host1:4; host2:4" },
    { " host1:4 ,\thost2:4 ", "host1:4; host2:4" },
    { "h,h", "h:2" },
    { "h:3,x,h:2", "h:5; x:1" },
    { "Node1,node1:2", "Node1:3" },
    { "anna@h:2", "anna@h:2" },
    { "anna@h:2,h:1", "anna@h:3" },
    { "h:1,anna@h:2", "anna@h:3" },
    { "anna@h,anna@h", "anna@h:2" },
    { "first.last_x-y+z@h.example.org", "first.last_x-y+z@h.example.org:1" },
    { "[fe80::1]:4", "fe80::1:4" },
    { "[fe80::1%eth0]", "fe80::1%eth0:1" },
    { "anna@[::1]:2,b", "anna@::1:2; b:1" },
    { "10.0.0.1:8", "10.0.0.1:8" },
    { "node[01-03,20]:4", "node01:4; node02:4; node03:4; node20:4" },
    { "n[1-3]", "n1:1; n2:1; n3:1" },
    { "n[8-11]", "n8:1; n9:1; n10:1; n11:1" },
    { "n[08-11]", "n08:1; n09:1; n10:1; n11:1" },
    { "n[7]", "n7:1" },
    { "n[1-2,2-3]", "n1:1; n2:2; n3:1" },
    { "r[1-2]n[1-2].x:2,b", "r1n1.x:2; r1n2.x:2; r2n1.x:2; r2n2.x:2; b:1" },
    { "u@n[1-2]", "u@n1:1; u@n2:1" },
    { "h:1000000", "h:1000000" },
    { "n[1-2,08-10,5]x[0-1]", "n1x0:1; n1x1:1; n2x0:1; n2x1:1; n08x0:1; n08x1:1; n09x0:1; n09x1:1; "
                              "n10x0:1; n10x1:1; n5x0:1; n5x1:1" },
};

static void valid_lists_are_parsed(void **state)
{
    struct dt_strbuf b = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
        struct dt_hostlist list = { 0 };
        struct dt_error err = { 0 };

        if (dt_hostarg_parse(&list, goods[i].text, &err) < 0)
            fail_msg("%s: %s", goods[i].text, err.text);
        assert_string_equal(describe(&b, &list), goods[i].want);
        dt_hostlist_free(&list);
    }
    dt_strbuf_free(&b);
}

static const struct good bads[] = {
    { "", "a host is missing" },
    { "h1,", "a host is missing" },
    { ",h1", "a host is missing" },
    { "h1,,h2", "a host is missing" },
    { "h1, ,h2", "a host is missing" },
    { "h1 h2", "h1 h2: a comma is missing" },
    { "h:", "h:: the slots after the colon: a number was expected" },
    { "h:1000001", "a number from 0 to 1000000" },
    { "h:99999999999999999999", "a number from 0 to 1000000" },
    { "h:abc", "h:abc: the slots after the colon: a number was expected" },
    { "h:-1", "a whole number from 0 to 1000000 was expected" },
    { "h:4x", "a number was expected" },
    { ":4", "a host's name is missing" },
    { "::1", "must stand in brackets" },
    { "fe80::1:4", "must stand in brackets" },
    { "h:22:4", "only slots follow a colon; a port is port=N in a hostfile, or --ssh-port" },
    { "a:2;b:2", "only slots follow a colon" },
    { "2001:db8:0:0:0:0:0:1", "must stand in brackets" },
    { "[fe80::1", "must stand in brackets" },
    { "fe80]", "a bracket is not matched" },
    { "n[1-2", "a bracket is not matched" },
    { "n[1-[2]]", "a bracket is not matched" },
    { "[fe80::zz]", "is not an IPv6 address" },
    { "[fe80::1%]", "is not an IPv6 address" },
    { "[fe80::1%a;b]", "is not an IPv6 address" },
    { "n[]", "[] is not a number" },
    { "n[x]", "[x] is not a number" },
    { "n[a-b]", "not a range" },
    { "n[1-]", "not a range" },
    { "n[-1]", "not a range" },
    { "n[1-2-3]", "not a range" },
    { "n[3-1]", "runs backwards" },
    { "n[1-1234567890]", "not a range" },
    { "n[0-65536]", "more than 65536 hosts" },
    { "a[1-300]b[1-300]", "more than 65536 hosts" },
    { "a[1-65536],b", "more than 65536 hosts" },
    { "a@b@c", "second @" },
    { "@h", "the user's name is empty" },
    { "-oProxyCommand=x@h", "cannot be a user's name" },
    { "a b@h", "a comma is missing" },
    { "a;b@h", "cannot be a user's name" },
    { "-oProxyCommand=x", "cannot be a host's name" },
    { "-l", "-l cannot be a host's name" },
    { "-lroot@h", "-lroot cannot be a user's name" },
    { "..", ".. cannot be a host's name" },
    { "h;reboot", "cannot be a host's name" },
    { "/job/hostfile", "cannot be a host's name; --hostfile names a file with hosts" },
    { "h$(x)", "cannot be a host's name" },
    { "anna@", "a host's name is missing" },
    { "anna@h,bob@h", "h is given twice, with user anna and bob" },
    { "h:999999,h:2", "more than 1000000 slots" },
    { "^h", "cannot be a host's name" },
};

static void invalid_lists_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        struct dt_hostlist list = { 0 };
        struct dt_error err = { 0 };

        if (dt_hostarg_parse(&list, bads[i].text, &err) == 0)
            fail_msg("%s was accepted", bads[i].text);
        if (strncmp(err.text, "-H: ", 4) != 0 || !strstr(err.text, bads[i].want))
            fail_msg("%s: said: %s", bads[i].text, err.text);
        assert_int_equal(err.exit_code, 2);
        dt_hostlist_free(&list);
    }
}

static void a_name_has_at_most_255_bytes(void **state)
{
    char name[257];
    struct dt_hostlist list = { 0 };
    struct dt_error err = { 0 };

    (void)state;
    memset(name, 'a', 256);
    name[255] = '\0';
    assert_int_equal(dt_hostarg_parse(&list, name, &err), 0);
    name[255] = 'a';
    name[256] = '\0';
    assert_int_equal(dt_hostarg_parse(&list, name, &err), -1);
    assert_non_null(strstr(err.text, "longer than 255 bytes"));
    dt_hostlist_free(&list);
}

static void d28_a_host_may_have_no_slots(void **state)
{
    struct dt_strbuf b = { 0 };
    struct dt_hostlist list = { 0 };
    struct dt_error err = { 0 };

    (void)state;
    assert_int_equal(dt_hostarg_parse(&list, "a:0,b:2,c:0,c:3", NULL), 0);
    assert_string_equal(describe(&b, &list), "a:0; b:2; c:3");
    assert_int_equal(dt_hostlist_drop_empty(&list, &err), 0);
    assert_string_equal(describe(&b, &list), "b:2; c:3");
    dt_hostlist_free(&list);
    assert_int_equal(dt_hostarg_parse(&list, "a:0", NULL), 0);
    assert_int_equal(dt_hostlist_drop_empty(&list, &err), -1);
    assert_string_equal(err.text, "no host has slots: a host with 0 slots takes no ranks");
    dt_hostlist_free(&list);
    dt_strbuf_free(&b);
}

static void several_lists_form_one(void **state)
{
    struct dt_strbuf b = { 0 };
    struct dt_hostlist list = { 0 };

    (void)state;
    assert_int_equal(dt_hostarg_parse(&list, "a:2,b", NULL), 0);
    assert_int_equal(dt_hostarg_parse(&list, "c,a:3", NULL), 0);
    assert_string_equal(describe(&b, &list), "a:5; b:1; c:1");
    dt_hostlist_free(&list);
    dt_strbuf_free(&b);
}

static void slots_given_distinguishes_a_default_from_one(void **state)
{
    struct dt_hostlist list = { 0 };

    (void)state;
    assert_int_equal(dt_hostarg_parse(&list, "a,b:1,c,c:1", NULL), 0);
    assert_false(list.v[0].slots_given);
    assert_true(list.v[1].slots_given);
    assert_true(list.v[2].slots_given);
    dt_hostlist_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_lists_are_parsed),
        cmocka_unit_test(invalid_lists_are_refused),
        cmocka_unit_test(a_name_has_at_most_255_bytes),
        cmocka_unit_test(d28_a_host_may_have_no_slots),
        cmocka_unit_test(several_lists_form_one),
        cmocka_unit_test(slots_given_distinguishes_a_default_from_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
