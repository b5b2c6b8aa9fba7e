/* plain.c - command lines to requests, by one table; the server does the rest.
 *
 *   holdfast reserve ID SKU=QTY --ttl MS
 *            reserve id item sku qty ttl ms    in any case
 */
#include "cli/commands.h"

#include <assert.h>

#include "cli/call.h"
#include "cli/words.h"
#include "hold/bounds.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The values of the options: of texts NULL, of numbers 0 is "not given". */
static struct call call = {.client = {.fd = -1}};
static const char *reason, *owner, *req, *policy;
static uint64_t cursor, page, ttl_ms, rate, per_ms, burst, cost;
static bool dot;

#define PAGE_OPTIONS(of)                                                       \
    ARGS_NUMBER("cursor", "N",                                                 \
                "where to go on: the cursor of the page before" of, cursor, 0, \
                UINT64_MAX),                                                   \
        ARGS_NUMBER("count", "N", "how many at most" of, page, 0, UINT64_MAX)

static const struct args_option stock_options[] = {
    ARGS_TEXT("reason", "TEXT", "why stock is added or taken (add)", reason),
    PAGE_OPTIONS(" (list)"),
    CALL_OPTIONS(&call),
};

static const struct args_option reserve_options[] = {
    ARGS_NUMBER("ttl", "MS", "time until it expires unconfirmed (600000)",
                ttl_ms, 1, UINT64_MAX),
    ARGS_TEXT("owner", "TEXT", "for whom it is", owner),
    ARGS_TEXT("req", "ID", "the same ID again returns the first answer", req),
    CALL_OPTIONS(&call),
};

/* Of those that have no others. */
static const struct args_option no_options[] = {CALL_OPTIONS(&call)};

static const struct args_option locks_options[] = {
    PAGE_OPTIONS(""),
    CALL_OPTIONS(&call),
};

static const struct args_option waitgraph_options[] = {
    ARGS_FLAG("dot", "as a graph in Graphviz's language", dot),
    PAGE_OPTIONS(""),
    CALL_OPTIONS(&call),
};

static const struct args_option cancel_options[] = {
    ARGS_TEXT("reason", "TEXT", "why, for the record", reason),
    CALL_OPTIONS(&call),
};

static const struct args_option limit_options[] = {
    ARGS_TEXT("policy", "NAMES", "policies of LIMIT DEFINE, with commas",
              policy),
    ARGS_NUMBER("rate", "N", "permits earned in each period", rate, 1,
                LIMIT_RATE_MAX),
    ARGS_NUMBER("per", "MS", "the period", per_ms, 1, LIMIT_PER_MAX_MS),
    ARGS_NUMBER("burst", "N", "permits that may go at once (the rate)", burst,
                1, LIMIT_RATE_MAX),
    ARGS_NUMBER("cost", "N", "permits that this call takes (1)", cost, 1,
                LIMIT_RATE_MAX),
    ARGS_NUMBER("wait", "MS", "wait so long for them (0)", call.wait_ms, 1,
                LIMIT_PER_MAX_MS),
    CALL_OPTIONS(&call),
};

struct plain {
    struct args_spec spec;
    int words_min;
    int words_max;
    const char *needed; /* told if there are not so many words */
    /* ARGS_GO, or the exit code after telling what is wrong; NULL: nothing */
    int (*check)(const struct plain *plain, const struct args *args);
    bool items; /* words after the first are SKU=QTY */
    bool asks;  /* the answer may be a no */
};

static bool is_number(const char *text)
{
    int64_t number;

    return hf_parse_i64(hf_bytes_text(text), &number) == HF_OK;
}

static int check_stock(const struct plain *plain, const struct args *args)
{
    static const struct {
        const char *name;
        int min; /* words behind it */
        int max;
        bool number; /* the last of them is a number */
    } verbs[] = {{"set", 2, 2, true},
                 {"add", 2, 2, true},
                 {"get", 1, 200, false},
                 {"list", 0, 1, false},
                 {"del", 1, 1, false}};
    const char *verb = args->words[0];
    const char *last = args->words[args->count - 1];
    size_t i = 0;

    while (i < COUNT(verbs) && strcmp(verbs[i].name, verb) != 0)
        i++;
    if (i == COUNT(verbs))
        return args_wrong(&plain->spec, "%s", plain->needed);
    if (args->count - 1 < verbs[i].min || args->count - 1 > verbs[i].max)
        return args_wrong(&plain->spec, "wrong number of words for %s", verb);
    if (verbs[i].number && !is_number(last))
        return args_wrong(&plain->spec, "'%s' is not a number", last);
    if (reason != NULL && strcmp(verb, "add") != 0)
        return args_wrong(&plain->spec, "--reason belongs to add");
    if ((cursor | page) > 0 && strcmp(verb, "list") != 0)
        return args_wrong(&plain->spec, "--cursor and --count belong to list");
    return ARGS_GO;
}

