#include "launcher/check/json.h"

#include <stdlib.h>

#include "launcher/io/json.h"

/* A GPU that does not count errors is null. */
static void add_ecc(cJSON *to, const struct dt_strs *counts)
{
    cJSON *list = cJSON_AddArrayToObject(to, "gpu_ecc_errors");

    for (uint32_t i = 0; i < counts->n; i++)
        cJSON_AddItemToArray(list, *counts->v[i] ? cJSON_CreateNumber(strtod(counts->v[i], NULL))
                                                 : cJSON_CreateNull());
}

static void add_gpus(cJSON *to, const struct dt_check_host *h)
{
    if (!h->has_facts) {
        cJSON_AddNullToObject(to, "gpus");
        cJSON_AddNullToObject(to, "gpu_driver");
        cJSON_AddNullToObject(to, "gpu_ecc_errors");
        cJSON_AddNullToObject(to, "gpu_xids");
        cJSON_AddNullToObject(to, "gpu_links");
        cJSON_AddNullToObject(to, "nccl");
        return;
    }
    dt_json_add_texts(to, "gpus", &h->facts.gpu_models);
    dt_json_add_text(to, "gpu_driver", *h->facts.gpu_driver ? h->facts.gpu_driver : NULL);
    add_ecc(to, &h->facts.gpu_ecc);
    dt_json_add_texts(to, "gpu_xids", &h->facts.gpu_xids);
    dt_json_add_text(to, "gpu_links", *h->facts.gpu_links ? h->facts.gpu_links : NULL);
    dt_json_add_text(to, "nccl", *h->facts.nccl ? h->facts.nccl : NULL);
}

static void add_disk(cJSON *to, const struct dt_check_host *h)
{
    bool known = h->has_facts;

    dt_json_add_text(to, "disk_dir", known ? h->facts.disk_dir : NULL);
    dt_json_add_number(to, "disk_free", known, (double)h->facts.disk_free);
    if (known)
        cJSON_AddBoolToObject(to, "disk_writable", h->facts.disk_error == 0);
    else
        cJSON_AddNullToObject(to, "disk_writable");
}

static void add_network(cJSON *to, const struct dt_check_host *h)
{
    bool known = h->next != NULL;

    dt_json_add_text(to, "next", h->next);
    dt_json_add_number(to, "rtt_to_next", known, h->rtt_us / 1e6);
    dt_json_add_number(to, "bits_per_second_to_next", known, h->bandwidth);
}

static void add_remarks(cJSON *to, const struct dt_remarks *remarks, size_t host)
{
    cJSON *list = cJSON_AddArrayToObject(to, "remarks");

    for (size_t i = 0; i < remarks->n; i++)
        if (remarks->v[i].host == host)
            dt_json_append_text(list, remarks->v[i].text);
}

static cJSON *host_json(const struct dt_check_host *h)
{
    const struct dt_msg_facts *f = &h->facts;
    bool known = h->has_facts;
    cJSON *o = cJSON_CreateObject();

    dt_json_add_text(o, "host", h->name);
    dt_json_add_text(o, "problem", h->problem);
    dt_json_add_text(o, "transport", h->carrier);
    dt_json_add_number(o, "connect_seconds", h->greeted, h->connect_seconds);
    dt_json_add_text(o, "agent", h->agent_version);
    cJSON_AddBoolToObject(o, "agent_sent", h->agent_sent);
    dt_json_add_number(o, "cores", known, dt_check_cores(h));
    dt_json_add_number(o, "cpus", known, f->cpus);
    dt_json_add_number(o, "physical_cores", known && f->physical_cores, f->physical_cores);
    dt_json_add_number(o, "memory", known, dt_check_host_memory(h));
    dt_json_add_number(o, "memory_available", known, (double)f->memory_available);
    dt_json_add_number(o, "load", known, f->load / 100.0);
    dt_json_add_text(o, "kernel", f->kernel);
    dt_json_add_text(o, "machine", f->machine);
    add_gpus(o, h);
    dt_json_add_number(o, "clock_offset", known, (double)h->clock.offset_ns / 1e9);
    dt_json_add_number(o, "clock_error", known, (double)h->clock.error_ns / 1e9);
    add_disk(o, h);
    add_network(o, h);
    return o;
}

cJSON *dt_check_json(const struct dt_check_host *hosts, size_t n, const struct dt_remarks *remarks,
                     int np)
{
    cJSON *root = cJSON_CreateObject(), *list;
    bool ready = true;

    for (size_t i = 0; i < n; i++)
        ready &= !hosts[i].problem;
    dt_json_add_text(root, "version", PACKAGE_VERSION);
    cJSON_AddBoolToObject(root, "ready", ready);
    cJSON_AddNumberToObject(root, "np", np);
    list = cJSON_AddArrayToObject(root, "hosts");
    for (size_t i = 0; i < n; i++) {
        cJSON *o = host_json(&hosts[i]);

        add_remarks(o, remarks, i);
        cJSON_AddItemToArray(list, o);
    }
    return root;
}
