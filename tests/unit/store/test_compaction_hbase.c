/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a compaction selects, compared with the selections of HBase 2.6.1's policy classes
 * for random lists of files: tests/data/compaction/select.txt, written by tests/compat/compaction.
 * Arguments: the files to replay. */
#include "store/compaction.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NOW 1700000000000
#define FILES_MAX 32

typedef struct oracle_case {
    rq_compaction_settings settings;
    rq_family_schema family;
    bool wants_major, offpeak;
    rq_store_file files[FILES_MAX];
    size_t count;
    bool chosen[FILES_MAX];
    bool major, all, chose_offpeak, needs, due;
    size_t boundary_count;
    int64_t boundary_sum;
} oracle_case;

/* Returns the next word of the line. */
static char *word(char **at, const char *divider)
{
    char *w = strsep(at, divider);
    if (w == NULL) {
        fprintf(stderr, "a line ends early\n");
        exit(1);
    }
    return w;
}

static int64_t integer(char **at, const char *divider)
{
    return strtoll(word(at, divider), NULL, 10);
}

static double real(char **at)
{
    return (double)strtof(word(at, " "), NULL);
}

static void read_settings(char **at, rq_compaction_settings *s)
{
    const char *name = word(at, " ");
    s->policy = strcmp(name, "tiered") == 0  ? RQ_COMPACT_DATE_TIERED
                : strcmp(name, "fifo") == 0  ? RQ_COMPACT_FIFO
                : strcmp(name, "ratio") == 0 ? RQ_COMPACT_RATIO
                                             : RQ_COMPACT_EXPLORING;
    s->min_files = (uint32_t)integer(at, " ");
    s->max_files = (uint32_t)integer(at, " ");
    s->ratio = real(at);
    s->offpeak_ratio = real(at);
    s->min_bytes = (uint64_t)integer(at, " ");
    s->max_bytes = (uint64_t)integer(at, " ");
    s->offpeak_max_bytes = (uint64_t)integer(at, " ");
    s->major_period_ms = integer(at, " ");
    s->major_jitter = real(at);
    s->drop_expired = true;
    s->tiered.max_age_ms = integer(at, " ");
    s->tiered.incoming_min = (uint32_t)integer(at, " ");
    s->tiered.base_window_ms = integer(at, " ");
    s->tiered.windows_per_tier = (uint32_t)integer(at, " ");
    s->tiered.max_tier_age_ms = integer(at, " ");
    s->tiered.single_output = strcmp(word(at, " "), "true") == 0;
    s->tiered.within = word(at, " ")[0] == 'R' ? RQ_COMPACT_RATIO : RQ_COMPACT_EXPLORING;
}

static void read_file(char *text, rq_store_file *f)
{
    snprintf(f->name, sizeof f->name, "%s", word(&text, ","));
    f->size_bytes = (uint64_t)integer(&text, ",");
    f->create_time_ms = integer(&text, ",");
    const char *min = word(&text, ",");
    const char *max = word(&text, ",");
    bool known = min[0] != '-' || min[1] != '\0';
    f->min_ts = known ? strtoll(min, NULL, 10) : INT64_MIN;
    f->max_ts = known ? strtoll(max, NULL, 10) : INT64_MAX;
    f->major = integer(&text, ",") != 0;
    f->is_reference = integer(&text, ",") != 0;
    f->bulk_loaded = integer(&text, ",") != 0;
    f->entry_count = (uint64_t)integer(&text, ",");
}

