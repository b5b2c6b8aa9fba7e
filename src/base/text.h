/* text.h - short byte strings packed by size, eight bytes to name one.
 *
 * malloc would spend 16 bytes or more on each name, and a call on the request
 * path. Here strings of similar length share a slab:
 *
 *   size   16  32  48 ... 512  1 Ki  2 Ki ... 64 Ki
 *   slab   [ ] [ ] [ ]    [ ]  [ ]            [ ]
 *
 * Threads: one thread at a time. Memory: the store owns the bytes; what
 * hf_text_bytes() returns lives until the text is dropped.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <assert.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slab.h"

#define HF_TEXT_MAX     (64u * 1024 - 1)
#define HF_TEXT_CLASSES 39
#define HF_TEXT_STEP    16u /* between the fine classes, which come first */
#define HF_TEXT_FINE    32u

struct hf_text {
    uint32_t slot;
    uint16_t len; /* 0: the empty text, which takes no slot */
    uint16_t size_class;
};

struct hf_texts {
    struct hf_slab slabs[HF_TEXT_CLASSES];
};

/* The class of texts of this length, and the longest that it takes. */
uint32_t hf_texts_coarse_class(size_t len);
static inline uint32_t hf_texts_class(size_t len)
{
    assert(len > 0);
    if (len <= HF_TEXT_STEP * HF_TEXT_FINE)
        return (uint32_t)((len - 1) / HF_TEXT_STEP);
    return hf_texts_coarse_class(len);
}
size_t hf_texts_class_max(uint32_t size_class);
/* Where they are kept. */
static inline struct hf_slab *hf_texts_slab(struct hf_texts *texts, size_t len)
{
    return &texts->slabs[hf_texts_class(len)];
}

void hf_texts_init(struct hf_texts *texts, size_t *account);
void hf_texts_destroy(struct hf_texts *texts);
/* Drops every text and keeps the memory. */
void hf_texts_clear(struct hf_texts *texts);

/* Makes sure that one put of up to `len` bytes with bound `len` succeeds. */
enum hf_status hf_texts_promise(struct hf_texts *texts, size_t len);
void hf_texts_unpromise(struct hf_texts *texts, size_t len);

/* Copies `bytes`. `bound` is the length that was promised, at least
 * bytes.len: the slot comes from the size that fits, or from the promised size
 * when there is no memory for the other. Never fails if promised. */
enum hf_status hf_texts_put(struct hf_texts *texts, struct hf_bytes bytes,
                            size_t bound, struct hf_text *out);
static inline void hf_texts_drop(struct hf_texts *texts, struct hf_text text)
{
    if (text.len > 0)
        hf_slab_give(&texts->slabs[text.size_class], text.slot);
}

static inline struct hf_bytes hf_text_bytes(const struct hf_texts *texts,
                                            struct hf_text text)
{
    if (text.len == 0)
        return hf_bytes("", 0);
    return hf_bytes(hf_slab_at(&texts->slabs[text.size_class], text.slot),
                    text.len);
}

#endif
