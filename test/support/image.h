/* image.h - the image of the engine under test, in memory. */
#ifndef TEST_SUPPORT_IMAGE_H
#define TEST_SUPPORT_IMAGE_H

#include <sys/mman.h>
#include <unistd.h>

#include "support/engine.h"

/* One image: its pieces behind each other. */
static struct hf_buf image;
static size_t piece_ends[64];
static size_t piece_count;

static enum hf_status keep_piece(void *context, const void *data, size_t len)
{
    (void)context;
    CHECK(len > 0 && len <= HOLD_PIECE_MAX);
    CHECK_EQ(hf_buf_append(&image, data, len), HF_OK);
    CHECK(piece_count < sizeof piece_ends / sizeof piece_ends[0]);
    piece_ends[piece_count++] = image.len;
    return HF_OK;
}

static void save(void)
{
    image.len = 0;
    piece_count = 0;
    CHECK_EQ(hold_save(engine, keep_piece, NULL), HF_OK);
}

static enum hf_status load(struct hold_engine *into)
{
    enum hf_status status = HF_OK;
    size_t start = 0;

    for (size_t i = 0; i < piece_count && status == HF_OK; i++) {
        status = hold_load(into,
                           hf_bytes(image.data + start, piece_ends[i] - start));
        start = piece_ends[i];
    }
    return status;
}

/* Loads the first `len` bytes of the image from memory behind which nothing may
 * be read. */
static enum hf_status load_guarded(struct hold_engine *into, size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *space = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(space != MAP_FAILED && len <= page && piece_count == 1);
    CHECK_EQ(mprotect(space + page, page, PROT_NONE), 0);
    memcpy(space + page - len, image.data, len);
    enum hf_status status = hold_load(into, hf_bytes(space + page - len, len));
    munmap(space, 2 * page);
    return status;
}

#endif
