/* usage: stacks PROCESS
 *
 * Prints where each thread of a process waits: in the kernel, and in the program as FILE+OFFSET for
 * addr2line. Only reads /proc, so the process goes on undisturbed. It takes every word of a stack
 * that points to code for a return address, so some lines are left over from earlier calls. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TEXT = 4096,
    WORDS = 2048, /* of a stack that are read */
    LINES = 80,   /* at most, for a thread */
    LOOKS = 200,  /* for a moment at which the thread is in the kernel */
};

struct map {
    uint64_t start, end, offset;
    char file[512];
};

static struct map *maps; /* those with code */
static size_t n_maps;

/* Reads a file of the thread. Parts that end with a null byte are separated by spaces. Returns an
 * empty text on an error. */
static void read_text(char text[TEXT], const char *process, const char *thread, const char *name)
{
    char path[TEXT];
    ssize_t n = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/%s/task/%s/%s", process, thread, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, text, TEXT - 1);
        close(fd);
    }
    for (ssize_t i = 0; i < n - 1; i++)
        text[i] = text[i] ? text[i] : ' ';
    text[n > 0 ? n : 0] = '\0';
}

static void read_maps(const char *process)
{
    char path[TEXT], line[TEXT], access[8];
    struct map map;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%s/maps", process);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        map.file[0] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &map.start,
                   &map.end, access, &map.offset, map.file) < 4 ||
            !strchr(access, 'x'))
            continue;
        maps = realloc(maps, (n_maps + 1) * sizeof *maps);
        if (!maps)
            exit(1);
        maps[n_maps++] = map;
    }
    if (f)
        fclose(f);
}

static bool print_place(uint64_t address)
{
    for (size_t i = 0; i < n_maps; i++) {
        const char *slash = strrchr(maps[i].file, '/');

        if (address < maps[i].start || address >= maps[i].end)
            continue;
        printf("    %s+0x%" PRIx64 "\n", slash ? slash + 1 : maps[i].file,
               address - maps[i].start + maps[i].offset);
        return true;
    }
    return false;
}

static void print_stack(const char *process, uint64_t pointer)
{
    static uint64_t words[WORDS];
    char path[TEXT];
    ssize_t n = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/%s/mem", process);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    for (size_t bytes = sizeof words; fd >= 0 && n <= 0 && bytes >= 4096; bytes /= 2)
        n = pread(fd, words, bytes, (off_t)pointer);
    for (ssize_t i = 0, lines = 0; i < n / (ssize_t)sizeof *words && lines < LINES; i++)
        lines += print_place(words[i]);
    if (fd >= 0)
        close(fd);
}

/* The kernel tells the stack pointer and the place in the program of a thread that is in a system
 * call: they are the last two words of this file. */
static bool find_stack(const char *process, const char *thread, uint64_t *pointer, uint64_t *place)
{
    char text[TEXT];

    for (int i = 0; i < LOOKS; i++) {
        const char *last, *before;

        read_text(text, process, thread, "syscall");
        last = strrchr(text, ' ');
        before = last ? memrchr(text, ' ', (size_t)(last - text)) : NULL;
        if (before) {
            *pointer = strtoull(before, NULL, 0);
            *place = strtoull(last, NULL, 0);
            return true;
        }
        nanosleep(&(struct timespec){ .tv_nsec = 500 * 1000 }, NULL);
    }
    return false;
}

static void print_thread(const char *process, const char *thread)
{
    uint64_t pointer, place;
    char text[TEXT];

    read_text(text, process, thread, "comm");
    printf("  thread %s, %.*s", thread, (int)strcspn(text, "\n"), text);
    read_text(text, process, thread, "wchan");
    printf(", waits in %s\n", *text && strcmp(text, "0") != 0 ? text : "no function");
    read_text(text, process, thread, "stack");
    fputs(text, stdout);
    if (!find_stack(process, thread, &pointer, &place))
        return;
    print_place(place);
    print_stack(process, pointer);
}

int main(int argc, char **argv)
{
    char path[TEXT], command[TEXT];
    struct dirent *entry;
    DIR *threads;

    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "/proc/%s/task", argv[1]);
    threads = opendir(path);
    if (!threads)
        return 1;
    read_maps(argv[1]);
    read_text(command, argv[1], argv[1], "cmdline");
    printf("process %s: %s\n", argv[1], command);
    while ((entry = readdir(threads))) {
        if (entry->d_name[0] != '.')
            print_thread(argv[1], entry->d_name);
    }
    closedir(threads);
    return 0;
}
