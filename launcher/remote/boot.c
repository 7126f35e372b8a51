#include "launcher/remote/boot.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "launcher/base/agentargs.h"
#include "launcher/base/mem.h"

static const struct {
    const char *text;
    enum dt_boot_line line;
} markers[] = {
    { "DTRUN-AGENT ", DT_BOOT_AGENT },
    { "DTRUN-CACHED ", DT_BOOT_CACHED },
    { "DTRUN-NEED ", DT_BOOT_NEED },
    { "DTRUN-FAIL ", DT_BOOT_FAIL },
};

/* Copies bytes [from, to) of the queue into line, without a carriage return at the end, and
 * replaces control characters other than tabs. Then drops the queue's first `taken` bytes. */
static void take_line(struct dt_bytequeue *in, struct dt_strbuf *line, size_t from, size_t to,
                      size_t taken)
{
    const char *text = dt_bytequeue_head(in);

    line->len = 0;
    for (size_t i = from; i < to; i++) {
        unsigned char c = (unsigned char)text[i];
        char shown = c == '\t' || (c >= ' ' && c != 0x7f) ? (char)c : '?';

        if (c != '\r' || i + 1 < to)
            dt_strbuf_add(line, &shown, 1);
    }
    dt_strbuf_add(line, "", 0);
    dt_bytequeue_consume(in, taken);
}

bool dt_boot_text_line(struct dt_bytequeue *in, struct dt_strbuf *line, bool all)
{
    const char *text = dt_bytequeue_head(in);
    const char *newline = memchr(text, '\n', in->len);
    size_t n = newline ? (size_t)(newline - text) : in->len;

    if (in->len == 0 || (!newline && !all))
        return false;
    take_line(in, line, 0, n, newline ? n + 1 : n);
    return true;
}

enum dt_boot_line dt_boot_next(struct dt_bytequeue *in, struct dt_strbuf *line)
{
    const char *text = dt_bytequeue_head(in);
    const char *newline = memchr(text, '\n', in->len);
    size_t n;

    if (!newline)
        return DT_BOOT_INCOMPLETE;
    n = (size_t)(newline - text);
    for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
        size_t len = strlen(markers[i].text);
        const char *at = memmem(text, n, markers[i].text, len);
        size_t before = at ? (size_t)(at - text) : 0;

        if (at && before) {
            take_line(in, line, 0, before, before);
            return DT_BOOT_NOISE;
        }
        if (at) {
            take_line(in, line, len, n, n + 1);
            return markers[i].line;
        }
    }
    take_line(in, line, 0, n, n + 1);
    return DT_BOOT_NOISE;
}

static int read_agent(struct dt_strbuf *content, const char *path, struct dt_error *err)
{
    static const char remedy[] = "reinstall dtrun, or set DTRUN_AGENT";
    char block[8 * 1024];
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && (n = read(fd, block, sizeof block)) > 0)
        dt_strbuf_add(content, block, (size_t)n);
    if (n < 0)
        dt_error_set(err, "agent start: %s: %s; %s", path, strerror(errno), remedy);
    if (fd >= 0)
        close(fd);
    return n < 0 ? -1 : 0;
}

/* The file is the same for all hosts of a job, so it is read once. */
static struct {
    char *path;
    struct dt_strbuf content;
    uint64_t hash;
} agent;

const struct dt_strbuf *dt_boot_agent(const char *path, struct dt_error *err)
{
    if (agent.path && strcmp(agent.path, path) == 0)
        return &agent.content;
    free(agent.path);
    agent.path = NULL;
    dt_strbuf_free(&agent.content);
    if (read_agent(&agent.content, path, err))
        return NULL;
    agent.path = dt_xstrdup(path);
    agent.hash = XXH3_64bits(agent.content.data, agent.content.len);
    return &agent.content;
}

