/* Shared memory on kernels whose pages have 64 KiB. This kernel's may be smaller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <unistd.h>

#include "runtime/shm/segment.h"
#include "runtime/wire/hostshm.h"
#include "runtime/wire/page.h"
#include "runtime/wire/sealed.h"

enum { PAGE = 64 * 1024, RANKS = 3 };

long sysconf(int name)
{
    long (*real)(int) = (long (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "sysconf");

    return name == _SC_PAGESIZE ? PAGE : real(name);
}

static void sizes_are_rounded_up_to_whole_pages(void **state)
{
    static const struct {
        size_t bytes, rounded;
    } cases[] = { { 0, 0 }, { 1, PAGE }, { PAGE, PAGE }, { PAGE + 1, 2 * PAGE } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dt_page_round_up(cases[i].bytes), cases[i].rounded);
}

/* A rank that frees its block frees whole pages. */
static void no_page_has_blocks_of_two_ranks(void **state)
{
    const struct dt_segment_kind kind = { .number = 1, .me = 1, .n = RANKS, .bytes = 3 * 4096 };
    size_t total = dt_segment_total(RANKS, kind.bytes);
    int fd = dt_sealed_create("test", total);
    uint8_t *block = dt_segment_open(&kind, fd);

    (void)state;
    assert_non_null(block);
    assert_int_equal(total, (1 + RANKS) * PAGE);
    assert_ptr_equal(block, dt_segment_find((struct dt_place){ kind.number, 2 * PAGE }));
    dt_segment_discard(block);
    close(fd);
}

/* Then each rank can allocate its own staging area's pages. */
static void staging_areas_begin_at_a_page(void **state)
{
    struct dt_hostshm map;
    int fd = dt_hostshm_create(&map, 1, RANKS, 0);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal((map.staging - (uint8_t *)map.head) % PAGE, 0);
    dt_hostshm_unmap(&map);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_rounded_up_to_whole_pages),
        cmocka_unit_test(no_page_has_blocks_of_two_ranks),
        cmocka_unit_test(staging_areas_begin_at_a_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
