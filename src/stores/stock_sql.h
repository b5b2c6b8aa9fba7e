/* stock_sql.h - what is said to PostgreSQL: the statements, prepared in every
 * connection, and the migrations that make the tables.
 *
 * Names of tables stand without their schema, which is the only one on the
 * search_path of a connection.
 */
#ifndef STORES_STOCK_SQL_H
#define STORES_STOCK_SQL_H

#include "stores/store_postgres_link.h"

enum stock_sql {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_LOCK,        /* skus, ids: the products, also those of the ids */
    SQL_LOCK_FREE,   /* the same, less those that others have locked */
    SQL_READ,        /* the same, all of them, without a lock */
    SQL_LOCK_ONLY,   /* skus: nothing is told */
    SQL_BOOKINGS,    /* ids */
    SQL_LINES,       /* ids */
    SQL_NOW,         /* the time */
    SQL_UPDATE,      /* products */
    SQL_INSERT,      /* products */
    SQL_DELETE,      /* products */
    SQL_BOOK,        /* reservations */
    SQL_LIST,        /* items */
    SQL_REBOOK,      /* reservations that were there */
    SQL_TELL,        /* the outbox */
    SQL_TAKE,        /* the atomic strategy's statement */
    SQL_OVERDUE,     /* skus: reservations of them */
    SQL_DUE,         /* how many: reservations, locked */
    SQL_GET,         /* skus */
    SQL_LOOK,        /* ids */
    SQL_MARK,        /* writer, its next number: with a commit */
    SQL_ENTER,       /* a row for a connection: its writer */
    SQL_LEAVE,       /* writer */
    SQL_END_BACKEND, /* writer: its session */
    SQL_FENCE,       /* writer: nothing more is committed; its last number */
    SQL_COUNT
};

extern const char *const hf_stock_sql[SQL_COUNT];
/* The name under which it is prepared. */
extern const char *const hf_stock_sql_names[SQL_COUNT];

/* A change of the schema that is made once. */
struct stock_migration {
    const char *sql;
};

#define STOCK_MIGRATIONS 1
extern const struct stock_migration hf_stock_migrations[STOCK_MIGRATIONS];

/* Makes or checks the tables. HF_FAILED: a text in the link says why. */
enum hf_status hf_stock_migrate(struct store_link *link, const char *schema);

#endif
