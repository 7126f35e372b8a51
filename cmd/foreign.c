#include "cmd/foreign.h"

#include <fnmatch.h>
#include <string.h>

#include "cmd/similar.h"
#include "launcher/base/mem.h"

enum {
    H = DT_HOROVODRUN,
    T = DT_TORCHRUN,
    A = DT_ACCELERATE,
    D = DT_DEEPSPEED,
    M = DT_MPIRUN,
    X = DT_MPIEXEC,
    S = DT_SRUN,
    J = DT_JSRUN
};

/* clang-format off */
#define SAME(launchers, values, text, ...)                                                         \
    { launchers, values, false, DT_FOREIGN_SAME, NULL, NULL, text, { __VA_ARGS__ } }
#define CLASHES(launchers, values, text, ...)                                                      \
    { launchers, values, false, DT_FOREIGN_CLASHES, NULL, NULL, text, { __VA_ARGS__ } }
#define BECOMES(launchers, values, options, text, ...)                                             \
    { launchers, values, false, DT_FOREIGN_BECOMES, NULL, options, text, { __VA_ARGS__ } }
#define NEEDLESS(launchers, values, text, ...)                                                     \
    { launchers, values, false, DT_FOREIGN_NEEDLESS, NULL, NULL, text, { __VA_ARGS__ } }
#define IGNORED(launchers, values, text, ...)                                                      \
    { launchers, values, false, DT_FOREIGN_IGNORED, NULL, NULL, text, { __VA_ARGS__ } }
#define REFUSED(launchers, values, text, ...)                                                      \
    { launchers, values, false, DT_FOREIGN_REFUSED, NULL, NULL, text, { __VA_ARGS__ } }
/* The option has one value, which matches "match". */
#define VALUE(launchers, match, options, text, name)                                               \
    { launchers, 1, false, DT_FOREIGN_BECOMES, match, options, text, { name } }
#define VALUE_NEEDLESS(launchers, match, text, name)                                               \
    { launchers, 1, false, DT_FOREIGN_NEEDLESS, match, NULL, text, { name } }
#define VALUE_REFUSED(launchers, match, text, name)                                                \
    { launchers, 1, false, DT_FOREIGN_REFUSED, match, NULL, text, { name } }
/* The option has one value: a list, each item of which matches "match". */
#define ITEM(launchers, match, options, text, name)                                                \
    { launchers, 1, true, DT_FOREIGN_BECOMES, match, options, text, { name } }
#define ITEM_NEEDLESS(launchers, match, text, name)                                                \
    { launchers, 1, true, DT_FOREIGN_NEEDLESS, match, NULL, text, { name } }
#define ITEM_IGNORED(launchers, match, text, name)                                                 \
    { launchers, 1, true, DT_FOREIGN_IGNORED, match, NULL, text, { name } }
#define ITEM_REFUSED(launchers, match, text, name)                                                 \
    { launchers, 1, true, DT_FOREIGN_REFUSED, match, NULL, text, { name } }
/* The option has two values: a parameter of Open MPI, which matches "match", and its value. */
#define MCA_IGNORED(match, text, ...)                                                              \
    { M, 2, false, DT_FOREIGN_IGNORED, match, NULL, text, { __VA_ARGS__ } }

/* The option may have a value after "=". */
#define OPTIONAL(launchers, kind, match, text, name)                                               \
    { launchers, DT_FOREIGN_OPTIONAL, false, kind, match, NULL, text, { name } }

/* Horovod's library reads this from a variable. */
#define HOROVOD(variable, name) BECOMES(H, 1, "x=HOROVOD_" variable "=%", NULL, name)
#define HOROVOD_SWITCH(variable, name)                                                             \
    BECOMES(H, 0, "x=HOROVOD_" variable "=1", NULL, name),                                         \
        BECOMES(H, 0, "x=HOROVOD_" variable "=0", NULL, "no-" name)

static const char of_open_mpi[] = "it configures Open MPI's daemons; dtrun starts its agents "
                                  "over SSH";
static const char of_mpi[] = "it sets up an MPI library; -x sets what such a library reads";
static const char of_debugger[] = "start the debugger as the program, as in dtrun -np 2 gdb "
                                  "-batch -ex run -args ./train";
static const char of_files[] = "the files are named differently, see --output-dir in dtrun(1)";
static const char of_signals[] = "SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are always passed "
                                 "on, and no other signal is";
static const char of_size[] = "the number of ranks does not change during a job; a lost host's "
                              "ranks move, see --on-host-loss";
static const char of_cores[] = "--bind-to core gives each rank an equal part of its host's cores";
static const char of_sockets[] = "--npernode N starts N ranks on each host; --bind-to socket "
                                 "distributes them over its sockets";
static const char of_failures[] = "a job ends when a rank fails";
static const char of_allocation[] = "ranks share all that the allocation has on their node";
static const char of_binding[] = "--bind-to none, core, socket, numa, l3 or hwthread binds ranks";
static const char of_nodes[] = "dtrun is started once, for all hosts: name them with -H, in the "
                               "order of their ranks";
static const char of_master[] = "dtrun takes a free port of the first host; --iface, or addr= in a "
                                "hostfile, decides the address";
static const char of_accelerate[] = "accelerate gives it to ranks in variables; dtrun-migrate(7), "
                                    "ACCELERATE, says how to set them";
static const char of_devices[] = "CUDA_VISIBLE_DEVICES=0,1 before dtrun, or gpus= in a hostfile, "
                                 "chooses GPUs";
static const char of_including[] = "-H HOST,HOST uses only these hosts of --hostfile; "
                                   "CUDA_VISIBLE_DEVICES=0,1 before dtrun, or gpus= in the hostfile, "
                                   "chooses GPUs";
static const char of_leaving_out[] = "a line ^HOST in a hostfile leaves a host out; gpus= there "
                                     "chooses its GPUs";
static const char of_programs[] = "a job has one program; a shell can choose one by RANK, see Ranks "
                                  "that differ in dtrun(1)";
