/* lock.c - command lines to LOCK and LOCKSET. */
#include "cli/commands.h"

#include "cli/held.h"

static const char about[] =
    "Takes the lock NAME, runs the command while holding it, and gives it\n"
    "back when the command ends. The hold is renewed at a third of its time.\n"
    "If it cannot be renewed (server gone, stopped or cut off), the command's\n"
    "process group gets SIGTERM at two thirds and SIGKILL before the time is\n"
    "up; if the server says that the hold is gone, SIGKILL at once. A lock\n"
    "that was revoked or wounded with a grace time is ended in the same way.\n"
    "\n"
    "A lock is exclusive unless --shared or --permits says otherwise. --set\n"
    "takes several locks as one, all or none, in any order; names in it are\n"
    "separated by commas. --tree takes all names below, too: with it, a lock\n"
    "on db/orders conflicts with one on db/orders/42.\n"
    "\n"
    "Without --owner the lock has an owner that no other process has: host,\n"
    "process number and a random part.\n"
    "\n"
    "The command finds in its environment HOLDFAST_LOCK, HOLDFAST_OWNER,\n"
    "HOLDFAST_TOKEN (of the hold) and HOLDFAST_FENCE, the number to pass to\n"
    "whatever you write to: the token, or that of all readers of this turn\n"
    "with --shared; with --permits there is none.\n"
    "\n" HELD_RUNS "\n"
    "If holdfast itself is killed or stopped, a guard process kills the "
    "group.\n"
    "Not covered: processes that leave the process group (setsid, daemons),\n"
    "both holdfast and its guard killed at once (then only the command itself\n"
    "dies, not its children), and a machine that stands still as a whole. The\n"
    "fence token protects against these.\n"
    "\n" HELD_EXITS
    "  75  not acquired: held by another, or the wait timed out\n"
    "  76  the lock was lost and the command was killed\n"
    "  77  waiting would be a deadlock, or the policy does not allow it\n"
    "  78  the work of this name is done (see holdfast once)\n" HELD_EXITS_RUN;

static const char examples[] =
    "  holdfast lock nightly-backup -- ./backup.sh\n"
    "  holdfast lock deploy --wait 60000 --owner \"$USER\" -- make deploy\n"
    "  holdfast lock catalog --shared --wait forever -- ./report.sh\n"
    "  holdfast lock license --permits 1/5 --wait forever -- ./solver\n"
    "  holdfast lock --set account/7,account/9 --wait 5000 -- ./transfer\n"
    "  holdfast lock db/orders --tree --wait 60000 -- ./migrate.sh\n"
    "  holdfast lock report --ttl 5000 -- sh -c 'echo my token is "
    "$HOLDFAST_TOKEN'\n";

struct lock {
    struct held held;
    const char *permits; /* N/MAX */
    uint64_t count;
    uint64_t max;
    const char *set;
    const char *set_shared;
    bool shared, tree, barge;
    uint64_t max_hold_ms, delay_ms, priority, session;
    const char *deadlock, *note;
    char names[2 * RESP_BULK_MAX]; /* of a set, for people */
};

/* How many names a list has; 0: one of them is empty, or there is no list. */
static size_t count_names(const char *list)
{
    size_t count = 0;

    while (list != NULL) {
        size_t len = strcspn(list, ",");
        if (len == 0)
            return 0;
        count++;
        list = list[len] == ',' ? list + len + 1 : NULL;
    }
    return count;
}

static void put_names(struct words *request, const char *list, bool shared)
{
    while (list != NULL) {
        size_t len = strcspn(list, ",");
        words_text(request, "NAME");
        words_bytes(request, hf_bytes(list, len));
        if (shared)
            words_text(request, "SHARED");
        list = list[len] == ',' ? list + len + 1 : NULL;
    }
}

static bool parse_permits(struct lock *lock)
{
    const char *slash = strchr(lock->permits, '/');

    return slash != NULL &&
           hf_parse_u64(
               hf_bytes(lock->permits, (size_t)(slash - lock->permits)),
               &lock->count) == HF_OK &&
           hf_parse_u64(hf_bytes_text(slash + 1), &lock->max) == HF_OK &&
           lock->count > 0 && lock->count <= lock->max &&
           lock->max <= HOLD_PERMITS_MAX;
}

static int check_set(struct lock *lock, const struct args_spec *spec,
                     const struct args *args)
{
    size_t count = count_names(lock->set) + count_names(lock->set_shared);

    if (args->count != 0)
        return args_wrong(spec, "--set takes the place of NAME, '%s'",
                          args->words[0]);
    if (lock->shared || lock->permits != NULL)
        return args_wrong(spec, "--set cannot be combined with --shared or "
                                "--permits");
    if ((lock->set != NULL && count_names(lock->set) == 0) ||
        (lock->set_shared != NULL && count_names(lock->set_shared) == 0))
        return args_wrong(spec, "a set needs names with commas between them, "
                                "none of them empty");
    if (count > HOLD_SET_MAX)
        return args_wrong(spec, "a set has at most %u names", HOLD_SET_MAX);
    snprintf(lock->names, sizeof lock->names, "%s%s%s",
             lock->set != NULL ? lock->set : "",
             lock->set != NULL && lock->set_shared != NULL ? "," : "",
             lock->set_shared != NULL ? lock->set_shared : "");
    lock->held.lease.kind = LEASE_SET;
    lock->held.lease.name = lock->names;
    return ARGS_GO;
}

