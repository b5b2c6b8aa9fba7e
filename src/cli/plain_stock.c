/* plain_stock.c - the plain commands about stock: options, words, rows. */
#include <string.h>

#include "cli/plain_parts.h"
#include "cli/words.h"
#include "hold/bounds.h"

/* The values of the options: of texts NULL, of numbers 0 is "not given". */
static const char *reason, *owner, *req, *version, *ref, *id, *class, *group;
static const char *split;
static uint64_t after, ttl_ms, priority, stay_ms, at_ms;
static uint64_t grace_ms, extends, life_ms;
static bool best, preorder;
static struct args_list places;

static const struct args_option stock_options[] = {
    ARGS_TEXT("if", "VERSION",
              "only if the product has this version; 0: only if there is none "
              "(set, add, del)",
              version),
    ARGS_TEXT("reason", "TEXT", "why, for the record (set, add, arrive)",
              reason),
    ARGS_TEXT("ref", "TEXT",
              "a reference, for the record (set, add); which arrival it is "
              "(expect, arrive)",
              ref),
    ARGS_NUMBER("at", "MS", "when it arrives, in ms since 1970 (expect)", at_ms,
                1, HOLD_TTL_MAX_MS),
    ARGS_TEXT("req", "ID",
              "the same ID again returns the first answer (changes)", req),
    PAGE_OPTIONS(" (list, places, expected)"),
    ARGS_NUMBER("from", "N", "only what happened after this number (history)",
                after, 1, INT64_MAX),
    CALL_OPTIONS(&plain_call),
};

static const struct args_option reservation_options[] = {
    ARGS_NUMBER("from", "N", "only what happened after this number (history)",
                after, 1, INT64_MAX),
    ARGS_NUMBER("count", "N", "how many changes at most (history)", plain_page,
                1, 1000),
    CALL_OPTIONS(&plain_call),
};

static const struct args_option reserve_options[] = {
    ARGS_NUMBER("ttl", "MS",
                "time until it expires unconfirmed (by its class, or 600000)",
                ttl_ms, 1, UINT64_MAX),
    ARGS_TEXT("owner", "TEXT", "for whom it is", owner),
    ARGS_TEXT("class", "NAME", "of CLASS SET: its TTL and other rules", class),
    ARGS_TEXT("group", "NAME", "to be confirmed or cancelled with others",
              group),
    ARGS_FLAG("best", "those items of which there is enough", best),
    ARGS_FLAG("preorder", "book one item from what is to arrive", preorder),
    ARGS_LIST("place", "PLACE",
              "from SKU@PLACE; of several, from the first that has all",
              places),
    ARGS_TEXT("split", "HOW",
              "from several places: fewest, order (as given) or most (units)",
              split),
    ARGS_NUMBER("wait", "MS", "wait so long for what is short (0)",
                plain_call.wait_ms, 1, LIMIT_PER_MAX_MS),
    ARGS_NUMBER("priority", "N", "place among those who wait: 0 first, 3 last",
                priority, 0, 3),
    ARGS_TEXT("req", "ID", "the same ID again returns the first answer", req),
    CALL_OPTIONS(&plain_call),
};

static const struct args_option waitlist_options[] = {
    ARGS_TEXT("owner", "TEXT", "for whom it is (join)", owner),
    ARGS_TEXT("id", "ID", "of the reservation to be (join)", id),
    ARGS_TEXT("group", "NAME", "as of reserve (join)", group),
    ARGS_NUMBER("ttl", "MS", "how long the offer stands (600000; join)", ttl_ms,
                1, UINT64_MAX),
    ARGS_NUMBER("wait", "MS", "how long to stay in the list (for ever; join)",
                stay_ms, 1, UINT64_MAX),
    ARGS_NUMBER("priority", "N", "0 first, 3 last (join)", priority, 0, 3),
    ARGS_TEXT("req", "ID", "the same ID again returns the first answer", req),
    PAGE_OPTIONS(" (list)"),
    CALL_OPTIONS(&plain_call),
};

static const struct args_option confirm_options[] = {
    ARGS_TEXT("req", "ID", "the same ID again returns the first answer", req),
    CALL_OPTIONS(&plain_call),
};

