/* postgres_array.c - see postgres_array.h. */
#include "stores/postgres_array.h"

#include <arpa/inet.h>
#include <assert.h>
#include <endian.h>
#include <libpq-fe.h>

#define HEAD_BYTES 20

static void append(struct postgres_array *array, const void *data, size_t len)
{
    if (!array->failed && hf_buf_append(&array->buf, data, len) != HF_OK)
        array->failed = true;
}

static void append_u32(struct postgres_array *array, uint32_t number)
{
    uint32_t net = htonl(number);

    append(array, &net, sizeof net);
}

void hf_postgres_array_begin(struct postgres_array *array, uint32_t type)
{
    array->buf.len = 0;
    array->count = 0;
    array->failed = false;
    append_u32(array, 1);
    append_u32(array, 0);
    append_u32(array, type);
    append_u32(array, 0);
    append_u32(array, 1);
}

void hf_postgres_array_text(struct postgres_array *array, struct hf_bytes text)
{
    append_u32(array, (uint32_t)text.len);
    append(array, text.data, text.len);
    array->count++;
}

void hf_postgres_array_number(struct postgres_array *array, int64_t number)
{
    uint64_t net = htobe64((uint64_t)number);

    append_u32(array, sizeof net);
    append(array, &net, sizeof net);
    array->count++;
}

void hf_postgres_array_end(struct postgres_array *array)
{
    const uint32_t none = 0;
    uint32_t net = htonl(array->count);

    if (array->failed)
        return;
    assert(array->buf.len >= HEAD_BYTES);
    memcpy(array->buf.data + 12, &net, sizeof net);
    if (array->count > 0)
        return;
    memcpy(array->buf.data, &none, sizeof none);
    array->buf.len = 12;
}

int64_t hf_postgres_number(const PGresult *result, int row, int column)
{
    uint64_t net;

    assert(PQgetlength(result, row, column) == sizeof net);
    memcpy(&net, PQgetvalue(result, row, column), sizeof net);
    return (int64_t)be64toh(net);
}

struct hf_bytes hf_postgres_text(const PGresult *result, int row, int column)
{
    return hf_bytes(PQgetvalue(result, row, column),
                    (size_t)PQgetlength(result, row, column));
}