/* The last `=` of SKU=QTY; NULL: it is not that. */
static char *find_quantity(char *word)
{
    char *equals = strrchr(word, '=');

    return equals != NULL && equals > word && is_number(equals + 1) ? equals
                                                                    : NULL;
}

static int check_items(const struct plain *plain, const struct args *args)
{
    for (int i = 1; i < args->count; i++) {
        if (find_quantity(args->words[i]) == NULL)
            return args_wrong(&plain->spec, "'%s' is not SKU=QTY",
                              args->words[i]);
    }
    return ARGS_GO;
}

static int check_limit(const struct plain *plain, const struct args *args)
{
    (void)args;
    if (policy == NULL && (rate == 0 || per_ms == 0))
        return args_wrong(&plain->spec,
                          "--rate and --per are needed, or --policy");
    return ARGS_GO;
}

#define EXITS \
    "exit code: 0 shown, 64 wrong command line, 65 refused, 69 no server\n"

static const struct plain plains[] = {
    {.spec =
         {"stock",
          "set SKU TOTAL | add SKU N | get SKU... | list [PATTERN] | del SKU",
          "Sets, changes and shows how many units of a product there are.\n"
          "total = available + reserved + sold, always. A negative N takes "
          "stock away.\n\n"
          "exit code: 0 done, 64 wrong command line, 65 refused, 69 no "
          "server,\n75 not so many are available\n",
          "  holdfast stock set shoe-42 100\n"
          "  holdfast stock add shoe-42 -3 --reason damaged\n"
          "  holdfast stock list 'shoe-*' --json\n",
          stock_options, COUNT(stock_options)},
     .words_min = 1,
     .words_max = RESP_ARGS_MAX,
     .needed = "set, add, get, list or del is needed",
     .check = check_stock},
    {.spec = {"reserve", "ID|'*' SKU=QTY [SKU=QTY ...] [options]",
              "Reserves all of the items or none. '*' lets the server choose "
              "the id.\n\n"
              "exit code: 0 reserved, 64 wrong command line, 65 refused, 69 no "
              "server,\n75 not enough stock\n",
              "  holdfast reserve order-17 shoe-42=1 laces=2\n"
              "  holdfast reserve '*' shoe-42=1 --ttl 60000 --json\n",
              reserve_options, COUNT(reserve_options)},
     .words_min = 2,
     .words_max = RESP_ARGS_MAX,
     .needed = "an id and at least one SKU=QTY are needed",
     .check = check_items,
     .items = true},
    {.spec = {"confirm", "ID [options]",
              "Turns a reservation into a sale.\n\n"
              "exit code: 0 sold, 64 wrong command line, 65 refused (expired, "
              "cancelled,\nunknown), 69 no server\n",
              "  holdfast confirm order-17\n", no_options, COUNT(no_options)},
     .words_min = 1,
     .words_max = 1,
     .needed = "one reservation id is needed"},
    {.spec = {"cancel", "ID [options]",
              "Gives the reserved stock back.\n\n"
              "exit code: 0 cancelled, 64 wrong command line, 65 refused "
              "(confirmed,\nexpired, unknown), 69 no server\n",
              "  holdfast cancel order-17 --reason 'card refused'\n",
              cancel_options, COUNT(cancel_options)},
     .words_min = 1,
     .words_max = 1,
     .needed = "one reservation id is needed"},
    {.spec = {"locks", "[PATTERN] [options]",
              "Lists the locks that are held, in pages. In PATTERN * stands "
              "for any text,\n? for any character.\n\n" EXITS,
              "  holdfast locks\n"
              "  holdfast locks 'orders/*' --json\n",
              locks_options, COUNT(locks_options)},
     .words_max = 1,
     .needed = "at most one pattern may be given"},
    {.spec = {"lockinfo", "NAME [options]",
              "Shows who holds a lock, in which mode and for how long, and who "
              "waits for it.\n\n" EXITS,
              "  holdfast lockinfo orders/42\n", no_options, COUNT(no_options)},
     .words_min = 1,
     .words_max = 1,
     .needed = "one lock name is needed"},
    {.spec = {"explain", "NAME [options]",
              "Tells the last things that happened to a lock: who held it, "
              "waited for it,\nlost it, and why.\n\n" EXITS,
              "  holdfast explain orders/42\n", no_options, COUNT(no_options)},
     .words_min = 1,
     .words_max = 1,
     .needed = "one lock name is needed"},
    {.spec = {"waitgraph", "[options]",
              "Shows who waits for whom, for which lock, in pages.\n\n" EXITS,
              "  holdfast waitgraph\n"
              "  holdfast waitgraph --dot | dot -Tsvg >waits.svg\n",
              waitgraph_options, COUNT(waitgraph_options)},
     .needed = "waitgraph takes no name"},
    {.spec = {"leader", "NAME [options]",
              "Tells who leads an election, since when, and the value that "
              "the leader gave.\n\n" EXITS,
              "  holdfast leader scheduler\n"
              "  holdfast leader scheduler --json | jq -r .value\n",
              no_options, COUNT(no_options)},
     .words_min = 1,
     .words_max = 1,
     .needed = "the name of one election is needed"},
    {.spec = {"limit", "KEY --rate N --per MS | --policy NAMES [options]",
              "Asks whether KEY may act now, and counts it if so.\n\n"
              "exit code: 0 allowed, 75 denied, 64 wrong command line, 65 "
              "refused,\n69 no server\n",
              "  holdfast limit mail:ann --rate 5 --per 60000 && send-mail\n"
              "  holdfast limit api --rate 100 --per 1000 --burst 20 --json\n"
              "  holdfast limit ann --policy user,all --wait 5000\n",
              limit_options, COUNT(limit_options)},
     .words_min = 1,
     .words_max = 1,
     .needed = "one key is needed",
     .check = check_limit,
     .asks = true},
};

