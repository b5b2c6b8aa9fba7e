/* rows.c - tests of products as rows of CSV and JSON lines. */
#include "cli/rows.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "resp/resp.h"
#include "support/test.h"

TEST_ONE_THREAD;

static char text[4096];
static size_t text_len;

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    text_len += (size_t)vsnprintf(text + text_len, sizeof text - text_len,
                                  format, args);
    va_end(args);
}

static void put_row(const struct row *row)
{
    put("%llu:%.*s=%llu", (unsigned long long)row->line, HF_SHOW(row->sku),
        (unsigned long long)row->total);
    if (row->has_low)
        put(" low %llu", (unsigned long long)row->low);
    for (uint32_t i = 0; i < row->attribute_count; i++)
        put(" %.*s:%.*s", HF_SHOW(row->attributes[i].name),
            HF_SHOW(row->attributes[i].value));
    put(";");
}

/* All rows and errors, of a file that comes `step` bytes at a time. */
static const char *read_by(enum rows_format format, struct hf_bytes file,
                           size_t step)
{
    struct rows rows;
    struct row row;
    enum hf_status status = HF_OK;
    size_t at = 0;

    text_len = 0;
    text[0] = '\0';
    rows_init(&rows, format);
    while (!rows.lost && (status = rows_next(&rows, &row)) != HF_CLOSED) {
        size_t left = file.len - at < step ? file.len - at : step;
        if (status == HF_OK)
            put_row(&row);
        else if (status == HF_INVALID)
            put("%llu!%s;", (unsigned long long)row.line, rows.error);
        else
            CHECK_EQ(rows_add(&rows, file.data + at, left), HF_OK);
        at += status == HF_MORE ? left : 0;
    }
    rows_destroy(&rows);
    return text;
}

static void expect(enum rows_format format, const char *data, size_t len,
                   size_t step, const char *expected)
{
    const char *found = read_by(format, hf_bytes(data, len), step);

    CHECK_TEXT(found, text_len, expected);
}

static void expect_any(enum rows_format format, const char *data, size_t len,
                       const char *expected)
{
    for (size_t step = 1; step < 5; step++)
        expect(format, data, len, step, expected);
    expect(format, data, len, 9999, expected);
}

#define CSV(file, expected) \
    expect_any(ROWS_CSV, file, sizeof(file) - 1, expected)
#define JSON(file, expected) \
    expect_any(ROWS_JSON, file, sizeof(file) - 1, expected)

TEST(csv_is_read_as_rfc_4180_says)
{
    CSV("sku,total\na,1\nb,2\n", "2:a=1;3:b=2;");
    CSV("sku,total\r\na,1\r\nb,2", "2:a=1;3:b=2;");
    CSV("\xef\xbb\xbftotal,sku\n1,a\n\n2,b\n", "2:a=1;4:b=2;");
    CSV("sku,total\n\"a,\"\"b\"\"\nc\",1\n\"d\",\"2\"\n",
        "2:a,\"b\"\nc=1;4:d=2;");
    CSV("\"sku\",total\n\"\xc3\xa4\",1", "2:\xc3\xa4=1;");
    CSV("sku,total\n", "");
    CSV("", "");
}

TEST(csv_has_thresholds_and_attributes)
{
    CSV("sku,total,low,attributes\n"
        "a,1,5,\"{\"\"colour\"\": \"\"red, \\\"\"dark\\\"\"\"\", \"\"x\"\": "
        "\"\"\"\"}\"\n"
        "b,2,,\nc,3,0,{}\n",
        "2:a=1 low 5 colour:red, \"dark\" x:;3:b=2;4:c=3 low 0;");
    CSV("sku,attribute.colour,total,attribute.size\na,red,1,\nb,,2,9\n",
        "2:a=1 colour:red;3:b=2 size:9;");
    CSV("sku,total,available,reserved,sold,version,updated_ms\na,1,1,0,0,9,8\n",
        "2:a=1;");
}

