/* machine.c - the journal's calls, one to one on the engine's. */
#include "server/machine.h"

#include "hold/image.h"

/* Things that happened to locks, for EXPLAIN: 2 MB. */
#define PAST_KEPT 16384u

static void *create(void *context)
{
    const struct hf_hash_seed *seed = context;
    struct hold_engine *engine = hold_new(*seed);

    if (engine != NULL && hold_keep_past(engine, PAST_KEPT) != HF_OK) {
        hold_free(engine);
        engine = NULL;
    }
    return engine;
}

static void destroy(void *machine)
{
    hold_free(machine);
}

static enum hf_status apply(void *machine, struct hf_bytes record)
{
    return hold_replay(machine, record);
}

static enum hf_status save(void *machine, journal_sink *sink, void *context)
{
    return hold_save(machine, sink, context);
}

static enum hf_status load(void *machine, struct hf_bytes data)
{
    return hold_load(machine, data);
}

const struct journal_machine *server_machine(const struct hf_hash_seed *seed)
{
    static struct journal_machine machine = {
        .create = create,
        .destroy = destroy,
        .apply = apply,
        .save = save,
        .load = load,
    };

    machine.context = (void *)seed; /* only read */
    return &machine;
}
