/* A configuration file: any bytes. */
#include "cmd/config.h"

#include <string.h>

#include "launcher/base/inject.h"
#include "launcher/place/envrules.h"
#include "runtime/wire/msg.h"
#include "tests/fuzz/fuzz.h"

/* What every reader of struct dt_options relies on. */
static void require_options(const struct dt_options *o)
{
    struct dt_inject fault;

    REQUIRE(o->np >= 0 && o->np <= DT_RANKS_MAX);
    REQUIRE(o->per_node >= DT_PER_NODE_AUTO && o->per_node <= DT_RANKS_MAX);
    REQUIRE(o->job.map_by == DT_MAP_BY_SLOT || o->job.map_by == DT_MAP_BY_NODE);
    REQUIRE(o->transport <= DT_TRANSPORT_SRUN);
    REQUIRE(o->job.heartbeat_s >= 1 && o->job.kill_grace_s >= 0 && o->job.timeout_s >= 0);
    REQUIRE(o->job.max_restarts >= -1 && o->job.stdin_rank < DT_RANKS_MAX);
    REQUIRE(!o->hostfile || *o->hostfile);
    REQUIRE(!o->checkpoint_dir || *o->checkpoint_dir);
    for (uint32_t i = 0; i < o->hosts.n; i++)
        REQUIRE(*o->hosts.v[i]);
    for (uint32_t i = 0; i < o->env.n; i++)
        REQUIRE(dt_env_check_rule(o->env.v[i], NULL) == 0);
    for (uint32_t i = 0; i < o->job.inject.n; i++)
        REQUIRE(dt_inject_parse(&fault, o->job.inject.v[i], NULL) == 0);
    REQUIRE(!dt_options_ask_for_text(o) && !o->config && o->job.argv.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dt_options o;
    struct dt_error err = { 0 };
    int rc;

    dt_options_init(&o);
    rc = dt_config_text(&o, "FILE", (const char *)data, n, &err);
    if (rc < 0)
        REQUIRE(rc == -1 && err.exit_code == DT_EXIT_USAGE && strncmp(err.text, "FILE:", 5) == 0);
    else
        require_options(&o);
    if (rc == 0 && dt_options_check(&o, &err) < 0)
        REQUIRE(err.exit_code == DT_EXIT_USAGE && *err.text);
    dt_options_free(&o);
    return 0;
}