TEST(errors_of_csv_have_their_line)
{
    CSV("sku,total\na\nb,2,3\nc,3\n",
        "2!1 fields, but the first row has 2;3!3 fields, but the first row has "
        "2;4:c=3;");
    CSV("sku,total\na,-1\nb,x\nc,9223372036854775808\n,1\nd,4\n",
        "2!total must be a whole number from 0 to 9223372036854775807, not "
        "'-1';3!total must be a whole number from 0 to 9223372036854775807, "
        "not 'x';4!total must be a whole number from 0 to "
        "9223372036854775807, not '9223372036854775808';5!sku has 0 bytes, and "
        "must have 1 to 256;6:d=4;");
    CSV("sku,total\na\"b,1\n\"c\"d,2\ne\rf,3\ng,4\n",
        "2!a quote stands within a field, which must be in quotes then;"
        "3!something stands behind a closing quote;"
        "4!a carriage return stands within a line;5:g=4;");
    CSV("sku,total\n\"a\nb\",x\nc,1\n",
        "2!total must be a whole number from 0 to 9223372036854775807, not "
        "'x';4:c=1;");
    CSV("sku,total\na,1\n\"b,2\nc,3\n", "2:a=1;3!a quote is not closed;");
    CSV("sku,total,colour\n", "1!unknown column 'colour';");
    CSV("sku,total,sku\n", "1!column 'sku' is there twice;");
    CSV("a,1\n", "1!unknown column 'a';");
    CSV("sku,low\n", "1!the first row must name the columns sku and total;");
}

TEST(json_lines_are_read)
{
    JSON("{\"sku\": \"a\", \"total\": 1}\n\n {\"total\":2,\"sku\":\"b\"} \r\n",
         "1:a=1;3:b=2;");
    JSON("{\"sku\":\"a\\n\\\"\\\\\\/\\u00e4\\ud83d\\ude00,\",\"total\":0,"
         "\"low\":3,\"attributes\":{\"colour\":\"red\",\"x\":\"\"}}",
         "1:a\n\"\\/\xc3\xa4\xf0\x9f\x98\x80,=0 low 3 colour:red x:;");
    JSON("{\"sku\":\"a\",\"total\":1,\"attributes\":{},\"version\":3,"
         "\"updated_ms\":4,\"sold\":0,\"reserved\":0,\"available\":1}",
         "1:a=1;");
}

TEST(errors_of_json_have_their_line)
{
    JSON("{\"sku\":\"a\"}\n{\"total\":1}\n[]\n{\"sku\":\"b\",\"total\":1}x\n"
         "{\"sku\":\"c\",\"total\":3}\n",
         "1!sku and total are needed;2!sku and total are needed;3!JSON: an "
         "object is missing at byte 1;4!JSON: something stands behind the "
         "object at byte 22;5:c=3;");
    JSON("{\"sku\":\"a\",\"total\":1.5}\n{\"sku\":1,\"total\":1}\n",
         "1!total must be a whole number from 0 to 9223372036854775807, not "
         "'1.5';2!JSON: a text in quotes is missing at byte 8;");
    JSON("{\"sku\":\"a\\q\",\"total\":1}\n{\"sku\":\"\\ud800\",\"total\":1}\n"
         "{\"sku\":\"\xff\",\"total\":1}\n{\"sku\":\"a\tb\",\"total\":1}\n"
         "{\"sku\":\"a\n",
         "1!JSON: an unknown escape at byte 11;2!JSON: half of a surrogate "
         "pair at byte 15;3!JSON: bytes that are not UTF-8 at byte 9;4!JSON: a "
         "control character in a text at byte 10;5!JSON: a text without its "
         "last quote at byte 10;");
    JSON("{\"sku\":\"a\",\"sku\":\"b\",\"total\":1}\n{\"sku\" \"a\"}\n"
         "{\"sku\":\"a\" \"total\":1}\n{\"colour\":1}\n",
         "1!field 'sku' is given twice;2!JSON: a colon is missing at byte "
         "8;3!JSON: a comma or the end of the object is missing at byte "
         "12;4!unknown field 'colour';");
}

