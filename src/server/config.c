/* config.c - defaults and the table of numbers. */
#include "server/config.h"

struct config config_default(void)
{
    return (struct config){
        .bind = "127.0.0.1",
        .port = 7420,
        .dir = "./data",
        .durability = JOURNAL_ALWAYS,
        .segment_bytes = 64u << 20,
        .snapshot_bytes = 256u << 20,
        .clients_max = 50000,
        .output_max_bytes = 1u << 20,
        .limit_keys_max = 10000000,
        .bounds = hold_bounds_default(),
    };
}

static const char *const durability_names[] = {
    [JOURNAL_ALWAYS] = "always",
    [JOURNAL_INTERVAL] = "interval",
    [JOURNAL_NONE] = "none",
};

const char *config_durability_name(enum journal_sync sync)
{
    return durability_names[sync];
}

enum hf_status config_parse_durability(const char *text, enum journal_sync *out)
{
    for (int i = 0; i <= JOURNAL_NONE; i++) {
        if (hf_bytes_equal(hf_bytes_text(text),
                           hf_bytes_text(durability_names[i]))) {
            *out = (enum journal_sync)i;
            return HF_OK;
        }
    }
    return HF_INVALID;
}

size_t config_numbers(struct config *c,
                      struct config_number out[CONFIG_NUMBERS_MAX])
{
    struct hold_bounds *b = &c->bounds;
    const struct config_number all[] = {
        {"port", &c->port, 0, 65535, false, false},
        {"segment-bytes", &c->segment_bytes, 1u << 20, 1u << 30, false, false},
        {"snapshot-bytes", &c->snapshot_bytes, 65536, UINT64_MAX, false, false},
        {"maxclients", &c->clients_max, 1, 1000000, true, false},
        {"output-max-bytes", &c->output_max_bytes, 65536, 1u << 30, true,
         false},
        {"idle-ms", &c->idle_ms, 0, UINT32_MAX, true, false},
        {"memory-max-bytes", &c->memory_max_bytes, 0, INT64_MAX, true, false},
        {"limit-keys-max", &c->limit_keys_max, 1, 1u << 30, true, false},
        {"locks-max", &b->locks_max, 1, 1u << 30, true, true},
        {"waiters-max", &b->waiters_max, 1, HOLD_QUEUE_MAX, true, true},
        {"products-max", &b->products_max, 1, 1u << 30, true, true},
        {"reservations-max", &b->reservations_max, 1, 1u << 30, true, true},
        {"fences-max", &b->fences_max, 1, 1u << 30, true, true},
        {"requests-max", &b->requests_max, 1, 1u << 30, true, true},
        {"request-keep-ms", &b->request_keep_ms, 1, HOLD_TTL_MAX_MS, true,
         true},
        {"ended-keep-ms", &b->ended_keep_ms, 1, HOLD_TTL_MAX_MS, true, true},
    };
    size_t count = sizeof all / sizeof all[0];

    for (size_t i = 0; i < count; i++)
        out[i] = all[i];
    return count;
}
