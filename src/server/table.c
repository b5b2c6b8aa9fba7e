/* table.c - the commands, and how a request finds its own. */
#include "server/table.h"

#include <assert.h>

#include "resp/resp.h"
#include "server/admin.h"
#include "server/conn.h"
#include "server/limit.h"
#include "server/server.h"

#define LOCK_TTL_MS        30000u
#define RESERVATION_TTL_MS 600000u

/* More than the longest description of all commands or settings. */
#define LONG_REPLY_BYTES (64u * 1024)

#define PRODUCT  "map: sku total available reserved sold version updated_ms"
#define RESERVED "map: id status expires_ms items"

static const struct command commands[] = {
    {.name = "LOCK",
     .syntax = "name OWNER owner [TTL ms] [WAIT ms] [REQ id]",
     .summary = "Takes a lock, waits in its queue, or re-enters it",
     .reply = "map: token safe_ms count waited_ms; -BUSY -TIMEOUT",
     .group = "lock",
     .flags = COMMAND_WRITE | COMMAND_BLOCKING,
     .kind = HOLD_LOCK,
     .words = {WORD_NAME},
     .options = OPTION_OWNER | OPTION_TTL | OPTION_WAIT | OPTION_REQ,
     .required = OPTION_OWNER,
     .ttl_ms = LOCK_TTL_MS},
    {.name = "UNLOCK",
     .syntax = "name token [REQ id]",
     .summary = "Gives a lock back, or one re-entry of it",
     .reply = "map: remaining; -NOTHELD",
     .group = "lock",
     .flags = COMMAND_WRITE,
     .kind = HOLD_UNLOCK,
     .words = {WORD_NAME, WORD_TOKEN},
     .options = OPTION_REQ},
    {.name = "RENEW",
     .syntax = "name token TTL ms [REQ id]",
     .summary = "Sets how long a lock is held from now on",
     .reply = "map: safe_ms; -LOST",
     .group = "lock",
     .flags = COMMAND_WRITE,
     .kind = HOLD_RENEW,
     .words = {WORD_NAME, WORD_TOKEN},
     .options = OPTION_TTL | OPTION_REQ,
     .required = OPTION_TTL},
    {.name = "LOCKS",
     .syntax = "[pattern] [CURSOR n] [COUNT n]",
     .summary = "Lists held locks, in pages",
     .reply =
         "map: locks (list of maps, perhaps empty) cursor (0: that was all)",
     .group = "lock",
     .flags = COMMAND_READ | COMMAND_HELD,
     .kind = HOLD_LOCK_LIST,
     .words = {WORD_PATTERN},
     .options = OPTION_CURSOR | OPTION_COUNT},
    {.name = "LOCKINFO",
     .syntax = "name",
     .summary = "Tells who holds a lock, for how long, and how many wait",
     .reply = "map: name owner token expires_ms count waiting held_ms; "
              "-NOTFOUND",
     .group = "lock",
     .flags = COMMAND_READ,
     .kind = HOLD_LOCK_INFO,
     .words = {WORD_NAME}},
    {.name = "FENCE DEL",
     .syntax = "resource [REQ id]",
     .summary = "Forgets the newest token that a resource has seen: older "
                "ones are accepted again",
     .reply = "OK; -NOTFOUND",
     .group = "lock",
     .flags = COMMAND_WRITE | COMMAND_ADMIN,
     .kind = HOLD_FENCE_DEL,
     .words = {WORD_NAME},
     .options = OPTION_REQ},
    {.name = "FENCE",
     .syntax = "resource token [REQ id]",
     .summary = "Accepts a token that is not older than the newest seen; one "
                "that was never given is -BADARG. No resource is named DEL",
     .reply = "OK; -STALE -BADARG",
     .group = "lock",
     .flags = COMMAND_WRITE,
     .kind = HOLD_FENCE,
     .words = {WORD_NAME, WORD_TOKEN},
     .options = OPTION_REQ},
    {.name = "STOCK SET",
     .syntax = "sku total [REQ id]",
     .summary = "Creates a product, or sets its total",
     .reply = PRODUCT "; -SHORT",
     .group = "stock",
     .flags = COMMAND_WRITE,
     .kind = HOLD_STOCK_SET,
     .words = {WORD_SKU, WORD_TOTAL},
     .options = OPTION_REQ},
    {.name = "STOCK ADD",
     .syntax = "sku n [REASON text] [REQ id]",
     .summary = "Changes a product's total by n, which may be negative",
     .reply = PRODUCT "; -SHORT -NOTFOUND",
     .group = "stock",
     .flags = COMMAND_WRITE,
     .kind = HOLD_STOCK_ADD,
     .words = {WORD_SKU, WORD_DELTA},
     .options = OPTION_REASON | OPTION_REQ},
    {.name = "STOCK GET",
     .syntax = "sku [sku ...]",
     .summary = "Shows one product, or a list of several",
     .reply = PRODUCT "; of several: list, null for unknown; -NOTFOUND",
     .group = "stock",
     .flags = COMMAND_READ | COMMAND_HELD,
     .kind = HOLD_STOCK_GET,
     .words = {WORD_SKUS}},
    {.name = "STOCK LIST",
     .syntax = "[pattern] [CURSOR n] [COUNT n]",
     .summary = "Lists products, in pages",
     .reply = "map: products (list of maps, perhaps empty) cursor (0: that was "
              "all)",
     .group = "stock",
     .flags = COMMAND_READ | COMMAND_HELD,
     .kind = HOLD_STOCK_LIST,
     .words = {WORD_PATTERN},
     .options = OPTION_CURSOR | OPTION_COUNT},
    {.name = "STOCK DEL",
     .syntax = "sku [REQ id]",
     .summary = "Deletes a product of which nothing is reserved",
     .reply = "OK; -STATE -NOTFOUND",
     .group = "stock",
     .flags = COMMAND_WRITE,
     .kind = HOLD_STOCK_DEL,
     .words = {WORD_SKU},
     .options = OPTION_REQ},
    {.name = "RESERVE",
     .syntax = "id|* ITEM sku qty [ITEM sku qty ...] [TTL ms] [OWNER owner] "
               "[REQ id]",
     .summary = "Sets units aside, of all items or of none",
     .reply = RESERVED "; -SHORT -NOTFOUND -CONFLICT",
     .group = "reservation",
     .flags = COMMAND_WRITE,
     .kind = HOLD_RESERVE,
     .words = {WORD_NEW_ID},
     .options = OPTION_ITEM | OPTION_TTL | OPTION_OWNER | OPTION_REQ,
     .required = OPTION_ITEM,
     .ttl_ms = RESERVATION_TTL_MS},
    {.name = "CONFIRM",
     .syntax = "id [REQ id]",
     .summary = "Sells what a reservation set aside",
     .reply = RESERVED "; -STATE -EXPIRED -NOTFOUND",
     .group = "reservation",
     .flags = COMMAND_WRITE,
     .kind = HOLD_CONFIRM,
     .words = {WORD_ID},
     .options = OPTION_REQ},
    {.name = "CANCEL",
     .syntax = "id [REASON text] [REQ id]",
     .summary = "Gives back what a reservation set aside",
     .reply = RESERVED "; -STATE -EXPIRED -NOTFOUND",
     .group = "reservation",
     .flags = COMMAND_WRITE,
     .kind = HOLD_CANCEL,
     .words = {WORD_ID},
     .options = OPTION_REASON | OPTION_REQ},
    {.name = "EXTEND",
     .syntax = "id TTL ms [REQ id]",
     .summary = "Sets how long a reservation lasts from now on",
     .reply = RESERVED "; -STATE -EXPIRED -NOTFOUND",
     .group = "reservation",
     .flags = COMMAND_WRITE,
     .kind = HOLD_EXTEND,
     .words = {WORD_ID},
     .options = OPTION_TTL | OPTION_REQ,
     .required = OPTION_TTL},
    {.name = "RESERVATION",
     .syntax = "id",
     .summary = "Shows a reservation, also for a while after it ended",
     .reply = RESERVED " owner created_ms ended_ms reason; -NOTFOUND",
     .group = "reservation",
     .flags = COMMAND_READ,
     .kind = HOLD_RESERVATION,
     .words = {WORD_ID}},
#define RUN(function, least, most) \
    .run = function, .args_min = least, .args_max = most
    {.name = "LIMIT DEFINE",
     .syntax = "name RATE n PER ms [BURST n] [ALGORITHM BUCKET|GCRA|FIXED|"
               "SLIDING|LOG|LEASES] [KEEP n,n,n] [SHADOW]",
     .summary = "Makes a policy, or changes it; what keys have spent stays "
                "spent. KEEP is what priorities 1, 2 and 3 leave to those "
                "above; SHADOW counts and denies nothing",
     .reply = "OK",
     .group = "limit",
     .flags = COMMAND_HELD | COMMAND_CHANGES,
     RUN(limit_define, 3, 32)},
    {.name = "LIMIT DROP",
     .syntax = "name",
     .summary = "Removes a policy and what its keys have spent",
     .reply = "OK; -NOTFOUND",
     .group = "limit",
     .flags = COMMAND_HELD | COMMAND_CHANGES,
     RUN(limit_drop, 3, 3)},
    {.name = "LIMIT POLICIES",
     .syntax = "",
     .summary = "Lists the policies",
     .reply = "list of maps: policy algorithm rate per_ms burst keep shadow",
     .group = "limit",
     .flags = COMMAND_HELD | COMMAND_LONG,
     RUN(limit_policies, 2, 2)},
    {.name = "LIMIT SETTLE",
     .syntax = "hold COST n",
     .summary = "Ends a hold with its true cost: the rest comes back, what is "
                "above is spent all the same",
     .reply = "OK; -NOTFOUND",
     .group = "limit",
     .flags = COMMAND_HELD | COMMAND_CHANGES,
     RUN(limit_settle, 5, 5)},
    {.name = "LIMIT TOP",
     .syntax = "[count]",
     .summary = "Shows the keys that were denied most, 10 unless told",
     .reply = "list of maps: key policy denied",
     .group = "limit",
     .flags = COMMAND_HELD | COMMAND_LONG,
     RUN(limit_top, 2, 3)},
    {.name = "LIMIT",
     .syntax = "key RATE n PER ms [BURST n] [ALGORITHM name] | POLICY name,... "
               "[ALSO key name,...] [COST n] [PRIORITY 0-3] [PEEK | REFUND "
               "taken | HOLD ms] [WAIT ms] [REQ id] [SHADOW] [HEADERS]",
     .summary = "Takes permits from all that are named, or none and says when "
                "to retry",
     .reply = "map: allowed limit remaining retry_ms reset_ms; with more than "
              "RATE, PER, BURST and COST also policy (that denied) shadow "
              "taken, with HOLD hold, with HEADERS ratelimit_policy "
              "ratelimit; -NOTFOUND -CONFLICT -OVERLOADED",
     .group = "limit",
     .flags = COMMAND_HELD | COMMAND_BLOCKING | COMMAND_CHANGES,
     RUN(limit_take, 2, 64)},
    {.name = "CL.THROTTLE",
     .syntax = "key max_burst count period [quantity]",
     .summary = "As redis-cell has it: quantity permits, count of them earned "
                "in period seconds",
     .reply = "list: limited limit remaining retry_s reset_s",
     .group = "limit",
     .flags = COMMAND_HELD | COMMAND_CHANGES,
     RUN(limit_cell, 5, 6)},
    {.name = "GCRA",
     .syntax = "key max_burst tokens_per_period period [TOKENS n]",
     .summary = "As Redis has it",
     .reply = "list: limited limit remaining retry_s reset_s",
     .group = "limit",
     .flags = COMMAND_HELD | COMMAND_CHANGES,
     RUN(limit_gcra, 5, 7)},
    {.name = "PING",
     .syntax = "[text]",
     .summary = "Answers PONG, or the text",
     .reply = "PONG or the text",
     .group = "server",
     .flags = COMMAND_HELD,
     RUN(admin_ping, 1, 2)},
    {.name = "ECHO",
     .syntax = "text",
     .summary = "Answers the text",
     .reply = "the text",
     .group = "server",
     .flags = COMMAND_HELD,
     RUN(admin_echo, 2, 2)},
    {.name = "HELLO",
     .syntax = "[version [SETNAME name]]",
     .summary = "Chooses the protocol version, 2 or 3",
     .reply = "map: server version proto id mode role modules; -NOPROTO",
     .group = "connection",
     .flags = COMMAND_HELD,
     RUN(admin_hello, 1, RESP_ARGS_MAX)},
    {.name = "SELECT",
     .syntax = "0",
     .summary = "There is one database, 0",
     .reply = "OK",
     .group = "connection",
     .flags = COMMAND_HELD,
     RUN(admin_select, 2, 2)},
    {.name = "CLIENT",
     .syntax = "ID | INFO | GETNAME | SETNAME name | SETINFO attribute value",
     .summary = "Tells or sets facts about this connection",
     .reply = "by question",
     .group = "connection",
     .flags = COMMAND_HELD,
     RUN(admin_client, 2, 4)},
    {.name = "QUIT",
     .syntax = "",
     .summary = "Closes the connection after the answer",
     .reply = "OK",
     .group = "connection",
     .flags = COMMAND_HELD,
     RUN(admin_quit, 1, 1)},
    {.name = "INFO",
     .syntax = "[section]",
     .summary = "Tells what the server holds and does, as text",
     .reply = "text",
     .group = "server",
     .flags = COMMAND_HELD | COMMAND_LONG,
     RUN(admin_info, 1, 2)},
    {.name = "METRICS",
     .syntax = "",
     .summary = "Tells all that is counted and measured, for Prometheus",
     .reply = "text in Prometheus' exposition format 0.0.4",
     .group = "server",
     .flags = COMMAND_HELD | COMMAND_LONG,
     RUN(admin_metrics, 1, 1)},
    {.name = "CONFIG GET",
     .syntax = "pattern [pattern ...]",
     .summary = "Shows settings",
     .reply = "map: setting value",
     .group = "server",
     .flags = COMMAND_HELD | COMMAND_LONG,
     RUN(admin_config_get, 3, 66)},
    {.name = "CONFIG SET",
     .syntax = "setting value",
     .summary = "Changes a setting while the server runs",
     .reply = "OK",
     .group = "server",
     .flags = COMMAND_HELD | COMMAND_ADMIN,
     .kind = HOLD_BOUNDS,
     RUN(admin_config_set, 4, 4)},
    {.name = "COMMAND",
     .syntax = "[COUNT | LIST | DOCS [name ...] | INFO [name ...]]",
     .summary = "Describes the commands to a program",
     .reply = "by question",
     .group = "server",
     .flags = COMMAND_HELD | COMMAND_LONG,
     RUN(admin_command, 1, RESP_ARGS_MAX)},
    {.name = "HELP",
     .syntax = "[command]",
     .summary = "Describes the commands to a person",
     .reply = "list of lines",
     .group = "server",
     .flags = COMMAND_HELD | COMMAND_LONG,
     RUN(admin_help, 1, 3)},
    {.name = "FLUSHALL",
     .syntax = "",
     .summary = "Deletes all holds and all stock; tokens go on",
     .reply = "OK",
     .group = "server",
     .flags = COMMAND_WRITE | COMMAND_ADMIN,
     .kind = HOLD_FLUSH},
};