TEST(attributes_have_the_bounds_of_the_server)
{
    static char file[4096];
    size_t len = 0;

    for (int count = 16; count <= 17; count++) {
        len = (size_t)snprintf(file, sizeof file,
                               "{\"sku\":\"a\",\"total\":1,\"attributes\":{");
        for (int i = 0; i < count; i++)
            len += (size_t)snprintf(file + len, sizeof file - len,
                                    "%s\"k%d\":\"v\"", i > 0 ? "," : "", i);
        len += (size_t)snprintf(file + len, sizeof file - len, "}}");
        const char *found = read_by(ROWS_JSON, hf_bytes(file, len), 9999);
        CHECK(strncmp(found,
                      count == 16 ? "1:a=1 k0:v "
                                  : "1!at most 16 attributes are allowed;",
                      11) == 0);
    }
    JSON("{\"sku\":\"a\",\"total\":1,\"attributes\":{\"x\":\"1\",\"x\":\"2\"}}",
         "1!attribute 'x' is given twice;");
    JSON("{\"sku\":\"a\",\"total\":1,\"attributes\":{\"\":\"1\"}}",
         "1!the name of an attribute has 0 bytes, and must have 1 to 64;");
    len = (size_t)snprintf(file, sizeof file,
                           "{\"sku\":\"a\",\"total\":1,\"attributes\":{");
    for (int i = 0; i < 5; i++)
        len += (size_t)snprintf(file + len, sizeof file - len,
                                "%s\"%d\":\"%0200d\"", i > 0 ? "," : "", i, 7);
    len += (size_t)snprintf(file + len, sizeof file - len, "}}");
    expect(ROWS_JSON, file, len, 9999,
           "1!the attributes have 1025 bytes (4 more for each), at most "
           "1024 are allowed;");
}

TEST(a_row_that_does_not_end_is_refused)
{
    static char file[2 * ROWS_BYTES_MAX];

    memset(file, 'x', sizeof file);
    memcpy(file, "sku,total\n\"", 11);
    expect(ROWS_CSV, file, sizeof file, 1000,
           "2!a row has more than 65536 bytes;");
    expect(ROWS_JSON, file + 10, sizeof file - 10, 1000,
           "1!a row has more than 65536 bytes;");
}

/* Whoever gives the file in large pieces gives it whole, perhaps. */
TEST(a_row_is_too_long_wherever_the_pieces_end)
{
    static char file[3 * ROWS_BYTES_MAX];
    size_t len = sizeof file - 1000;

    memset(file, 'x', sizeof file);
    memcpy(file, "sku,total\n\"", 11);
    memcpy(file + len, "\",1\n", 4);
    for (size_t piece = 1000; piece <= len + 4; piece *= 7)
        expect(ROWS_CSV, file, len + 4, piece,
               "2!a row has more than 65536 bytes;");
    expect(ROWS_CSV, file, len + 4, len + 4,
           "2!a row has more than 65536 bytes;");
    memcpy(file + ROWS_BYTES_MAX + 10 - 4, "\",1\n", 4);
    expect(ROWS_CSV, file, ROWS_BYTES_MAX + 10, ROWS_BYTES_MAX + 10,
           "2!sku has 65531 bytes, and must have 1 to 256;");
}

/* A product as the server shows it. */
static struct hf_bytes product(const char *sku, size_t len, int low,
                               const char *attributes)
{
    static struct hf_buf reply;

    reply.len = 0;
    CHECK_EQ(hf_buf_format(&reply, "%%9\r\n$3\r\nsku\r\n$%zu\r\n", len), HF_OK);
    CHECK_EQ(hf_buf_append(&reply, sku, len), HF_OK);
    CHECK_EQ(hf_buf_format(
                 &reply,
                 "\r\n$5\r\ntotal\r\n:9\r\n$9\r\navailable\r\n:6\r\n"
                 "$8\r\nreserved\r\n:2\r\n$4\r\nsold\r\n:1\r\n$7\r\nversion"
                 "\r\n:77\r\n$10\r\nupdated_ms\r\n:5\r\n$3\r\nlow\r\n:%d\r\n"
                 "$10\r\nattributes\r\n%s",
                 low, attributes),
             HF_OK);
    return hf_buf_bytes(&reply);
}

