/* admin.c - the connection, its protocol, the settings. */
#include "server/admin.h"

#include "holdfast/version.h"
#include "resp/resp.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/server.h"
#include "server/table.h"

void admin_ping(struct server *server, struct conn *conn,
                struct resp_request *request)
{
    (void)server;
    if (request->count > 1)
        reply_put_bytes(&conn->reply, request->args[1]);
    else
        reply_put_simple(&conn->reply, "PONG");
}

void admin_echo(struct server *server, struct conn *conn,
                struct resp_request *request)
{
    (void)server;
    reply_put_bytes(&conn->reply, request->args[1]);
}

/* A name for INFO and logs: printable, without blanks. */
static bool set_name(struct conn *conn, struct hf_bytes name)
{
    if (name.len >= CONN_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] <= ' ' || name.data[i] > '~')
            return false;
    }
    memcpy(conn->name, name.data, name.len);
    conn->name[name.len] = '\0';
    return true;
}

void admin_hello(struct server *server, struct conn *conn,
                 struct resp_request *request)
{
    struct reply *reply = &conn->reply;
    uint64_t version = (uint64_t)reply->codec->version;

    if (request->count > 1 &&
        (hf_parse_u64(request->args[1], &version) != HF_OK || version < 2 ||
         version > 3)) {
        answer_error(server, conn, ERROR_VERSION);
        return;
    }
    for (size_t i = 2; i < request->count; i += 2) {
        if (hf_bytes_is(request->args[i], "AUTH")) {
            answer_error(server, conn, ERROR_AUTH);
            return;
        }
        if (!hf_bytes_is(request->args[i], "SETNAME") ||
            i + 1 >= request->count || !set_name(conn, request->args[i + 1])) {
            answer_form(server, conn, request);
            return;
        }
    }
    reply->codec = version == 3 ? &resp3_codec : &resp2_codec;
    reply_put_map(reply, 7);
    reply_pair_text(reply, "server", "holdfast");
    reply_pair_text(reply, "version", HOLDFAST_VERSION);
    reply_pair_number(reply, "proto", reply->codec->version);
    reply_pair_number(reply, "id", (int64_t)conn->id);
    reply_pair_text(reply, "mode", "standalone");
    reply_pair_text(reply, "role", "master");
    reply_put_key(reply, "modules");
    reply_put_list(reply, 0);
}

void admin_select(struct server *server, struct conn *conn,
                  struct resp_request *request)
{
    if (hf_bytes_equal(request->args[1], hf_bytes("0", 1)))
        reply_put_simple(&conn->reply, "OK");
    else
        answer_error(server, conn, ERROR_DATABASE);
}

static void client_info(struct conn *conn)
{
    char line[256];

    snprintf(line, sizeof line, "id=%llu name=%s resp=%d\n",
             (unsigned long long)conn->id, conn->name,
             conn->reply.codec->version);
    reply_put_text(&conn->reply, line);
}

void admin_client(struct server *server, struct conn *conn,
                  struct resp_request *request)
{
    struct hf_bytes what = request->args[1];

    if (hf_bytes_is(what, "ID") && request->count == 2) {
        reply_put_number(&conn->reply, (int64_t)conn->id);
    } else if (hf_bytes_is(what, "INFO") && request->count == 2) {
        client_info(conn);
    } else if (hf_bytes_is(what, "GETNAME") && request->count == 2) {
        if (conn->name[0] != '\0')
            reply_put_text(&conn->reply, conn->name);
        else
            reply_put_null(&conn->reply);
    } else if (hf_bytes_is(what, "SETNAME") && request->count == 3) {
        if (set_name(conn, request->args[2]))
            reply_put_simple(&conn->reply, "OK");
        else
            answer_error(server, conn, ERROR_NAME);
    } else if (hf_bytes_is(what, "SETINFO") && request->count == 4) {
        reply_put_simple(&conn->reply, "OK"); /* nothing here needs it */
    } else {
        answer_form(server, conn, request);
    }
}

void admin_quit(struct server *server, struct conn *conn,
                struct resp_request *request)
{
    (void)server;
    (void)request;
    reply_put_simple(&conn->reply, "OK");
    conn->quitting = true;
}

/* All settings as texts: numbers from their table, and a few others. */
struct setting {
    const char *name;
    char value[256];
};
#define SETTINGS_MAX (CONFIG_NUMBERS_MAX + 12)

static size_t list_settings(struct server *server,
                            struct setting out[SETTINGS_MAX])
{
    struct config *config = &server->config;
    struct config_number numbers[CONFIG_NUMBERS_MAX];
    size_t count = config_numbers(config, numbers);
    const struct {
        const char *name;
        const char *value;
    } texts[] = {
        {"bind", config->bind},
        {"dir", config->dir},
        {"durability", config_durability_name(config->durability)},
        {"log-file", config->log_file},
        {"log-level", config_level_name(config->log_level)},
        {"log-format", config_format_name(config->log_format)},
        /* what Redis tools ask for, in their words */
        {"save", ""},
        {"appendonly", config->durability == JOURNAL_NONE ? "no" : "yes"},
        {"databases", "1"},
    };
    size_t text_count = sizeof texts / sizeof texts[0];

