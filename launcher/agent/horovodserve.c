#include "launcher/agent/horovodserve.h"

#include <unistd.h>

#include "launcher/place/envrules.h"
#include "launcher/place/frameworks.h"

static const char controller[] = "HOROVOD_CONTROLLER";

static bool was_asked_for(const struct dt_generation *g)
{
    return g->start.frameworks & DT_FRAMEWORK_HOROVOD;
}

/* Each rank would train on its own, which users easily mistake for success. */
static void say_left_alone(struct dt_generation *g, const char *why)
{
    if (g->start.generation == 1)
        dt_generation_say(g,
                          "%s uses Horovod (%s), but %s is set or unset by you: its ranks are not "
                          "told where the others are; --env horovod tells them",
                          g->start.argv.v[0], why, controller);
}

void dt_horovodserve_uses(void *arg, const char *why)
{
    struct dt_generation *g = arg;

    if (g->start.node_rank != 0 || was_asked_for(g))
        return;
    g->uses_horovod = true;
    g->serves_horovod = !dt_env_is_decided(&g->start, environ, controller);
    if (!g->serves_horovod)
        say_left_alone(g, why);
}

bool dt_horovodserve_listen(struct dt_generation *g)
{
    static const struct dt_rendezvous_events events = { dt_generation_on_log };

    if (g->start.node_rank != 0 || !(g->serves_horovod || was_asked_for(g)))
        return true;
    g->rendezvous = dt_rendezvous_create(g->host->loop, g->start.np, &events, g);
    return g->rendezvous != NULL;
}

uint16_t dt_horovodserve_port(const struct dt_generation *g)
{
    return g->rendezvous ? dt_rendezvous_port(g->rendezvous) : 0;
}

/* An address without an interface does not belong to this host: a router translates it. */
void dt_horovodserve_go(struct dt_generation *g, const struct dt_msg_go *go)
{
    bool own = *go->iface || g->start.nodes == 1;

    if (g->rendezvous)
        dt_rendezvous_open(g->rendezvous, own ? go->master_addr : NULL);
}

void dt_horovodserve_close(struct dt_generation *g)
{
    dt_rendezvous_destroy(g->rendezvous);
    g->rendezvous = NULL;
}
