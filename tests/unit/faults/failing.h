/* Lets system calls fail one by one in a rank that makes all calls of the library. */
#ifndef TESTS_UNIT_FAULTS_FAILING_H
#define TESTS_UNIT_FAULTS_FAILING_H

/* Fails the test if a trial fails. only: the functions that fail, or NULL: all. */
void failing_try(const char *hosts, int victim, const char *only);

#endif
