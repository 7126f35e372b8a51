/* What is known before connecting: settings, keys, known hosts, and what follows from them. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "launcher/base/mem.h"
#include "launcher/remote/choose.h"
#include "launcher/remote/ssh/base64.h"
#include "launcher/remote/ssh/knownfile.h"
#include "launcher/remote/ssh/sshagent.h"
#include "launcher/remote/ssh/ssherror.h"
#include "launcher/remote/ssh/sshwire.h"
#include "launcher/remote/sshask.h"

static const char ed25519[] =
    "AAAAC3NzaC1lZDI1NTE5AAAAIP///////////////////////////////////////////w==";

static void base64_is_read_and_written(void **state)
{
    static const char *const cases[][3] = {
        { "", "", "" },
        { "f", "Zg==", "Zg" },
        { "fo", "Zm8=", "Zm8" },
        { "foo", "Zm9v", "Zm9v" },
        { "foob", "Zm9vYg==", "Zm9vYg" },
    };
    static const char *const wrong[] = { "Zg=", "Z", "Zm9v!", "Zg==Zg==", "Zm\x80v" };
    struct dt_strbuf b = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b.len = 0;
        dt_base64_encode(&b, cases[i][0], strlen(cases[i][0]), true);
        assert_string_equal(dt_strbuf_text(&b), cases[i][1]);
        dt_strbuf_free(&b);
        dt_base64_encode(&b, cases[i][0], strlen(cases[i][0]), false);
        assert_string_equal(dt_strbuf_text(&b), cases[i][2]);
        dt_strbuf_free(&b);
        assert_int_equal(dt_base64_decode(&b, cases[i][1], strlen(cases[i][1])), 0);
        assert_string_equal(dt_strbuf_text(&b), cases[i][0]);
        dt_strbuf_free(&b);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dt_base64_decode(&b, wrong[i], strlen(wrong[i])), -1);
    dt_strbuf_free(&b);
}

static void settings_are_read_from_ssh(void **state)
{
    struct dt_host host = { .name = "big", .port = 7 };
    struct dt_sshconfig c;

    (void)state;
    dt_sshconfig_parse(&c, &host,
                       "user anna\nhostname big.example\nport 2222\nidentitiesonly yes\n"
                       "identityfile ~/.ssh/a b\nidentityfile /keys/%r@%h%%\n"
                       "userknownhostsfile /k1 /k2\nconnecttimeout none\n"
                       "identityagent none\nstricthostkeychecking accept-new\n"
                       "hostkeyalias work\nrevokedhostkeys none\n",
                       "");
    assert_string_equal(c.user, "anna");
    assert_string_equal(c.hostname, "big.example");
    assert_string_equal(c.hostkeyalias, "work");
    assert_int_equal(c.port, 2222);
    assert_int_equal(c.connecttimeout, 10);
    assert_int_equal(c.identityfile.n, 2);
    assert_null(strchr(c.identityfile.v[0], '~'));
    assert_non_null(strstr(c.identityfile.v[0], "/.ssh/a b"));
    assert_string_equal(c.identityfile.v[1], "/keys/anna@big.example%");
    assert_int_equal(c.userknownhosts.n, 2);
    assert_string_equal(c.userknownhosts.v[1], "/k2");
    assert_int_equal(c.globalknownhosts.n, 2);
    assert_true(c.identitiesonly);
    assert_true(c.accept_new);
    assert_null(c.identityagent);
    assert_null(c.beyond);
    dt_sshconfig_free(&c);
}

static void known_hosts_may_be_kept_nowhere(void **state)
{
    struct dt_host host = { .name = "h" };
    struct dt_sshconfig c;

    (void)state;
    dt_sshconfig_parse(&c, &host, "userknownhostsfile none\n", "");
    assert_int_equal(c.userknownhosts.n, 1);
    assert_string_equal(c.userknownhosts.v[0], "/dev/null");
    dt_sshconfig_free(&c);
}

/* ssh -G prints false for no, and true for yes. */
static void new_keys_are_accepted_if_the_settings_say_so(void **state)
{
    static const struct {
        const char *value;
        bool accepted;
    } cases[] = { { "accept-new", true }, { "false", true }, { "true", false }, { "ask", false } };
    struct dt_host host = { .name = "h" };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        struct dt_sshconfig c;

        snprintf(text, sizeof text, "stricthostkeychecking %s\n", cases[i].value);
        dt_sshconfig_parse(&c, &host, text, "");
        assert_int_equal(c.accept_new, cases[i].accepted);
        assert_null(c.beyond);
        dt_sshconfig_free(&c);
    }
}

