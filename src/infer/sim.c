/* The simulated accelerator: one device a session that takes in + a + b * rows + out for a
 * batch and uses no CPU meanwhile. docs/simulated.md says what it computes.
 *
 * Instance threads. Invariant: a batch begins at the later of its start() and the end of the
 * batch before it, so device time never overlaps, whichever slots the batches are from.
 * Nothing here needs ONNX Runtime, so the sanitizers and machines without it run the whole
 * server on it. Read next: sim_spec.h; batch/ for who calls start and finish. */
#include "infer/backend.h"

#include "base/clock.h"
#include "infer/sim_spec.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { PLAIN_WIDTH = 16, TEXT_CLASSES = 2, TEXT_IDS = 0, TEXT_MASK = 1, TEXT_INPUTS = 3 };

struct session {
    struct sim_spec spec;
    bool is_text;
    struct signature signature;
    char description[160];
    pthread_mutex_t lock; /* held for a few additions; guards the two below */
    uint64_t device_free_ns;
    uint64_t device_total_ns; /* model time of all batches accepted, the running ones included */
};

struct slot {
    struct session *session;
    const struct tensor *inputs; /* of the batch started; the caller keeps their bytes */
    struct tensor input_copies[TEXT_INPUTS];
    uint64_t end_ns;      /* when the device is done with it */
    float *results;       /* (rows, 16) or (rows, 2) */
    size_t results_size;  /* bytes allocated */
    bool slack_set;       /* by slack_thread */
    pthread_t slack_thread;
};

static bool io_set(struct io_spec *io, const char *name, enum dtype dtype, int64_t width,
                   const char *width_name) {
    *io = (struct io_spec){.name = strdup(name), .dtype = dtype, .rank = 2, .shape = {-1, width}};
    io->dim_names[0] = strdup("batch");
    io->dim_names[1] = width_name ? strdup(width_name) : NULL;
    return io->name && io->dim_names[0] && (!width_name || io->dim_names[1]);
}

static bool signature_fill(struct signature *signature, bool is_text) {
    if (!is_text) {
        signature->input_count = signature->output_count = 1;
        return io_set(&signature->inputs[0], "INPUT0", DTYPE_FP32, PLAIN_WIDTH, NULL) &&
               io_set(&signature->outputs[0], "OUTPUT0", DTYPE_FP32, PLAIN_WIDTH, NULL);
    }
    signature->input_count = TEXT_INPUTS;
    signature->output_count = 1;
    return io_set(&signature->inputs[TEXT_IDS], "input_ids", DTYPE_INT64, -1, "sequence") &&
           io_set(&signature->inputs[TEXT_MASK], "attention_mask", DTYPE_INT64, -1, "sequence") &&
           io_set(&signature->inputs[2], "token_type_ids", DTYPE_INT64, -1, "sequence") &&
           io_set(&signature->outputs[0], "logits", DTYPE_FP32, TEXT_CLASSES, NULL);
}

static void sim_session_close(struct session *session) {
    if (!session) {
        return;
    }
    signature_done(&session->signature);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

static enum status sim_session_open(const struct session_config *config, struct session **out,
                                    struct err *err) {
    struct sim_spec spec;
    const enum status status = sim_spec_parse(config->simulate ? config->simulate : "", &spec, err);
    if (status != ST_OK) {
        return status;
    }
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        return err_set(err, ST_NO_MEMORY, "simulated accelerator: out of memory");
    }
    pthread_mutex_init(&session->lock, NULL);
    session->spec = spec;
    session->is_text = config->simulate_text;
    char text[120];
    snprintf(session->description, sizeof session->description, "simulated accelerator %s",
             sim_spec_text(&spec, text, sizeof text));
    if (!signature_fill(&session->signature, session->is_text)) {
        sim_session_close(session);
        return err_set(err, ST_NO_MEMORY, "simulated accelerator: out of memory");
    }
    *out = session;
    return ST_OK;
}

static const struct signature *sim_signature(const struct session *session) {
    return &session->signature;
}

static const char *sim_describe(const struct session *session) { return session->description; }

