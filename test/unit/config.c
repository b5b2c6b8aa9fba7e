/* config.c - tests of the settings: what they are by default, and their range.
 *
 * The values stand in the handbook; whoever relies on one must not be surprised
 * by the next version.
 */
#include "server/config.h"

#include "support/test.h"

TEST_ONE_THREAD;

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

TEST(every_number_has_its_name_default_range_and_time_of_change)
{
    static const struct {
        const char *name;
        uint64_t value;
        uint64_t min;
        uint64_t max;
        bool live;
        bool bound;
    } rows[] = {
        {"port", 7420, 0, 65535, false, false},
        {"segment-bytes", 64 * MIB, MIB, GIB, false, false},
        {"snapshot-bytes", 256 * MIB, 65536, UINT64_MAX, false, false},
        {"maxclients", 50000, 1, 1000000, true, false},
        {"output-max-bytes", MIB, 65536, GIB, true, false},
        {"idle-ms", 0, 0, UINT32_MAX, true, false},
        {"keepalive-ms", 60000, 0, 32767000, true, false},
        {"memory-max-bytes", 0, 0, INT64_MAX, true, false},
        {"limit-keys-max", 10000000, 1, GIB, false, false},
        {"limit-log-max-bytes", GIB, 65536, INT64_MAX, false, false},
        {"locks-max", 10000000, 1, GIB / 2, true, true},
        {"waiters-max", 10000, 1, 10000, true, true},
        {"products-max", 100000000, 1, GIB / 2, true, true},
        {"reservations-max", 10000000, 1, GIB / 2, true, true},
        {"fences-max", 1000000, 1, GIB / 2, true, true},
        {"requests-max", 1000000, 1, GIB / 2, true, true},
        {"requests-share", 50, 1, 100, true, false},
        {"request-keep-ms", 600000, 1, 1000000000000000, true, true},
        {"ended-keep-ms", 600000, 1, 1000000000000000, true, true},
        {"holders-max", 1000, 1, 10000, true, true},
        {"sessions-max", 1000000, 1, GIB / 2, true, true},
        {"wound-grace-ms", 1000, 1, 1000000000000000, true, true},
        {"tree-names-max", 10000, 1, 1000000, true, true},
        {"classes-max", 100, 1, 1000, true, true},
        {"reserve-ttl-ms", 600000, 1, 1000000000000000, true, true},
        {"grace-ms", 0, 0, 1000000000000000, true, true},
        {"extends-max", 0, 0, UINT32_MAX, true, true},
        {"extend-total-ms", 0, 0, 1000000000000000, true, true},
        {"events-keep-bytes", 64 * MIB, 0, INT64_MAX, false, false},
        {"events-keep-ms", 86400000, 1, 1000000000000000, false, false},
        {"log-rotate-bytes", 64 * MIB, 0, INT64_MAX, false, false},
        {"log-rotate-keep", 5, 1, HF_LOG_ROTATE_KEEP_MAX, false, false},
        {"disk-warn-bytes", GIB, 0, INT64_MAX, true, false},
    };
    struct config config = config_default();
    struct config_number numbers[CONFIG_NUMBERS_MAX];
    size_t count = config_numbers(&config, numbers);

    CHECK_EQ(count, sizeof rows / sizeof rows[0]);
    for (size_t i = 0; i < count; i++) {
        const struct config_number *n = &numbers[i];
        CHECK_TEXT(n->name, strlen(n->name), rows[i].name);
        CHECK_EQ(*n->value, rows[i].value);
        CHECK_EQ(n->min, rows[i].min);
        CHECK_EQ(n->max, rows[i].max);
        CHECK_EQ(n->live, rows[i].live);
        CHECK_EQ(n->bound, rows[i].bound);
        CHECK(n->min <= *n->value && *n->value <= n->max);
    }
}

TEST(the_other_defaults)
{
    struct config config = config_default();

    CHECK_TEXT(config.bind, strlen(config.bind), "127.0.0.1");
    CHECK_TEXT(config.dir, strlen(config.dir), "./data");
    CHECK_TEXT(config.log_file, strlen(config.log_file), "");
    CHECK_EQ(config.durability, JOURNAL_ALWAYS);
    CHECK_EQ(config.log_level, HF_LOG_INFO);
    CHECK_EQ(config.log_format, HF_LOG_TEXT);
}

TEST(words_are_read_as_they_are_written)
{
    static const struct {
        const char *const *words;
        int count;
    } rows[] = {{config_durabilities, JOURNAL_NONE + 1},
                {config_levels, HF_LOG_ERROR + 1},
                {config_formats, HF_LOG_JSON + 1}};
    static const char *const bad[] = {"", "Always", "nones", "inf", "xml"};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int k = 0; k < rows[i].count; k++)
            CHECK_EQ(
                config_find(rows[i].words, hf_bytes_text(rows[i].words[k])), k);
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
            CHECK_EQ(config_find(rows[i].words, hf_bytes_text(bad[k])), -1);
    }
}
