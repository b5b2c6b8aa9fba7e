/* resp_bulk.c - tests of the head of a bulk: every byte of it is looked at. */
#include "resp/resp.h"
#include "support/test.h"

static struct resp_request request;

/* Whatever a length is taken for, a CRLF stands where it ends. */
TEST(a_length_of_two_bytes_is_two_digits)
{
    char input[4 + 5 + 512];

    for (unsigned i = 0; i < 2 * 256 * 256; i++) {
        char high = (char)(i >> 1), low = (char)(i >> 9);
        bool shift = (i & 1) != 0;
        memcpy(input, "*1\r\n$..\r\n", 9);
        input[5] = high;
        input[6] = low;
        for (size_t at = 9; at < sizeof input; at++)
            input[at] = (at & 1) == shift ? '\r' : '\n';
        bool digits = high >= '0' && high <= '9' && low >= '0' && low <= '9';
        size_t size = (size_t)(high - '0') * 10 + (size_t)(low - '0');
        bool good = digits && (size & 1) != shift;
        CHECK_EQ(resp_decode(input, sizeof input, &request) == HF_OK, good);
        CHECK(!good || request.args[0].len == size);
    }
}

TEST(a_length_of_one_byte_is_a_digit)
{
    char input[4 + 4 + 512];

    for (unsigned i = 0; i < 2 * 256; i++) {
        char digit = (char)(i >> 1);
        bool shift = (i & 1) != 0;
        memcpy(input, "*1\r\n$.\r\n", 8);
        input[5] = digit;
        for (size_t at = 8; at < sizeof input; at++)
            input[at] = (at & 1) == shift ? '\r' : '\n';
        size_t size = (size_t)(digit - '0');
        bool good = digit >= '0' && digit <= '9' && (size & 1) == shift;
        CHECK_EQ(resp_decode(input, sizeof input, &request) == HF_OK, good);
        CHECK(!good || request.args[0].len == size);
    }
}

TEST(a_bulk_begins_with_a_dollar)
{
    static const char one[] = "*1\r\n$1\r\na\r\n";
    static const char two[] = "*1\r\n$10\r\nabcdefghij\r\n";

    for (int c = 0; c < 256; c++) {
        char input[32];
        memcpy(input, one, sizeof one);
        input[4] = (char)c;
        CHECK_EQ(resp_decode(input, sizeof one - 1, &request) == HF_OK,
                 c == '$');
        memcpy(input, two, sizeof two);
        input[4] = (char)c;
        CHECK_EQ(resp_decode(input, sizeof two - 1, &request) == HF_OK,
                 c == '$');
    }
}