size_t table_count(void)
{
    return sizeof commands / sizeof commands[0];
}

const struct command *table_at(size_t index)
{
    assert(index < table_count());
    return &commands[index];
}

/* True if `word` is the next word of `name`; `*rest` is what follows it. */
static bool word_matches(struct hf_bytes word, const char *name,
                         const char **rest)
{
    for (size_t i = 0; i < word.len; i++) {
        char c = word.data[i];
        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        if (c != name[i] || c == '\0' || c == ' ')
            return false;
    }
    name += word.len;
    *rest = *name == ' ' ? name + 1 : name;
    return *name == ' ' || *name == '\0';
}

/* The first letter of the name's second word; 0: it has none. */
static char second_letters[sizeof commands / sizeof commands[0]];

void table_init(void)
{
    for (size_t i = 0; i < table_count(); i++) {
        const char *space = strchr(commands[i].name, ' ');
        second_letters[i] = space == NULL ? '\0' : space[1];
    }
}

/* In upper case, if it is a letter; no word of a command begins with anything
 * else. */
static char upper_first(struct hf_bytes word)
{
    return word.len > 0 ? (char)(word.data[0] & ~0x20) : '\0';
}

const struct command *table_find(const struct hf_bytes *args, size_t count,
                                 size_t *named)
{
    char first = upper_first(args[0]);
    char second = count > 1 ? upper_first(args[1]) : '\0';
    const char *rest;

    /* Most are told apart by the first letters of their words. */
    for (size_t i = 0; i < table_count(); i++) {
        if (commands[i].name[0] != first ||
            (second_letters[i] != '\0' && second_letters[i] != second) ||
            !word_matches(args[0], commands[i].name, &rest))
            continue;
        *named = 1;
        if (*rest == '\0')
            return &commands[i];
        *named = 2;
        if (count > 1 && word_matches(args[1], rest, &rest))
            return &commands[i];
    }
    return NULL;
}

