/* bench.c - options, the run, the check of the stock, the table. */
#include "cli/commands.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/audit.h"
#include "cli/json.h"
#include "cli/load.h"

struct bench {
    struct client_address address;
    struct load_options options;
    const char *work;
    const char *dialect;
    uint64_t stock; /* units of each product */
    bool prepare;
    bool json;
    const char *record_path; /* NULL: nothing is recorded */
    struct record record;
    struct audit before; /* of the stock, for `reserve` */
    struct audit after;
};

static const char about[] =
    "Drives a server with many connections and reports throughput and\n"
    "latency. Works:\n"
    "  ping     PING\n"
    "  lock     LOCK, then UNLOCK; every connection has its own locks; one\n"
    "           operation is both\n"
    "  limit    LIMIT on random keys\n"
    "  reserve  RESERVE one unit of a random product; --prepare creates the\n"
    "           stock; checks afterwards that total = available + reserved +\n"
    "           sold and that nothing acknowledged is missing\n"
    "  sell     RESERVE one unit with a short TTL; of --confirm percent of "
    "them,\n"
    "           CONFIRM; the others expire. Checks after the last TTL that "
    "exactly\n"
    "           what was confirmed is sold and nothing is reserved\n"
    "  checkout a limit, a fence and one unit each of three random products, "
    "in\n"
    "           one step: MULTI ... EXEC; with Redis, a script\n"
    "  handoff  all connections queue for one lock; latency is from giving it\n"
    "           back to the next grant\n"
    "With --dialect redis, the same work as people do it with Redis: SET NX "
    "PX\n"
    "and a compare-and-delete script, a Lua token bucket, polling.\n"
    "--pace begins so many operations a second, however slow the server is, "
    "and\n"
    "times each from when it was due.\n"
    "--record writes what every connection asked and was told to a file, as "
    "it\n"
    "happens; `holdfast verify --history FILE` checks it afterwards.\n"
    "\n"
    "exit code: 0 done, 1 errors or sums that do not agree, 64 wrong command\n"
    "line, 69 no server\n";

static const char examples[] =
    "  holdfast bench\n"
    "  holdfast bench --work lock --clients 50 --pipeline 16 --seconds 10\n"
    "  holdfast bench --work reserve --keys 100000 --prepare --json\n"
    "  holdfast bench --work sell --keys 10000 --prepare --pace 20000\n"
    "  holdfast bench --work handoff --record run.txt\n"
    "  holdfast bench --work lock --dialect redis --port 6379\n";

static double per_second(const struct load *load, uint64_t count)
{
    uint64_t took_ns = load->ended_ns - load->began_ns;

    return took_ns > 0 ? (double)count * 1e9 / (double)took_ns : 0;
}

static double micros(uint64_t ns)
{
    return (double)ns / 1000;
}

static bool sells(const struct bench *bench)
{
    return strcmp(bench->work, "sell") == 0;
}

/* What is wrong with the stock; NULL: nothing. */
static const char *stock_fault(const struct bench *bench,
                               const struct load *load)
{
    if (bench->after.broken > 0)
        return "products do not add up";
    uint64_t sold = bench->after.sold - bench->before.sold;
    uint64_t taken = bench->after.reserved - bench->before.reserved + sold;
    bool all = bench->after.all && bench->before.all;
    if (all && !sells(bench) && taken != load->accepted)
        return "acknowledged reservations are missing or too many";
    if (all && sells(bench) && sold != load->sold)
        return "other units are sold than were confirmed";
    if (sells(bench) && bench->after.reserved > bench->before.reserved)
        return "units are reserved by what has expired";
    return NULL;
}

static void print_table(const struct bench *bench, const struct load *load)
{
    const struct hf_spread *times = load->times;

    printf("%s (%s), %llu connections, pipeline %llu, %.1f s\n", bench->work,
           bench->dialect, (unsigned long long)bench->options.clients,
           (unsigned long long)bench->options.pipeline,
           (double)(load->ended_ns - load->began_ns) / 1e9);
    printf("  operations  %12llu   %12.0f a second\n",
           (unsigned long long)load->counts.operations,
           per_second(load, load->counts.operations));
    printf("  requests    %12llu   %12.0f a second\n",
           (unsigned long long)load->counts.requests,
           per_second(load, load->counts.requests));
    printf("  errors      %12llu   %s\n",
           (unsigned long long)load->counts.errors, load->first_error);
    printf("  latency, us    p50 %.1f   p99 %.1f   p99.9 %.1f   max %.1f\n",
           micros(hf_spread_percentile(times, 50)),
           micros(hf_spread_percentile(times, 99)),
           micros(hf_spread_percentile(times, 99.9)),
           micros(hf_spread_percentile(times, 100)));
    if (sells(bench))
        printf("  confirmed   %12llu   %llu more had expired\n",
               (unsigned long long)load->sold, (unsigned long long)load->late);
    if (bench->after.products > 0) {
        const char *fault = stock_fault(bench, load);
        printf("  stock       %12llu   products checked%s: %s\n",
               (unsigned long long)bench->after.products,
               bench->after.all ? "" : " (sample)",
               fault != NULL ? fault : "sums agree");
    }
}

