/* usage: probe CHECK [ARGUMENT]
 *
 * A rank, or a process started by hand, that runs one of the GPU kit's checks (probe.h). */
#include "tests/gpu/probe.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/rank/device.h"

static const struct {
    const char *name;
    void (*run)(const char *arg);
} checks[] = {
    { "found", probe_found },         { "has", probe_has },
    { "nccl", probe_nccl },           { "kinds", probe_kinds },
    { "contexts", probe_contexts },   { "reset", probe_reset },
    { "error", probe_error },         { "kill", probe_kill },
    { "grace", probe_grace },         { "abort", probe_abort },
    { "endless", probe_endless },     { "raw", probe_raw },
    { "modes", probe_modes },         { "small", probe_small },
    { "bandwidth", probe_bandwidth }, { "init", probe_init },
    { "enqueue", probe_enqueue },     { "checkpoint", probe_checkpoint },
    { "orders", probe_orders },       { "overlap", probe_overlap },
    { "buckets", probe_buckets },     { "isave", probe_isave },
    { "held", probe_held },           { "burst", probe_burst },
    { "killlarge", probe_killlarge }, { "behind", probe_behind },
    { "kernel", probe_kernel },
};

int main(int argc, char **argv)
{
    signal(SIGTERM, SIG_IGN); /* leaves time to print what a call returned */
    need(dt_init());
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (argc < 2 || strcmp(argv[1], checks[i].name) != 0)
            continue;
        checks[i].run(argc > 2 ? argv[2] : "");
        need(dt_finalize());
        return 0;
    }
    fprintf(stderr, "usage: probe CHECK [ARGUMENT]\n");
    return 2;
}
