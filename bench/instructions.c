/* instructions.c - runs N operations, for a count of their instructions.
 *
 *   instructions lock+unlock|lock|unlock|set+delete|reserve|confirm|limit|
 *                stock-get|ping N
 *
 * Everything that the server does for a request but for the system calls, the
 * journal's copy and the loop: decode, look up, parse, refuse, prepare,
 * encode, apply, measure, reply. bench/run has callgrind count the instructions
 * in handle() for two different N; the difference is what one operation takes,
 * on any machine, however busy.
 */
#include <stdarg.h>

#include "drive.h"
#include "resp/resp.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/reply.h"
#include "server/server.h"
#include "server/table.h"

#define KEYS 1000u

static struct hold_engine *engine;
static struct server server; /* of it, the measures and the limits */
static struct hf_buf out;
static struct reply reply = {.out = &out, .codec = &resp3_codec};
static uint64_t now_us;

/* As the server does for one that is answered in its turn. */
__attribute__((noinline)) static void
measure(const struct command *found, const struct hold_command *command,
        const struct hold_out *said)
{
    metrics_command(&server.metrics, (size_t)(found - table_at(0)));
    uint64_t took_ns = answer_note(&server, command->kind, now_us);

    server.answer_ns = now_us + 5000;
    metrics_events(&server.metrics, said);
    events_tell(&server, said);
    if (command->kind == HOLD_LOCK)
        answer_note_grant(&server, took_ns);
}

/* One request in, its reply in `reply`. */
__attribute__((noinline)) static void serve(char *input, size_t len)
{
    static struct resp_request request;
    static struct hold_command command;
    char error[PARSE_ERROR_MAX];
    size_t named;
    if (resp_decode(input, len, &request) || request.used != len)
        drive_fail("decode", request.error);
    const struct command *found =
        table_find(request.args, request.count, &named);
    if (found == NULL)
        drive_fail(input, "no such command");
    if (found->run != NULL) {
        static struct conn conn = {.server = &server};
        conn.reply = reply;
        out.len = 0;
        server.heard_ns = now_us++ * 1000;
        found->run(&(struct asked){.server = &server,
                                   .conn = &conn,
                                   .reply = &conn.reply,
                                   .request = &request,
                                   .args = request.args + named,
                                   .count = request.count - named});
        metrics_command(&server.metrics, (size_t)(found - table_at(0)));
        return;
    }
    if (parse_command(found, request.args + named, request.count - named,
                      &command, error))
        drive_fail("parse", error);
    command.now_us = now_us++;
    const struct hold_out *said = hold_kind_is_write(command.kind)
                                      ? drive_write(engine, &command)
                                      : hold_ask(engine, &command);
    out.len = 0;
    reply_write(&reply, said->code, said->body, 0);
    if (said->code != HOLD_OK || reply.failed)
        drive_fail("reply", "a command that must succeed did not");
    measure(found, &command, said);
}

/* What is counted is what happens in here: a function of its own, whatever the
 * compiler thinks. */
__attribute__((noinline)) static void handle(char *input, size_t len)
{
    serve(input, len);
}

/* The first letter of the commands that are counted; 0: all are. */
static char counted;

/* A request as a client sends it. */
static void request(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static void request(const char *format, ...)
{
    static struct hf_buf input;
    char line[256], *rest = line, *word;
    struct hf_bytes args[16];
    size_t count = 0;
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    while ((word = strtok_r(NULL, " ", &rest)) != NULL)
        args[count++] = hf_bytes_text(word);
    input.len = 0;
    if (resp_encode(&input, count, args))
        drive_fail("encode", "out of memory");
    if (counted == 0 || line[0] == counted)
        handle(input.data, input.len);
    else
        serve(input.data, input.len);
}

static void lock_and_unlock(uint64_t i)
{
    struct resp_value token;
    unsigned key = (unsigned)(i % KEYS);
    request("LOCK bench:%08u OWNER o%u TTL 30000", key, key);
    if (resp_field(hf_buf_bytes(&out), "token", &token))
        drive_fail("lock", "no token");
    request("UNLOCK bench:%08u %lld", key, (long long)token.number);
}

/* As lock clients of Redis do it: the script compares and deletes. */
static void set_and_delete(uint64_t i)
{
    unsigned key = (unsigned)(i % KEYS);
    request("SET bench:%08u o%u NX PX 30000", key, key);
    request("EVALSHA e950836ed1e694540c503ef9972b8de518044d3b 1 bench:%08u o%u",
            key, key);
}

static void reserve(uint64_t i)
{
    struct resp_value id;
    request("RESERVE * ITEM bench:%08u 1", (unsigned)(i % KEYS));
    if (resp_field(hf_buf_bytes(&out), "id", &id))
        drive_fail("reserve", "no id");
    if (counted == 'C')
        request("CONFIRM %.*s", (int)id.text.len, id.text.data);
}

static void get(uint64_t i)
{
    request("STOCK GET bench:%08u", (unsigned)(i % KEYS));
}

static void ping(uint64_t i)
{
    (void)i;
    request("PING");
}

static void limit(uint64_t i)
{
    struct resp_value allowed;
    request("LIMIT bench:%08u RATE 1000 PER 1000", (unsigned)(i % KEYS));
    if (resp_field(hf_buf_bytes(&out), "allowed", &allowed))
        drive_fail("limit", "no answer");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(uint64_t i);
        char counted;
    } works[] = {
        {"lock+unlock", lock_and_unlock, 0},
        {"lock", lock_and_unlock, 'L'},
        {"unlock", lock_and_unlock, 'U'},
        {"set+delete", set_and_delete, 0},
        {"reserve", reserve, 0},
        {"confirm", reserve, 'C'},
        {"limit", limit, 0},
        {"stock-get", get, 0},
        {"ping", ping, 0},
    };
    static struct hold_command command;
    const char *untold = getenv("UNTOLD"); /* events are not kept */
    const struct feed_opts opts = {.dir = getenv("TMPDIR") ? getenv("TMPDIR")
                                                           : "/tmp",
                                   .keep_bytes = 1 << 20,
                                   .keep_ms = 1000};
    char error[FEED_ERROR_MAX];
    if (argc != 3)
        drive_fail("usage", "instructions WORK N");
    uint64_t count = drive_number(argv[2]);
    reply_init();
    table_init();
    engine = drive_new(&command);
    server.clock = hf_clock_system();
    server.config = config_default();
    if (metrics_open(&server.metrics, &server) != HF_OK ||
        limits_open(&server.limits, &server) != HF_OK)
        drive_fail("server", "out of memory");
    server.engine = engine;
    if (untold == NULL && (hold_tell(engine) != HF_OK ||
                           feed_open(&server.events.feed, &opts, error)))
        drive_fail("feed", error);
    if (untold == NULL)
        feed_start(server.events.feed, 0);
    now_us = command.now_us;
    for (unsigned i = 0; i < KEYS; i++)
        request("STOCK SET bench:%08u 1000000000", i);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(argv[1], works[i].name) != 0)
            continue;
        counted = works[i].counted;
        for (uint64_t j = 0; j < count; j++)
            works[i].run(j);
        if (untold == NULL) {
            feed_stop(server.events.feed, false);
            feed_close(server.events.feed);
        }
        metrics_close(&server.metrics);
        limits_close(&server.limits);
        hold_free(engine);
        return 0;
    }
    drive_fail(argv[1], "no such work");
}