static const char of_cpu_list[] = "--bind-to divides the CPUs that the host allows; taskset(1) "
                                  "limits these";
static const char of_transport[] = "--transport and --rsh say how hosts are reached, see "
                                   "dtrun-clusters(7)";
static const char of_tools[] = "start the tool as the program, as in dtrun -np 2 strace ./train";
static const char of_ranks[] = "-np N is the number of all ranks, --npernode N that on each host";

static const struct dt_foreign table[] = {
    /* horovodrun */
    SAME(H, 0, NULL, "help", "h"),
    SAME(H, 0, NULL, "version"),
    CLASHES(H, 0, "-v is --verbose here; --version prints the version", "v"),
    SAME(H, 1, "the default is one rank per slot", "np", "num-proc"),
    SAME(H, 0, NULL, "check-build"),
    BECOMES(H, 0, "check-build", NULL, "cb"),
    NEEDLESS(H, 0, "nothing is cached from one job to the next", "disable-cache"),
    SAME(H, 1, "by default each step of the start has a limit of its own; horovodrun gives all of "
               "them 30 s",
         "start-timeout"),
    BECOMES(H, 1, "iface==%", "the last value counts; for several networks write a list",
            "network-interfaces", "network-interface"),
    VALUE(M, "*:nocopy", "output-dir=%", of_files, "output-filename"),
    BECOMES(H | M, 1, "output-dir=% tee", of_files, "output-filename"),
    SAME(H, 0, NULL, "verbose"),
    REFUSED(H | A, 1, "dtrun's configuration file has another format: --config FILE, see FILES in "
                      "dtrun(1); for accelerate's see ACCELERATE in dtrun-migrate(7)", "config-file"),
    SAME(H, 1, NULL, "ssh-port"),
    BECOMES(H, 1, "ssh-port=%", NULL, "p"),
    BECOMES(H, 1, "ssh-identity=%", NULL, "i", "ssh-identity-file"),
    BECOMES(H, 1, "x=HOROVOD_FUSION_THRESHOLD=#", NULL, "fusion-threshold-mb"),
    HOROVOD("CYCLE_TIME", "cycle-time-ms"),
    HOROVOD("CACHE_CAPACITY", "cache-capacity"),
    HOROVOD_SWITCH("HIERARCHICAL_ALLREDUCE", "hierarchical-allreduce"),
    HOROVOD_SWITCH("HIERARCHICAL_ALLGATHER", "hierarchical-allgather"),
    HOROVOD_SWITCH("TORUS_ALLREDUCE", "torus-allreduce"),
    HOROVOD_SWITCH("AUTOTUNE", "autotune"),
    HOROVOD("AUTOTUNE_LOG", "autotune-log-file"),
    HOROVOD("AUTOTUNE_WARMUP_SAMPLES", "autotune-warmup-samples"),
    HOROVOD("AUTOTUNE_STEPS_PER_SAMPLE", "autotune-steps-per-sample"),
    HOROVOD("AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "autotune-bayes-opt-max-samples"),
    HOROVOD("AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "autotune-gaussian-process-noise"),
    REFUSED(H, 1, of_size, "min-np", "min-num-proc", "max-np", "max-num-proc"),
    SAME(H, 1, NULL, "slots-per-host"),
    IGNORED(H, 1, "the number of ranks does not change; --start-timeout limits a start",
            "elastic-timeout"),
    BECOMES(H, 1, "max-restarts=%", "every restart counts", "reset-limit"),
    IGNORED(H, 2, "dtrun has its own rules for hosts that fail, see --on-host-loss",
            "blacklist-cooldown-range"),
    HOROVOD("TIMELINE", "timeline-filename"),
    HOROVOD_SWITCH("TIMELINE_MARK_CYCLES", "timeline-mark-cycles"),
    BECOMES(H, 0, "collective-timeout=0 x=HOROVOD_STALL_CHECK_DISABLE=1",
            "libdtrun still warns", "no-stall-check"),
    BECOMES(H, 0, "x=HOROVOD_STALL_CHECK_DISABLE=0",
            "libdtrun's check is always on, see --collective-timeout", "stall-check"),
    BECOMES(H, 1, "x=HOROVOD_STALL_CHECK_TIME_SECONDS=%",
            "libdtrun warns after half of --collective-timeout, and 60 s at the latest",
            "stall-check-warning-time-seconds"),
    BECOMES(H, 1, "collective-timeout=% x=HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=%",
            "libdtrun's default is 600; Horovod's is 0, for never",
            "stall-check-shutdown-time-seconds"),
    HOROVOD_SWITCH("MPI_THREADS_DISABLE", "mpi-threads-disable"),
    REFUSED(H, 1, "dtrun runs no mpirun: give the options to dtrun itself", "mpi-args"),
    BECOMES(H, 0, "x=NCCL_IB_DISABLE=1", "between hosts libdtrun uses TCP only", "tcp"),
    REFUSED(H, 1, of_binding, "binding-args"),
    HOROVOD("NUM_NCCL_STREAMS", "num-nccl-streams"),
    HOROVOD("THREAD_AFFINITY", "thread-affinity"),
    HOROVOD("GLOO_TIMEOUT_SECONDS", "gloo-timeout-seconds"),
    HOROVOD("LOG_LEVEL", "log-level"),
    BECOMES(H, 0, "x=HOROVOD_LOG_HIDE_TIME=0",
            "--timestamp puts the time before every line of output", "log-with-timestamp",
            "no-log-hide-timestamp"),
    BECOMES(H, 0, "x=HOROVOD_LOG_HIDE_TIME=1", NULL, "log-without-timestamp",
            "log-hide-timestamp"),
    BECOMES(H, 0, "timestamp", NULL, "prefix-timestamp", "prefix-output-with-timestamp"),
    SAME(H, 1, "without slots a host has one", "H", "hosts"),
    SAME(H | M | D, 1, NULL, "hostfile"),
    REFUSED(H, 1, "hosts do not change during a job; to ask the script once: SCRIPT | dtrun "
                  "--hostfile - ...", "host-discovery-script"),
    NEEDLESS(H, 0, "dtrun starts ranks itself, without a controller", "gloo", "mpi", "jsrun"),

    /* torchrun */
    SAME(T, 0, NULL, "help", "h"),
    VALUE(T, "1:1", "nnodes=1", NULL, "nnodes"),
    VALUE_REFUSED(T, "*:*", "the number of hosts does not change during a job: give one number",
                  "nnodes"),
    SAME(T, 1, "the first N of the hosts given are used", "nnodes"),
    BECOMES(T, 1, "npernode=%", "without it dtrun starts one rank per slot", "nproc-per-node"),
    NEEDLESS(T, 1, "ranks find each other without a rendezvous", "rdzv-backend", "rdzv-endpoint",
             "rdzv-id", "rdzv-conf"),
    NEEDLESS(T, 0, "without -H and --hostfile all ranks run on this machine", "standalone"),
    SAME(T | M, 1, "without it a job that has committed a checkpoint is restarted as long as it "
                   "makes progress", "max-restarts"),
    NEEDLESS(T, 1, "the kernel reports deaths at once", "monitor-interval"),
    NEEDLESS(T, 1, "ranks are processes that run the program", "start-method"),
    IGNORED(T, 1, "--report FILE says what happened", "event-log-handler"),
    IGNORED(T, 1, "all ranks have one role; ROLE_RANK is RANK", "role"),
    REFUSED(T, 0, "give python3 -m MODULE as the program", "m", "module"),
    NEEDLESS(T | D, 0, "the program is run as it is given", "no-python"),
    NEEDLESS(T, 0, "LOCAL_RANK is always set", "use-env"),
    REFUSED(T, 0, "give python3 SCRIPT as the program", "run-path"),
    BECOMES(T, 1, "output-dir=% tee", of_files, "log-dir"),
    VALUE_NEEDLESS(T, "0", "output is shown unless --output-dir writes it to files", "redirects"),
    VALUE_NEEDLESS(T, "0", "output is shown unless --output-dir writes it to files", "r"),
    VALUE_NEEDLESS(X, "ssh", "hosts are reached over SSH", "r"),
    REFUSED(T, 1, "--output-dir DIR writes all output to files", "redirects", "r"),
    CLASHES(T, 1, "--tee takes no value here, and belongs to --output-dir", "tee"),
    REFUSED(T, 1, "--output-dir DIR --tee writes all output to files and shows it", "t"),
    IGNORED(T, 1, "--output-dir DIR gives each rank a file of its own", "local-ranks-filter"),
    IGNORED(T, 1, "--output-dir DIR gives each rank a file of its own", "duplicate-stdout-filters",
            "duplicate-stderr-filters"),
    VALUE_NEEDLESS(T | D, "0", "dtrun is started once, for all hosts", "node-rank"),
    REFUSED(T | D, 1, of_nodes, "node-rank"),
    IGNORED(T | D, 1, of_master, "master-addr", "master-port"),
    IGNORED(T, 1, "--iface, or addr= in a hostfile, decides the address", "local-addr"),
    IGNORED(T, 1, "--output-dir and --tee say where output goes", "logs-specs"),
    VALUE(T, "node", "bind-to=numa", NULL, "numa-binding"),
    VALUE(T, "socket", "bind-to=socket", NULL, "numa-binding"),
    VALUE(T, "core-complex", "bind-to=l3", NULL, "numa-binding"),
    VALUE(T, "exclusive", "bind-to=core", NULL, "numa-binding"),
    REFUSED(T, 1, "node, socket, core-complex or exclusive was expected; see also --bind-to",
            "numa-binding"),
    IGNORED(T, 1, of_signals, "signals-to-handle"),
    BECOMES(T, 1, "kill-grace=%", "the default is 5 s; torchrun's is 30", "shutdown-timeout"),
    SAME(T, 0, NULL, "virtual-local-rank"),

    /* accelerate launch */
    BECOMES(A, 1, "np=% gpu-bind=host", NULL, "num-processes"),
    BECOMES(A, 1, "nnodes=%", NULL, "num-machines"),
    VALUE_NEEDLESS(A, "0", "dtrun is started once, for all hosts", "machine-rank"),
    REFUSED(A, 1, of_nodes, "machine-rank"),
    IGNORED(A, 1, of_master, "main-process-ip", "main-process-port"),
    NEEDLESS(A, 0, "ranks run on all hosts that are given", "multi-gpu", "same-network"),
    VALUE_NEEDLESS(A, "all", "ranks may use all GPUs", "gpu-ids"),
    REFUSED(A, 1, of_devices, "gpu-ids"),
    BECOMES(A, 1, "x=ACCELERATE_MIXED_PRECISION=%", NULL, "mixed-precision"),
    BECOMES(A, 0, "x=ACCELERATE_USE_CPU=true", NULL, "cpu"),
    BECOMES(A, 1, "x=OMP_NUM_THREADS=%", NULL, "num-cpu-threads-per-process"),
    BECOMES(A, 0, "bind-to=numa", NULL, "enable-cpu-affinity"),
    BECOMES(A, 1, "hostfile=%", NULL, "mpirun-hostfile", "deepspeed-hostfile"),
    CLASHES(A, 0, "--debug is mpirun's; -x ACCELERATE_DEBUG_MODE=true", "debug"),
    VALUE_NEEDLESS(A, "no", "this is what programs do without it", "dynamo-backend"),
    BECOMES(A, 1, "x=ACCELERATE_DYNAMO_BACKEND=%", NULL, "dynamo-backend"),
    NEEDLESS(A, 1, "hosts are reached over SSH", "deepspeed-multinode-launcher"),
    REFUSED(A, 1, of_including, "deepspeed-inclusion-filter", "deepspeed-exclusion-filter"),
    REFUSED(A, 0, of_accelerate, "use-deepspeed", "use-fsdp", "use-megatron-lm",
            "use-parallelism-config"),
    REFUSED(A, 1, of_accelerate, "deepspeed-*", "fsdp-*", "megatron-lm-*", "parallelism-config-*",
            "fp8-*", "dynamo-*"),
    REFUSED(A, 1, of_accelerate, "zero*", "offload-*", "gradient-*"),
    REFUSED(A, 0, "dtrun starts no programs on TPUs", "tpu", "tpu-*"),

    /* deepspeed */
    CLASHES(D, 1, "-H takes a list of hosts; --hostfile FILE names a file", "H"),
    VALUE_REFUSED(D, "*:*", "the number of hosts does not change during a job: give one number",
                  "num-nodes"),
    BECOMES(D, 1, "nnodes=%", NULL, "num-nodes"),
    BECOMES(D, 1, "npernode=% gpu-bind=host", NULL, "num-gpus", "num-accelerators"),
    REFUSED(D, 1, of_including, "include"),
    CLASHES(D, 1, "-i FILE is --ssh-identity; see --include", "i"),
    REFUSED(D, 0, "give python3 -m MODULE as the program", "module"),
    NEEDLESS(D, 0, "no --local_rank is added to the arguments", "no-local-rank"),
    REFUSED(D, 0, of_nodes, "no-ssh"),
    NEEDLESS(D, 0, "dtrun names each host that it cannot reach", "no-ssh-check"),
    NEEDLESS(D, 0, "hosts that are given are reached over SSH", "force-multi"),
    SAME(D, 1, NULL, "ssh-port"),
    REFUSED(D, 1, "dtrun uses no other launcher: give the options to dtrun itself", "launcher-args"),
    IGNORED(D, 1, "dtrun runs in an allocation; salloc and sbatch make one", "comment"),
    IGNORED(D, 0, "in a shell $! is the process id of dtrun", "save-pid"),
    BECOMES(D, 1, "output-dir=%", of_files, "enable-each-rank-log"),
    REFUSED(D, 1, "deepspeed tunes by starting many jobs: let it do so itself", "autotuning"),
    REFUSED(D, 0, of_size, "elastic-training"),
    REFUSED(D, 1, of_size, "min-elastic-nodes", "max-elastic-nodes"),
    BECOMES(D, 0, "bind-to=core", NULL, "bind-cores-to-rank"),
    REFUSED(D, 1, of_cpu_list, "bind-core-list"),
    REFUSED(D, 1, "let the program activate it, as in sh -c '. ./venv/bin/activate; exec ...'",
            "venv-script"),

    /* mpirun */
    SAME(M, 0, "it takes no topic", "help", "h"),
    SAME(M, 0, NULL, "version", "verbose", "v"),
    BECOMES(M, 0, "version", NULL, "V"),
    SAME(M, 1, NULL, "np", "n"),
    REFUSED(M | S, 1, "for mpirun's -c N write -np N; for srun's, see --bind-to", "c"),
    BECOMES(M, 1, "npernode=%", NULL, "N"),
    SAME(M, 1, NULL, "npernode"),
    BECOMES(M, 0, "npernode=1", NULL, "pernode"),
    VALUE(M, "*:node", "npernode=%", NULL, "ppr"),
    SAME(M, 1, "a number alone means ranks on each host", "ppr"),
    REFUSED(M, 1, of_sockets, "npersocket"),
    SAME(M, 1, "without slots a host has one", "H", "host"),
    SAME(M, 1, NULL, "machinefile"),
    BECOMES(M, 1, "hostfile=%", NULL, "default-hostfile"),
    REFUSED(M | X, 0, "leave this machine out of -H and --hostfile", "nolocal"),
    REFUSED(M, 1, "ranks follow the order of hosts and slots in --hostfile", "rankfile", "rf"),
    IGNORED(M, 1, "--nnodes N uses the first N hosts", "max-vm-size"),
    BECOMES(M, 0, "no-oversubscribe=no", "more ranks than slots are allowed, with a warning",
            "oversubscribe"),
    BECOMES(M, 0, "no-oversubscribe", NULL, "nooversubscribe"),
    VALUE(M, "ppr:*:node", "npernode=%", NULL, "map-by"),
    VALUE_REFUSED(M, "*:PE=*", of_cores, "map-by"),
    VALUE_REFUSED(M, "ppr:*:socket", of_sockets, "map-by"),
    VALUE(M, ":OVERSUBSCRIBE", "no-oversubscribe=no", NULL, "map-by"),
    VALUE(M, "*:OVERSUBSCRIBE", "map-by=% no-oversubscribe=no", NULL, "map-by"),
    VALUE_REFUSED(M, "core", "--map-by slot or node places ranks, and --bind-to core binds them",
                  "map-by"),
    VALUE_REFUSED(M, "socket",
                  "--map-by slot or node places ranks, and --bind-to socket binds them", "map-by"),
    VALUE_REFUSED(M, "numa", "--map-by slot or node places ranks, and --bind-to numa binds them",
                  "map-by"),
    SAME(M, 1, "the known values are slot and node", "map-by"),
    BECOMES(M, 1, "map-by=%", NULL, "mapby"),
    BECOMES(M, 0, "map-by=node", NULL, "bynode"),
    BECOMES(M, 0, "map-by=slot", NULL, "byslot"),
    REFUSED(M, 0, "--map-by slot or node places ranks, and --bind-to core binds them", "bycore"),
    REFUSED(M, 1, "ranks are numbered as they are placed: --map-by slot or node", "rank-by",
            "rankby"),
    VALUE(M, "l3cache", "bind-to=l3", NULL, "bind-to"),
    VALUE(M, "package", "bind-to=socket", NULL, "bind-to"),
    VALUE(M, "*:overload-allowed", "bind-to=%", NULL, "bind-to"),
    VALUE(M, "*:if-supported", "bind-to=%", NULL, "bind-to"),
    SAME(M, 1, "the default is none", "bind-to"),
    BECOMES(M, 1, "bind-to=%", NULL, "bindto"),
    BECOMES(M, 0, "bind-to=core", NULL, "bind-to-core"),
    BECOMES(M, 0, "bind-to=socket", NULL, "bind-to-socket"),
    REFUSED(M, 1, of_cpu_list, "cpu-list", "cpu-set"),
    IGNORED(M, 1, of_cores, "cpus-per-proc", "cpus-per-rank"),
    IGNORED(M, 0, "-H and --hostfile say how many slots a host has; --bind-to hwthread binds to "
                  "hardware threads", "use-hwthread-cpus"),
    IGNORED(M, 1, "--bind-to takes the topology from the kernel", "cartofile", "cf"),
    SAME(M, 0, "it is printed on standard error", "report-bindings", "display-map"),
    BECOMES(M, 0, "display-map", NULL, "display-devel-map", "display-diffable-map"),
    IGNORED(M, 0, "--dry-run prints hosts and ranks, and --check what each host has",
            "display-allocation", "display-devel-allocation"),
    IGNORED(M, 0, "--check prints what each host has; as in Open MPI 4, this option takes no value",
            "display-topo"),
    ITEM(M, "map", "display-map", NULL, "display"),
    ITEM(M, "map-devel", "display-map", NULL, "display"),
    ITEM(M, "bind", "report-bindings", NULL, "display"),
    ITEM_IGNORED(M, NULL, "--dry-run prints hosts and ranks, and --check what each host has",
                 "display"),
    BECOMES(M, 0, "dry-run", NULL, "do-not-launch"),

    BECOMES(M, 0, "tag", NULL, "tag-output"),
    BECOMES(M, 0, "timestamp", NULL, "timestamp-output"),
    BECOMES(M, 0, "merge-stderr", NULL, "merge-stderr-to-stdout"),
    BECOMES(M, 1, "output-dir=% tee", of_files, "output-directory"),
    ITEM(M, "tag", "tag", NULL, "output"),
    ITEM(M, "timestamp", "timestamp", NULL, "output"),
    ITEM(M, "merge-stderr-to-stdout", "merge-stderr", NULL, "output"),
    ITEM(M, "dir=*:nocopy", "output-dir=%", of_files, "output"),
    ITEM(M, "file=*:nocopy", "output-dir=%", of_files, "output"),
    ITEM(M, "dir=*", "output-dir=% tee", of_files, "output"),
    ITEM(M, "file=*", "output-dir=% tee", of_files, "output"),
    ITEM_REFUSED(M, NULL, "see --tag, --timestamp, --merge-stderr and --output-dir", "output"),
    VALUE(M, "0", "unbuffered", "programs write each line at once", "stream-buffering"),
    VALUE(M, "1", "unbuffered", "programs write each line at once", "stream-buffering"),
    IGNORED(M, 1, "--unbuffered lets programs write each line at once", "stream-buffering"),
    REFUSED(M, 0, "--report FILE writes JSON", "xml"),
    REFUSED(M, 1, "--report FILE writes JSON", "xml-file"),
    REFUSED(M, 1, "--output-dir DIR writes each rank's output to files of its own", "xterm"),
    NEEDLESS(M | D, 0, "dtrun is silent while all is well", "quiet", "q"),
    BECOMES(M, 0, "verbose", NULL, "debug-devel", "d", "debug-daemons", "debug-daemons-file",
            "show-progress"),
    NEEDLESS(M, 0, "each failure is named once", "no-aggregate-help"),
    CLASHES(M, 0, "-p PORT is --ssh-port, as in horovodrun", "p"),
    REFUSED(M, 0, "--report FILE and --json write JSON", "parsable", "parseable"),
    SAME(M, 1, "the value is a rank, all or none", "stdin"),

    SAME(M, 1, "most of the environment is passed on without it, see ENVIRONMENT in dtrun(1)", "x"),
    BECOMES(M, 1, "x=%", NULL, "set-env"),
    BECOMES(M, 1, "unset=%", NULL, "unset-env"),
    REFUSED(M, 2, "-x NAME=VALUE sets a variable as a whole", "prepend-env", "append-env"),
    NEEDLESS(M, 0, "most of the environment is passed on anyway, see ENVIRONMENT in dtrun(1)",
             "fwd-environment"),
    SAME(M, 1, NULL, "wdir"),
    BECOMES(M, 1, "wdir=%", NULL, "wd"),
    REFUSED(M, 0, "--wdir DIR names the directory of the ranks", "set-cwd-to-session-dir"),
    BECOMES(M, 1, "x=PATH=%", "the ranks see it, too", "path"),
    { M, 1, true, DT_FOREIGN_BECOMES, NULL, "push=%",
      "they go to a directory of the job's own, see --push in dtrun(1)", { "preload-files" } },
    REFUSED(M, 0, "--push PROGRAM sends the program", "preload-binary"),
    REFUSED(M | X, 0, "for mpirun's -s, --push PROGRAM sends the program; for mpiexec's -s RANKS see "
                      "--stdin", "s"),
    NEEDLESS(M, 1, "the agent is sent to hosts where it is missing", "prefix", "app-pmix-prefix"),
    NEEDLESS(M, 0, "the agent is sent to hosts where it is missing", "noprefix", "no-app-prefix"),
    NEEDLESS(M | X, 1, "no directory is made for a session", "tmpdir"),
    REFUSED(M, 1, of_programs, "app", "file"),
    REFUSED(M, 0, "argv is the same for all ranks; RANK in the environment tells them apart",
            "index-argv-by-rank"),

    SAME(M, 1, "the exit code is 124", "timeout"),
    BECOMES(M, 1, "start-timeout=%", NULL, "spawn-timeout"),
    IGNORED(M, 0, "where ranks hang, --collective-timeout names them and their last calls",
            "report-state-on-timeout", "get-stack-traces"),
    BECOMES(M, 0, "max-restarts=0", NULL, "disable-recovery"),
    IGNORED(M, 0, "a job that has committed a checkpoint is restarted anyway, and any other with "
                  "--max-restarts N", "enable-recovery"),
    REFUSED(M, 0, "a job ends when its ranks have ended; --max-restarts N restarts ranks that "
                  "fail", "continuous"),
    IGNORED(M, 1, of_signals, "forward-signals"),
    REFUSED(M, 1, "see --max-restarts, --timeout, --dry-run and --report", "runtime-options",
            "rtos"),
    NEEDLESS(M, 0, "a job has no child jobs", "report-child-jobs-separately"),
    REFUSED(M, 1, "--report FILE says what happened", "report-events", "report-pid", "report-uri"),
    REFUSED(M, 0, "--report FILE says what happened", "output-proctable"),
    REFUSED(M, 0, of_debugger, "debug", "tv", "stop-on-exec", "stop-in-init", "stop-in-app"),
    REFUSED(M, 1, of_debugger, "debugger"),

    MCA_IGNORED("plm_rsh_agent*", "--rsh 'COMMAND %h %c' reaches hosts by such a command, which must "
                                  "pass on its standard input", "mca", "gmca"),
    MCA_IGNORED("plm_*", of_open_mpi, "mca", "gmca"),
    MCA_IGNORED("orte_*", of_open_mpi, "mca", "gmca"),
    MCA_IGNORED("oob_*", of_open_mpi, "mca", "gmca"),
    MCA_IGNORED("rmaps_*", "--map-by slot or node places ranks", "mca", "gmca"),
    BECOMES(M, 2, "x=OMPI_MCA_&", NULL, "mca", "gmca", "omca", "gomca"),
    IGNORED(M, 2, of_open_mpi, "prtemca"),
    IGNORED(M, 2, of_mpi, "pmixmca"),
    IGNORED(M, 1, "dtrun has no MCA parameters; ~/.config/dtrun/config holds options", "am", "amca",
            "tune"),
    NEEDLESS(M, 0, "root may start jobs", "allow-run-as-root"),
    NEEDLESS(M, 0, of_open_mpi, "do-not-resolve", "enable-instant-on-support", "fwd-mpirun-port",
             "leave-session-attached", "novm", "use-regexp"),
    NEEDLESS(M, 0, "hosts may differ", "hetero-nodes", "uniform-nodes"),
    IGNORED(M, 1, of_open_mpi, "launch-agent"),
    NEEDLESS(M, 1, "ranks are processes of any kind", "personality", "pset"),
    REFUSED(M, 0, of_open_mpi, "dvm", "terminate"),
    REFUSED(M, 1, of_open_mpi, "hnp", "ompi-server"),
    IGNORED(M, 1, of_mpi, "with-ft", "initial-errhandler", "memory-alloc-kinds", "gpu-support"),
    IGNORED(M, 0, of_mpi, "display-comm", "display-comm-finalize"),
    REFUSED(M, 0, "-np says how many ranks there are", "soft"),
    REFUSED(M, 1, "-H and --hostfile say which hosts are used", "arch"),

    /* mpiexec of MPICH */
    SAME(X, 0, NULL, "help", "version", "verbose", "v"),
    BECOMES(X, 0, "check-build", NULL, "info"),
    SAME(X, 1, "the default is one rank per slot", "np", "n"),
    BECOMES(X, 1, "npernode=%", NULL, "ppn", "perhost"),
    BECOMES(X, 1, "hostfile=%", NULL, "f"),
    SAME(X, 1, NULL, "hostfile", "machinefile"),
    SAME(X, 1, "without slots a host has one", "hosts", "host"),
    REFUSED(X, 0, "leave this machine out of -H and --hostfile", "skip-launch-node"),
    NEEDLESS(X, 1, "the hosts of a batch job are found without it", "rmk"),
    VALUE_NEEDLESS(X, "ssh", "hosts are reached over SSH", "launcher"),
    VALUE_NEEDLESS(X, "ssh", "hosts are reached over SSH", "bootstrap"),
    VALUE(X | D, "slurm", "transport=srun", NULL, "launcher"),
    VALUE(X, "slurm", "transport=srun", NULL, "bootstrap"),
    REFUSED(X | D, 1, of_transport, "launcher"),
    REFUSED(X, 1, of_transport, "bootstrap", "launcher-exec", "bootstrap-exec",
            "bootstrap-exec-args"),
    NEEDLESS(X, 1, "dtrun knows the names of this machine", "localhost"),
    NEEDLESS(X, 0, "ranks do not get the names of hosts", "disable-hostname-propagation"),
    NEEDLESS(X, 0, "hosts need not share paths, and --push sends the program", "hybrid-hosts"),
    IGNORED(X, 1, "ranks follow the order of hosts in -H or --hostfile", "order-nodes"),
    REFUSED(X, 1, "the order of hosts in -H or --hostfile places ranks", "rankmap"),
    SAME(X, 1, "the known values are slot and node", "map-by"),
    SAME(X, 1, "dtrun(1) lists the known values", "bind-to"),
    IGNORED(X, 1, "with --bind-to numa the kernel gives a rank memory that is near", "membind"),
    NEEDLESS(X, 1, "--bind-to takes the topology from the kernel", "topolib"),
    IGNORED(X, 1, "a rank sees one GPU, and with --gpu-bind host all that its host's ranks share",
            "gpus-per-proc"),
    BECOMES(X, 2, "x=&", NULL, "genv"),
    { X, 1, true, DT_FOREIGN_BECOMES, NULL, "x=%", NULL, { "genvlist", "envlist" } },
    CLASHES(X, 2, "--env names a framework here; -genv NAME VALUE sets a variable", "env"),
    NEEDLESS(X, 0, "most of the environment is passed on anyway, see ENVIRONMENT in dtrun(1)",
             "genvall", "envall"),
    REFUSED(X, 0, "--unset NAME removes a variable", "genvnone", "envnone"),
    SAME(X, 1, NULL, "wdir"),
    REFUSED(X, 1, of_programs, "configfile"),
    SAME(X, 1, "the value is a list of networks", "iface"),
    BECOMES(X, 0, "tag", NULL, "prepend-rank", "l"),
    IGNORED(X, 1, "lines begin with [rank]; --timestamp puts the time before them",
            "prepend-pattern"),
    REFUSED(X, 1, "--output-dir DIR gives each rank files of its own", "outfile-pattern",
            "errfile-pattern"),
    IGNORED(X, 0, "--report FILE says how each rank ended", "print-all-exitcodes"),
    IGNORED(X, 0, "--verbose and --report FILE say what was done", "profile"),
    REFUSED(X, 0, "a job ends when a rank fails; --max-restarts N restarts it",
            "disable-auto-cleanup"),
    NEEDLESS(X, 1, "dtrun always uses epoll", "demux"),
    NEEDLESS(X, 0, "X11 is not forwarded", "disable-x"),
    IGNORED(X, 0, "X11 is not forwarded", "enable-x"),
    IGNORED(X, 1, "all processes of a job start at once", "usize"),
    IGNORED(X, 1, "dtrun has no name server", "nameserver"),
    IGNORED(X, 0, "ranks use PMI_FD", "pmi-port"),
    IGNORED(X, 1, of_mpi, "memory-alloc-kinds"),
    BECOMES(X, 0, "version", NULL, "V"),
    BECOMES(X, 1, "npernode=%", NULL, "grr"),
    BECOMES(X, 0, "map-by=node", NULL, "rr"),
    BECOMES(X, 1, "hostfile=%", NULL, "machine"),
    BECOMES(X, 1, "hosts=%", NULL, "hosts-group"),
    BECOMES(X, 0, "display-map", NULL, "print-rank-map"),
    REFUSED(X, 1, of_binding, "binding"),
    NEEDLESS(X, 0, "lines are always whole", "ordered-output"),
    NEEDLESS(X, 0, "nothing is left when a job has ended", "cleanup"),
    NEEDLESS(X, 0, "no configuration of mpiexec is read", "noconf"),
    NEEDLESS(X, 0, "each host has one connection", "localroot", "pmi-aggregate",
             "pmi-noaggregate"),
    NEEDLESS(X, 1, "each host has one connection", "branch-count", "pmi-connect"),
    IGNORED(X, 1, "--unset NAME removes a variable", "envexcl", "genvexcl"),
    IGNORED(X, 1, "ranks have the umask of a login on their host", "umask"),
    REFUSED(X, 0, of_debugger, "gdb"),
    REFUSED(X, 1, of_tools, "gtool", "gtoolfile"),
    REFUSED(X, 0, of_tools, "aps", "mps"),
    REFUSED(X, 0, "-x LD_PRELOAD=LIBRARY loads the library of such a tool", "check-mpi", "trace"),

    /* srun */
    SAME(S, 0, NULL, "help", "h", "version", "verbose", "v"),
    BECOMES(S, 0, "version", NULL, "V"),
    NEEDLESS(S, 0, "dtrun is silent while all is well", "quiet"),
    SAME(S, 1, "the default is one rank per slot", "n"),
    BECOMES(S, 1, "np=%", NULL, "ntasks"),
    CLASHES(S, 1, "-N N is --npernode N, as in mpirun; --nnodes N uses the first N hosts", "N"),
    VALUE_REFUSED(S, "*-*", "give one number", "nodes"),
    BECOMES(S, 1, "nnodes=%", NULL, "nodes"),
    BECOMES(S, 1, "npernode=%", NULL, "ntasks-per-node"),
    REFUSED(S, 1, of_sockets, "ntasks-per-socket"),
    IGNORED(S, 1, of_cores, "cpus-per-task"),
    BECOMES(S, 1, "hosts=%", NULL, "nodelist", "w"),
    REFUSED(S | D, 1, of_leaving_out, "exclude"),
    CLASHES(S, 1, "-x NAME passes on a variable; a line ^HOST in a hostfile leaves a host out",
            "x"),
    VALUE(S, "block", "map-by=slot", NULL, "distribution"),
    VALUE(S, "cyclic", "map-by=node", NULL, "distribution"),
    REFUSED(S, 1, "--map-by slot or node places ranks", "distribution"),
    VALUE(S, "none", "bind-to=none", NULL, "cpu-bind"),
    VALUE(S, "cores", "bind-to=core", NULL, "cpu-bind"),
    VALUE(S, "sockets", "bind-to=socket", NULL, "cpu-bind"),
    VALUE(S, "ldoms", "bind-to=numa", NULL, "cpu-bind"),
    VALUE(S, "threads", "bind-to=hwthread", NULL, "cpu-bind"),
    REFUSED(S, 1, of_binding, "cpu-bind"),
    CLASHES(S, 1, "--gpu-bind takes rank, host or none", "gpu-bind"),
    BECOMES(S, 0, "tag", NULL, "label", "l"),
    SAME(S, 0, NULL, "unbuffered"),
    BECOMES(S, 0, "unbuffered", NULL, "u"),
    REFUSED(S, 1, "--output-dir DIR gives each rank files of its own", "error", "o"),
    REFUSED(S | D | J, 1, "for srun's -e FILE see --output-dir, for deepspeed's -e HOSTS --exclude, "
                          "for aprun's -e NAME=VALUE -x", "e"),
    CLASHES(S, 1, "--output is mpirun's; --output-dir DIR gives each rank files of its own",
            "output"),
    REFUSED(S, 1, "standard input goes to rank 0, or to others with --stdin", "input"),
    CLASHES(S, 1, "-i FILE is --ssh-identity, as in horovodrun", "i"),
    REFUSED(S, 0, "--unbuffered makes standard output a terminal", "pty"),
    ITEM_NEEDLESS(S, "ALL", "most of the environment is passed on anyway, see ENVIRONMENT in "
                            "dtrun(1)", "export"),
    ITEM_REFUSED(S, "NONE", "--unset NAME removes a variable", "export"),
    ITEM(S, NULL, "x=%", "the rest of the environment is passed on, too", "export"),
    BECOMES(S, 1, "wdir=%", NULL, "chdir", "D"),
    OPTIONAL(S, DT_FOREIGN_REFUSED, "0", of_failures, "kill-on-bad-exit"),
    OPTIONAL(S, DT_FOREIGN_NEEDLESS, NULL, of_failures, "kill-on-bad-exit"),
    NEEDLESS(S, 0, of_failures, "K", "K1"),
    REFUSED(S, 0, of_failures, "K0"),
    VALUE_NEEDLESS(S, "0", "without --exit-grace a job waits for all ranks", "wait"),
    VALUE_NEEDLESS(S, "0", "without --exit-grace a job waits for all ranks", "W"),
    BECOMES(S, 1, "exit-grace=%", NULL, "wait", "W"),
    REFUSED(S, 1, "--timeout SECONDS ends a job", "time"),
    CLASHES(S, 1, "-t is torchrun's; --timeout SECONDS ends a job", "t"),
    NEEDLESS(S, 0, "a job that may be restarted goes on without a lost node", "no-kill"),
    REFUSED(S, 0, of_programs, "multi-prog"),
    OPTIONAL(S, DT_FOREIGN_REFUSED, NULL, "--push PROGRAM sends the program", "bcast"),
    CLASHES(S, 1, "--mpi takes no value, as in horovodrun; PMI-1 and PMIx are found without it",
            "mpi"),
    NEEDLESS(S, 0, of_allocation, "overlap"),
    OPTIONAL(S, DT_FOREIGN_NEEDLESS, NULL, of_allocation, "exclusive"),
    IGNORED(S, 1, of_allocation, "gres", "gpus", "gpus-per-node", "gpus-per-task", "mem",
            "mem-per-cpu"),
    IGNORED(S, 1, of_allocation, "G"),
    IGNORED(S, 1, "dtrun runs in an allocation; salloc and sbatch make one", "account", "A",
            "job-name", "J", "partition", "qos"),

    /* jsrun, aprun, flux run and the mpiexec of PALS */
    REFUSED(J, 1, of_ranks, "nrs", "tasks-per-rs", "a", "rs-per-host"),
    BECOMES(J, 1, "npernode=%", NULL, "tasks-per-node"),
    IGNORED(J, 1, of_cores, "cpu-per-rs", "cores-per-task", "depth", "j"),
    IGNORED(J, 1, "a rank sees one GPU, and with --gpu-bind host all that its host's ranks share",
            "gpu-per-rs", "g"),
    REFUSED(J, 1, of_binding, "bind", "b", "cc"),
    REFUSED(J, 1, of_sockets, "S"),
    REFUSED(J, 1, "--map-by slot or node places ranks", "launch-distribution"),
    IGNORED(J, 1, "dtrun uses the hosts in the order of the batch job", "latency-priority"),
    BECOMES(J, 1, "hosts=%", NULL, "L"),
    NEEDLESS(J, 0, "hosts and slots are those of the batch job", "B"),
    BECOMES(J, 1, "x=%", NULL, "E"),
    IGNORED(J, 1, of_mpi, "smpiargs", "M"),
    REFUSED(J, 1, of_programs, "erf-input", "U"),
    VALUE_REFUSED(J, "0", of_failures, "exit-on-error"),
    VALUE_REFUSED(J, "0", of_failures, "X"),
    NEEDLESS(J, 1, of_failures, "exit-on-error", "X"),
    BECOMES(J, 0, "tag", NULL, "label-io"),
    IGNORED(J, 1, "it sets up flux-shell(1)", "setopt"),
    REFUSED(J, 1, "--timeout SECONDS ends a job", "time-limit"),
};
/* clang-format on */

const struct dt_foreign *dt_foreign_row(size_t i)
{
    return i < sizeof table / sizeof *table ? &table[i] : NULL;
}

static bool has_name(const struct dt_foreign *row, const char *name, size_t n)
{
    for (size_t k = 0; k < DT_FOREIGN_NAMES && row->names[k]; k++)
        if (dt_similar_same(row->names[k], name, n))
            return true;
    return false;
}

static bool stands_aside(const struct dt_foreign *row)
{
    return row->kind == DT_FOREIGN_SAME || row->kind == DT_FOREIGN_CLASHES;
}

const struct dt_foreign *dt_foreign_find(const char *name, size_t n, const char *value)
{
    for (const struct dt_foreign *row = table; row < table + sizeof table / sizeof *table; row++) {
        if (stands_aside(row) || !has_name(row, name, n))
            continue;
        if (value ? !row->match || fnmatch(row->match, value, FNM_CASEFOLD) == 0
                  : !row->match || row->values != DT_FOREIGN_OPTIONAL)
            return row;
    }
    return NULL;
}

char *dt_foreign_part(const struct dt_foreign *row, const char *value)
{
    const char *pattern = row->match ? row->match : "*", *last = strrchr(pattern, '*');
    size_t before = strcspn(pattern, "*");

    if (!value || !last)
        return dt_xstrdup("");
    return dt_xstrndup(value + before, strlen(value) - before - strlen(last + 1));
}

const char *dt_foreign_launcher(const struct dt_strs *argv, const char **instead)
{
    static const char program[] = "the program", script[] = "python3 SCRIPT";
    static const char *const launchers[][2] = {
        { "mpirun", program },
        { "mpiexec", program },
        { "mpiexec.hydra", program },
        { "orterun", program },
        { "prterun", program },
        { "horovodrun", program },
        { "srun", program },
        { "jsrun", program },
        { "aprun", program },
        { "torchrun", script },
        { "torch.distributed.run", script },
        { "torch.distributed.launch", script },
        { "deepspeed", script },
        { "accelerate", script },
        { "accelerate.commands.launch", script },
    };
    const char *name = argv->n ? basename(argv->v[0]) : "";

    if (strncmp(name, "python", 6) == 0 && argv->n > 2 && strcmp(argv->v[1], "-m") == 0)
        name = argv->v[2];
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (strcmp(name, launchers[i][0]) == 0) {
            *instead = launchers[i][1];
            return name;
        }
    }
    return NULL;
}
