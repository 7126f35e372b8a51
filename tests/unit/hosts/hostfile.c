#include <stdio.h>
#include <string.h>

#include "launcher/hosts/hostfile.h"
#include "tests/unit/hosts/describe.h"
#include "tests/unit/unit.h"

struct file {
    const char *text;
    const char *want;
};

static const struct file goods[] = {
    { "h", "h:1" },
    { "h\n", "h:1" },
    { "h\r\nx slots=2\r\n", "h:1; x:2" },
    { "\xef\xbb\xbfh slots=2\r\n", "h:2" },
    { "# all\n\n  \n\t\nh # one\n#x\n", "h:1" },
    { "h#one\n", "h:1" },
    { "\th\tslots=3\t\n", "h:3" },
    { "h:4\n", "h:4" },
    { "h slots=0\nx:0\n", "h:0; x:0" },
    { "h slots=0 gpus=0,1\n", "h:0 gpus=0,1" },
    { "h slots=4 max_slots=6\n", "h:4/6" },
    { "h max_slots=6 slots=4\n", "h:4/6" },
    { "h max-slots=6 slots=4\n", "h:4/6" },
    { "h:4 max_slots=4\n", "h:4/4" },
    { "h cpu=4 cpu_max=6\nx count=4 count-max=6\n", "h:4/6; x:4/6" },
    { "a slots=1 slots-max=3\nb slots_max=3\nc max-cpu=3\nd max_count=3\n",
      "a:1/3; b:1/3; c:1/3; d:1/3" },
    { "a username=u\nb user-name=v\nc user_name=w\n", "u@a:1; v@b:1; w@c:1" },
    { "h slots = 4\tmax_slots =6 gpus= 0,2\n", "h:4/6 gpus=0,2" },
    { "h gpus=0,2,3\n", "h:3 gpus=0,2,3" },
    { "h gpus=0,2,3 slots=2\n", "h:2 gpus=0,2,3" },
    { "h gpus=GPU-1f/2,MIG-GPU-3/1/0\n", "h:2 gpus=GPU-1f/2,MIG-GPU-3/1/0" },
    { "h slots=2 gpus=\n", "h:2 gpus=" },
    { "h slots=2 gpus=-1\n", "h:2 gpus=-1" },
    { "h user=anna port=2222 identity=/k/id addr=10.0.0.1\n",
      "anna@h:1 port=2222 identity=/k/id addr=10.0.0.1" },
    { "h addr=fe80::1\n", "h:1 addr=fe80::1" },
    { "anna@h slots=2\n", "anna@h:2" },
    { "[fe80::1]:4 port=22\n", "fe80::1:4 port=22" },
    { "n[01-03] slots=2\n", "n01:2; n02:2; n03:2" },
    { "n[1-2] user=u port=7 gpus=1\n", "u@n1:1 port=7 gpus=1; u@n2:1 port=7 gpus=1" },
    { "h slots=2\nx\nh slots=3\n", "h:5; x:1" },
    { "h slots=2 max_slots=3\nh slots=1 max_slots=2\n", "h:3/5" },
    { "h slots=2 max_slots=3\nh\n", "h:3" },
    { "h max_slots=1000000\nh max_slots=1000000\n", "h:2/1000000" },
    { "h gpus=0\nh gpus=3\n", "h:2 gpus=0,3" },
    { "h user=u\nh port=5\n", "u@h:2 port=5" },
    { "a\nb\n^a\n", "b:1" },
    { "^a\na\nb\n", "b:1" },
    { "n[1-4]\n^n[2-3]\n", "n1:1; n4:1" },
    { "n[1-2]\n^n1\n^n1 # again\n", "n2:1" },
};

static int parse(struct dt_hostlist *list, const char *text, struct dt_error *err)
{
    return dt_hostfile_parse(list, "nodes", text, strlen(text), err);
}

static void valid_files_are_parsed(void **state)
{
    struct dt_strbuf b = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
        struct dt_hostlist list = { 0 };
        struct dt_error err = { 0 };

        if (parse(&list, goods[i].text, &err) < 0)
            fail_msg("%s: %s", goods[i].text, err.text);
        assert_string_equal(describe(&b, &list), goods[i].want);
        dt_hostlist_free(&list);
    }
    dt_strbuf_free(&b);
}

