/* flood LINES: writes numbered lines of 200 bytes as fast as it can.
 *
 * flood check RANKS LINES: reads what RANKS floods wrote through dtrun, labelled, from standard
 * input. Every line must be there, whole, and in its rank's order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 200, LETTERS = 26 };

static char letters[LETTERS + WIDTH]; /* the alphabet, again and again */

static void make_line(char line[WIDTH + 1], int rank, long number)
{
    int n = snprintf(line, WIDTH + 1, "rank %d line %ld ", rank, number);

    memcpy(line + n, letters + (n + rank + number) % LETTERS, (size_t)(WIDTH - 1 - n));
    line[WIDTH - 1] = '\n';
    line[WIDTH] = '\0';
}

static int flood(long lines)
{
    const char *rank = getenv("DTRUN_RANK");
    char line[WIDTH + 1];

    for (long i = 0; i < lines; i++) {
        make_line(line, rank ? atoi(rank) : 0, i);
        if (fputs(line, stdout) == EOF)
            return 1;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

static int check(int ranks, long lines)
{
    long *next = calloc((size_t)ranks, sizeof *next);
    char got[2 * WIDTH] = "", want[WIDTH + 1];
    long total = 0;
    int failed = 0;

    while (next && !failed && fgets(got, sizeof got, stdin)) {
        char *text = got;
        long rank = *got == '[' ? strtol(got + 1, &text, 10) : -1;

        if (strncmp(text, "] ", 2) != 0 || rank < 0 || rank >= ranks)
            break;
        make_line(want, (int)rank, next[rank]++);
        failed = strcmp(text + 2, want) != 0;
        total += !failed;
    }
    free(next);
    if (failed || total != ranks * lines)
        fprintf(stderr, "after %ld whole lines: %s\n", total, got);
    return failed || total != ranks * lines;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < (int)sizeof letters; i++)
        letters[i] = (char)('a' + i % LETTERS);
    if (argc == 4 && strcmp(argv[1], "check") == 0)
        return check(atoi(argv[2]), atol(argv[3]));
    return argc == 2 ? flood(atol(argv[1])) : 2;
}
