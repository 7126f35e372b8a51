/* The handshake between ranks: which peers get through and which do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/wire/auth.h"
#include "tests/unit/checks.h"

struct exchange {
    uint8_t hello[DT_AUTH_HELLO], answer[DT_AUTH_ANSWER], proof[DT_AUTH_PROOF];
};

static const struct dt_auth caller = { { 1, 2, 3 }, 7, 4, 6, DT_AUTH_RANKS, 1, 9 };
static const struct dt_auth callee = { { 1, 2, 3 }, 7, 6, 4, DT_AUTH_RANKS, 1, 9 };

enum { HELLO, ANSWER, PROOF, THROUGH };

/* Returns the message at which the handshake stopped. */
static int shake(const struct dt_auth *a, const struct dt_auth *b, struct exchange *x)
{
    dt_auth_hello(a, x->hello);
    if (!dt_auth_answer(b, x->hello, x->answer))
        return HELLO;
    if (!dt_auth_prove(a, x->hello, x->answer, x->proof))
        return ANSWER;
    return dt_auth_check(b, x->hello, x->answer, x->proof) ? THROUGH : PROOF;
}

static void two_ranks_of_one_job_get_through(void **state)
{
    struct exchange x, y;

    (void)state;
    assert_int_equal(shake(&caller, &callee, &x), THROUGH);
    assert_int_equal(shake(&caller, &callee, &y), THROUGH);
    assert_memory_not_equal(x.hello, y.hello, sizeof x.hello);
    assert_memory_not_equal(x.answer, y.answer, sizeof x.answer);
    assert_memory_not_equal(x.proof, y.proof, sizeof x.proof);
}

static void other_peers_do_not_get_through(void **state)
{
    struct dt_auth a = caller;
    struct exchange x;

    (void)state;
    a.generation++;
    assert_int_equal(shake(&a, &callee, &x), HELLO);
    a = caller;
    a.me++;
    assert_int_equal(shake(&a, &callee, &x), HELLO);
    a = caller;
    a.peer++;
    assert_int_equal(shake(&a, &callee, &x), HELLO);
    a = caller;
    a.purpose = DT_AUTH_AGENTS;
    assert_int_equal(shake(&a, &callee, &x), HELLO);
    a = caller;
    a.comm++;
    assert_int_equal(shake(&a, &callee, &x), HELLO);
    a = caller;
    a.connection++;
    assert_int_equal(shake(&a, &callee, &x), HELLO);
    a = caller;
    a.secret[31]++;
    assert_int_equal(shake(&a, &callee, &x), HELLO);
}

/* The caller learns that it has called an agent of another job. */
static void an_agent_answers_another_secret(void **state)
{
    struct dt_auth a = caller, b = callee;
    struct exchange x;

    (void)state;
    a.purpose = b.purpose = DT_AUTH_AGENTS;
    assert_int_equal(shake(&a, &b, &x), THROUGH);
    a.secret[31]++;
    assert_int_equal(shake(&a, &b, &x), ANSWER);
}

/* An agent listens to all others of the job, but to no one else. */
static void any_peer_with_the_secret_may_get_through(void **state)
{
    struct dt_auth host = callee, a = caller;
    struct exchange x;

    (void)state;
    host.peer = DT_AUTH_ANYBODY;
    for (a.me = 0; a.me < 10; a.me++) {
        struct dt_auth who;

        a.comm = 1ULL << 40 | a.me;
        a.connection = a.me / 2;
        assert_int_equal(shake(&a, &host, &x), THROUGH);
        dt_auth_caller(x.hello, &who);
        assert_int_equal(who.me, a.me);
        assert_int_equal(who.comm, a.comm);
        assert_int_equal(who.connection, a.connection);
        assert_int_equal(who.generation, a.generation);
    }
    a.secret[0]++;
    assert_int_equal(shake(&a, &host, &x), HELLO);
    a = caller;
    a.generation++;
    assert_int_equal(shake(&a, &host, &x), HELLO);
    a = caller;
    a.peer++;
    assert_int_equal(shake(&a, &host, &x), HELLO);
}

/* A caller that does not check the answer still has to prove itself. */
static void a_proof_needs_the_secret(void **state)
{
    struct exchange x, old;

    (void)state;
    assert_int_equal(shake(&caller, &callee, &old), THROUGH);
    memcpy(x.hello, old.hello, sizeof x.hello);
    assert_true(dt_auth_answer(&callee, x.hello, x.answer));
    memcpy(x.proof, old.proof, sizeof x.proof);
    assert_false(dt_auth_check(&callee, x.hello, x.answer, x.proof));
    memcpy(x.proof, x.answer + DT_AUTH_NONCE, sizeof x.proof); /* the listener's own tag */
    assert_false(dt_auth_check(&callee, x.hello, x.answer, x.proof));
    /* A whole recorded conversation does not help: the listener's nonce is new. */
    assert_true(dt_auth_answer(&callee, old.hello, x.answer));
    assert_false(dt_auth_check(&callee, old.hello, x.answer, old.proof));
}

static void every_bit_counts(void **state)
{
    struct exchange x, y;

    (void)state;
    assert_int_equal(shake(&caller, &callee, &x), THROUGH);
    for (size_t i = 0; i < sizeof x.answer; i++) {
        y = x;
        y.answer[i] ^= 1;
        assert_false(dt_auth_prove(&caller, y.hello, y.answer, y.proof));
    }
    for (size_t i = 0; i < sizeof x.hello; i++) {
        y = x;
        y.hello[i] ^= 1;
        assert_false(dt_auth_answer(&callee, y.hello, y.answer));
        y = x;
        y.hello[i] ^= 1;
        assert_false(dt_auth_check(&callee, y.hello, y.answer, y.proof));
    }
    for (size_t i = 0; i < sizeof x.proof; i++) {
        y = x;
        y.proof[i] ^= 1;
        assert_false(dt_auth_check(&callee, y.hello, y.answer, y.proof));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ranks_of_one_job_get_through),
        CHECKS("35", other_peers_do_not_get_through),
        cmocka_unit_test(an_agent_answers_another_secret),
        cmocka_unit_test(any_peer_with_the_secret_may_get_through),
        CHECKS("35", a_proof_needs_the_secret),
        CHECKS("35", every_bit_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
