#include "launcher/hosts/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/base/mem.h"
#include "launcher/base/number.h"
#include "launcher/hosts/hostarg.h"
#include "launcher/hosts/hostfile.h"
#include "launcher/hosts/hostword.h"

#define BLANKS " \t\r\v\f\n"

/* A scheduler, or another launcher that was set up by one. */
struct scheduler {
    const char *variable;
    const char *name;
    int (*hosts)(struct dt_hostlist *list, const struct scheduler *s, const char *value,
                 const struct dt_scheduler_view *view, struct dt_error *err);
    /* for hosts_in_file; NULL: the file is a hostfile */
    int (*add_line)(struct dt_hostlist *list, char *line, struct dt_error *err);
};

/* Schedulers write plain names, without user, slots, ranges or addresses in brackets. */
static int add_slots(struct dt_hostlist *list, const char *name, int slots, struct dt_error *err)
{
    const struct dt_host more = { .slots = slots, .slots_given = true, .slots_granted = true };
    struct dt_hostword word;

    if (strpbrk(name, "@:[]"))
        return dt_error_usage(err, "%.200s cannot be a host's name", name);
    if (dt_hostword_parse(&word, name, err) < 0)
        return -1;
    dt_hostword_free(&word);
    return dt_hostlist_put(list, name, &more, err);
}

/* item is one of Slurm's counts, as in "4", or "4(x2)" for two hosts. */
static int parse_count(char *item, int *count, int *hosts, struct dt_error *err)
{
    char *times = strchr(item, '(');
    size_t n;

    *hosts = 1;
    if (times) {
        n = strlen(times);
        if (times[1] != 'x' || times[n - 1] != ')')
            return dt_error_usage(err, "%s: a count such as 4 or 4(x2) was expected", item);
        times[n - 1] = '\0';
        *times = '\0';
        if (dt_number_parse(times + 2, 1, DT_HOSTS_MAX, hosts, err) < 0)
            return -1;
    }
    return dt_number_parse(item, 1, DT_SLOTS_MAX, count, err);
}

/* Gives the hosts of list, in order, the numbers of slots in text, as in "4(x2),1". */
static int slurm_slots(struct dt_hostlist *list, const char *text, struct dt_error *err)
{
    char *copy = dt_xstrdup(text), *rest = copy, *item;
    size_t counted = 0;
    int rc = 0, slots, hosts;

    while (rc == 0 && (item = strsep(&rest, ","))) {
        rc = parse_count(item, &slots, &hosts, err);
        for (int i = 0; rc == 0 && i < hosts; i++, counted++) {
            if (counted >= list->n)
                continue;
            list->v[counted].slots = slots;
            list->v[counted].slots_given = true;
            list->v[counted].slots_granted = true;
        }
    }
    free(copy);
    if (rc == 0 && counted != list->n)
        return dt_error_usage(err,
                              "it has slots for %zu host%s, but SLURM_JOB_NODELIST names %zu "
                              "(--hostfile ignores both)",
                              counted, counted == 1 ? "" : "s", list->n);
    return rc;
}

static int slurm_names(struct dt_hostlist *list, const char *text, struct dt_error *err)
{
    if (strpbrk(text, "@:" BLANKS))
        return dt_error_usage(err, "a list such as node[01-16],gpu3 was expected");
    if (dt_hostarg_list(list, text, err) < 0)
        return -1;
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].slots != 1)
            return dt_error_usage(err, "%s is named twice", list->v[i].name);
    return 0;
}

/* "srun torchrun ..." starts one launcher on each node. Each dtrun would start the whole job. Task
 * 0 may: it is also the shell of "srun -n 8 --pty bash". */
static int check_task(const struct dt_scheduler_view *view, struct dt_error *err)
{
    const char *task = view->variable("SLURM_PROCID", view->arg);
    const char *tasks = view->variable("SLURM_STEP_NUM_TASKS", view->arg);

    if (!task || !tasks || strcmp(task, "0") == 0)
        return 0;
    return dt_error_usage(err,
                          "srun has started dtrun as task %.20s of %.20s, and each would start "
                          "the whole job: start dtrun once, without srun",
                          task, tasks);
}

static int slurm(struct dt_hostlist *list, const struct scheduler *s, const char *nodes,
                 const struct dt_scheduler_view *view, struct dt_error *err)
{
    const char *tasks = view->variable("SLURM_TASKS_PER_NODE", view->arg);

    if (check_task(view, err) < 0)
        return -1;
    if (slurm_names(list, nodes, err) < 0)
        return dt_error_prefix(err, "%s=%.200s: ", s->variable, nodes);
    if (tasks && slurm_slots(list, tasks, err) < 0)
        return dt_error_prefix(err, "SLURM_TASKS_PER_NODE=%.200s: ", tasks);
    return 0;
}

/* A line names one host, once for each slot. */
static int add_slot(struct dt_hostlist *list, char *line, struct dt_error *err)
{
    return add_slots(list, line, 1, err);
}

static int add_pair(struct dt_hostlist *list, const char *name, const char *count,
                    struct dt_error *err)
{
    int slots;

