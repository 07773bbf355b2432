/* Trace records to JSON lines. The writer thread competes with serving for a processor, and a
 * request has some forty fields: hence text with known lengths and a reserved buffer instead
 * of one checked append a field.
 *
 * Thread: the tracer's writer thread (any, in fact: no state).
 * Invariant: a line is written whole or not at all.
 * Next: docs/trace.md (the fields), trace_sample.h (which requests get here). */
#include "measure/trace_json.h"

#include "sync/role.h"

/* Keys, digits and names of a line, the id and the model's name apart: 45 fields and 11 steps of
 * at most 24 bytes of key and 20 of digits. */
enum { LINE_MAX_BYTES = 3072 };

static const char *const status_texts[ST_COUNT] = {
    [ST_OK] = "ok",
    [ST_INVALID] = "invalid",
    [ST_NOT_FOUND] = "not_found",
    [ST_METHOD] = "method",
    [ST_REQUEST_TIMEOUT] = "request_timeout",
    [ST_TOO_LARGE] = "too_large",
    [ST_UNSUPPORTED_TYPE] = "unsupported_type",
    [ST_HEADER_TOO_LARGE] = "header_too_large",
    [ST_CANCELLED] = "cancelled",
    [ST_INTERNAL] = "internal",
    [ST_UNSUPPORTED] = "unsupported",
    [ST_OVERLOADED] = "overloaded",
    [ST_UNAVAILABLE] = "unavailable",
    [ST_EXPIRED] = "expired",
    [ST_TIMEOUT] = "timeout",
    [ST_NO_MEMORY] = "no_memory",
    [ST_IO] = "io",
};

static const char *const sampled_texts[SAMPLED_COUNT] = {
#define X(name, text) [SAMPLED_##name] = text,
    SAMPLED_TABLE(X)
#undef X
};

const char *trace_json_status(unsigned status) {
    return status < ST_COUNT && status_texts[status] != NULL ? status_texts[status] : "unknown";
}

static char *put_bytes(char *at, const char *text, size_t size) {
    memcpy(at, text, size);
    return at + size;
}

static const char digit_pairs[] = "00010203040506070809101112131415161718192021222324"
                                  "25262728293031323334353637383940414243444546474849"
                                  "50515253545556575859606162636465666768697071727374"
                                  "75767778798081828384858687888990919293949596979899";

static unsigned digit_count(uint64_t value) {
    static const uint64_t powers[] = {
        1ull, 10ull, 100ull, 1000ull, 10000ull, 100000ull, 1000000ull, 10000000ull, 100000000ull,
        1000000000ull, 10000000000ull, 100000000000ull, 1000000000000ull, 10000000000000ull,
        100000000000000ull, 1000000000000000ull, 10000000000000000ull, 100000000000000000ull,
        1000000000000000000ull, 10000000000000000000ull};
    /* log10(2) is about 1233/4096: right or one too many. */
    const unsigned guess = (64 - (unsigned)__builtin_clzll(value | 1)) * 1233 >> 12;
    return guess + (value >= powers[guess]);
}

/* Counting first lets the digits go where they belong; by way of a temporary, the copy would
 * wait for the small stores before it. */
