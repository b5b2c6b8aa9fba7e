/* lock.c - takes the lock, runs the command, gives the lock back. */
#include "cli/commands.h"

#include "cli/args.h"
#include "cli/owner.h"
#include "cli/run.h"

#define WAIT_MAX_MS (24u * 3600 * 1000)

static const char about[] =
    "Takes the lock NAME, runs the command while holding it, and gives it\n"
    "back when the command ends. The hold is renewed at a third of its time.\n"
    "If it cannot be renewed (server gone, stopped or cut off), the command's\n"
    "process group gets SIGTERM at two thirds and SIGKILL before the time is\n"
    "up; if the server says that the hold is gone, SIGKILL at once.\n"
    "\n"
    "Without --owner the lock has an owner that no other process has: host,\n"
    "process number and a random part.\n"
    "\n"
    "The command finds HOLDFAST_TOKEN (fence token, pass it to whatever you\n"
    "write to), HOLDFAST_LOCK and HOLDFAST_OWNER in its environment. SIGINT,\n"
    "SIGTERM, SIGHUP and SIGQUIT are passed on to it. Whatever it leaves\n"
    "running in its process group is killed before the lock is given back.\n"
    "\n"
    "If holdfast itself is killed or stopped, a guard process kills the "
    "group.\n"
    "Not covered: processes that leave the process group (setsid, daemons),\n"
    "both holdfast and its guard killed at once (then only the command itself\n"
    "dies, not its children), and a machine that stands still as a whole. The\n"
    "fence token protects against these.\n"
    "\n"
    "exit code:\n"
    "  of the command, or 128 + the signal that ended it; otherwise\n"
    "  64  the command line is wrong\n"
    "  65  the server refused the request\n"
    "  69  the server cannot be reached\n"
    "  75  not acquired: held by another, or the wait timed out\n"
    "  76  the lock was lost and the command was killed\n"
    "  126 the command could not be run\n"
    "  127 the command was not found\n";

static const char examples[] =
    "  holdfast lock nightly-backup -- ./backup.sh\n"
    "  holdfast lock deploy --wait 60000 --owner \"$USER\" -- make deploy\n"
    "  holdfast lock report --ttl 5000 -- sh -c 'echo my token is "
    "$HOLDFAST_TOKEN'\n";

static int acquire(struct lease *lease, const struct client_address *address,
                   uint64_t wait_ms)
{
    char reason[CLIENT_REASON_MAX];
    struct hf_bytes error;

    enum hf_status status =
        client_open(&lease->client, address, 0, &lease->target);
    if (status == HF_OK)
        status = lease_take(lease, wait_ms, &error);
    if (status == HF_OK)
        return CLI_DONE;
    if (status == HF_EXISTS || status == HF_INVALID) {
        fprintf(stderr, "holdfast lock: %.*s\n", HF_SHOW(error));
        return status == HF_EXISTS ? CLI_BUSY : CLI_REFUSED;
    }
    client_explain(&lease->client, address, status, reason);
    fprintf(stderr, "holdfast lock: %s\n", reason);
    return CLI_UNREACHABLE;
}

static int lock_and_run(struct lease *lease,
                        const struct client_address *address, uint64_t wait_ms,
                        char **command)
{
    int code = acquire(lease, address, wait_ms);

    if (code == CLI_DONE) {
        code = run_command(lease, command);
        if (code != CLI_LOST && lease_release(lease) != HF_OK)
            fprintf(stderr,
                    "holdfast lock: '%s' could not be given back; it ends by "
                    "itself\n",
                    lease->name);
    }
    client_close(&lease->client);
    return code;
}

int lock_main(int argc, char **argv)
{
    struct client_address address;
    struct lease lease = {.ttl_ms = 30000, .client = {.fd = -1}};
    char owner[OWNER_BYTES];
    uint64_t wait_ms = 0;
    const struct args_option options[] = {
        ARGS_TEXT("owner", "TEXT",
                  "who holds it; the same owner may enter again "
                  "(host:pid:random)",
                  lease.owner),
        ARGS_NUMBER("ttl", "MS",
                    "time after which an unrenewed hold ends (30000)",
                    lease.ttl_ms, LEASE_TTL_MIN_MS, LEASE_TTL_MAX_MS),
        ARGS_NUMBER("wait", "MS", "how long to queue for it (0: not at all)",
                    wait_ms, 0, WAIT_MAX_MS),
        CLIENT_OPTIONS(&address),
    };
    const struct args_spec spec = {
        .name = "lock",
        .usage = "NAME [options] -- COMMAND [ARGUMENTS]",
        .about = about,
        .examples = examples,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    struct args args;

    int code = client_args(&spec, argc, argv, &address, &args);
    if (code != ARGS_GO)
        return code;
    if (args.count != 1)
        return args_wrong(&spec, "one lock name is needed");
    if (args.rest == NULL || args.rest[0] == NULL)
        return args_wrong(&spec, "a command is needed behind --");
    lease.name = args.words[0];
    if (lease.owner == NULL && owner_make(owner) != HF_OK) {
        fprintf(stderr, "holdfast lock: the system gives no randomness for "
                        "an owner; name one with --owner\n");
        return CLI_FAILED;
    }
    if (lease.owner == NULL)
        lease.owner = owner;
    return lock_and_run(&lease, &address, wait_ms, args.rest);
}