    if (!count)
        return dt_error_usage(err, "%.200s has no number of slots", name);
    if (dt_number_parse(count, 1, DT_SLOTS_MAX, &slots, err) < 0)
        return dt_error_prefix(err, "%.200s %.200s: ", name, count);
    return add_slots(list, name, slots, err);
}

/* After a host and its slots, the line names a queue and processors. */
static int add_grid_line(struct dt_hostlist *list, char *line, struct dt_error *err)
{
    char *rest = NULL, *name = strtok_r(line, BLANKS, &rest);

    return add_pair(list, name, strtok_r(NULL, BLANKS, &rest), err);
}

static int parse_lines(struct dt_hostlist *list, const struct scheduler *s, char *text,
                       struct dt_error *err)
{
    char *line;

    for (int number = 1; (line = strsep(&text, "\n")); number++) {
        line += strspn(line, BLANKS);
        for (size_t n = strlen(line); n > 0 && strchr(BLANKS, line[n - 1]); n--)
            line[n - 1] = '\0';
        if (*line && s->add_line(list, line, err) < 0)
            return dt_error_prefix(err, "line %d: ", number);
    }
    return list->n ? 0 : dt_error_usage(err, "the file names no host");
}

/* mpirun's and mpiexec's words also work in dtrun's own hostfiles. */
static int parse_file(struct dt_hostlist *list, const struct scheduler *s, struct dt_strbuf *text,
                      struct dt_error *err)
{
    if (!s->add_line)
        return dt_hostfile_parse(list, "hostfile", dt_strbuf_text(text), text->len, err);
    if (strlen(dt_strbuf_text(text)) != text->len)
        return dt_error_usage(err, "the file is not a text file");
    return parse_lines(list, s, text->data, err);
}

static int hosts_in_file(struct dt_hostlist *list, const struct scheduler *s, const char *path,
                         const struct dt_scheduler_view *view, struct dt_error *err)
{
    struct dt_strbuf text = { 0 };
    int rc = view->file(&text, path, view->arg, err);

    if (rc < 0)
        err->exit_code = DT_EXIT_USAGE;
    else
        rc = parse_file(list, s, &text, err);
    dt_strbuf_free(&text);
    return rc < 0 ? dt_error_prefix(err, "%s=%.200s: ", s->variable, path) : 0;
}

/* text alternates names and numbers of slots, as in "hostA 4 hostB 2". */
static int parse_pairs(struct dt_hostlist *list, char *text, struct dt_error *err)
{
    char *name, *rest = NULL;

    for (name = strtok_r(text, BLANKS, &rest); name; name = strtok_r(NULL, BLANKS, &rest)) {
        if (add_pair(list, name, strtok_r(NULL, BLANKS, &rest), err) < 0)
            return -1;
    }
    return list->n ? 0 : dt_error_usage(err, "it names no host");
}

static int lsf_pairs(struct dt_hostlist *list, const struct scheduler *s, const char *text,
                     const struct dt_scheduler_view *view, struct dt_error *err)
{
    char *copy = dt_xstrdup(text);
    int rc = parse_pairs(list, copy, err);

    (void)view;
    free(copy);
    return rc < 0 ? dt_error_prefix(err, "%s=%.200s: ", s->variable, text) : 0;
}

/* The first variable that is set and not empty decides which scheduler runs the job. The last four
 * are those of mpirun and mpiexec; the MPI operator of Kubernetes sets one of them. */
static const struct scheduler schedulers[] = {
    { "SLURM_JOB_NODELIST", "the Slurm allocation", slurm, NULL },
    { "PBS_NODEFILE", "the PBS allocation", hosts_in_file, add_slot },
    { "LSB_DJOB_HOSTFILE", "the LSF allocation", hosts_in_file, add_slot },
    { "LSB_MCPU_HOSTS", "the LSF allocation", lsf_pairs, NULL },
    { "PE_HOSTFILE", "the Grid Engine allocation", hosts_in_file, add_grid_line },
    { "OAR_NODEFILE", "the OAR allocation", hosts_in_file, add_slot },
    { "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_default_hostfile", hosts_in_file, NULL },
    { "PRTE_MCA_prte_default_hostfile", "PRTE_MCA_prte_default_hostfile", hosts_in_file, NULL },
    { "I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE", hosts_in_file, NULL },
    { "HYDRA_HOST_FILE", "HYDRA_HOST_FILE", hosts_in_file, NULL },
};

static bool is_set(const char *value)
{
    return value && *value;
}

static const struct scheduler *find_scheduler(const struct dt_scheduler_view *view)
{
    for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers; i++) {
        if (is_set(view->variable(schedulers[i].variable, view->arg)))
            return &schedulers[i];
    }
    return NULL;
}

const char *dt_scheduler_name(const struct dt_scheduler_view *view)
{
    const struct scheduler *s = find_scheduler(view);

    return s ? s->name : NULL;
}

bool dt_scheduler_is_slurm(const struct dt_scheduler_view *view)
{
    const struct scheduler *s = find_scheduler(view);

    return s && s->hosts == slurm;
}

int dt_scheduler_hosts(struct dt_hostlist *list, const struct dt_scheduler_view *view,
                       struct dt_error *err)
{
    const struct scheduler *s = find_scheduler(view);

    return s ? s->hosts(list, s, view->variable(s->variable, view->arg), view, err) : 0;
}
