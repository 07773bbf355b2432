/* Lines of a trace from anybody: the member scanner, and the two kinds of lines on top of it.
 * Every line of the input is tried as each; texts are taken without their escapes. */
#include "diag/jsonl.h"
#include "diag/run_client.h"
#include "diag/run_read.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void scan(struct view line) {
    struct jsonl jsonl;
    struct view key;
    struct jsonl_value value;
    char text[32];
    jsonl_begin(&jsonl, line);
    while (jsonl_next(&jsonl, &key, &value)) {
        if (jsonl_text(&value, text, sizeof text) >= sizeof text) abort();
        (void)jsonl_double(&value);
    }
    if (jsonl.at > jsonl.end) abort();
}

static void read_lines(struct run *run, const char *at, const char *end, int pass,
                       struct run_client *client) {
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const struct view line = {.data = at,
                                  .size = (size_t)((newline == NULL ? end : newline) - at)};
        enum status status = ST_OK;
        if (pass == 0) {
            scan(line);
            status = run_read_request(run, line, NULL);
            if (status == ST_OK && run->count == 0 && run->warm_up == 0) abort();
            status = run_read_batch(run, line, NULL);
        } else {
            status = run_client_line(client, line, NULL);
        }
        (void)status;
        at = newline == NULL ? end : newline + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    struct run run;
    struct run_client *client = NULL;
    run_init(&run);
    read_lines(&run, text, text + size, 0, NULL);
    if (run_client_create(&run, &client, NULL) == ST_OK)
        read_lines(&run, text, text + size, 1, client);
    run_client_free(client);
    run_keep_step(&run);
    if (run_finish(&run, NULL, NULL) != ST_OK) run.count = 0;
    run_done(&run);
    return 0;
}
