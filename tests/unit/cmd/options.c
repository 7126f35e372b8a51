#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/similar.h"
#include "tests/unit/cmd/optiontext.h"
#include "tests/unit/unit.h"

static const struct {
    const char *line;
    const char *want;
} goods[] = {
    { "x", "=x" },
    { "-np 4 x", "np=4 =x" },
    { "-n 4 x", "np=4 =x" },
    { "-npernode 4 x", "pernode=4 =x" },
    { "-np 8 --ppr=4 x", "np=8 pernode=4 =x" },
    { "--np 4 x", "np=4 =x" },
    { "--n 4 x", "np=4 =x" },
    { "--num_proc 4 --dry_run x", "np=4 dry=1 =x" },
    { "--npernode gpu x", "pernode=-1 =x" },
    { "--ppr cpu x", "pernode=-2 =x" },
    { "--npernode=auto x", "pernode=-3 =x" },
    { "--slots-per-host 4 --nnodes 2 x", "slots=4 nnodes=2 =x" },
    { "--num-proc 4 x", "np=4 =x" },
    { "-num-proc=4 x", "np=4 =x" },
    { "-n=4 x", "np=4 =x" },
    { "-np 1 x", "np=1 =x" },
    { "-np 1000000 x", "np=1000000 =x" },
    { "-np 3 -np 4 x", "np=4 =x" },
    { "-H a:1 -H b x", "H=a:1 H=b =x" },
    { "--hosts a --host=b -hosts c x", "H=a H=b H=c =x" },
    { "--hostfile f x", "hostfile=f =x" },
    { "-hostfile f x", "hostfile=f =x" },
    { "--machinefile=f x", "hostfile=f =x" },
    { "--hostfile - x", "hostfile=- =x" },
    { "-x A=1 -x A=b=c --unset B -x C* x", "env=x:A=1 env=x:A=b=c env=u:B env=x:C* =x" },
    { "--wdir /w --report r.json x", "wdir=/w report=r.json =x" },
    { "--dry-run --json x", "dry=1 json=1 =x" },
    { "--check", "check=1" },
    { "--check --json -np 2 x -y", "np=2 check=1 json=1 =x =-y" },
    { "--max-restarts 0 x", "restarts=0 =x" },
    { "--max-restarts=3 x", "restarts=3 =x" },
    { "--on-host-loss stop x", "hostloss=1 =x" },
    { "--on-host-loss stop --on-host-loss move x", "=x" },
    { "--checkpoint-dir d --resume x", "ckpt=d resume=1 =x" },
    { "--checkpoint-dir d --fresh x", "ckpt=d fresh=1 =x" },
    { "--fresh x", "fresh=1 =x" },
    { "--inject kill:rank=1,step=50 --inject exit:rank=2,step=3 x",
      "inject=kill:rank=1,step=50 inject=exit:rank=2,step=3 =x" },
    { "--exit-grace 7 x", "exitgrace=7 =x" },
    { "--collective-timeout 7 x", "colltimeout=7 =x" },
    { "--collective-timeout 0 x", "colltimeout=0 =x" },
    { "--no-tag --no-oversubscribe x", "notag=1 noover=1 =x" },
    { "--tag --timestamp --merge-stderr x", "tag=1 stamp=1 merge=1 =x" },
    { "--unbuffered x", "unbuffered=1 =x" },
    { "--output-dir d --tee x", "outdir=d tee=1 =x" },
    { "--stdin 3 x", "stdin=3 =x" },
    { "--stdin=none x", "stdin=-1 =x" },
    { "--stdin all x", "stdin=-2 =x" },
    { "--output-dir logs/%h/%r-%% x", "outdir=logs/%h/%r-%% =x" },
    { "--transport auto x", "=x" },
    { "--map-by slot x", "=x" },
    { "-map-by node x", "mapby=1 =x" },
    { "--gpu-bind rank x", "=x" },
    { "--gpu-bind host x", "gpubind=1 =x" },
    { "--gpu-bind=none --virtual-local-rank x", "gpubind=2 virtual=1 =x" },
    { "--bind-to core x", "bind=1 =x" },
    { "--bind-to numa --report-bindings x", "bind=3 bindings=1 =x" },
    { "--bind-to l3 --display-map x", "bind=4 map=1 =x" },
    { "--bind-to hwthread x", "bind=5 =x" },
    { "-bind-to=socket x", "bind=2 =x" },
    { "--env horovod x", "frameworks=1 =x" },
    { "--env mpi,tensorflow x", "frameworks=6 =x" },
    { "--env mpi -x TF_CONFIG=a --env horovod x", "env=x:TF_CONFIG=a frameworks=5 =x" },
    { "--env mxnet,mpi x", "frameworks=12 =x" },
    { "--env mxnet --num-servers 3 x", "frameworks=8 num_servers=3 =x" },
    { "--transport libssh2 x", "transport=1 =x" },
    { "--transport=ssh x", "transport=2 =x" },
    { "--transport local x", "transport=3 =x" },
    { "--ssh-accept-new --no-push x", "acceptnew=1 nopush=1 =x" },
    { "--ssh-user anna --ssh-port 2222 --ssh-identity k x",
      "sshuser=anna sshport=2222 sshid=k =x" },
    { "--fanout 1 --start-timeout 60 x", "fanout=1 starttimeout=60 =x" },
    { "--fanout=65536 x", "fanout=65536 =x" },
    { "--push a --push b x", "push=a push=b =x" },
    { "--heartbeat 1 --kill-grace 0 --timeout 60 x", "heartbeat=1 grace=0 timeout=60 =x" },
    { "-v x", "verbose=1 =x" },
    { "--verbose x", "verbose=1 =x" },
    /* if an option is repeated, the last value wins */
    { "-np 2 --num-proc 3 -n 4 x", "np=4 =x" },
    { "--wdir /a --report r --wdir /b --report s x", "wdir=/b report=s =x" },
    { "--output-dir a --checkpoint-dir c --checkpoint-dir d --output-dir b x",
      "ckpt=d outdir=b =x" },
    { "--ssh-user a --ssh-identity i --ssh-user b --ssh-identity k x", "sshuser=b sshid=k =x" },
    { "--iface eth0 --iface ib0 x", "iface=ib0 =x" },
    { "--stdin all --stdin 0 --transport ssh --transport auto x", "=x" },
    { "--gpu-bind none --gpu-bind host -v -v x", "gpubind=1 verbose=1 =x" },
    { "--hostfile a --machinefile a x", "hostfile=a =x" },
    /* options end at the program or at -- */
    { "x -np 4 --bad", "=x =-np =4 =--bad" },
    { "-np 4 -- -x -y", "np=4 =-x =-y" },
    { "-- -- x", "=-- =x" },
    { "x --", "=x =--" },
    { "-", "=-" },
    { "x _", "=x =" },
    { "./host:2", "=./host:2" },
    { "-- host:2", "=host:2" },
    { "-- 4 x", "=4 =x" },
    { "4x", "=4x" },
    { "a:b", "=a:b" },
    { "C:x2", "=C:x2" },
    { "x : y", "=x =: =y" },
    { "x : -q", "=x =: =-q" },
    { "-- x : -np 2 y", "=x =: =-np =2 =y" },
    /* these need no program, and what follows them does not matter */
    { "--help", "help=1" },
    { "-h", "help=1" },
    { "--help --bad", "help=1" },
    { "--version", "version=1" },
    { "-version", "version=1" },
    { "--check-build", "build=1" },
    { "--completion fish", "completion=3" },
    { "--completion bash", "completion=1" },
    { "-np 2 --completion=zsh -q", "np=2 completion=2" },
    { "-np 4 --help", "np=4 help=1" },
};

