/* A rank of an MPI program, which does not use dtrun's API. The tests build it with each MPI's own
 * compiler. The first argument says what it does, in most cases when all ranks have computed their
 * sum:
 *
 * - sum: prints the sum
 * - leave: the same, but exits without MPI_Finalize
 * - end: the same as sum for Open MPI, because with version 5 a rank fails if another one that it
 * talks to over TCP exits without MPI_Finalize; the same as leave for MPICH, because Debian's may
 * hang in MPI_Finalize between hosts, even under its own mpiexec: one rank waits in UCX, the others
 * in PMI's barrier
 * - error: rank 1 sends to a rank that does not exist, the others wait for it
 * - abort CODE: rank 1 calls MPI_Abort, the others wait for it
 * - absent: rank 1 exits with 0 without MPI_Init, the others wait for it
 * - desert: rank 1 exits with 0 without MPI_Finalize, the others wait for it
 * - die: rank 1 is killed, the others wait for it
 * - die-once: the same in the first generation, and end in the next one
 * - exit CODE: rank 1 exits with CODE after MPI_Finalize
 * - after COMMAND...: executes COMMAND after MPI_Finalize
 * - wait: prints where MPI has its files, and waits for a signal
 * - catch: waits for SIGUSR1, and goes on
 * - spawn: rank 0 tries MPI_Comm_spawn
 * - connect: twice, the odd ranks look up where the even ones accept a connection, and all compute
 * a sum
 * - session: all ranks, and then the even and the odd ones, compute a sum in a communicator of a
 * session
 * - info: rank 0 prints MPI_INFO_ENV; MPI_Init gets no arguments */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef OPEN_MPI
static const char end[] = "sum";
#else
static const char end[] = "leave";
#endif

static void spawn(int rank)
{
    MPI_Comm children;
    int r;

    if (rank != 0)
        return;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    r = MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                       MPI_ERRCODES_IGNORE);
    printf("spawn %s\n", r == MPI_SUCCESS ? "went well" : "refused");
}

static void connect_halves(int rank)
{
    static const char name[] = "dtrun-test";
    int server = rank % 2 == 0, value = rank + 1, sum;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, between, both;

    MPI_Comm_split(MPI_COMM_WORLD, server, rank, &half);
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(name, MPI_INFO_NULL, port);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Lookup_name(name, MPI_INFO_NULL, port);
    if (server)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &between);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &between);
    MPI_Intercomm_merge(between, !server, &both);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, both);
    printf("rank %d: sum %d\n", rank, sum);
    MPI_Comm_free(&both);
    MPI_Comm_disconnect(&between);
    if (rank == 0) {
        MPI_Unpublish_name(name, MPI_INFO_NULL, port);
        MPI_Close_port(port);
    }
    MPI_Comm_free(&half);
    MPI_Barrier(MPI_COMM_WORLD);
}

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
static int sum_in(MPI_Group group, const char *tag, int value)
{
    MPI_Comm comm, copy;
    int sum;

    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_dup(comm, &copy);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, copy);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    return sum;
}

static void use_session(int rank, int size)
{
    int half[3] = { rank % 2, size - 1, 2 }, of_all, of_half;
    MPI_Group all, some;
    MPI_Session session;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
    MPI_Group_range_incl(all, 1, &half, &some);
    of_all = sum_in(all, "org.dtrun.all", rank + 1);
    of_half = sum_in(some, "org.dtrun.half", rank + 1);
    printf("rank %d: sums %d and %d\n", rank, of_all, of_half);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    MPI_Session_finalize(&session);
}
#else
static void use_session(int rank, int size)
{
    (void)rank;
    (void)size;
    printf("MPI has no sessions\n");
}
#endif

static void print_info(int rank)
{
    static const char *const keys[] = { "command", "argv",    "maxprocs",      "soft",
                                        "wdir",    "ompi_np", "ompi_num_apps", "ompi_first_rank" };
    char value[MPI_MAX_INFO_VAL];
    int found;

    for (size_t i = 0; rank == 0 && i < sizeof keys / sizeof *keys; i++) {
        MPI_Info_get(MPI_INFO_ENV, keys[i], sizeof value - 1, value, &found);
        printf("%s: %s\n", keys[i], found ? value : "not set");
    }
}

static void wait_for_signal(int rank)
{
    const char *files = getenv("OMPI_MCA_orte_tmpdir_base");

    printf("rank %d waits, files in %s\n", rank, files ? files : "");
    fflush(stdout);
    for (;;)
        pause();
}

/* Threads of MPI must not get the signal, so it is blocked before there are any. */
static void block_signal(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGUSR1);
    sigprocmask(SIG_BLOCK, set, NULL);
}

static void catch_signal(int rank, const sigset_t *set)
{
    int signo;

    printf("rank %d waits\n", rank);
    fflush(stdout);
    sigwait(set, &signo);
}

int main(int argc, char **argv)
{
    const char *generation = getenv("DTRUN_GENERATION");
    const char *what = argc > 1 ? argv[1] : "sum";
    int rank, size, value, sum, local;
    MPI_Comm host;
    sigset_t set;

    if (strcmp(what, "catch") == 0)
        block_signal(&set);
    if (strcmp(what, "absent") == 0 && strcmp(getenv("DTRUN_RANK"), "1") == 0)
        return 0;
    if (strcmp(what, "info") == 0)
        MPI_Init(NULL, NULL);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &local);
    value = rank + 1;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (strcmp(what, "die-once") == 0)
        what = generation && strcmp(generation, "1") == 0 ? "die" : "end";
    if (strcmp(what, "end") == 0)
        what = end;
    if (strcmp(what, "sum") == 0 || strcmp(what, "leave") == 0)
        printf("rank %d of %d: sum %d, %d on this host\n", rank, size, sum, local);
    if (strcmp(what, "spawn") == 0)
        spawn(rank);
    for (int i = 0; strcmp(what, "connect") == 0 && i < 2; i++)
        connect_halves(rank);
    for (int i = 0; strcmp(what, "session") == 0 && i < 2; i++)
        use_session(rank, size);
    if (strcmp(what, "info") == 0)
        print_info(rank);
    if (rank == 1 && strcmp(what, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
    if (rank == 1 && strcmp(what, "error") == 0)
        MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    if (rank == 1 && strcmp(what, "desert") == 0)
        _exit(0);
    if (rank == 1 && strcmp(what, "die") == 0)
        raise(SIGKILL);
    if (strcmp(what, "wait") == 0)
        wait_for_signal(rank);
    if (strcmp(what, "catch") == 0)
        catch_signal(rank, &set);
    MPI_Barrier(MPI_COMM_WORLD);
    fflush(stdout);
    if (strcmp(what, "leave") == 0)
        _exit(0);
    MPI_Comm_free(&host);
    MPI_Finalize();
    if (strcmp(what, "after") == 0)
        execvp(argv[2], argv + 2);
    return rank == 1 && strcmp(what, "exit") == 0 ? atoi(argv[2]) : 0;
}
