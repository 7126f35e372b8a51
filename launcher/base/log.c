#include "launcher/base/log.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/base/strbuf.h"
#include "launcher/base/utf8.h"

static bool verbose;
static dt_log_sink_f sink_f;
static void *sink_arg;

void dt_log_set_verbose(bool on)
{
    verbose = on;
}

void dt_log_set_sink(dt_log_sink_f sink, void *arg)
{
    sink_f = sink;
    sink_arg = arg;
}

static bool is_control(unsigned char c)
{
    return (c < ' ' && c != '\t') || (c >= 0x7f && c < 0xa0);
}

void dt_log_tame(char *text)
{
    size_t n;

    for (; *text; text += n) {
        n = dt_utf8_sequence(text);
        if (n == 2 && *text == '\xc2' && is_control((unsigned char)text[1]))
            text[0] = text[1] = '?';
        else if (n <= 1 && is_control((unsigned char)*text))
            *text = '?';
        n += n == 0;
    }
}

/* Each line is one write, so that lines of several processes on one terminal never mix. */
static void say(bool foreign, const char *fmt, va_list ap)
{
    char *text = dt_xvasprintf(fmt, ap);
    struct dt_strbuf b = { 0 };
    ssize_t n;

    dt_log_tame(text);
    dt_strbuf_printf(&b, "dtrun: %s\n", text);
    if (sink_f) {
        sink_f(sink_arg, b.data, b.len, foreign);
    } else {
        n = write(STDERR_FILENO, b.data, b.len);
        (void)n;
    }
    dt_strbuf_free(&b);
    free(text);
}

void dt_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(false, fmt, ap);
    va_end(ap);
}

void dt_verbose(const char *fmt, ...)
{
    va_list ap;

    if (!verbose)
        return;
    va_start(ap, fmt);
    say(false, fmt, ap);
    va_end(ap);
}

void dt_say_foreign(bool detail, const char *fmt, ...)
{
    va_list ap;

    if (detail && !verbose)
        return;
    va_start(ap, fmt);
    say(true, fmt, ap);
    va_end(ap);
}
