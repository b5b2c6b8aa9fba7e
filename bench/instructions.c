/* instructions.c - runs N operations, for a count of their instructions.
 *
 *   instructions lock+unlock|reserve|limit N
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
#include "server/server.h"
#include "server/table.h"

#define KEYS 1000u

static struct hold_engine *engine;
static struct server server; /* of it, the measures and the limits */
static struct hf_buf reply;
static uint64_t now_us;

/* As the server does for one that is answered in its turn. */
__attribute__((noinline)) static void
measure(const struct command *found, const struct hold_command *command,
        const struct hold_out *out)
{
    metrics_command(&server.metrics, (size_t)(found - table_at(0)));
    uint64_t took_ns = answer_note(&server, command->kind, now_us);

    server.answer_ns = now_us + 5000;
    metrics_events(&server.metrics, out);
    if (command->kind == HOLD_LOCK)
        answer_note_grant(&server, took_ns);
}

/* One request in, its reply in `reply`. What is counted is what happens in
 * here: a function of its own, whatever the compiler thinks. */
__attribute__((noinline)) static void handle(char *input, size_t len)
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
        static struct conn conn = {.server = &server, .version = 3};
        conn.out.len = 0;
        found->run(&server, &conn, &request);
        reply = conn.out;
        metrics_command(&server.metrics, (size_t)(found - table_at(0)));
        return;
    }
    if (parse_command(found, request.args + named, request.count - named,
                      &command, error))
        drive_fail("parse", error);
    command.now_us = now_us++;
    const struct hold_out *out = hold_kind_is_write(command.kind)
                                     ? drive_write(engine, &command)
                                     : hold_ask(engine, &command);
    reply.len = 0;
    if (out->code != HOLD_OK ||
        reply_write(&reply, 3, out->code, out->body, 0) != HF_OK)
        drive_fail("reply", "a command that must succeed did not");
    measure(found, &command, out);
}

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
    handle(input.data, input.len);
}

static void lock_and_unlock(uint64_t i)
{
    struct resp_value token;
    unsigned key = (unsigned)(i % KEYS);
    request("LOCK bench:%08u OWNER o%u TTL 30000", key, key);
    if (resp_field(hf_buf_bytes(&reply), "token", &token))
        drive_fail("lock", "no token");
    request("UNLOCK bench:%08u %lld", key, (long long)token.number);
}

static void reserve(uint64_t i)
{
    struct resp_value id;
    request("RESERVE * ITEM bench:%08u 1", (unsigned)(i % KEYS));
    if (resp_field(hf_buf_bytes(&reply), "id", &id))
        drive_fail("reserve", "no id");
}

static void limit(uint64_t i)
{
    struct resp_value allowed;
    request("LIMIT bench:%08u RATE 1000 PER 1000", (unsigned)(i % KEYS));
    if (resp_field(hf_buf_bytes(&reply), "allowed", &allowed))
        drive_fail("limit", "no answer");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(uint64_t i);
    } works[] = {
        {"lock+unlock", lock_and_unlock},
        {"reserve", reserve},
        {"limit", limit},
    };
    static struct hold_command command;
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
    now_us = command.now_us;
    for (unsigned i = 0; i < KEYS; i++)
        request("STOCK SET bench:%08u 1000000000", i);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        if (strcmp(argv[1], works[i].name) != 0)
            continue;
        for (uint64_t j = 0; j < count; j++)
            works[i].run(j);
        metrics_close(&server.metrics);
        limits_close(&server.limits);
        hold_free(engine);
        return 0;
    }
    drive_fail(argv[1], "no such work");
}
