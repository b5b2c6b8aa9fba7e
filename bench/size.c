/* size.c - how much memory a held lock, a waiter and a product take.
 *
 *   size locks|waiters|products COUNT
 *
 * Fills an engine through its commands with names (and owners) of 16 bytes and
 * prints the bytes per thing twice: by the growth of the process, which is
 * what the machine pays, and by the engine's own count. Each waiter waits for
 * one of a thousand locks, which are held before.
 */
#include <unistd.h>

#include "drive.h"

#define WAITED_LOCKS 1000u

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*u %llu", &pages) != 1)
        drive_fail("/proc/self/statm", "cannot be read");
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t count_locks(const struct hold_counts *counts)
{
    return counts->locks;
}

static uint64_t count_waiters(const struct hold_counts *counts)
{
    return counts->waiters;
}

static uint64_t count_products(const struct hold_counts *counts)
{
    return counts->products;
}

static struct hold_command command;
static char name[DRIVE_NAME_BYTES], owner[DRIVE_NAME_BYTES];

static void make_lock(uint64_t i)
{
    drive_lock(&command, drive_name(name, 'l', i), drive_name(owner, 'o', i));
}

static void make_waiter(uint64_t i)
{
    drive_lock(&command, drive_name(name, 'l', i % WAITED_LOCKS),
               drive_name(owner, 'w', i));
    command.flags = HOLD_FOREVER;
}

static void make_product(uint64_t i)
{
    drive_stock(&command, drive_name(name, 'p', i));
}

static const struct kind {
    const char *name;
    void (*make)(uint64_t i);
    uint64_t (*count)(const struct hold_counts *counts);
} kinds[] = {{"locks", make_lock, count_locks},
             {"waiters", make_waiter, count_waiters},
             {"products", make_product, count_products}};

static const struct kind *find_kind(const char *text)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(text, kinds[i].name))
            return &kinds[i];
    drive_fail("usage", "size locks|waiters|products COUNT");
    return NULL;
}

int main(int argc, char **argv)
{
    const struct kind *kind = find_kind(argc == 3 ? argv[1] : "");
    uint64_t count = drive_number(argv[2]);
    struct hold_engine *engine = drive_new(&command);
    struct hold_counts before, after;
    for (uint64_t i = 0; kind->make == make_waiter && i < WAITED_LOCKS; i++) {
        make_lock(i);
        drive_write(engine, &command);
    }
    hold_count(engine, &before);
    uint64_t resident = resident_bytes();
    for (uint64_t i = 0; i < count; i++) {
        kind->make(i);
        drive_write(engine, &command);
    }
    hold_count(engine, &after);
    if (kind->count(&after) != count)
        drive_fail("size", "the engine counts other than was put in");
    resident = resident_bytes() - resident;
    printf("%s %llu resident %.1f counted %.1f\n", kind->name,
           (unsigned long long)count, (double)resident / (double)count,
           (double)(after.memory_bytes - before.memory_bytes) / (double)count);
    hold_free(engine);
    return 0;
}
