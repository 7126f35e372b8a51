/* Options of other launchers: the table in the source, the page dtrun-migrate(7), and what dtrun
 * does with each option agree. */
#include "cmd/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/slurp.h"
#include "tests/unit/cmd/optiontext.h"
#include "tests/unit/unit.h"

enum { PAGE_MAX = 1024 * 1024 };

/* Values that are tried until dtrun accepts one. */
static const char *const samples[] = { "3", "core", "node", "NAME" };
enum { SAMPLES = sizeof samples / sizeof *samples };

static const char *dashes_of(const char *name)
{
    return strlen(name) > 2 ? "--" : "-";
}

static bool is_ours(const char *name)
{
    struct dt_option_text o;

    for (size_t i = 0; dt_options_text(i, &o); i++)
        for (size_t k = 0; k < o.nnames; k++)
            if (strcmp(o.names[k], name) == 0)
                return true;
    return false;
}

/* Whether dtrun takes the name as another launcher does. */
static bool is_anothers(const char *name)
{
    return dt_foreign_find(name, strlen(name), NULL) != NULL;
}

/* Writes text with the sample in place of every mark. */
static void put(struct dt_strbuf *b, const char *text, char mark, const char *sample)
{
    for (; *text; text++) {
        if (*text == mark)
            dt_strbuf_puts(b, sample);
        else
            dt_strbuf_add(b, text, 1);
    }
}

/* Writes text, from a row of the table, with the sample as its value, or pair as its two values. */
static void put_value(struct dt_strbuf *b, const char *text, const char *sample, const char *bytes,
                      const char *pair)
{
    struct dt_strbuf first = { 0 }, second = { 0 };

    put(&first, text, '%', sample);
    put(&second, dt_strbuf_text(&first), '#', bytes);
    put(b, dt_strbuf_text(&second), '&', pair);
    dt_strbuf_free(&first);
    dt_strbuf_free(&second);
}

/* Writes the line in which a user of the other launcher gives the option. */
static void write_foreign(struct dt_strbuf *b, const struct dt_foreign *row, const char *name,
                          const char *sample)
{
    dt_strbuf_consume(b, b->len);
    dt_strbuf_printf(b, "%s%s", dashes_of(name), name);
    for (int i = 0; i < row->values; i++) {
        dt_strbuf_puts(b, " ");
        put(b, row->match ? row->match : "*", '*', sample);
    }
    if (row->values == DT_FOREIGN_OPTIONAL)
        dt_strbuf_printf(b, "=%s", row->match ? row->match : sample);
    dt_strbuf_puts(b, " x");
}