static void valid_command_lines_are_parsed(void **state)
{
    struct dt_strbuf b = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof goods / sizeof *goods; i++) {
        struct line l;
        struct dt_options o;
        struct dt_error err = { 0 };

        split(&l, goods[i].line);
        if (parse(&o, l.argc, l.argv, &err) < 0)
            fail_msg("%s: %s", goods[i].line, err.text);
        assert_string_equal(describe(&b, &o), goods[i].want);
        dt_options_free(&o);
        free(l.copy);
    }
    dt_strbuf_free(&b);
}

static const struct {
    const char *line;
    const char *says; /* how the error begins */
} bads[] = {
    { "", "no program was given; usage: dtrun [options] PROGRAM [ARGS...], see dtrun --help" },
    { "-np 4", "no program was given" },
    { "--", "no program was given" },
    { "_", "the program's name is empty" },
    { "-np abc x", "-np abc: a number was expected" },
    { "-np 0 x", "-np 0: a number from 1 to 1000000 was expected" },
    { "-n -1 x", "-n -1: a whole number from 1 to 1000000 was expected" },
    { "-np 99999999 x", "-np 99999999: a number from 1 to 1000000 was expected" },
    { "--np= x", "--np : a number was expected" },
    { "-np", "-np: a value (N) is missing" },
    { "--hostfile", "--hostfile: a value (FILE) is missing" },
    { "--hostfile a --hostfile b x",
      "--hostfile b: only one file is read, and a was given before" },
    { "--hostfile a --machinefile b x", "--machinefile b: only one file is read, and a was" },
    { "--config a --config b x", "--config b: only one file is read, and a was given before" },
    { "--wdir= x", "--wdir : a value was expected" },
    { "-H _ x", "-H : a value was expected" },
    { "--push= x", "--push : a value was expected" },
    { "--bad x", "--bad is not an option; see dtrun --help" },
    { "--bad=3 x", "--bad is not an option; see dtrun --help" },
    { "-z x", "-z is not an option" },
    { "---n 4 x", "---n is not an option" },
    { "--npernode 0 x", "--npernode 0: a number from 1 to 1000000 was expected" },
    { "--npernode xpu x", "--npernode xpu: a number, gpu, cpu or auto was expected" },
    { "--x A=1 x", "--x is not an option" },
    { "--H a x", "--H is not an option" },
    { "---np 4 x", "---np is not an option" },
    { "-np4 x", "-np4 is not an option; did you mean -np 4? see" },
    { "-N2 x", "-N2 is not an option; did you mean -N 2? see" },
    { "-2 x", "-2 is not an option; see" },
    { "--np4 x", "--np4 is not an option; see" },
    { "--hostfil f x", "--hostfil is not an option; did you mean --hostfile? see dtrun --help" },
    { "-host-file=f x", "-host-file is not an option; did you mean --hostfile?" },
    { "--no-oversubscibe x",
      "--no-oversubscibe is not an option; did you mean --no-oversubscribe?" },
    { "--max-restart 1 x", "--max-restart is not an option; did you mean --max-restarts?" },
    { "-npp 1 x", "-npp is not an option; see dtrun --help" },
    { "--completion csh", "--completion csh: bash, zsh or fish was expected" },
    { "--map-by board x", "--map-by board: slot or node was expected" },
    { "--map-by slo x", "--map-by slo: slot or node was expected" },
    { "--dry-run=yes x", "--dry-run takes no value" },
    { "--help=1", "--help takes no value" },
    { "--transport rsh x", "--transport rsh: auto, libssh2, ssh, local or srun was expected" },
    { "--bind-to board x",
      "--bind-to board: none, core, socket, numa, l3 or hwthread was expected" },
    { "--gpu-bind all x", "--gpu-bind all: rank, host or none was expected" },
    { "--env torch x", "--env torch: horovod, tensorflow, mpi or mxnet was expected" },
    { "--env mpi, x", "--env mpi,: horovod, tensorflow, mpi or mxnet was expected" },
    { "-x TF_CONFIG=a --env tensorflow x",
      "-x TF_CONFIG: --env tensorflow sets it for every rank" },
    { "-x DMLC_ROLE=worker --env mxnet x", "-x DMLC_ROLE: --env mxnet sets it for every rank" },
    { "-x DMLC_NUM_SERVER=2 --env mxnet x",
      "-x DMLC_NUM_SERVER: --env mxnet sets it for every rank" },
    { "--env mxnet --num-servers 0 x", "--num-servers 0: " },
    { "--env mpi --num-servers 2 x", "--num-servers belongs to --env mxnet" },
    { "--env mpi,horovod --unset HOROVOD_RANK x",
      "--unset HOROVOD_RANK: --env horovod sets it for every rank" },
    { "-x CUDA_VISIBLE_DEVICES=1 x",
      "-x CUDA_VISIBLE_DEVICES: dtrun sets it for every rank; gpus= in a hostfile decides" },
    { "-x CUDA_VISIBLE_DEVICES --gpu-bind host x",
      "-x CUDA_VISIBLE_DEVICES: dtrun sets it for every rank; gpus= in a hostfile decides" },
    { "--unset CUDA_VISIBLE_DEVICES x",
      "--unset CUDA_VISIBLE_DEVICES: dtrun sets it for every rank; gpus= in a hostfile decides" },
    { "--inject kill x", "--inject kill" },
    { "--inject= x", "--inject" },
    { "--inject boom:rank=1 x", "--inject boom:rank=1: unknown fault" },
    { "--max-restarts -1 x", "--max-restarts -1: a whole number from 0 to 1000000 was expected" },
    { "--heartbeat 0 x", "--heartbeat 0: a number from 1" },
    { "--timeout 0 x", "--timeout 0: a number from 1" },
    { "--timeout 0.2 x", "--timeout 0.2: a whole number from 1 to 10000000 was expected" },
    { "--timeout 2m x", "--timeout 2m: a number was expected" },
    { "--on-host-loss wait x", "--on-host-loss wait: move or stop was expected" },
    { "--exit-grace 0 x", "--exit-grace 0: a number from 1" },
    { "--kill-grace x x", "--kill-grace x: a number was expected" },
    { "--kill-grace 4294968 x", "--kill-grace 4294968: a number from 0 to 1000000" },
    { "--collective-timeout 4294968 x",
      "--collective-timeout 4294968: a number from 0 to 1000000" },
    { "-x RANK=1 x", "-x RANK: dtrun sets it for every rank" },
    { "-x 9 x", "-x 9: this cannot be the name" },
    { "--unset A=1 x", "--unset A: this cannot be the name" },
    { "--resume --fresh --checkpoint-dir d x", "--resume and --fresh contradict each other" },
    { "--resume x", "--resume needs --checkpoint-dir DIR" },
    { "--push f --no-push x", "--push and --no-push contradict each other" },
    { "--json x", "--json belongs to --dry-run or --check" },
    { "--check --dry-run x", "--check connects to the hosts, and --dry-run to none" },
    { "--check host2:2", "\"host2:2\" looks like a host" },
    { "-np 4 -H host1:2, host2:2 ./train", "\"host2:2\" looks like a host, not like a program: is "
                                           "there a blank before or after a comma in -H?" },
    { "-H a:2, b:2,c:2 ./train", "\"b:2,c:2\" looks like a host" },
    { "-H a:2 [fe80::1]:4 ./train", "\"[fe80::1]:4\" looks like a host" },
    { "-H a:2 u@[::1]:4,b ./train", "\"u@[::1]:4,b\" looks like a host" },
    { "-H a:2 , b:2 ./train", "\",\" looks like a host" },
    { "-H a ,b ./train", "\",b\" looks like a host" },
    { "-H a:2, u@n[1-2]:2 ./train", "\"u@n[1-2]:2\" looks like a host" },
    { "-np 4 host2:2 ./train",
      "\"host2:2\" looks like a host, not like a program: hosts are given with -H" },
    { "4 x", "\"4\" is a number, not a program: is -np missing" },
    { "--output-dir d --tee 3 x", "\"3\" is a number, not a program: --tee takes no value. If" },
    { "-np 1 a : -np 2 b", "several programs in one job (\" : \") are not supported" },
    { "a x : --hosts h b", "several programs in one job" },
};