static const struct args_option cancel_options[] = {
    ARGS_TEXT("reason", "TEXT", "why, for the record", reason),
    ARGS_TEXT("req", "ID", "the same ID again returns the first answer", req),
    CALL_OPTIONS(&plain_call),
};

static const struct args_option group_options[] = {
    ARGS_TEXT("reason", "TEXT", "why, for the record (cancel)", reason),
    ARGS_TEXT("req", "ID",
              "the same ID again returns the first answer (confirm, cancel)",
              req),
    PAGE_OPTIONS(" (show)"),
    CALL_OPTIONS(&plain_call),
};

static const struct args_option extend_options[] = {
    ARGS_NUMBER("ttl", "MS", "how long it lasts from now on", ttl_ms, 1,
                UINT64_MAX),
    ARGS_TEXT("req", "ID", "the same ID again returns the first answer", req),
    CALL_OPTIONS(&plain_call),
};

static const struct args_option class_options[] = {
    ARGS_NUMBER("ttl", "MS", "of reservations that have none (set)", ttl_ms, 1,
                UINT64_MAX),
    ARGS_NUMBER("grace", "MS", "how late they may be confirmed (set)", grace_ms,
                1, UINT64_MAX),
    ARGS_NUMBER("extends", "N", "how often they may be extended (set)", extends,
                1, UINT64_MAX),
    ARGS_NUMBER("life", "MS", "how long they may last in all (set)", life_ms, 1,
                UINT64_MAX),
    ARGS_TEXT("req", "ID",
              "the same ID again returns the first answer (set, del)", req),
    PAGE_OPTIONS(" (list)"),
    CALL_OPTIONS(&plain_call),
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
        bool number;  /* the last of them is a number */
        bool changes; /* it takes --req */
        bool noted;   /* and --reason and --ref */
    } verbs[] = {{"low", 2, 2, true, true, false},
                 {"limit", 2, 2, true, true, false},
                 {"attr", 2, 3, false, true, false},
                 {"set", 2, 2, true, true, true},
                 {"add", 2, 2, true, true, true},
                 {"get", 1, 200, false, false, false},
                 {"list", 0, 1, false, false, false},
                 {"del", 1, 1, false, true, false},
                 {"history", 1, 1, false, false, false},
                 {"at", 2, 2, true, false, false},
                 {"places", 1, 1, false, false, false},
                 {"expect", 2, 2, true, true, false},
                 {"arrive", 2, 2, true, true, true},
                 {"expected", 1, 1, false, false, false},
                 {"audit", 1, 1, false, false, false}};
    const char *verb = args->words[0];
    const char *last = args->words[args->count - 1];
    bool expect = strcmp(verb, "expect") == 0;
    size_t i = 0;

    while (i < COUNT(verbs) && strcmp(verbs[i].name, verb) != 0)
        i++;
    if (i == COUNT(verbs))
        return args_wrong(&plain->spec, "%s", plain->needed);
    if (args->count - 1 < verbs[i].min || args->count - 1 > verbs[i].max)
        return args_wrong(&plain->spec, "wrong number of words for %s", verb);
    if (verbs[i].number && !is_number(last))
        return args_wrong(&plain->spec, "'%s' is not a number", last);
    if ((reason != NULL || (ref != NULL && !expect)) && !verbs[i].noted)
        return args_wrong(&plain->spec, "--reason and --ref belong to set, "
                                        "add and arrive");
    if (at_ms > 0 && !expect)
        return args_wrong(&plain->spec, "--at belongs to expect");
    if (req != NULL && !verbs[i].changes)
        return args_wrong(&plain->spec, "--req belongs to changes");
    bool takes_if = verbs[i].noted && strcmp(verb, "arrive") != 0;
    if (version != NULL && !takes_if && strcmp(verb, "del") != 0)
        return args_wrong(&plain->spec, "--if belongs to set, add and del");
    if (version != NULL && !is_number(version))
        return args_wrong(&plain->spec, "'%s' is not a number", version);
    bool history = strcmp(verb, "history") == 0;
    if (after > 0 && !history)
        return args_wrong(&plain->spec, "--from belongs to history");
    bool paged = strcmp(verb, "list") == 0 || strcmp(verb, "places") == 0 ||
                 strcmp(verb, "expected") == 0;
    if ((plain_cursor > 0 || (plain_page > 0 && !history)) && !paged)
        return args_wrong(
            &plain->spec,
            "--cursor and --count belong to list, places and expected");
    return ARGS_GO;
}

