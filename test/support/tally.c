/* tally.c - a machine that counts and hashes its records. */
#include "support/tally.h"

#include "base/memory.h"

#define FNV_PRIME 1099511628211u

/* A record that begins so cannot be applied. */
#define REFUSED '!'

static void *create(void *context)
{
    (void)context;
    return hf_alloc_zeroed(sizeof(struct tally));
}

void tally_apply(struct tally *tally, struct hf_bytes record)
{
    uint64_t hash = tally->hash + record.len;

    for (size_t i = 0; i < record.len; i++)
        hash = (hash ^ (uint8_t)record.data[i]) * FNV_PRIME;
    tally->hash = hash;
    tally->count++;
}

static enum hf_status apply(void *machine, struct hf_bytes record)
{
    if (record.data[0] == REFUSED)
        return HF_CORRUPT;
    tally_apply(machine, record);
    return HF_OK;
}

static enum hf_status save(void *machine, journal_sink *sink, void *context)
{
    struct tally *tally = machine;
    enum hf_status status = sink(context, &tally->count, sizeof tally->count);

    if (status == HF_OK)
        status = sink(context, &tally->hash, sizeof tally->hash);
    return status;
}

static enum hf_status load(void *machine, struct hf_bytes data)
{
    struct tally *tally = machine;

    if (data.len != sizeof(uint64_t) || tally->pieces > 1)
        return HF_CORRUPT;
    memcpy(tally->pieces == 0 ? &tally->count : &tally->hash, data.data,
           data.len);
    tally->pieces++;
    return HF_OK;
}

const struct journal_machine *tally_machine(void)
{
    static const struct journal_machine machine = {
        .create = create,
        .destroy = hf_free,
        .apply = apply,
        .save = save,
        .load = load,
    };
    return &machine;
}
