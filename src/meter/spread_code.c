/* spread_code.c - HdrHistogram's V2 encoding.
 *
 * All numbers of the head are big-endian:
 *
 *   offset  0  cookie 0x1c849313   4  bytes of the counts
 *           8  0                  12  digits
 *          16  lowest  (64 bits)  24  highest (64 bits)
 *          32  1.0     (64 bits)  40  counts
 *
 * Counts go by place, up to the largest value's. Each is a signed number n,
 * zig-zag coded ((n << 1) ^ (n >> 63)) in groups of 7 bits, lowest first, the
 * top bit of a byte telling that more follow; the ninth byte has 8 bits. n >= 0
 * is a count, n < 0 stands for -n places without values.
 */
#include <assert.h>
#include <string.h>

#include "meter/spread.h"

#define COOKIE_BASE UINT32_C(0x1c849303)
#define COOKIE      (COOKIE_BASE | 0x10)
#define HEAD_BYTES  40u
#define NUMBER_MAX  9u
#define COUNT_MAX   (UINT64_MAX >> 2)

/* Bytes that are written if there is room and counted in any case. */
struct sink {
    unsigned char *out;
    size_t cap;
    size_t len;
};

static void put_byte(struct sink *sink, unsigned char byte)
{
    if (sink->len < sink->cap)
        sink->out[sink->len] = byte;
    sink->len++;
}

static void put_big(struct sink *sink, uint64_t number, unsigned bytes)
{
    while (bytes-- > 0)
        put_byte(sink, (unsigned char)(number >> (8 * bytes)));
}

static void put_number(struct sink *sink, int64_t number)
{
    uint64_t left = ((uint64_t)number << 1) ^ (number < 0 ? UINT64_MAX : 0);

    for (unsigned i = 1; i < NUMBER_MAX; i++) {
        if (left < 0x80) {
            put_byte(sink, (unsigned char)left);
            return;
        }
        put_byte(sink, (unsigned char)(left | 0x80));
        left >>= 7;
    }
    put_byte(sink, (unsigned char)left);
}

/* HF_INVALID: a count is too large for the encoding. */
static enum hf_status put_counts(struct sink *sink,
                                 const struct hf_spread *spread)
{
    uint32_t end = hf_layout_place(&spread->layout, spread->most) + 1;

    for (uint32_t p = 0; p < end;) {
        uint64_t count = hf_spread_at(spread, p++);
        uint32_t zeros = 1;
        if (count > COUNT_MAX)
            return HF_INVALID;
        if (count > 0) {
            put_number(sink, (int64_t)count);
            continue;
        }
        for (; p < end && hf_spread_at(spread, p) == 0; p++)
            zeros++;
        put_number(sink, zeros > 1 ? -(int64_t)zeros : 0);
    }
    return HF_OK;
}

enum hf_status hf_spread_encode(const struct hf_spread *spread, void *out,
                                size_t cap, size_t *len)
{
    struct sink sink = {.len = 0};
    double ratio = 1;
    uint64_t ratio_bits;

    if (spread == NULL || len == NULL || (out == NULL && cap > 0))
        return HF_INVALID;
    enum hf_status status = put_counts(&sink, spread);
    if (status)
        return status;
    size_t bytes = sink.len;
    *len = HEAD_BYTES + bytes;
    if (*len > cap)
        return HF_FULL;
    memcpy(&ratio_bits, &ratio, sizeof ratio_bits);
    sink = (struct sink){.out = out, .cap = cap};
    put_big(&sink, COOKIE, 4);
    put_big(&sink, bytes, 4);
    put_big(&sink, 0, 4);
    put_big(&sink, spread->layout.digits, 4);
    put_big(&sink, spread->layout.lowest, 8);
    put_big(&sink, spread->layout.highest, 8);
    put_big(&sink, ratio_bits, 8);
    assert(sink.len == HEAD_BYTES);
    return put_counts(&sink, spread);
}

struct source {
    const unsigned char *at;
    const unsigned char *end;
};

static uint64_t get_big(struct source *source, unsigned bytes)
{
    uint64_t number = 0;

    assert((size_t)(source->end - source->at) >= bytes);
    for (; bytes > 0; bytes--)
        number = number << 8 | *source->at++;
    return number;
}

static enum hf_status get_number(struct source *source, int64_t *number)
{
    uint64_t bits = 0;

    for (unsigned i = 0;; i++) {
        if (source->at == source->end)
            return HF_CORRUPT;
        unsigned char byte = *source->at++;
        if (i == NUMBER_MAX - 1) {
            bits |= (uint64_t)byte << (7 * i);
            break;
        }
        bits |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80)
            break;
    }
    *number = (int64_t)((bits >> 1) ^ (bits & 1 ? UINT64_MAX : 0));
    return HF_OK;
}

/* Counts that are too many together, or places that there are not, are
 * corrupt: nothing of it was made by an encoder. */
static enum hf_status get_counts(struct source *source,
                                 struct hf_spread *spread)
{
    const struct hf_layout *layout = &spread->layout;
    uint32_t places = hf_layout_places(layout);
    int64_t number;

    for (uint32_t p = 0; source->at < source->end;) {
        enum hf_status status = get_number(source, &number);
        if (status)
            return status;
        uint64_t skip = number < 0 ? 0 - (uint64_t)number : 1;
        if (skip > places - p)
            return HF_CORRUPT;
        if (number > 0) {
            uint64_t middle =
                hf_layout_low(layout, p) + hf_layout_width(layout, p) / 2;
            if ((uint64_t)number > COUNT_MAX - spread->count)
                return HF_CORRUPT;
            status = hf_spread_record(spread, middle, (uint64_t)number);
            if (status)
                return status;
        }
        p += (uint32_t)skip;
    }
    if (spread->count > 0) {
        uint32_t last = hf_layout_place(layout, spread->most);
        spread->least =
            hf_layout_low(layout, hf_layout_place(layout, spread->least));
        spread->most =
            hf_layout_low(layout, last) + hf_layout_width(layout, last) - 1;
    }
    return HF_OK;
}

enum hf_status hf_spread_decode(struct hf_spread **spread, const void *bytes,
                                size_t len)
{
    struct hf_spread *made;
    struct hf_layout layout;

    if (spread == NULL || bytes == NULL)
        return HF_INVALID;
    if (len < HEAD_BYTES)
        return HF_CORRUPT;
    struct source source = {bytes, (const unsigned char *)bytes + len};
    /* The second digit of the cookie is the size of a word, which V2 ignores.
     */
    bool is_v2 = (get_big(&source, 4) & ~UINT64_C(0xf0)) == COOKIE_BASE;
    uint64_t count_bytes = get_big(&source, 4);
    uint64_t offset = get_big(&source, 4);
    uint64_t digits = get_big(&source, 4);
    uint64_t lowest = get_big(&source, 8);
    uint64_t highest = get_big(&source, 8);
    (void)get_big(&source, 8); /* of whole numbers it says nothing */
    if (!is_v2 || count_bytes != len - HEAD_BYTES || offset != 0 ||
        digits == 0 || digits > HF_SPREAD_DIGITS_MAX || lowest == 0 ||
        highest == 0 ||
        hf_layout_init(&layout, &(struct hf_spread_opts){(uint32_t)digits,
                                                         lowest, highest}))
        return HF_CORRUPT;
    enum hf_status status = hf_spread_make(&made, &layout);
    if (status)
        return status;
    status = get_counts(&source, made);
    if (status) {
        hf_spread_close(made);
        return status;
    }
    *spread = made;
    return HF_OK;
}