static void without_ssh_defaults_hold(void **state)
{
    struct dt_host host = { .name = "host3", .user = (char *)"me", .port = 7 };
    struct dt_sshconfig c;

    (void)state;
    dt_sshconfig_parse(&c, &host, "", "");
    assert_string_equal(c.user, "me");
    assert_string_equal(c.hostname, "host3");
    assert_int_equal(c.port, 7);
    assert_int_equal(c.identityfile.n, 3);
    assert_int_equal(c.userknownhosts.n, 2);
    dt_sshconfig_free(&c);
}

/* Part of what ssh -G prints without a configuration file. */
static const char defaults[] = "user anna\nport 22\naddressfamily any\ncompression no\n"
                               "ciphers aes128-ctr,aes256-ctr\nmacs hmac-sha2-256\n"
                               "kexalgorithms curve25519-sha256\nipqos lowdelay throughput\n";

static void settings_that_libssh2_does_not_keep_need_openssh(void **state)
{
    static const char *const lines[][2] = {
        { "proxyjump gw\n", "proxyjump is set" },
        { "proxycommand nc %h %p\n", "proxycommand is set" },
        { "certificatefile /c\n", "certificatefile is set" },
        { "pkcs11provider /p.so\n", "pkcs11provider is set" },
        { "identityfile /keys/%k\n", "/keys/%k is a path that only ssh can expand" },
        { "identityfile ${HOME}/k\n", "${HOME}/k is a path that only ssh can expand" },
        { "identityfile /keys/$k\n", NULL },
        { "userknownhostsfile /home/anna b/.ssh/known_hosts\n",
          "/home/anna b/.ssh/known_hosts is a list of paths that only ssh can tell apart" },
        { "userknownhostsfile known_hosts\n", NULL },
        { "userknownhostsfile ~/.ssh/known_hosts /k\nglobalknownhostsfile none\n", NULL },
        { "identityagent ~/%C.sock\n", "~/%C.sock is a path that only ssh can expand" },
        { "identityagent ${HOME}/s\n", "${HOME}/s is a path that only ssh can expand" },
        { "proxyjump none\n", NULL },
        { "ciphers aes256-ctr\n", "ciphers is set" },
        { "ciphers aes128-ctr\n", "ciphers is set" },
        { "ciphers aes128-ctr,aes256-ctr\n", NULL },
        { "macs hmac-sha2-512\n", "macs is set" },
        { "kexalgorithms curve25519-sha256\nmacs hmac-sha2-512", "macs is set" },
        { "setenv A=b\n", "setenv is set" },
        { "sendenv LANG\nsendenv LC_*\n", NULL },
        { "sendenv LANG\nsendenv COLORTERM\nsendenv NO_COLOR\n", NULL }, /* as on Debian 13 */
        { "sendenv LANG\nsendenv TOKEN\n", "sendenv is set" },
        { "addressfamily inet6\n", "addressfamily is set" },
        { "addressfamily any\ncompression no\n", NULL },
        { "ipqos lowdelay\n", "ipqos is set" },
        { "knock 7000\n", "knock is set" },
        { "user bob\nPort 2222\nhostname b\nloglevel DEBUG\n", NULL },
        { "forwardagent yes\n", "forwardagent is set" },
    };
    struct dt_host host = { .name = "h" };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct dt_sshconfig c;

        dt_sshconfig_parse(&c, &host, lines[i][0], defaults);
        if (!lines[i][1] != !c.beyond || (c.beyond && strcmp(c.beyond, lines[i][1]) != 0))
            fail_msg("%s: %s", lines[i][0], c.beyond ? c.beyond : "nothing");
        dt_sshconfig_free(&c);
    }
}

static void the_home_directory_is_the_password_files(void **state)
{
    const struct passwd *me = getpwuid(getuid());
    const char *home = me ? me->pw_dir : "/nowhere";
    struct dt_host host = { .name = "h" };
    struct dt_sshconfig c;

    (void)state;
    setenv("HOME", "/nowhere", 1);
    dt_sshconfig_parse(&c, &host, "identityfile ~/.ssh/key\n", "");
    assert_memory_equal(c.identityfile.v[0], home, strlen(home));
    assert_string_equal(c.identityfile.v[0] + strlen(home), "/.ssh/key");
    assert_memory_equal(c.userknownhosts.v[0], home, strlen(home));
    dt_sshconfig_free(&c);
}

