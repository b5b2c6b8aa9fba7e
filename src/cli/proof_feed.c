/* proof_feed.c - the files of events beside what the records bring about. */
#include "cli/proof_parts.h"

static enum hf_status at_file(struct proof *proof, uint64_t seq,
                              const char *what)
{
    return proof_wrong(proof, "%s at offset %llu: event %llu %s",
                       proof->scanned.file,
                       (unsigned long long)proof->scanned.offset,
                       (unsigned long long)seq, what);
}

static enum hf_status advance(struct proof *proof)
{
    enum hf_status status = feed_scan_next(proof->feed, &proof->scanned);

    if (status == HF_EMPTY)
        return HF_OK; /* told by an empty event */
    if (status == HF_CORRUPT)
        return proof_wrong(proof, "%s is damaged at offset %llu",
                           proof->scanned.file,
                           (unsigned long long)proof->scanned.offset);
    return status;
}

void proof_compare(struct proof *proof, struct feed_scan *scan)
{
    proof->feed = scan;
    proof->result->feed_files = feed_scan_files(scan);
}

/* An event from before the records. */
static void tell_older(struct proof *proof)
{
    struct hold_event event;
    uint64_t now_us;

    if (event_decode(proof->scanned.event, &event, &now_us) > 0)
        proof_tell(proof, &event, now_us, NULL);
}

/* Up to that number the files have nothing that the records have not. */
static enum hf_status pass(struct proof *proof, uint64_t seq)
{
    enum hf_status status = HF_OK;

    while (status == HF_OK && proof->scanned.event.len > 0 &&
           proof->scanned.seq < seq) {
        if (proof->scanned.seq > proof->result->first_seq)
            return at_file(proof, proof->scanned.seq,
                           "is not what the journal tells");
        proof->result->feed_before++;
        tell_older(proof);
        status = advance(proof);
    }
    return status;
}

static enum hf_status compare(struct proof *proof, const struct hold_event *e,
                              uint64_t now_us)
{
    const struct feed_scanned *next = &proof->scanned;
    enum hf_status status = pass(proof, e->seq);

    if (status != HF_OK)
        return status;
    if (next->event.len == 0 || next->seq > e->seq) {
        if (e->seq <= next->missing_from || e->seq > next->missing_to)
            return at_file(proof, e->seq, "is missing");
        proof->result->feed_missing++;
        return HF_OK;
    }
    size_t len = event_encode(e, now_us, proof->encoded);
    if (!hf_bytes_equal(hf_bytes(proof->encoded, len), next->event))
        return at_file(proof, e->seq, "is not what the journal tells");
    proof->result->feed_same++;
    return advance(proof);
}

enum hf_status proof_feed_out(struct proof *proof, const struct hold_out *out)
{
    enum hf_status status = HF_OK;

    if (proof->feed == NULL)
        return HF_OK;
    if (proof->scanned.file == NULL)
        status = advance(proof); /* the first */
    for (size_t i = 0; i < out->event_count && status == HF_OK; i++)
        status = compare(proof, &out->events[i], out->now_us);
    return status;
}

enum hf_status proof_feed_end(struct proof *proof, bool unclean)
{
    enum hf_status status = HF_OK;

    if (proof->feed == NULL)
        return HF_OK;
    if (proof->scanned.file == NULL)
        status = advance(proof);
    if (status == HF_OK)
        status = pass(proof, hold_seq(proof->engine) + 1);
    while (status == HF_OK && proof->scanned.event.len > 0) {
        if (!unclean)
            return at_file(proof, proof->scanned.seq,
                           "is beyond the journal's end");
        proof->result->feed_beyond++;
        status = advance(proof);
    }
    if (status == HF_OK && proof->scanned.torn && !unclean)
        return proof_wrong(proof, "%s is damaged at offset %llu",
                           proof->scanned.file,
                           (unsigned long long)proof->scanned.offset);
    return status;
}