static char *put_u64(char *at, uint64_t value) {
    if (value < 10) {
        *at = (char)('0' + value);
        return at + 1;
    }
    char *end = at + digit_count(value);
    char *digit = end;
    while (value >= 100) {
        digit -= 2;
        memcpy(digit, digit_pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) memcpy(digit - 2, digit_pairs + value * 2, 2);
    else digit[-1] = (char)('0' + value);
    return end;
}

/* literal is a string literal: its length is known when this is compiled. */
#define PUT(at, literal) put_bytes(at, literal, sizeof(literal) - 1)
#define PUT_U64(at, key, value) put_u64(PUT(at, ",\"" key "\":"), value)

static char *put_text(char *at, const char *text) {
    *at++ = '"';
    at = put_bytes(at, text, strlen(text));
    *at++ = '"';
    return at;
}

static char *put_stages(char *at, const uint64_t *durations) {
#define X(name, text, help) at = PUT_U64(at, text "_ns", durations[STAGE_##name]);
    STAGE_TABLE(X)
#undef X
    return at;
}

/* "steps":{...}: only those that happened, since a request has three or four of them. */
static char *put_steps(char *at, const uint32_t *step_ns) {
    at = PUT(at, ",\"steps\":");
    char *const begin = at;
#define X(name, text, stage, help)                                                             \
    if (step_ns[STEP_##name] != 0) at = PUT_U64(at, text, step_ns[STEP_##name]);
    STEP_TABLE(X)
#undef X
    if (at == begin) return PUT(at, "{}");
    *begin = '{'; /* in place of the first one's comma */
    return PUT(at, "}");
}

/* 0 to 1 in millionths: a printf here would cost as much as half the line. */
static char *put_share(char *at, double share) {
    const uint64_t millionths = (uint64_t)(share * 1e6 + 0.5);
    if (millionths >= 1000000) return PUT(at, "1");
    if (millionths == 0) return PUT(at, "0");
    char text[16];
    const int size = 8;
    uint64_t rest = millionths;
    for (int i = size - 1; i >= 2; i--, rest /= 10) text[i] = (char)('0' + rest % 10);
    text[0] = '0';
    text[1] = '.';
    return put_bytes(at, text, (size_t)size);
}

static char *put_queue(char *at, const struct trace_record *record) {
    const bool is_batched = record->batch != 0;
    at = PUT_U64(at, "lock_wait_ns", record->lock_wait_ns);
    at = PUT(at, ",\"lock_holder\":");
    at = put_text(at, record->lock_wait_ns != 0 && record->lock_holder < ROLE_COUNT
                          ? role_name((enum role)record->lock_holder)
                          : "none");
    at = PUT_U64(at, "batch", record->batch);
    at = PUT_U64(at, "batch_size", record->batch_size);
    at = PUT_U64(at, "rows", record->rows);
    at = PUT(at, ",\"reason\":");
    at = put_text(at, is_batched ? reason_name((enum reason)record->reason) : "none");
    at = PUT_U64(at, "instance", record->instance);
    at = PUT_U64(at, "tokens", record->tokens);
    at = PUT_U64(at, "padded", record->padded);
    at = PUT_U64(at, "bytes_in", record->bytes_in);
    at = PUT_U64(at, "bytes_out", record->bytes_out);
    if (record->pictures != 0) {
        at = PUT_U64(at, "pictures", record->pictures);
        at = PUT_U64(at, "scalable_jpegs", record->scalable_jpegs);
    }
    at = PUT_U64(at, "enqueued_ns", record->at[AT_ENQUEUED]);
    at = PUT_U64(at, "instance_free_ns", record->at[AT_INSTANCE_FREE]);
    at = PUT_U64(at, "batch_ready_ns", record->at[AT_BATCH_READY]);
    return PUT_U64(at, "taken_ns", record->at[AT_TAKEN]);
}

void trace_json_request(struct buf *out, const struct trace_record *record,
                        struct view model_json, struct sampling sampling) {
    uint64_t durations[STAGE_COUNT];
    const uint64_t total_ns = trace_durations(record, durations);
    const size_t begin = out->size;
    buf_append(out, "{\"id\":", 6);
    buf_json_string(out, (struct view){.data = record->id,
                                       .size = strnlen(record->id, TRACE_ID_SIZE)});
    buf_reserve(out, LINE_MAX_BYTES + model_json.size);
    if (out->failed) {
        out->size = begin;
        return;
    }
    char *at = out->data + out->size;
    at = PUT(at, ",\"model\":");
    at = put_bytes(at, model_json.data, model_json.size);
    at = PUT(at, ",\"status\":");
    at = put_text(at, trace_json_status(record->status));
    at = PUT_U64(at, "http", record->status_http);
    at = PUT(at, ",\"sampled\":");
    at = put_text(at, sampled_texts[sampling.why]);
    at = sampling.is_uniform ? PUT(at, ",\"uniform\":true") : PUT(at, ",\"uniform\":false");
    at = PUT(at, ",\"uniform_share\":");
    at = put_share(at, sampling.share);
    at = PUT_U64(at, "start_ns", trace_end(record) - total_ns);
    at = PUT_U64(at, "total_ns", total_ns);
    at = put_stages(at, durations);
    at = put_steps(at, record->step_ns);
    at = put_queue(at, record);
    at = PUT(at, "}\n");
    out->size = (size_t)(at - out->data);
}

void trace_json_batch(struct buf *out, const struct batch_record *record,
                      struct view model_json) {
    buf_reserve(out, LINE_MAX_BYTES + model_json.size);
    if (out->failed) return;
    char *at = out->data + out->size;
    at = put_u64(PUT(at, "{\"batch\":"), record->batch);
    at = PUT(at, ",\"model\":");
    at = put_bytes(at, model_json.data, model_json.size);
    at = PUT_U64(at, "free_ns", record->free_ns);
    at = PUT_U64(at, "ready_ns", record->ready_ns);
    at = PUT_U64(at, "taken_ns", record->taken_ns);
    at = PUT_U64(at, "inputs_ready_ns", record->inputs_ready_ns);
    at = PUT_U64(at, "executed_ns", record->executed_ns);
    at = PUT_U64(at, "outputs_ready_ns", record->outputs_ready_ns);
    at = PUT_U64(at, "inline_preprocess_ns", record->inline_preprocess_ns);
    at = PUT_U64(at, "real_elements", record->real_elements);
    at = PUT_U64(at, "padded_elements", record->padded_elements);
    at = PUT_U64(at, "cpu_ns", record->cpu_ns);
    at = PUT_U64(at, "run_delay_ns", record->run_delay_ns);
    at = PUT_U64(at, "requests", record->requests);
    at = PUT_U64(at, "rows", record->rows);
    at = PUT_U64(at, "max_batch", record->max_batch);
    at = PUT_U64(at, "waiting", record->waiting);
    at = PUT_U64(at, "instance", record->instance);
    at = PUT(at, ",\"reason\":");
    at = put_text(at, reason_name((enum reason)record->reason));
    at = record->failed ? PUT(at, ",\"failed\":true") : PUT(at, ",\"failed\":false");
    at = record->simulated ? PUT(at, ",\"simulated\":true}\n") : PUT(at, ",\"simulated\":false}\n");
    out->size = (size_t)(at - out->data);
}