static const struct file bads[] = {
    { "", "nodes: the file names no host" },
    { "# none\n", "nodes: the file names no host" },
    { "a\n^a\n", "nodes: the file names no host" },
    { "a\nb\nc slots=abc\n", "nodes:3: slots=abc: a number was expected" },
    { "\n\r\n\na port=0\n", "nodes:4: port=0: a number from 1 to 65535 was expected" },
    { "a slots=-1", "nodes:1: slots=-1: a whole number from 0 to 1000000 was expected" },
    { "a slots=", "nodes:1: slots=: a number was expected" },
    { "a slots=1000001", "nodes:1: slots=1000001: a number from 0 to 1000000 was expected" },
    { "a max_slots=0", "nodes:1: max_slots=0: a number from" },
    { "a max-slots=3 max_slots=3", "nodes:1: max_slots= is given twice" },
    { "a max-slot=3", "nodes:1: max-slot= is unknown" },
    { "a slots=2 count=3", "nodes:1: slots= is given twice, once as count=" },
    { "a user-name=u username=u", "nodes:1: user= is given twice, once as username=" },
    { "a count=x", "nodes:1: count=x: a number was expected" },
    { "a boards=1", "nodes:1: boards= is unknown" },
    { "a slots=4 max_slots=3", "nodes:1: max_slots=3 is less than the 4 slots" },
    { "a gpus=0,1 max_slots=1", "nodes:1: max_slots=1 is less than the 2 slots" },
    { "a slots=1 slots=2", "nodes:1: slots= is given twice" },
    { "a:1 slots=2", "nodes:1: slots=2: the slots are given twice" },
    { "u@a user=v", "nodes:1: user=v: the user is given twice" },
    { "a user=-x", "nodes:1: user=-x: -x cannot be a user's name" },
    { "a user=", "nodes:1: user=: the user's name is empty" },
    { "a port=0", "nodes:1: port=0: a number from 1 to 65535" },
    { "a port=65536", "nodes:1: port=65536: a number from 1 to 65535" },
    { "a identity=", "nodes:1: identity=: the name of a key file" },
    { "a addr=example.org", "nodes:1: addr=example.org: an IPv4 or IPv6 address" },
    { "n[1-2] addr=10.0.0.1", "nodes:1: addr=10.0.0.1: 2 hosts cannot have one address" },
    { "a gpus=0,,1", "nodes:1: gpus=0,,1: numbers or UUIDs" },
    { "a gpus=0-3", "nodes:1: gpus=0-3: numbers or UUIDs" },
    { "a gpus=x", "nodes:1: gpus=x: numbers or UUIDs" },
    { "a gpus=-2", "nodes:1: gpus=-2: numbers or UUIDs" },
    { "a cores=4", "nodes:1: cores= is unknown; known are: slots" },
    { "a Slots=4", "nodes:1: Slots= is unknown" },
    { "a b", "nodes:1: b: key=value was expected" },
    { "a 4", "nodes:1: 4: slots=4 was expected" },
    { "a slots 4", "nodes:1: slots: key=value was expected" },
    { "a =4", "nodes:1: : key=value was expected" },
    { "a slots=1, max_slots=2", "nodes:1: slots=1,: a number was expected" },
    { "a@b@c", "nodes:1: a@b@c: there is a second @" },
    { "a:b", "nodes:1: a:b: the slots after the colon: a number was expected" },
    { "::1", "nodes:1: ::1: an IPv6 address must stand in brackets" },
    { "a,b", "nodes:1: a,b: a,b cannot be a host's name; each host has a line of its own" },
    { "slots=4", "nodes:1: slots=4: slots=4 cannot be a host's name" },
    { "a\nn[1-\n", "nodes:2: n[1-: a bracket is not matched" },
    { "a port=1\na port=2", "nodes:2: a is given twice, with port 1 and 2" },
    { "a user=x\n\na user=y", "nodes:3: a is given twice, with user x and y" },
    { "a identity=x\na identity=y", "nodes:2: a is given twice, with identity x and y" },
    { "a addr=1.1.1.1\na addr=2.2.2.2",
      "nodes:2: a is given twice, with addr 1.1.1.1 and 2.2.2.2" },
    { "a\n^b\nc\n", "nodes:2: ^b: no line of this file names that host" },
    { "a\n^a:3\n", "nodes:2: ^a:3: only the host's name" },
    { "a\n^u@a\n", "nodes:2: ^u@a: only the host's name" },
    { "a\n^a slots=3\n", "nodes:2: ^a removes a host; nothing may follow" },
    { "a\n^\n", "nodes:2: : a host's name is missing" },
    { "n[0-65535]\nx\n", "nodes:2: more than 65536 hosts" },
    { "n\n^n[0-65535]\n^n\n", "nodes:3: more than 65536 hosts are removed" },
};

static void mistakes_name_file_and_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        struct dt_hostlist list = { 0 };
        struct dt_error err = { 0 };

        if (parse(&list, bads[i].text, &err) == 0)
            fail_msg("%s was accepted", bads[i].text);
        if (strncmp(err.text, bads[i].want, strlen(bads[i].want)) != 0)
            fail_msg("%s: said: %s", bads[i].text, err.text);
        assert_int_equal(err.exit_code, 2);
        dt_hostlist_free(&list);
    }
}

static void a_nul_byte_is_refused(void **state)
{
    struct dt_hostlist list = { 0 };
    struct dt_error err = { 0 };

    (void)state;
    assert_int_equal(dt_hostfile_parse(&list, "f", "a\nb\0c\n", 6, &err), -1);
    assert_string_equal(err.text, "f:2: it contains a NUL byte, so it is not a text file");
    dt_hostlist_free(&list);
}

static void names_of_all_lines_are_counted(void **state)
{
    struct dt_hostlist list = { .named = DT_NAMED_MAX - 2 };
    struct dt_error err = { 0 };

    (void)state;
    assert_int_equal(parse(&list, "a\na\na\n", &err), -1);
    assert_string_equal(err.text, "nodes:3: hosts are named more than 8388608 times");
    dt_hostlist_free(&list);
}

static void ten_thousand_lines_are_read_in_order(void **state)
{
    struct dt_strbuf text = { 0 };
    struct dt_hostlist list = { 0 };

    (void)state;
    for (int i = 0; i < 10000; i++)
        dt_strbuf_printf(&text, "node%d slots=%d\n", i, i % 7 + 1);
    assert_int_equal(dt_hostfile_parse(&list, "f", text.data, text.len, NULL), 0);
    assert_int_equal(list.n, 10000);
    for (int i = 0; i < 10000; i++) {
        char name[32];

        snprintf(name, sizeof name, "node%d", i);
        assert_string_equal(list.v[i].name, name);
        assert_int_equal(list.v[i].slots, i % 7 + 1);
        assert_ptr_equal(dt_hostlist_find(&list, name), &list.v[i]);
    }
    dt_hostlist_free(&list);
    dt_strbuf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_files_are_parsed),
        cmocka_unit_test(mistakes_name_file_and_line),
        cmocka_unit_test(a_nul_byte_is_refused),
        cmocka_unit_test(names_of_all_lines_are_counted),
        cmocka_unit_test(ten_thousand_lines_are_read_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
