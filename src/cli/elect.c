/* elect.c - a command that runs only while it leads. */
#include "cli/commands.h"

#include "cli/held.h"

static const char about[] =
    "Stands for the election NAME, waits to be the leader, runs the command\n"
    "while it is, and resigns when the command ends. An election is an\n"
    "exclusive lock: those who stand for it are in its queue, and the next "
    "one\n"
    "leads when the leader resigns or is lost. The command is killed before\n"
    "anybody else can be the leader, as with holdfast lock.\n"
    "\n"
    "The command finds HOLDFAST_LOCK (the election), HOLDFAST_OWNER and\n"
    "HOLDFAST_TOKEN in its environment; the token, also as HOLDFAST_FENCE, is\n"
    "the number of the term. To stand again after a loss, run it again: that\n"
    "is what a service manager does.\n"
    "\n" HELD_RUNS "\n" HELD_EXITS
    "  75  another leads, and the wait timed out\n"
    "  76  the leadership was lost and the command was killed\n"
    "  77  waiting would be a deadlock (with --owner or --session)\n"
    "  78  the work of this name is done (see holdfast once)\n" HELD_EXITS_RUN;

static const char examples[] =
    "  holdfast elect scheduler --value \"$(hostname):8080\" -- ./scheduler\n"
    "  holdfast elect primary --ttl 5000 --wait 60000 -- ./primary\n";

int elect_main(int argc, char **argv)
{
    struct held held = {.lease = {.kind = LEASE_ELECTION,
                                  .ttl_ms = 30000,
                                  .client = {.fd = -1}},
                        .wait_ms = LEASE_FOREVER};
    const char *value = NULL;
    uint64_t session = 0;
    const struct args_option options[] = {
        ARGS_TEXT("owner", "TEXT", "who stands (host:pid:random)",
                  held.lease.owner),
        ARGS_TEXT("value", "TEXT",
                  "what holdfast leader tells of this leader, as an address",
                  value),
        HELD_TTL(&held, "time after which a silent leader is replaced (30000)"),
        HELD_WAIT(&held, "forever"),
        ARGS_NUMBER("session", "ID", "ends with that session at the latest",
                    session, 1, INT64_MAX),
        CLIENT_OPTIONS(&held.address),
    };
    const struct args_spec spec = {
        .name = "elect",
        .usage = "NAME [options] -- COMMAND [ARGUMENTS]",
        .about = about,
        .examples = examples,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    struct words request = {0};
    struct args args;

    int code = held_parse(&held, &spec, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count != 1)
        return args_wrong(&spec, "the name of one election is needed");
    held.lease.name = args.words[0];
    words_option(&request, "ELECT", held.lease.name);
    words_option(&request, "VALUE", value);
    words_amount(&request, "SESSION", session);
    held_words(&held, &request);
    return held_run(&held, &request, args.rest);
}
