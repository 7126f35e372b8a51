#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/wire/frame.h"
#include "runtime/wire/msg.h"
#include "tests/unit/unit.h"

/* The bytes of a message as words: bN hN wN qN are integers of 1, 2, 4 and 8 bytes, 'text' is a
 * string with its length, k the secret 1 2 3 ... 32, and "text" bytes without a length. */
static void put_word(struct dt_put *out, const char *word)
{
    long long n = strtoll(word + 1, NULL, 0);
    char *text = strdup(word + 1);

    text[strcspn(text, "'\"")] = '\0';
    if (*word == 'b')
        dt_put_u8(out, (uint8_t)n);
    else if (*word == 'h')
        dt_put_u16(out, (uint16_t)n);
    else if (*word == 'w')
        dt_put_u32(out, (uint32_t)n);
    else if (*word == 'q')
        dt_put_u64(out, (uint64_t)n);
    else if (*word == '\'')
        dt_put_str(out, text);
    else if (*word == '"')
        dt_put_bytes(out, text, strlen(text));
    else if (*word == 'k')
        for (int i = 1; i <= DT_SECRET_BYTES; i++)
            dt_put_u8(out, (uint8_t)i);
    else
        fail_msg("bad word %s", word);
    free(text);
}

static struct dt_put bytes_of(const char *words)
{
    struct dt_put out = { 0 };
    char *copy = strdup(words), *rest = copy, *word;

    while ((word = strsep(&rest, " ")))
        if (*word)
            put_word(&out, word);
    free(copy);
    return out;
}

#define SECRET                                                                                     \
    {                                                                                              \
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, \
            26, 27, 28, 29, 30, 31, 32                                                             \
    }
#define STRS(...)                                                                                  \
    {                                                                                              \
        .v = (char *[]){ __VA_ARGS__, NULL },                                                      \
        .n = sizeof(char *[]){ __VA_ARGS__ } / sizeof(char *)                                      \
    }
#define ITEMS(type, ...)                                                                           \
    {                                                                                              \
        .v = (type[]){ __VA_ARGS__ }, .n = sizeof(type[]){ __VA_ARGS__ } / sizeof(type)            \
    }
#define BLOB(text)                                                                                 \
    {                                                                                              \
        .p = (const uint8_t *)(text), .n = sizeof(text) - 1                                        \
    }

static const struct dt_msg_start start = {
    .generation = 2,
    .job_id = "train-1",
    .secret = SECRET,
    .np = 6,
    .nodes = 3,
    .node_rank = 1,
    .restart_count = 4,
    .max_restarts = -1,
    .heartbeat_ms = 10000,
    .slots = 8,
    .gpus = STRS("0", "GPU-1"),
    .gpus_given = 1,
    .stdin_rank = -1,
    .merge_stderr = 1,
    .unbuffered = 2,
    .ranks = { (uint32_t[]){ 3, 7, 0x12345678 }, 3 },
    .host = "host2",
    .wdir = "/w",
    .auxiliaries = { (uint32_t[]){ 8, 0x12345678 }, 2 },
    .servers = 5,
    .master_port = 40000,
    .scheduler_port = 40001,
    .checkpoint_dir = "/c",
    .check_checkpoint_dir = 3,
    .fresh = 5,
    .resume = 6,
    .file_dir = "/f",
    .argv = STRS("./train", "", "-x"),
    .env = STRS("A=1"),
    .unset = STRS("B", "C"),
    .inject = STRS("kill:rank=1"),
    .gpu_bind = 2,
    .bind_to = 7,
    .report_bindings = 1,
    .virtual_local_rank = 1,
    .frameworks = 3,
    .universe = 16,
    .mpi_map = { (uint32_t[]){ 0, 3, 2 }, 3 },
    .hosts = STRS("host1", "host2"),
};