static void print_json(const struct bench *bench, const struct load *load)
{
    const struct hf_spread *times = load->times;

    printf("{\"work\": \"%s\", \"dialect\": \"%s\", \"clients\": %llu, "
           "\"pipeline\": %llu, \"keys\": %llu, \"seconds\": %.3f, ",
           bench->work, bench->dialect,
           (unsigned long long)bench->options.clients,
           (unsigned long long)bench->options.pipeline,
           (unsigned long long)bench->options.keys,
           (double)(load->ended_ns - load->began_ns) / 1e9);
    printf("\"operations\": %llu, \"operations_per_second\": %.0f, "
           "\"requests\": %llu, \"requests_per_second\": %.0f, "
           "\"errors\": %llu, \"first_error\": ",
           (unsigned long long)load->counts.operations,
           per_second(load, load->counts.operations),
           (unsigned long long)load->counts.requests,
           per_second(load, load->counts.requests),
           (unsigned long long)load->counts.errors);
    json_print(load->first_error);
    printf(", \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, "
           "\"max_us\": %.1f",
           micros(hf_spread_percentile(times, 50)),
           micros(hf_spread_percentile(times, 99)),
           micros(hf_spread_percentile(times, 99.9)),
           micros(hf_spread_percentile(times, 100)));
    if (bench->options.pace > 0)
        printf(", \"pace\": %llu", (unsigned long long)bench->options.pace);
    if (sells(bench))
        printf(", \"confirmed\": %llu, \"confirmed_late\": %llu",
               (unsigned long long)load->sold, (unsigned long long)load->late);
    if (bench->after.products > 0)
        printf(", \"products_checked\": %llu, \"sums_agree\": %s",
               (unsigned long long)bench->after.products,
               stock_fault(bench, load) == NULL ? "true" : "false");
    printf("}\n");
}

static int fail(const struct bench *bench, const char *what,
                const struct client *client, enum hf_status status)
{
    char reason[CLIENT_REASON_MAX];

    client_explain(client, &bench->address, status, reason);
    fprintf(stderr, "holdfast bench: %s%s\n", what, reason);
    return status == HF_INVALID || status == HF_NOMEM ? CLI_FAILED
                                                      : CLI_UNREACHABLE;
}

static void rest_ms(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000),
                            .tv_nsec = (long)(ms % 1000 * HF_NS_PER_MS)};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* Everything between the options and the table. */
static int measure(struct bench *bench, const struct work *work,
                   struct load *load)
{
    bool stock = strcmp(bench->work, "reserve") == 0 || sells(bench);
    struct client client;

    /* is anybody there at all? */
    enum hf_status status = client_open(&client, &bench->address, 0, NULL);
    client_close(&client);
    if (status != HF_OK)
        return fail(bench, "", &client, status);
    if (stock && bench->prepare)
        status = audit_prepare(&bench->address, bench->options.keys,
                               bench->stock, &bench->record);
    if (stock && status == HF_OK)
        status = audit_read(&bench->address, bench->options.keys,
                            &bench->before, &bench->record);
    if (status != HF_OK)
        return fail(bench, "cannot prepare the stock: ", &client, status);
    status =
        load_open(load, work, &bench->options, &bench->address, &bench->record);
    if (status == HF_OK)
        status = load_run(load);
    if (status == HF_OK && sells(bench) && load->accepted > load->sold)
        rest_ms(bench->options.ttl_ms + 1);
    if (status == HF_OK && stock)
        status = audit_read(&bench->address, bench->options.keys, &bench->after,
                            &bench->record);
    if (status != HF_OK)
        return fail(bench, "the run ended early: ", &client, status);
    return CLI_DONE;
}

static int run(struct bench *bench, const struct work *work)
{
    static struct load load = {.epoll = -1};
    int code;

    if (!record_open(&bench->record, bench->record_path))
        return CLI_FAILED;
    code = measure(bench, work, &load);

    if (code == CLI_DONE) {
        if (bench->json)
            print_json(bench, &load);
        else
            print_table(bench, &load);
        if (load.counts.errors > 0 || stock_fault(bench, &load) != NULL)
            code = CLI_FAILED;
    }
    load_close(&load);
    if (!record_close(&bench->record) && code == CLI_DONE)
        code = CLI_FAILED;
    return code;
}