static int check_reservation(const struct plain *plain, const struct args *args)
{
    bool history = args->count == 2;

    if (history && strcmp(args->words[0], "history") != 0)
        return args_wrong(&plain->spec, "%s", plain->needed);
    if ((after | plain_page) > 0 && !history)
        return args_wrong(&plain->spec, "--from and --count belong to history");
    return ARGS_GO;
}

static int check_waitlist(const struct plain *plain, const struct args *args)
{
    const char *verb = args->words[0];
    bool join = strcmp(verb, "join") == 0;
    bool list = strcmp(verb, "list") == 0;

    if (!join && !list && strcmp(verb, "leave") != 0)
        return args_wrong(&plain->spec, "%s", plain->needed);
    if (args->count != (list ? 2 : 3))
        return args_wrong(&plain->spec, "wrong number of words for %s", verb);
    if (join && !is_number(args->words[2]))
        return args_wrong(&plain->spec, "'%s' is not a number", args->words[2]);
    if (join != (owner != NULL))
        return args_wrong(&plain->spec, join ? "join needs --owner"
                                             : "--owner belongs to join");
    return ARGS_GO;
}

static int check_group(const struct plain *plain, const struct args *args)
{
    const char *verb = args->words[0];
    bool show = strcmp(verb, "show") == 0;
    bool cancel = strcmp(verb, "cancel") == 0;

    if (!show && !cancel && strcmp(verb, "confirm") != 0)
        return args_wrong(&plain->spec, "%s", plain->needed);
    if (reason != NULL && !cancel)
        return args_wrong(&plain->spec, "--reason belongs to cancel");
    if (req != NULL && show)
        return args_wrong(&plain->spec, "--req belongs to changes");
    if ((plain_cursor | plain_page) > 0 && !show)
        return args_wrong(&plain->spec, "--cursor and --count belong to show");
    return ARGS_GO;
}

static int check_extend(const struct plain *plain, const struct args *args)
{
    (void)args;
    return ttl_ms > 0 ? ARGS_GO : args_wrong(&plain->spec, "--ttl is needed");
}

static int check_class(const struct plain *plain, const struct args *args)
{
    const char *verb = args->words[0];
    bool set = strcmp(verb, "set") == 0;
    bool list = strcmp(verb, "list") == 0;

    if (!set && !list && strcmp(verb, "del") != 0)
        return args_wrong(&plain->spec, "%s", plain->needed);
    if (args->count != (list ? 1 : 2))
        return args_wrong(&plain->spec, "wrong number of words for %s", verb);
    if ((ttl_ms | grace_ms | extends | life_ms) > 0 && !set)
        return args_wrong(&plain->spec, "--ttl, --grace, --extends and --life "
                                        "belong to set");
    if (req != NULL && list)
        return args_wrong(&plain->spec, "--req belongs to changes");
    if ((plain_cursor | plain_page) > 0 && !list)
        return args_wrong(&plain->spec, "--cursor and --count belong to list");
    return ARGS_GO;
}

char *plain_find_most(char *text)
{
    char *dots = strstr(text, "..");

    if (dots == NULL || !is_number(dots + 2))
        return NULL;
    *dots = '\0';
    bool good = is_number(text);
    *dots = '.';
    return good ? dots : NULL;
}

char *plain_find_quantity(const struct plain *plain, char *word)
{
    char *equals = strrchr(word, '=');

    return equals != NULL && equals > word &&
                   (is_number(equals + 1) ||
                    (plain->mins && plain_find_most(equals + 1) != NULL))
               ? equals
               : NULL;
}

static int check_items(const struct plain *plain, const struct args *args)
{
    for (int i = 1; i < args->count; i++) {
        if (plain_find_quantity(plain, args->words[i]) == NULL)
            return args_wrong(&plain->spec, "'%s' is not SKU=QTY",
                              args->words[i]);
    }
    return ARGS_GO;
}

