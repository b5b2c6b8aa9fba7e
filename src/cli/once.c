/* once.c - LOCK, the command, UNLOCK ... DONE with what it printed last. */
#include "cli/commands.h"

#include <errno.h>
#include <signal.h>

#include "cli/held.h"

#define A_DAY_MS   (24u * 3600 * 1000)
#define RETRY_MS   100
#define ATTEMPT_MS 1000

static const char about[] =
    "Runs the command if nobody has run it yet, under the lock NAME. If it\n"
    "succeeds, the work of NAME counts as done for the time of --for, and its\n"
    "result is kept: the last lines of its output, 256 bytes at most. Whoever\n"
    "comes meanwhile waits; whoever comes then, or has waited, runs nothing,\n"
    "prints the result and exits with 0. If the command fails (exits with\n"
    "another code than 0, is killed, or loses the lock), nothing is kept, and\n"
    "the next one may try.\n"
    "\n"
    "The command finds HOLDFAST_LOCK, HOLDFAST_OWNER, HOLDFAST_TOKEN and\n"
    "HOLDFAST_FENCE in its environment, see holdfast lock. It may run again "
    "if\n"
    "it has succeeded and that could not be recorded before the hold was "
    "over:\n"
    "then its exit code is 76. It is tried until then, or until a signal "
    "comes.\n"
    "So what it does should bear being done twice, or pass the fence token "
    "on.\n"
    "\n" HELD_RUNS "\n" HELD_EXITS
    "  1   the work is done, but its output or result cannot be written\n"
    "  75  another runs it, and the wait timed out\n"
    "  76  the lock was lost: the command was killed, or its success is not\n"
    "      recorded\n" HELD_EXITS_RUN;

static const char examples[] =
    "  holdfast once schema-42 -- ./migrate 42\n"
    "  holdfast once \"report/$(date +%F)\" --wait 0 -- ./report.sh\n"
    "  holdfast once payment/7 --for 3600000 -- ./pay 7\n";

struct once {
    struct held held;
    struct tail tail;
    const char *note;
    uint64_t for_ms;
};

/* The result that the server keeps; HF_NOTFOUND: not any more. */
static enum hf_status print_result(struct once *once)
{
    struct lease *lease = &once->held.lease;
    struct words request = {0};
    struct resp_value mode;
    struct resp_value note;
    struct hf_bytes reply;

    words_option(&request, "LOCKINFO", lease->name);
    enum hf_status status =
        lease_call(lease, &request,
                   client_now_ns() + CLIENT_REPLY_MS * HF_NS_PER_MS, &reply);
    if (status != HF_OK)
        return status;
    if (resp_field(reply, "mode", &mode) != HF_OK ||
        !hf_bytes_is(mode.text, "done") ||
        resp_field(reply, "note", &note) != HF_OK)
        return HF_NOTFOUND;
    if (note.text.len > 0) { /* any bytes */
        fwrite(note.text.data, 1, note.text.len, stdout);
        putchar('\n');
    }
    return HF_OK;
}

/* Was this process told to end? While the command runs that is passed on, and
 * the signals stay blocked afterwards. */
static bool is_told_to_end(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) == 1 ||
                                         sigismember(&pending, SIGTERM) == 1 ||
                                         sigismember(&pending, SIGHUP) == 1 ||
                                         sigismember(&pending, SIGQUIT) == 1);
}

/* Records the success. It is tried again until the hold is over, or somebody
 * loses patience; the REQ makes that one attempt. */
static bool record(struct once *once)
{
    struct lease *lease = &once->held.lease;
    struct words request = {0};
    struct hf_bytes reply;
    struct hf_bytes error;
    struct hf_bytes result = tail_lines(&once->tail);
    char id[32];

    snprintf(id, sizeof id, "once-%llu", (unsigned long long)lease->token);
    lease_give_words(lease, &request);
    words_amount(&request, "DONE", once->for_ms);
    if (result.len > 0) {
        words_text(&request, "RESULT");
        words_bytes(&request, result);
    }
    words_option(&request, "REQ", id);
    for (;;) {
        uint64_t now_ns = client_now_ns();
        if (lease_call(lease, &request, now_ns + ATTEMPT_MS * HF_NS_PER_MS,
                       &reply) == HF_OK) {
            if (!lease_is_error(reply, &error))
                return true;
            if (!lease_starts(error, "OVERLOADED") &&
                !lease_starts(error, "JOURNAL"))
                return false;
        }
        if (client_now_ns() >= lease->safe_ns || is_told_to_end())
            return false;
        poll(NULL, 0, RETRY_MS);
    }
}

static int run(struct once *once, char **command)
{
    int code = run_command(&once->held.lease, command, &once->tail);

    if (code == CLI_DONE && !record(once)) {
        fprintf(stderr,
                "holdfast once: the command of '%s' has succeeded, but that "
                "could not be recorded; it may run again\n",
                once->held.lease.name);
        code = CLI_LOST;
    } else if (code != CLI_DONE && code != CLI_LOST) {
        held_give(&once->held);
    }
    tail_flush(&once->tail);
    /* whoever does not want to read it need not be told */
    if (code == CLI_DONE && once->tail.error != 0 &&
        once->tail.error != EPIPE) {
        fprintf(stderr,
                "holdfast once: the output of '%s' cannot be written: %s\n",
                once->held.lease.name, strerror(once->tail.error));
        code = CLI_FAILED;
    }
    return code;
}

static int run_once(struct once *once, char **command)
{
    struct words request = {0};

    words_option(&request, "LOCK", once->held.lease.name);
    words_option(&request, "NOTE", once->note);
    held_words(&once->held, &request);
    for (;;) {
        struct hf_bytes error = {0};
        enum hf_status status = held_take(&once->held, &request, &error);
        if (status == HF_OK)
            return run(once, command);
        if (status != HF_FAILED || !lease_starts(error, "DONE "))
            return held_explain(&once->held, status, error);
        status = print_result(once);
        if (status == HF_OK)
            return fflush(stdout) == 0 ? CLI_DONE : CLI_FAILED;
        if (status != HF_NOTFOUND)
            return held_explain(&once->held, status, error);
        client_close(&once->held.lease.client); /* it is to be done again */
    }
}

int once_main(int argc, char **argv)
{
    static struct once once = {
        .held = {.lease = {.ttl_ms = 30000, .client = {.fd = -1}},
                 .wait_ms = LEASE_FOREVER},
        .tail = {.fd = -1},
        .for_ms = A_DAY_MS};
    const struct args_option options[] = {
        ARGS_NUMBER("for", "MS", "how long it counts as done (a day)",
                    once.for_ms, 1, HOLD_TTL_MAX_MS),
        HELD_TTL(&once.held, "time after which an unrenewed hold ends (30000)"),
        HELD_WAIT(&once.held, "forever"),
        ARGS_TEXT("note", "TEXT", "shown to those who look at the lock",
                  once.note),
        CLIENT_OPTIONS(&once.held.address),
    };
    const struct args_spec spec = {
        .name = "once",
        .usage = "NAME [options] -- COMMAND [ARGUMENTS]",
        .about = about,
        .examples = examples,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    struct args args;

    int code = held_parse(&once.held, &spec, argc, argv, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count != 1)
        return args_wrong(&spec, "one name is needed");
    once.held.lease.name = args.words[0];
    code = run_once(&once, args.rest);
    client_close(&once.held.lease.client);
    return code;
}
