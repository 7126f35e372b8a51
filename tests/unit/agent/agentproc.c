#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/agent/agentproc.h"

static const char marker[] = "DTRUN-AGENT 1\n";

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const char *agent_program(const char *name)
{
    static const char below[] = "/tests/unit/";
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    char *build = path, *next;

    assert_true(n > 0);
    path[n] = '\0';
    for (next = path; (next = strstr(next, below)); next++)
        build = next;
    assert_true(build > path);
    snprintf(build, sizeof path - (size_t)(build - path), "/%s", name);
    if (access(path, X_OK) < 0)
        fail_msg("%s: %s; make helpers builds it", path, strerror(errno));
    return path;
}

static void credit(struct agent *a, const struct dt_msg_output *m)
{
    struct dt_msg_credit c = { m->rank, m->fd, (uint32_t)m->data.n };

    if (!a->mute_credit)
        agent_send(a, DT_MSG_CREDIT, &c);
}

void agent_go(struct agent *a, const struct dt_msg_ready *ready)
{
    struct dt_msg_go m = { .generation = ready->generation,
                           .master_addr = (char *)"127.0.0.1",
                           .addr = (char *)"127.0.0.1",
                           .iface = (char *)"",
                           .tf_cluster = (char *)"",
                           .rendezvous_port = ready->rendezvous_port };

    agent_send(a, DT_MSG_GO, &m);
}

static int on_message(void *arg, uint8_t type, const uint8_t *payload, size_t len)
{
    struct agent *a = arg;
    struct arrived **at = &a->first;
    union dt_msg m;

    if (dt_msg_decode(type, payload, len, &m) < 0)
        fail_msg("the agent sent a malformed %s", dt_msg_name(type));
    if (type == DT_MSG_OUTPUT) {
        dt_put_bytes(&a->out[2 * m.output.rank + m.output.fd - 1], m.output.data.p,
                     m.output.data.n);
        credit(a, &m.output);
    } else if (type == DT_MSG_OUTPUT_EOF) {
        a->eof[2 * m.output_eof.rank + m.output_eof.fd - 1] = true;
    } else if (type == DT_MSG_READY && !a->hold) {
        agent_go(a, &m.ready);
    } else if (type == DT_MSG_STDIN_CREDIT) {
        a->stdin_credit += m.stdin_credit.bytes;
    } else {
        while (*at)
            at = &(*at)->next;
        *at = calloc(1, sizeof **at + len);
        (*at)->type = type;
        (*at)->len = len;
        if (len)
            memcpy((*at)->payload, payload, len);
    }
    dt_msg_free(type, &m);
    return 0;
}

/* Reads once. */
static void take(struct agent *a, int timeout_ms)
{
    struct pollfd p = { .fd = a->fd, .events = POLLIN };
    static uint8_t buffer[65536];
    const uint8_t *at = buffer;
    const char *why = "";
    ssize_t n;

    if (a->at_end || poll(&p, 1, timeout_ms) <= 0)
        return;
    if (!a->marker_seen) {
        n = recv(a->fd, buffer, sizeof marker - 1, MSG_WAITALL);
        if (n > 0)
            assert_memory_equal(buffer, marker, sizeof marker - 1);
        a->marker_seen = n > 0;
        a->at_end = n <= 0;
        return;
    }
    n = read(a->fd, buffer, sizeof buffer);
    if (n <= 0)
        a->at_end = true;
    else if (dt_unframe_feed(&a->unframe, at, (size_t)n, on_message, a, &why) != 0)
        fail_msg("the agent sent nonsense: %s", why);
}

void agent_send(struct agent *a, uint8_t type, const void *msg)
{
    struct dt_put out = { 0 };
    size_t done = 0;

    dt_msg_frame(&out, type, msg);
    assert_false(out.failed);
    while (done < out.len) {
        ssize_t n = send(a->fd, out.data + done, out.len - done, MSG_NOSIGNAL);

        if (n < 0)
            break; /* the agent has ended; a caller that expects an answer will notice */
        done += (size_t)n;
    }
    dt_put_free(&out);
}

bool agent_has(const struct agent *a, uint8_t type)
{
    for (const struct arrived *m = a->first; m; m = m->next) {
        if (m->type == type)
            return true;
    }
    return false;
}

static void forget(struct agent *a)
{
    if (a->msg_type)
        dt_msg_free(a->msg_type, &a->msg);
    a->msg_type = 0;
}

