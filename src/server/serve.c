/* serve.c - starts the server from the command line. */
#include "server/serve.h"

#include <signal.h>

#include "base/memory.h"
#include "cli/args.h"
#include "server/server.h"
#include "server/table.h"

static void greet(const char *address, const struct config *config)
{
    uint64_t port = config->port;

    printf("ready %s, data in %s, durability %s\n", address, config->dir,
           config_durability_name(config->durability));
    printf("try, from another terminal:\n"
           "  redis-cli -p %llu LOCK orders/42 OWNER me TTL 30000\n"
           "  redis-cli -p %llu STOCK SET ticket 100\n"
           "  redis-cli -p %llu LIMIT api/me RATE 10 PER 1000\n",
           (unsigned long long)port, (unsigned long long)port,
           (unsigned long long)port);
    fflush(stdout);
}

static int serve(const struct config *config)
{
    struct server *server = hf_alloc(sizeof *server);
    char error[JOURNAL_ERROR_MAX] = "out of memory";
    char address[128];
    enum hf_status status = HF_NOMEM;

    if (server != NULL)
        status = server_open(server, config, error);
    if (status == HF_OK) {
        server_address(server, address, sizeof address);
        greet(address, &server->config);
        server_run(server);
        printf("stopped\n");
    } else {
        fprintf(stderr, "holdfast serve: %s\n", error);
    }
    if (server != NULL)
        server_close(server);
    hf_free(server);
    return status == HF_OK ? CLI_DONE : CLI_FAILED;
}

int serve_main(int argc, char **argv)
{
    struct config config = config_default();
    const char *durability = config_durability_name(config.durability);
    struct config_number numbers[CONFIG_NUMBERS_MAX];
    size_t count = config_numbers(&config, numbers);
    struct args_option options[CONFIG_NUMBERS_MAX + 4] = {
        {.name = "bind",
         .value = "ADDRESS",
         .text = &config.bind,
         .help = "address to listen on (127.0.0.1)"},
        {.name = "dir",
         .value = "DIR",
         .text = &config.dir,
         .help = "folder of the journal (./data)"},
        {.name = "durability",
         .value = "MODE",
         .text = &durability,
         .help = "always: on disk before the reply (default); interval: "
                 "synced every second; none"},
    };
    static const char *const helps[CONFIG_NUMBERS_MAX] = {
        "port; 0 picks a free one (7420)",
        "size of a journal file",
        "journal written since the last snapshot that calls for a new one",
        "connections at once",
        "unread replies of one client before it is not read from",
        "silent connections are closed after this; 0: never",
        "memory for holds; 0: no limit",
        "keys of LIMIT kept at once",
        "locks held at once",
        "clients in the queue of one lock",
        "products",
        "reservations, with ended ones still remembered",
        "resources with a newest token",
        "REQ ids remembered at once",
        "how long a REQ id is remembered",
        "how long an ended reservation is remembered",
    };
    struct args_spec spec = {
        .name = "serve",
        .usage = "[--port N] [--bind ADDRESS] [--dir DIR] [--durability MODE]",
        .about = "Runs the server until SIGTERM or SIGINT. Prints one line "
                 "`ready ADDRESS ...` when it accepts.\n",
        .examples = "  holdfast serve\n"
                    "  holdfast serve --port 0 --dir /var/lib/holdfast\n"
                    "  holdfast serve --durability interval\n",
        .options = options,
        .option_count = 3 + count,
    };
    struct args args;

    for (size_t i = 0; i < count; i++)
        options[3 + i] = (struct args_option){.name = numbers[i].name,
                                              .value = "N",
                                              .help = helps[i],
                                              .number = numbers[i].value,
                                              .min = numbers[i].min,
                                              .max = numbers[i].max};
    int code = args_parse(&spec, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count > 0)
        return args_wrong(&spec, "unexpected '%s'", args.words[0]);
    if (config_parse_durability(durability, &config.durability) != HF_OK)
        return args_wrong(&spec, "--durability is always, interval or none");
    if (config.segment_bytes % 4096 != 0)
        return args_wrong(&spec, "--segment-bytes is a multiple of 4096");
    signal(SIGPIPE, SIG_IGN);
    return serve(&config);
}

int commands_main(int argc, char **argv)
{
    static const struct args_spec spec = {
        .name = "commands",
        .usage = "",
        .about = "Prints the commands that the server knows, as Markdown.\n",
        .examples = "  holdfast commands > docs/commands.md\n",
    };
    struct args args;
    struct hf_buf text = {0};
    int code = args_parse(&spec, argc, argv, &args);

    if (code != ARGS_GO)
        return code;
    if (args.count > 0)
        return args_wrong(&spec, "unexpected '%s'", args.words[0]);
    if (table_markdown(&text) != HF_OK)
        return CLI_FAILED;
    fwrite(text.data, 1, text.len, stdout);
    hf_buf_release(&text);
    return CLI_DONE;
}
