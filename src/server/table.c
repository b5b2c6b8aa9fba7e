/* table.c - the commands, and how a request finds its own. */
#include "server/table.h"

#include <assert.h>

#include "resp/resp.h"
#include "server/admin.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/events.h"
#include "server/group.h"
#include "server/history.h"
#include "server/key.h"
#include "server/limit.h"
#include "server/script.h"
#include "server/server.h"
#include "server/subscribe.h"
#include "server/unknown.h"

#define COMMANDS_MAX 255u /* numbered by a byte, from 1 */

static struct vocabulary engine_words = {.words = hold_words,
                                         .options = hold_args,
                                         .option_count = HOLD_ARGS,
                                         .last = ARG_REQ};
static struct shape engine_shapes[HOLD_KINDS];

static struct command commands[COMMANDS_MAX];
static size_t command_count;
static char syntaxes[6144];
#define FORMS_MAX 1024u
static size_t syntaxes_len;

size_t table_count(void)
{
    table_init();
    return command_count;
}

const struct command *table_at(size_t index)
{
    assert(index < command_count);
    return &commands[index];
}

/* Commands are found by the letters of their first word. One without a second
 * word comes first, but steps back where the next word begins as that of
 * another does, so that FENCE DEL is no FENCE of a resource DEL. */
#define SLOT_BITS 9
static uint8_t slots[1u << SLOT_BITS]; /* the first command, plus 1 */
static struct {
    uint64_t letters; /* of the first word: see parse_letters() */
    uint32_t others;  /* of one without a second word: the letters of those
                         that begin alike, as bits */
    uint8_t first;    /* length of the first word */
    uint8_t next;     /* the next one in its slot, plus 1 */
    char second;      /* first letter of the second word */
} entries[COMMANDS_MAX];

static size_t slot_of(uint64_t letters)
{
    return letters * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS);
}

static void enter(size_t index)
{
    const char *name = commands[index].name;
    size_t len = strcspn(name, " ");
    uint64_t letters = parse_name(name, len);
    size_t slot = slot_of(letters);

    assert(letters != 0 || len > 8); /* else it would not be found */
    entries[index].letters = letters;
    entries[index].first = (uint8_t)len;
    entries[index].second = name[len] == '\0' ? '\0' : name[len + 1];
    for (size_t i = 0; i < command_count && name[len] == '\0'; i++) {
        const char *other = commands[i].name;
        if (strncmp(other, name, len) == 0 && other[len] == ' ')
            entries[index].others |= 1u << (other[len + 1] & 31);
    }
    entries[index].next = slots[slot];
    slots[slot] = (uint8_t)(index + 1);
}

static void add(const struct command *command, unsigned more_flags)
{
    size_t named = strchr(command->name, ' ') == NULL ? 1 : 2;
    struct command *added = &commands[command_count++];

    assert(command_count <= COMMANDS_MAX);
    *added = *command;
    added->flags |= more_flags;
    parse_init(command->shape->vocabulary);
    added->syntax = syntaxes + syntaxes_len;
    syntaxes_len += 1 + parse_syntax(command->shape, syntaxes + syntaxes_len,
                                     sizeof syntaxes - syntaxes_len);
    parse_counts(command->shape, &added->args_min, &added->args_max);
    added->args_min += named;
    added->args_max += named;
}

static unsigned flags_of(const struct hold_operation *operation)
{
    bool write =
        operation->class == CLASS_WRITE || operation->class == CLASS_INTERNAL;
    unsigned flags = write ? COMMAND_WRITE : COMMAND_READ;

    if (!write && operation->subject == NULL)
        flags |= COMMAND_HELD; /* about more than one record */
    if ((operation->options & HOLD_BIT(ARG_WAIT)) != 0)
        flags |= COMMAND_BLOCKING;
    return flags | (operation->admin ? COMMAND_ADMIN : 0u);
}

static void add_operation(unsigned kind)
{
    const struct hold_operation *operation = &hold_operations[kind];
    struct shape *shape = &engine_shapes[kind];

    shape->vocabulary = &engine_words;
    memcpy(shape->words, operation->words, sizeof operation->words);
    shape->options = operation->options;
    shape->required = operation->required;
    add(&(struct command){.name = operation->name,
                          .summary = operation->summary,
                          .reply = operation->reply,
                          .group = operation->group,
                          .kind = (enum hold_kind)kind,
                          .shape = shape},
        flags_of(operation));
}

