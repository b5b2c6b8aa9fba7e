/* describe.c - COMMAND and HELP, from the table. */
#include "resp/resp.h"
#include "server/admin.h"
#include "server/conn.h"
#include "server/server.h"
#include "server/table.h"
#include "server/version.h"

static void text(struct conn *conn, const char *value)
{
    (void)resp_bulk(&conn->out, hf_bytes_text(value));
}

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

/* How many words the shortest request has. */
static int64_t least_words(const struct command *command)
{
    int64_t words = strchr(command->name, ' ') != NULL ? 2 : 1;

    if (command->run != NULL)
        return (int64_t)command->args_min;
    for (int i = 0; i < WORDS_MAX; i++)
        words +=
            command->words[i] != WORD_END && command->words[i] != WORD_PATTERN;
    for (unsigned bits = command->required; bits != 0; bits &= bits - 1)
        words += (bits & -bits) == OPTION_ITEM ? 3 : 2;
    return words;
}

static void describe_info(struct conn *conn, const struct command *command)
{
    char name[32];
    bool write = (command->flags & (COMMAND_WRITE | COMMAND_CHANGES)) != 0;

    (void)resp_array(&conn->out, 6);
    (void)resp_bulk(&conn->out, wire_name(command, name));
    (void)resp_number(&conn->out, -least_words(command));
    (void)resp_array(&conn->out, 1);
    (void)resp_simple(&conn->out, write ? "write" : "readonly");
    bool keyed = command->words[0] != WORD_END;
    (void)resp_number(&conn->out, keyed);
    (void)resp_number(&conn->out, keyed);
    (void)resp_number(&conn->out, keyed);
}

static void describe_docs(struct conn *conn, const struct command *command)
{
    char name[32];

    (void)resp_bulk(&conn->out, wire_name(command, name));
    (void)resp_map(&conn->out, conn->version, 4);
    text(conn, "summary");
    text(conn, command->summary);
    text(conn, "since");
    text(conn, HOLDFAST_VERSION);
    text(conn, "group");
    text(conn, command->group);
    text(conn, "syntax");
    text(conn, command->syntax);
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
    char name[32];

    if (hf_bytes_is(what, "COUNT")) {
        (void)resp_number(&conn->out, (int64_t)table_count());
    } else if (hf_bytes_is(what, "LIST")) {
        (void)resp_array(&conn->out, table_count());
        for (size_t i = 0; i < table_count(); i++)
            (void)resp_bulk(&conn->out, wire_name(table_at(i), name));
    } else if (hf_bytes_is(what, "DOCS")) {
        (void)resp_map(&conn->out, conn->version, count_asked(request, 2));
        for (size_t i = 0; i < table_count(); i++) {
            if (asked_for(request, 2, table_at(i)))
                describe_docs(conn, table_at(i));
        }
    } else if (hf_bytes_is(what, "INFO")) {
        (void)resp_array(&conn->out, count_asked(request, 2));
        for (size_t i = 0; i < table_count(); i++) {
            if (asked_for(request, 2, table_at(i)))
                describe_info(conn, table_at(i));
        }
    } else {
        metrics_failed(&server->metrics, "BADARG");
        (void)resp_error(
            &conn->out,
            hf_bytes_text("BADARG the form is: COMMAND [COUNT | LIST | DOCS "
                          "[name ...] | INFO [name ...]]"));
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
    char line[320];
    size_t count = 0;

    for (size_t i = 0; i < table_count(); i++)
        count += helped(request, table_at(i));
    if (count == 0) {
        metrics_failed(&server->metrics, "NOTFOUND");
        (void)resp_error(&conn->out, hf_bytes_text("NOTFOUND no such command"));
        return;
    }
    (void)resp_array(&conn->out, count);
    for (size_t i = 0; i < table_count(); i++) {
        const struct command *command = table_at(i);
        if (!helped(request, command))
            continue;
        snprintf(line, sizeof line, "%s %s - %s", command->name,
                 command->syntax, command->summary);
        text(conn, line);
    }
}
