/* store_state.h - what the ready made stores share. */
#ifndef KEEP_STORE_STATE_H
#define KEEP_STORE_STATE_H

#include "base/atomic.h"
#include "holdfast/store.h"

/* Of what a store has to say about an error. */
#define STORE_TEXT_BYTES 512

struct store_figures {
    struct hf_atomic_u64 reads, found, applies, changes, failures,
        reconnects; /* (a) relaxed: figures */
};

static inline void store_figure_add(struct hf_atomic_u64 *figure, uint64_t more)
{
    (void)hf_u64_add(figure, more, __ATOMIC_RELAXED);
}

void store_figures_read(const struct store_figures *figures,
                        struct hf_store_stats *out);

/* Are they as holdfast/store.h asks? */
bool store_key_fits(const void *key, size_t key_len);
bool store_changes_fit(const struct hf_store_change *changes, size_t count);

/* Copies the name of a table, NULL being the default; false: it is no name that
 * can stand between quotes. */
bool store_table_set(char table[HF_STORE_TABLE_BYTES], const char *name);

#endif
