/* config.h - the server's settings: defaults, flags, CONFIG GET and SET. */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "hold/bounds.h"
#include "holdfast/log.h"
#include "journal/journal.h"

struct config {
    const char *bind;
    uint64_t port;
    const char *dir;
    enum journal_sync durability;
    uint64_t segment_bytes;
    uint64_t snapshot_bytes;
    uint64_t clients_max;
    uint64_t output_max_bytes; /* unread replies of one client */
    uint64_t idle_ms;          /* silent clients are closed; 0: never */
    uint64_t memory_max_bytes; /* of the engine; 0: no limit */
    uint64_t limit_keys_max;
    uint64_t limit_log_bytes; /* of LOG and LEASES */
    const char *log_file;     /* "": the standard error */
    enum hf_log_level log_level;
    enum hf_log_form log_format;
    uint64_t log_rotate_bytes; /* 0: the file grows */
    uint64_t log_rotate_keep;
    uint64_t disk_warn_bytes; /* less than that free is told; 0: never */
    uint64_t requests_share;  /* percent of the REQ table for one client */
    uint64_t keepalive_ms; /* silence after which a client's host is probed */
    uint64_t events_keep_bytes; /* 0: they are not kept */
    uint64_t events_keep_ms;
    struct journal_io *io; /* NULL: the real disk */
    /* Opens the log: journal_open(), but for tests. */
    enum hf_status (*open_log)(struct log **out,
                               const struct journal_opts *opts, void **machine,
                               char *error);
    struct hold_bounds bounds;
};

struct config config_default(void);

/* The words of the settings that are enums, by their values. */
extern const char *const config_durabilities[], *const config_levels[],
                                                    *const config_formats[];
/* Which of these words it is; -1: none. */
int config_find(const char *const *words, struct hf_bytes text);

/* A number that can be read, and perhaps set, by name. */
struct config_number {
    const char *name;
    uint64_t *value;
    uint64_t min;
    uint64_t max;
    bool live;  /* CONFIG SET may change it */
    bool bound; /* part of the engine's state: changed through the journal */
    const char *help;
};

/* The numbers of `config`: the server's own and the engine's bounds; returns
 * how many. */
#define CONFIG_OWN_NUMBERS 16
#define CONFIG_NUMBERS_MAX (CONFIG_OWN_NUMBERS + HOLD_BOUNDS_COUNT)
size_t config_numbers(struct config *config,
                      struct config_number out[CONFIG_NUMBERS_MAX]);

#endif