/* A web page can make its reader's browser send lines to this port; none of
 * them may be taken for commands. */
static bool is_http(struct hf_bytes word)
{
    return hf_bytes_is(word, "POST") || hf_bytes_is(word, "HOST:");
}

static void say_unknown(struct conn *conn, const struct resp_request *request)
{
    char text[192];
    struct hf_bytes a = request->args[0];
    struct hf_bytes b = request->count > 1 ? request->args[1] : hf_bytes("", 0);

    snprintf(text, sizeof text,
             "ERR unknown command '%.*s' (with '%.*s'), HELP lists them all",
             (int)(a.len < 48 ? a.len : 48), a.data,
             (int)(b.len < 48 ? b.len : 48), b.data);
    (void)resp_error(&conn->out, hf_bytes_text(text));
}

/* Where a command is in the table; behind its end if there is none. */
static size_t index_of(const struct command *command)
{
    return command == NULL ? table_count() : (size_t)(command - commands);
}

void table_took(struct server *server, const struct resp_request *request,
                uint64_t came_ns)
{
    size_t named;

    metrics_took(&server->metrics,
                 index_of(table_find(request->args, request->count, &named)),
                 hf_clock_now_ns(server->clock) - came_ns);
}

static void run_function(struct server *server, struct conn *conn,
                         const struct command *command,
                         struct resp_request *request)
{
    bool is_long = (command->flags & COMMAND_LONG) != 0;
    char text[PARSE_ERROR_MAX];

