/* describe.c - COMMAND and HELP, from the table. */
#include "hold/subject.h"
#include "holdfast/version.h"
#include "server/admin.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/group.h"
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
    bool keyed = command->run == NULL && command->shape->words[0] != WORD_END;

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

/* True if the request names this command, in either way, or none at all. */
static bool asked_for(const struct asked *asked, const struct command *command)
{
    char text[32];

    for (size_t i = 0; i < asked->count; i++) {
        size_t len = asked->args[i].len;
        if (len > sizeof text)
            continue;
        memcpy(text, asked->args[i].data, len);
        char *bar = memchr(text, '|', len);
        if (bar != NULL)
            *bar = ' ';
        if (hf_bytes_is(hf_bytes(text, len), command->name))
            return true;
    }
    return asked->count == 0;
}

/* Begins with the number of those asked for, then tells of each. */
static void describe(const struct asked *asked,
                     void begin(struct reply *, size_t),
                     void one(struct reply *, const struct command *))
{
    const struct command *found[METRICS_COMMANDS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < table_count(); i++) {
        if (asked_for(asked, table_at(i)))
            found[count++] = table_at(i);
    }
    begin(asked->reply, count);
    for (size_t i = 0; i < count; i++)
        one(asked->reply, found[i]);
}

void admin_command_count(const struct asked *asked)
{
    reply_put_number(asked->reply, (int64_t)table_count());
}

void admin_command_list(const struct asked *asked)
{
    char name[32];

    reply_put_list(asked->reply, table_count());
    for (size_t i = 0; i < table_count(); i++)
        reply_put_bytes(asked->reply, wire_name(table_at(i), name));
}

void admin_command_docs(const struct asked *asked)
{
    describe(asked, reply_put_map, describe_docs);
}

void admin_command_info(const struct asked *asked)
{
    describe(asked, reply_put_list, describe_info);
}

void admin_help(const struct asked *asked)
{
    struct hf_bytes what = asked->count > 0 ? asked->args[0] : hf_bytes("", 0);
    char line[512];
    size_t count = 0;

    for (size_t i = 0; i < table_count(); i++)
        count += table_is_of(table_at(i), what);
    if (count == 0) {
        answer_error(asked->server, asked->conn, ERROR_NO_COMMAND);
        return;
    }
    reply_put_list(asked->reply, count);
    for (size_t i = 0; i < table_count(); i++) {
        const struct command *command = table_at(i);
        if (!table_is_of(command, what))
            continue;
        snprintf(line, sizeof line, "%s %s - %s", command->name,
                 command->syntax, command->summary);
        reply_put_text(asked->reply, line);
    }
}

/* Groups come in the order of their last commands. */
static bool ends_group(size_t index)
{
    for (size_t i = index + 1; i < table_count(); i++) {
        if (strcmp(table_at(i)->group, table_at(index)->group) == 0)
            return false;
    }
    return true;
}

static enum hf_status write_group(struct hf_buf *out, const char *group)
{
    enum hf_status status = hf_buf_format(out, "\n## %s\n", group);

    for (size_t i = 0; i < table_count() && status == HF_OK; i++) {
        const struct command *c = table_at(i);
        if (strcmp(c->group, group) == 0)
            status = hf_buf_format(
                out, "\n### `%s%s%s`\n\n%s.%s%s%s\n\nReply: %s.\n", c->name,
                c->syntax[0] ? " " : "", c->syntax, c->summary,
                (c->flags & COMMAND_BLOCKING) ? " May wait." : "",
                group_takes(c) ? " May be in MULTI." : "",
                (c->flags & COMMAND_ADMIN) ? " Only from the same machine."
                                           : "",
                c->reply);
    }
    return status;
}

static enum hf_status write_events(struct hf_buf *out)
{
    enum hf_status status = hf_buf_format(
        out, "\n## events\n\nWhat changes, and is counted in "
             "`holdfast_events_total`: its channel, and the field that says "
             "what it is\nabout. `docs/events.md` has the other fields.\n\n"
             "| kind | channel | field |\n|---|---|---|\n");

    for (unsigned i = 0; i < HOLD_EVENT_COUNT && status == HF_OK; i++) {
        enum hold_event_kind kind = (enum hold_event_kind)i;
        enum hold_subject of = hold_event_subject(kind);
        if (of == SUBJECT_ALL)
            status = hf_buf_format(out, "| `%s` | `hf:all` | none |\n",
                                   hold_event_name(kind));
        else
            status = hf_buf_format(
                out, "| `%s` | `%s...` | `%s` |\n", hold_event_name(kind),
                hold_subjects[of].channel, hold_subjects[of].key);
    }
    return status;
}

enum hf_status table_markdown(struct hf_buf *out)
{
    enum hf_status status = hf_buf_format(
        out, "# Commands\n\nMade from the command table by `holdfast "
             "commands`. Options stand in any order behind the\nwords. Times "
             "are in milliseconds; maps are flat field-value arrays in RESP2. "
             "A reply\nstarting with `-` is an error: its code, then a "
             "sentence with the facts.\n");

    for (size_t i = 0; i < table_count() && status == HF_OK; i++) {
        if (ends_group(i))
            status = write_group(out, table_at(i)->group);
    }
    return status == HF_OK ? write_events(out) : status;
}
