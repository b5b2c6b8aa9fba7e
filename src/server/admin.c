/* admin.c - the connection, its protocol, the settings. */
#include "server/admin.h"

#include "holdfast/version.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/server.h"
#include "server/subscribe.h"
#include "server/table.h"

void admin_ping(const struct asked *asked)
{
    if (subscribe_has(asked->conn)) {
        reply_put_list(asked->reply, 2);
        reply_put_text(asked->reply, "pong");
        reply_put_bytes(asked->reply,
                        asked->count > 0 ? asked->args[0] : hf_bytes("", 0));
    } else if (asked->count > 0)
        reply_put_bytes(asked->reply, asked->args[0]);
    else
        reply_put_simple(asked->reply, "PONG");
}

void admin_echo(const struct asked *asked)
{
    reply_put_bytes(asked->reply, asked->args[0]);
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

static void say_hello(struct conn *conn, uint64_t version)
{
    struct reply *reply = &conn->reply;

    if (version != 0)
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

/* AUTH, whatever follows. */
static enum hf_status refuse(struct parse *p, unsigned option)
{
    (void)p, (void)option;
    return HF_CANCELLED;
}

void admin_hello(const struct asked *asked)
{
    struct admin_words words = {.name = hf_bytes_text(asked->conn->name)};
    char error[PARSE_ERROR_MAX];
    struct parse p = {.shape = &admin_hello_shape,
                      .args = asked->args,
                      .count = asked->count,
                      .out = &words,
                      .error = error,
                      .own = refuse};
    enum hf_status status = parse_shape(&p);

    if (asked->count > 0 && words.version == 0)
        answer_error(asked->server, asked->conn, ERROR_VERSION);
    else if (status == HF_CANCELLED)
        answer_error(asked->server, asked->conn, ERROR_AUTH);
    else if (status != HF_OK)
        answer_bad(asked->server, asked->conn, status, error);
    else if (!set_name(asked->conn, words.name))
        answer_error(asked->server, asked->conn, ERROR_NAME);
    else
        say_hello(asked->conn, words.version);
}

void admin_select(const struct asked *asked)
{
    if (hf_bytes_equal(asked->args[0], hf_bytes("0", 1)))
        reply_put_simple(asked->reply, "OK");
    else
        answer_error(asked->server, asked->conn, ERROR_DATABASE);
}

void admin_client_id(const struct asked *asked)
{
    reply_put_number(asked->reply, (int64_t)asked->conn->id);
}

void admin_client_info(const struct asked *asked)
{
    char line[256];

    snprintf(line, sizeof line, "id=%llu name=%s resp=%d\n",
             (unsigned long long)asked->conn->id, asked->conn->name,
             asked->reply->codec->version);
    reply_put_text(asked->reply, line);
}

void admin_client_getname(const struct asked *asked)
{
    if (asked->conn->name[0] != '\0')
        reply_put_text(asked->reply, asked->conn->name);
    else
        reply_put_null(asked->reply);
}

void admin_client_setname(const struct asked *asked)
{
    if (set_name(asked->conn, asked->args[0]))
        reply_put_simple(asked->reply, "OK");
    else
        answer_error(asked->server, asked->conn, ERROR_NAME);
}

/* Nothing here needs it. */
void admin_client_setinfo(const struct asked *asked)
{
    reply_put_simple(asked->reply, "OK");
}

void admin_quit(const struct asked *asked)
{
    reply_put_simple(asked->reply, "OK");
    asked->conn->quitting = true;
}

/* All settings: numbers from their table, and a few others. */
struct setting {
    const char *name;
    const char *text; /* NULL: it is a number */
    uint64_t number;
};
#define SETTINGS_MAX (CONFIG_NUMBERS_MAX + 12)

static size_t list_settings(struct server *server,
                            struct setting out[SETTINGS_MAX])
{
    struct config *config = &server->config;
    struct config_number numbers[CONFIG_NUMBERS_MAX];
    size_t count = config_numbers(config, numbers);
    const struct setting texts[] = {
        {"bind", config->bind, 0},
        {"dir", config->dir, 0},
        {"durability", config_durabilities[config->durability], 0},
        {"log-file", config->log_file, 0},
        {"log-level", config_levels[config->log_level], 0},
        {"log-format", config_formats[config->log_format], 0},
        /* what Redis tools ask for, in their words */
        {"save", "", 0},
        {"appendonly", config->durability == JOURNAL_NONE ? "no" : "yes", 0},
        {"databases", "1", 0},
    };

    for (size_t i = 0; i < count; i++)
        out[i] = (struct setting){numbers[i].name, NULL, *numbers[i].value};
    memcpy(out + count, texts, sizeof texts);
    return count + sizeof texts / sizeof texts[0];
}

static void show(struct reply *reply, const struct setting *setting)
{
    char digits[HF_DIGITS_MAX + 1];

    digits[hf_print_u64(digits, setting->number)] = '\0';
    reply_pair_text(reply, setting->name,
                    setting->text != NULL ? setting->text : digits);
}

void admin_config_get(const struct asked *asked)
{
    struct setting settings[SETTINGS_MAX];
    size_t count = list_settings(asked->server, settings);
    size_t matches = 0;

    for (size_t i = 0; i < count; i++) {
        struct hf_bytes name = hf_bytes_text(settings[i].name);
        size_t k = 0;
        while (k < asked->count && !hf_bytes_match(asked->args[k], name))
            k++;
        if (k < asked->count)
            settings[matches++] = settings[i];
    }
    reply_put_map(asked->reply, matches);
    for (size_t i = 0; i < matches; i++)
        show(asked->reply, &settings[i]);
}

static void set_level(const struct asked *asked)
{
    struct server *server = asked->server;
    enum hf_log_level was = server->config.log_level;
    int found = config_find(config_levels, asked->args[1]);
    enum hf_log_level is = (enum hf_log_level)found;

    if (found < 0) {
        answer_error(server, asked->conn, ERROR_LEVEL);
        return;
    }
    /* Told at the lower of the two: a log that falls silent says why. */
    report_set_level(&server->report, is < was ? is : was);
    report_config(&server->report, asked->conn, "log-level", config_levels[was],
                  config_levels[is]);
    server->config.log_level = is;
    server_apply_config(server);
    reply_put_simple(asked->reply, "OK");
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

static void set_number(const struct asked *asked, const struct config_number *n)
{
    struct server *server = asked->server;
    struct hold_command *c = &server->command;
    uint64_t value;

    if (hf_parse_u64(asked->args[1], &value) != HF_OK || value < n->min ||
        value > n->max) {
        answer_error(server, asked->conn, ERROR_RANGE, n->name,
                     (unsigned long long)n->min, (unsigned long long)n->max);
    } else if (n->bound) {
        /* Part of the engine's state: it goes through the journal, and is
         * shown and logged when it has. */
        size_t row = (size_t)(n->value - hold_bound(&server->config.bounds, 0));
        *c = (struct hold_command){.kind = HOLD_BOUNDS};
        (void)hold_add_item(c, hf_bytes_text(hold_bound_rows[row].name), value);
        submit_command(server, asked->conn, c);
    } else {
        tell_number(server, asked->conn, n->name, *n->value, value);
        *n->value = value;
        server_apply_config(server);
        reply_put_simple(asked->reply, "OK");
    }
}

void admin_config_set(const struct asked *asked)
{
    struct config_number numbers[CONFIG_NUMBERS_MAX];
    size_t count = config_numbers(&asked->server->config, numbers);
    size_t i = 0;

    while (i < count &&
           (!numbers[i].live ||
            !hf_bytes_equal(asked->args[0], hf_bytes_text(numbers[i].name))))
        i++;
    if (i < count)
        set_number(asked, &numbers[i]);
    else if (hf_bytes_equal(asked->args[0], hf_bytes_text("log-level")))
        set_level(asked);
    else
        answer_error(asked->server, asked->conn, ERROR_SETTING);
}
