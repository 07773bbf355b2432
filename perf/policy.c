/* perf/policy: the batching policies on the simulated accelerator (4 ms + 0.05 ms * batch, at
 * most 32, no CPU), in process. Closed loop: clients that come back at once. Open loop: Poisson
 * arrivals at shares of the capacity. All policies in turn, repeated. What is compared is the
 * ratio within a repeat (same seed, moments apart), and of those the median; the table has medians
 * of each policy's own figures. Some four minutes.
 *
 * One driver thread plays all clients: answers reach it through a lock-free queue. Prints a table
 * and, last, one line a goal: NAME FIGURE UNIT goal GOAL ok|short. */
#include "base/clock.h"
#include "engine/engine.h"
#include "sync/parker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { WIDTH = 16, MAX_BATCH = 32, MAX_SAMPLES = 400000, POOL = 8192 };
static const char SPEC[] = "a=4ms,b=0.05ms";
static const double CAPACITY = MAX_BATCH / 5.6e-3; /* 32 / (4 + 32 * 0.05) ms */

struct client {
    struct request request;
    struct tensor input;
    float values[WIDTH];
    uint64_t planned_ns;
    struct client *next_free;
};

struct driver {
    struct engine *engine;
    const struct served_model *served;
    struct mpsc answers;
    struct parker parker;
    struct client *clients;
    struct client *free_list;
    uint64_t *latencies;
    size_t count;
    uint64_t outstanding;
    uint64_t measure_from_ns;
    uint64_t seed;
};

struct result { double qps, p50_ms, p99_ms, busy; };

static void on_done(struct request *request) {
    struct driver *driver = request->owner;
    /* several answers of a batch: one wake */
    if (mpsc_push(&driver->answers, &request->done_node)) parker_wake(&driver->parker, 1);
}

static void submit(struct driver *driver, struct client *client, uint64_t planned_ns) {
    request_clear(&client->request);
    client->planned_ns = planned_ns;
    client->input = (struct tensor){.name = view_of("INPUT0"), .dtype = DTYPE_FP32, .rank = 2,
                                    .shape = {1, WIDTH}, .data = client->values,
                                    .size = sizeof client->values};
    client->request.model = engine_share(driver->served);
    client->request.inputs = &client->input;
    client->request.input_count = 1;
    client->request.on_done = on_done;
    client->request.owner = driver;
    client->request.trace.at[AT_START] = client->request.trace.at[AT_DECODED] = mono_ns();
    driver->outstanding++;
    if (engine_submit(driver->engine, &client->request) != ST_OK) {
        fprintf(stderr, "submit: %s\n", client->request.err.text);
        exit(1);
    }
}

/* Takes answers in; gives the list of their clients. */
static struct client *take_answers(struct driver *driver) {
    struct client *list = NULL;
    struct mpsc_node *node = mpsc_take_all(&driver->answers);
    const uint64_t now_ns = mono_ns();
    while (node != NULL) {
        struct client *client =
            (struct client *)((char *)node - offsetof(struct request, done_node));
        node = node->next;
        driver->outstanding--;
        if (client->planned_ns >= driver->measure_from_ns && driver->count < MAX_SAMPLES)
            driver->latencies[driver->count++] = now_ns - client->planned_ns;
        client->next_free = list;
        list = client;
    }
    return list;
}

static void wait_answers(struct driver *driver, uint64_t until_ns) {
    const uint32_t key = parker_prepare(&driver->parker);
    if (mpsc_is_empty(&driver->answers)) parker_wait(&driver->parker, key, until_ns);
    else parker_cancel(&driver->parker);
}

