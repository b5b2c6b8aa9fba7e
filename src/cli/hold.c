/* hold.c - command lines to requests; the server does the rest. */
#include "cli/hold.h"

#include "cli/call.h"
#include "resp/resp.h"
#include "server/limit.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Words of a request. */
struct words {
    struct hf_bytes args[RESP_ARGS_MAX];
    size_t count;
};

static void add(struct words *words, const char *text)
{
    if (words->count < RESP_ARGS_MAX)
        words->args[words->count++] = hf_bytes_text(text);
}

/* `name value`, unless there is no value. */
static void add_option(struct words *words, const char *name, const char *value)
{
    if (value != NULL) {
        add(words, name);
        add(words, value);
    }
}

/* As add_option, for a number with 0 as "none"; `digits` must outlive it. */
static void add_number(struct words *words, const char *name, uint64_t number,
                       char digits[HF_DIGITS_MAX + 1])
{
    digits[hf_print_u64(digits, number)] = '\0';
    add_option(words, name, number > 0 ? digits : NULL);
}

static bool is_number(const char *text)
{
    int64_t number;

    return hf_parse_i64(hf_bytes_text(text), &number) == HF_OK;
}

/* The start that all share: address, options, help. */
static int begin(struct call *call, const struct args_spec *spec, int argc,
                 char **argv, struct args *args)
{
    call->name = spec->name;
    call->client.fd = -1;
    if (client_address_init(&call->address) != HF_OK)
        return args_wrong(spec, "HOLDFAST_URL is not host:port");
    int code = args_parse(spec, argc, argv, args);
    if (code != ARGS_GO)
        return code;
    if (args->rest != NULL)
        return args_wrong(spec, "nothing may follow --");
    if (args->count > RESP_ARGS_MAX / 4)
        return args_wrong(spec, "too many words");
    return ARGS_GO;
}

