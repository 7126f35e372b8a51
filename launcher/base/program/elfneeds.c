#include "launcher/base/program/elfneeds.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { SEGMENTS_MAX = 64, ENTRIES_MAX = 1024, LIBRARY_MAX = 128, FOLDERS_MAX = 1024 };

struct elf {
    int fd;
    Elf64_Phdr segments[SEGMENTS_MAX];
    unsigned n;
};

/* Fails for a file that was truncated or whose offsets lie outside of it. */
static bool read_at(const struct elf *e, uint64_t offset, void *to, size_t n)
{
    return offset <= INT64_MAX && pread(e->fd, to, n, (off_t)offset) == (ssize_t)n;
}

static bool read_segments(struct elf *e)
{
    Elf64_Ehdr head;

    if (!read_at(e, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
        head.e_phentsize != sizeof *e->segments || head.e_phnum > SEGMENTS_MAX)
        return false;
    e->n = head.e_phnum;
    return read_at(e, head.e_phoff, e->segments, e->n * sizeof *e->segments);
}

/* Translates an address of the running program to an offset in the file; 0 if there is none. */
static uint64_t offset_of(const struct elf *e, uint64_t address)
{
    for (unsigned i = 0; i < e->n; i++) {
        const Elf64_Phdr *s = &e->segments[i];

        if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz)
            return address - s->p_vaddr + s->p_offset;
    }
    return 0;
}

/* Finds the next entry with this tag in the dynamic section, from the *i-th on. */
static bool find_entry(const struct elf *e, int64_t tag, unsigned *i, Elf64_Dyn *entry)
{
    const Elf64_Phdr *s = e->segments;

    while (s < e->segments + e->n && s->p_type != PT_DYNAMIC)
        s++;
    for (; s < e->segments + e->n && *i < ENTRIES_MAX; ++*i) {
        if (!read_at(e, s->p_offset + *i * sizeof *entry, entry, sizeof *entry) ||
            entry->d_tag == DT_NULL)
            return false;
        if (entry->d_tag == tag)
            return true;
    }
    return false;
}

static uint64_t find_strings(const struct elf *e)
{
    Elf64_Dyn entry;
    unsigned i = 0;

    return find_entry(e, DT_STRTAB, &i, &entry) ? offset_of(e, entry.d_un.d_ptr) : 0;
}

static bool read_string(const struct elf *e, uint64_t offset, char *text, size_t size)
{
    memset(text, 0, size);
    return offset <= INT64_MAX && pread(e->fd, text, size - 1, (off_t)offset) > 0;
}

/* DT_RUNPATH replaces the older DT_RPATH. */
static void read_folders(const struct elf *e, uint64_t strings, char *folders, size_t size)
{
    static const int64_t tags[] = { DT_RUNPATH, DT_RPATH };

    *folders = '\0';
    for (size_t t = 0; t < sizeof tags / sizeof *tags && !*folders; t++) {
        Elf64_Dyn entry;
        unsigned i = 0;

        if (find_entry(e, tags[t], &i, &entry))
            read_string(e, strings + entry.d_un.d_val, folders, size);
    }
}

static bool visit_needed(const struct elf *e, dt_elf_visit *visit, void *arg)
{
    char folders[FOLDERS_MAX], name[LIBRARY_MAX];
    uint64_t strings = find_strings(e);
    Elf64_Dyn entry;

    if (!strings)
        return false;
    read_folders(e, strings, folders, sizeof folders);
    for (unsigned i = 0; find_entry(e, DT_NEEDED, &i, &entry); i++) {
        if (read_string(e, strings + entry.d_un.d_val, name, sizeof name) &&
            visit(arg, name, folders))
            return true;
    }
    return false;
}

bool dt_elf_needed(const char *path, dt_elf_visit *visit, void *arg)
{
    struct elf e = { .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) };
    bool found = e.fd >= 0 && read_segments(&e) && visit_needed(&e, visit, arg);

    if (e.fd >= 0)
        close(e.fd);
    return found;
}
