/* The state of this host's GPUs for --check, from output of NVIDIA's driver. The parsers are pure:
 * each fills its members of facts. */
#ifndef DT_AGENT_FACTS_GPUSTATE_H
#define DT_AGENT_FACTS_GPUSTATE_H

#include "runtime/wire/msg.h"

/* The commands for nvidia-smi, and the parsers of its output: for each GPU the number of
 * uncorrected memory errors; the links between GPUs; and, if they are not known yet, the models and
 * the driver's version. */
extern const char *const dt_gpustate_query[], *const dt_gpustate_topology[];
void dt_gpustate_parse_query(struct dt_msg_facts *facts, const char *text);
void dt_gpustate_parse_topology(struct dt_msg_facts *facts, const char *text);

/* Finds the driver's error messages (Xid) in the kernel's log, if this process may read it, and
 * finds the NCCL that libdtrun would use in a program without NCCL of its own
 * (runtime/wire/nccllib.h). root is "", or a directory that stands for / in tests. */
void dt_gpustate_read(struct dt_msg_facts *facts, const char *root);

#endif
