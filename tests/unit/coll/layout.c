/* How data between hosts is divided: every byte is in one block, every segment in one frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/coll/layout.h"
#include "runtime/tcp/flow.h"

enum { HOSTS = 5, RANKS = 10, BYTES_MAX = 300000 };

static uint32_t ranks[RANKS], first[HOSTS + 1];
static const struct dt_host_ranks host_ranks = { ranks, first };

/* node_of: the host of each rank, as digits. Returns the number of hosts. */
static uint32_t place(const char *node_of)
{
    uint32_t nodes[RANKS] = { 0 }, n = (uint32_t)strlen(node_of), hosts = 0;

    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = (uint32_t)(node_of[i] - '0');
        hosts = nodes[i] >= hosts ? nodes[i] + 1 : hosts;
    }
    memset(first, 0, sizeof first);
    dt_host_ranks_fill((struct dt_host_ranks *)(uintptr_t)&host_ranks, nodes, n, hosts);
    return hosts;
}

static void ranks_are_listed_host_by_host(void **state)
{
    static const uint32_t expected[] = { 1, 3, 0, 4, 5, 2 };

    (void)state;
    assert_int_equal(place("102011"), 3);
    assert_memory_equal(ranks, expected, sizeof expected);
    assert_int_equal(dt_host_ranks_count(&host_ranks, 0), 2);
    assert_int_equal(dt_host_ranks_count(&host_ranks, 1), 3);
    assert_int_equal(dt_host_ranks_count(&host_ranks, 2), 1);
}

/* Every byte is in one block, and no blocks of a share overlap. */
static void check_coverage(const struct dt_layout *c)
{
    size_t whole = dt_layout_whole(c), found = 0;
    uint8_t *seen = calloc(whole, 1);

    for (size_t chunk = 0; chunk < c->chunks; chunk++) {
        for (uint32_t leader = 0; leader < c->n_leaders; leader++) {
            for (uint32_t host = 0; host < c->hosts; host++) {
                struct dt_range block = dt_layout_block(c, chunk, leader, host);

                assert_true(block.bytes <= c->block);
                assert_true(block.bytes == 0 || block.at + block.bytes <= whole);
                assert_true(dt_layout_block_at(c, host) + block.bytes <= c->share);
                for (size_t i = 0; i < block.bytes; i++)
                    assert_int_equal(seen[block.at + i]++, 0);
                found += block.bytes;
            }
        }
    }
    assert_int_equal(found, whole);
    free(seen);
}

/* Each block that a leader reduces for a host belongs to a rank there. */
static void check_owners(const struct dt_layout *c)
{
    for (size_t chunk = 0; chunk < c->chunks; chunk++) {
        for (uint32_t leader = 0; leader < c->n_leaders; leader++) {
            for (uint32_t host = 0; host < c->hosts; host++) {
                struct dt_range block = dt_layout_block(c, chunk, leader, host);
                uint32_t owner = dt_layout_owner(c, chunk, leader);

                if (block.bytes == 0)
                    continue;
                assert_true(owner < dt_host_ranks_count(&host_ranks, host));
                assert_int_equal(block.at,
                                 host_ranks.ranks[host_ranks.first[host] + owner] * c->bytes +
                                     dt_layout_offset(c, chunk));
            }
        }
    }
}

/* Each frame has a segment of its own. */
static void check_frames(const struct dt_layout *c, uint32_t to)
{
    unsigned series = dt_layout_series(c, to);
    size_t frames = dt_layout_frames(c, to), last[2] = { 0, 0 };

    for (size_t frame = 0; series && frame < frames; frame++) {
        bool is_folded;
        size_t k = dt_layout_segment_of(c, series, frame, &is_folded);

        assert_true(series & (is_folded ? DT_LAYOUT_FOLDED : DT_LAYOUT_RAW));
        assert_int_equal(dt_layout_frame_of(c, series, k, is_folded), frame);
        assert_int_equal(k, last[is_folded]++);
        /* A chunk to be reduced precedes the reduced data of another. */
        assert_true(!is_folded || k / c->segments + 2 == last[0] / c->segments ||
                    last[0] == c->chunks * c->segments);
    }
    assert_true(series || frames == 1);
    assert_int_equal(last[0], series & DT_LAYOUT_RAW ? c->chunks * c->segments : 0);
    assert_int_equal(last[1], series & DT_LAYOUT_FOLDED ? c->chunks * c->segments : 0);
}

static void check_layout(struct dt_layout c, size_t bytes, size_t max)
{
    c.host_ranks = &host_ranks;
    c.bytes = bytes;
    dt_layout_make(&c, max);
    assert_true(c.chunk + c.share <= max);
    assert_int_equal(c.segments, dt_flow_segments(c.block));
    check_coverage(&c);
    if (c.recipients == DT_LAYOUT_FOR_EACH)
        check_owners(&c);
    for (uint32_t to = 0; to < c.hosts; to++)
        check_frames(&c, to);
}

static void every_byte_is_in_one_block(void **state)
{
    static const char *const placements[] = { "01", "0011", "0102", "01111111", "0001223344" };
    static const size_t sizes[] = { 1, 127, 128, 4097, 65536, BYTES_MAX };
    static const size_t maxima[] = { 16 * 1024, 512 * 1024 };

    (void)state;
    for (size_t p = 0; p < sizeof placements / sizeof *placements; p++) {
        uint32_t hosts = place(placements[p]);

        for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
            size_t bytes = sizes[i / 2], max = maxima[i % 2];

            for (uint32_t n_leaders = 1; n_leaders < 3; n_leaders++) {
                struct dt_layout c = { .hosts = hosts,
                                       .n_leaders = n_leaders,
                                       .recipients = DT_LAYOUT_FOR_ALL };

                check_layout(c, bytes, max);
                c.recipients = DT_LAYOUT_FOR_EACH;
                check_layout(c, bytes / 10 + 1, max);
                c.recipients = DT_LAYOUT_FOR_ROOT;
                c.root_host = hosts - 1;
                check_layout(c, bytes, max);
                c.collects = true;
                check_layout(c, bytes, max);
            }
        }
    }
}

static size_t chunks_of(size_t bytes, uint32_t hosts)
{
    struct dt_layout c = {
        .hosts = hosts, .n_leaders = 1, .host_ranks = &host_ranks, .bytes = bytes
    };

    dt_layout_make(&c, 512 * 1024);
    return c.chunks;
}

static void more_frames_are_used_only_with_work_within_hosts(void **state)
{
    (void)state;
    assert_int_equal(chunks_of(128 * 1024, place("01")), 1);
    assert_int_equal(chunks_of(128 * 1024, place("0011")), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_listed_host_by_host),
        cmocka_unit_test(more_frames_are_used_only_with_work_within_hosts),
        cmocka_unit_test(every_byte_is_in_one_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
