/* What ssh -G printed: any text. */
#include "launcher/remote/ssh/sshconfig.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

static void require_paths(const struct dt_strs *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        REQUIRE(*list->v[i] && strncmp(list->v[i], "~/", 2) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct dt_host host = { .name = (char *)"host1" };
    struct dt_sshconfig c;
    char *text = calloc(n + 1, 1);

    REQUIRE(text);
    if (n)
        memcpy(text, data, n);
    dt_sshconfig_parse(&c, &host, text, "port 22\nciphers aes128-ctr\n");
    REQUIRE(*c.hostname && (*c.user || !dt_sshconfig_user_is_known()));
    REQUIRE(c.port >= 1 && c.port <= 65535);
    REQUIRE(c.connecttimeout >= 1);
    REQUIRE(!c.hostkeyalias || *c.hostkeyalias);
    REQUIRE(!c.identityagent || *c.identityagent);
    REQUIRE(!c.beyond || *c.beyond);
    require_paths(&c.identityfile);
    require_paths(&c.userknownhosts);
    require_paths(&c.globalknownhosts);
    dt_sshconfig_free(&c);
    free(text);
    return 0;
}
