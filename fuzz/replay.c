/* SPDX-License-Identifier: Apache-2.0 */
/* A main function for fuzz targets without libFuzzer: runs every file of the given folders, and
 * truncations and single-byte changes of each, so that an ordinary test run covers the error paths,
 * too. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A heap copy of the exact size, so that a sanitizer detects a read past the end. */
static void run_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    if (copy == NULL) abort();
    if (size > 0) memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* The number of positions in a file that are changed; REPLAY_PLACES for targets that take
 * milliseconds per input. */
static size_t places(void)
{
    const char *text = getenv("REPLAY_PLACES");
    return text == NULL ? 64 : strtoul(text, NULL, 10);
}

static void run_variants(uint8_t *data, size_t size)
{
    size_t step = size / places() + 1;
    run_copy(data, size);
    for (size_t i = 0; i < size; i += step) {
        run_copy(data, i);
        uint8_t kept = data[i];
        data[i] = (uint8_t)~kept;
        run_copy(data, size);
        data[i] = kept;
    }
}

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        return 1;
    }
    size_t cap = (size_t)4 * 1024 * 1024;
    uint8_t *data = malloc(cap);
    if (data == NULL) abort();
    size_t size = fread(data, 1, cap, f);
    fclose(f);
    run_variants(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (dir == NULL) {
            perror(argv[i]);
            return 1;
        }
        for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
            char path[4096];
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            if (run_file(path) != 0) return 1;
            files++;
        }
        closedir(dir);
    }
    if (files == 0) {
        fprintf(stderr, "no corpus files\n");
        return 1;
    }
    printf("%d corpus files\n", files);
    return 0;
}