void table_init(void)
{
    if (command_count > 0)
        return;
    for (unsigned kind = 0; kind < HOLD_KINDS; kind++) {
        if (hold_operations[kind].summary != NULL)
            add_operation(kind);
    }
    for (size_t i = 0; i < key_command_count; i++)
        add(&key_commands[i], 0);
    for (size_t i = 0; i < table_function_count; i++)
        add(&table_functions[i], COMMAND_HELD);
    for (int alone = 0; alone < 2; alone++) {
        for (size_t i = 0; i < command_count; i++) {
            if ((strchr(commands[i].name, ' ') == NULL) == alone)
                enter(i);
        }
    }
}

/* True if the name, which is as long or longer, begins with the word. */
static bool begins(const char *name, struct hf_bytes word)
{
    for (size_t i = 0; i < word.len; i++) {
        char c = word.data[i];
        if (c != name[i] && (c < 'a' || c > 'z' || c - 'a' + 'A' != name[i]))
            return false;
    }
    return true;
}

/* The same for a first word that is no number. */
static bool is_first(size_t index, struct hf_bytes word)
{
    return entries[index].first == word.len &&
           begins(commands[index].name, word);
}

/* The second word in upper case, if it is a letter; no word of a command begins
 * with anything else. */
static inline char second_of(const struct hf_bytes *args, size_t count)
{
    return count > 1 && args[1].len > 0 ? (char)(args[1].data[0] & ~0x20)
                                        : '\0';
}

/* Can no command of two words be meant? */
static inline bool is_alone(size_t index, char second)
{
    return entries[index].second == '\0' &&
           (entries[index].others >> (second & 31) & 1) == 0;
}

__attribute__((noinline)) static const struct command *
find_among(uint64_t letters, const struct hf_bytes *args, size_t count,
           size_t *named)
{
    struct hf_bytes word = args[0];
    char second = second_of(args, count);
    const struct command *alone = NULL;

    for (size_t i = slots[slot_of(letters)]; i-- > 0; i = entries[i].next) {
        if (entries[i].letters != letters ||
            (entries[i].second != '\0' && entries[i].second != second) ||
            (letters == 0 && !is_first(i, word)))
            continue;
        if (entries[i].second == '\0') {
            alone = &commands[i];
            if (is_alone(i, second))
                break;
        } else if (hf_bytes_is(args[1], commands[i].name + word.len + 1)) {
            *named = 2;
            return &commands[i];
        }
    }
    *named = 1;
    return alone;
}

const struct command *table_find(const struct hf_bytes *args, size_t count,
                                 size_t *named)
{
    uint64_t letters = parse_letters(args[0]);
    size_t first = slots[slot_of(letters)];

    /* most are the first of their slot, and of one word */
    if (first > 0 && letters != 0 && entries[first - 1].letters == letters &&
        is_alone(first - 1, second_of(args, count))) {
        *named = 1;
        return &commands[first - 1];
    }
    return args[0].len == 0 ? NULL : find_among(letters, args, count, named);
}

/* What its options say together. */
static enum hf_status check_together(const struct hold_command *out,
                                     char error[PARSE_ERROR_MAX])
{
    static const char *const sentences[] = {
        [WRONG_TWO_WAITS] = WRONG_FOREVER,
        [WRONG_TWO_MODES] = WRONG_MODES,
        [WRONG_PERMITS_OF] = WRONG_PERMITS,
        [WRONG_NO_SESSION] = WRONG_AGE,
        [WRONG_RESULT] = WRONG_DONE,
        [WRONG_TREE] = WRONG_TREES,
        [WRONG_KEY] = WRONG_SYNTAX,  /* never, of what was parsed */
        [WRONG_BEST] = WRONG_SYNTAX, /* nor this */
        [WRONG_WAIT_SOME] = WRONG_SOME,
        [WRONG_SPLIT] = WRONG_NO_PLACE,
        [WRONG_PLACE_SOME] = WRONG_PLACED,
        [WRONG_TOO_SPLIT] = WRONG_PARTS,
        [WRONG_PLACE_LONG] = WRONG_AT,
        [WRONG_PLACE_LIST] = WRONG_SYNTAX, /* nor this */
        [WRONG_WAIT_GROUP] = WRONG_GROUPED,
        [WRONG_BOOK_SOME] = WRONG_BOOKS,
        [WRONG_BOOK_MANY] = WRONG_BOOKED,
    };
    enum hold_wrong wrong = hold_find_wrong(out);
    bool binds =
        out->kind == HOLD_SESSION_OPEN && (out->flags & HOLD_BIND) != 0;

    if (wrong == HOLD_RIGHT && (!binds || out->request.len == 0))
        return HF_OK;
    snprintf(error, PARSE_ERROR_MAX, "%s",
             wrong == HOLD_RIGHT ? WRONG_BIND_REQ : sentences[wrong]);
    return HF_INVALID;
}

