/* Names of the environment variables that the agent, ranks and users set. dtrun(1) explains
 * them. */
#ifndef DT_WIRE_ENV_H
#define DT_WIRE_ENV_H

#define DT_ENV_RANK               "DTRUN_RANK"
#define DT_ENV_SIZE               "DTRUN_SIZE"
#define DT_ENV_LOCAL_RANK         "DTRUN_LOCAL_RANK"
#define DT_ENV_LOCAL_SIZE         "DTRUN_LOCAL_SIZE"
#define DT_ENV_NODE_RANK          "DTRUN_NODE_RANK"
#define DT_ENV_NODES              "DTRUN_NODES"
#define DT_ENV_JOB_ID             "DTRUN_JOB_ID"
#define DT_ENV_GENERATION         "DTRUN_GENERATION"
#define DT_ENV_RESTART_COUNT      "DTRUN_RESTART_COUNT"
#define DT_ENV_CHECKPOINT_DIR     "DTRUN_CHECKPOINT_DIR"
#define DT_ENV_OUTPUT_DIR         "DTRUN_OUTPUT_DIR"
#define DT_ENV_FRESH              "DTRUN_FRESH"  /* "1": --fresh, and no checkpoint committed yet */
#define DT_ENV_RESUME             "DTRUN_RESUME" /* "1": --resume, and none committed yet */
#define DT_ENV_AGENT_FD           "DTRUN_AGENT_FD" /* number of the inherited SOCK_SEQPACKET socket */

#define DT_ENV_HOSTID             "DTRUN_HOSTID" /* read by agents: overrides the host's identity */
#define DT_ENV_AGENT              "DTRUN_AGENT"  /* read by dtrun: path of dtrun-agent to use */
#define DT_ENV_COLLECTIVE_TIMEOUT "DTRUN_COLLECTIVE_TIMEOUT" /* read by dtrun: seconds */
#define DT_ENV_ALONE              "DTRUN_ALONE" /* read by ranks: "1": always a job of one rank */
#define DT_ENV_ISA                "DTRUN_ISA" /* read by ranks: the instruction set of reductions */
/* read by ranks: wire format of f32 sums between hosts */
#define DT_ENV_WIRE          "DTRUN_WIRE"
#define DT_ENV_TUNING        "DTRUN_TUNING" /* read by rank 0: the file with the thresholds */
#define DT_ENV_DETERMINISTIC "DTRUN_DETERMINISTIC" /* read by ranks: "1": sums in rank order */
/* read by ranks: "0": do not access other ranks' memory */
#define DT_ENV_CMA "DTRUN_CMA"
/* read by ranks: how calls on GPU memory are executed */
#define DT_ENV_DEVICE            "DTRUN_DEVICE"
#define DT_ENV_NCCL              "DTRUN_NCCL" /* read by ranks: path of the NCCL library */
#define DT_ENV_NCCL_INIT_TIMEOUT "DTRUN_NCCL_INIT_TIMEOUT" /* read by ranks: seconds */
/* read by ranks: "1": all ranks make their calls on GPU memory in the same order */
#define DT_ENV_PROGRAM_ORDER "DTRUN_PROGRAM_ORDER"
/* read by ranks: "0": every communicator connects by itself */
#define DT_ENV_NCCL_SPLIT "DTRUN_NCCL_SPLIT"
#define DT_ENV_RECORDER   "DTRUN_RECORDER" /* read by ranks: directory for dumps */
/* read by ranks: how many calls it keeps */
#define DT_ENV_RECORDER_CALLS "DTRUN_RECORDER_CALLS"

#endif