static void write_one(enum rows_format format, struct hf_bytes reply,
                      const char *expected)
{
    struct hf_buf out = {0};

    CHECK_EQ(rows_put(&out, format, reply), HF_OK);
    CHECK_TEXT(out.data, out.len, expected);
    hf_buf_destroy(&out);
}

TEST(products_are_written)
{
    static const char two[] =
        "%2\r\n$1\r\na\r\n$1\r\n\"\r\n$1\r\nb\r\n$1\r\n,\r\n";

    write_one(ROWS_CSV, product("x", 1, 0, "%0\r\n"), "x,9,,6,2,1,77,5,\r\n");
    write_one(ROWS_CSV, product("a,\"b\n", 5, 3, two),
              "\"a,\"\"b\n\",9,3,6,2,1,77,5,\"{\"\"a\"\": \"\"\\\"\"\"\", "
              "\"\"b\"\": \"\",\"\"}\"\r\n");
    write_one(ROWS_JSON, product("x", 1, 0, "%0\r\n"),
              "{\"sku\": \"x\", \"total\": 9, \"available\": 6, \"reserved\": "
              "2, \"sold\": 1, \"version\": 77, \"updated_ms\": 5}\n");
    write_one(ROWS_JSON, product("\"\n", 2, 3, two),
              "{\"sku\": \"\\\"\\n\", \"total\": 9, \"low\": 3, "
              "\"available\": 6, \"reserved\": 2, \"sold\": 1, \"version\": "
              "77, \"updated_ms\": 5, \"attributes\": {\"a\": \"\\\"\", "
              "\"b\": \",\"}}\n");
    struct hf_buf out = {0};
    CHECK_EQ(rows_put(&out, ROWS_JSON, product("\xff", 1, 0, "%0\r\n")),
             HF_CORRUPT);
    CHECK_EQ(rows_put(&out, ROWS_CSV, hf_bytes("+OK\r\n", 5)), HF_INVALID);
    CHECK_EQ(out.len, 0);
    hf_buf_destroy(&out);
}

/* Any bytes of a name come back from CSV, any text from JSON. */
TEST(what_was_written_is_read_again)
{
    static const struct {
        struct hf_bytes sku;
        bool text;
    } names[] = {{{"a,b", 3}, true},      {{"a\rb", 3}, true},
                 {{"\"\"", 2}, true},     {{" a ", 3}, true},
                 {{"a\r\nb\n", 5}, true}, {{"\xe2\x82\xac", 3}, true},
                 {{"a\0b", 3}, true},     {{"\xff\xfe", 2}, false},
                 {{"'", 1}, true},        {{"\\n", 2}, true},
                 {{"{}", 2}, true}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (int format = 0; format < (names[i].text ? 2 : 1); format++) {
            struct hf_buf out = {0};
            struct rows rows;
            struct row row;
            CHECK_EQ(rows_head(&out, (enum rows_format)format), HF_OK);
            CHECK_EQ(rows_put(&out, (enum rows_format)format,
                              product(names[i].sku.data, names[i].sku.len, 4,
                                      "%1\r\n$1\r\na\r\n$3\r\n,\"\n\r\n")),
                     HF_OK);
            rows_init(&rows, (enum rows_format)format);
            CHECK_EQ(rows_add(&rows, out.data, out.len), HF_OK);
            CHECK_EQ(rows_add(&rows, "", 0), HF_OK);
            CHECK_EQ(rows_next(&rows, &row), HF_OK);
            CHECK(hf_bytes_equal(row.sku, names[i].sku));
            CHECK_EQ(row.total, 9);
            CHECK_EQ(row.low, 4);
            CHECK_EQ(row.attribute_count, 1);
            CHECK(
                hf_bytes_equal(row.attributes[0].value, hf_bytes(",\"\n", 3)));
            CHECK_EQ(rows_next(&rows, &row), HF_CLOSED);
            rows_destroy(&rows);
            hf_buf_destroy(&out);
        }
    }
}