/* Puts the options that contradict each other right, or refuses. */
static int check(struct bench *bench, const struct args_spec *spec)
{
    bool redis = strcmp(bench->dialect, "redis") == 0;

    if (!redis && strcmp(bench->dialect, "holdfast") != 0)
        return args_wrong(spec, "--dialect is holdfast or redis");
    const struct work *work = work_find(bench->work, redis);
    if (work == NULL)
        return args_wrong(spec, "there is no work '%s' in dialect %s",
                          bench->work, bench->dialect);
    bench->options.redis = redis;
    bench->options.progress = isatty(STDERR_FILENO) == 1;
    if (work->single)
        bench->options.pipeline = 1;
    if (redis && bench->record_path != NULL)
        return args_wrong(spec, "--record is for dialect holdfast");
    if (strcmp(bench->work, "handoff") == 0 && bench->options.clients < 2)
        return args_wrong(spec, "handoff needs at least two --clients");
    if (strcmp(bench->work, "handoff") == 0 && bench->options.pace > 0)
        return args_wrong(spec, "handoff has no --pace");
    return run(bench, work);
}

/* What the command line says, and says by default. */
static struct bench chosen = {
    .work = "ping",
    .dialect = "holdfast",
    .stock = 1000000000,
    .options = {.clients = 50,
                .pipeline = 1,
                .seconds = 5,
                .warmup = 1,
                .keys = 100000,
                .rate = 1000,
                .per_ms = 1000,
                .poll_ms = 10,
                .hold_us = 1000,
                .ttl_ms = 2000,
                .confirm_percent = 50},
};

int bench_main(int argc, char **argv)
{
    struct load_options *options = &chosen.options;
    const struct args_option table[] = {
        ARGS_TEXT(
            "work", "NAME",
            "ping, lock, limit, reserve, sell, checkout or handoff (ping)",
            chosen.work),
        ARGS_TEXT("dialect", "NAME", "holdfast or redis (holdfast)",
                  chosen.dialect),
        ARGS_NUMBER("clients", "N", "connections (50)", options->clients, 1,
                    LOAD_CLIENTS_MAX),
        ARGS_NUMBER("pipeline", "N", "requests in one write (1)",
                    options->pipeline, 1, LOAD_PIPELINE_MAX),
        ARGS_NUMBER("seconds", "N", "how long to measure (5)", options->seconds,
                    1, 86400),
        ARGS_NUMBER("requests", "N", "measure so many operations instead",
                    options->requests, 1, UINT64_MAX),
        ARGS_NUMBER("warmup", "N", "seconds before that (1)", options->warmup,
                    0, 3600),
        ARGS_NUMBER("keys", "N",
                    "keys of limit, products of reserve and sell (100000)",
                    options->keys, 1, 99999999),
        ARGS_NUMBER("rate", "N", "limit: permits in each period (1000)",
                    options->rate, 1, UINT32_MAX),
        ARGS_NUMBER("per", "MS", "limit: the period (1000)", options->per_ms, 1,
                    UINT32_MAX),
        ARGS_NUMBER("poll", "MS", "handoff with redis: mean pause (10)",
                    options->poll_ms, 1, 10000),
        ARGS_NUMBER("hold", "US", "handoff: how long each one keeps it (1000)",
                    options->hold_us, 0, 10000000),
        ARGS_NUMBER("pace", "N",
                    "operations a second (as many as there can be)",
                    options->pace, 1, 1000000000),
        ARGS_NUMBER("ttl", "MS", "sell: how long a reservation lasts (2000)",
                    options->ttl_ms, 1, 600000),
        ARGS_NUMBER("confirm", "PERCENT", "sell: how many are confirmed (50)",
                    options->confirm_percent, 0, 100),
        ARGS_NUMBER("stock", "N", "units of each product (1000000000)",
                    chosen.stock, 1, UINT32_MAX),
        ARGS_FLAG("prepare", "reserve, sell: create the stock first",
                  chosen.prepare),
        ARGS_TEXT("record", "FILE",
                  "write down all calls and answers, for verify --history",
                  chosen.record_path),
        CLIENT_OPTIONS(&chosen.address),
        ARGS_FLAG("json", "print one JSON object", chosen.json),
    };
    const struct args_spec spec = {
        .name = "bench",
        .usage = "[options]",
        .about = about,
        .examples = examples,
        .options = table,
        .option_count = sizeof table / sizeof *table,
    };
    struct args args;

    int code = client_args(&spec, argc, argv, &chosen.address, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count > 0 || args.rest != NULL)
        return args_wrong(&spec, "only options are taken");
    return check(&chosen, &spec);
}
