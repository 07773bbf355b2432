/* perf/queue: the batcher's two hand-overs, ring against mutex, with 1, 4, 32 and 200 producer
 * threads and one consumer that takes all. Interleaved repeats, medians. Each producer pushes as
 * fast as it can; a push is timed by the producer, context switches are the process's.
 *
 * The table says what a push costs and what it costs others; the last lines give the ratio of the
 * time for all items, mutex over ring. */
#include "base/clock.h"
#include "batch/queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { ITEMS = 96000, REPEATS = 5 };

struct producer {
    pthread_t thread;
    struct queue *queue;
    struct job *jobs;
    struct trace_record trace; /* the pushes of one producer may share it */
    uint64_t *push_ns;
    unsigned count;
    pthread_barrier_t *start;
};

struct result { double ns_item, push_p50, push_p99, switches, cpu_ns_item; };

static void *produce(void *argument) {
    struct producer *producer = argument;
    pthread_barrier_wait(producer->start); /* all are there */
    pthread_barrier_wait(producer->start);
    uint64_t before = mono_ns();
    for (unsigned i = 0; i < producer->count; i++) {
        producer->jobs[i].trace = &producer->trace;
        queue_push(producer->queue, &producer->jobs[i], true);
        const uint64_t after = mono_ns();
        producer->push_ns[i] = after - before;
        before = after;
    }
    return NULL;
}

static int compare_u64(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_nvcsw + usage.ru_nivcsw);
}

static struct result run(enum queue_kind kind, unsigned producers, struct job *jobs, uint64_t *push_ns) {
    struct queue *queue = aligned_alloc(64, (sizeof *queue + 63) / 64 * 64);
    struct producer *all = calloc(producers, sizeof *all);
    pthread_barrier_t start;
    if (queue == NULL || all == NULL || queue_init(queue, kind, NULL) != ST_OK) exit(1);
    pthread_barrier_init(&start, NULL, producers + 1);
    const unsigned share = ITEMS / producers;
    for (unsigned i = 0; i < producers; i++) {
        all[i] = (struct producer){.queue = queue, .jobs = jobs + i * share, .count = share,
                                   .push_ns = push_ns + i * share, .start = &start};
        pthread_create(&all[i].thread, NULL, produce, &all[i]);
    }
    pthread_barrier_wait(&start);
    /* Before the second wait: the producers may be done before this thread runs again. */
    const double switched = switches();
    const uint64_t began = mono_ns(), cpu = process_cpu_ns();
    pthread_barrier_wait(&start);
    const unsigned total = share * producers;
    unsigned taken = 0;
    while (taken < total) {
        const struct job *list = queue_take_all(queue);
        if (list == NULL) queue_wait(queue, UINT64_MAX, queue_signals(queue));
        for (; list != NULL; list = (const struct job *)list->node.next) taken++;
    }
    const double span = (double)(mono_ns() - began);
    const double used = (double)(process_cpu_ns() - cpu);
    for (unsigned i = 0; i < producers; i++) pthread_join(all[i].thread, NULL);
    const double switched_after = switches();
    qsort(push_ns, total, sizeof *push_ns, compare_u64);
    queue_done(queue);
    free(queue);
    free(all);
    pthread_barrier_destroy(&start);
    return (struct result){span / total, (double)push_ns[total / 2], (double)push_ns[total / 100 * 99],
                           (switched_after - switched) / total, used / total};
}

static int compare_double(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, REPEATS, sizeof *values, compare_double);
    return values[REPEATS / 2];
}

int main(void) {
    static const unsigned PRODUCERS[] = {1, 4, 32, 200};
    static const char *const NAMES[] = {"ring", "mutex"};
    struct job *jobs = calloc(ITEMS, sizeof *jobs);
    uint64_t *push_ns = malloc(ITEMS * sizeof *push_ns);
    double ratio[4];
    if (jobs == NULL || push_ns == NULL) return 1;
    printf("%d items, one consumer, %d interleaved repeats, medians\n", ITEMS, REPEATS);
    printf("producers queue   ns/item  push P50 ns  push P99 ns  CPU ns/item  switches/item\n");
    for (int p = 0; p < 4; p++) {
        double figures[2][5][REPEATS];
        for (int r = 0; r < REPEATS; r++)
            for (int k = 0; k < 2; k++) {
                const struct result one = run((enum queue_kind)k, PRODUCERS[p], jobs, push_ns);
                const double values[5] = {one.ns_item, one.push_p50, one.push_p99, one.cpu_ns_item,
                                          one.switches};
                for (int f = 0; f < 5; f++) figures[k][f][r] = values[f];
            }
        double item[2];
        for (int k = 0; k < 2; k++) {
            item[k] = median(figures[k][0]);
            printf("%9u %-6s %8.0f %12.0f %12.0f %12.0f %14.4f\n", PRODUCERS[p], NAMES[k], item[k],
                   median(figures[k][1]), median(figures[k][2]), median(figures[k][3]),
                   median(figures[k][4]));
        }
        ratio[p] = item[1] / item[0];
    }
    for (int p = 0; p < 4; p++)
        printf("queue.mutex_over_ring_%u %.2f x goal >=1.00 %s\n", PRODUCERS[p], ratio[p],
               ratio[p] >= 1.0 ? "ok" : "short");
    free(jobs);
    free(push_ns);
    return 0;
}
