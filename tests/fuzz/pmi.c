/* What a rank writes to its PMI-1 socket: any bytes. */
#include "launcher/agent/mpi/pmi.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { RANKS = 2 };

static struct dt_pmi *dti_pmi;

static void on_reply(void *arg, uint32_t local_rank, const char *line, size_t n)
{
    (void)arg;
    REQUIRE(local_rank < RANKS);
    REQUIRE(n > 1 && n <= DT_PMI_LINE_MAX && line[n - 1] == '\n');
    REQUIRE(!memchr(line, '\n', n - 1) && !memchr(line, 0, n));
}

/* A server accepts what it sends. */
static void on_fence(void *arg, const char *data, size_t n)
{
    (void)arg;
    REQUIRE(dt_pmi_fenced(dti_pmi, data, n));
}

static void on_abort(void *arg, uint32_t local_rank, int exit_code)
{
    (void)arg;
    (void)exit_code;
    REQUIRE(local_rank < RANKS);
}

static void on_state(void *arg, uint32_t local_rank, bool inside)
{
    (void)arg;
    (void)inside;
    REQUIRE(local_rank < RANKS);
}

static void on_spawn_refused(void *arg, uint32_t local_rank)
{
    (void)arg;
    REQUIRE(local_rank < RANKS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct dt_pmi_ops ops = { on_reply, on_fence, on_abort, on_state,
                                           on_spawn_refused };
    static const struct dt_pmi_job job = { "job.1", "(vector,(0,1,2))", 2, RANKS };
    const uint8_t *end = data + n;
    const char *wrong = NULL;

    dti_pmi = dt_pmi_create(&job, &ops, NULL);
    /* The ranks write in turns, a line each. */
    for (uint32_t rank = 0; data < end && !wrong; rank = !rank) {
        const uint8_t *stop = memchr(data, '\n', (size_t)(end - data));

        stop = stop ? stop + 1 : end;
        wrong = dt_pmi_input(dti_pmi, rank, (const char *)data, (size_t)(stop - data));
        data = stop;
    }
    if (!wrong) {
        dt_pmi_fenced(dti_pmi, (const char *)(end - n), n);
    }
    dt_pmi_destroy(dti_pmi);
    return 0;
}
