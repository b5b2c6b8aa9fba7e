/* table.h - the one table of commands.
 *
 * Parsing, HELP, COMMAND, COMMAND DOCS and docs/commands.md all come from it.
 * A command is either a question to the engine, described by its words and
 * options, or a function about the connection or the server.
 */
#ifndef SERVER_TABLE_H
#define SERVER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "hold/command.h"

struct conn;
struct resp_request;
struct server;

/* The words that follow the command's name, in order. */
enum word {
    WORD_END,
    WORD_NAME,
    WORD_SKU,
    WORD_ID,
    WORD_NEW_ID, /* an id, or * to have one made */
    WORD_TOKEN,
    WORD_TOTAL,
    WORD_DELTA,
    WORD_PATTERN, /* may be left out */
    WORD_SKUS,    /* one or more, to the end */
};
#define WORDS_MAX 3

/* The options, NAME value, in any order. */
enum option {
    OPTION_TTL = 1 << 0,
    OPTION_WAIT = 1 << 1,
    OPTION_OWNER = 1 << 2,
    OPTION_REQ = 1 << 3,
    OPTION_REASON = 1 << 4,
    OPTION_ITEM = 1 << 5, /* two values; may be repeated */
    OPTION_CURSOR = 1 << 6,
    OPTION_COUNT = 1 << 7,
};

enum command_flag {
    COMMAND_WRITE = 1 << 0,    /* journaled */
    COMMAND_READ = 1 << 1,     /* answered from memory */
    COMMAND_BLOCKING = 1 << 2, /* may wait */
    COMMAND_ADMIN = 1 << 3,    /* only from this machine */
    COMMAND_HELD = 1 << 4,     /* waits for the connection's own writes */
    COMMAND_LONG = 1 << 5,     /* its reply may be long */
    COMMAND_CHANGES = 1 << 6,  /* changes what is not journaled */
};

struct command {
    const char *name; /* upper case; "STOCK SET" has a parent "STOCK" */
    const char *syntax;
    const char *summary;
    const char *reply;
    const char *group;
    unsigned flags;
    /* a question to the engine: */
    enum hold_kind kind;
    enum word words[WORDS_MAX];
    unsigned options;
    unsigned required;
    uint64_t ttl_ms; /* default of TTL */
    /* or a function: */
    size_t args_min; /* with the name's words */
    size_t args_max;
    void (*run)(struct server *server, struct conn *conn,
                struct resp_request *request);
};

/* Comes first, once. */
void table_init(void);
size_t table_count(void);
const struct command *table_at(size_t index);
/* The command that the request names, or NULL. `*named` is the number of
 * words that its name takes. A parent alone is not found. */
const struct command *table_find(const struct hf_bytes *args, size_t count,
                                 size_t *named);
/* A request that waited, and came then, was answered. */
void table_took(struct server *server, const struct resp_request *request,
                uint64_t came_ns);

/* parse.c: fills `out` from the arguments behind the name, or explains. */
#define PARSE_ERROR_MAX 256
enum hf_status parse_command(const struct command *command,
                             const struct hf_bytes *args, size_t count,
                             struct hold_command *out,
                             char error[PARSE_ERROR_MAX]);
/* One word, for the commands that are functions. */
enum hf_status parse_text(struct hf_bytes text, const char *what, size_t max,
                          struct hf_bytes *out, char error[PARSE_ERROR_MAX]);
enum hf_status parse_number(struct hf_bytes text, const char *what,
                            uint64_t min, uint64_t max, uint64_t *out,
                            char error[PARSE_ERROR_MAX]);

/* docs/commands.md */
enum hf_status table_markdown(struct hf_buf *out);

#endif
