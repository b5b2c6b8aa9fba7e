/* threads.c - helper threads that start together. */
#include "support/threads.h"

#include <pthread.h>

#include "support/test.h"

struct helper {
    pthread_t thread;
    pthread_barrier_t *gate;
    void (*body)(void *context, int index);
    void *context;
    int index;
};

static void *helper_main(void *argument)
{
    struct helper *helper = argument;

    pthread_barrier_wait(helper->gate);
    helper->body(helper->context, helper->index);
    return NULL;
}

void test_threads(int count, void (*body)(void *context, int index),
                  void *context)
{
    struct helper helpers[TEST_THREADS_MAX];
    pthread_barrier_t gate;

    CHECK(count > 0 && count <= TEST_THREADS_MAX);
    CHECK_EQ(pthread_barrier_init(&gate, NULL, (unsigned)count), 0);
    for (int i = 0; i < count; i++) {
        helpers[i] = (struct helper){0, &gate, body, context, i};
        CHECK_EQ(
            pthread_create(&helpers[i].thread, NULL, helper_main, &helpers[i]),
            0);
    }
    for (int i = 0; i < count; i++)
        pthread_join(helpers[i].thread, NULL);
    pthread_barrier_destroy(&gate);
}
