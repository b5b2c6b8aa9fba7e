/* machine.c - the journal's calls, one to one on the engine's. */
#include "server/machine.h"

#include "hold/image.h"

/* Things that happened to locks, for EXPLAIN: 2 MB. */
#define PAST_KEPT 16384u

/* One server a process. */
static struct {
    struct hf_hash_seed seed;
    struct feed *feed; /* NULL: events are not kept */
    bool opening;      /* the log is being opened: */
    void *replayed;    /* into this engine, */
    bool begun;        /* which has applied something */
} state;

static void *create(void *context)
{
    struct hold_engine *engine = hold_new(state.seed);

    (void)context;
    if (engine == NULL)
        return NULL;
    if (hold_keep_past(engine, PAST_KEPT) != HF_OK ||
        (state.opening && state.feed != NULL && hold_tell(engine) != HF_OK)) {
        hold_free(engine);
        return NULL;
    }
    if (state.opening)
        state.replayed = engine;
    return engine;
}

static void destroy(void *machine)
{
    hold_free(machine);
}

/* What a replay brings about again is told to the feed. */
static enum hf_status apply(void *machine, struct hf_bytes record)
{
    if (machine != state.replayed || state.feed == NULL)
        return hold_replay(machine, record, NULL, NULL);
    if (!state.begun)
        feed_begin(state.feed, hold_seq(machine));
    state.begun = true;
    feed_catch_up(state.feed);
    return hold_replay(machine, record, feed_take, state.feed);
}

/* What is before a snapshot is not replayed any more: its events have to be on
 * disk first. */
static enum hf_status save(void *machine, journal_sink *sink, void *context)
{
    enum hf_status status = HF_OK;

    if (state.feed != NULL)
        status = feed_settle(state.feed, hold_seq(machine));
    return status == HF_OK ? hold_save(machine, sink, context) : status;
}

static enum hf_status load(void *machine, struct hf_bytes data)
{
    return hold_load(machine, data);
}

const struct journal_machine *server_machine(struct hf_hash_seed seed,
                                             struct feed *feed)
{
    static const struct journal_machine machine = {
        .create = create,
        .destroy = destroy,
        .apply = apply,
        .save = save,
        .load = load,
    };

    state.seed = seed;
    state.feed = feed;
    state.opening = true;
    state.replayed = NULL;
    state.begun = false;
    return &machine;
}

void server_machine_opened(void)
{
    state.opening = false;
    state.replayed = NULL;
}
