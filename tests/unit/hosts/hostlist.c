#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/hosts/duplicate_hosts.h"
#include "launcher/hosts/hostarg.h"
#include "launcher/hosts/hostfile.h"
#include "launcher/hosts/localhost.h"
#include "tests/unit/hosts/describe.h"
#include "tests/unit/unit.h"

/* In these tests every name that begins with "me" is this machine. */
static bool is_me(const char *name, void *arg)
{
    (void)arg;
    return strncmp(name, "me", 2) == 0;
}

struct filtering {
    const char *file;
    const char *arg;
    const char *want; /* the list, or how the error begins */
    bool fails;
};

static const struct filtering filterings[] = {
    { "a slots=4\nb slots=4\nc slots=4\n", "c,a", "a:4; c:4", false },
    { "a slots=4\nb slots=4\n", "b:2", "b:2", false },
    { "a slots=4\nb slots=4\n", "B", "b:4", false },
    { "a slots=4 max_slots=8\n", "a:8", "a:8/8", false },
    { "a slots=4 max_slots=8\n", "a:9", "-H asks for 9 slots on a, whose max_slots", true },
    { "a slots=4 user=u port=7\n", "v@a", "v@a:4 port=7", false },
    { "n[1-9] slots=4\n", "n[2-3]", "n2:4; n3:4", false },
    { "a\nb\n", "a,x", "x: -H names it, but the hostfile does not", true },
    { "me slots=4\na\n", "me2", "me:4", false },
    { "a slots=0\nb\n", "a:2,b:0", "a:2; b:0", false },
    { "me port=7\na\n", "me2", "me2: -H names it", true },
};

static void dash_h_filters_a_hostfile(void **state)
{
    struct dt_strbuf b = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof filterings / sizeof *filterings; i++) {
        const struct filtering *f = &filterings[i];
        struct dt_hostlist list = { 0 }, only = { 0 };
        struct dt_error err = { 0 };
        int rc;

        assert_int_equal(dt_hostfile_parse(&list, "f", f->file, strlen(f->file), NULL), 0);
        assert_int_equal(dt_hostarg_parse(&only, f->arg, NULL), 0);
        rc = dt_hostlist_filter(&list, "the hostfile", &only, is_me, NULL, &err);
        assert_int_equal(rc, f->fails ? -1 : 0);
        if (!f->fails)
            assert_string_equal(describe(&b, &list), f->want);
        else if (strncmp(err.text, f->want, strlen(f->want)) != 0)
            fail_msg("%s with -H %s: said: %s", f->file, f->arg, err.text);
        assert_int_equal(err.exit_code, f->fails ? 2 : 0);
        dt_hostlist_free(&list);
        dt_hostlist_free(&only);
    }
    dt_strbuf_free(&b);
}

static const struct filtering merges[] = {
    { "a\nb\n", NULL, "a:1; b:1", false },
    { "me slots=2\na\n", NULL, "me:2 local; a:1", false },
    { "a\nme slots=2\nb\nme2 slots=3\nme3\n", NULL, "a:1; me:6 local; b:1", false },
    { "me\nme2 port=2222\n", NULL, "me:1 local; me2:1 port=2222", false },
    { "me\nu@me2\n", NULL, "me:1 local; u@me2:1", false },
    { "me addr=1.1.1.1\nme2\n", NULL, "me:2 addr=1.1.1.1 local", false },
    { "me addr=1.1.1.1\nme2 addr=2.2.2.2\n", NULL,
      "me and me2 are both this machine: me is given twice, with addr", true },
};

static void names_of_this_machine_become_one_host(void **state)
{
    struct dt_strbuf b = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        const struct filtering *m = &merges[i];
        struct dt_hostlist list = { 0 };
        struct dt_error err = { 0 };
        int rc;

        assert_int_equal(dt_hostfile_parse(&list, "f", m->file, strlen(m->file), NULL), 0);
        rc = dt_hostlist_merge_local(&list, is_me, NULL, &err);
        assert_int_equal(rc, m->fails ? -1 : 0);
        if (!m->fails)
            assert_string_equal(describe(&b, &list), m->want);
        else if (strncmp(err.text, m->want, strlen(m->want)) != 0)
            fail_msg("%s: said: %s", m->file, err.text);
        dt_hostlist_free(&list);
    }
    dt_strbuf_free(&b);
}