    for (size_t i = 0; i < count; i++) {
        out[i].name = numbers[i].name;
        snprintf(out[i].value, sizeof out[i].value, "%llu",
                 (unsigned long long)*numbers[i].value);
    }
    for (size_t i = 0; i < text_count; i++) {
        out[count + i].name = texts[i].name;
        snprintf(out[count + i].value, sizeof out[0].value, "%s",
                 texts[i].value);
    }
    return count + text_count;
}

void admin_config_get(struct server *server, struct conn *conn,
                      struct resp_request *request)
{
    struct setting settings[SETTINGS_MAX];
    size_t count = list_settings(server, settings);
    bool shown[SETTINGS_MAX] = {false};
    size_t matches = 0;

    for (size_t i = 0; i < count; i++) {
        struct hf_bytes name = hf_bytes_text(settings[i].name);
        for (size_t k = 2; k < request->count && !shown[i]; k++)
            shown[i] = hf_bytes_match(request->args[k], name);
        matches += shown[i];
    }
    reply_put_map(&conn->reply, matches);
    for (size_t i = 0; i < count; i++) {
        if (shown[i])
            reply_pair_text(&conn->reply, settings[i].name, settings[i].value);
    }
}

/* A bound is part of the engine's state, so it goes through the journal, and
 * is shown and logged when it has. */
static void submit_bound(struct server *server, struct conn *conn,
                         const char *name, uint64_t value)
{
    struct hold_command *c = &server->command;
    size_t row = 0;

    while (strcmp(hold_bound_rows[row].setting, name) != 0)
        row++; /* it is one of them */
    *c = (struct hold_command){.kind = HOLD_BOUNDS};
    (void)hold_add_item(c, hf_bytes_text(hold_bound_rows[row].name), value);
    submit_command(server, conn, c);
}

static void set_level(struct server *server, struct conn *conn,
                      struct hf_bytes value)
{
    enum hf_log_level was = server->config.log_level;
    enum hf_log_level is;

    if (config_parse_level(value, &is) != HF_OK) {
        answer_error(server, conn, ERROR_LEVEL);
        return;
    }
    /* Told at the lower of the two: a log that falls silent says why. */
    report_set_level(&server->report, is < was ? is : was);
    report_config(&server->report, conn, "log-level", config_level_name(was),
                  config_level_name(is));
    server->config.log_level = is;
    server_apply_config(server);
    reply_put_simple(&conn->reply, "OK");
}

static void tell_number(struct server *server, const struct conn *conn,
                        const char *name, uint64_t was, uint64_t is)
{
    char from[HF_DIGITS_MAX + 1];
    char to[HF_DIGITS_MAX + 1];

    from[hf_print_u64(from, was)] = '\0';
    to[hf_print_u64(to, is)] = '\0';
    report_config(&server->report, conn, name, from, to);
}

void admin_bounds_changed(struct server *server, const struct conn *conn)
{
    struct config was = server->config;
    struct config_number old[CONFIG_NUMBERS_MAX];
    struct config_number now[CONFIG_NUMBERS_MAX];
    size_t count = config_numbers(&was, old);

    server->config.bounds = hold_get_bounds(server->engine);
    (void)config_numbers(&server->config, now);
    for (size_t i = 0; i < count; i++) {
        if (*old[i].value != *now[i].value)
            tell_number(server, conn, now[i].name, *old[i].value,
                        *now[i].value);
    }
}

void admin_config_set(struct server *server, struct conn *conn,
                      struct resp_request *request)
{
    struct config_number numbers[CONFIG_NUMBERS_MAX];
    size_t count = config_numbers(&server->config, numbers);
    uint64_t value;

    if (hf_bytes_equal(request->args[2], hf_bytes_text("log-level"))) {
        set_level(server, conn, request->args[3]);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct config_number *n = &numbers[i];
        if (!hf_bytes_equal(request->args[2], hf_bytes_text(n->name)) ||
            !n->live)
            continue;
        if (hf_parse_u64(request->args[3], &value) != HF_OK || value < n->min ||
            value > n->max) {
            answer_error(server, conn, ERROR_RANGE, n->name,
                         (unsigned long long)n->min,
                         (unsigned long long)n->max);
            return;
        }
        if (n->bound) {
            submit_bound(server, conn, n->name, value);
            return;
        }
        tell_number(server, conn, n->name, *n->value, value);
        *n->value = value;
        server_apply_config(server);
        reply_put_simple(&conn->reply, "OK");
        return;
    }
    answer_error(server, conn, ERROR_SETTING);
}
