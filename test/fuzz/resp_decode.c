/* resp_decode.c - fuzz target: any bytes as requests and as replies.
 *
 *   clang -g -O1 -std=c11 -D_GNU_SOURCE -Iinclude -Isrc \
 *       -include src/base/banned.h -fsanitize=fuzzer,address,undefined \
 *       test/fuzz/resp_decode.c src/resp/[a-z]*.c src/base/[a-z]*.c -o FILE
 *
 * Beside memory errors it looks for results that contradict each other: a
 * request that is whole must be refused by none of its cuts, must lie inside
 * the input, and must survive encoding and decoding.
 */
#include <assert.h>

#include "base/memory.h"
#include "resp/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct resp_request request;
static struct resp_request again;

/* A copy of exactly that length, so that reading behind it is seen. */
static char *copy(const uint8_t *data, size_t size)
{
    char *block = hf_alloc(size > 0 ? size : 1);

    assert(block != NULL);
    if (size > 0)
        memcpy(block, data, size);
    return block;
}

static void check_arguments(const char *block, size_t size)
{
    assert(request.used > 0);
    assert(request.used <= size);
    assert(request.count <= RESP_ARGS_MAX);
    for (size_t i = 0; i < request.count; i++) {
        assert(request.args[i].data >= block);
        assert(request.args[i].data + request.args[i].len <=
               block + request.used);
    }
}

static void check_round_trip(void)
{
    struct hf_buf buf = {0};

    assert(resp_encode(&buf, request.count, request.args) == HF_OK);
    if (buf.len <= RESP_REQUEST_MAX) {
        assert(resp_decode(buf.data, buf.len, &again) == HF_OK);
        assert(again.used == buf.len);
        assert(again.count == request.count);
        for (size_t i = 0; i < again.count; i++)
            assert(hf_bytes_equal(again.args[i], request.args[i]));
    }
    hf_buf_destroy(&buf);
}

static void decode_all(const uint8_t *data, size_t size)
{
    while (size > 0) {
        char *block = copy(data, size);
        enum hf_status status = resp_decode(block, size, &request);
        if (status != HF_OK) {
            assert(status == HF_MORE || status == HF_INVALID);
            assert(status == HF_MORE || request.error != NULL);
            assert(status == HF_INVALID || size < RESP_REQUEST_MAX);
            hf_free(block);
            return;
        }
        check_arguments(block, size);
        check_round_trip();
        size_t used = request.used;
        hf_free(block);
        block = copy(data, used - 1);
        assert(resp_decode(block, used - 1, &again) == HF_MORE);
        hf_free(block);
        data += used;
        size -= used;
    }
}

static void read_all(const uint8_t *data, size_t size)
{
    char *block = copy(data, size);
    struct hf_bytes input = hf_bytes(block, size);
    struct resp_value value;
    size_t at = 0;
    size_t whole = 0;

    while (resp_read(input, &at, &value) == HF_OK)
        assert(at <= size);
    while (resp_skip(input, &whole) == HF_OK)
        assert(whole <= at);
    (void)resp_field(input, "token", &value);
    hf_free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode_all(data, size);
    read_all(data, size);
    return 0;
}
