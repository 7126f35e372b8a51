#include "launcher/job/start.h"

struct dt_msg_start dt_start_of(const struct dt_job_config *config, size_t host,
                                const char *file_dir)
{
    const struct dt_host *h = &config->hosts->v[host];

    return (struct dt_msg_start){
        .max_restarts = config->max_restarts,
        .heartbeat_ms = (uint32_t)config->heartbeat_s * 1000,
        .slots = (uint32_t)h->slots,
        .gpus = h->gpus,
        .gpus_given = h->gpus_given,
        .stdin_rank = config->stdin_rank,
        .merge_stderr = config->merge_stderr,
        .unbuffered = config->unbuffered,
        .host = h->name,
        .wdir = (char *)(uintptr_t)config->wdir,
        .file_dir = (char *)(uintptr_t)(file_dir ? file_dir : ""),
        .argv = config->argv,
        .env = config->env,
        .unset = config->unset,
        .gpu_bind = (uint8_t)config->gpu_bind,
        .bind_to = (uint8_t)config->bind_to,
        .report_bindings = config->report_bindings,
        .virtual_local_rank = config->virtual_local_rank,
        .frameworks = (uint8_t)config->frameworks,
    };
}