/* Batches that are accepted run back to back until device_free_ns, so what is left of them is
 * one interval from now. */
static uint64_t sim_device_busy_ns(const struct session *session) {
    struct session *own = (struct session *)session; /* the lock is not part of the value */
    const uint64_t now_ns = mono_ns();
    pthread_mutex_lock(&own->lock);
    const uint64_t left_ns = own->device_free_ns > now_ns ? own->device_free_ns - now_ns : 0;
    const uint64_t busy_ns = own->device_total_ns - left_ns;
    pthread_mutex_unlock(&own->lock);
    return busy_ns;
}

static enum status sim_slot_open(struct session *session, struct slot **out, struct err *err) {
    struct slot *slot = calloc(1, sizeof *slot);
    if (!slot) {
        return err_set(err, ST_NO_MEMORY, "simulated accelerator: out of memory");
    }
    slot->session = session;
    *out = slot;
    return ST_OK;
}

static void sim_slot_close(struct slot *slot) {
    if (slot) {
        free(slot->results);
        free(slot);
    }
}

/* All inputs of a signature here are (rows, n) with the same rows, and the text form's three
 * have the same n. */
static enum status inputs_check(const struct session *session, const struct tensor *inputs,
                                struct err *err) {
    for (uint32_t i = 0; i < session->signature.input_count; i++) {
        const struct io_spec *io = &session->signature.inputs[i];
        const struct tensor *tensor = &inputs[i];
        size_t count = 0;
        char shape[96];
        const bool is_valid = tensor->dtype == io->dtype && tensor->rank == 2 &&
                              tensor_elements(tensor->shape, 2, &count) &&
                              tensor->size == count * dtype_size(io->dtype) &&
                              (io->shape[1] < 0 || tensor->shape[1] == io->shape[1]) &&
                              tensor->shape[0] == inputs[0].shape[0] &&
                              (io->shape[1] >= 0 || tensor->shape[1] == inputs[0].shape[1]);
        if (!is_valid) {
            return err_set(err, ST_INVALID, "input %s: %s %s with %zu bytes does not fit the model",
                           io->name, dtype_name(tensor->dtype),
                           tensor_shape_text(tensor->shape, tensor->rank, shape, sizeof shape),
                           tensor->size);
        }
    }
    return ST_OK;
}

static enum status results_reserve(struct slot *slot, struct err *err) {
    const struct session *session = slot->session;
    const size_t width = session->is_text ? TEXT_CLASSES : PLAIN_WIDTH;
    const size_t size = (size_t)slot->input_copies[0].shape[0] * width * sizeof(float);
    if (size <= slot->results_size && slot->results) {
        return ST_OK;
    }
    float *results = realloc(slot->results, size > 0 ? size : 1);
    if (!results) {
        return err_set(err, ST_NO_MEMORY, "simulated accelerator: no memory for %zu bytes", size);
    }
    slot->results = results;
    slot->results_size = size;
    return ST_OK;
}

static enum status sim_start(struct slot *slot, const struct tensor *inputs, uint32_t rows,
                             struct err *err) {
    assert(!slot->inputs);
    struct session *session = slot->session;
    const enum status status = inputs_check(session, inputs, err);
    if (status != ST_OK) {
        return status;
    }
    memcpy(slot->input_copies, inputs, session->signature.input_count * sizeof *inputs);
    slot->inputs = slot->input_copies;
    const uint64_t cost_ns = sim_spec_batch_ns(&session->spec, rows);
    const uint64_t now_ns = mono_ns();
    pthread_mutex_lock(&session->lock);
    const uint64_t begin_ns = session->device_free_ns > now_ns ? session->device_free_ns : now_ns;
    session->device_free_ns = begin_ns + cost_ns;
    session->device_total_ns += cost_ns;
    pthread_mutex_unlock(&session->lock);
    slot->end_ns = begin_ns + cost_ns;
    return ST_OK;
}

