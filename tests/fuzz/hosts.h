/* What is true of every host list that a parser accepted, and of every error. */
#ifndef TESTS_FUZZ_HOSTS_H
#define TESTS_FUZZ_HOSTS_H

#include <string.h>

#include "launcher/hosts/hostlist.h"
#include "tests/fuzz/fuzz.h"

static void require_host(const struct dt_hostlist *list, const struct dt_host *h)
{
    REQUIRE(h->name && *h->name && *h->name != '-');
    REQUIRE(!strpbrk(h->name, " \t\r\n;&|$`'\"\\<>(){}*?!#,@/[]"));
    REQUIRE(!h->user || (*h->user && *h->user != '-'));
    REQUIRE(h->slots >= 0 && h->slots <= DT_SLOTS_MAX);
    REQUIRE(h->max_slots == 0 || h->max_slots >= h->slots);
    REQUIRE(h->port >= 0 && h->port <= 65535);
    REQUIRE(dt_hostlist_find(list, h->name) == h);
}

static void require_result(const struct dt_hostlist *list, int rc, const struct dt_error *err)
{
    if (rc < 0) {
        REQUIRE(rc == -1 && err->exit_code == DT_EXIT_USAGE && *err->text);
        return;
    }
    REQUIRE(list->n >= 1 && list->n <= DT_HOSTS_MAX);
    for (size_t i = 0; i < list->n; i++)
        require_host(list, &list->v[i]);
}

#endif
