/* Options from arbitrary text, one argument a line. Beyond memory safety: whatever was taken
 * keeps its limits, and whatever was refused says why. */
#include "base/options.h"
#include "base/buf.h"
#include <stdlib.h>
#include <string.h>

struct config {
    bool flag;
    uint64_t count;
    double rate;
    const char *text;
    struct option_strings many;
    int choice;
    uint64_t time_ns;
    struct option_uints list;
};

#define AT(field) offsetof(struct config, field)
static const struct option_spec SPECS[] = {
    {"flag", OPT_FLAG, AT(flag), NULL, NULL, 0, 0, NULL, ""},
    {"count", OPT_UINT, AT(count), "N", "5", 2, 1000, NULL, ""},
    {"rate", OPT_DOUBLE, AT(rate), "R", "1", 0.5, 100, NULL, ""},
    {"text", OPT_STRING, AT(text), "T", NULL, 0, 0, NULL, ""},
    {"many", OPT_STRINGS, AT(many), "T", NULL, 0, 0, NULL, ""},
    {"choice", OPT_CHOICE, AT(choice), NULL, "b", 0, 0, "a|b|c", ""},
    {"time", OPT_DURATION, AT(time_ns), NULL, "1s", 10, 1e12, NULL, ""},
    {"list", OPT_UINTS, AT(list), "L", NULL, 1, 1e9, NULL, ""},
};
static const struct command_spec COMMAND = {
    .name = "fuzz",
    .synopsis = "",
    .options = SPECS,
    .option_count = sizeof(SPECS) / sizeof(SPECS[0]),
};

enum { ARGUMENTS_MAX = 32 };

static void require(bool holds) {
    if (!holds) {
        abort();
    }
}

static void check_limits(const struct config *config) {
    require(config->count >= 2 && config->count <= 1000);
    require(config->rate >= 0.5 && config->rate <= 100);
    require(config->choice >= 0 && config->choice <= 2);
    require(config->time_ns >= 10 && config->time_ns <= 1000000000000u);
    require(config->list.count <= 10000);
    for (size_t i = 0; i < config->list.count; i++) {
        require(config->list.items[i] >= 1 && config->list.items[i] <= 1000000000u);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    char *argv[ARGUMENTS_MAX + 1] = {"fuzz"};
    int argc = 1;
    require(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    for (char *at = text; at != NULL && argc < ARGUMENTS_MAX; argc++) {
        char *end = strchr(at, '\n');
        argv[argc] = at;
        at = end == NULL ? NULL : end + 1;
        if (end != NULL) {
            *end = '\0';
        }
    }
    struct config config;
    struct err err = {.text = ""};
    const char **positional = NULL;
    size_t count = 0;
    const enum options_result result =
        options_read(&COMMAND, argc, argv, &config, &positional, &count, &err);
    require((result == OPTIONS_BAD) == (err.text[0] != '\0'));
    if (result == OPTIONS_RUN) {
        struct buf json;
        buf_init(&json);
        check_limits(&config);
        options_write_json(&COMMAND, &config, &json);
        require(!json.failed);
        buf_done(&json);
    }
    options_free(&COMMAND, &config, positional);
    free(text);
    return 0;
}
