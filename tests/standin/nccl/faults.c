#include "tests/standin/nccl/faults.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FAULTS = 16 };

static _Atomic int dti_calls[MAX_FAULTS]; /* for each entry of the list */

static bool matches(const char *entry, int index, const char *fault, int rank)
{
    char name[32] = "";
    int of = -1, number = 1;

    if (sscanf(entry, "%31[^:]:%d:%d", name, &of, &number) < 2 || of != rank ||
        strcmp(name, fault) != 0)
        return false;
    return atomic_fetch_add(&dti_calls[index], 1) + 1 == number || number == 0;
}

bool standin_is_asked_for(const char *fault, int rank)
{
    const char *setting = getenv("STANDIN_NCCL_FAULTS");
    char *list = setting ? strdup(setting) : NULL, *rest = list, *entry;
    bool found = false;

    for (int i = 0; i < MAX_FAULTS && (entry = strsep(&rest, ",")); i++)
        found |= matches(entry, i, fault, rank);
    free(list);
    return found;
}

void standin_tell_of_hang(void)
{
    const char *name = getenv("STANDIN_NCCL_HANGS");
    FILE *file = name ? fopen(name, "a") : NULL;

    if (!file)
        return;
    fputc('.', file);
    fclose(file);
}

void standin_hang_forever(void)
{
    standin_tell_of_hang();
    for (;;)
        pause();
}

int standin_rank(void)
{
    const char *rank = getenv("DTRUN_RANK");

    return rank ? atoi(rank) : -1;
}
