/* locks_pthread.c - one mutex for all names, and a table of names with a
 * read-write lock each. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/sync/locks.h"

/* ---- One mutex: no names at all, the least that a lock costs. ---- */

struct one {
    struct locks locks; /* first */
    pthread_mutex_t mutex;
};

static void *one_open(const struct contest_work *work)
{
    struct one *one = contest_alloc(sizeof *one);

    (void)work;
    locks_open(&one->locks);
    pthread_mutex_init(&one->mutex, NULL);
    return one;
}

static void one_close(void *self)
{
    free(self);
}

CONTEST_INLINE uint64_t one_acquire(struct locks *locks, uint64_t name,
                                    int shape)
{
    (void)name;
    (void)shape;
    return (uint64_t)pthread_mutex_lock(&((struct one *)locks)->mutex);
}

CONTEST_INLINE void one_release(struct locks *locks, uint64_t name,
                                uint64_t got)
{
    (void)name;
    (void)got;
    pthread_mutex_unlock(&((struct one *)locks)->mutex);
}

static void one_run(struct contest_thread *thread)
{
    locks_run(thread, one_acquire, one_release);
}

const struct contest_side locks_pthread_mutex = {
    .name = "mutex",
    .open = one_open,
    .close = one_close,
    .run = one_run,
    .check = locks_check,
};

/* ---- A table, itself under a read-write lock. ---- */

#define BUCKETS 1024

struct entry {
    struct entry *next;
    pthread_rwlock_t lock;
    char name[LOCKS_BYTES];
};

struct table {
    struct locks locks; /* first */
    pthread_rwlock_t lock;
    struct entry *buckets[BUCKETS];
};

static uint64_t hash(const char *name)
{
    uint64_t value = 14695981039346656037u; /* FNV-1a */

    while (*name != '\0')
        value = (value ^ (unsigned char)*name++) * 1099511628211u;
    return value;
}

static void *table_open(const struct contest_work *work)
{
    struct table *table = contest_alloc(sizeof *table);

    (void)work;
    locks_open(&table->locks);
    pthread_rwlock_init(&table->lock, NULL);
    return table;
}

static void table_close(void *self)
{
    struct table *table = self;

    for (int i = 0; i < BUCKETS; i++)
        while (table->buckets[i] != NULL) {
            struct entry *entry = table->buckets[i];
            table->buckets[i] = entry->next;
            free(entry);
        }
    free(table);
}

static struct entry *find(struct table *table, const char *name)
{
    struct entry *entry = table->buckets[hash(name) % BUCKETS];

    while (entry != NULL && strcmp(entry->name, name) != 0)
        entry = entry->next;
    return entry;
}

/* Entries stay: whoever removes one needs a count of those who use it. */
static struct entry *make(struct table *table, const char *name)
{
    pthread_rwlock_wrlock(&table->lock);
    struct entry *entry = find(table, name);
    if (entry == NULL) {
        struct entry **head = &table->buckets[hash(name) % BUCKETS];
        entry = contest_alloc(sizeof *entry);
        pthread_rwlock_init(&entry->lock, NULL);
        memcpy(entry->name, name, strlen(name) + 1);
        entry->next = *head;
        *head = entry;
    }
    pthread_rwlock_unlock(&table->lock);
    return entry;
}

CONTEST_INLINE uint64_t table_acquire(struct locks *locks, uint64_t name,
                                      int shape)
{
    struct table *table = (struct table *)locks;

    pthread_rwlock_rdlock(&table->lock);
    struct entry *entry = find(table, locks->names[name]);
    pthread_rwlock_unlock(&table->lock);
    if (entry == NULL)
        entry = make(table, locks->names[name]);
    if (shape == LOCKS_SHARED)
        pthread_rwlock_rdlock(&entry->lock);
    else
        pthread_rwlock_wrlock(&entry->lock);
    return (uint64_t)(uintptr_t)entry;
}

CONTEST_INLINE void table_release(struct locks *locks, uint64_t name,
                                  uint64_t got)
{
    (void)locks;
    (void)name;
    pthread_rwlock_unlock(&((struct entry *)(uintptr_t)got)->lock);
}

static void table_run(struct contest_thread *thread)
{
    locks_run(thread, table_acquire, table_release);
}

const struct contest_side locks_pthread_rwlocks = {
    .name = "rwlocks",
    .open = table_open,
    .close = table_close,
    .run = table_run,
    .check = locks_check,
};
