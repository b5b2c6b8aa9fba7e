/* transfer.c - `holdfast stock import` and `export`: products from and to
 * files.
 *
 * Requests of an import go out in batches, as many as the rows take, and each
 * knows the line that it is of. An export is the pages of STOCK LIST.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/call.h"
#include "cli/commands.h"
#include "cli/rows.h"
#include "cli/show.h"
#include "cli/words.h"

#define BATCH       1000u
#define PAGE        1000u
#define PIECE_BYTES (64u * 1024)
#define BATCH_NS    (60 * HF_NS_PER_S) /* for the answers of a batch */
#define DRAWN_NS    (HF_NS_PER_S / 5)
#define BAR         "##############################"
#define BAR_CELLS   (sizeof BAR - 1)

static struct call call = {.client = {.fd = -1}};
static const char *format_name;
static bool keep_going, dry_run;

/* One run. */
struct transfer {
    FILE *file;
    const char *path;
    enum rows_format format;
    uint64_t rows;   /* taken, or written */
    uint64_t failed; /* rows with an error */
    uint64_t failed_line;
    uint64_t whole; /* bytes to read, or products to write; 0: not known */
    uint64_t part;  /* of them */
    uint64_t began_ns;
    uint64_t drawn_ns;
    bool draws;
    uint64_t lines[BATCH]; /* of the requests on their way */
    size_t asked;
    struct rows reader;
    char piece[PIECE_BYTES];
};

/* ---- What is told. ---- */

static void clear_line(const struct transfer *t)
{
    if (t->draws)
        fprintf(stderr, "\r\033[K");
}

/* Products may come and bytes be added while it runs: it stops at the end. */
static void draw_bar(const struct transfer *t)
{
    uint64_t part = t->part < t->whole ? t->part : t->whole;

    if (t->whole == 0)
        return;
    fprintf(stderr, "  [%-*.*s] %llu %%", (int)BAR_CELLS,
            (int)(part * BAR_CELLS / t->whole), BAR,
            (unsigned long long)(part * 100 / t->whole));
}

static void draw(struct transfer *t)
{
    uint64_t now_ns = client_now_ns();
    double seconds = (double)(now_ns - t->began_ns) / HF_NS_PER_S;

    if (!t->draws || now_ns < t->drawn_ns + DRAWN_NS)
        return;
    t->drawn_ns = now_ns;
    fprintf(stderr, "\r");
    draw_bar(t);
    fprintf(stderr, "  %llu rows  %.0f/s\033[K", (unsigned long long)t->rows,
            seconds > 0 ? (double)t->rows / seconds : 0);
}

static void finish(const struct transfer *t, const char *done)
{
    clear_line(t);
    if (t->failed > 0)
        fprintf(stderr, "holdfast %s: %llu rows %s, %llu with errors\n",
                call.name, (unsigned long long)t->rows, done,
                (unsigned long long)t->failed);
    else if (t->draws)
        fprintf(stderr, "%llu rows %s in %.1f s\n", (unsigned long long)t->rows,
                done, (double)(client_now_ns() - t->began_ns) / HF_NS_PER_S);
}

static int cannot(const struct transfer *t, const char *what)
{
    clear_line(t);
    fprintf(stderr, "holdfast %s: cannot %s %s: %s\n", call.name, what, t->path,
            strerror(errno));
    return CLI_FAILED;
}

/* An error of a row; CLI_DONE: it goes on. */
static int row_failed(struct transfer *t, uint64_t line, struct hf_bytes why)
{
    struct hf_buf text = {0};

    clear_line(t);
    (void)show_text(&text, why);
    fprintf(stderr, "%s:%llu: %.*s\n", t->path, (unsigned long long)line,
            (int)text.len, text.data != NULL ? text.data : "");
    hf_buf_destroy(&text);
    t->failed += line != t->failed_line; /* once for a row */
    t->failed_line = line;
    return keep_going ? CLI_DONE : CLI_FAILED;
}

/* ---- Import. ---- */