/* Writes the same with dtrun's own options. */
static void write_ours(struct dt_strbuf *b, const char *becomes, const char *sample)
{
    char *copy = dt_xstrdup(becomes), *rest = copy, *word;
    char *pair = dt_xasprintf("%s=%s", sample, sample);

    dt_strbuf_consume(b, b->len);
    while ((word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');

        if (value && strcmp(value, "=no") == 0)
            continue;
        if (value)
            *value++ = '\0';
        dt_strbuf_printf(b, "%s%s ", dashes_of(word), word);
        if (value)
            put_value(b, value, sample, "3145728", pair); /* 3 MiB, for the first sample */
        dt_strbuf_puts(b, value ? " " : "");
    }
    dt_strbuf_puts(b, "x");
    free(pair);
    free(copy);
}

struct outcome {
    int rc;
    char *does; /* as dtrun's options */
    char *note; /* or NULL */
    struct dt_error err;
};

static struct outcome try(const struct dt_strbuf *text)
{
    struct outcome got = { 0 };
    struct dt_strbuf b = { 0 };
    struct dt_options o;
    struct line l;

    split(&l, dt_strbuf_text(text));
    got.rc = parse(&o, l.argc, l.argv, &got.err);
    got.does = dt_xstrdup(describe(&b, &o));
    got.note = o.notes.n ? dt_xstrdup(o.notes.v[0]) : NULL;
    assert_true(o.notes.n <= 1);
    dt_options_free(&o);
    dt_strbuf_free(&b);
    free(l.copy);
    return got;
}

static void forget(struct outcome *got)
{
    free(got->does);
    free(got->note);
}

static void check_becomes(const struct dt_foreign *row, const char *line, const struct outcome *got,
                          const char *sample)
{
    struct dt_strbuf b = { 0 };
    struct outcome want;

    write_ours(&b, row->becomes, sample);
    want = try(&b);
    assert_int_equal(want.rc, 0);
    if (strcmp(got->does, want.does) != 0)
        fail_msg("%s: %s, but %s: %s", line, got->does, dt_strbuf_text(&b), want.does);
    assert_null(got->note);
    forget(&want);
    dt_strbuf_free(&b);
}

static void check_line(const struct dt_foreign *row, const char *line, const struct outcome *got,
                       const char *sample)
{
    if (row->kind == DT_FOREIGN_REFUSED) {
        if (got->rc == 0 || got->err.exit_code != 2 || !strstr(got->err.text, row->text))
            fail_msg("%s: rc %d, %s", line, got->rc, got->err.text);
        return;
    }
    if (got->rc < 0)
        fail_msg("%s: %s", line, got->err.text);
    if (row->kind == DT_FOREIGN_BECOMES)
        check_becomes(row, line, got, sample);
    if (row->kind == DT_FOREIGN_NEEDLESS || row->kind == DT_FOREIGN_IGNORED)
        assert_string_equal(got->does, "=x");
    if ((row->kind == DT_FOREIGN_IGNORED) != (got->note != NULL))
        fail_msg("%s: said %s", line, got->note ? got->note : "nothing");
    if (got->note)
        assert_non_null(strstr(got->note, row->text));
}

static void check_name(const struct dt_foreign *row, const char *name)
{
    struct dt_strbuf line = { 0 };
    struct outcome got;
    int i = 0;

    write_foreign(&line, row, name, samples[0]);
    got = try(&line);
    while (got.rc < 0 && row->kind != DT_FOREIGN_REFUSED && ++i < SAMPLES) {
        forget(&got);
        write_foreign(&line, row, name, samples[i]);
        got = try(&line);
    }
    check_line(row, dt_strbuf_text(&line), &got, samples[i < SAMPLES ? i : 0]);
    forget(&got);
    dt_strbuf_free(&line);
}

static char *with_underscores(const char *name)
{
    char *copy = dt_xstrdup(name);

    for (char *c = copy; *c; c++)
        if (*c == '-')
            *c = '_';
    return copy;
}

static void every_option_does_what_the_table_says(void **state)
{
    const struct dt_foreign *row;

    (void)state;
    for (size_t i = 0; (row = dt_foreign_row(i)); i++) {
        for (size_t k = 0; k < DT_FOREIGN_NAMES && row->names[k]; k++) {
            char *other = with_underscores(row->names[k]);

            if (row->kind == DT_FOREIGN_SAME && !is_ours(row->names[k]))
                fail_msg("dtrun has no %s", row->names[k]);
            if (row->kind == DT_FOREIGN_CLASHES && !is_ours(row->names[k]) &&
                !is_anothers(row->names[k]))
                fail_msg("nobody else has %s", row->names[k]);
            if (row->kind > DT_FOREIGN_CLASHES && !row->match && is_ours(row->names[k]))
                fail_msg("%s is dtrun's", row->names[k]);
            if (row->kind != DT_FOREIGN_CLASHES) {
                check_name(row, row->names[k]);
                check_name(row, other);
            }
            free(other);
        }
    }
}

/* dtrun's own options have values that need no row. Any other name needs a row for every value. */
static void every_value_has_a_row(void **state)
{
    const struct dt_foreign *row;

    (void)state;
    for (size_t i = 0; (row = dt_foreign_row(i)); i++) {
        for (size_t k = 0; k < DT_FOREIGN_NAMES && row->names[k]; k++) {
            const char *name = row->names[k];

            if (row->match && !is_ours(name) &&
                !dt_foreign_find(name, strlen(name), "nothing else"))
                fail_msg("%s has no row for other values than %s", name, row->match);
        }
    }
}

static void lists_and_pairs_of_values_are_split(void **state)
{
    static const struct {
        const char *line, *want;
    } cases[] = {
        { "--output tag,timestamp,dir=d x", "tag=1 stamp=1 outdir=d tee=1 =x" },
        { "--preload-files a,b x", "push=a push=b =x" },
        { "--display map,bind x", "map=1 bindings=1 =x" },
        { "--mca btl tcp,self -np 2 x", "np=2 env=x:OMPI_MCA_btl=tcp,self =x" },
        { "-mca btl ^openib x", "env=x:OMPI_MCA_btl=^openib =x" },
        { "--mca=btl tcp,self x", "env=x:OMPI_MCA_btl=tcp,self =x" },
        { "--gmca plm_rsh_args x y", "=y" },
        { "--blacklist-cooldown-range 60 300 x", "=x" },
        { "--no-oversubscribe --oversubscribe x", "=x" },
        { "--oversubscribe --nooversubscribe x", "noover=1 =x" },
        { "-npernode 2 -hostfile f -bynode -display-map -report-bindings x",
          "pernode=2 mapby=1 hostfile=f map=1 bindings=1 =x" },
        { "--nnodes=1 --nproc_per_node=gpu --standalone x", "pernode=-1 nnodes=1 =x" },
        { "-x A=1 -n 2 -N 1 -H a,b --host c x", "np=2 pernode=1 H=a,b H=c env=x:A=1 =x" },
        { "-p 2222 -i k x", "sshport=2222 sshid=k =x" },
        { "--fusion-threshold-mb 64 x", "env=x:HOROVOD_FUSION_THRESHOLD=67108864 =x" },
        { "--fusion-threshold-mb=0 x", "env=x:HOROVOD_FUSION_THRESHOLD=0 =x" },
        { "--network-interfaces eth0,eth1 x", "iface==eth0,eth1 =x" },
        { "-V", "version=1" },
        { "-f h -ppn 2 -genv A 1 -genvlist B,C -l x",
          "pernode=2 hostfile=h env=x:A=1 env=x:B env=x:C tag=1 =x" },
        { "-launcher ssh -genvall -n 2 x", "np=2 =x" },
        { "-r ssh --dynamo_backend=no -n 2 x", "np=2 =x" },
        { "-genv A=1 -genv B C=2 -n 2 x", "np=2 env=x:A=1 env=x:B=C=2 =x" },
        { "-rr -machine h -print-rank-map -bootstrap slurm x",
          "mapby=1 hostfile=h map=1 transport=4 =x" },
        { "--num_machines 2 --num_processes 8 --multi_gpu --mixed_precision bf16 x",
          "np=8 nnodes=2 env=x:ACCELERATE_MIXED_PRECISION=bf16 gpubind=1 =x" },
        { "--hostfile h --num_nodes 2 --num_gpus=4 --no_local_rank x --deepspeed",
          "pernode=4 nnodes=2 hostfile=h gpubind=1 =x =--deepspeed" },
        { "--tasks-per-node 2 -E A=1 -X 1 --smpiargs=-gpu x", "pernode=2 env=x:A=1 =x" },
        { "-cb", "build=1" },
        { "--bind-to core:overload-allowed x", "bind=1 =x" },
        { "--map-by ppr:2:node x", "pernode=2 =x" },
        { "--no-oversubscribe --map-by :OVERSUBSCRIBE x", "=x" },
        { "--map-by node:oversubscribe x", "mapby=1 =x" },
        { "--node-rank 0 -r 0 x", "=x" },
        { "--nnodes 1:1 x", "nnodes=1 =x" },
        { "--output-filename d:nocopy x", "outdir=d =x" },
        { "--nodes 2 --ntasks-per-node 4 --cpu-bind cores -l -u x",
          "pernode=4 nnodes=2 bind=1 tag=1 unbuffered=1 =x" },
        { "--export=ALL,A=1 -D / --wait 0 -K x", "env=x:A=1 wdir=/ =x" },
        { "-K1 --kill-on-bad-exit=1 --exclusive=user x", "=x" },
        { "--kill-on-bad-exit --exclusive x", "=x" },
        { "x --mca --rdzv-id", "=x =--mca =--rdzv-id" },
    };
    struct dt_strbuf line = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome got;

        dt_strbuf_consume(&line, line.len);
        dt_strbuf_puts(&line, cases[i].line);
        got = try(&line);
        if (got.rc < 0)
            fail_msg("%s: %s", cases[i].line, got.err.text);
        assert_string_equal(got.does, cases[i].want);
        forget(&got);
    }
    dt_strbuf_free(&line);
}

