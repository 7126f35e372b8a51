#include "launcher/io/tail.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"

/* PyTorch's ranks begin each line of an exception with "[rank3]: ". */
static const char *after_rank(const char *line)
{
    static const char prefix[] = "[rank";
    size_t digits;

    if (strncmp(line, prefix, strlen(prefix)) != 0)
        return line;
    digits = strspn(line + strlen(prefix), "0123456789");
    return strncmp(line + strlen(prefix) + digits, "]:", 2) == 0
               ? line + strlen(prefix) + digits + 2
               : line;
}

/* Open MPI begins lines with "[host:pid] ". */
static const char *after_process(const char *line)
{
    const char *end = *line == '[' ? strchr(line, ']') : NULL;
    const char *colon = end ? memchr(line, ':', (size_t)(end - line)) : NULL;

    if (!colon || end == colon + 1 || strspn(colon + 1, "0123456789") != (size_t)(end - colon - 1))
        return line;
    return end + 1;
}

static const char *reason_of(const char *line)
{
    const char *text = after_process(after_rank(line));

    return text + strspn(text, " \t");
}

static bool begins_with(const char *text, const char *what)
{
    return strncmp(text, what, strlen(what)) == 0;
}

/* The address of a frame is the last word of "12  /usr/bin/python3(main+0x2b) [0x6831eb]", as glibc
 * and LLVM write it, and of Open MPI's "[ 3] /lib/libc.so.6(+0x3c050) [0x7f46570078c2]". */
static bool ends_with_address(const char *text)
{
    const char *last = strrchr(text, '['), *number = text + (*text == '[');
    size_t digits;

    number += strspn(number, " ");
    digits = strspn(number, "0123456789");
    number += digits + (*text == '[' && number[digits] == ']');
    return digits && *number == ' ' && last && begins_with(last, "[0x");
}

/* The second line of a frame of gfortran: "at /home/user/heat.f90:25". */
static bool is_source_of_frame(const char *text)
{
    const char *colon = strrchr(text, ':');

    return begins_with(text, "at ") && colon && colon[1] &&
           colon[1 + strspn(colon + 1, "0123456789")] == '\0';
}

/* Frames of PyTorch's C++ ("frame #3: ..."), glog ("@     0x7f... f()"), and gfortran and
 * sanitizers ("#3  0x55ee8a4ac2e0 in f"), and those that end with an address. */
static bool is_stack_frame(const char *text)
{
    size_t digits;

    if (begins_with(text, "frame #"))
        return true;
    if (*text == '@')
        return begins_with(text + 1 + strspn(text + 1, " "), "0x");
    if (*text == '#') {
        digits = strspn(text + 1, "0123456789");
        text += 1 + digits;
        return digits && begins_with(text + strspn(text, " "), "0x");
    }
    return is_source_of_frame(text) || ends_with_address(text);
}

/* What Open MPI adds to each MPI_Abort and each error. */
static bool is_advice(const char *text)
{
    static const char *const lines[] = {
        "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.",
        "You may or may not see output from other processes, depending on",
        "exactly when Open MPI kills them.",
        "*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,",
        "***    and potentially your MPI job)",
        "*** End of error message ***",
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (begins_with(text, lines[i]))
            return true;
    }
    return false;
}

/* What PETSc says after each error: "[0]PETSC ERROR: #1 KSPSetType() at src/ksp/itcl.c:88". */
static bool is_detail_of_petsc(const char *line)
{
    static const char mark[] = "]PETSC ERROR: ";
    static const char *const details[] = {
        "#", "-", "See http", "Petsc Release", "PETSc Option", "Configure options"
    };
    const char *text = strstr(line, mark);

    for (size_t i = 0; text && i < sizeof details / sizeof *details; i++) {
        if (begins_with(text + strlen(mark), details[i]))
            return true;
    }
    return false;
}

/* As the lines of ^ and ~ below Python's source do not. Letters may have several bytes. */
static bool has_words(const char *text)
{
    for (; *text; text++) {
        if (isalnum((unsigned char)*text) || (unsigned char)*text >= 0x80)
            return true;
    }
    return false;
}

static void end_line(struct dt_tail *t)
{
    const char *text;

    if (t->open.len == 0)
        return;
    text = reason_of(t->open.data);
    if (!has_words(text) || is_stack_frame(text) || is_advice(text) ||
        is_detail_of_petsc(t->open.data)) {
        t->open.len = 0;
        return;
    }
    free(t->lines[t->next]);
    t->lines[t->next] = dt_xstrndup(t->open.data, t->open.len);
    t->next = (t->next + 1) % DT_TAIL_LINES;
    t->open.len = 0;
}

/* Control bytes would move the cursor in the middle of dtrun's own message. */
static bool is_printable(char c)
{
    return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f);
}

static void add(struct dt_tail *t, const char *text, size_t n)
{
    size_t room = DT_TAIL_WIDTH - t->open.len;

    dt_strbuf_add(&t->open, text, n < room ? n : room);
}

void dt_tail_feed(struct dt_tail *t, const char *data, size_t n)
{
    size_t from = 0; /* the text that has not been added yet */

    for (size_t i = 0; i < n; i++) {
        if (is_printable(data[i]))
            continue;
        add(t, data + from, i - from);
        from = i + 1;
        if (data[i] == '\n' || data[i] == '\r')
            end_line(t);
    }
    add(t, data + from, n - from);
}

const char *dt_tail_line(struct dt_tail *t, unsigned i)
{
    end_line(t);
    for (unsigned k = 0; k < DT_TAIL_LINES; k++) {
        const char *line = t->lines[(t->next + k) % DT_TAIL_LINES];

        if (line && i-- == 0)
            return line;
    }
    return NULL;
}

void dt_tail_reset(struct dt_tail *t)
{
    for (unsigned k = 0; k < DT_TAIL_LINES; k++)
        free(t->lines[k]);
    dt_strbuf_free(&t->open);
    *t = (struct dt_tail){ 0 };
}
