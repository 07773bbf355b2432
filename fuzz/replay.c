/* Replays inputs through a fuzz target where libFuzzer is not: every file given, and every file
 * in every directory given, goes once through LLVMFuzzerTestOneInput. Invariant: an input's
 * last byte is the last byte of its allocation, so that AddressSanitizer sees a read past it.
 * Exit 1 when there was nothing to replay or something could not be read. */
#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct tally {
    unsigned replayed;
    unsigned failed;
};

static void complain(struct tally *tally, const char *path) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    tally->failed++;
}

static void replay_file(struct tally *tally, const char *path, size_t size) {
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size);
    if (file == NULL || (data == NULL && size > 0) || fread(data, 1, size, file) != size) {
        complain(tally, path);
    } else {
        (void)LLVMFuzzerTestOneInput(data, size);
        tally->replayed++;
    }
    free(data);
    if (file != NULL) {
        fclose(file);
    }
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static void replay_path(struct tally *tally, const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        complain(tally, path);
        return;
    }
    if (!S_ISDIR(info.st_mode)) {
        replay_file(tally, path, (size_t)info.st_size);
        return;
    }
    struct dirent **entries = NULL;
    const int count = scandir(path, &entries, is_visible, alphasort);
    if (count < 0) {
        complain(tally, path);
        return;
    }
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(path) + strlen(entries[i]->d_name) + 2;
        char *inner = malloc(length);
        if (inner == NULL) {
            complain(tally, path);
        } else {
            snprintf(inner, length, "%s/%s", path, entries[i]->d_name);
            replay_path(tally, inner);
        }
        free(inner);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv) {
    struct tally tally = {.replayed = 0};
    for (int i = 1; i < argc; i++) {
        replay_path(&tally, argv[i]);
    }
    printf("%u inputs replayed\n", tally.replayed);
    return tally.replayed > 0 && tally.failed == 0 ? 0 : 1;
}