static void mistakes_are_named_as_they_were_written(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        { "--mca btl", "--mca: a value (VALUE) is missing" },
        { "--nproc_per_node x y", "--nproc_per_node x: a number, gpu, cpu or auto was expected" },
        { "--standalone=1 x", "--standalone takes no value" },
        { "--log-dir", "--log-dir: a value (VALUE) is missing" },
        { "--nnodes 1:2 x", "--nnodes 1:2: the number of hosts does not change" },
        { "--output tag,xml x", "--output xml: see --tag" },
        { "--map-by socket x", "--map-by socket: --map-by slot or node places ranks, and" },
        { "--map-by slot:PE=2 x", "--map-by slot:PE=2: --bind-to core gives each rank" },
        { "--map-by slot:pe=2 x", "--map-by slot:pe=2: --bind-to core gives each rank" },
        { "--map-by board x", "--map-by board: slot or node was expected" },
        { "--bind-to package:x y", "--bind-to package:x: none, core, socket" },
        { "--xterm 1 x", "--xterm 1: --output-dir DIR" },
        { "--fusion-threshold-mb 1e3 x", "--fusion-threshold-mb 1e3: a whole number from 0 to" },
        { "--fusion-threshold-mb big x", "--fusion-threshold-mb big: a number was expected" },
        { "-launcher fork x", "-launcher fork: --transport and --rsh" },
        { "--nodes 2-4 x", "--nodes 2-4: give one number" },
        { "-n 8 -c 4 x", "-c 4: for mpirun's -c N write -np N; for srun's" },
        { "--export NONE x", "--export NONE: --unset NAME removes" },
        { "--dependency 3 x", "--dependency is not an option; see" },
        { "--rdzv x", "--rdzv is not an option" },
        { "-genv A", "-genv: a value (VALUE) is missing" },
        { "--fsdp_offload_params true x", "--fsdp_offload_params true: accelerate gives it" },
        { "--zero3_init_flag true x", "--zero3_init_flag true: accelerate gives it" },
        { "--include a:0,1 x", "--include a:0,1: -H HOST,HOST uses only these hosts" },
        { "-e a@b:1 x", "-e a@b:1: for srun's -e FILE see --output-dir, for deepspeed's" },
        { "-n 4 -a 2 x", "-a 2: -np N is the number of all ranks" },
    };
    struct dt_strbuf line = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome got;

        dt_strbuf_consume(&line, line.len);
        dt_strbuf_puts(&line, cases[i].line);
        got = try(&line);
        assert_int_equal(got.rc, -1);
        if (strncmp(got.err.text, cases[i].says, strlen(cases[i].says)) != 0)
            fail_msg("%s: said: %s", cases[i].line, got.err.text);
        forget(&got);
    }
    dt_strbuf_free(&line);
}