static double uniform(struct driver *driver) { /* splitmix64 */
    uint64_t z = (driver->seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void drain(struct driver *driver) {
    while (driver->outstanding > 0) {
        wait_answers(driver, UINT64_MAX);
        take_answers(driver);
    }
}

/* Starts so many clients, and plays all that there are until end_ns. */
static void closed_loop(struct driver *driver, unsigned starting, uint64_t end_ns) {
    for (unsigned i = 0; i < starting; i++) submit(driver, &driver->clients[i], mono_ns());
    engine_flush(driver->engine);
    while (mono_ns() < end_ns) {
        wait_answers(driver, end_ns);
        for (struct client *client = take_answers(driver); client != NULL;) {
            struct client *next = client->next_free;
            submit(driver, client, mono_ns());
            client = next;
        }
        engine_flush(driver->engine);
    }
}

static void open_loop(struct driver *driver, double rate, uint64_t start_ns, uint64_t end_ns) {
    driver->free_list = NULL;
    for (unsigned i = 0; i < POOL; i++) {
        driver->clients[i].next_free = driver->free_list;
        driver->free_list = &driver->clients[i];
    }
    double planned = (double)start_ns;
    for (;;) {
        planned += -log(uniform(driver)) / rate * 1e9;
        if (planned >= (double)end_ns) return;
        while ((double)mono_ns() < planned) {
            wait_answers(driver, (uint64_t)planned);
            for (struct client *client = take_answers(driver); client != NULL;) {
                struct client *next = client->next_free;
                client->next_free = driver->free_list;
                driver->free_list = client;
                client = next;
            }
        }
        struct client *client = driver->free_list;
        if (client == NULL) {
            fprintf(stderr, "more than %d requests in flight\n", POOL);
            exit(1);
        }
        driver->free_list = client->next_free;
        submit(driver, client, (uint64_t)planned);
        engine_flush(driver->engine);
    }
}

/* clients > 0: closed loop; else Poisson at rate. */
static struct result run(int policy, uint64_t delay_us, unsigned clients, double rate,
                         double seconds, uint64_t seed) {
    struct engine_config config = {.simulate = SPEC, .policy = policy, .max_delay_us = delay_us,
                                   .max_batch = MAX_BATCH, .intra_op_threads = 1, .workers = 1,
                                   .queue_limit = 100000, .trace_sample = 0};
    struct driver driver = {.seed = seed};
    struct err err = {""};
    if (engine_create(&config, &driver.engine, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    driver.served = engine_only(driver.engine);
    mpsc_init(&driver.answers);
    parker_init(&driver.parker);
    driver.clients = calloc(POOL, sizeof *driver.clients);
    driver.latencies = malloc(MAX_SAMPLES * sizeof *driver.latencies);
    for (unsigned i = 0; i < POOL; i++) request_init(&driver.clients[i].request);
    const uint64_t start_ns = mono_ns();
    driver.measure_from_ns = start_ns + 300000000; /* the policy learns first */
    const uint64_t end_ns = driver.measure_from_ns + (uint64_t)(seconds * 1e9);
    struct batcher_stats before, after;
    if (clients > 0) closed_loop(&driver, clients, driver.measure_from_ns);
    engine_stats(driver.served, &before);
    const uint64_t counted_from_ns = mono_ns();
    if (clients > 0) closed_loop(&driver, 0, end_ns);
    else open_loop(&driver, rate, start_ns, end_ns);
    const double span = (double)(mono_ns() - counted_from_ns);
    engine_stats(driver.served, &after);
    const size_t measured = driver.count;
    drain(&driver);
    const size_t n = clients > 0 ? measured : driver.count;
    qsort(driver.latencies, n, sizeof *driver.latencies, compare);
    const struct result result = {
        .qps = (double)n / seconds,
        .p50_ms = (double)driver.latencies[n / 2] / 1e6,
        .p99_ms = (double)driver.latencies[(size_t)((double)n * 0.99)] / 1e6,
        .busy = (double)(after.device_busy_ns - before.device_busy_ns) / span,
    };
    for (unsigned i = 0; i < POOL; i++) request_done(&driver.clients[i].request);
    engine_release(driver.served);
    engine_free(driver.engine);
    free(driver.clients);
    free(driver.latencies);
    return result;
}

enum { POLICIES = 4, REPEATS = 5 };
static const struct { const char *name; int kind; uint64_t delay_us; } POLICY[POLICIES] = {
    {"adaptive", POLICY_ADAPTIVE, 0}, {"eager", POLICY_EAGER, 0},
    {"timer 3 ms", POLICY_TIMER, 3000}, {"timer 20 ms", POLICY_TIMER, 20000}};

static double median(double *values) {
    for (int i = 0; i < REPEATS; i++)
        for (int j = i + 1; j < REPEATS; j++)
            if (values[j] < values[i]) {
                const double v = values[i];
                values[i] = values[j];
                values[j] = v;
            }
    return values[REPEATS / 2];
}

/* Of a situation: medians by policy, and adaptive's figures over each policy's. */
struct comparison {
    struct result medians[POLICIES];
    double qps_ratio[POLICIES], p99_ratio[POLICIES];
};

static struct comparison measure(unsigned clients, double rate, double seconds) {
    double qps[POLICIES][REPEATS], p50[POLICIES][REPEATS], p99[POLICIES][REPEATS],
        busy[POLICIES][REPEATS], qps_ratio[POLICIES][REPEATS], p99_ratio[POLICIES][REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        for (int p = 0; p < POLICIES; p++) { /* interleaved: the machine's moods hit all alike */
            const struct result one = run(POLICY[p].kind, POLICY[p].delay_us, clients, rate, seconds,
                                          (uint64_t)r + 1);
            qps[p][r] = one.qps;
            p50[p][r] = one.p50_ms;
            p99[p][r] = one.p99_ms;
            busy[p][r] = one.busy;
        }
        for (int p = 0; p < POLICIES; p++) {
            qps_ratio[p][r] = qps[0][r] / qps[p][r];
            p99_ratio[p][r] = p99[0][r] / p99[p][r];
        }
    }
    struct comparison out;
    for (int p = 0; p < POLICIES; p++) {
        out.medians[p] = (struct result){median(qps[p]), median(p50[p]), median(p99[p]), median(busy[p])};
        out.qps_ratio[p] = median(qps_ratio[p]);
        out.p99_ratio[p] = median(p99_ratio[p]);
        printf("  %-12s %8.0f req/s  P50 %7.2f ms  P99 %7.2f ms  device %3.0f %% busy\n",
               POLICY[p].name, out.medians[p].qps, out.medians[p].p50_ms, out.medians[p].p99_ms,
               out.medians[p].busy * 100);
    }
    fflush(stdout);
    return out;
}

static void goal(const char *name, double figure, const char *unit, double goal_figure, bool at_least) {
    const bool is_ok = at_least ? figure >= goal_figure : figure <= goal_figure;
    printf("%s %.3f %s goal %s%.2f %s\n", name, figure, unit, at_least ? ">=" : "<=", goal_figure,
           is_ok ? "ok" : "short");
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 1.0;
    prctl(PR_SET_TIMERSLACK, 1ul);
    printf("SIMULATED accelerator %s, at most %d a batch; %d interleaved repeats of %.1f s, medians\n",
           SPEC, MAX_BATCH, REPEATS, seconds);
    static const unsigned CLIENTS[] = {12, 21, 32, 50, 200};
    double worst_gain = 1e9, worst_p99 = 0, busy200 = 0;
    for (size_t i = 0; i < sizeof CLIENTS / sizeof *CLIENTS; i++) {
        printf("closed loop, %u clients\n", CLIENTS[i]);
        const struct comparison seen = measure(CLIENTS[i], 0, seconds / 2);
        if (CLIENTS[i] <= 32) {
            worst_gain = fmin(worst_gain, seen.qps_ratio[1]);
            worst_p99 = fmax(worst_p99, seen.p99_ratio[1]);
        }
        if (CLIENTS[i] == 200) busy200 = seen.medians[0].busy;
    }
    static const double LOADS[] = {0.2, 0.5, 0.8, 0.95};
    double worst_open = 0;
    for (size_t i = 0; i < sizeof LOADS / sizeof *LOADS; i++) {
        printf("Poisson, %.0f %% of capacity (%.0f req/s)\n", LOADS[i] * 100, LOADS[i] * CAPACITY);
        const struct comparison seen = measure(0, LOADS[i] * CAPACITY, seconds);
        for (int p = 1; p < POLICIES; p++) worst_open = fmax(worst_open, seen.p99_ratio[p]);
    }
    goal("policy.device_busy_200", busy200, "share", 0.97, true);
    goal("policy.throughput_vs_eager", worst_gain, "x", 1.5, true);
    goal("policy.p99_vs_eager", worst_p99, "x", 0.65, false);
    goal("policy.poisson_p99_vs_best", worst_open, "x", 1.05, false);
    return 0;
}