enum hf_status parse_command(const struct command *command,
                             const struct hf_bytes *args, size_t count,
                             struct hold_command *out,
                             char error[PARSE_ERROR_MAX])
{
    struct parse p = {.shape = command->shape,
                      .args = args,
                      .count = count,
                      .out = out,
                      .error = error};

    hold_command_clear(out);
    out->kind = command->kind;
    if (command->make != NULL)
        return command->make(command, args, count, out, error);
    out->ttl_ms = hold_operations[command->kind].ttl_ms;
    enum hf_status status = parse_shape(&p);
    if (p.missing)
        snprintf(error, PARSE_ERROR_MAX, WRONG_COUNT, command->name,
                 command->syntax);
    if (status != HF_OK)
        return status;
    /* what belongs to a session ends with it, unless told otherwise */
    if ((p.seen & HOLD_BIT(ARG_SESSION)) != 0 && out->session == 0)
        out->session = HOLD_SESSION_OWN;
    if (out->session != 0 && (p.seen & HOLD_BIT(ARG_TTL)) == 0)
        out->ttl_ms = 0;
    return check_together(out, error);
}

/* A web page can make its reader's browser send lines to this port; none of
 * them may be taken for commands. */
static bool is_http(struct hf_bytes word)
{
    return hf_bytes_is(word, "POST") || hf_bytes_is(word, "HOST:");
}

bool table_is_of(const struct command *command, struct hf_bytes word)
{
    const char *name = command->name;

    return word.len == 0 || (word.len <= strlen(name) && begins(name, word) &&
                             (name[word.len] == '\0' || name[word.len] == ' '));
}

/* The forms of the commands that begin with this name. Returns their length. */
static size_t forms_of(struct hf_bytes name, char out[FORMS_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < table_count(); i++) {
        const struct command *c = table_at(i);
        if (!table_is_of(c, name))
            continue;
        len += (size_t)snprintf(out + len, FORMS_MAX - len, "%s%s%s%s",
                                len > 0 ? " | " : "", c->name,
                                c->syntax[0] ? " " : "", c->syntax);
        assert(len < FORMS_MAX);
    }
    return len;
}

/* The first word may be one of several that a name has. */
static void say_unknown(struct server *server, struct conn *conn,
                        const struct resp_request *request)
{
    struct hf_bytes a = request->args[0];
    struct hf_bytes b = request->count > 1 ? request->args[1] : hf_bytes("", 0);
    enum unknown unknown = unknown_is(a);
    char forms[FORMS_MAX];

    if (unknown == UNKNOWN_WATCH)
        answer_error(server, conn, ERROR_WATCH, PRINTED(a));
    else if (unknown == UNKNOWN_OTHER)
        answer_error(server, conn, ERROR_NO_LOCK, PRINTED(a));
    else if (a.len > 0 && forms_of(a, forms) > 0)
        answer_error(server, conn, ERROR_FORMS, PRINTED(a),
                     b.len > 0 ? " " : "", PRINTED(b), forms);
    else
        answer_error(server, conn, ERROR_COMMAND, PRINTED(a));
}

/* Where a command is in the table; behind its end if there is none. */
static size_t index_of(const struct command *command)
{
    return command == NULL ? table_count() : (size_t)(command - commands);
}

void table_took(struct server *server, struct hf_bytes name, uint64_t came_ns)
{
    const char *blank = memchr(name.data, ' ', name.len);
    struct hf_bytes name_words[2] = {name};
    size_t named;

    if (blank != NULL) {
        name_words[0].len = (size_t)(blank - name.data);
        name_words[1] = hf_bytes(blank + 1, name.len - name_words[0].len - 1);
    }
    metrics_took(
        &server->metrics,
        index_of(table_find(name_words, blank == NULL ? 1 : 2, &named)),
        hf_clock_now_ns(server->clock) - came_ns);
}

