/* plain.c - command lines to requests, by one table; the server does the rest.
 *
 *   holdfast reserve ID SKU=QTY --ttl MS
 *            reserve id item sku qty ttl ms    in any case
 */
#include "cli/commands.h"

#include <assert.h>

#include "cli/plain_parts.h"
#include "cli/words.h"
#include "hold/bounds.h"

struct call plain_call = {.client = {.fd = -1}};
uint64_t plain_cursor, plain_page;

static const char *policy;
static uint64_t rate, per_ms, burst, cost;
static bool dot;

/* Of those that have no others. */
static const struct args_option no_options[] = {CALL_OPTIONS(&plain_call)};

static const struct args_option locks_options[] = {
    PAGE_OPTIONS(""),
    CALL_OPTIONS(&plain_call),
};

static const struct args_option waitgraph_options[] = {
    ARGS_FLAG("dot", "as a graph in Graphviz's language", dot),
    PAGE_OPTIONS(""),
    CALL_OPTIONS(&plain_call),
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
    ARGS_NUMBER("wait", "MS", "wait so long for them (0)", plain_call.wait_ms,
                1, LIMIT_PER_MAX_MS),
    CALL_OPTIONS(&plain_call),
};

static int check_limit(const struct plain *plain, const struct args *args)
{
    (void)args;
    if (policy == NULL && (rate == 0 || per_ms == 0))
        return args_wrong(&plain->spec,
                          "--rate and --per are needed, or --policy");
    return ARGS_GO;
}

static const struct plain plains[] = {
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
              "waited for it,\nlost it, why (why=) and by whom (by=), as far "
              "as that is known. docs/locks.md\nlists the reasons.\n\n" EXITS,
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
    int code = client_args(&plain->spec, argc, argv, &plain_call.address, args);

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

/* An item: SKU=QTY, or SKU=MIN..QTY; `equals` is its last '='. */
static void send_item(struct words *words, char *word, char *equals)
{
    char *most = plain_find_most(equals + 1);

    *equals = '\0';
    words_text(words, "item");
    words_text(words, word);
    words_text(words, most == NULL ? equals + 1 : most + 2);
    if (most == NULL)
        return;
    *most = '\0';
    words_text(words, "min");
    words_text(words, equals + 1);
}

static void send_list(struct words *words, const struct args_option *option)
{
    for (size_t i = 0; i < option->list->count; i++)
        words_option(words, option->name, option->list->values[i]);
}

/* The request: the command's name, its words, and the options given, those
 * that all commands have left out. SKU=QTY becomes an item. */
static int send_words(const struct plain *plain, const struct args *args,
                      struct hf_bytes *reply)
{
    static const struct args_option shared[] = {CALL_OPTIONS(&plain_call)};
    static struct words words;

    words_text(&words, plain->spec.name);
    for (int i = 0; i < args->count; i++) {
        char *word = args->words[i];
        char *equals =
            i > 0 && plain->items ? plain_find_quantity(plain, word) : NULL;
        if (equals != NULL)
            send_item(&words, word, equals);
        else
            words_text(&words, word);
    }
    for (size_t i = 0; i < plain->spec.option_count - COUNT(shared); i++) {
        const struct args_option *option = &plain->spec.options[i];
        if (option->text != NULL)
            words_option(&words, option->name, *option->text);
        else if (option->number != NULL)
            words_amount(&words, option->name, *option->number);
        else if (option->list != NULL)
            send_list(&words, option);
        else if (*option->flag)
            words_text(&words, option->name);
    }
    return call_send(&plain_call, words.count, words.list, reply);
}

/* A limit's answer is a map with `allowed`, a number or a truth value. */
static bool is_denied(struct hf_bytes reply)
{
    struct resp_value value;

    return resp_field(reply, "allowed", &value) != HF_OK || value.number != 1;
}

static const struct plain *find(const char *name)
{
    for (size_t i = 0; i < COUNT(plains); i++)
        if (strcmp(plains[i].spec.name, name) == 0)
            return &plains[i];
    for (size_t i = 0; i < plain_stock_count; i++)
        if (strcmp(plain_stock[i].spec.name, name) == 0)
            return &plain_stock[i];
    assert(false); /* main knows them by name */
    return NULL;
}

int plain_main(int argc, char **argv)
{
    const struct plain *plain = find(argv[0]);
    struct hf_bytes reply;
    struct args args;

    plain_call.name = plain->spec.name;
    int code = parse(plain, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    code = send_words(plain, &args, &reply);
    if (code == CLI_DONE)
        code = call_print(&plain_call, reply);
    if (code == CLI_DONE && plain->asks && is_denied(reply))
        code = CLI_BUSY;
    call_close(&plain_call);
    return code;
}
