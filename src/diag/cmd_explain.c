/* telltale explain DIR: read, look, judge, print. Main thread. Invariant: standard output gets
 * the whole report or nothing. Read next: run_read.c, evidence.c, causes.c, findings.c. */
#include "diag/cmd_explain.h"

#include "base/options.h"
#include "diag/explain_print.h"
#include "diag/run_read.h"

#include <stddef.h>
#include <stdio.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_MISUSED = 2 };
#define SEED 1 /* the same trace gives the same intervals */

struct explain_config {
    const char *client;
    const char *model;
    double slow;
    uint64_t step;
    bool json;
};

static const struct option_spec OPTIONS[] = {
    {"client", OPT_STRING, offsetof(struct explain_config, client), "DIR", NULL, 0, 0, NULL,
     "directory of the client's side, telltale bench --out; default: DIR, if client.jsonl is "
     "there"},
    {"step", OPT_UINT, offsetof(struct explain_config, step), "N", "0", 0, 65535, NULL,
     "step of that bench run to look at; 0: the last"},
    {"model", OPT_STRING, offsetof(struct explain_config, model), "NAME", NULL, 0, 0, NULL,
     "model to look at; default: the one with most requests"},
    {"slow", OPT_DOUBLE, offsetof(struct explain_config, slow), "SHARE", "0.01", 0.0001, 0.4, NULL,
     "how many of the slowest requests are called slow"},
    {"json", OPT_FLAG, offsetof(struct explain_config, json), NULL, NULL, 0, 0, NULL,
     "print JSON (docs/explain.md)"},
};

static const struct command_spec COMMAND = {
    .name = "explain",
    .synopsis = "telltale explain DIR [options]",
    .summary = "Says what made the slowest requests of a run slow: each stage of the slowest 1 % "
               "against the middle of the distribution, then the causes that stand out, with "
               "their figures and the option to change. DIR is where a run was recorded with "
               "telltale serve --trace DIR, or telltale bench --out DIR in process.",
    .epilog = "Examples:\n"
              "  telltale explain run1/trace\n"
              "  telltale explain run1/trace --client run1/bench --json | jq .cause\n"
              "\n"
              "Exit codes: 0 explained, or said that no cause stands out; 1 no usable data;\n"
              "2 misused.",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof OPTIONS[0],
};

static enum status explain(const struct explain_config *config, const char *directory,
                           struct buf *out, struct err *err) {
    const struct run_source source = {.directory = directory, .client = config->client,
                                      .model = config->model, .step = (uint32_t)config->step};
    struct run run;
    struct evidence evidence = {0};
    struct findings findings;
    enum status status = run_read(&source, &run, err);
    if (status == ST_OK) status = evidence_create(&run, config->slow, &evidence, err);
    if (status == ST_OK) {
        findings_of(&evidence, SEED, &findings);
        if (config->json)
            status = explain_json(directory, &evidence, &findings, out);
        else if (!explain_print(directory, &evidence, &findings, out))
            status = ST_NO_MEMORY;
        if (status != ST_OK) err_set(err, status, "no memory for the report");
    }
    evidence_done(&evidence);
    run_done(&run);
    return status;
}

int cmd_explain(int argc, char **argv) {
    struct explain_config config = {0};
    const char **positional = NULL;
    size_t count = 0;
    switch (options_parse(&COMMAND, argc, argv, &config, &positional, &count)) {
    case OPTIONS_HELP_SHOWN: return EXIT_DONE;
    case OPTIONS_BAD: return EXIT_MISUSED;
    case OPTIONS_RUN: break;
    }
    int code = EXIT_MISUSED;
    struct err err = {""};
    struct buf out;
    buf_init(&out);
    if (count != 1) {
        fprintf(stderr, "telltale explain: %s\n",
                count == 0 ? "which run? telltale explain DIR, the directory of a recorded run"
                           : "one directory at a time");
    } else if (explain(&config, positional[0], &out, &err) != ST_OK) {
        fprintf(stderr, "telltale explain: %s\n", err.text);
        code = EXIT_FAILED;
    } else {
        code = fwrite(out.data, 1, out.size, stdout) == out.size ? EXIT_DONE : EXIT_FAILED;
    }
    buf_done(&out);
    options_free(&COMMAND, &config, positional);
    return code;
}
