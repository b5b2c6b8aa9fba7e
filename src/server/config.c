/* config.c - defaults and the table of numbers. */
#include "server/config.h"

#include <assert.h>

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
        .events_keep_bytes = 64u << 20,
        .events_keep_ms = 86400000,
        .open_log = journal_open,
        .bounds = hold_bounds_default(),
    };
}

const char *const config_durabilities[] = {
    [JOURNAL_ALWAYS] = "always",
    [JOURNAL_INTERVAL] = "interval",
    [JOURNAL_NONE] = "none",
    NULL,
};
const char *const config_levels[] = {
    [HF_LOG_DEBUG] = "debug",
    [HF_LOG_INFO] = "info",
    [HF_LOG_WARN] = "warn",
    [HF_LOG_ERROR] = "error",
    NULL,
};
const char *const config_formats[] = {
    [HF_LOG_TEXT] = "text", [HF_LOG_JSON] = "json", NULL};

int config_find(const char *const *words, struct hf_bytes text)
{
    int i = 0;

    while (words[i] != NULL && !hf_bytes_equal(text, hf_bytes_text(words[i])))
        i++;
    return words[i] != NULL ? i : -1;
}

/* Adds the engine's settings of these rows; returns where they end. */
static struct config_number *add_bounds(struct config_number *out,
                                        struct hold_bounds *bounds, size_t from,
                                        size_t to)
{
    for (size_t i = from; i < to; i++) {
        const struct hold_bound *row = &hold_bound_rows[i];
        *out++ = (struct config_number){row->setting,   hold_bound(bounds, i),
                                        row->usual > 0, row->max,
                                        true,           true,
                                        row->help};
    }
    return out;
}

size_t config_numbers(struct config *c,
                      struct config_number out[CONFIG_NUMBERS_MAX])
{
    const struct config_number first[] = {
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
         "silent connections that are owed nothing are closed after this; 0: "
         "never"},
        {"keepalive-ms", &c->keepalive_ms, 0, 32767000, true, false,
         "silence after which a client's host is probed; 0: never (60000)"},
        {"memory-max-bytes", &c->memory_max_bytes, 0, INT64_MAX, true, false,
         "memory for holds; 0: no limit"},
        {"limit-keys-max", &c->limit_keys_max, 1, 1u << 30, false, false,
         "keys of LIMIT kept at once, and its open holds"},
        {"limit-log-max-bytes", &c->limit_log_bytes, 65536, INT64_MAX, false,
         false, "memory for LOG and LEASES of LIMIT"},
    };
    const struct config_number share[] = {
        {"requests-share", &c->requests_share, 1, 100, true, false,
         "percent of requests-max that one client's address may fill (50)"},
    };
    const struct config_number last[] = {
        {"events-keep-bytes", &c->events_keep_bytes, 0, INT64_MAX, false, false,
         "size of the files of events, for EVENTS; 0: none (64 MiB)"},
        {"events-keep-ms", &c->events_keep_ms, 1, HOLD_TTL_MAX_MS, false, false,
         "events that are older may be removed (a day)"},
        {"log-rotate-bytes", &c->log_rotate_bytes, 0, INT64_MAX, false, false,
         "size at which the log file is rotated; 0: never (64 MiB)"},
        {"log-rotate-keep", &c->log_rotate_keep, 1, HF_LOG_ROTATE_KEEP_MAX,
         false, false, "rotated log files kept: FILE.1 to FILE.N (5)"},
        {"disk-warn-bytes", &c->disk_warn_bytes, 0, INT64_MAX, true, false,
         "warn in the log when less is free on the disk; 0: never (1 GiB)"},
    };
    size_t keeps =
        offsetof(struct hold_bounds, request_keep_ms) / sizeof(uint64_t);
    struct config_number *at = out;

    memcpy(at, first, sizeof first);
    at += sizeof first / sizeof first[0];
    at = add_bounds(at, &c->bounds, 0, keeps);
    *at++ = share[0];
    at = add_bounds(at, &c->bounds, keeps, HOLD_BOUNDS_COUNT);
    memcpy(at, last, sizeof last);
    at += sizeof last / sizeof last[0];
    assert(at == out + CONFIG_NUMBERS_MAX);
    return CONFIG_NUMBERS_MAX;
}
