/* clock.c - tests of the system's clocks and of the clock for tests. */
#include "holdfast/clock.h"

#include "support/clock.h"
#include "support/test.h"

TEST(monotonic_time_never_goes_back)
{
    const struct hf_clock *clock = hf_clock_system();
    uint64_t last_ns = hf_clock_now_ns(clock);

    for (int i = 0; i < 100000; i++) {
        uint64_t now_ns = hf_clock_now_ns(clock);
        CHECK(now_ns >= last_ns);
        last_ns = now_ns;
    }
}

TEST(monotonic_time_moves)
{
    const struct hf_clock *clock = hf_clock_system();
    uint64_t start_ns = hf_clock_now_ns(clock);

    while (hf_clock_now_ns(clock) == start_ns)
        continue;
}

TEST(monotonic_time_is_small_enough_for_a_rate)
{
    CHECK(hf_clock_now_ns(hf_clock_system()) < UINT64_MAX / 2);
}

static uint64_t read_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

TEST(monotonic_time_is_in_nanoseconds)
{
    uint64_t before_ns = read_ns(CLOCK_MONOTONIC);
    uint64_t now_ns = hf_clock_now_ns(hf_clock_system());

    CHECK(before_ns <= now_ns);
    CHECK(now_ns <= read_ns(CLOCK_MONOTONIC));
}

/* Tried again, for the case that the date is being set meanwhile. */
TEST(wall_time_is_in_microseconds_since_1970)
{
    for (int i = 0; i < 1000; i++) {
        uint64_t before_us = read_ns(CLOCK_REALTIME) / 1000;
        uint64_t wall_us = hf_clock_wall_us(hf_clock_system());
        uint64_t after_us = read_ns(CLOCK_REALTIME) / 1000;
        if (before_us <= wall_us && wall_us <= after_us)
            return;
    }
    test_fail(__FILE__, __LINE__, "wall time is not the date");
}

TEST(there_is_one_system_clock)
{
    CHECK(hf_clock_system() == hf_clock_system());
}

TEST(the_clock_for_tests_stands_still_until_it_is_moved)
{
    struct test_clock hands = {.now_ns = 1000, .wall_us = 5};
    const struct hf_clock *clock = test_clock(&hands);

    CHECK_EQ(hf_clock_now_ns(clock), 1000);
    CHECK_EQ(hf_clock_now_ns(clock), 1000);
    hands.now_ns += 10;
    CHECK_EQ(hf_clock_now_ns(clock), 1010);
    CHECK_EQ(hf_clock_wall_us(clock), 5);
    hands.wall_us = 3; /* the date may go back */
    CHECK_EQ(hf_clock_wall_us(clock), 3);
}

TEST(two_clocks_for_tests_do_not_share_hands)
{
    struct test_clock a = {.now_ns = 1};
    struct test_clock b = {.now_ns = 2};
    const struct hf_clock *clock_a = test_clock(&a);
    const struct hf_clock *clock_b = test_clock(&b);

    a.now_ns = 10;
    CHECK_EQ(hf_clock_now_ns(clock_a), 10);
    CHECK_EQ(hf_clock_now_ns(clock_b), 2);
}

TEST(deadlines_end_with_time)
{
    struct test_clock moved = {.now_ns = 1000};
    const struct hf_clock *clock = test_clock(&moved);

    CHECK_EQ(hf_clock_after_ns(clock, 0), 1000);
    CHECK_EQ(hf_clock_after_ns(clock, 5), 1005);
    CHECK_EQ(hf_clock_after_ns(clock, UINT64_MAX - 1000), HF_FOREVER);
    CHECK_EQ(hf_clock_after_ns(clock, UINT64_MAX), HF_FOREVER);
    CHECK_EQ(hf_clock_after_ms(clock, 2), 2001000);
    CHECK_EQ(hf_clock_after_ms(clock, UINT64_MAX), HF_FOREVER);
    CHECK(hf_clock_after_ns(NULL, HF_NOW) <=
          hf_clock_now_ns(hf_clock_system()));
}