/* The answers to all that was asked. */
static int receive(struct transfer *t)
{
    uint64_t deadline_ns = client_now_ns() + BATCH_NS;
    enum hf_status status = client_step(&call.client);
    uint64_t failed = t->failed;
    int code = CLI_DONE;

    for (size_t i = 0; i < t->asked; i++) {
        struct hf_bytes reply;
        if (status == HF_OK)
            status = client_receive(&call.client, deadline_ns, &reply);
        if (status != HF_OK) {
            clear_line(t);
            (void)call_judge(&call, status, reply);
            fprintf(stderr,
                    "holdfast %s: what stands from line %llu of %s on may not "
                    "be in\n",
                    call.name, (unsigned long long)t->lines[i], t->path);
            return CLI_UNREACHABLE;
        }
        if (reply.data[0] == '-' && /* without "\r\n" */
            row_failed(t, t->lines[i],
                       hf_bytes(reply.data + 1, reply.len - 3)) != CLI_DONE)
            code = CLI_REFUSED;
    }
    t->asked = 0;
    t->rows -= t->failed - failed; /* they were taken, and refused */
    draw(t);
    return code;
}

static int ask(struct transfer *t, const struct words *request, uint64_t line)
{
    enum hf_status status =
        client_send(&call.client, request->count, request->list);

    if (status != HF_OK)
        return call_judge(&call, status, hf_bytes("", 0));
    t->lines[t->asked++] = line;
    return t->asked == BATCH ? receive(t) : CLI_DONE;
}

static int send_row(struct transfer *t, const struct row *row)
{
    struct words words = {0};

    words_text(&words, "STOCK");
    words_text(&words, "SET");
    words_bytes(&words, row->sku);
    words_number(&words, row->total);
    int code = ask(t, &words, row->line);
    if (code == CLI_DONE && row->has_low) {
        words.list[1] = hf_bytes_text("LOW");
        words.count = 3;
        words_number(&words, row->low);
        code = ask(t, &words, row->line);
    }
    for (uint32_t i = 0; code == CLI_DONE && i < row->attribute_count; i++) {
        words.list[1] = hf_bytes_text("ATTR");
        words.count = 3;
        words_bytes(&words, row->attributes[i].name);
        words_bytes(&words, row->attributes[i].value);
        code = ask(t, &words, row->line);
    }
    return code;
}

static int take_row(struct transfer *t, const struct row *row)
{
    t->rows++;
    draw(t);
    return dry_run ? CLI_DONE : send_row(t, row);
}

/* Reads more of the file. */
static int refill(struct transfer *t)
{
    size_t len = fread(t->piece, 1, sizeof t->piece, t->file);

    if (len == 0 && ferror(t->file))
        return cannot(t, "read");
    t->part += len;
    return rows_add(&t->reader, t->piece, len) == HF_OK ? CLI_DONE : CLI_FAILED;
}

static int read_rows(struct transfer *t)
{
    int code = CLI_DONE;

    while (code == CLI_DONE) {
        struct row row;
        enum hf_status status = rows_next(&t->reader, &row);
        if (status == HF_CLOSED)
            break;
        if (status == HF_OK)
            code = take_row(t, &row);
        else if (status == HF_MORE)
            code = refill(t);
        else if (status == HF_INVALID)
            code = row_failed(t, row.line, hf_bytes_text(t->reader.error));
        else
            code = CLI_FAILED;
        if (status == HF_INVALID && t->reader.lost)
            code = CLI_FAILED; /* whoever keeps going cannot, here */
    }
    if (t->asked > 0 && code != CLI_UNREACHABLE) {
        int last = receive(t);
        code = code == CLI_DONE ? last : code;
    }
    return code;
}

/* Connects, and speaks version 3. */
static int greet(void)
{
    struct hf_bytes ping[] = {hf_bytes_text("PING")};
    struct hf_bytes reply;

    return call_judge(&call, call_try(&call, 1, ping, &reply), reply);
}