static int parse(const struct plain *plain, int argc, char **argv,
                 struct args *args)
{
    int code = client_args(&plain->spec, argc, argv, &call.address, args);

    if (code != ARGS_GO)
        return code;
    if (args->rest != NULL)
        return args_wrong(&plain->spec, "nothing may follow --");
    if (args->count > RESP_ARGS_MAX / 4)
        return args_wrong(&plain->spec, "too many words");
    if (args->count < plain->words_min || args->count > plain->words_max)
        return args_wrong(&plain->spec, "%s", plain->needed);
    return plain->check != NULL ? plain->check(plain, args) : ARGS_GO;
}

/* The request: the command's name, its words, and the options given, those
 * that all commands have left out. SKU=QTY becomes an item. */
static int send_words(const struct plain *plain, const struct args *args,
                      struct hf_bytes *reply)
{
    static const struct args_option shared[] = {CALL_OPTIONS(&call)};
    static struct words words;

    words_text(&words, plain->spec.name);
    for (int i = 0; i < args->count; i++) {
        char *word = args->words[i];
        char *equals = i > 0 && plain->items ? find_quantity(word) : NULL;
        if (equals != NULL) {
            *equals = '\0';
            words_text(&words, "item");
        }
        words_text(&words, word);
        if (equals != NULL)
            words_text(&words, equals + 1);
    }
    for (size_t i = 0; i < plain->spec.option_count - COUNT(shared); i++) {
        const struct args_option *option = &plain->spec.options[i];
        if (option->text != NULL)
            words_option(&words, option->name, *option->text);
        else if (option->number != NULL)
            words_amount(&words, option->name, *option->number);
        else if (*option->flag)
            words_text(&words, option->name);
    }
    return call_send(&call, words.count, words.list, reply);
}

/* A limit's answer is a map with `allowed`, a number or a truth value. */
static bool is_denied(struct hf_bytes reply)
{
    struct resp_value value;

    return resp_field(reply, "allowed", &value) != HF_OK || value.number != 1;
}

int plain_main(int argc, char **argv)
{
    const struct plain *plain = plains;
    struct hf_bytes reply;
    struct args args;

    while (strcmp(plain->spec.name, argv[0]) != 0) {
        plain++;
        assert(plain < plains + COUNT(plains));
    }
    call.name = plain->spec.name;
    int code = parse(plain, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    code = send_words(plain, &args, &reply);
    if (code == CLI_DONE)
        code = call_print(&call, reply);
    if (code == CLI_DONE && plain->asks && is_denied(reply))
        code = CLI_BUSY;
    call_close(&call);
    return code;
}