/* Returns what uname -m prints on machines that run the ELF file, as a shell pattern, or NULL. */
static const char *machine_of(const struct dt_strbuf *elf)
{
    static const struct {
        uint16_t machine;
        const char *pattern;
    } machines[] = {
        { EM_X86_64, "x86_64" }, { EM_AARCH64, "aarch64" }, { EM_PPC64, "ppc64*" },
        { EM_S390, "s390x" },    { EM_RISCV, "riscv64" },   { EM_386, "i?86" },
        { EM_ARM, "arm*" },
    };
    uint16_t machine;

    if (elf->len < 20 || memcmp(elf->data, ELFMAG, SELFMAG) != 0)
        return NULL;
    memcpy(&machine, elf->data + offsetof(Elf64_Ehdr, e_machine), sizeof machine);
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (machines[i].machine == machine)
            return machines[i].pattern;
    return NULL;
}

/* Returns whether path may stand between double quotes inside the script. */
static bool is_plain(const char *path)
{
    return path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             " /._+-=,:@%~")] == '\0';
}

static const char *arguments(const struct dt_boot *boot)
{
    return boot->alone ? " " DT_AGENT_ALONE : "";
}

/* Every script begins with this. A command of --rsh may give it a terminal or no input at all. A
 * terminal for its output alone does no harm: srun --unbuffered makes one that changes no bytes. */
#define CHECK_STDIO                                                                                \
    "[ -t 0 ]&&{ echo \"DTRUN-FAIL its standard input is a terminal, which changes bytes; leave "  \
    "out the option that asks for one, such as -t\";exit 1;};"                                     \
    "[ -c /proc/self/fd/0 ]&&{ echo \"DTRUN-FAIL its standard input is a device such as "          \
    "/dev/null, so dtrun cannot speak to it; kubectl exec and docker exec need -i\";exit 1;};"

static void installed_command(struct dt_strbuf *command, const struct dt_boot *boot)
{
    dt_strbuf_puts(command, "exec /bin/sh -c '" CHECK_STDIO "f=;");
    if (is_plain(boot->agent_path))
        dt_strbuf_printf(command, "f=\"%s\";[ -x \"$f\" ]&&exec \"$f\"%s;", boot->agent_path,
                         arguments(boot));
    dt_strbuf_printf(command,
                     "g=$(command -v dtrun-agent)&&exec \"$g\"%s;"
                     "echo \"DTRUN-FAIL dtrun-agent was not found (looked for $f and in "
                     "PATH=$PATH); install dtrun there, or leave out --no-push\"'",
                     arguments(boot));
}

/* %1$s is the pattern of the machine, %2$s the name of the agent there, %3$zu its size, %4$s the
 * token, %5$s the agent's arguments. %6$s is 1 if a new agent must replace the one that is there.
 *
 * Its variables: m is the machine, n is %6$s, u the user's id, d a directory, f the agent's file in
 * it, t a temporary file, which q removes, and w says why directories were rejected. The patterns
 * for the mode of a directory are split because ??- is a trigraph.
 *
 * The script does not trust a directory that others may write to, nor one that another user than
 * root can rename (o tells): root may have the HOME of the user that it was before. It tests a
 * directory by running a small script in it, because that shows whether files there may be
 * executed, and by writing a file of the agent's size, because the agent can be received only once.
 * It finds an agent in the usual place with as few processes as possible, because every job begins
 * this way. It creates no home directory: root could create one where another file system is to be
 * mounted. */