static int import(struct transfer *t)
{
    int code = dry_run ? CLI_DONE : greet();
    struct stat file;

    if (fstat(fileno(t->file), &file) == 0 && S_ISREG(file.st_mode))
        t->whole = (uint64_t)file.st_size;
    rows_init(&t->reader, t->format);
    if (code == CLI_DONE)
        code = read_rows(t);
    rows_destroy(&t->reader);
    finish(t, dry_run ? "read" : "imported");
    return code == CLI_DONE && t->failed > 0 ? CLI_FAILED : code;
}

/* ---- Export. ---- */

/* The products of a page, as rows. */
static int put_page(struct transfer *t, struct hf_bytes reply,
                    struct hf_buf *out)
{
    struct resp_value list;
    size_t at = 0;

    if (resp_find(reply, "products", &at) != HF_OK ||
        resp_read(reply, &at, &list) != HF_OK || list.kind != RESP_ARRAY) {
        fprintf(stderr, "holdfast %s: the answer is no page\n", call.name);
        return CLI_FAILED;
    }
    for (int64_t i = 0; i < list.number; i++) {
        size_t start = at;
        enum hf_status status = resp_skip(reply, &at);
        if (status == HF_OK)
            status = rows_put(out, t->format,
                              hf_bytes(reply.data + start, at - start));
        if (status != HF_OK) {
            clear_line(t);
            fprintf(stderr, "holdfast %s: a product cannot be written: %s\n",
                    call.name,
                    status == HF_CORRUPT
                        ? "its name or an attribute is not UTF-8"
                        : hf_status_text(status));
            t->failed++;
            if (!keep_going || status != HF_CORRUPT)
                return CLI_FAILED;
            continue;
        }
        t->rows++;
    }
    t->part += (uint64_t)list.number;
    return CLI_DONE;
}

static int write_page(struct transfer *t, struct hf_buf *out)
{
    size_t len = out->len;

    out->len = 0;
    return len == 0 || fwrite(out->data, 1, len, t->file) == len
               ? CLI_DONE
               : cannot(t, "write");
}

static int put_pages(struct transfer *t, struct hf_buf *out)
{
    int64_t cursor = 0;
    int code = rows_head(out, t->format) == HF_OK ? CLI_DONE : CLI_FAILED;

    do {
        struct words words = {0};
        struct hf_bytes reply;
        words_text(&words, "STOCK");
        words_text(&words, "LIST");
        words_amount(&words, "COUNT", PAGE);
        words_amount(&words, "CURSOR", (uint64_t)cursor);
        code = call_send(&call, words.count, words.list, &reply);
        if (code == CLI_DONE)
            code = put_page(t, reply, out);
        if (code == CLI_DONE && !resp_field_number(reply, "cursor", &cursor))
            code = CLI_FAILED;
        if (code == CLI_DONE)
            code = write_page(t, out);
        draw(t);
    } while (code == CLI_DONE && cursor != 0);
    return code;
}

/* How many products there are. */
static int count_products(struct transfer *t)
{
    static const char field[] = "\nproducts:";
    struct words words = {0};
    struct hf_bytes reply;

    words_text(&words, "INFO");
    words_text(&words, "holds");
    int code = call_send(&call, words.count, words.list, &reply);
    if (code != CLI_DONE)
        return code;
    const char *at = memmem(reply.data, reply.len, field, sizeof field - 1);
    const char *end = reply.data + reply.len;
    if (at != NULL) {
        at += sizeof field - 1;
        end = memchr(at, '\r', (size_t)(end - at));
    }
    if (at == NULL || end == NULL ||
        hf_parse_u64(hf_bytes(at, (size_t)(end - at)), &t->whole) != HF_OK)
        t->whole = 0; /* no bar */
    return CLI_DONE;
}

static int export(struct transfer *t)
{
    struct hf_buf out = {0};
    int code = t->draws ? count_products(t) : CLI_DONE;

    if (code == CLI_DONE)
        code = put_pages(t, &out);

    hf_buf_destroy(&out);
    if (code == CLI_DONE && fflush(t->file) != 0)
        code = cannot(t, "write");
    finish(t, "exported");
    return code == CLI_DONE && t->failed > 0 ? CLI_FAILED : code;
}