static void find_works_after_entries_are_removed(void **state)
{
    struct dt_hostlist list = { 0 };
    char name[16];

    (void)state;
    assert_null(dt_hostlist_find(&list, "n0"));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "n%d", i);
        dt_hostlist_add(&list, name)->removed = i % 3 == 0;
    }
    dt_hostlist_drop_removed(&list);
    assert_int_equal(list.n, 66);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "N%d", i);
        if (i % 3)
            assert_string_equal(dt_hostlist_find(&list, name)->name + 1, name + 1);
        else
            assert_null(dt_hostlist_find(&list, name));
    }
    dt_hostlist_free(&list);
}

static void loopback_and_own_names_are_local(void **state)
{
    static const char *const yes[] = { "localhost",       "LocalHost",       "127.0.0.1",
                                       "127.0.0.53",      "127.255.0.9",     "::1",
                                       "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1" };
    static const char *const no[] = {
        "",    "localhos", "localhost2", "128.0.0.1",    "126.0.0.1",           "127.0.0",
        "127", "::2",      "192.0.2.77", "2001:db8::77", "no-such-host.invalid"
    };
    struct dt_localhost l;
    char name[256] = "";

    (void)state;
    dt_localhost_init(&l, NULL);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!dt_localhost_is(yes[i], &l))
            fail_msg("%s is not taken as local", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (dt_localhost_is(no[i], &l))
            fail_msg("%s is taken as local", no[i]);
    assert_int_equal(gethostname(name, sizeof name - 1), 0);
    assert_true(dt_localhost_is(name, &l));
    dt_localhost_free(&l);
}

static void the_hosts_file_adds_names_of_own_addresses(void **state)
{
    static const char text[] = "127.0.1.1 dt-own.example dt-own # dt-comment\n"
                               "192.0.2.77\tdt-other\n"
                               "\n# 127.0.0.1 dt-hidden\n"
                               "::1 dt-six\n"
                               "127.0.0.3 dt-0.job.ns.svc.cluster.local\n";
    char path[] = "/tmp/dtrun-hosts-XXXXXX";
    int fd = mkstemp(path);
    struct dt_localhost l;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    dt_localhost_init(&l, path);
    unlink(path);
    assert_true(dt_localhost_is("dt-own", &l));
    assert_true(dt_localhost_is("DT-own.example", &l));
    assert_true(dt_localhost_is("dt-six", &l));
    assert_true(dt_localhost_is("dt-0.job.ns.svc.cluster.local", &l));
    assert_true(dt_localhost_is("dt-0.job.ns.svc", &l));
    assert_true(dt_localhost_is("dt-0.job", &l));
    assert_true(dt_localhost_is("dt-0.job.ns.svc.cluster.local.", &l));
    assert_true(dt_localhost_is("localhost.", &l));
    assert_false(dt_localhost_is("dt-0.job.ns.svc.", &l));
    assert_false(dt_localhost_is("localhost..", &l));
    assert_false(dt_localhost_is("dt-0", &l)); /* has no line of its own */
    assert_false(dt_localhost_is("dt-0.jo", &l));
    assert_false(dt_localhost_is("dt-0.job.ns.svc.other", &l));
    assert_false(dt_localhost_is("dt-other", &l));
    assert_false(dt_localhost_is("dt-comment", &l));
    assert_false(dt_localhost_is("dt-hidden", &l));
    dt_localhost_free(&l);
}

static const char *identity_of(const void *identities, size_t i)
{
    return ((const char *const *)identities)[i];
}

static void names_of_one_machine_are_found(void **state)
{
    static const struct {
        const char *identities[6];
        size_t first[6];
    } cases[] = {
        { { "a", "b", "c", "d", "e", "f" }, { 0, 1, 2, 3, 4, 5 } },
        { { "b", "a", "b", "a", "b", "a" }, { 0, 1, 0, 1, 0, 1 } },
        { { "z", "y", "x", "x", "y", "x" }, { 0, 1, 2, 2, 1, 2 } },
        { { NULL, "a", NULL, "a", NULL, NULL }, { 0, 1, 2, 1, 4, 5 } },
    };
    size_t *first;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        first = dt_duplicate_hosts_find(6, identity_of, cases[i].identities);
        assert_memory_equal(first, cases[i].first, sizeof cases[i].first);
        free(first);
    }
    free(dt_duplicate_hosts_find(0, identity_of, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dash_h_filters_a_hostfile),
        cmocka_unit_test(names_of_this_machine_become_one_host),
        cmocka_unit_test(find_works_after_entries_are_removed),
        cmocka_unit_test(loopback_and_own_names_are_local),
        cmocka_unit_test(the_hosts_file_adds_names_of_own_addresses),
        cmocka_unit_test(names_of_one_machine_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