/* "--output-dir VALUE --tee" */
static void write_becomes(struct dt_strbuf *b, const char *becomes)
{
    char *copy = dt_xstrdup(becomes), *rest = copy, *word;

    while ((word = strsep(&rest, " "))) {
        char *value = strchr(word, '=');
        bool undone = value && strcmp(value, "=no") == 0;

        if (value)
            *value++ = '\0';
        dt_strbuf_printf(b, "%s%s%s%s", word == copy ? "" : " ", undone ? "undoes " : "",
                         dashes_of(word), word);
        if (value && !undone) {
            dt_strbuf_puts(b, " ");
            put_value(b, value, "VALUE", "VALUE*1048576", "NAME=VALUE");
        }
    }
    free(copy);
}

static void write_text(struct dt_strbuf *b, const struct dt_foreign *row)
{
    static const char *const words[] = {
        [DT_FOREIGN_SAME] = "the same",     [DT_FOREIGN_CLASHES] = "differs",
        [DT_FOREIGN_BECOMES] = "",          [DT_FOREIGN_NEEDLESS] = "not needed",
        [DT_FOREIGN_IGNORED] = "no effect", [DT_FOREIGN_REFUSED] = "refused",
    };

    dt_strbuf_puts(b, words[row->kind]);
    if (row->kind == DT_FOREIGN_BECOMES)
        write_becomes(b, row->becomes);
    if (row->text)
        dt_strbuf_printf(
            b, "%s %s", row->kind == DT_FOREIGN_SAME || row->kind == DT_FOREIGN_BECOMES ? ";" : ":",
            row->text);
}

/* Writes the table as the page's source has it, but with each text on one line and without
 * backslashes. */