static const struct dt_msg_go go = {
    .generation = 2,
    .master_addr = "10.0.0.1",
    .addr = "10.0.0.2",
    .iface = "eth0",
    .tf_cluster = "{}",
    .rendezvous_port = 40002,
    .local_sizes = { (uint32_t[]){ 3, 0x12345678 }, 2 },
    .mpi_env = STRS("P=1"),
};

static const struct dt_msg_hello hello = {
    .protocol = 1,
    .version = "0.1.0",
    .identity = "boot",
    .hostname = "h",
    .addr = "10.0.0.2",
    .peer_addr = "10.0.0.1",
    .free_port = 4000,
    .cores = 64,
    .memory = 0x123456789a,
    .time_ns = 0x1122334455667788,
    .pid = 77,
    .gpus = STRS("0", "1"),
    .probe_port = 40001,
    .addrs = ITEMS(struct dt_msg_netaddr, { "eth0", "10.0.0.2", 1500 }),
    .in_step = 1,
};

static const struct dt_msg_facts facts = {
    .wall_ahead_ns = -5,
    .kernel = "6.1",
    .machine = "x86_64",
    .cpus = 128,
    .physical_cores = 64,
    .cpu_limit = 1650,
    .load = 31,
    .memory_limit = 0x200000000,
    .memory_available = 0x123456789a,
    .gpu_models = STRS("H100", "A100"),
    .gpu_driver = "580.1",
    .gpu_ecc = STRS("0", ""),
    .gpu_xids = STRS("Xid79"),
    .gpu_links = "NV18",
    .gpu_silent = 1,
    .nccl = "2.28.9",
    .disk_dir = "/data",
    .disk_free = 0x1122334455667788,
    .disk_error = 30,
};