/* ---- The command line. ---- */

static const char about[] =
    "import sets products as the rows of FILE say, export writes all of them;\n"
    "FILE may be -. CSV has a first row that names the columns: sku and "
    "total,\n"
    "and, if they are there, low (empty: as it is), attributes (a JSON "
    "object)\n"
    "and attribute.NAME. JSON lines have an object each, with the same "
    "fields.\n"
    "An export also has available, reserved, sold, version and updated_ms, "
    "which\n"
    "import passes by. Attributes that a row does not name stay as they are.\n"
    "\n"
    "A row with an error is told with its line, and ends the import; rows "
    "behind\n"
    "it may be in already. With --keep-going all others are imported.\n"
    "\n"
    "exit code: 0 all rows, 1 some or none, 64 wrong command line, 65 the "
    "server\n"
    "refused one, 69 no server\n";

static const char examples[] =
    "  holdfast stock import products.csv\n"
    "  holdfast stock import - --format json --keep-going <products\n"
    "  holdfast stock export products.jsonl\n";

static bool ends_with(const char *path, const char *end)
{
    size_t len = strlen(path);

    return len >= strlen(end) && strcmp(path + len - strlen(end), end) == 0;
}

/* By --format, else by the ending. False: neither says. */
static bool find_format(const char *path, enum rows_format *out)
{
    bool json = ends_with(path, ".json") || ends_with(path, ".jsonl") ||
                ends_with(path, ".ndjson");
    bool csv = ends_with(path, ".csv");

    if (format_name != NULL) {
        json = strcmp(format_name, "json") == 0;
        csv = strcmp(format_name, "csv") == 0;
    }
    *out = json ? ROWS_JSON : ROWS_CSV;
    return json || csv;
}

static int run(const char *path, bool in)
{
    static struct transfer t;
    bool standard = strcmp(path, "-") == 0;

    t = (struct transfer){.path = standard ? in ? "stdin" : "stdout" : path,
                          .draws = isatty(STDERR_FILENO) == 1,
                          .began_ns = client_now_ns()};
    (void)find_format(path, &t.format);
    t.file = standard ? in ? stdin : stdout : fopen(path, in ? "r" : "w");
    if (t.file == NULL)
        return cannot(&t, "open");
    int code = in ? import(&t) : export(&t);
    if (!standard && fclose(t.file) != 0 && code == CLI_DONE)
        code = cannot(&t, "write");
    call_close(&call);
    return code;
}

static int transfer_main(int argc, char **argv)
{
    const struct args_option options[] = {
        ARGS_TEXT("format", "csv|json",
                  "what the file has (by its ending: .csv, .json, .jsonl, "
                  ".ndjson)",
                  format_name),
        ARGS_FLAG("keep-going", "count rows with errors and go on", keep_going),
        ARGS_FLAG("dry-run", "import: read and check, change nothing", dry_run),
        CLIENT_OPTIONS(&call.address),
    };
    const struct args_spec spec = {
        .name = "stock",
        .usage = "import FILE|- | export FILE|- [options]",
        .about = about,
        .examples = examples,
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    enum rows_format format;
    struct args args;

    int code = client_args(&spec, argc, argv, &call.address, &args);
    if (code != ARGS_GO)
        return code;
    bool in = strcmp(args.words[0], "import") == 0;
    call.name = in ? "stock import" : "stock export";
    if (args.count != 2 || args.rest != NULL)
        return args_wrong(&spec, "one file is needed, or -");
    if (format_name != NULL ? !find_format("", &format)
                            : !find_format(args.words[1], &format))
        return args_wrong(&spec, "--format is csv or json");
    if (dry_run && !in)
        return args_wrong(&spec, "--dry-run belongs to import");
    return run(args.words[1], in);
}

int stock_main(int argc, char **argv)
{
    bool transfer = argc > 1 && (strcmp(argv[1], "import") == 0 ||
                                 strcmp(argv[1], "export") == 0);

    return transfer ? transfer_main(argc, argv) : plain_main(argc, argv);
}