void agent_expect(struct agent *a, uint8_t type)
{
    int64_t end = now_ms() + AGENT_PATIENCE_MS;
    struct arrived **at = &a->first;
    struct arrived *found;

    while (!agent_has(a, type) && !agent_has(a, DT_MSG_SPAWN_FAILED) && !a->at_end &&
           now_ms() < end)
        take(a, (int)(end - now_ms()));
    if (!agent_has(a, type))
        fail_msg("no %s came: %s", dt_msg_name(type),
                 agent_has(a, DT_MSG_SPAWN_FAILED) ? "a rank could not be started"
                 : a->at_end                       ? "the agent ended"
                                                   : "timeout");
    while ((*at)->type != type)
        at = &(*at)->next;
    found = *at;
    *at = found->next;
    forget(a);
    assert_int_equal(dt_msg_decode(type, found->payload, found->len, &a->msg), 0);
    a->msg_type = type;
    free(found);
}

void agent_listen(struct agent *a, int ms)
{
    int64_t end = now_ms() + ms;

    while (!a->at_end && now_ms() < end)
        take(a, (int)(end - now_ms()));
}

void agent_open(struct agent *a)
{
    uint64_t id; /* no pid: another PID namespace may use it, too */
    const char *path;
    int ends[2];

    memset(a, 0, sizeof *a);
    assert_int_equal(getrandom(&id, sizeof id, 0), sizeof id);
    snprintf(a->token, sizeof a->token, "AGENT_TEST=%" PRIx64, id);
    path = agent_program("cmd/dtrun-agent");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    a->fd = ends[0];
    a->keeper = fork();
    assert_true(a->keeper >= 0);
    if (a->keeper == 0) {
        dup2(ends[1], STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        execl(path, "dtrun-agent", (char *)NULL);
        perror(path);
        _exit(127);
    }
    close(ends[1]);
    agent_expect(a, DT_MSG_HELLO);
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    char line[512] = "";
    const char *after;
    int parent = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "r");
    if (f && fgets(line, sizeof line, f) && (after = strrchr(line, ')')))
        sscanf(after + 1, " %*c %d", &parent);
    if (f)
        fclose(f);
    return parent;
}

pid_t agent_worker(const struct agent *a)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    pid_t found = 0;

    while ((entry = readdir(proc))) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;

        if (pid && parent_of(pid) == a->keeper)
            found = pid;
    }
    closedir(proc);
    assert_true(found > 0);
    return found;
}

void agent_start_argv(struct agent *a, uint32_t n, const char *const *argv,
                      void (*tweak)(struct dt_msg_start *start))
{
    const char *job = strchr(a->token, '=') + 1; /* agents of other tests do not sweep it */
    struct dt_msg_start m = {
        .generation = ++a->generation,
        .job_id = (char *)(uintptr_t)job,
        .np = n,
        .nodes = 1,
        .max_restarts = -1,
        .heartbeat_ms = AGENT_LEASE_MS,
        .slots = n,
        .stdin_rank = -1,
        .ranks = { calloc(n, sizeof(uint32_t)), n },
        .host = (char *)"testhost",
        .wdir = (char *)"/",
        .master_port = 1,
        .checkpoint_dir = (char *)"",
        .file_dir = (char *)"",
    };

    for (uint32_t i = 0; i < n; i++)
        m.ranks.v[i] = i;
    while (*argv)
        dt_strs_add(&m.argv, *argv++);
    dt_strs_add(&m.env, a->token);
    if (tweak)
        tweak(&m);
    agent_send(a, DT_MSG_START, &m);
    free(m.ranks.v);
    dt_strs_free(&m.argv);
    dt_strs_free(&m.env);
    dt_strs_free(&m.inject);
}

void agent_start(struct agent *a, uint32_t n, const char *script,
                 void (*tweak)(struct dt_msg_start *start))
{
    const char *const argv[] = { "/bin/sh", "-c", script, NULL };

    agent_start_argv(a, n, argv, tweak);
}

const char *agent_output(struct agent *a, uint32_t rank, int stream)
{
    struct dt_put *out = &a->out[2 * rank + (uint32_t)stream - 1];

    dt_put_u8(out, 0);
    out->len--;
    return (const char *)out->data;
}