static void read_case(char *line, oracle_case *c)
{
    char **at = &line;
    *c = (oracle_case){0};
    read_settings(at, &c->settings);
    int64_t ttl = integer(at, " ");
    c->family.ttl_s = ttl < 0 ? RQ_TTL_FOREVER : (int32_t)ttl;
    c->settings.blocking_files = (uint32_t)integer(at, " ");
    c->wants_major = integer(at, " ") != 0;
    c->offpeak = integer(at, " ") != 0;
    char *files = word(at, " ");
    while (files != NULL && strcmp(files, "-") != 0)
        read_file(word(&files, ";"), &c->files[c->count++]);
    char *chosen = word(at, " ");
    while (chosen != NULL && strcmp(chosen, "-") != 0)
        c->chosen[integer(&chosen, ",")] = true;
    c->major = integer(at, " ") != 0;
    c->all = integer(at, " ") != 0;
    c->chose_offpeak = integer(at, " ") != 0;
    c->needs = integer(at, " ") != 0;
    c->due = integer(at, " ") != 0;
    char *boundaries = word(at, " ");
    if (strcmp(boundaries, "-") == 0) return;
    c->boundary_count = (size_t)integer(&boundaries, ",");
    c->boundary_sum = integer(&boundaries, ",");
}

static const char *check_boundaries(const oracle_case *c, const rq_compaction_choice *o)
{
    /* HBase also lists the windows of files beyond the maximum number. */
    if (c->boundary_count == 0 || o->count == 0 ||
        (o->tiers == RQ_TIER_ALL && o->count == c->settings.max_files && !c->wants_major))
        return NULL;
    int64_t *b;
    size_t n;
    if (rq_compaction_boundaries(&c->settings, o, c->files, NOW, &b, &n) != RQ_OK)
        return "no memory";
    uint64_t sum = 0;
    bool ascending = true;
    for (size_t i = 0; i < n; i++) {
        sum += (uint64_t)b[i];
        ascending = ascending && (i == 0 || b[i - 1] < b[i]);
    }
    free(b);
    if (!ascending) return "boundaries in disorder";
    return n != c->boundary_count || (int64_t)sum != c->boundary_sum ? "boundaries" : NULL;
}

/* Describes the difference, or returns NULL. */
static const char *check(const oracle_case *c)
{
    const rq_compaction_settings *s = &c->settings;
    bool references = false;
    bool expired = false;
    for (size_t i = 0; i < c->count; i++) {
        references |= c->files[i].is_reference;
        expired |= rq_compaction_is_expired(s, &c->family, c->files, c->count, i, NOW);
    }
    rq_compaction_choice o =
        rq_compaction_choose(s, &c->family, c->files, c->count, c->wants_major, c->offpeak, NOW);
    for (size_t i = 0; i < c->count; i++) {
        bool taken = i >= o.first && i < o.first + o.count;
        if (s->policy == RQ_COMPACT_FIFO && !references)
            taken = rq_compaction_is_expired(s, &c->family, c->files, c->count, i, NOW);
        if (taken != c->chosen[i]) return "files";
    }
    if (o.count > 0 && o.major != c->major) return "major";
    if (o.count > 0 && o.all_files != c->all) return "all files";
    if (o.offpeak != c->chose_offpeak) return "off-peak";
    bool worth = rq_compaction_is_worth_a_look(s, c->files, c->count, &c->family, NOW);
    if (worth != (c->needs || c->due || references || expired)) return "worth a look";
    return check_boundaries(c, &o);
}

static unsigned replay(const char *path, unsigned *cases)
{
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    unsigned failed = 0;
    if (in == NULL) {
        perror(path);
        return 1;
    }
    for (unsigned number = 1; getline(&line, &room, in) > 0; number++) {
        if (line[0] == '#') continue;
        oracle_case c;
        line[strcspn(line, "\n")] = '\0';
        read_case(line, &c);
        ++*cases;
        const char *difference = check(&c);
        if (difference == NULL) continue;
        fprintf(stderr, "%s:%u: %s\n", path, number, difference);
        failed++;
    }
    free(line);
    fclose(in);
    return failed;
}

int main(int argc, char **argv)
{
    unsigned failed = 0;
    unsigned cases = 0;
    for (int i = 1; i < argc; i++)
        failed += replay(argv[i], &cases);
    printf("%u cases, %u differ from HBase\n", cases, failed);
    return failed == 0 && cases > 0 ? 0 : 1;
}
