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
        .limit_log_bytes = 1u << 30,
        .log_file = "",
        .log_level = HF_LOG_INFO,
        .log_rotate_bytes = 64u << 20,
        .log_rotate_keep = 5,
        .disk_warn_bytes = 1u << 30,
        .requests_share = 50,
        .keepalive_ms = 60000,
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

/* Which of `count` names it is; -1: none. */
static int find_name(const char *const *names, int count, struct hf_bytes text)
{
    for (int i = 0; i < count; i++) {
        if (hf_bytes_equal(text, hf_bytes_text(names[i])))
            return i;
    }
    return -1;
}

enum hf_status config_parse_durability(const char *text, enum journal_sync *out)
{
    int i = find_name(durability_names, JOURNAL_NONE + 1, hf_bytes_text(text));

    if (i >= 0)
        *out = (enum journal_sync)i;
    return i >= 0 ? HF_OK : HF_INVALID;
}

static const char *const level_names[] = {
    [HF_LOG_DEBUG] = "debug",
    [HF_LOG_INFO] = "info",
    [HF_LOG_WARN] = "warn",
    [HF_LOG_ERROR] = "error",
};

const char *config_level_name(enum hf_log_level level)
{
    return level_names[level];
}

enum hf_status config_parse_level(struct hf_bytes text, enum hf_log_level *out)
{
    int i = find_name(level_names, HF_LOG_ERROR + 1, text);

    if (i >= 0)
        *out = (enum hf_log_level)i;
    return i >= 0 ? HF_OK : HF_INVALID;
}

static const char *const format_names[] = {
    [HF_LOG_TEXT] = "text",
    [HF_LOG_JSON] = "json",
};

const char *config_format_name(enum hf_log_form format)
{
    return format_names[format];
}

enum hf_status config_parse_format(struct hf_bytes text, enum hf_log_form *out)
{
    int i = find_name(format_names, HF_LOG_JSON + 1, text);

    if (i >= 0)
        *out = (enum hf_log_form)i;
    return i >= 0 ? HF_OK : HF_INVALID;
}

size_t config_numbers(struct config *c,
                      struct config_number out[CONFIG_NUMBERS_MAX])
{
    struct hold_bounds *b = &c->bounds;
    const struct config_number all[] = {
        {"port", &c->port, 0, 65535, false, false,
         "port; 0 picks a free one (7420)"},
        {"segment-bytes", &c->segment_bytes, 1u << 20, 1u << 30, false, false,
         "size of a journal file"},
        {"snapshot-bytes", &c->snapshot_bytes, 65536, UINT64_MAX, false, false,
         "journal written since the last snapshot that calls for a new one"},
        {"maxclients", &c->clients_max, 1, 1000000, true, false,
         "connections at once"},
        {"output-max-bytes", &c->output_max_bytes, 65536, 1u << 30, true, false,
         "unread replies of one client before it is not read from"},
        {"idle-ms", &c->idle_ms, 0, UINT32_MAX, true, false,
         "silent connections are closed after this; 0: never"},
        {"keepalive-ms", &c->keepalive_ms, 0, UINT32_MAX, true, false,
         "silence after which a client's host is probed; 0: never (60000)"},
        {"memory-max-bytes", &c->memory_max_bytes, 0, INT64_MAX, true, false,
         "memory for holds; 0: no limit"},
        {"limit-keys-max", &c->limit_keys_max, 1, 1u << 30, false, false,
         "keys of LIMIT kept at once, and its open holds"},
        {"limit-log-max-bytes", &c->limit_log_bytes, 65536, INT64_MAX, false,
         false, "memory for LOG and LEASES of LIMIT"},
        {"locks-max", &b->locks_max, 1, 1u << 30, true, true,
         "locks held at once"},
        {"waiters-max", &b->waiters_max, 1, HOLD_QUEUE_MAX, true, true,
         "clients in the queue of one lock"},
        {"products-max", &b->products_max, 1, 1u << 30, true, true, "products"},
        {"reservations-max", &b->reservations_max, 1, 1u << 30, true, true,
         "reservations, with ended ones still remembered"},
        {"fences-max", &b->fences_max, 1, 1u << 30, true, true,
         "resources with a newest token"},
        {"requests-max", &b->requests_max, 1, 1u << 30, true, true,
         "REQ ids remembered at once"},
        {"requests-share", &c->requests_share, 1, 100, true, false,
         "percent of requests-max that one client's address may fill (50)"},
        {"request-keep-ms", &b->request_keep_ms, 1, HOLD_TTL_MAX_MS, true, true,
         "how long a REQ id is remembered"},
        {"ended-keep-ms", &b->ended_keep_ms, 1, HOLD_TTL_MAX_MS, true, true,
         "how long an ended reservation is remembered"},
        {"log-rotate-bytes", &c->log_rotate_bytes, 0, INT64_MAX, false, false,
         "size at which the log file is rotated; 0: never (64 MiB)"},
        {"log-rotate-keep", &c->log_rotate_keep, 1, HF_LOG_ROTATE_KEEP_MAX,
         false, false, "rotated log files kept: FILE.1 to FILE.N (5)"},
        {"disk-warn-bytes", &c->disk_warn_bytes, 0, INT64_MAX, true, false,
         "warn in the log when less is free on the disk; 0: never (1 GiB)"},
    };
    size_t count = sizeof all / sizeof all[0];

    for (size_t i = 0; i < count; i++)
        out[i] = all[i];
    return count;
}