/* Every message, with a different value in each field, and the bytes that PROTOCOL.md promises. */
static const struct message {
    uint8_t type;
    const char *name;
    const void *msg;
    const char *bytes;
} messages[] = {
    { DT_MSG_START, "start", &start,
      "w2 'train-1' k w6 w3 w1 w4 w-1 w10000 w8 w2 '0' 'GPU-1' b1 w-1 b1 b2 w3 w3 w7 w0x12345678 "
      "w2 w8 w0x12345678 w5 'host2' '/w' "
      "h40000 h40001 '/c' b3 b5 b6 '/f' w3 './train' '' '-x' w1 'A=1' w2 'B' 'C' w1 'kill:rank=1' "
      "b2 b7 b1 b1 b3 w16 w3 w0 w3 w2 w2 'host1' 'host2'" },
    { DT_MSG_GO, "go", &go,
      "w2 '10.0.0.1' '10.0.0.2' 'eth0' '{}' h40002 w2 w3 w0x12345678 w1 'P=1'" },
    { DT_MSG_PROBE, "probe",
      &(struct dt_msg_probe){ 2, SECRET, 3, 1, 4096,
                              ITEMS(struct dt_msg_target, { 4, 40001, STRS("10.0.0.5", "::5") },
                                    { 0, 9, STRS("10.0.0.1") }) },
      "w2 k w3 b1 w4096 w2 w4 h40001 w2 '10.0.0.5' '::5' w0 h9 w1 '10.0.0.1'" },
    { DT_MSG_TABLE, "table",
      &(struct dt_msg_table){ 3, ITEMS(struct dt_msg_addr, { "10.0.0.1", 7, 0 }, { "::1", 0, 9 }),
                              STRS("hostA", "b") },
      "w3 w2 '10.0.0.1' h7 w0 '::1' h0 w9 w2 'hostA' 'b'" },
    { DT_MSG_SIGNAL, "signal", &(struct dt_msg_signal){ -10 }, "w-10" },
    { DT_MSG_STOP, "stop", &(struct dt_msg_stop){ 5000 }, "w5000" },
    { DT_MSG_ABORT, "abort", &(struct dt_msg_abort){ 1, 7, 2, -4, "why", 0x10009 },
      "w1 q7 w2 w-4 'why' w65545" },
    { DT_MSG_PING, "ping",
      &(struct dt_msg_ping){ 0x1122334455667788, ITEMS(struct dt_msg_asked, { 7 }) },
      "q0x1122334455667788 w1 q7" },
    { DT_MSG_QUERY, "query", &(struct dt_msg_query){ 6 }, "w6" },
    { DT_MSG_CREDIT, "credit", &(struct dt_msg_credit){ 1, 2, 3 }, "w1 b2 w3" },
    { DT_MSG_END, "end", &(struct dt_msg_end){ 0 }, "b0" },
    { DT_MSG_FILE, "file",
      &(struct dt_msg_file){ 1, "train", 0755, 1ull << 33, 0x99, "t", 1, "j-1" },
      "w1 'train' w0755 q0x200000000 q0x99 't' b1 'j-1'" },
    { DT_MSG_STDIN, "stdin", &(struct dt_msg_stdin){ 1, BLOB("abc") }, "w1 \"abc\"" },
    { DT_MSG_STDIN_EOF, "stdin_eof", &(struct dt_msg_stdin_eof){ 8 }, "w8" },
    { DT_MSG_FILE_DATA, "file_data", &(struct dt_msg_file_data){ 2, BLOB("xy") }, "w2 \"xy\"" },
    { DT_MSG_HELLO, "hello", &hello,
      "w1 '0.1.0' 'boot' 'h' '10.0.0.2' '10.0.0.1' h4000 w64 q0x123456789a q0x1122334455667788 w77 "
      "w2 '0' '1' h40001 w1 'eth0' '10.0.0.2' w1500 b1" },
    { DT_MSG_READY, "ready", &(struct dt_msg_ready){ 2, 40001 }, "w2 h40001" },
    { DT_MSG_REACH, "reach",
      &(struct dt_msg_reach){ 2, 1,
                              ITEMS(struct dt_msg_reached, { 4, 1, 2, -110, 87, 91000, 183000 }) },
      "w2 b1 w1 w4 w1 b2 w-110 w87 q91000 q183000" },
    { DT_MSG_STARTED, "started",
      &(struct dt_msg_started){
          4, ITEMS(struct dt_msg_started_rank, { 1, 100, "3" }, { 2, 101, "" }) },
      "w4 w2 w1 w100 '3' w2 w101 ''" },
    { DT_MSG_SPAWN_FAILED, "spawn_failed", &(struct dt_msg_spawn_failed){ 1, 2, 3, 4, "./x" },
      "w1 w2 b3 w4 './x'" },
    { DT_MSG_RANK_HELLO, "rank_hello", &(struct dt_msg_rank_hello){ 1, 2, 3 }, "w1 w2 h3" },
    { DT_MSG_EXIT, "exit", &(struct dt_msg_exit){ 1, 2, 3, -1, 9, 5, -6, 7 },
      "w1 w2 w3 w-1 w9 q5 q-6 w7" },
    { DT_MSG_MPI_STATE, "mpi_state", &(struct dt_msg_mpi_state){ 1, 2, 1 }, "w1 w2 b1" },
    { DT_MSG_FAILED, "failed", &(struct dt_msg_failed){ 1, 7, 2, -3, "why" },
      "w1 q7 w2 w-3 'why'" },
    { DT_MSG_PONG, "pong",
      &(struct dt_msg_pong){
          1, 2, 3, 250, 6, ITEMS(struct dt_msg_step, { 3, -1, 1 }, { 4, 1ll << 40, 0 }),
          ITEMS(struct dt_msg_comm, { 7,
                                      { (uint32_t[]){ 3, 5 }, 2 },
                                      ITEMS(struct dt_msg_called, { 1, 2, 0x784, 5, 9, 60 }) }) },
      "q1 q2 w3 w250 w6 w2 w3 q-1 b1 w4 q0x10000000000 b0 "
      "w1 q7 w2 w3 w5 w1 w1 b2 q0x784 q5 w9 w60" },
    { DT_MSG_LIMIT, "limit", &(struct dt_msg_limit){ 1, 250 }, "w1 w250" },
    { DT_MSG_LAST_CALLS, "last_calls",
      &(struct dt_msg_last_calls){
          1, 2, 7, -3, "/d", "no",
          ITEMS(struct dt_msg_last_call, { 8, 9, "barrier", "ok", "shm" }) },
      "w1 w2 q7 w-3 '/d' 'no' w1 q8 q9 'barrier' 'ok' 'shm'" },
    { DT_MSG_COMMIT, "commit", &(struct dt_msg_commit){ 1, -1, 2 }, "w1 q-1 b2" },
    { DT_MSG_TRIGGERED, "triggered", &(struct dt_msg_triggered){ "kill:rank=1" }, "'kill:rank=1'" },
    { DT_MSG_ANSWER, "answer", &(struct dt_msg_answer){ 6, { (uint32_t[]){ 2, 9 }, 2 } },
      "w6 w2 w2 w9" },
    { DT_MSG_LOG, "log", &(struct dt_msg_log){ "text", 1 }, "'text' b1" },
    { DT_MSG_STDIN_CREDIT, "stdin_credit", &(struct dt_msg_stdin_credit){ 4, 6 }, "w4 w6" },
    { DT_MSG_CHECK, "check", &(struct dt_msg_check){ "/c" }, "'/c'" },
    { DT_MSG_FACTS, "facts", &facts,
      "q-5 '6.1' 'x86_64' w128 w64 w1650 w31 q0x200000000 q0x123456789a w2 'H100' 'A100' '580.1' "
      "w2 '0' '' w1 'Xid79' 'NV18' b1 '2.28.9' "
      "'/data' q0x1122334455667788 w30" },
    { DT_MSG_FILE_DONE, "file_done", &(struct dt_msg_file_done){ 1, "/d", "no" }, "w1 '/d' 'no'" },
    { DT_MSG_OUTPUT, "output", &(struct dt_msg_output){ 1, 2, BLOB("out") }, "w1 b2 \"out\"" },
    { DT_MSG_OUTPUT_EOF, "output_eof", &(struct dt_msg_output_eof){ 1, 2 }, "w1 b2" },
    { DT_MSG_OUTPUT_QUIET, "output_quiet", &(struct dt_msg_output_quiet){ 1, 2 }, "w1 b2" },
    { DT_MSG_SIGNALLED, "signalled", &(struct dt_msg_signalled){ 15 }, "w15" },
    { DT_MSG_FENCE, "fence", &(struct dt_msg_fence){ 3, BLOB("k=v\n") }, "w3 \"k=v\n\"" },
    { DT_MSG_FENCED, "fenced", &(struct dt_msg_fenced){ 3, BLOB("k=v\n") }, "w3 \"k=v\n\"" },
    { DT_MSG_SHARE, "share", &(struct dt_msg_share){ 3, 1, 7, 2, 2, 1, 4, "name", BLOB("port") },
      "w3 w1 w7 w2 b2 b1 w4 'name' \"port\"" },
    { DT_MSG_DONE, "done", &(struct dt_msg_done){ 9 }, "w9" },
};

