/* The title of a test names the checks of collectives that it shows. tests/checks lists all
 * checks. */
#ifndef TESTS_UNIT_CHECKS_H
#define TESTS_UNIT_CHECKS_H

/* Use these in place of cmocka_unit_test and its variants. numbers is "3" or "3, 4". */
#define CHECKS(numbers, test)              CHECKS_SETUP_TEARDOWN(numbers, test, NULL, NULL)
#define CHECKS_SETUP(numbers, test, setup) CHECKS_SETUP_TEARDOWN(numbers, test, setup, NULL)
#define CHECKS_TEARDOWN(numbers, test, teardown)                                                   \
    CHECKS_SETUP_TEARDOWN(numbers, test, NULL, teardown)
#define CHECKS_SETUP_TEARDOWN(numbers, test, setup, teardown)                                      \
    {                                                                                              \
        "checks " numbers ": " #test, test, setup, teardown, NULL                                  \
    }

#endif
