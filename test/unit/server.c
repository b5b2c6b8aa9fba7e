/* server.c - tests of a start without memory: it says so, or it is whole. */
#include "server/server.h"

#include "base/memory.h"
#include "support/test.h"

static struct server server;
static char error[JOURNAL_ERROR_MAX];

/* Both records of its own are in the journal, or it is not open. */
TEST(a_start_with_one_allocation_that_fails_says_so_or_is_whole)
{
    struct config config = config_default();
    unsigned refused = 0;
    char dir[256];

    test_folder_in_memory();
    config.port = 0;
    config.durability = JOURNAL_NONE;
    config.segment_bytes = 1u << 20;
    config.log_level = HF_LOG_ERROR;
    config.bounds.locks_max = 77;
    config.dir = dir;
    bool more = true;
    for (uint64_t at = 0; more; at++) {
        snprintf(dir, sizeof dir, "%s/%u", test_folder(), (unsigned)at);
        error[0] = '\0';
        uint64_t before = hf_memory_count();
        hf_memory_fail_once(at);
        enum hf_status status = server_open(&server, &config, error);
        hf_memory_fail_never();
        more = hf_memory_count() - before > at;
        if (status == HF_OK) {
            struct log_stats stats;
            log_stats(server.log, &stats);
            CHECK_EQ(stats.record_count, 2);
            CHECK_EQ(hold_get_bounds(server.engine).locks_max, 77);
        } else {
            CHECK(error[0] != '\0');
            refused++;
        }
        server_close(&server);
        CHECK(at < 10000);
    }
    CHECK(refused > 10);
}
