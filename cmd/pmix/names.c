#include "cmd/pmix/names.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"

struct entry { /* a published name */
    struct entry *next;
    char *key;
    struct dt_strbuf data;
    uint32_t rank;
    bool once; /* looking it up removes it */
};

struct waiter { /* a request that waits for a name */
    struct waiter *next;
    char *key;
    uint32_t node, request;
};

struct meeting { /* hosts that wait for each other */
    struct meeting *next;
    char *key;
    struct dt_strbuf data; /* of the hosts that have arrived */
    uint32_t arrived, request;
    bool here; /* this host has arrived: it made the request */
};

struct dt_names {
    uint32_t node, nodes;
    dt_names_answered *answer;
    void *arg;
    struct entry *entries;
    struct waiter *waiters; /* the first one waits longest */
    struct meeting *meetings;
    uint64_t met; /* number of complete meetings */
};

/* ---- names ---- */

static struct entry **find_entry(struct dt_names *n, const char *key)
{
    struct entry **at = &n->entries;

    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    return at;
}

static void remove_entry(struct entry **at)
{
    struct entry *e = *at;

    *at = e->next;
    free(e->key);
    dt_strbuf_free(&e->data);
    free(e);
}

static void tell(struct dt_names *n, uint32_t node, const struct dt_names_answer *answer)
{
    if (node == n->node)
        n->answer(n->arg, answer);
}

/* The entry may be gone afterwards. */
static void hand_out(struct dt_names *n, struct entry **at, uint32_t node, uint32_t request)
{
    const struct entry *e = *at;

    tell(n, node,
         &(struct dt_names_answer){ request, true, e->rank, e->data.data, e->data.len, 0 });
    if (e->once)
        remove_entry(at);
}

/* Gives a new name to those that wait for it. */
static void serve_waiters(struct dt_names *n, const char *key)
{
    for (struct waiter **at = &n->waiters; *at;) {
        struct waiter *w = *at;
        struct entry **entry = find_entry(n, key);

        if (!*entry)
            return;
        if (strcmp(w->key, key) != 0) {
            at = &w->next;
            continue;
        }
        hand_out(n, entry, w->node, w->request);
        *at = w->next;
        free(w->key);
        free(w);
    }
}

static void append_entry(struct dt_names *n, const struct dt_msg_share *m)
{
    struct entry **at = &n->entries;

    while (*at)
        at = &(*at)->next;
    *at = dt_xcalloc(1, sizeof **at);
    (*at)->key = dt_xstrdup(m->key);
    dt_strbuf_add(&(*at)->data, m->data.p, m->data.n);
    (*at)->rank = m->rank;
    (*at)->once = m->flag;
}

/* As with Open MPI's mpirun, a name may be published again: new data replace the old. But data for
 * one reader wait in a queue, because several clients of one port publish theirs by one name. */
static void publish(struct dt_names *n, const struct dt_msg_share *m)
{
    struct entry **old = find_entry(n, m->key);

    tell(n, m->node, &(struct dt_names_answer){ m->request, true, m->rank, NULL, 0, 0 });
    if (*old && !m->flag)
        remove_entry(old);
    append_entry(n, m);
    serve_waiters(n, m->key);
}

static void unpublish(struct dt_names *n, const struct dt_msg_share *m)
{
    struct entry **at;
    bool known = false;

    while (*(at = find_entry(n, m->key))) {
        remove_entry(at);
        known = true;
    }
    tell(n, m->node, &(struct dt_names_answer){ m->request, known, m->rank, NULL, 0, 0 });
}

static void look_up(struct dt_names *n, const struct dt_msg_share *m)
{
    struct entry **entry = find_entry(n, m->key);
    struct waiter **last = &n->waiters;

    if (*entry) {
        hand_out(n, entry, m->node, m->request);
        return;
    }
    if (!m->flag) {
        tell(n, m->node, &(struct dt_names_answer){ m->request, false, 0, NULL, 0, 0 });
        return;
    }
    while (*last)
        last = &(*last)->next;
    *last = dt_xcalloc(1, sizeof **last);
    **last = (struct waiter){ NULL, dt_xstrdup(m->key), m->node, m->request };
}

/* ---- meetings ---- */

static void free_meeting(struct meeting *g)
{
    dt_strbuf_free(&g->data);
    free(g->key);
    free(g);
}

static struct meeting **find_meeting(struct dt_names *n, const char *key)
{
    struct meeting **at = &n->meetings;

    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    if (!*at) {
        *at = dt_xcalloc(1, sizeof **at);
        (*at)->key = dt_xstrdup(key);
    }
    return at;
}

/* A host enters no second meeting with this key before the first one is complete. */
static void meet(struct dt_names *n, const struct dt_msg_share *m)
{
    struct meeting **at = find_meeting(n, m->key), *g = *at;

    dt_strbuf_add(&g->data, m->data.p, m->data.n);
    if (m->node == n->node) {
        g->here = true;
        g->request = m->request;
    }
    if (++g->arrived < m->nodes)
        return;
    *at = g->next;
    if (g->here)
        n->answer(n->arg,
                  &(struct dt_names_answer){ g->request, true, m->rank, dt_strbuf_text(&g->data),
                                             g->data.len, n->met });
    n->met++;
    free_meeting(g);
}

/* ---- create, apply, destroy ---- */

struct dt_names *dt_names_create(uint32_t node, uint32_t nodes, dt_names_answered *answer,
                                 void *arg)
{
    struct dt_names *n = dt_xcalloc(1, sizeof *n);

    n->node = node;
    n->nodes = nodes;
    n->answer = answer;
    n->arg = arg;
    return n;
}

bool dt_names_apply(struct dt_names *n, const struct dt_msg_share *m)
{
    static void (*const operations[])(struct dt_names * n, const struct dt_msg_share *m) = {
        [DT_SHARE_PUBLISH] = publish,
        [DT_SHARE_UNPUBLISH] = unpublish,
        [DT_SHARE_LOOK_UP] = look_up,
        [DT_SHARE_MEET] = meet,
    };

    if (m->node >= n->nodes || m->nodes > n->nodes ||
        m->op >= sizeof operations / sizeof *operations)
        return false;
    operations[m->op](n, m);
    return true;
}

void dt_names_destroy(struct dt_names *n)
{
    struct meeting *g;
    struct waiter *w;

    if (!n)
        return;
    while (n->entries)
        remove_entry(&n->entries);
    while ((w = n->waiters)) {
        n->waiters = w->next;
        free(w->key);
        free(w);
    }
    while ((g = n->meetings)) {
        n->meetings = g->next;
        free_meeting(g);
    }
    free(n);
}
