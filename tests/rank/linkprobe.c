/* Tries how dtrun reaches hosts, without dtrun:
 *
 *     linkprobe [OPTION...] HOST              starts an agent, prints the outcome, ends the agent
 *     linkprobe [OPTION...] HOST COMMAND      runs a command in the login shell, prints its output
 *     linkprobe --echo MB [...] HOST COMMAND  waits for a line, sends MB megabytes and expects the
 *                                             same bytes back
 *
 * Options: --transport auto|libssh2|ssh|local, --agent FILE, --no-push, --accept-new, --user U,
 * --port P, --identity FILE. It prints lines: ready VERSION HOSTNAME ADDR, noise: TEXT, echoed
 * BYTES, closed: WHY. Exit code: 0 if WHY is empty. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/remote/link.h"

enum { BLOCK = 64 * 1024, AHEAD = 256 * 1024 };

static struct probe {
    const struct dt_transport_ops *ops;
    struct dt_transport *transport;
    struct dt_link *link;
    size_t echo; /* bytes to send; 0: no echo */
    size_t sent;
    size_t received;
    char why[1024];
} probe;

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 2654435761u >> 24);
}

static void send_more(void)
{
    static unsigned char block[BLOCK];

    while (probe.sent < probe.echo && probe.ops->pending(probe.transport) < AHEAD) {
        size_t n = probe.echo - probe.sent < BLOCK ? probe.echo - probe.sent : BLOCK;

        for (size_t i = 0; i < n; i++)
            block[i] = pattern(probe.sent + i);
        probe.sent += n;
        probe.ops->write(probe.transport, block, n);
    }
}

static void on_data(void *arg, const void *data, size_t n)
{
    const unsigned char *p = data;

    (void)arg;
    if (!probe.echo) {
        fwrite(data, 1, n, stdout);
        return;
    }
    if (!probe.sent) {
        send_more();
        p++;
        n--;
    }
    for (size_t i = 0; i < n; i++)
        if (p[i] != pattern(probe.received + i)) {
            printf("byte %zu came back changed\n", probe.received + i);
            exit(1);
        }
    probe.received += n;
    if (probe.received == probe.echo) {
        printf("echoed %zu\n", probe.received);
        probe.ops->close(probe.transport);
    }
}

static void on_noise(void *arg, const void *data, size_t n)
{
    (void)arg;
    printf("noise: %.*s", (int)n, (const char *)data);
}

static void on_drained(void *arg)
{
    (void)arg;
    send_more();
}

static void on_closed(void *arg, const struct dt_error *why)
{
    (void)arg;
    strcpy(probe.why, why->text);
}

static void on_link_ready(void *arg, const struct dt_msg_hello *hello)
{
    (void)arg;
    printf("ready %s %s %s\n", hello->version, hello->hostname, hello->addr);
    dt_link_send(probe.link, DT_MSG_END, &(struct dt_msg_end){ 0 });
}

static void on_link_message(void *arg, uint8_t type, union dt_msg *msg)
{
    (void)arg;
    (void)msg;
    printf("message: %s\n", dt_msg_name(type));
}

static void on_link_noise(void *arg, const char *line)
{
    (void)arg;
    printf("noise: %s\n", line);
}

static void on_link_drained(void *arg)
{
    (void)arg;
}

static const struct dt_transport_ops *transport_named(const char *name)
{
    static const struct dt_transport_ops *const all[] = {
        &dti_transport_auto, &dti_transport_libssh2, &dti_transport_ssh, &dti_transport_local
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    fprintf(stderr, "linkprobe: unknown transport %s\n", name);
    exit(2);
}

static const struct option options[] = {
    { "transport", required_argument, NULL, 't' },
    { "agent", required_argument, NULL, 'a' },
    { "user", required_argument, NULL, 'u' },
    { "port", required_argument, NULL, 'p' },
    { "identity", required_argument, NULL, 'i' },
    { "echo", required_argument, NULL, 'e' },
    { "no-push", no_argument, NULL, 'n' },
    { "accept-new", no_argument, NULL, 'c' },
    { NULL, 0, NULL, 0 },
};

static void parse(int argc, char **argv, struct dt_host *host, struct dt_link_config *config)
{
    int c;

    while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
        switch (c) {
        case 't':
            probe.ops = transport_named(optarg);
            break;
        case 'a':
            config->remote.agent_path = optarg;
            break;
        case 'u':
            host->user = optarg;
            break;
        case 'p':
            host->port = atoi(optarg);
            break;
        case 'i':
            host->identity = optarg;
            break;
        case 'e':
            probe.echo = (size_t)atoi(optarg) * 1000 * 1000;
            break;
        case 'n':
            config->push = false;
            break;
        case 'c':
            config->remote.accept_new = true;
            break;
        default:
            exit(2);
        }
    if (optind >= argc) {
        fputs("linkprobe: no host was given\n", stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static const struct dt_link_events link_events = { on_link_ready, on_link_message,
                                                       on_link_noise, on_link_drained, on_closed };
    static const struct dt_transport_events events = { on_data, on_noise, on_drained, on_closed };
    struct dt_host host = { 0 };
    struct dt_link_config config = { .push = true,
                                     .remote = { .host = &host, .agent_path = "dtrun-agent" } };
    uv_loop_t *loop = uv_default_loop();

    setvbuf(stdout, NULL, _IOLBF, 0);
    probe.ops = &dti_transport_auto;
    parse(argc, argv, &host, &config);
    host.name = argv[optind];
    config.transport = probe.ops;
    if (optind + 1 < argc) {
        config.remote.command = config.remote.agent_path = argv[optind + 1];
        probe.transport = probe.ops->open(loop, &config.remote, &events, NULL);
    } else {
        probe.link = dt_link_open(loop, &config, &link_events, NULL);
    }
    uv_run(loop, UV_RUN_DEFAULT);
    printf("closed: %s\n", probe.why);
    return probe.why[0] != '\0' || uv_loop_close(loop) != 0;
}