int agent_await(struct agent *a)
{
    int64_t end = now_ms() + AGENT_PATIENCE_MS;
    int status = 0;

    while (!a->at_end && now_ms() < end)
        take(a, (int)(end - now_ms()));
    while (waitpid(a->keeper, &status, WNOHANG) == 0) {
        if (now_ms() > end)
            fail_msg("the agent does not end");
        poll(NULL, 0, 5);
    }
    a->keeper = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int agent_end(struct agent *a)
{
    struct dt_msg_end m = { 0 };

    agent_send(a, DT_MSG_END, &m);
    return agent_await(a);
}

/* Whether the token is one of the strings in the environment of a process. */
static bool has_token(const char *pid, const char *token)
{
    static char text[256 * 1024];
    char path[64];
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    f = fopen(path, "r");
    if (!f)
        return false;
    n = fread(text, 1, sizeof text, f);
    fclose(f);
    return memmem(text, n, token, strlen(token) + 1) != NULL;
}

int agent_processes(const struct agent *a)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    int n = 0;

    while ((entry = readdir(proc))) {
        if (isdigit((unsigned char)entry->d_name[0]))
            n += has_token(entry->d_name, a->token);
    }
    closedir(proc);
    return n;
}

bool agent_all_gone(const struct agent *a)
{
    int64_t end = now_ms() + AGENT_PATIENCE_MS;

    while (agent_processes(a)) {
        if (now_ms() > end)
            return false;
        poll(NULL, 0, 10);
    }
    return true;
}

void agent_free(struct agent *a)
{
    forget(a);
    while (a->first) {
        struct arrived *next = a->first->next;

        free(a->first);
        a->first = next;
    }
    for (int i = 0; i < AGENT_STREAMS; i++)
        dt_put_free(&a->out[i]);
    dt_unframe_free(&a->unframe);
    close(a->fd);
    if (a->keeper > 0) {
        kill(a->keeper, SIGKILL);
        waitpid(a->keeper, NULL, 0);
        a->keeper = 0;
    }
}

const char agent_family[] = "sh -c 'sleep 300 & setsid sleep 301 & wait' & "
                            "setsid sh -c 'sleep 302 & setsid sleep 303 & wait' & echo up; wait";

void agent_ping(struct agent *a, uint64_t time_ns)
{
    struct dt_msg_ping m = { .time_ns = time_ns };

    agent_send(a, DT_MSG_PING, &m);
    agent_expect(a, DT_MSG_PONG);
    assert_true(a->msg.pong.ping_time_ns == time_ns);
}

void agent_stop(struct agent *a, uint32_t grace_ms)
{
    struct dt_msg_stop m = { grace_ms };

    agent_send(a, DT_MSG_STOP, &m);
}

void agent_wait_for_state(uint32_t pid, char wanted)
{
    char path[64], line[512] = "", *after = NULL;

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    do {
        FILE *f = fopen(path, "r");

        assert_non_null(f);
        assert_non_null(fgets(line, sizeof line, f));
        fclose(f);
        after = strrchr(line, ')');
        assert_non_null(after);
    } while (after[2] != wanted);
}

void agent_wait_for_output(struct agent *a, uint32_t rank, const char *text)
{
    for (int ms = 0;
         ms < AGENT_PATIENCE_MS && !a->at_end && strcmp(agent_output(a, rank, 1), text) != 0;
         ms += 10)
        agent_listen(a, 10);
    assert_string_equal(agent_output(a, rank, 1), text);
}

int agent_setup(void **state)
{
    static struct agent a;

    agent_open(&a);
    *state = &a;
    return 0;
}

int agent_teardown(void **state)
{
    struct agent *a = *state;
    bool gone;

    agent_free(a);
    gone = agent_all_gone(a);
    if (!gone)
        print_error("%d processes of the test are left\n", agent_processes(a));
    return gone ? 0 : -1;
}

char agent_scratch[64];

int agent_make_scratch(void **state)
{
    (void)state;
    snprintf(agent_scratch, sizeof agent_scratch, "/tmp/agent-test.XXXXXX");
    return mkdtemp(agent_scratch) && setenv("HOME", agent_scratch, 1) == 0 ? 0 : -1;
}

int agent_remove_scratch(void **state)
{
    static const char *const left[] = { "file", ".cache/dtrun", ".cache" };
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        snprintf(path, sizeof path, "%s/%s", agent_scratch, left[i]);
        remove(path);
    }
    return rmdir(agent_scratch); /* fails if a test left something in it */
}
