/* Whether this is a build with a sanitizer, in which everything takes many times as long. Tests
 * then vary less what they try: that results are right in each case is seen in other builds. */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

#endif
