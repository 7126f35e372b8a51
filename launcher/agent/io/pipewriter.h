/* Whether a process may be in the middle of write(2) to a pipe that was full and has been emptied.
 *
 * The kernel wakes such a writer and shows it as runnable until it has continued to write. A
 * process that sleeps has finished. A process that holds the pipe and does something else also
 * counts as writing. */
#ifndef DT_AGENT_IO_PIPEWRITER_H
#define DT_AGENT_IO_PIPEWRITER_H

#include <stdbool.h>
#include <sys/types.h>

enum { DT_PIPE_NAME = 64 };

/* Writes how /proc names what fd is: either end of a pipe, or the reading end of a pseudo-terminal.
 */
void dt_pipewriter_name(char name[DT_PIPE_NAME], int fd);

/* Looks at every process of the machine except the reader and this one. */
bool dt_pipewriter_is_awake(const char *pipe, pid_t reader);

#endif