static void invalid_command_lines_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        struct line l;
        struct dt_options o;
        struct dt_error err = { 0 };

        split(&l, bads[i].line);
        if (parse(&o, l.argc, l.argv, &err) == 0)
            fail_msg("%s was accepted", bads[i].line);
        if (strncmp(err.text, bads[i].says, strlen(bads[i].says)) != 0)
            fail_msg("%s: said: %s", bads[i].line, err.text);
        assert_int_equal(err.exit_code, 2);
        dt_options_free(&o);
        free(l.copy);
    }
}

static void distance_counts_changed_letters(void **state)
{
    static const struct {
        const char *a, *b;
        size_t want;
    } cases[] = {
        { "", "", 0 },
        { "abc", "abc", 0 },
        { "", "abc", 3 },
        { "abc", "", 3 },
        { "abc", "abd", 1 },
        { "abc", "ab", 1 },
        { "ab", "xab", 1 },
        { "kitten", "sitting", 3 },
        { "ab", "ba", 2 },
        { "0123456789012345678901234567890", "0", 30 },
        { "01234567890123456789012345678901", "0", (size_t)-1 },
        { "0", "01234567890123456789012345678901", (size_t)-1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dt_similar_distance(cases[i].a, strlen(cases[i].a), cases[i].b),
                         cases[i].want);
}

static void arguments_keep_every_byte(void **state)
{
    char *argv[] = { "dtrun", "-x", "A=b c\n\"'$x", "./a b", "", " ", "\xff\xfe", "--", NULL };
    struct dt_options o;

    (void)state;
    assert_int_equal(parse(&o, 8, argv, NULL), 0);
    assert_string_equal(o.env.v[0], "x:A=b c\n\"'$x");
    assert_int_equal(o.job.argv.n, 5);
    for (uint32_t i = 0; i < o.job.argv.n; i++)
        assert_string_equal(o.job.argv.v[i], argv[3 + i]);
    assert_null(o.job.argv.v[5]);
    dt_options_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_command_lines_are_parsed),
        cmocka_unit_test(invalid_command_lines_are_refused),
        cmocka_unit_test(distance_counts_changed_letters),
        cmocka_unit_test(arguments_keep_every_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
