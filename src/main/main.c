/* main.c - the holdfast command: one table of subcommands. */
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/verify.h"
#include "holdfast/version.h"
#include "main/serve.h"

static const struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} subcommands[] = {
    {"serve", serve_main, "run the server"},
    {"lock", lock_main, "run a command while holding a lock"},
    {"once", once_main, "run a command that nobody has run yet"},
    {"elect", elect_main, "run a command while it leads"},
    {"leader", plain_main, "tell who leads"},
    {"session", session_main, "locks that end together"},
    {"locks", plain_main, "list the locks that are held"},
    {"lockinfo", plain_main, "show who holds a lock and who waits for it"},
    {"explain", plain_main, "tell what happened to a lock"},
    {"waitgraph", plain_main, "show who waits for whom"},
    {"events", events_main, "print what happened, and wait for more"},
    {"stock", stock_main, "set, change, show, import and export stock"},
    {"reserve", plain_main, "reserve stock, all items or none"},
    {"reservation", plain_main, "show a reservation, or its history"},
    {"group", plain_main, "confirm or cancel reservations together"},
    {"waitlist", plain_main, "wait for stock without a connection"},
    {"confirm", plain_main, "turn a reservation into a sale"},
    {"cancel", plain_main, "give reserved stock back"},
    {"extend", plain_main, "let a reservation last longer"},
    {"class", plain_main, "set what counts for a class of reservations"},
    {"limit", plain_main, "ask whether a key may act now"},
    {"bench", bench_main, "measure how fast a server is"},
    {"verify", verify_main, "check a data folder offline"},
    {"repair", repair_main, "show or drop what is damaged in a data folder"},
    {"commands", commands_main, "print the server's commands as Markdown"},
};

static void usage(FILE *out)
{
    fprintf(out, "usage: holdfast SUBCOMMAND [options]\n\n");
    for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++)
        fprintf(out, "  %-11s %s\n", subcommands[i].name, subcommands[i].help);
    fprintf(out, "\nholdfast SUBCOMMAND --help tells more, with examples.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return CLI_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("holdfast %s\n", HOLDFAST_VERSION);
        return CLI_DONE;
    }
    for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++) {
        if (strcmp(argv[1], subcommands[i].name) == 0)
            return subcommands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "holdfast: unknown subcommand '%s' (see holdfast --help)\n",
            argv[1]);
    return CLI_USAGE;
}
