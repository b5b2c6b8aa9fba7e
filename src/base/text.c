/* text.c - size classes: steps of 16 up to 512, then powers of two. */
#include "base/text.h"

#include <assert.h>
#include <string.h>

uint32_t hf_texts_coarse_class(size_t len)
{
    uint32_t size_class = HF_TEXT_FINE;

    assert(len <= HF_TEXT_MAX);
    while ((size_t)HF_TEXT_STEP * HF_TEXT_FINE
               << (size_class - HF_TEXT_FINE + 1) <
           len)
        size_class++;
    return size_class;
}

static size_t class_bytes(uint32_t size_class)
{
    if (size_class < HF_TEXT_FINE)
        return HF_TEXT_STEP * (size_class + 1);
    return (size_t)HF_TEXT_STEP * HF_TEXT_FINE
           << (size_class - HF_TEXT_FINE + 1);
}

size_t hf_texts_class_max(uint32_t size_class)
{
    size_t bytes = class_bytes(size_class);

    return bytes < HF_TEXT_MAX ? bytes : HF_TEXT_MAX;
}

void hf_texts_init(struct hf_texts *texts, size_t *account)
{
    for (uint32_t i = 0; i < HF_TEXT_CLASSES; i++)
        hf_slab_init(&texts->slabs[i], class_bytes(i), account);
}

void hf_texts_destroy(struct hf_texts *texts)
{
    for (uint32_t i = 0; i < HF_TEXT_CLASSES; i++)
        hf_slab_destroy(&texts->slabs[i]);
}

void hf_texts_clear(struct hf_texts *texts)
{
    for (uint32_t i = 0; i < HF_TEXT_CLASSES; i++)
        hf_slab_clear(&texts->slabs[i]);
}

enum hf_status hf_texts_promise(struct hf_texts *texts, size_t len)
{
    return len == 0 ? HF_OK : hf_slab_promise(hf_texts_slab(texts, len), 1);
}

void hf_texts_unpromise(struct hf_texts *texts, size_t len)
{
    if (len > 0)
        hf_slab_unpromise(hf_texts_slab(texts, len), 1);
}

enum hf_status hf_texts_put(struct hf_texts *texts, struct hf_bytes bytes,
                            size_t bound, struct hf_text *out)
{
    assert(bytes.len <= bound);
    *out = (struct hf_text){0};
    if (bytes.len == 0)
        return HF_OK;
    uint32_t size_class = hf_texts_class(bytes.len);
    /* The fitting size may have room only because others were promised it.
     * Where it may be taken back, no memory is made. */
    if (bytes.len < bound) {
        struct hf_slab *fitting = &texts->slabs[size_class];
        if ((fitting->undo->on && !hf_slab_has_room(fitting, 1)) ||
            hf_slab_promise(fitting, 1) != HF_OK)
            size_class = hf_texts_class(bound);
        else
            hf_slab_unpromise(fitting, 1);
    }
    struct hf_slab *slab = &texts->slabs[size_class];
    uint32_t slot = hf_slab_take_raw(slab);
    if (slot == 0)
        return HF_NOMEM;
    memcpy(hf_slab_at(slab, slot), bytes.data, bytes.len);
    *out = (struct hf_text){slot, (uint16_t)bytes.len, (uint16_t)size_class};
    return HF_OK;
}
