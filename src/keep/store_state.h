/* store_state.h - what is checked of what a store is given. */
#ifndef KEEP_STORE_STATE_H
#define KEEP_STORE_STATE_H

#include "holdfast/store.h"

/* Are they as holdfast/store.h asks? */
bool hf_store_key_fits(const void *key, size_t key_len);
bool hf_store_changes_fit(const struct hf_store_change *changes, size_t count);

#endif
