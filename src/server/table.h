/* table.h - all commands.
 *
 * Look-up, HELP, COMMAND, COMMAND DOCS and docs/commands.md come from it. A
 * command is either an operation of the engine, made from its row in
 * hold/schema.c, or a function about limits, the connection or the server.
 */
#ifndef SERVER_TABLE_H
#define SERVER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "resp/resp.h"
#include "server/parse.h"

struct conn;
struct reply;
struct server;

enum command_flag {
    COMMAND_WRITE = 1 << 0,    /* journaled */
    COMMAND_READ = 1 << 1,     /* answered from memory */
    COMMAND_BLOCKING = 1 << 2, /* may wait */
    COMMAND_ADMIN = 1 << 3,    /* only from this machine */
    COMMAND_HELD = 1 << 4,     /* waits for the connection's own writes */
    COMMAND_LONG = 1 << 5,     /* its reply may be long */
    COMMAND_CHANGES = 1 << 6,  /* changes what is not journaled */
};

/* A request of a command that is a function, which puts its whole reply. The
 * number of arguments is as the shape has it. */
struct asked {
    struct server *server;
    struct conn *conn;
    struct reply *reply; /* the connection's */
    struct resp_request *request;
    const struct hf_bytes *args; /* behind the name */
    size_t count;
};
typedef void command_fn(const struct asked *asked);

/* A request of this command is about to be run; `found`: it is the next. */
typedef void expect_fn(struct server *server,
                       const struct resp_request *request, bool found);

/* Fills `out`, which is empty but for the kind, from the arguments behind the
 * name; or explains, with a status for answer_bad_code(). */
struct command;
typedef enum hf_status make_fn(const struct command *command,
                               const struct hf_bytes *args, size_t count,
                               struct hold_command *out,
                               char error[PARSE_ERROR_MAX]);

struct command {
    const char *name; /* upper case; "STOCK SET" has a parent "STOCK" */
    const char *summary;
    const char *reply;
    const char *group;
    unsigned flags;
    enum hold_kind kind;       /* what it asks of the engine; 0: nothing */
    const struct shape *shape; /* its arguments */
    /* NULL: the shape makes a command of this kind, which is submitted. */
    command_fn *run;
    make_fn *make;     /* NULL: the shape does it alone */
    uint64_t as;       /* flags of the engine's command, for `make` */
    expect_fn *expect; /* NULL: nothing is to be brought near for it */
    /* Made from the shape; the counts are with the name's words. */
    const char *syntax;
    size_t args_min;
    size_t args_max;
};

/* A request that was read, and its command; NULL: none. */
struct call {
    struct resp_request request;
    const struct command *command;
    size_t named; /* words of its name */
};

/* functions.c: those that are not the engine's. */
extern const struct command table_functions[];
extern const size_t table_function_count;

/* Comes before table_find() and table_at(). */
void table_init(void);
size_t table_count(void);
const struct command *table_at(size_t index);
/* The command that the request names, or NULL. `*named` is the number of
 * words that its name takes. A parent alone is not found. */
const struct command *table_find(const struct hf_bytes *args, size_t count,
                                 size_t *named);
/* True if the command's name is this, or begins with it as a word; of an empty
 * word always. */
bool table_is_of(const struct command *command, struct hf_bytes word);
/* Finds the command of the call's request, which has words. */
void table_look_up(struct call *call);
/* Runs it. False: not now, because something of the connection is pending, a
 * batch is full or the turn's budget is spent; it is to be tried again then. */
bool table_run(struct server *server, struct conn *conn, struct call *call);
/* A request of that command, which waited and came then, was answered. */
void table_took(struct server *server, struct hf_bytes name, uint64_t came_ns);

/* Of a command without a function: fills `out` from the arguments behind the
 * name, or explains. */
enum hf_status parse_command(const struct command *command,
                             const struct hf_bytes *args, size_t count,
                             struct hold_command *out,
                             char error[PARSE_ERROR_MAX]);

/* docs/commands.md */
enum hf_status table_markdown(struct hf_buf *out);

#endif