static void a_socket_in_a_variable_is_taken_as_it_is(void **state)
{
    static const char *const lines[] = { "", "identityagent SSH_AUTH_SOCK\n",
                                         "identityagent $SSH_AUTH_SOCK\n" };
    struct dt_host host = { .name = "h" };
    struct dt_sshconfig c;

    (void)state;
    setenv("SSH_AUTH_SOCK", "/run/50%/agent", 1);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        dt_sshconfig_parse(&c, &host, lines[i], "");
        assert_non_null(c.identityagent);
        assert_string_equal(c.identityagent, "/run/50%/agent");
        assert_null(c.beyond);
        dt_sshconfig_free(&c);
    }
    unsetenv("SSH_AUTH_SOCK");
    dt_sshconfig_parse(&c, &host, "identityagent $SSH_AUTH_SOCK\n", "");
    assert_null(c.identityagent);
    dt_sshconfig_free(&c);
}

static void known_hosts_lines_are_matched(void **state)
{
    static const struct {
        const char *name;
        const char *line; /* "KEY" stands for a key */
        int keys;         /* found */
        const char *flag; /* the other fields that are set */
    } cases[] = {
        { "host1", "host1 ssh-ed25519 KEY comment", 1, "" },
        { "host1", "  host2,HOST1,host3\tssh-ed25519\tKEY", 1, "" },
        { "host1", "host2 ssh-ed25519 KEY", 0, "" },
        { "host1", "host ssh-ed25519 KEY", 0, "" },
        { "host1", "host10 ssh-ed25519 KEY", 0, "" },
        { "host1", "h?st* ssh-ed25519 KEY", 1, "" },
        { "host1", "*,!host1 ssh-ed25519 KEY", 0, "" },
        { "host1", "!host1,* ssh-ed25519 KEY", 0, "" },
        { "[host1]:2222", "[host1]:2222 ssh-ed25519 KEY", 1, "" },
        { "[host1]:2222", "[host1]:* ssh-ed25519 KEY", 1, "" },
        { "[host1]:2222", "host1 ssh-ed25519 KEY", 1, "portless" },
        { "host1", "@revoked * ssh-ed25519 KEY", 1, "revoked" },
        { "host1", "@cert-authority *1 ssh-ed25519 KEY", 0, "authority" },
        { "host1", "@unheard-of host1 ssh-ed25519 KEY", 0, "garbage" },
        { "host1", "# host1 ssh-ed25519 KEY", 0, "" },
        { "host1", "", 0, "" },
        { "host1", "host1", 0, "garbage" },
        { "host1", "host1 ssh-ed25519", 0, "garbage" },
        { "host1", "host1 ssh-ed25519 ?????", 0, "garbage" },
        { "host1", "|1|nonsense ssh-ed25519 KEY", 0, "" },
        /* made by ssh-keygen -H of "host1" */
        { "host1", "|1|eDBsZkQwPVNtPLLOCf7EAmBGtmo=|xFsTn5lVcrduomq64sgQ69YVyFk= ssh-ed25519 KEY",
          1, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_knownhosts k = { .name = dt_xstrdup(cases[i].name) };
        const char *at = strstr(cases[i].line, "KEY");
        char *line =
            at ? dt_xasprintf("%.*s%s%s", (int)(at - cases[i].line), cases[i].line, ed25519, at + 3)
               : dt_xstrdup(cases[i].line);

        dt_knownhosts_take_text(&k, line, strlen(line), "f");
        if (k.n != (size_t)cases[i].keys)
            fail_msg("case %zu: %zu keys", i, k.n);
        assert_int_equal(k.garbage != NULL, strcmp(cases[i].flag, "garbage") == 0);
        assert_int_equal(k.authority, strcmp(cases[i].flag, "authority") == 0);
        if (k.n) {
            assert_int_equal(k.v[0].revoked, strcmp(cases[i].flag, "revoked") == 0);
            assert_int_equal(k.v[0].portless, strcmp(cases[i].flag, "portless") == 0);
        }
        free(line);
        dt_knownhosts_free(&k);
    }
}

static struct dt_strbuf blob_of(const char *base64)
{
    struct dt_strbuf b = { 0 };

    assert_int_equal(dt_base64_decode(&b, base64, strlen(base64)), 0);
    return b;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    bool written = f && fputs(text, f) >= 0 && fclose(f) == 0;

    assert_true(written);
}

static void a_file_is_parsed_once_for_all_hosts(void **state)
{
    char path[] = "/tmp/dtrun-known-XXXXXX";
    const struct dt_knownfile *file;
    const struct dt_knownline *lines;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    write_file(path, "host1 ssh-ed25519 AAAA\nhost2 ssh-ed25519 AAAA\n");
    lines = dt_knownfile_get(path)->v;
    file = dt_knownfile_get(path);
    assert_ptr_equal(file->v, lines);
    assert_int_equal(file->n, 2);
    write_file(path, "host1 ssh-ed25519 AAAA\nhost2 ssh-ed25519 AAAA\nhost3 ssh-ed25519 AAAA\n");
    assert_int_equal(dt_knownfile_get(path)->n, 3);
    unlink(path);
    assert_int_equal(dt_knownfile_get(path)->n, 0);
}

static void host_keys_are_judged(void **state)
{
    static const struct {
        const char *lines[2];
        enum dt_hostkey_verdict verdict;
        const char *text;
    } cases[] = {
        { { "", "" }, DT_HOSTKEY_NEW, "is not known; compare" },
        { { "[h]:2222 ssh-ed25519 GOOD", "" }, DT_HOSTKEY_KNOWN, "" },
        { { "[h]:2222 ssh-ed25519 BAD", "" }, DT_HOSTKEY_REFUSED, "IS NOT THE ONE KNOWN" },
        { { "[h]:2222 ssh-ed25519 BAD", "[h]:2222 ssh-ed25519 GOOD" }, DT_HOSTKEY_KNOWN, "" },
        { { "h ssh-ed25519 GOOD", "" }, DT_HOSTKEY_KNOWN, "" },
        { { "h ssh-ed25519 BAD", "" }, DT_HOSTKEY_NEW, "is not known" },
        { { "[h]:2222 ssh-ed25519 GOOD", "@revoked * ssh-ed25519 GOOD" },
          DT_HOSTKEY_REFUSED,
          "@revoked" },
        { { "[h]:2222 ssh-ed25519 GOOD", "@revoked * ssh-ed25519 BAD" }, DT_HOSTKEY_KNOWN, "" },
    };
    struct dt_strbuf good = blob_of(ed25519);
    struct dt_sshconfig config = { .hostname = (char *)"h", .port = 2222 };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_knownhosts k = { .name = dt_xstrdup("[h]:2222") };
        struct dt_error err = { 0 };

        for (size_t l = 0; l < 2; l++) {
            const char *at = strrchr(cases[i].lines[l], ' ');
            char *line =
                at ? dt_xasprintf("%.*s %s", (int)(at - cases[i].lines[l]), cases[i].lines[l],
                                  at[1] == 'G' ? ed25519 : "AAAAC3NzaC1lZDI1NTE5")
                   : dt_xstrdup("");

            dt_knownhosts_take_text(&k, line, strlen(line), "f");
            free(line);
        }
        if (dt_knownhosts_check(&k, &good, "SHA256:x", &config, &err) != cases[i].verdict)
            fail_msg("case %zu", i);
        assert_non_null(strstr(err.text, cases[i].text));
        dt_knownhosts_free(&k);
    }
    dt_strbuf_free(&good);
}

