#include "launcher/remote/choose.h"

const char *dt_choose_openssh(const struct dt_sshconfig *config, const struct dt_auth_keys *keys,
                              const struct dt_knownhosts *known, bool rsa_works)
{
    if (config->beyond)
        return config->beyond;
    for (size_t i = 0; i < keys->n; i++) {
        const struct dt_sshkey *key = &keys->v[i].key;

        if (key->certificate)
            return "a key has a certificate";
        if (key->encrypted && keys->v[i].file)
            continue; /* ssh cannot ask for the passphrase either */
        if (key->kind == DT_SSHKEY_RSA && !rsa_works)
            return "a key is of type RSA, for which this libssh2 is too old";
        if (key->kind == DT_SSHKEY_OTHER)
            return "a key is of a type that libssh2 does not know";
    }
    if (keys->n == 0)
        return "there is no key; ssh may be able to log in without one";
    if (dt_knownhosts_needs_openssh(known, rsa_works))
        return "the known host key is of a type that this libssh2 cannot check";
    if (config->accept_new && config->hashknownhosts && known->n == 0)
        return "the host's key is new, and hashknownhosts is set";
    return NULL;
}