static void write_table(struct dt_strbuf *b, unsigned launcher)
{
    const struct dt_foreign *row;

    for (size_t i = 0; (row = dt_foreign_row(i)); i++) {
        for (size_t k = 0; k < DT_FOREIGN_NAMES && row->names[k]; k++) {
            const char *name = row->names[k];

            if (!(row->launchers & launcher))
                continue;
            dt_strbuf_printf(b, ".It %s%s", strlen(name) > 2 ? "Fl Fl " : "Fl ", name);
            if (row->match)
                dt_strbuf_printf(b, "%s Ar %s",
                                 row->values == DT_FOREIGN_OPTIONAL ? " Ns = Ns" : "", row->match);
            dt_strbuf_puts(b, "\n");
            if (k == 0 || row->kind == DT_FOREIGN_SAME)
                write_text(b, row);
            else
                dt_strbuf_printf(b, "as %s%s", dashes_of(row->names[0]), row->names[0]);
            dt_strbuf_puts(b, "\n");
        }
    }
}

static void read_table(struct dt_strbuf *b, const char *page, const char *heading)
{
    char *title = dt_xasprintf(".Sh %s\n", heading);
    const char *at = strstr(page, title), *end;
    bool after_text = false;

    free(title);
    assert_non_null(at);
    at = strstr(at, "-compact\n");
    assert_non_null(at);
    at = strchr(at, '\n') + 1;
    end = strstr(at, ".El\n");
    assert_non_null(end);
    for (; at < end; at = strchr(at, '\n') + 1) {
        bool item = strncmp(at, ".It ", 4) == 0;

        dt_strbuf_puts(b, item ? (b->len ? "\n" : "") : after_text ? " " : "\n");
        for (const char *c = at; *c != '\n'; c++)
            if (*c != '\\')
                dt_strbuf_add(b, c, 1);
        after_text = !item;
    }
    dt_strbuf_puts(b, "\n");
}

/* Fails with the first line in which two tables differ. */
static void fail_at_difference(const char *heading, const char *want, const char *got)
{
    size_t line = 0;

    for (size_t i = 0; want[i] && want[i] == got[i]; i++)
        if (want[i] == '\n')
            line = i + 1;
    fail_msg("dtrun-migrate(7), %s: \"%.*s\", but in cmd/foreign.c: \"%.*s\"", heading,
             (int)strcspn(got + line, "\n"), got + line, (int)strcspn(want + line, "\n"),
             want + line);
}

static void check_table(const char *page, const char *heading, unsigned launcher)
{
    struct dt_strbuf want = { 0 }, got = { 0 };

    write_table(&want, launcher);
    read_table(&got, page, heading);
    if (strcmp(dt_strbuf_text(&want), dt_strbuf_text(&got)) != 0)
        fail_at_difference(heading, dt_strbuf_text(&want), dt_strbuf_text(&got));
    dt_strbuf_free(&want);
    dt_strbuf_free(&got);
}

static void the_page_has_the_same_tables(void **state)
{
    static const char path[] = TEST_SOURCE "/man/dtrun-migrate.7";
    struct dt_strbuf page = { 0 };

    (void)state;
    assert_int_equal(dt_slurp(&page, path, PAGE_MAX, NULL), 0);
    check_table(dt_strbuf_text(&page), "HOROVODRUN", DT_HOROVODRUN);
    check_table(dt_strbuf_text(&page), "TORCHRUN", DT_TORCHRUN);
    check_table(dt_strbuf_text(&page), "MPIRUN", DT_MPIRUN);
    check_table(dt_strbuf_text(&page), "MPIEXEC", DT_MPIEXEC);
    check_table(dt_strbuf_text(&page), "SRUN", DT_SRUN);
    check_table(dt_strbuf_text(&page), "ACCELERATE", DT_ACCELERATE);
    check_table(dt_strbuf_text(&page), "DEEPSPEED", DT_DEEPSPEED);
    check_table(dt_strbuf_text(&page), "JSRUN", DT_JSRUN);
    dt_strbuf_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_does_what_the_table_says),
        cmocka_unit_test(every_value_has_a_row),
        cmocka_unit_test(lists_and_pairs_of_values_are_split),
        cmocka_unit_test(mistakes_are_named_as_they_were_written),
        cmocka_unit_test(the_page_has_the_same_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