enum { NMESSAGES = sizeof messages / sizeof *messages };

/* How many of the n bytes of a message precede its blob. All of them if it has none. */
static size_t fixed_bytes(uint8_t type, size_t n)
{
    switch (type) {
    case DT_MSG_STDIN:
    case DT_MSG_FILE_DATA:
    case DT_MSG_FENCE:
    case DT_MSG_FENCED:
        return 4;
    case DT_MSG_OUTPUT:
        return 5;
    case DT_MSG_SHARE:
        return 30; /* with the key of this test */
    default:
        return n;
    }
}

static void every_type_is_in_the_table(void **state)
{
    size_t known = 0;

    (void)state;
    for (int type = 0; type < 256; type++) {
        union dt_msg msg;

        if (dt_msg_name((uint8_t)type))
            known++;
        else
            assert_int_equal(dt_msg_decode((uint8_t)type, "", 0, &msg), -1);
    }
    assert_int_equal(known, NMESSAGES);
    for (size_t i = 0; i < NMESSAGES; i++)
        assert_string_equal(dt_msg_name(messages[i].type), messages[i].name);
}

static void messages_are_written_as_promised(void **state)
{
    (void)state;
    for (size_t i = 0; i < NMESSAGES; i++) {
        struct dt_put got = { 0 }, want = bytes_of(messages[i].bytes);

        dt_msg_encode(&got, messages[i].type, messages[i].msg);
        assert_false(got.failed);
        if (got.len != want.len || memcmp(got.data, want.data, want.len) != 0)
            fail_msg("%s: %zu bytes differ from the %zu promised", messages[i].name, got.len,
                     want.len);
        dt_put_free(&got);
        dt_put_free(&want);
    }
}