static void run_function(const struct command *command,
                         const struct asked *asked)
{
    struct server *server = asked->server;
    struct conn *conn = asked->conn;
    size_t count = asked->request->count;

    if (count < command->args_min || count > command->args_max) {
        char forms[FORMS_MAX];
        (void)forms_of(hf_bytes_text(command->name), forms);
        group_spoil(conn);
        answer_error(server, conn, ERROR_COUNT, forms);
        return;
    }
    uint32_t pending = conn->pending;
    uint32_t noted = server->noted_count;
    command->run(asked);
    answer_done(conn);
    if ((command->flags & COMMAND_LONG) != 0)
        conn_spend(conn, CONN_LONG_STEPS);
    if (conn->wait == NULL && conn->pending == pending && /* else: later, */
        server->noted_count == noted) /* or what it submitted was refused */
        answer_note_now(server, index_of(command));
}

static void run_admitted(const struct command *command,
                         const struct asked *asked)
{
    struct server *server = asked->server;
    bool admin = (command->flags & COMMAND_ADMIN) != 0;

    if (admin && !asked->conn->local) {
        report_denied(&server->report, asked->conn, command->name);
        answer_error(server, asked->conn, ERROR_REMOTE);
    } else if (command->run != NULL) {
        run_function(command, asked);
    } else {
        if (admin)
            report_admin(&server->report, asked->conn, command->name);
        if (server->command.kind == 0) {
            script_limit(server, asked->conn, &server->command);
            answer_note_now(server, index_of(command));
        } else if (command->kind == HOLD_GROUP)
            group_exec(server, asked->conn, &server->command);
        else
            submit_command(server, asked->conn, &server->command);
    }
}

void table_look_up(struct call *call)
{
    call->named = 0;
    call->command =
        table_find(call->request.args, call->request.count, &call->named);
    if (call->command == NULL || call->command->kind != HOLD_STOCK_GET)
        return;
    history_rewrite(&call->request);
    call->command =
        table_find(call->request.args, call->request.count, &call->named);
}

/* Is its answer not one of a batch, so that it has to wait for those that are?
 */
static bool is_told_now(const struct asked *asked,
                        const struct command *command)
{
    if (command->kind == HOLD_GROUP && command->run == NULL)
        return group_is_plain(asked->conn);
    if (command->make != NULL && asked->server->command.kind == 0)
        return true; /* a script that is a limit */
    return (command->flags & (COMMAND_HELD | COMMAND_ADMIN)) != 0 &&
           !group_begins(asked->conn, command, asked->request->count);
}

bool table_run(struct server *server, struct conn *conn, struct call *call)
{
    struct resp_request *request = &call->request;
    const struct command *command = call->command;
    struct asked asked = {.server = server,
                          .conn = conn,
                          .reply = &conn->reply,
                          .request = request,
                          .args = request->args + call->named,
                          .count = request->count - call->named};
    char error[PARSE_ERROR_MAX];
    enum hf_status parsed = HF_OK;

    if (conn->subscriptions != NULL && conn->pending == 0 &&
        subscribe_refuses(server, conn, command))
        return true;
    if (command != NULL && command->run == NULL)
        parsed = parse_command(command, asked.args, asked.count,
                               &server->command, error);
    parsed = script_parsed(&asked, command, parsed, error);
    if (command != NULL && command->kind == HOLD_GROUP && parsed == HF_OK)
        group_fill(server, conn, &server->command);
    bool queued = group_queues(conn, command);
    if (conn->pending > 0 &&
        (command == NULL ||
         (!queued && (parsed != HF_OK || is_told_now(&asked, command)))))
        return false; /* answered after what is on its way */
    if (command != NULL && command->run == NULL && parsed == HF_OK && !queued &&
        server->command.kind != 0 &&
        !submit_admits(server, conn, &server->command))
        return false;
    if (command != NULL && (command->flags & COMMAND_LONG) != 0 && !queued &&
        submit_is_spent(server))
        return false; /* they share the budget of listings */
    if (command != NULL && queued &&
        !group_queue(&asked, command, parsed, error))
        return false;
    metrics_command(&server->metrics, index_of(command));
    conn_touch(conn);
    if (command != NULL && queued) {
        answer_note_now(server, index_of(command));
    } else if (command != NULL && parsed == HF_OK) {
        run_admitted(command, &asked);
    } else if (command != NULL) {
        group_bad(server, conn, command, parsed, error);
    } else if (is_http(request->args[0])) {
        answer_error(server, conn, ERROR_HTTP);
        report_misbehaved(&server->report, conn, "protocol error", "HTTP");
        conn->quitting = true;
    } else {
        group_spoil(conn);
        say_unknown(server, conn, request);
    }
    return true;
}
