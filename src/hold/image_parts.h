/* image_parts.h - how entries of an image are given and read. */
#ifndef HOLD_IMAGE_PARTS_H
#define HOLD_IMAGE_PARTS_H

#include "base/little.h"
#include "hold/state.h"

typedef enum hf_status entry_sink(void *context, struct hf_bytes entry,
                                  uint64_t place);

struct walk {
    struct hold_engine *e;
    entry_sink *sink;
    void *context;
};

/* Gives the entry that ends at `end` of the buffer that all are made in, the
 * engine's body. */
enum hf_status walk_give(struct walk *walk, const char *end, uint64_t place);

static inline char *image_put(char *at, uint64_t number)
{
    hf_put_u64(at, number);
    return at + 8;
}

struct reader {
    struct hf_bytes piece;
    size_t at;
    bool bad;
};

uint64_t read_number(struct reader *in);
struct hf_bytes read_text(struct reader *in);

#endif