    if (hf_buf_reserve(&conn->out, request->used + (is_long ? LONG_REPLY_BYTES
                                                            : 512)) != HF_OK) {
        conn_close_no_memory(conn); /* those below write without asking */
        return;
    }
    if (request->count >= command->args_min &&
        request->count <= command->args_max) {
        uint64_t came_ns = hf_clock_now_ns(server->clock);
        command->run(server, conn, request);
        if (is_long)
            conn_spend(conn, CONN_LONG_STEPS);
        /* else it is not answered yet */
        if (conn->limit_wait == 0 && conn->pending == 0)
            metrics_took(&server->metrics, index_of(command),
                         hf_clock_now_ns(server->clock) - came_ns);
        return;
    }
    snprintf(text, sizeof text,
             "BADARG wrong number of arguments, the form is: %s %s",
             command->name, command->syntax);
    metrics_failed(&server->metrics, text);
    (void)resp_error(&conn->out, hf_bytes_text(text));
}

static void run_admitted(struct server *server, struct conn *conn,
                         const struct command *command,
                         struct resp_request *request)
{
    if ((command->flags & COMMAND_ADMIN) != 0 && !conn->local) {
        metrics_failed(&server->metrics, "NOPERM");
        report_denied(&server->report, conn, command->name);
        (void)resp_error(&conn->out,
                         hf_bytes_text("NOPERM only from this machine"));
    } else if (command->run != NULL) {
        run_function(server, conn, command, request);
    } else {
        if ((command->flags & COMMAND_ADMIN) != 0)
            report_admin(&server->report, conn, command->name);
        submit_command(server, conn, &server->command);
    }
}