static void a_key_that_does_not_fit_into_the_file_is_an_error(void **state)
{
    char path[] = "/tmp/dtrun-known-XXXXXX";
    struct dt_sshconfig config = { .hostname = (char *)"h", .port = 22 };
    struct dt_knownhosts k = { .name = dt_xstrdup("h") };
    struct dt_strbuf blob = blob_of(ed25519);
    const struct rlimit small = { 10, RLIM_INFINITY }, large = { RLIM_INFINITY, RLIM_INFINITY };
    struct dt_error err = { 0 };
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    dt_xstrs_add(&config.userknownhosts, path);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(dt_knownhosts_append(&k, &blob, &config, &err), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &large), 0);
    assert_non_null(strstr(err.text, strerror(EFBIG)));
    unlink(path);
    dt_strs_free(&config.userknownhosts);
    dt_strbuf_free(&blob);
    dt_knownhosts_free(&k);
}

static void the_key_types_of_a_host_are_asked_for(void **state)
{
    struct dt_knownhosts k = { .name = dt_xstrdup("h") };
    struct dt_strbuf out = { 0 };

    (void)state;
    dt_knownhosts_methods(&k, &out);
    assert_int_equal(out.len, 0);
    assert_false(dt_knownhosts_needs_openssh(&k, false));
    dt_knownhosts_take_text(&k, "h ssh-rsa AAAA", sizeof "h ssh-rsa AAAA" - 1, "f");
    assert_true(dt_knownhosts_needs_openssh(&k, false));
    assert_false(dt_knownhosts_needs_openssh(&k, true));
    dt_knownhosts_take_text(&k, "h ecdsa-sha2-nistp384 AAAA",
                            sizeof "h ecdsa-sha2-nistp384 AAAA" - 1, "f");
    assert_false(dt_knownhosts_needs_openssh(&k, false));
    dt_knownhosts_methods(&k, &out);
    assert_string_equal(dt_strbuf_text(&out),
                        "ecdsa-sha2-nistp384,rsa-sha2-512,rsa-sha2-256,ssh-rsa");
    dt_strbuf_free(&out);
    dt_knownhosts_free(&k);
}

