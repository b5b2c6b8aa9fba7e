/* describe.c - COMMAND and HELP, from the table. */
#include "holdfast/version.h"
#include "resp/resp.h"
#include "server/admin.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/server.h"
#include "server/table.h"

/* The name as Redis clients write it: lower case, `|` before a subcommand. */
static struct hf_bytes wire_name(const struct command *command, char out[32])
{
    size_t len = strlen(command->name);

    for (size_t i = 0; i < len; i++) {
        char c = command->name[i];
        out[i] = c == ' ' ? '|' : c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    return hf_bytes(out, len);
}

static void describe_info(struct reply *reply, const struct command *command)
{
    char name[32];
    bool write = (command->flags & (COMMAND_WRITE | COMMAND_CHANGES)) != 0;
    bool keyed = command->kind != 0 && command->shape != NULL &&
                 command->shape->words[0] != WORD_END;

    reply_put_list(reply, 6);
    reply_put_bytes(reply, wire_name(command, name));
    reply_put_number(reply, -(int64_t)command->args_min);
    reply_put_list(reply, 1);
    reply_put_simple(reply, write ? "write" : "readonly");
    for (int i = 0; i < 3; i++) /* first, last, step */
        reply_put_number(reply, keyed);
}

static void describe_docs(struct reply *reply, const struct command *command)
{
    char name[32];

    reply->codec->key(reply, wire_name(command, name));
    reply_put_map(reply, 4);
    reply_pair_text(reply, "summary", command->summary);
    reply_pair_text(reply, "since", HOLDFAST_VERSION);
    reply_pair_text(reply, "group", command->group);
    reply_pair_text(reply, "syntax", command->syntax);
}

/* True if the request names this command, or none at all. */
static bool asked_for(const struct resp_request *request, size_t from,
                      const struct command *command)
{
    char name[32];
    struct hf_bytes wire = wire_name(command, name);

    for (size_t i = from; i < request->count; i++) {
        struct hf_bytes arg = request->args[i];
        if (hf_bytes_is(arg, command->name))
            return true;
        if (arg.len == wire.len) {
            size_t k = 0;
            while (k < wire.len && (arg.data[k] | 32) == (wire.data[k] | 32))
                k++;
            if (k == wire.len)
                return true;
        }
    }
    return request->count <= from;
}

static size_t count_asked(const struct resp_request *request, size_t from)
{
    size_t count = 0;

    for (size_t i = 0; i < table_count(); i++)
        count += asked_for(request, from, table_at(i));
    return count;
}

void admin_command(struct server *server, struct conn *conn,
                   struct resp_request *request)
{
    struct hf_bytes what =
        request->count > 1 ? request->args[1] : hf_bytes("INFO", 4);
    struct reply *reply = &conn->reply;
    char name[32];

    if (hf_bytes_is(what, "COUNT")) {
        reply_put_number(reply, (int64_t)table_count());
    } else if (hf_bytes_is(what, "LIST")) {
        reply_put_list(reply, table_count());
        for (size_t i = 0; i < table_count(); i++)
            reply_put_bytes(reply, wire_name(table_at(i), name));
    } else if (hf_bytes_is(what, "DOCS")) {
        reply_put_map(reply, count_asked(request, 2));
        for (size_t i = 0; i < table_count(); i++) {
            if (asked_for(request, 2, table_at(i)))
                describe_docs(reply, table_at(i));
        }
    } else if (hf_bytes_is(what, "INFO")) {
        reply_put_list(reply, count_asked(request, 2));
        for (size_t i = 0; i < table_count(); i++) {
            if (asked_for(request, 2, table_at(i)))
                describe_info(reply, table_at(i));
        }
    } else {
        answer_form(server, conn, request);
    }
}

/* A command belongs to the help asked for if its name begins with it. */
static bool helped(const struct resp_request *request,
                   const struct command *command)
{
    struct hf_bytes asked =
        request->count > 1 ? request->args[1] : hf_bytes("", 0);

    for (size_t i = 0; i < asked.len; i++) {
        char c = asked.data[i];
        if (c >= 'a' && c <= 'z')
            c = (char)(c - 32);
        if (command->name[i] == '\0' || command->name[i] != c)
            return false;
    }
    return asked.len == 0 || command->name[asked.len] == '\0' ||
           command->name[asked.len] == ' ';
}

void admin_help(struct server *server, struct conn *conn,
                struct resp_request *request)
{
    char line[512];
    size_t count = 0;

    for (size_t i = 0; i < table_count(); i++)
        count += helped(request, table_at(i));
    if (count == 0) {
        answer_error(server, conn, ERROR_NO_COMMAND);
        return;
    }
    reply_put_list(&conn->reply, count);
    for (size_t i = 0; i < table_count(); i++) {
        const struct command *command = table_at(i);
        if (!helped(request, command))
            continue;
        snprintf(line, sizeof line, "%s %s - %s", command->name,
                 command->syntax, command->summary);
        reply_put_text(&conn->reply, line);
    }
}
