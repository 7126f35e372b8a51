/* lastline: prints a line and crashes. The line is lost if standard output is a pipe. */
#include <signal.h>
#include <stdio.h>

int main(void)
{
    printf("the last line\n");
    return raise(SIGSEGV);
}
