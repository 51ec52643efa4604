/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the files written by tests/compat/filter/FilterOracle.java: lines of words; bytes are in hex ("-": no bytes,
 * '~': the package name of HBase's filters).
 */
#ifndef RQ_TEST_ORACLE_FILE_H
#define RQ_TEST_ORACLE_FILE_H

#include "base/arena.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKAGE "org.apache.hadoop.hbase.filter."

typedef struct oracle_file {
    FILE *file;
    char *line;
    size_t size;
    size_t number;
    char *rest; /* the rest of the line */
} oracle_file;

static inline oracle_file oracle_open(const char *path)
{
    oracle_file f = {.file = fopen(path, "r")};
    if (f.file == NULL) {
        perror(path);
        exit(2);
    }
    return f;
}

/* Reads the next line that is not a comment; false at the end. */
static inline bool oracle_line(oracle_file *f)
{
    do {
        ssize_t n = getline(&f->line, &f->size, f->file);
        if (n < 0) return false;
        if (n > 0 && f->line[n - 1] == '\n') f->line[n - 1] = '\0';
        f->number++;
    } while (f->line[0] == '#');
    f->rest = f->line;
    return true;
}

static inline void oracle_close(oracle_file *f)
{
    fclose(f->file);
    free(f->line);
}

/* The next word of the line, NUL-terminated, or "". */
static inline char *oracle_word(oracle_file *f)
{
    char *word = f->rest;
    char *space = strchr(word, ' ');
    if (space == NULL) {
        f->rest = word + strlen(word);
    } else {
        *space = '\0';
        f->rest = space + 1;
    }
    return word;
}

static inline unsigned oracle_hex_digit(char c)
{
    return (unsigned)(isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10);
}

static inline rq_slice oracle_bytes(oracle_file *f, rq_arena *arena)
{
    const char *word = oracle_word(f);
    size_t packages = 0;
    for (const char *p = word; *p != '\0'; p++)
        packages += *p == '~';
    uint8_t *bytes = rq_arena_alloc(arena, strlen(word) + packages * sizeof PACKAGE);
    size_t n = 0;
    while (*word != '\0' && *word != '-') {
        if (*word == '~') {
            memcpy(bytes + n, PACKAGE, sizeof PACKAGE - 1);
            n += sizeof PACKAGE - 1;
            word++;
        } else {
            bytes[n++] = (uint8_t)(oracle_hex_digit(word[0]) << 4 | oracle_hex_digit(word[1]));
            word += 2;
        }
    }
    return rq_slice_of(bytes, n);
}

/* Checks every line of the named files, and returns the exit code. `what` names the compared items,
 * `wrong` describes a difference. */
static inline int oracle_main(int argc, char **argv, bool (*check_case)(oracle_file *f),
                              const char *what, const char *wrong)
{
    size_t cases = 0;
    size_t failures = 0;
    for (int i = 1; i < argc; i++) {
        oracle_file f = oracle_open(argv[i]);
        for (; failures < 20 && oracle_line(&f); cases++)
            failures += !check_case(&f);
        oracle_close(&f);
    }
    printf("%zu %s, %zu %s\n", cases, what, failures, wrong);
    return cases == 0 || failures > 0;
}

/* The full class name of a simple name. */
static inline rq_slice oracle_class(const char *simple, rq_arena *arena)
{
    return rq_slice_cstr(rq_arena_printf(arena, "%s%s", PACKAGE, simple));
}

#endif
