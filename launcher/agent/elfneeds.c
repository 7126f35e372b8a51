#include "launcher/agent/elfneeds.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SEGMENTS_MAX = 64, ENTRIES_MAX = 1024, LIBRARY_MAX = 128 };

struct elf {
    int fd;
    Elf64_Phdr segments[SEGMENTS_MAX];
    unsigned n;
};

/* A file that was cut, or lies about what it has where, ends here. */
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

/* Where in the file an address of the running program comes from; 0 for none. */
static uint64_t offset_of(const struct elf *e, uint64_t address)
{
    for (unsigned i = 0; i < e->n; i++) {
        const Elf64_Phdr *s = &e->segments[i];

        if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz)
            return address - s->p_vaddr + s->p_offset;
    }
    return 0;
}

/* The dynamic section's entries, of which there are *n; the last is DT_NULL's. */
static bool read_entries(const struct elf *e, Elf64_Dyn *entries, unsigned *n)
{
    for (unsigned i = 0; i < e->n; i++) {
        uint64_t at = e->segments[i].p_offset;

        if (e->segments[i].p_type != PT_DYNAMIC)
            continue;
        for (*n = 0; *n < ENTRIES_MAX; ++*n, at += sizeof *entries)
            if (!read_at(e, at, &entries[*n], sizeof *entries) || entries[*n].d_tag == DT_NULL)
                return true;
    }
    return false;
}

static bool is_needed(const struct elf *e, const char *prefix, char *name, size_t size)
{
    Elf64_Dyn entries[ENTRIES_MAX];
    uint64_t strings = 0;
    unsigned n = 0;

    if (!read_entries(e, entries, &n))
        return false;
    for (unsigned i = 0; i < n; i++)
        if (entries[i].d_tag == DT_STRTAB)
            strings = offset_of(e, entries[i].d_un.d_ptr);
    for (unsigned i = 0; i < n && strings; i++) {
        char text[LIBRARY_MAX + 1] = "";

        if (entries[i].d_tag != DT_NEEDED ||
            pread(e->fd, text, LIBRARY_MAX, (off_t)(strings + entries[i].d_un.d_val)) <= 0)
            continue;
        if (strncmp(text, prefix, strlen(prefix)) == 0) {
            snprintf(name, size, "%s", text);
            return true;
        }
    }
    return false;
}

bool dt_elf_needs(const char *path, const char *prefix, char *name, size_t size)
{
    struct elf e = { .fd = open(path, O_RDONLY | O_CLOEXEC) };
    bool needed = e.fd >= 0 && read_segments(&e) && is_needed(&e, prefix, name, size);

    if (e.fd >= 0)
        close(e.fd);
    return needed;
}
