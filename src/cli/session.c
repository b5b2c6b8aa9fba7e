/* session.c - SESSION by verbs, and a command that runs under a session. */
#include "cli/commands.h"

#include "cli/call.h"
#include "cli/held.h"

static const char about[] =
    "A session holds locks that end together: when it is closed, or when it\n"
    "was not kept for its TTL. Locks are taken under it with SESSION id, for\n"
    "example by holdfast lock --session ID.\n"
    "\n"
    "With a command behind -- a session is opened, kept while the command\n"
    "runs, and closed when it ends; the command finds its id in\n"
    "HOLDFAST_SESSION. If it cannot be kept, the command is killed before it\n"
    "ends, as with holdfast lock.\n"
    "\n" HELD_EXITS
    "  76  the session was lost and the command was killed\n" HELD_EXITS_RUN;

static const char examples[] =
    "  holdfast session list\n"
    "  id=$(holdfast session open --ttl 60000 --json | jq .session)\n"
    "  holdfast session keep \"$id\" && holdfast session close \"$id\"\n"
    "  holdfast session --ttl 10000 -- ./takes-several-locks.sh\n";

static struct call call = {.name = "session", .client = {.fd = -1}};
static const char *name;
static uint64_t ttl_ms, cursor, page;

static const struct verb {
    const char *name;
    int words;   /* behind it */
    bool opens;  /* takes --ttl and --name */
    bool listed; /* takes --cursor and --count */
} verbs[] = {
    {"open", 0, true, false},   {"keep", 1, false, false},
    {"close", 1, false, false}, {"info", 1, false, false},
    {"list", 0, false, true},
};

/* The verb of the line; NULL: what is wrong was told. */
static const struct verb *find_verb(const struct args_spec *spec,
                                    const struct args *args)
{
    const struct verb *verb = verbs;
    const struct verb *end = verbs + sizeof verbs / sizeof *verbs;
    uint64_t id;

    while (verb < end &&
           (args->count == 0 || strcmp(verb->name, args->words[0]) != 0))
        verb++;
    if (verb == end)
        args_wrong(spec, "open, keep, close, info, list or a command behind "
                         "-- is needed");
    else if (args->count - 1 != verb->words)
        args_wrong(spec,
                   verb->words == 0 ? "nothing follows %s"
                                    : "one session id follows %s",
                   verb->name);
    else if (verb->words == 1 &&
             hf_parse_u64(hf_bytes_text(args->words[1]), &id) != HF_OK)
        args_wrong(spec, "'%s' is not the id of a session", args->words[1]);
    else if (!verb->opens && (ttl_ms != 0 || name != NULL))
        args_wrong(spec, "--ttl and --name belong to open");
    else if (!verb->listed && (cursor | page) > 0)
        args_wrong(spec, "--cursor and --count belong to list");
    else
        return verb;
    return NULL;
}

static void put_open(struct words *request)
{
    words_text(request, "SESSION");
    words_text(request, "OPEN");
    words_amount(request, "TTL", ttl_ms != 0 ? ttl_ms : 30000);
    words_option(request, "NAME", name);
}

static int ask(const struct verb *verb, const struct args *args)
{
    struct words request = {0};
    struct hf_bytes reply;

    if (verb->opens) {
        put_open(&request);
    } else {
        words_option(&request, "SESSION", verb->name);
        if (verb->words == 1)
            words_text(&request, args->words[1]);
        words_amount(&request, "CURSOR", cursor);
        words_amount(&request, "COUNT", page);
    }
    int code = call_send(&call, request.count, request.list, &reply);
    if (code == CLI_DONE)
        code = call_print(&call, reply);
    call_close(&call);
    return code;
}

static int run_under(char **command)
{
    struct held held = {.lease = {.program = "session",
                                  .kind = LEASE_SESSION,
                                  .name = name != NULL ? name : "session",
                                  .client = {.fd = -1}},
                        .address = call.address};
    struct words request = {0};

    put_open(&request);
    return held_run(&held, &request, command);
}

int session_main(int argc, char **argv)
{
    const struct args_option options[] = {
        ARGS_NUMBER("ttl", "MS",
                    "time after which it ends if it is not kept (30000)",
                    ttl_ms, LEASE_TTL_MIN_MS, LEASE_TTL_MAX_MS),
        ARGS_TEXT("name", "TEXT", "shown to those who look at it", name),
        ARGS_NUMBER("cursor", "N",
                    "where to go on: the cursor of the page before (list)",
                    cursor, 0, UINT64_MAX),
        ARGS_NUMBER("count", "N", "how many at most (list)", page, 0,
                    UINT64_MAX),
        CALL_OPTIONS(&call),
    };
    const struct args_spec spec = {
        .name = "session",
        .usage = "open | keep ID | close ID | info ID | list | -- COMMAND "
                 "[ARGUMENTS]",
        .about = about,
        .examples = examples,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    struct args args;

    int code = client_args(&spec, argc, argv, &call.address, &args);
    if (code != ARGS_GO)
        return code;
    if (args.rest == NULL) {
        const struct verb *verb = find_verb(&spec, &args);
        return verb != NULL ? ask(verb, &args) : CLI_USAGE;
    }
    if (args.count > 0)
        return args_wrong(&spec, "'%s' and a command cannot be combined",
                          args.words[0]);
    if (args.rest[0] == NULL)
        return args_wrong(&spec, "a command is needed behind --");
    if ((cursor | page) > 0)
        return args_wrong(&spec, "--cursor and --count belong to list");
    return run_under(args.rest);
}
