/* work_sell.c - reservations of which some are confirmed and the others expire.
 *
 * Phase 0 reserves, with a short TTL; phase 1 confirms those that chance picks.
 * One operation is a reservation and, if it is picked, its confirmation. The
 * ids are ours, so that nothing has to be taken from a reply:
 *
 *   RESERVE TAG-NUMBER ITEM bench:KEY 1 TTL ms     CONFIRM TAG-NUMBER
 */
#include "cli/work_parts.h"

#define ID_DIGITS 16
#define ID_ZEROS  "0000000000000000"
#define ID_SHIFT  1u /* in `tokens`: the number, and whether it was picked */
#define PICKED    1u

enum hf_status work_sell_prepare(struct load *load)
{
    char line[160];

    snprintf(line, sizeof line,
             "RESERVE %u-" ID_ZEROS " ITEM bench:" KEY_ZEROS " 1 TTL %llu",
             load->tag, (unsigned long long)load->options->ttl_ms);
    if (work_add_request(&load->pattern, line) != HF_OK)
        return HF_NOMEM;
    load->pattern_id = work_find_digits(load, ID_ZEROS);
    load->pattern_key = work_find_digits(load, "bench:") + sizeof "bench:" - 1;
    return HF_OK;
}

static enum hf_status confirm(struct load *load, struct load_conn *conn)
{
    char line[100];

    conn->phase = 1;
    conn->mark = 0;
    for (uint64_t i = 0; i < load->options->pipeline; i++) {
        if ((conn->tokens[i] & PICKED) == 0)
            continue;
        snprintf(line, sizeof line, "CONFIRM %u-%016llu", load->tag,
                 (unsigned long long)(conn->tokens[i] >> ID_SHIFT));
        if (work_add_request(&conn->out, line) != HF_OK)
            return HF_NOMEM;
        conn->pending++;
    }
    return HF_OK;
}

/* `mark` counts what phase 0 got that is to be confirmed. */
enum hf_status work_sell_batch(struct load *load, struct load_conn *conn)
{
    const struct hf_buf *pattern = &load->pattern;

    if (conn->phase == 0 && conn->mark > 0)
        return confirm(load, conn);
    conn->phase = 0;
    if (!work_begin(load, conn))
        return HF_OK;
    if (hf_buf_reserve(&conn->out, pattern->len * conn->pending) != HF_OK)
        return HF_NOMEM;
    for (uint32_t i = 0; i < conn->pending; i++) {
        char *at = conn->out.data + conn->out.len;
        memcpy(at, pattern->data, pattern->len);
        conn->tokens[i] = ++load->last_id << ID_SHIFT;
        work_put_digits(at + load->pattern_id, ID_DIGITS, load->last_id);
        work_put_digits(at + load->pattern_key, KEY_DIGITS,
                        hf_random_below(&load->random, load->options->keys));
        conn->out.len += pattern->len;
    }
    return HF_OK;
}

void work_sell_reply(struct load *load, struct load_conn *conn,
                     struct hf_bytes reply)
{
    bool refused = reply.data[0] == '-';

    if (conn->phase == 1) {
        load->sold += !refused;
        load->late += refused;
    } else if (!refused && hf_random_below(&load->random, 100) <
                               load->options->confirm_percent) {
        conn->tokens[conn->slot] |= PICKED;
        conn->mark++;
        return;
    }
    load_done(load, load->now_ns - conn->started_ns);
}