static void messages_survive_the_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < NMESSAGES; i++) {
        struct dt_put again = { 0 }, bytes = bytes_of(messages[i].bytes);
        union dt_msg msg;

        assert_int_equal(dt_msg_decode(messages[i].type, bytes.data, bytes.len, &msg), 0);
        dt_msg_encode(&again, messages[i].type, &msg);
        assert_int_equal(again.len, bytes.len);
        assert_memory_equal(again.data, bytes.data, bytes.len);
        dt_msg_free(messages[i].type, &msg);
        dt_put_free(&again);
        dt_put_free(&bytes);
    }
}

/* Both directions could have the same mistake, so a few fields are checked one by one. */
static void fields_arrive_where_they_belong(void **state)
{
    struct dt_put bytes = bytes_of(messages[0].bytes);
    union dt_msg msg;
    const struct dt_msg_start *s = &msg.start;

    (void)state;
    assert_int_equal(dt_msg_decode(DT_MSG_START, bytes.data, bytes.len, &msg), 0);
    assert_string_equal(s->job_id, "train-1");
    assert_memory_equal(s->secret, start.secret, DT_SECRET_BYTES);
    assert_int_equal(s->max_restarts, -1);
    assert_int_equal(s->master_port, 40000);
    assert_int_equal(s->scheduler_port, 40001);
    assert_int_equal(s->auxiliaries.v[1], 0x12345678);
    assert_int_equal(s->gpus.n, 2);
    assert_string_equal(s->gpus.v[1], "GPU-1");
    assert_int_equal(s->ranks.n, 3);
    assert_int_equal(s->ranks.v[1], 7);
    assert_int_equal(s->argv.n, 3);
    assert_string_equal(s->argv.v[1], "");
    assert_null(s->argv.v[3]);
    assert_string_equal(s->inject.v[0], "kill:rank=1");
    assert_int_equal(s->frameworks, 3);
    dt_msg_free(DT_MSG_START, &msg);
    dt_put_free(&bytes);
}

/* Each try uses memory of exactly its size, so that sanitizers find reads beyond the end. */
static int decode_copy(uint8_t type, const uint8_t *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    union dt_msg msg;
    int rc;

    assert_non_null(copy);
    memcpy(copy, bytes, n);
    rc = dt_msg_decode(type, copy, n, &msg);
    if (rc == 0)
        dt_msg_free(type, &msg);
    free(copy);
    return rc;
}

static void a_message_cut_anywhere_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < NMESSAGES; i++) {
        struct dt_put bytes = bytes_of(messages[i].bytes);
        size_t fixed = fixed_bytes(messages[i].type, bytes.len);

        for (size_t n = 0; n < fixed; n++)
            if (decode_copy(messages[i].type, bytes.data, n) == 0)
                fail_msg("%s was accepted with %zu of %zu bytes", messages[i].name, n, bytes.len);
        for (size_t n = fixed; n < bytes.len; n++)
            assert_int_equal(decode_copy(messages[i].type, bytes.data, n), 0);
        dt_put_free(&bytes);
    }
}

