/* What --check is told of the state of this host's GPUs, in texts of NVIDIA's driver. The parsers
 * are pure: each fills its members of facts. */
#ifndef DT_AGENT_GPUSTATE_H
#define DT_AGENT_GPUSTATE_H

#include "runtime/wire/msg.h"

/* How nvidia-smi is asked, and what makes facts of its answers: for each GPU its count of
 * uncorrected memory errors; how they are linked; and where they are not known yet, their models
 * and the driver's version. */
extern const char *const dt_gpustate_query[], *const dt_gpustate_topology[];
void dt_gpustate_parse_query(struct dt_msg_facts *facts, const char *text);
void dt_gpustate_parse_topology(struct dt_msg_facts *facts, const char *text);

/* The driver's error messages (Xid) in the kernel's log. */
void dt_gpustate_parse_log(struct dt_msg_facts *facts, const char *text);

/* Reads the kernel's log, if this process may, and finds the NCCL that libdtrun would use in a
 * program which has none itself (runtime/wire/nccllib.h). root: "", or a directory that stands for
 * / (tests). */
void dt_gpustate_read(struct dt_msg_facts *facts, const char *root);

#endif