static void kinds_of_key_files_are_recognised(void **state)
{
    static const struct {
        const char *text;
        enum dt_sshkey_kind kind;
        bool encrypted;
    } cases[] = {
        { "", DT_SSHKEY_UNKNOWN, false },
        { "hello", DT_SSHKEY_UNKNOWN, false },
        { "-----BEGIN RSA PRIVATE KEY-----\nMII", DT_SSHKEY_RSA, false },
        { "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n", DT_SSHKEY_RSA, true },
        { "-----BEGIN EC PRIVATE KEY-----\nMII", DT_SSHKEY_ECDSA, false },
        { "-----BEGIN PRIVATE KEY-----\nMII", DT_SSHKEY_OTHER, false },
        { "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMII", DT_SSHKEY_OTHER, true },
        { "-----BEGIN OPENSSH PRIVATE KEY-----\n!!!\n-----END", DT_SSHKEY_UNKNOWN, false },
        { "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END", DT_SSHKEY_UNKNOWN, false },
        { "-----BEGIN OPENSSH PRIVATE KEY-----", DT_SSHKEY_UNKNOWN, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_sshkey key = { 0 };

        dt_sshkey_parse(&key, cases[i].text, strlen(cases[i].text));
        if (key.kind != cases[i].kind || key.encrypted != cases[i].encrypted)
            fail_msg("case %zu: %d", i, key.kind);
        dt_sshkey_free(&key);
    }
}

/* An OpenSSH key file, up to its public part. */
static char *key_file(const char *cipher, const char *type)
{
    struct dt_strbuf raw = { 0 };
    struct dt_strbuf blob = { 0 };
    struct dt_strbuf text = { 0 };

    dt_sshput_string(&blob, type, strlen(type));
    dt_strbuf_add(&raw, "openssh-key-v1", 15);
    dt_sshput_string(&raw, cipher, strlen(cipher));
    dt_sshput_string(&raw, "none", 4);
    dt_sshput_string(&raw, "", 0);
    dt_sshput_u32(&raw, 1);
    dt_sshput_string(&raw, blob.data, blob.len);
    dt_strbuf_puts(&text, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    dt_base64_encode(&text, raw.data, raw.len, true);
    dt_strbuf_puts(&text, "\n-----END OPENSSH PRIVATE KEY-----\n");
    dt_strbuf_free(&raw);
    dt_strbuf_free(&blob);
    return text.data;
}

static void openssh_key_files_name_their_type(void **state)
{
    static const struct {
        const char *cipher;
        const char *type;
        enum dt_sshkey_kind kind;
        bool encrypted;
    } cases[] = {
        { "none", "ssh-ed25519", DT_SSHKEY_ED25519, false },
        { "aes256-ctr", "ssh-ed25519", DT_SSHKEY_ED25519, true },
        { "none", "ssh-rsa", DT_SSHKEY_RSA, false },
        { "none", "ecdsa-sha2-nistp521", DT_SSHKEY_ECDSA, false },
        { "none", "sk-ssh-ed25519@openssh.com", DT_SSHKEY_OTHER, false },
        { "none", "ecdsa-sha2-nistp256-cert-v01@openssh.com", DT_SSHKEY_OTHER, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_sshkey key = { 0 };
        char *text = key_file(cases[i].cipher, cases[i].type);

        for (size_t n = 0; n < strlen(text);
             n++) { /* truncated where it must not be read further */
            dt_sshkey_parse(&key, text, n);
            dt_sshkey_free(&key);
        }
        dt_sshkey_parse(&key, text, strlen(text));
        assert_int_equal(key.kind, cases[i].kind);
        assert_int_equal(key.encrypted, cases[i].encrypted);
        assert_true(key.blob.len > 0);
        dt_sshkey_free(&key);
        free(text);
    }
}

static void the_transport_is_chosen(void **state)
{
    static const struct {
        struct dt_auth_key keys[2];
        const char *beyond;
        bool rsa_works;
        bool needs_ssh;
    } cases[] = {
        { { { .file = (char *)"a", .key.kind = DT_SSHKEY_ED25519 } }, NULL, false, false },
        { { { .file = (char *)"a", .key.kind = DT_SSHKEY_ED25519 } }, "ProxyJump", false, true },
        { { { .file = (char *)"a", .key.kind = DT_SSHKEY_RSA } }, NULL, false, true },
        { { { .file = (char *)"a", .key.kind = DT_SSHKEY_RSA } }, NULL, true, false },
        { { { .file = (char *)"a", .key.kind = DT_SSHKEY_ED25519 }, { .key.kind = DT_SSHKEY_RSA } },
          NULL,
          false,
          true },
        { { { .file = (char *)"a", .key.kind = DT_SSHKEY_ECDSA, .key.certificate = true } },
          NULL,
          true,
          true },
        { { { .file = (char *)"a", .key.kind = DT_SSHKEY_RSA, .key.encrypted = true },
            { .file = (char *)"b", .key.kind = DT_SSHKEY_ED25519 } },
          NULL,
          false,
          false },
        { { { .key.kind = DT_SSHKEY_OTHER } }, NULL, true, true },
        { { { 0 } }, NULL, true, true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_auth_key v[2] = { cases[i].keys[0], cases[i].keys[1] };
        struct dt_auth_keys keys = { .v = v };
        struct dt_sshconfig config = { .beyond = (char *)(uintptr_t)cases[i].beyond };
        struct dt_knownhosts known = { 0 };

        while (keys.n < 2 && v[keys.n].key.kind != DT_SSHKEY_MISSING)
            keys.n++;
        if (!dt_choose_openssh(&config, &keys, &known, cases[i].rsa_works) == cases[i].needs_ssh)
            fail_msg("case %zu", i);
    }
}

static void ssh_adds_keys_of_hashed_names(void **state)
{
    struct dt_auth_key key = { .file = (char *)"a", .key.kind = DT_SSHKEY_ED25519 };
    struct dt_auth_keys keys = { .v = &key, .n = 1 };
    struct dt_sshconfig config = { .hashknownhosts = true };
    struct dt_knownhosts known = { .name = dt_xstrdup("h") };

    (void)state;
    assert_null(dt_choose_openssh(&config, &keys, &known, true));
    config.accept_new = true;
    assert_non_null(dt_choose_openssh(&config, &keys, &known, true));
    dt_knownhosts_take_text(&known, "h ssh-ed25519 AAAA", 18, "f");
    assert_null(dt_choose_openssh(&config, &keys, &known, true));
    dt_knownhosts_free(&known);
}

/* As where the agent is a forwarded one, or its keys are in hardware. */
static void an_identity_file_with_a_public_key_names_one_of_the_agent(void **state)
{
    static const char *const identities[] = { "key.pub", "key" };
    char dir[] = "/tmp/dtrun-identity-XXXXXX";
    struct dt_strbuf blob = blob_of(ed25519), other = blob_of("AAAAC3NzaC1lZDI1NTE5");
    char *public, *certificate, *text = dt_xasprintf("ssh-ed25519 %s anna@laptop\n", ed25519);

    (void)state;
    assert_non_null(mkdtemp(dir));
    public = dt_xasprintf("%s/key.pub", dir);
    certificate = dt_xasprintf("%s/key-cert.pub", dir);
    write_file(public, text);
    write_file(certificate, "");
    for (size_t i = 0; i < sizeof identities / sizeof *identities; i++) {
        struct dt_sshconfig config = { .identitiesonly = true };
        struct dt_auth_keys keys = { 0 };
        char *path = dt_xasprintf("%s/%s", dir, identities[i]);

        dt_xstrs_add(&config.identityfile, path);
        dt_auth_add_agent_key(&keys, &other, "other");
        dt_auth_add_agent_key(&keys, &blob, "anna");
        dt_auth_add_files(&keys, &config);
        assert_int_equal(keys.n, 1);
        assert_string_equal(keys.v[0].name, "agent: anna");
        assert_int_equal(keys.v[0].key.certificate, strcmp(identities[i], "key") == 0);
        dt_auth_free(&keys);
        dt_strs_free(&config.identityfile);
        free(path);
    }
    unlink(public);
    unlink(certificate);
    rmdir(dir);
    free(public);
    free(certificate);
    free(text);
    dt_strbuf_free(&blob);
    dt_strbuf_free(&other);
}

static void the_agents_list_is_read(void **state)
{
    struct dt_strbuf reply = { 0 };
    struct dt_strbuf blob = blob_of(ed25519);
    struct dt_auth_keys keys = { 0 };

    (void)state;
    dt_strbuf_add(&reply, "\x0c", 1);
    dt_sshput_u32(&reply, 2);
    for (int i = 0; i < 2; i++) {
        dt_sshput_string(&reply, blob.data, blob.len);
        dt_sshput_string(&reply, i ? "" : "anna@laptop", i ? 0 : 11);
    }
    assert_int_equal(dt_sshagent_list_reply(&reply, &keys), 0);
    assert_int_equal(keys.n, 2);
    assert_string_equal(keys.v[0].name, "agent: anna@laptop");
    assert_string_equal(keys.v[1].name, "agent: unnamed");
    assert_int_equal(keys.v[0].key.kind, DT_SSHKEY_ED25519);
    for (reply.len--; reply.len; reply.len--) {
        struct dt_auth_keys some = { 0 };

        assert_int_equal(dt_sshagent_list_reply(&reply, &some), -1);
        dt_auth_free(&some);
    }
    dt_auth_free(&keys);
    dt_strbuf_free(&reply);
    dt_strbuf_free(&blob);
}

static void the_agent_signs_with_the_algorithm_that_the_data_name(void **state)
{
    static const struct {
        const char *algorithm;
        char flags;
    } cases[] = { { "ssh-ed25519", 0 },  { "ssh-rsa", 0 },        { "rsa-sha2-256", 2 },
                  { "rsa-sha2-512", 4 }, { "rsa-sha2-512@x", 0 }, { "", 0 } };
    static const char *const before[] = { "user", "ssh-connection", "publickey" };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_strbuf data = { 0 }, key = { 0 }, request = { 0 };

        dt_sshput_string(&data, "session", 7);
        dt_strbuf_add(&data, "\x32", 1);
        for (size_t k = 0; k < sizeof before / sizeof *before; k++)
            dt_sshput_string(&data, before[k], strlen(before[k]));
        dt_strbuf_add(&data, "\x01", 1);
        dt_sshput_string(&data, cases[i].algorithm, strlen(cases[i].algorithm));
        dt_sshput_string(&data, "key", 3);
        dt_sshagent_sign_request(&request, &key, data.data, data.len);
        assert_memory_equal(request.data + request.len - 4, "\0\0\0", 3);
        assert_int_equal(request.data[request.len - 1], cases[i].flags);
        dt_strbuf_free(&request);
        dt_strbuf_free(&data);
    }
}

static void copies(const struct dt_host *host, const char *command)
{
    struct dt_strbuf text = { 0 };

    dt_sshconfig_copy_id(host, &text);
    assert_string_equal(dt_strbuf_text(&text), command);
    dt_strbuf_free(&text);
}

static void the_command_that_copies_a_key_logs_in_as_dtrun_does(void **state)
{
    (void)state;
    copies(&(struct dt_host){ .name = (char *)"h" }, "ssh-copy-id h");
    copies(&(struct dt_host){ .name = (char *)"h", .user = (char *)"anna" }, "ssh-copy-id anna@h");
    copies(&(struct dt_host){ .name = (char *)"h",
                              .user = (char *)"anna",
                              .identity = (char *)"id_lab",
                              .port = 2222 },
           "ssh-copy-id -i id_lab -p 2222 anna@h");
    copies(&(struct dt_host){ .name = (char *)"h", .identity = (char *)"~/my keys/anna's" },
           "ssh-copy-id -i ~/'my keys/anna'\\''s' h");
}

static void messages_of_ssh_are_translated(void **state)
{
    static const char *const cases[][2] = {
        { "ssh: Could not resolve hostname hots2: Name or service not known\r\n",
          "resolve: Name or service not known; check the name, or give its address as HostName in "
          "~/.ssh/config" },
        { "ssh: connect to host h port 2222: Connection refused\r\n",
          "connect: port 2222: Connection refused; is the host up, and sshd running there?" },
        { "anna@h: Permission denied (publickey,password).\r\n",
          "authenticate as anna: ssh has no key that is accepted (the host accepts: "
          "publickey,password); try: ssh-copy-id -p 7 h" },
        { "Permissions 0644 for '/s/id' are too open.\r\nLoad key \"/s/id\": bad permissions\r\n"
          "anna@h: Permission denied (publickey).\r\n",
          "authenticate: ssh ignores the key /s/id, because others may read it; chmod 600 it, or "
          "try "
          "--transport libssh2" },
        { "anna@h: Permission denied ().\r\n",
          "authenticate as anna: ssh has no key that is accepted (the host accepts: nothing); try: "
          "ssh-copy-id -p 7 h" },
        { "No ED25519 host key is known for h and you have requested strict checking.\r\n"
          "Host key verification failed.\r\n",
          "host key: none is known; compare it with the host's own, then: ssh-keyscan -p 7 h >>k   "
          "(or: --ssh-accept-new)" },
        { "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nfingerprint is\nSHA256:abc.\nx\n",
          "host key: it HAS CHANGED (now SHA256:abc); someone may be listening in, or the host "
          "was reinstalled; only if you know why: ssh-keygen -R '[h]:7'" },
        { "kex_exchange_identification: Connection closed by remote host\n",
          "handshake: ssh: kex_exchange_identification: Connection closed by remote host; look at "
          "its sshd's log; if many logins begin at once, see --fanout and MaxStartups; if no SSH "
          "server listens there, see --ssh-port" },
        { "Connection closed by 10.0.0.1 port 22\r\n",
          "handshake: ssh: Connection closed by 10.0.0.1 port 22; look at its sshd's log; if many "
          "logins begin at once, see --fanout and MaxStartups" },
        { "ssh: connect to host jump port 22: Connection refused\r\n"
          "kex_exchange_identification: Connection closed by remote host\r\n",
          "handshake: ssh: ssh: connect to host jump port 22: Connection refused; does its "
          "ProxyJump or ProxyCommand work? try: ssh h true" },
        { "Host key verification failed.\r\n"
          "kex_exchange_identification: Connection closed by remote host\r\n"
          "Connection closed by UNKNOWN port 65535\r\n",
          "handshake: ssh: Host key verification failed; does its ProxyJump or ProxyCommand work? "
          "try: ssh h true" },
        { "Unable to negotiate with 10.0.0.1 port 22: no matching cipher found\n",
          "handshake: ssh: Unable to negotiate with 10.0.0.1 port 22: no matching cipher found; "
          "try: ssh h true" },
        { "muxclient: something new\n", "ssh: muxclient: something new; try: ssh h true" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dt_ssherror_host host = { "h", "[h]:7", "ssh-keyscan -p 7 h >>k",
                                               "ssh-copy-id -p 7 h" };
        struct dt_error why = { 0 };

        dt_ssherror_explain(&why, cases[i][0], &host);
        assert_string_equal(why.text, cases[i][1]);
    }
    assert_true(dt_ssherror_turned_away("kex_exchange_identification: read: Connection reset by "
                                        "peer\r\n"));
    assert_false(
        dt_ssherror_turned_away("kex_exchange_identification: banner line contains invalid "
                                "characters\r\n"));
}

static void keep_error(void *arg, struct dt_sshconfig *config, const struct dt_error *err)
{
    *(struct dt_error *)arg = *err;
    dt_sshconfig_free(config);
}

/* That is no reason to go on without the user's settings. */
static void ssh_that_cannot_be_run_now_is_not_a_missing_one(void **state)
{
    const struct dt_host host = { .name = (char *)(uintptr_t) "host1" };
    struct rlimit before, few;
    struct dt_error err = { 0 };
    uv_loop_t loop;
    int fd;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    fd = dup(STDIN_FILENO);
    close(fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){ (rlim_t)fd + 1, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    dt_sshask_start(&loop, &host, keep_error, &err);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_string_equal(err.text, "ssh -G host1: too many open files; allow dtrun more open files "
                                  "(ulimit -n)");
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_is_read_and_written),
        cmocka_unit_test(settings_are_read_from_ssh),
        cmocka_unit_test(known_hosts_may_be_kept_nowhere),
        cmocka_unit_test(new_keys_are_accepted_if_the_settings_say_so),
        cmocka_unit_test(without_ssh_defaults_hold),
        cmocka_unit_test(settings_that_libssh2_does_not_keep_need_openssh),
        cmocka_unit_test(the_home_directory_is_the_password_files),
        cmocka_unit_test(a_socket_in_a_variable_is_taken_as_it_is),
        cmocka_unit_test(a_file_is_parsed_once_for_all_hosts),
        cmocka_unit_test(known_hosts_lines_are_matched),
        cmocka_unit_test(host_keys_are_judged),
        cmocka_unit_test(a_key_that_does_not_fit_into_the_file_is_an_error),
        cmocka_unit_test(the_key_types_of_a_host_are_asked_for),
        cmocka_unit_test(kinds_of_key_files_are_recognised),
        cmocka_unit_test(openssh_key_files_name_their_type),
        cmocka_unit_test(the_transport_is_chosen),
        cmocka_unit_test(ssh_adds_keys_of_hashed_names),
        cmocka_unit_test(an_identity_file_with_a_public_key_names_one_of_the_agent),
        cmocka_unit_test(the_agents_list_is_read),
        cmocka_unit_test(the_agent_signs_with_the_algorithm_that_the_data_name),
        cmocka_unit_test(the_command_that_copies_a_key_logs_in_as_dtrun_does),
        cmocka_unit_test(messages_of_ssh_are_translated),
        cmocka_unit_test(ssh_that_cannot_be_run_now_is_not_a_missing_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