const struct plain plain_stock[] = {
    {.spec =
         {"stock",
          "set SKU TOTAL | add SKU N | get SKU... | list [PATTERN] | del SKU "
          "|\n"
          "       low SKU N | limit SKU N | attr SKU NAME [VALUE] | history "
          "SKU |\n"
          "       at SKU NUMBER | audit SKU | places SKU | expect SKU N |\n"
          "       arrive SKU N | expected SKU | import FILE | export FILE",
          "Sets, changes and shows how many units of a product there are.\n"
          "total = available + reserved + sold, always. A negative N takes "
          "stock away.\n"
          "low: events tell when no more than N are available, and when there "
          "are more\nagain (0: none). limit: no owner may have more than N in "
          "open reservations (0: any\nnumber). attr: sets an attribute, or "
          "removes it. history: what happened to it. at:\nwhat it was behind "
          "the number of a change. audit: derives its numbers from the\n"
          "journal and proves each step. places: all SKU@PLACE, and their "
          "sums. expect: N\nwill arrive (0: not any more). arrive: N have "
          "arrived, and those who booked get\ntheirs. expected: what is to "
          "arrive, and who booked.\n\n"
          "exit code: 0 done, 64 wrong command line, 65 refused, 69 no "
          "server,\n75 not so many are available\n",
          "  holdfast stock set shoe-42 100\n"
          "  holdfast stock add shoe-42 -3 --reason damaged\n"
          "  holdfast stock set shoe-42 80 --if 17 --ref count-2026\n"
          "  holdfast stock list 'shoe-*' --json\n"
          "  holdfast stock history shoe-42 --count 20\n"
          "  holdfast stock expect shoe-42 50 --at 1798761600000 --ref po-7\n"
          "  holdfast stock arrive shoe-42 48 --ref po-7\n",
          stock_options, COUNT(stock_options)},
     .words_min = 1,
     .words_max = RESP_ARGS_MAX,
     .needed =
         "set, add, get, list, del, low, limit, attr, history, at, audit, "
         "places, expect, arrive, expected, import or export is needed",
     .check = check_stock},
    {.spec = {"reserve", "ID|'*' SKU=[MIN..]QTY [SKU=[MIN..]QTY ...] [options]",
              "Reserves all of the items or none; of SKU=MIN..QTY as many as "
              "there are, MIN at\nleast. '*' lets the server choose the "
              "id. With --wait it waits for what is short, in\nthe order in "
              "which others came; with --preorder it books it, if it is\n"
              "announced.\n\n"
              "exit code: 0 reserved or booked, 64 wrong command line, 65 "
              "refused, 69 no "
              "server,\n75 not enough stock, also after --wait\n",
              "  holdfast reserve order-17 shoe-42=1 laces=2\n"
              "  holdfast reserve '*' shoe-42=1 --ttl 60000 --json\n"
              "  holdfast reserve order-18 shoe-42=1..3 laces=2 --best\n"
              "  holdfast reserve order-19 shoe-42=1 --wait 30000\n"
              "  holdfast reserve order-20 shoe-42=3 --place berlin --place "
              "paris --split fewest\n"
              "  holdfast reserve order-21 shoe-42=2 --preorder\n",
              reserve_options, COUNT(reserve_options)},
     .words_min = 2,
     .words_max = RESP_ARGS_MAX,
     .needed = "an id and at least one SKU=QTY are needed",
     .check = check_items,
     .items = true,
     .mins = true},
    {.spec = {"reservation", "ID | history ID [--from N] [--count N]",
              "Shows a reservation, or what happened to it, oldest first, also "
              "when it is\nover and forgotten.\n\n" EXITS,
              "  holdfast reservation order-17\n"
              "  holdfast reservation history order-17 --json\n",
              reservation_options, COUNT(reservation_options)},
     .words_min = 1,
     .words_max = 2,
     .needed = "an id, or history and an id, is needed",
     .check = check_reservation},
    {.spec =
         {"waitlist", "join SKU QTY --owner TEXT | leave SKU ID | list SKU",
          "Waits for stock without staying connected. When it is its turn, "
          "the units are\nreserved under its id for --ttl, and the event "
          "'offered' tells so: confirm or\ncancel it as any other.\n\n" EXITS,
          "  holdfast waitlist join shoe-42 1 --owner ann --id wish-7\n"
          "  holdfast waitlist list shoe-42\n"
          "  holdfast waitlist leave shoe-42 wish-7\n",
          waitlist_options, COUNT(waitlist_options)},
     .words_min = 2,
     .words_max = 3,
     .needed = "join, leave or list is needed, and a SKU",
     .check = check_waitlist},
    {.spec = {"confirm", "ID [SKU=QTY ...] [options]",
              "Turns a reservation into a sale. With SKU=QTY only so much is "
              "sold; the rest\nis given back, and the reservation has "
              "ended.\n\n"
              "exit code: 0 sold, 64 wrong command line, 65 refused (expired, "
              "cancelled,\nunknown, not so many reserved), 69 no server\n",
              "  holdfast confirm order-17\n"
              "  holdfast confirm order-17 shoe-42=1 --req pay-4711\n",
              confirm_options, COUNT(confirm_options)},
     .words_min = 1,
     .words_max = RESP_ARGS_MAX,
     .needed = "a reservation id is needed",
     .check = check_items,
     .items = true},
    {.spec = {"cancel", "ID [SKU=QTY ...] [options]",
              "Gives the reserved stock back. With SKU=QTY only so much; the "
              "reservation goes\non with the rest.\n\n"
              "exit code: 0 cancelled, 64 wrong command line, 65 refused "
              "(confirmed,\nexpired, unknown, not so many reserved), 69 no "
              "server\n",
              "  holdfast cancel order-17 --reason 'card refused'\n"
              "  holdfast cancel order-17 laces=1 --req back-4711\n",
              cancel_options, COUNT(cancel_options)},
     .words_min = 1,
     .words_max = RESP_ARGS_MAX,
     .needed = "a reservation id is needed",
     .check = check_items,
     .items = true},
    {.spec =
         {"group", "confirm NAME | cancel NAME | show NAME",
          "Confirms or cancels all reservations that were made with --group "
          "NAME, or none\nof them: one that waits stops a confirm, and one "
          "that "
          "has expired, unless it has\nits time of grace and its units are "
          "free. show: lists them.\n\n"
          "exit code: 0 done, 64 wrong command line, 65 refused (one has "
          "expired or waits,\nno such group), 69 no server, 75 not so many "
          "are available\n",
          "  holdfast reserve '*' bed=1 --group trip-7\n"
          "  holdfast group show trip-7\n"
          "  holdfast group cancel trip-7 --reason rain\n",
          group_options, COUNT(group_options)},
     .words_min = 2,
     .words_max = 2,
     .needed = "confirm, cancel or show is needed, and the name of a group",
     .check = check_group},
    {.spec = {"extend", "ID --ttl MS [options]",
              "Sets how long a reservation lasts from now on.\n\n"
              "exit code: 0 done, 64 wrong command line, 65 refused (ended, "
              "unknown, beyond\nwhat its class or the settings allow), 69 no "
              "server\n",
              "  holdfast extend order-17 --ttl 300000\n", extend_options,
              COUNT(extend_options)},
     .words_min = 1,
     .words_max = 1,
     .needed = "a reservation id is needed",
     .check = check_extend},
    {.spec = {"class", "set NAME | del NAME | list",
              "What counts for reservations that are made with --class NAME. "
              "set replaces all\nof it: without --ttl that of the settings, "
              "without --grace none, without\n--extends and --life any.\n\n"
              "exit code: 0 done, 64 wrong command line, 65 refused, 69 no "
              "server\n",
              "  holdfast class set vip --ttl 1800000 --grace 5000\n"
              "  holdfast reserve order-22 shoe-42=1 --class vip\n"
              "  holdfast class list\n",
              class_options, COUNT(class_options)},
     .words_min = 1,
     .words_max = 2,
     .needed = "set, del or list is needed",
     .check = check_class},
};

const size_t plain_stock_count = COUNT(plain_stock);
