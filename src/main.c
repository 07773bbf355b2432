/* The command table: which word runs which command, and nothing else.
 *
 * Thread: main. Invariant: a command gets argv from its own name on and returns the exit
 * code: 0 done, 1 failed, 2 misused. Read next: serve/cmd_serve.c. */
#include "diag/cmd_explain.h"
#include "load/cmd_bench.h"
#include "serve/cmd_serve.h"
#include <stdio.h>
#include <string.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_MISUSED = 2 };

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

static const struct command COMMANDS[] = {
    {"serve", cmd_serve, "serve models over the Open Inference Protocol"},
    {"bench", cmd_bench, "load a model or a server, and measure it"},
    {"explain", cmd_explain, "say what made a run's slowest requests slow"},
};
enum { COMMAND_COUNT = sizeof COMMANDS / sizeof COMMANDS[0] };

static void print_usage(FILE *out) {
    fputs("Usage: telltale COMMAND [options]\n\nCommands:\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-9s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    fputs("\n"
          "telltale COMMAND --help lists the options of a command.\n"
          "telltale --version prints the version.\n",
          out);
}

static const struct command *find_command(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(COMMANDS[i].name, name) == 0)
            return &COMMANDS[i];
    return NULL;
}

/* A full disk or a closed pipe shows only here: what was printed is in stdio's buffer. */
static int finish(int code) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("telltale: while writing to standard output");
        return code == EXIT_DONE ? EXIT_FAILED : code;
    }
    return code;
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_MISUSED;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_usage(stdout);
        return EXIT_DONE;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("telltale %s\n", TELLTALE_VERSION);
        return EXIT_DONE;
    }
    const struct command *command = find_command(word);
    if (command == NULL) {
        fprintf(stderr, "telltale: there is no command '%s': telltale --help lists them\n", word);
        return EXIT_MISUSED;
    }
    return command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    return finish(run(argc, argv));
}
