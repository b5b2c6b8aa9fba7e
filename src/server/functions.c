/* functions.c - the commands that are not the engine's: rows of the table. */
#include "resp/resp.h"
#include "server/admin.h"
#include "server/audit.h"
#include "server/events.h"
#include "server/group.h"
#include "server/history.h"
#include "server/limit.h"
#include "server/script.h"
#include "server/subscribe.h"
#include "server/table.h"

#define LONG            COMMAND_LONG
#define CHANGES         COMMAND_CHANGES
#define SHAPE(function) .run = function, .shape = &function##_shape

/* What the commands about the connection and the server take. Only HELLO has
 * options. */
#define PLACE(field) .place = offsetof(struct admin_words, field)
#define OPTIONAL     .optional = true
#define PLAIN_WORDS(WORD)                                                    \
    WORD(TEXT, "text")                                                       \
    WORD(OPTIONAL_TEXT, "text", OPTIONAL)                                    \
    WORD(VERSION, "version", .form = "[version", OPTIONAL,                   \
         .type = TYPE_NUMBER, PLACE(version), .min = 2, .max = 3)            \
    WORD(DATABASE, "0")                                                      \
    WORD(NAME, "name")                                                       \
    WORD(SKU, "sku")                                                         \
    WORD(ATTRIBUTE, "attribute")                                             \
    WORD(SECTION, "section", OPTIONAL)                                       \
    WORD(PATTERNS, "pattern", .form = "pattern [pattern ...]", .many = true, \
         .max = 64)                                                          \
    WORD(CHANNEL, "channel")                                                 \
    WORD(CHANNELS, "channel", .form = "channel [channel ...]", .many = true, \
         .max = 1024)                                                        \
    WORD(SOME_CHANNELS, "channel", .form = "[channel ...]", OPTIONAL,        \
         .many = true, .max = 1024)                                          \
    WORD(SOME_PATTERNS, "pattern", .form = "[pattern ...]", OPTIONAL,        \
         .many = true, .max = 1024)                                          \
    WORD(PATTERN, "pattern", OPTIONAL)                                       \
    WORD(SETTING, "setting")                                                 \
    WORD(VALUE, "value")                                                     \
    WORD(NAMES, "name", .form = "[name ...]", OPTIONAL, .many = true,        \
         .max = RESP_ARGS_MAX)                                               \
    WORD(SHAS, "sha1", .form = "sha1 [sha1 ...]", .many = true,              \
         .max = RESP_ARGS_MAX)                                               \
    WORD(HOW, "ASYNC|SYNC", OPTIONAL)                                        \
    WORD(COMMAND, "command", OPTIONAL, .many = true, .max = 2)
#define WORD_NUMBER(word, ...) PLAIN_##word,
#define WORD_ROW(word, ...)    {.name = __VA_ARGS__},
enum { PLAIN_NONE, PLAIN_WORDS(WORD_NUMBER) };
static const struct hold_arg plain_words[] = {{.name = NULL},
                                              PLAIN_WORDS(WORD_ROW)};
static const struct hold_arg plain_options[] = {
    {"AUTH", "user password", .form = "[AUTH user password]]",
     .type = TYPE_OWN},
    {"SETNAME", "name", .type = TYPE_BYTES, PLACE(name)},
};
static struct vocabulary plain = {
    .words = plain_words, .options = plain_options, .option_count = 2};
const struct shape admin_hello_shape = {&plain, {PLAIN_VERSION}, 3, 0};
#define WORDS(function, ...)                        \
    .run = function, .shape = &(const struct shape) \
    {                                               \
        &plain, {__VA_ARGS__}, 0, 0                 \
    }
/* What the engine does not do. All of it waits for the connection's own
 * writes. */
