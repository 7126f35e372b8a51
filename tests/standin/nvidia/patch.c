/* Makes NVIDIA's own libnccl run on the stand-in for the driver. To be preloaded: when the program
 * or libdtrun opens a libnccl, the CUDA runtime in it is replaced, function by function.
 *
 * That runtime is part of the file and speaks to the driver through tables that are not documented.
 * But libnccl's symbol table names its functions, and so a jump to our function can be written over
 * the first bytes of each. If NCCL calls a function of which there is none of ours, the program
 * ends with its name. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/standin/nvidia/function.h"
#include "tests/standin/nvidia/runtime.h"
#include "tests/standin/standin.h"

enum { PAGE = 4096, JUMP = 14, MOV_EDI = 0xbf, MOV_BYTES = 5, NAP_US = 50 };

/* NCCL's settings, which replace the user's: kernels that kernel.c can run, GPUs that reach each
 * other's memory as over PCIe, and buffers that are soon made. */
static const char *const dti_settings[][2] = {
    { "NCCL_ALGO", "RING" },
    { "NCCL_PROTO", "SIMPLE" },
    { "NCCL_P2P_LEVEL", "SYS" },
    { "NCCL_P2P_LL_THRESHOLD", "-1" },
    { "NCCL_BUFFSIZE", "262144" },
    { "NCCL_LL_BUFFSIZE", "16384" },
    { "NCCL_LL128_BUFFSIZE", "16384" },
};

static struct {
    uintptr_t begin, end;
} dti_code; /* libnccl's */

static const char *dti_refused[512];
static int dti_refused_count;

struct image {
    const char *file;
    size_t bytes;
    uintptr_t base; /* where it has been loaded */
};

static void give_up(const char *why, const char *what)
{
    fprintf(stderr, "tests/standin/nvidia: %s%s\n", why, what);
    abort();
}

static void refuse(int index)
{
    give_up("NCCL calls a function that is not replaced: ", dti_refused[index]);
}

static void write_jump(unsigned char *at, void *to)
{
    static const unsigned char code[] = { 0xff, 0x25, 0, 0, 0, 0 }; /* jmp *0(%rip) */

    memcpy(at, code, sizeof code);
    memcpy(at + sizeof code, &to, sizeof to);
}

static void replace_function(unsigned char *at, const char *name)
{
    void *function = standin_runtime_function(name);
    int index = dti_refused_count;

    if (function) {
        write_jump(at, function);
        return;
    }
    if (index == (int)(sizeof dti_refused / sizeof dti_refused[0]))
        give_up("no room for ", name);
    dti_refused[dti_refused_count++] = strdup(name);
    at[0] = MOV_EDI;
    memcpy(at + 1, &index, sizeof index);
    write_jump(at + MOV_BYTES, (void *)refuse);
}

static const Elf64_Shdr *section_of(const struct image *image, const char *name)
{
    const Elf64_Ehdr *header = (const void *)image->file;
    const Elf64_Shdr *sections = (const void *)(image->file + header->e_shoff);
    const char *names = image->file + sections[header->e_shstrndx].sh_offset;

    for (int i = 0; i < header->e_shnum; i++)
        if (strcmp(names + sections[i].sh_name, name) == 0)
            return &sections[i];
    give_up("libnccl has no section ", name);
    return NULL;
}

static bool is_of_runtime(const Elf64_Sym *symbol, const char *name)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && strncmp(name, "cuda", 4) == 0 &&
           name[4] >= 'A' && name[4] <= 'Z' && symbol->st_size >= MOV_BYTES + JUMP;
}

static void replace_functions(const struct image *image)
{
    const Elf64_Shdr *table = section_of(image, ".symtab");
    const Elf64_Sym *symbols = (const void *)(image->file + table->sh_offset);
    const char *names = image->file + section_of(image, ".strtab")->sh_offset;

    for (size_t i = 0; i < table->sh_size / sizeof(symbols[0]); i++) {
        const char *name = names + symbols[i].st_name;
        unsigned char *at = (unsigned char *)image->base + symbols[i].st_value;

        if (is_of_runtime(&symbols[i], name))
            replace_function(at, name);
        else if (strcmp(name, "ncclDevFuncRowToId") == 0)
            standin_set_functions((const int *)(const void *)at);
    }
}

static void protect(int protection)
{
    uintptr_t begin = dti_code.begin / PAGE * PAGE;

    if (mprotect((void *)begin, dti_code.end - begin, protection))
        give_up("cannot change libnccl's code", "");
}

static void patch(void *library)
{
    const Elf64_Shdr *text;
    struct link_map *map;
    struct image image;
    struct stat status;
    int file;

    dlinfo(library, RTLD_DI_LINKMAP, &map);
    file = open(map->l_name, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status))
        give_up("cannot read ", map->l_name);
    image.base = map->l_addr;
    image.bytes = (size_t)status.st_size;
    image.file = mmap(NULL, image.bytes, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (image.file == MAP_FAILED)
        give_up("cannot map ", map->l_name);
    text = section_of(&image, ".text");
    dti_code.begin = image.base + text->sh_addr;
    dti_code.end = dti_code.begin + text->sh_size;
    protect(PROT_READ | PROT_WRITE | PROT_EXEC);
    replace_functions(&image);
    protect(PROT_READ | PROT_EXEC);
    munmap((void *)(uintptr_t)image.file, image.bytes);
    for (size_t i = 0; i < sizeof dti_settings / sizeof dti_settings[0]; i++)
        setenv(dti_settings[i][0], dti_settings[i][1], 1);
    if (getenv("STANDIN_HOST"))
        setenv("NCCL_HOSTID", getenv("STANDIN_HOST"), 1);
}

static void *open_library(const char *name, int flags)
{
    static void *(*open_really)(const char *, int);

    if (!open_really)
        *(void **)&open_really = dlsym(RTLD_NEXT, "dlopen");
    return open_really(name, flags);
}

STANDIN_API void *dlopen(const char *name, int flags)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static bool patched;
    bool is_nccl = name && strstr(name, "libnccl.so");
    Dl_info self;
    void *library;

    if (name && strcmp(name, "libnvidia-ml.so.1") == 0 && dladdr((void *)dlopen, &self))
        return open_library(self.dli_fname, RTLD_NOW);
    library = open_library(name, flags);
    pthread_mutex_lock(&mutex);
    if (library && is_nccl && !patched) {
        patched = true;
        patch(library);
    }
    pthread_mutex_unlock(&mutex);
    return library;
}

/* NCCL's proxies look for work and yield, without pause. On Linux 6.18 a few such threads can keep
 * all others from running for seconds, so here they nap. */
STANDIN_API int sched_yield(void)
{
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);

    if (caller >= dti_code.begin && caller < dti_code.end)
        return usleep(NAP_US);
    return (int)syscall(SYS_sched_yield);
}
