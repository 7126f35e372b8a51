#include "runtime/world/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/reduceoptions.h"
#include "runtime/base/versioned_struct.h"
#include "runtime/kernels/reduce.h"
#include "runtime/wire/env.h"

enum { NCCL_INIT_MOST_S = 86400 };
enum { MINOR = 100 }; /* versions that differ by less are patches and do not change the interface */

static const struct dt_versioned_struct stamp = { .call = "dt_init_with",
                                                  .name = "config",
                                                  .init = "DT_CONFIG_INIT",
                                                  .first = offsetof(dt_config_t, program_order),
                                                  .known = sizeof(dt_config_t) };

/* NULL: unset or empty. */
static const char *env(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

dt_result_t dt_config_switch(const char *name, bool otherwise, bool *on)
{
    const char *text = env(name);

    *on = text ? strcmp(text, "1") == 0 : otherwise;
    if (!text || *on || strcmp(text, "0") == 0)
        return DT_OK;
    return dt_fail(DT_ERR_ARG, "dt_init: %s=%s is neither 0 nor 1", name, text);
}

/* Before 1.0 every minor version may change structures and constants. */
static dt_result_t check_version(int version)
{
    if (version / MINOR == DT_VERSION / MINOR)
        return DT_OK;
    return dt_fail(DT_ERR_VERSION,
                   "dt_init_with: the program was compiled with dtrun.h %d.%d.%d, this libdtrun is "
                   "%d.%d.%d: compile it again",
                   version / 10000, version / MINOR % 100, version % MINOR, DT_VERSION_MAJOR,
                   DT_VERSION_MINOR, DT_VERSION_PATCH);
}

static dt_result_t choose_kernels(const char *given)
{
    const char *forced = env(DT_ENV_ISA);
    const char *isa = forced ? forced : given;
    char choices[64];

    if (dt_reduce_use(isa))
        return DT_OK;
    return dt_fail(
        DT_ERR_ARG, "dt_init: %s=%s is not an instruction set of this processor, which has %s",
        forced ? DT_ENV_ISA : "config->isa", isa, dt_reduce_choices(choices, sizeof choices));
}

static dt_result_t choose_wire(dt_wire_t given)
{
    dt_wire_t wire = given == DT_WIRE_DEFAULT ? DT_WIRE_EXACT : given;

    if (env(DT_ENV_WIRE))
        return dt_reduceoptions_choose(env(DT_ENV_WIRE));
    return dt_reduceoptions_choose_wire(wire, "config->wire");
}

/* field: the program's, whose name is given, too. */
static dt_result_t choose_switch(const char *variable, const char *name, int field, bool *on)
{
    if (field < -1 || field > 1)
        return dt_fail(DT_ERR_ARG,
                       "dt_init_with: config->%s is %d, and must be 0, 1 or -1 (no preference)",
                       name, field);
    return dt_config_switch(variable, field == 1, on);
}

/* Leaves *v as it is if the variable is not set. */
static dt_result_t read_number(const char *name, const char *what, long least, long most,
                               uint32_t *v)
{
    const char *text = env(name);
    char *end = NULL;
    long n = text ? strtol(text, &end, 10) : 0;

    if (!text)
        return DT_OK;
    if (n < least || n > most || *end)
        return dt_fail(DT_ERR_ARG, "dt_init: %s=%s is not a number %sfrom %ld to %ld", name, text,
                       what, least, most);
    *v = (uint32_t)n;
    return DT_OK;
}

static dt_result_t choose_calls(int given, uint32_t *calls)
{
    *calls = given == -1 ? DT_RECORDER_CALLS : (uint32_t)given;
    if (env(DT_ENV_RECORDER_CALLS) || *calls <= DT_RECORDER_MOST)
        return read_number(DT_ENV_RECORDER_CALLS, "", 0, DT_RECORDER_MOST, calls);
    return dt_fail(DT_ERR_ARG,
                   "dt_init_with: config->recorder_calls is %d, and must be from 0 to %d, or -1 "
                   "(no preference)",
                   given, DT_RECORDER_MOST);
}

/* The user's variable wins over the program's field, and both over the directory of the output. */
static const char *place_of(const char *given)
{
    const char *place = env(DT_ENV_RECORDER) ? env(DT_ENV_RECORDER) : given;

    if (!place || !*place)
        place = env(DT_ENV_OUTPUT_DIR);
    return place ? place : "";
}

/* Made absolute now, because the program may change its directory. */
static dt_result_t choose_place(const char *given, char path[PATH_MAX], bool *off)
{
    const char *place = place_of(given);
    char here[PATH_MAX] = "";
    int n;

    *off = strcmp(place, "off") == 0;
    if (*off)
        return DT_OK;
    if (*place && *place != '/' && !getcwd(here, sizeof here))
        return dt_fail_errno(DT_ERR_IO, errno,
                             "dt_init: the working directory, in which %s should be", place);
    n = snprintf(path, PATH_MAX, "%s%s%s", here, *here ? "/" : "", place);
    return n < PATH_MAX
               ? DT_OK
               : dt_fail(DT_ERR_ARG, "dt_init: the recorder's path is too long: %s", place);
}

static dt_result_t choose_gpu_path(enum dt_gpu_path *path)
{
    const char *text = env(DT_ENV_DEVICE);

    *path = text ? dt_gpu_path_find(text) : DT_GPU_AUTO;
    if (*path < DT_GPU_PATHS)
        return DT_OK;
    return dt_fail(DT_ERR_ARG,
                   "dt_init: " DT_ENV_DEVICE "=%s is not one of auto, nccl, shared, staging", text);
}

dt_result_t dt_config_read(const dt_config_t *given, struct dt_settings *s)
{
    dt_config_t c = DT_CONFIG_INIT;
    dt_result_t r = given ? dt_versioned_struct_read(&stamp, given, &c) : DT_OK;

    *s = (struct dt_settings){ 0 };
    if (r == DT_OK)
        r = check_version(c.version);
    if (r == DT_OK)
        r = choose_kernels(c.isa);
    if (r == DT_OK)
        r = choose_wire(c.wire);
    if (r == DT_OK)
        r = choose_switch(DT_ENV_DETERMINISTIC, "deterministic", c.deterministic,
                          &s->deterministic);
    if (r == DT_OK)
        r = choose_switch(DT_ENV_PROGRAM_ORDER, "program_order", c.program_order,
                          &s->program_order);
    if (r == DT_OK)
        r = dt_config_switch(DT_ENV_CMA, true, &s->shows_memory);
    if (r == DT_OK)
        r = choose_gpu_path(&s->gpu_path);
    if (r == DT_OK)
        r = read_number(DT_ENV_NCCL_INIT_TIMEOUT, "of seconds ", 1, NCCL_INIT_MOST_S,
                        &s->nccl_init_s);
    if (r == DT_OK)
        r = dt_config_switch(DT_ENV_NCCL_SPLIT, true, &s->splits_nccl);
    if (r == DT_OK)
        r = choose_calls(c.recorder_calls, &s->recorder_calls);
    return r == DT_OK ? choose_place(c.recorder, s->recorder, &s->recorder_is_off) : r;
}