/* OUTPUT0 = INPUT0 + 1. False when the spec says that the batch fails. */
static bool plain_compute(const struct sim_spec *spec, const struct tensor *input, float *out) {
    const float *in = input->data; /* (rows, 16) */
    const size_t count = input->size / sizeof *in;
    bool has_nan = false;
    for (size_t i = 0; i < count; i++) {
        has_nan = has_nan || isnan(in[i]);
        out[i] = in[i] + 1;
    }
    return !(has_nan && spec->fails_on_nan);
}

/* FNV-1a over the real ids of each row: padding never changes an answer, and an answer that
 * went to another request shows. */
static bool text_compute(const struct sim_spec *spec, const struct tensor *inputs, float *out) {
    const size_t rows = (size_t)inputs[TEXT_IDS].shape[0];
    const size_t length = (size_t)inputs[TEXT_IDS].shape[1];
    const int64_t *ids = inputs[TEXT_IDS].data; /* (rows, length) */
    const int64_t *mask = inputs[TEXT_MASK].data;
    bool has_fail_id = false;
    for (size_t row = 0; row < rows; row++) {
        uint64_t hash = UINT64_C(14695981039346656037);
        for (size_t i = row * length; i < (row + 1) * length; i++) {
            if (mask[i] == 0) {
                continue;
            }
            has_fail_id = has_fail_id || ids[i] == spec->fail_id;
            for (unsigned byte = 0; byte < 8; byte++) {
                hash ^= (uint64_t)ids[i] >> (8 * byte) & 0xff;
                hash *= UINT64_C(1099511628211);
            }
        }
        out[row * TEXT_CLASSES] = ((float)(hash & 0xffff) - 32768) / 8192;
        out[row * TEXT_CLASSES + 1] = ((float)(hash >> 16 & 0xffff) - 32768) / 8192;
    }
    return !(has_fail_id && spec->fails_on_id);
}

/* A timer slack of 1 ns instead of 50 us: the simulated device should be late by the wake-up
 * alone. The slack belongs to the thread, so it is set once a thread, not once a batch. */
static void sleep_until(struct slot *slot, uint64_t end_ns) {
    if (!slot->slack_set || !pthread_equal(slot->slack_thread, pthread_self())) {
        prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
        slot->slack_thread = pthread_self();
        slot->slack_set = true;
    }
    const struct timespec until = {.tv_sec = (time_t)(end_ns / 1000000000),
                                   .tv_nsec = (long)(end_ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static enum status sim_finish(struct slot *slot, struct tensor *out_outputs, struct err *err) {
    assert(slot->inputs);
    const struct session *session = slot->session;
    const struct tensor *inputs = slot->inputs;
    slot->inputs = NULL;
    /* The answers are computed while the device "works", so that they add nothing to its time. */
    const enum status status = results_reserve(slot, err);
    const bool is_good = status == ST_OK &&
                         (session->is_text ? text_compute(&session->spec, inputs, slot->results)
                                           : plain_compute(&session->spec, inputs, slot->results));
    sleep_until(slot, slot->end_ns);
    if (status != ST_OK) {
        return status;
    }
    if (!is_good) {
        return err_set(err, ST_INTERNAL,
                       "simulated accelerator: the batch of %lld failed, as fail=%s asks",
                       (long long)inputs[0].shape[0], session->is_text ? "id:N" : "nan");
    }
    const struct io_spec *io = &session->signature.outputs[0];
    const size_t width = session->is_text ? TEXT_CLASSES : PLAIN_WIDTH;
    const size_t rows = (size_t)inputs[0].shape[0];
    out_outputs[0] = (struct tensor){.name = view_of(io->name),
                                     .dtype = DTYPE_FP32,
                                     .rank = 2,
                                     .shape = {(int64_t)rows, (int64_t)width},
                                     .data = slot->results,
                                     .size = rows * width * sizeof(float)};
    return ST_OK;
}

const struct backend backend_sim = {
    .name = "simulated",
    .is_simulated = true,
    .is_async = true,
    .session_open = sim_session_open,
    .session_close = sim_session_close,
    .signature = sim_signature,
    .describe = sim_describe,
    .device_busy_ns = sim_device_busy_ns,
    .slot_open = sim_slot_open,
    .slot_close = sim_slot_close,
    .start = sim_start,
    .finish = sim_finish,
};
