/* serve.c - starts the server from the command line. */
#include "main/serve.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/args.h"
#include "server/server.h"
#include "server/table.h"

static void greet(const char *address, const struct config *config)
{
    uint64_t port = config->port;

    printf("ready %s, data in %s, durability %s\n", address, config->dir,
           config_durabilities[config->durability]);
    printf("try, from another terminal:\n"
           "  redis-cli -p %llu LOCK orders/42 OWNER me TTL 30000\n"
           "  redis-cli -p %llu STOCK SET ticket 100\n"
           "  redis-cli -p %llu LIMIT api/me RATE 10 PER 1000\n",
           (unsigned long long)port, (unsigned long long)port,
           (unsigned long long)port);
    fflush(stdout);
}

/* Whoever does not read what we print does not keep us from ending. */
static void say_stopped(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0) {
        printf("stopped\n");
        fflush(stdout);
    }
}

/* Without them a file of the journal would get the number of one that we, or
 * the log, print to. */
static void open_standard_files(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static int serve(const struct config *config)
{
    struct server *server = hf_alloc(sizeof *server);
    char error[JOURNAL_ERROR_MAX] = "out of memory";
    char address[128];
    enum hf_status status = HF_NOMEM;

    open_standard_files();
    signal(SIGPIPE, SIG_IGN);
    if (server != NULL)
        status = server_open(server, config, error);
    if (status == HF_OK) {
        server_address(server, address, sizeof address);
        greet(address, &server->config);
        server_run(server);
    }
    if (server != NULL)
        server_close(server);
    hf_free(server);
    if (status == HF_OK) /* behind the last line of the log */
        say_stopped();
    else
        fprintf(stderr, "holdfast serve: %s\n", error);
    return status == HF_OK ? CLI_DONE : CLI_FAILED;
}

/* What is wrong with the settings that are words; NULL: nothing, and they are
 * in `config`. */
static const char *take_texts(struct config *config, const char *durability,
                              const char *level, const char *format)
{
    int mode = config_find(config_durabilities, hf_bytes_text(durability));
    int lowest = config_find(config_levels, hf_bytes_text(level));
    int form = config_find(config_formats, hf_bytes_text(format));

    config->durability = (enum journal_sync)mode;
    config->log_level = (enum hf_log_level)lowest;
    config->log_format = (enum hf_log_form)form;
    return mode < 0     ? "--durability is always, interval or none"
           : lowest < 0 ? "--log-level is debug, info, warn or error"
           : form < 0   ? "--log-format is text or json"
           : config->segment_bytes % 4096 != 0
               ? "--segment-bytes is a multiple of 4096"
               : NULL;
}

#define OPTIONS_TEXT 6 /* options that are no numbers */

int serve_on(struct journal_io *io, int argc, char **argv)
{
    struct config config = config_default();
    const char *durability = config_durabilities[config.durability];
    struct config_number numbers[CONFIG_NUMBERS_MAX];
    size_t count = config_numbers(&config, numbers);
    const char *level = config_levels[config.log_level];
    const char *format = config_formats[config.log_format];
    struct args_option options[CONFIG_NUMBERS_MAX + OPTIONS_TEXT] = {
        ARGS_TEXT("bind", "ADDRESS", "address to listen on (127.0.0.1)",
                  config.bind),
        ARGS_TEXT("dir", "DIR", "folder of the journal (./data)", config.dir),
        ARGS_TEXT("durability", "MODE",
                  "always: on disk before the reply (default); interval: "
                  "synced every second; none",
                  durability),
        ARGS_TEXT("log-file", "FILE", "where the log goes (the standard error)",
                  config.log_file),
        ARGS_TEXT("log-level", "LEVEL", "debug, info (default), warn or error",
                  level),
        ARGS_TEXT("log-format", "FORM",
                  "text (default) or json: one object a line", format),
    };
    struct args_spec spec = {
        .name = "serve",
        .usage = "[--port N] [--bind ADDRESS] [--dir DIR] [--durability MODE]",
        .about = "Runs the server until SIGTERM or SIGINT. Prints one line "
                 "`ready ADDRESS ...` when it accepts;\nwhat happens then is "
                 "told in the log.\n",
        .examples = "  holdfast serve\n"
                    "  holdfast serve --port 0 --dir /var/lib/holdfast\n"
                    "  holdfast serve --durability interval\n"
                    "  holdfast serve --log-file /var/log/holdfast.log "
                    "--log-format json\n",
        .options = options,
        .option_count = OPTIONS_TEXT + count,
    };
    struct args args;

    for (size_t i = 0; i < count; i++)
        options[OPTIONS_TEXT + i] = (struct args_option)ARGS_NUMBER(
            numbers[i].name, "N", numbers[i].help, *numbers[i].value,
            numbers[i].min, numbers[i].max);
    int code = args_parse(&spec, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count > 0)
        return args_wrong(&spec, "unexpected '%s'", args.words[0]);
    const char *wrong = take_texts(&config, durability, level, format);
    if (wrong != NULL)
        return args_wrong(&spec, "%s", wrong);
    config.io = io;
    return serve(&config);
}

int serve_main(int argc, char **argv)
{
    return serve_on(NULL, argc, argv);
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
    hf_buf_destroy(&text);
    return CLI_DONE;
}