static const char push_script[] =
    "exec /bin/sh -c '" CHECK_STDIO "{ read m </proc/sys/kernel/arch;} 2>/dev/null||m=$(uname -m);"
    "n=%6$s;d=$HOME/.cache/dtrun;f=$d/%2$s;"
    "if [ -z \"$n\" ]&&[ -x \"$f\" ]&&[ -O \"$d\" ]&&[ -O \"$d/..\" ]&&[ -O \"$HOME\" ];then "
    "set -- $(stat -c \"%%A %%s\" \"$d\" \"$f\" 2>/dev/null);"
    "case $m:$1:$4 in %1$s:drwx?-?"
    "?-?:%3$zu)echo \"DTRUN-CACHED $f\";exec \"$f\"%5$s;;esac;fi;"
    "u=$(id -u);t=;w=;"
    "case $m in %1$s);;*)"
    "echo \"DTRUN-FAIL this host is $m, but the dtrun-agent to be sent is for %1$s; "
    "install dtrun there and use --no-push\";exit 1;;esac;"
    "o(){ set -- $(ls -ldn \"$1/\" 2>/dev/null);case $3 in $u|0);;*)false;;esac;};"
    "q(){ [ -z \"$t\" ]||rm -f \"$t\";};trap q 0;trap \"exit 1\" 1 2 13 15;"
    "for d in \"$HOME/.cache/dtrun\" \"$XDG_RUNTIME_DIR/dtrun\" \"/tmp/dtrun-$u\";do "
    "case $d in /dtrun|/.cache/dtrun)continue;;esac;"
    "(umask 77;case $d in */.cache/dtrun)mkdir \"${d%%/*}\";;esac;mkdir \"$d\")2>/dev/null;"
    "set -- $(ls -ldn \"$d\" 2>/dev/null);"
    "case $1:$3 in drwx?-?"
    "?-?*:$u);;:)w=\"$w, $d cannot be created\";continue;;"
    "*)w=\"$w, $d is not yours alone\";continue;;esac;"
    "case $d in /tmp/dtrun-$u);;*/.cache/dtrun)o \"$d/..\"&&o \"$HOME\";;*)o \"$d/..\";;esac||{ "
    "w=\"$w, another user can rename $d\";continue;};"
    "f=$d/%2$s;"
    "[ -z \"$n\" ]&&[ -x \"$f\" ]&&[ $(wc -c <\"$f\") -eq %3$zu ]&&"
    "echo \"DTRUN-CACHED $f\"&&exec \"$f\"%5$s;"
    "t=$d/.%4$s.$$;"
    "(echo :>\"$t\")2>/dev/null&&chmod 700 \"$t\"||{ q;w=\"$w, $d cannot be written "
    "to\";continue;};"
    "(\"$t\")2>/dev/null||{ q;w=\"$w, $d is mounted noexec\";continue;};"
    "head -c %3$zu </dev/zero >\"$t\" 2>/dev/null;"
    "[ $(wc -c <\"$t\") -eq %3$zu ]||{ q;w=\"$w, $d has no room\";continue;};"
    "echo \"DTRUN-NEED $m\";"
    "head -c %3$zu >\"$t\";"
    "[ -s \"$t\" ]||{ echo \"DTRUN-FAIL nothing arrived at its standard input, which has ended; "
    "does "
    "the command pass it on?\";exit 1;};"
    "[ $(wc -c <\"$t\") -eq %3$zu ]&&mv -f \"$t\" \"$f\"&&{ "
    "find \"$d\"/dtrun-agent-* -prune -type f -atime +30 -exec rm -f {} + 2>/dev/null;"
    "exec \"$f\"%5$s;};"
    "echo \"DTRUN-FAIL dtrun-agent could not be stored as $f; is there room?\";exit 1;"
    "done;"
    "echo \"DTRUN-FAIL there is no place for dtrun-agent: ${w#, }; make one of them usable, let "
    "XDG_RUNTIME_DIR name another there, or install dtrun there and use --no-push\"'";

int dt_boot_command(struct dt_strbuf *command, const struct dt_boot *boot, struct dt_error *err)
{
    const struct dt_strbuf *content;
    const char *machine;
    char name[64];

    if (!boot->push) {
        installed_command(command, boot);
        return 0;
    }
    content = dt_boot_agent(boot->agent_path, err);
    if (!content)
        return -1;
    machine = machine_of(content);
    snprintf(name, sizeof name, "dtrun-agent-%.*s-%016" PRIx64,
             machine ? (int)strcspn(machine, "*?") : 0, machine ? machine : "", agent.hash);
    dt_strbuf_printf(command, push_script, machine ? machine : "*", name, content->len, boot->token,
                     arguments(boot), boot->afresh ? "1" : "");
    return 0;
}