static void a_message_with_a_byte_too_many_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < NMESSAGES; i++) {
        struct dt_put bytes = bytes_of(messages[i].bytes);
        bool has_blob = fixed_bytes(messages[i].type, bytes.len) != bytes.len;

        dt_put_u8(&bytes, 0);
        assert_int_equal(decode_copy(messages[i].type, bytes.data, bytes.len), has_blob ? 0 : -1);
        dt_put_free(&bytes);
    }
}

static void lies_about_lengths_are_refused(void **state)
{
    static const struct {
        uint8_t type;
        const char *bytes;
    } lies[] = {
        { DT_MSG_LOG, "w0xffffffff \"x\"" },
        { DT_MSG_START, "w2 'train-1' k w6 w3 w1 w4 w-1 w10000 w8 w0 b1 w-1 b1 w0xffffffff w1" },
        { DT_MSG_START, "w2 'train-1' k w6 w3 w1 w4 w-1 w10000 w8 w0 b1 w-1 b1 w2 w1" },
        { DT_MSG_LOG, "w2 \"x\"" },
        { DT_MSG_TABLE, "w1 w0xffffffff" },
        { DT_MSG_TABLE, "w1 w1000001 \"xxxx\"" },
        { DT_MSG_TABLE, "w1 w1000000 \"xxxx\"" },
        { DT_MSG_STARTED, "w1 w2 w1 w1 ''" },
        { DT_MSG_PONG, "q1 q2 w1 w0 w0 w0x80000000" },
        { DT_MSG_PONG, "q1 q2 w1 w0 w0 w0 w0x80000000" },
        { DT_MSG_PONG, "q1 q2 w1 w0 w0 w0 w1 q7 w0x80000000" },
        { DT_MSG_PING, "q1 w2 q1" },
        { DT_MSG_HELLO, "w1 '' '' '' '' '' h0 w0 q0 q0 w0 w0xffffffff" },
        { DT_MSG_HELLO, "w1 '' '' '' '' '' h0 w0 q0 q0 w0 w4097" },
        { DT_MSG_HELLO, "w1 '' '' '' '' '' h0 w0 q0 q0 w0 w1 w0xffffffff \"x\"" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct dt_put bytes = bytes_of(lies[i].bytes);

        if (decode_copy(lies[i].type, bytes.data, bytes.len) == 0)
            fail_msg("%s was accepted", lies[i].bytes);
        dt_put_free(&bytes);
    }
}

static void strings_have_their_maximum_and_no_nul(void **state)
{
    struct dt_put out = { 0 };
    char text[9000];

    (void)state;
    memset(text, 'x', sizeof text);
    text[8192] = '\0';
    dt_put_str(&out, text);
    dt_put_u8(&out, 0);
    assert_int_equal(decode_copy(DT_MSG_LOG, out.data, out.len), 0);
    out.data[4 + 100] = '\0';
    assert_int_equal(decode_copy(DT_MSG_LOG, out.data, out.len), -1);
    out.len = 0;
    text[8192] = 'x';
    text[8193] = '\0';
    dt_put_str(&out, text);
    dt_put_u8(&out, 0);
    assert_int_equal(decode_copy(DT_MSG_LOG, out.data, out.len), -1);
    dt_put_free(&out);
}

static void an_unknown_type_cannot_be_written(void **state)
{
    struct dt_put out = { 0 };

    (void)state;
    dt_msg_encode(&out, 200, &start);
    assert_true(out.failed);
    dt_put_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_in_the_table),
        cmocka_unit_test(messages_are_written_as_promised),
        cmocka_unit_test(messages_survive_the_round_trip),
        cmocka_unit_test(fields_arrive_where_they_belong),
        cmocka_unit_test(a_message_cut_anywhere_is_refused),
        cmocka_unit_test(a_message_with_a_byte_too_many_is_refused),
        cmocka_unit_test(lies_about_lengths_are_refused),
        cmocka_unit_test(strings_have_their_maximum_and_no_nul),
        cmocka_unit_test(an_unknown_type_cannot_be_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