static const struct verb {
    const char *name;
    const char *upper;
    int min; /* words behind it */
    int max;
    bool number; /* the last of them is a number */
} verbs[] = {
    {"set", "SET", 2, 2, true},    {"add", "ADD", 2, 2, true},
    {"get", "GET", 1, 200, false}, {"list", "LIST", 0, 1, false},
    {"del", "DEL", 1, 1, false},
};

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < COUNT(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

int stock_main(int argc, char **argv)
{
    static struct words words;
    struct call call = {0};
    char digits[2][HF_DIGITS_MAX + 1];
    const char *reason = NULL;
    uint64_t cursor = 0;
    uint64_t count = 0;
    const struct args_option options[] = {
        {.name = "reason",
         .value = "TEXT",
         .help = "why stock is added or taken (add)",
         .text = &reason},
        {.name = "cursor",
         .value = "N",
         .help = "where to go on: the cursor of the page before (list)",
         .number = &cursor,
         .max = UINT64_MAX},
        {.name = "count",
         .value = "N",
         .help = "how many at most (list)",
         .number = &count,
         .max = UINT64_MAX},
        CALL_OPTIONS(&call),
    };
    const struct args_spec spec = {
        .name = "stock",
        .usage = "set SKU TOTAL | add SKU N | get SKU... | list [PATTERN] | "
                 "del SKU",
        .about = "Sets, changes and shows how many units of a product there "
                 "are.\ntotal = available + reserved + sold, always. A "
                 "negative N takes stock away.\n\n"
                 "exit code: 0 done, 64 wrong command line, 65 refused, 69 no "
                 "server\n",
        .examples = "  holdfast stock set shoe-42 100\n"
                    "  holdfast stock add shoe-42 -3 --reason damaged\n"
                    "  holdfast stock list 'shoe-*' --json\n",
        .options = options,
        .option_count = COUNT(options),
    };
    struct args args;

    int code = begin(&call, &spec, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    const struct verb *verb = args.count > 0 ? find_verb(args.words[0]) : NULL;
    if (verb == NULL)
        return args_wrong(&spec, "set, add, get, list or del is needed");
    if (args.count - 1 < verb->min || args.count - 1 > verb->max)
        return args_wrong(&spec, "wrong number of words for %s", verb->name);
    if (verb->number && !is_number(args.words[args.count - 1]))
        return args_wrong(&spec, "'%s' is not a number",
                          args.words[args.count - 1]);
    if (reason != NULL && strcmp(verb->name, "add") != 0)
        return args_wrong(&spec, "--reason belongs to add");
    if (cursor + count > 0 && strcmp(verb->name, "list") != 0)
        return args_wrong(&spec, "--cursor and --count belong to list");
    add(&words, "STOCK");
    add(&words, verb->upper);
    for (int i = 1; i < args.count; i++)
        add(&words, args.words[i]);
    add_option(&words, "REASON", reason);
    add_number(&words, "CURSOR", cursor, digits[0]);
    add_number(&words, "COUNT", count, digits[1]);
    return call_run(&call, words.count, words.args);
}

/* Adds `ITEM sku qty` for `SKU=QTY`, cutting the word in two. */
static bool add_item(struct words *words, char *word)
{
    char *equals = strrchr(word, '=');

    if (equals == NULL || equals == word || !is_number(equals + 1))
        return false;
    *equals = '\0';
    add(words, "ITEM");
    add(words, word);
    add(words, equals + 1);
    return true;
}

int reserve_main(int argc, char **argv)
{
    static struct words words;
    char ttl[HF_DIGITS_MAX + 1];
    struct call call = {0};
    uint64_t ttl_ms = 0;
    const char *owner = NULL;
    const char *req = NULL;
    const struct args_option options[] = {
        {.name = "ttl",
         .value = "MS",
         .help = "time until it expires unconfirmed (600000)",
         .number = &ttl_ms,
         .min = 1,
         .max = UINT64_MAX},
        {.name = "owner",
         .value = "TEXT",
         .help = "for whom it is",
         .text = &owner},
        {.name = "req",
         .value = "ID",
         .help = "the same ID again returns the first answer",
         .text = &req},
        CALL_OPTIONS(&call),
    };
    const struct args_spec spec = {
        .name = "reserve",
        .usage = "ID|'*' SKU=QTY [SKU=QTY ...] [options]",
        .about = "Reserves all of the items or none. '*' lets the server "
                 "choose the id.\n\nexit code: 0 reserved, 64 wrong command "
                 "line, 65 refused, 69 no server,\n75 not enough stock\n",
        .examples = "  holdfast reserve order-17 shoe-42=1 laces=2\n"
                    "  holdfast reserve '*' shoe-42=1 --ttl 60000 --json\n",
        .options = options,
        .option_count = COUNT(options),
    };
    struct args args;

    int code = begin(&call, &spec, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count < 2)
        return args_wrong(&spec, "an id and at least one SKU=QTY are needed");
    add(&words, "RESERVE");
    add(&words, args.words[0]);
    for (int i = 1; i < args.count; i++) {
        if (!add_item(&words, args.words[i]))
            return args_wrong(&spec, "'%s' is not SKU=QTY", args.words[i]);
    }
    add_number(&words, "TTL", ttl_ms, ttl);
    add_option(&words, "OWNER", owner);
    add_option(&words, "REQ", req);
    return call_run(&call, words.count, words.args);
}

int confirm_main(int argc, char **argv)
{
    struct call call = {0};
    const struct args_option options[] = {CALL_OPTIONS(&call)};
    const struct args_spec spec = {
        .name = "confirm",
        .usage = "ID [options]",
        .about = "Turns a reservation into a sale.\n\n"
                 "exit code: 0 sold, 64 wrong command line, 65 refused "
                 "(expired, cancelled,\nunknown), 69 no server\n",
        .examples = "  holdfast confirm order-17\n",
        .options = options,
        .option_count = COUNT(options),
    };
    struct args args;

    int code = begin(&call, &spec, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count != 1)
        return args_wrong(&spec, "one reservation id is needed");
    struct hf_bytes words[] = {hf_bytes_text("CONFIRM"),
                               hf_bytes_text(args.words[0])};
    return call_run(&call, COUNT(words), words);
}

int cancel_main(int argc, char **argv)
{
    static struct words words;
    struct call call = {0};
    const char *reason = NULL;
    const struct args_option options[] = {
        {.name = "reason",
         .value = "TEXT",
         .help = "why, for the record",
         .text = &reason},
        CALL_OPTIONS(&call),
    };
    const struct args_spec spec = {
        .name = "cancel",
        .usage = "ID [options]",
        .about = "Gives the reserved stock back.\n\n"
                 "exit code: 0 cancelled, 64 wrong command line, 65 refused "
                 "(confirmed,\nexpired, unknown), 69 no server\n",
        .examples = "  holdfast cancel order-17 --reason 'card refused'\n",
        .options = options,
        .option_count = COUNT(options),
    };
    struct args args;

    int code = begin(&call, &spec, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count != 1)
        return args_wrong(&spec, "one reservation id is needed");
    add(&words, "CANCEL");
    add(&words, args.words[0]);
    add_option(&words, "REASON", reason);
    return call_run(&call, words.count, words.args);
}

/* The answer's `allowed`, as a number or a truth value. */
static bool is_allowed(struct hf_bytes reply)
{
    struct resp_value value;

    return resp_field(reply, "allowed", &value) == HF_OK && value.number == 1;
}

struct limit_numbers {
    uint64_t rate;
    uint64_t per_ms;
    uint64_t burst;
    uint64_t cost;
    uint64_t wait_ms;
    const char *policy;
};

static int ask_limit(struct call *call, const char *key,
                     const struct limit_numbers *limit)
{
    static struct words words;
    char digits[5][HF_DIGITS_MAX + 1];
    struct hf_bytes reply;

    add(&words, "LIMIT");
    add(&words, key);
    if (limit->policy != NULL) {
        add(&words, "POLICY");
        add(&words, limit->policy);
    }
    add_number(&words, "RATE", limit->rate, digits[0]);
    add_number(&words, "PER", limit->per_ms, digits[1]);
    add_number(&words, "BURST", limit->burst, digits[2]);
    add_number(&words, "COST", limit->cost, digits[3]);
    add_number(&words, "WAIT", limit->wait_ms, digits[4]);
    call->wait_ms = limit->wait_ms;
    int code = call_send(call, words.count, words.args, &reply);
    if (code == CLI_DONE)
        code = call_print(call, reply);
    if (code == CLI_DONE && !is_allowed(reply))
        code = CLI_BUSY;
    call_close(call);
    return code;
}

#define LIMIT_ROW(row, word, text, place, most)                       \
    {                                                                 \
        .name = row, .value = word, .help = text, .number = &(place), \
        .min = 1, .max = (most)                                       \
    }

int limit_main(int argc, char **argv)
{
    struct call call = {0};
    struct limit_numbers limit = {0};
    const struct args_option options[] = {
        LIMIT_ROW("rate", "N", "permits earned in each period", limit.rate,
                  LIMIT_RATE_MAX),
        LIMIT_ROW("per", "MS", "the period", limit.per_ms, LIMIT_PER_MAX_MS),
        LIMIT_ROW("burst", "N", "permits that may go at once (the rate)",
                  limit.burst, LIMIT_RATE_MAX),
        LIMIT_ROW("cost", "N", "permits that this call takes (1)", limit.cost,
                  LIMIT_RATE_MAX),
        LIMIT_ROW("wait", "MS", "wait so long for them (0)", limit.wait_ms,
                  LIMIT_PER_MAX_MS),
        {.name = "policy",
         .value = "NAMES",
         .help = "policies of LIMIT DEFINE, with commas",
         .text = &limit.policy},
        CALL_OPTIONS(&call),
    };
    const struct args_spec spec = {
        .name = "limit",
        .usage = "KEY --rate N --per MS | --policy NAMES [options]",
        .about = "Asks whether KEY may act now, and counts it if so.\n\n"
                 "exit code: 0 allowed, 75 denied, 64 wrong command line, 65 "
                 "refused,\n69 no server\n",
        .examples = "  holdfast limit mail:ann --rate 5 --per 60000 && "
                    "send-mail\n"
                    "  holdfast limit api --rate 100 --per 1000 --burst 20 "
                    "--json\n"
                    "  holdfast limit ann --policy user,all --wait 5000\n",
        .options = options,
        .option_count = COUNT(options),
    };
    struct args args;

    int code = begin(&call, &spec, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count != 1)
        return args_wrong(&spec, "one key is needed");
    if (limit.policy == NULL && (limit.rate == 0 || limit.per_ms == 0))
        return args_wrong(&spec, "--rate and --per are needed, or --policy");
    return ask_limit(&call, args.words[0], &limit);
}