const struct command table_functions[] = {
    {"STOCK HISTORY",
     "Tells what happened to a product and to reservations of it, in order, "
     "100 changes unless told",
     "as EVENTS; no events: that was all; -STATE", "stock",
     COMMAND_BLOCKING | LONG, SHAPE(history_stock)},
    {"STOCK AUDIT",
     "Derives a product's numbers from the journal on disk, from the oldest "
     "snapshot on, and proves at each step that they add up and that no unit "
     "was promised twice; one audit at a time",
     "map: sku from (the number of the snapshot; 0: all there ever was) to "
     "records steps total available reserved sold; -ERR: what is wrong, -BUSY "
     "-NOTFOUND",
     "stock", COMMAND_BLOCKING, WORDS(audit_stock, PLAIN_SKU)},
    {"RESERVATION HISTORY",
     "Tells what happened to a reservation, also when it is forgotten; the id "
     "HISTORY cannot be shown by RESERVATION",
     "as EVENTS; no events: that was all; -STATE", "reservation",
     COMMAND_BLOCKING | LONG, SHAPE(history_reservation)},
    {"STOCK AT",
     "Shows a product as it was behind a number of the past; the same as STOCK "
     "GET sku AT number",
     "map: sku total available reserved sold version updated_ms (null: older "
     "than what is kept) at; -NOTFOUND: there was none; -STATE: not known any "
     "more, and from which number on it is; -BADARG",
     "stock", COMMAND_BLOCKING | LONG, SHAPE(history_at)},
    {"LIMIT DEFINE",
     "Makes a policy, or changes it; what keys have spent stays spent. KEEP is "
     "what priorities 1, 2 and 3 leave to those above; SHADOW counts and "
     "denies nothing",
     "OK", "limit", CHANGES, SHAPE(limit_define)},
    {"LIMIT DROP", "Removes a policy and what its keys have spent",
     "OK; -NOTFOUND", "limit", CHANGES, SHAPE(limit_drop)},
    {"LIMIT POLICIES", "Lists the policies",
     "list of maps: policy algorithm rate per_ms burst keep shadow", "limit",
     LONG, SHAPE(limit_policies)},
    {"LIMIT SETTLE",
     "Ends a hold with its true cost: the rest comes back, what is above is "
     "spent all the same",
     "OK; -NOTFOUND", "limit", CHANGES, SHAPE(limit_settle)},
    {"LIMIT TOP", "Shows the keys that were denied most, 10 unless told",
     "list of maps: key policy denied", "limit", LONG, SHAPE(limit_top)},
    {"LIMIT",
     "Takes permits from all that are named, or none and says when to retry. "
     "RATE and PER, POLICY, or both are needed",
     "map: allowed limit remaining retry_ms reset_ms; with more than RATE, "
     "PER, BURST and COST also policy (that denied) shadow taken, with HOLD "
     "hold, with HEADERS ratelimit_policy ratelimit; -NOTFOUND -CONFLICT "
     "-OVERLOADED",
     "limit", COMMAND_BLOCKING | CHANGES, SHAPE(limit_take),
     .expect = limit_expect},
    {"CL.THROTTLE",
     "As redis-cell has it: quantity permits, count of them earned in period "
     "seconds",
     "list: limited limit remaining retry_s reset_s", "limit", CHANGES,
     SHAPE(limit_cell)},
    {"GCRA", "As Redis has it", "list: limited limit remaining retry_s reset_s",
     "limit", CHANGES, SHAPE(limit_gcra)},
    {"MULTI",
     "Begins a group: commands are queued until EXEC, or until DISCARD",
     "OK; then QUEUED for each command", "group", 0,
     WORDS(group_multi, PLAIN_NONE)},
    {"DISCARD", "Forgets what was queued since MULTI", "OK", "group", 0,
     WORDS(group_discard, PLAIN_NONE)},
    {"EVENTS",
     "Tells what happened after a number, in order, 100 changes unless told; "
     "WAIT waits for the next one. gap: what happened up to this number is not "
     "kept any more",
     "map: events (list of maps: seq kind at_ms ...) next (FROM of the next "
     "call) gap (0: none); -STATE",
     "events", COMMAND_BLOCKING | LONG, SHAPE(events_read)},
    {"SUBSCRIBE", "Has what is published on channels told to this connection",
     "for each: subscribe channel count", "events", 0,
     WORDS(subscribe_channels, PLAIN_CHANNELS)},
    {"PSUBSCRIBE", "The same for all channels that match a pattern",
     "for each: psubscribe pattern count", "events", 0,
     WORDS(subscribe_patterns, PLAIN_PATTERNS)},
    {"UNSUBSCRIBE", "Ends subscriptions to channels, or all of them",
     "for each: unsubscribe channel count", "events", 0,
     WORDS(unsubscribe_channels, PLAIN_SOME_CHANNELS)},
    {"PUNSUBSCRIBE", "Ends subscriptions to patterns, or all of them",
     "for each: punsubscribe pattern count", "events", 0,
     WORDS(unsubscribe_patterns, PLAIN_SOME_PATTERNS)},
    {"PUBLISH",
     "Tells a text to those who have subscribed; not on hf: channels",
     "number of those told", "events", CHANGES,
     WORDS(publish_text, PLAIN_CHANNEL, PLAIN_TEXT)},
    {"PUBSUB CHANNELS", "Lists the channels with subscribers", "list of texts",
     "events", LONG, WORDS(pubsub_channels, PLAIN_PATTERN)},
    {"PUBSUB NUMSUB", "Counts the subscribers of channels",
     "list: channel count, for each", "events", LONG,
     WORDS(pubsub_numsub, PLAIN_SOME_CHANNELS)},
    {"PUBSUB NUMPAT", "Counts the patterns", "number", "events", 0,
     WORDS(pubsub_numpat, PLAIN_NONE)},
    {"SCRIPT LOAD", "Remembers a script that is known, for EVALSHA",
     "its SHA1; -ERR", "redis", COMMAND_CHANGES,
     WORDS(script_load, PLAIN_TEXT)},
    {"SCRIPT EXISTS", "Tells which of these EVALSHA would find",
     "list of 1 or 0", "redis", 0, WORDS(script_exists, PLAIN_SHAS)},
    {"SCRIPT FLUSH", "Forgets what SCRIPT LOAD and EVAL remembered", "OK",
     "redis", COMMAND_CHANGES, WORDS(script_flush, PLAIN_HOW)},
    {"PING", "Answers PONG, or the text", "PONG or the text", "server", 0,
     WORDS(admin_ping, PLAIN_OPTIONAL_TEXT)},
    {"ECHO", "Answers the text", "the text", "server", 0,
     WORDS(admin_echo, PLAIN_TEXT)},
    {"HELLO",
     "Chooses the protocol version, 2 or 3. AUTH is refused: no password is "
     "set",
     "map: server version proto id mode role modules; -NOPROTO", "connection",
     0, SHAPE(admin_hello)},
    {"SELECT", "There is one database, 0", "OK", "connection", 0,
     WORDS(admin_select, PLAIN_DATABASE)},
    {"CLIENT ID", "Tells the number of this connection", "number", "connection",
     0, WORDS(admin_client_id, PLAIN_NONE)},
    {"CLIENT INFO", "Describes this connection", "text", "connection", 0,
     WORDS(admin_client_info, PLAIN_NONE)},
    {"CLIENT GETNAME", "Tells the name of this connection", "text or null",
     "connection", 0, WORDS(admin_client_getname, PLAIN_NONE)},
    {"CLIENT SETNAME", "Names this connection, for the log", "OK", "connection",
     0, WORDS(admin_client_setname, PLAIN_NAME)},
    {"CLIENT SETINFO", "Is taken from Redis clients, and not used", "OK",
     "connection", 0,
     WORDS(admin_client_setinfo, PLAIN_ATTRIBUTE, PLAIN_VALUE)},
    {"QUIT", "Closes the connection after the answer", "OK", "connection", 0,
     WORDS(admin_quit, PLAIN_NONE)},
    {"INFO", "Tells what the server holds and does, as text", "text", "server",
     LONG, WORDS(admin_info, PLAIN_SECTION)},
    {"METRICS", "Tells all that is counted and measured, for Prometheus",
     "text in Prometheus' exposition format 0.0.4", "server", LONG,
     WORDS(admin_metrics, PLAIN_NONE)},
    {"CONFIG GET", "Shows settings", "map: setting value", "server", LONG,
     WORDS(admin_config_get, PLAIN_PATTERNS)},
    {"CONFIG SET", "Changes a setting while the server runs", "OK", "server",
     COMMAND_ADMIN, .kind = HOLD_BOUNDS,
     WORDS(admin_config_set, PLAIN_SETTING, PLAIN_VALUE)},
    {"COMMAND COUNT", "Tells how many commands there are", "number", "server",
     0, WORDS(admin_command_count, PLAIN_NONE)},
    {"COMMAND LIST", "Lists the names of the commands", "list of texts",
     "server", LONG, WORDS(admin_command_list, PLAIN_NONE)},
    {"COMMAND DOCS", "Describes commands, or all, to a person",
     "map: name (map: summary since group syntax)", "server", LONG,
     WORDS(admin_command_docs, PLAIN_NAMES)},
    {"COMMAND INFO", "Describes commands, or all, to a program",
     "list of lists: name arity flags first last step", "server", LONG,
     WORDS(admin_command_info, PLAIN_NAMES)},
    {"COMMAND", "As COMMAND INFO, of all", "as COMMAND INFO", "server", LONG,
     WORDS(admin_command_info, PLAIN_NONE)},
    {"HELP", "Describes the commands to a person", "list of lines", "server",
     LONG, WORDS(admin_help, PLAIN_COMMAND)},
};

const size_t table_function_count =
    sizeof table_functions / sizeof table_functions[0];