bool table_run(struct server *server, struct conn *conn,
               struct resp_request *request)
{
    size_t named = 0;
    const struct command *command =
        table_find(request->args, request->count, &named);
    char error[PARSE_ERROR_MAX] = "";

    if (command != NULL && command->run == NULL)
        (void)parse_command(command, request->args + named,
                            request->count - named, &server->command, error);
    bool at_once = command == NULL || error[0] != '\0' ||
                   (command->flags & (COMMAND_HELD | COMMAND_ADMIN)) != 0;
    if (at_once && conn->pending > 0)
        return false; /* answered after what is on its way */
    if (command != NULL && command->run == NULL && error[0] == '\0' &&
        !submit_admits(server, conn, &server->command))
        return false;
    if (command != NULL && (command->flags & COMMAND_LONG) != 0 &&
        submit_is_spent(server))
        return false; /* they share the budget of listings */
    metrics_command(&server->metrics, index_of(command));
    conn_touch(conn);
    if (command != NULL && error[0] == '\0') {
        run_admitted(server, conn, command, request);
        return true;
    }
    metrics_failed(&server->metrics, command == NULL ? "ERR" : error);
    if (command == NULL && is_http(request->args[0])) {
        (void)resp_error(&conn->out, hf_bytes_text("ERR this is not HTTP"));
        report_misbehaved(&server->report, conn, "protocol error", "HTTP");
        conn->quitting = true;
    } else if (command == NULL)
        say_unknown(conn, request);
    else
        (void)resp_error(&conn->out, hf_bytes_text(error));
    return true;
}

static const char *const groups[] = {"lock",  "stock",  "reservation",
                                     "limit", "server", "connection"};

enum hf_status table_markdown(struct hf_buf *out)
{
    enum hf_status status = hf_buf_format(
        out, "# Commands\n\nMade from the command table by `holdfast "
             "commands`. Options stand in any order behind the\nwords. Times "
             "are in milliseconds; maps are flat field-value arrays in RESP2. "
             "A reply\nstarting with `-` is an error: its code, then a "
             "sentence with the facts.\n");

    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        if (status == HF_OK)
            status = hf_buf_format(out, "\n## %s\n", groups[g]);
        for (size_t i = 0; i < table_count() && status == HF_OK; i++) {
            const struct command *c = table_at(i);
            if (strcmp(c->group, groups[g]) != 0)
                continue;
            status = hf_buf_format(
                out, "\n### `%s%s%s`\n\n%s.%s%s\n\nReply: %s.\n", c->name,
                c->syntax[0] ? " " : "", c->syntax, c->summary,
                (c->flags & COMMAND_BLOCKING) ? " May wait." : "",
                (c->flags & COMMAND_ADMIN) ? " Only from the same machine."
                                           : "",
                c->reply);
        }
    }
    return status;
}