static int check(struct lock *lock, const struct args_spec *spec,
                 const struct args *args)
{
    if (lock->set != NULL || lock->set_shared != NULL)
        return check_set(lock, spec, args);
    if (args->count != 1)
        return args_wrong(spec, "one lock name is needed, or --set");
    if (lock->shared && lock->permits != NULL)
        return args_wrong(spec, "--shared and --permits cannot be combined");
    if (lock->tree && lock->permits != NULL)
        return args_wrong(spec, "--tree and --permits cannot be combined");
    if (lock->permits != NULL && !parse_permits(lock))
        return args_wrong(spec,
                          "--permits takes N/MAX, N from 1 to MAX, not '%s'",
                          lock->permits);
    lock->held.lease.counting = lock->permits != NULL;
    lock->held.lease.name = args->words[0];
    return ARGS_GO;
}

static void put_request(const struct lock *lock, struct words *request)
{
    if (lock->held.lease.kind == LEASE_SET) {
        words_text(request, "LOCKSET");
        put_names(request, lock->set, false);
        put_names(request, lock->set_shared, true);
    } else {
        words_text(request, "LOCK");
        words_text(request, lock->held.lease.name);
    }
    if (lock->shared)
        words_text(request, "SHARED");
    if (lock->tree)
        words_text(request, "TREE");
    words_amount(request, "PERMITS", lock->count);
    words_amount(request, "OF", lock->max);
    if (lock->barge)
        words_text(request, "BARGE");
    words_amount(request, "MAXHOLD", lock->max_hold_ms);
    words_amount(request, "DELAY", lock->delay_ms);
    words_amount(request, "PRIORITY", lock->priority);
    words_amount(request, "SESSION", lock->session);
    words_option(request, "DEADLOCK", lock->deadlock);
    words_option(request, "NOTE", lock->note);
    held_words(&lock->held, request);
}

int lock_main(int argc, char **argv)
{
    static struct lock lock = {
        .held.lease = {.ttl_ms = 30000, .client = {.fd = -1}}};
    static struct words request;
    const struct args_option options[] = {
        ARGS_TEXT("owner", "TEXT",
                  "who holds it; the same owner may enter again "
                  "(host:pid:random)",
                  lock.held.lease.owner),
        HELD_TTL(&lock.held, "time after which an unrenewed hold ends (30000)"),
        HELD_WAIT(&lock.held, "0: not at all"),
        ARGS_FLAG("shared", "together with others that are shared",
                  lock.shared),
        ARGS_FLAG("tree", "and all names below it, as a/b is below a",
                  lock.tree),
        ARGS_TEXT("permits", "N/MAX",
                  "take N of MAX permits; the first holder fixes MAX",
                  lock.permits),
        ARGS_TEXT("set", "NAMES", "all of these, or none", lock.set),
        ARGS_TEXT("set-shared", "NAMES", "more names of the set, held shared",
                  lock.set_shared),
        ARGS_NUMBER("priority", "N", "0 to 3, 0 goes first (0)", lock.priority,
                    0, 3),
        ARGS_FLAG("barge", "do not queue behind those who wait", lock.barge),
        ARGS_TEXT("deadlock", "POLICY",
                  "detect, waitdie, woundwait or none (detect)", lock.deadlock),
        ARGS_NUMBER("session", "ID", "ends with that session at the latest",
                    lock.session, 1, INT64_MAX),
        ARGS_NUMBER("max-hold", "MS", "renewals do not make it longer",
                    lock.max_hold_ms, 1, HOLD_TTL_MAX_MS),
        ARGS_NUMBER("delay", "MS", "keep it closed so long if it is lost",
                    lock.delay_ms, 1, HOLD_TTL_MAX_MS),
        ARGS_TEXT("note", "TEXT", "shown to those who look at the lock",
                  lock.note),
        CLIENT_OPTIONS(&lock.held.address),
    };
    const struct args_spec spec = {
        .name = "lock",
        .usage = "NAME|--set NAMES [options] -- COMMAND [ARGUMENTS]",
        .about = about,
        .examples = examples,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    struct args args;

    int code = held_parse(&lock.held, &spec, argc, argv, &args);
    if (code == ARGS_GO)
        code = check(&lock, &spec, &args);
    if (code != ARGS_GO)
        return code;
    put_request(&lock, &request);
    return held_run(&lock.held, &request, args.rest);
}
