/* SPDX-License-Identifier: Apache-2.0 */
/* rorqual wal: prints the log of a data folder, or one of its WAL files. It only reads, so it may
 * run beside a server; then it sees the log's end at that moment.
 *
 *   list     the live WAL files in order, oldest first
 *   dump     the records and their cells, by table, region, row and sequence id
 *   verify   reads every record; exit code 1 if one is damaged
 *
 * A folder's nonce files (nonces whose log records are gone) are dumped and verified too.
 *
 * Damage is reported on standard error with file and offset, and the records behind it are still
 * read. An incomplete last record, being written when the power failed, is not damage: it ends the
 * log. */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/print.h"
#include "cli/progress.h"

#include "cell/cellblock.h"
#include "region/survey.h"
#include "wal/survey.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_DIR ".rorqual/wal"

typedef struct wal_args {
    const char *verb;
    const char *table, *region, *row; /* NULL: all */
    uint64_t lowest, highest;         /* sequence ids */
    uint64_t limit;
    bool values, all, json;
    const char *place;
} wal_args;

/* Totals of one WAL file, for `list`. */
typedef struct totals {
    uint64_t records, cells, bytes;
    uint64_t lowest, highest; /* sequence ids; 0: no record */
} totals;

typedef struct wal_run {
    const wal_args *args;
    rq_progress progress;
    uint64_t shown;
    uint64_t damaged;
    totals totals;   /* of the WAL file being read */
    uint64_t before; /* bytes of the WAL files before it */
    uint64_t size;   /* of all */
    bool is_data_folder;
} wal_run;

static const char *kind_name(rq_wal_kind kind)
{
    static const char *const names[] = {"",          "edit",        "flush",       "compaction",
                                        "bulk-load", "region-open", "region-close"};
    return (size_t)kind < RQ_ARRAY_LEN(names) ? names[kind] : "unknown";
}

static void print_damage(void *ctx, const rq_error *what)
{
    wal_run *run = ctx;
    run->damaged++;
    rq__progress_end(&run->progress);
    fflush(stdout);
    if (run->args->json) {
        rq__print_json_text("{", "damage", rq_slice_cstr(what->message));
        puts("}");
        fflush(stdout);
    }
    fprintf(stderr, "rorqual wal %s: %s\n", run->args->verb, what->message);
}

/* --- dump ------------------------------------------------------------------------------------- */

static bool is_wanted(const wal_args *a, const rq_wal_record *r)
{
    if (r->sequence_id < a->lowest || r->sequence_id > a->highest) return false;
    if (a->region != NULL && !rq_slice_eq(r->region, rq_slice_cstr(a->region))) return false;
    if (a->table == NULL) return true;
    /* Prints table t of the default namespace as "t", not "default:t". */
    const char *table = strncmp(a->table, "default:", 8) == 0 ? a->table + 8 : a->table;
    return rq_slice_eq(r->table, rq_slice_cstr(table));
}

static bool is_of_row(const wal_args *a, const rq_cell *c)
{
    return a->row == NULL || rq_slice_eq(rq_cell_row(c), rq_slice_cstr(a->row));
}

static bool has_row(const wal_args *a, const rq_wal_record *r)
{
    rq_cursor c = rq_cursor_of(r->payload);
    rq_cell cell;
    if (a->row == NULL) return true;
    while (r->kind == RQ_WAL_EDIT && rq_cellblock_next_stored(&c, &cell, NULL) == RQ_OK)
        if (is_of_row(a, &cell)) return true;
    return false;
}

static void print_text_cell(const wal_args *a, const rq_cell *c)
{
    printf("    ");
    rq__print_key(c);
    printf("/vlen=%u", c->value_len);
    if (a->values) {
        printf(" V: ");
        rq__print_bytes(rq_cell_value(c));
    }
    putchar('\n');
}

static void print_json_cell(const wal_args *a, const rq_cell *c, bool first)
{
    rq__print_json_text(first ? "{" : ",{", "row", rq_cell_row(c));
    rq__print_json_text(",", "family", rq_cell_family(c));
    rq__print_json_text(",", "qualifier", rq_cell_qualifier(c));
    rq__print_json_number(",", "timestamp", c->timestamp);
    rq__print_json_text(",", "type", rq_slice_cstr(rq_cell_type_name(c->type)));
    rq__print_json_number(",", "valueLength", c->value_len);
    if (a->values) rq__print_json_text(",", "value", rq_cell_value(c));
    putchar('}');
}

/* As far as they can be read. */
static rq_err print_cells(const wal_args *a, const rq_wal_record *r, rq_error *why)
{
    rq_cursor c = rq_cursor_of(r->payload);
    rq_cell cell;
    bool first = true;
    rq_err rc = RQ_OK;
    while (r->kind == RQ_WAL_EDIT && (rc = rq_cellblock_next_stored(&c, &cell, why)) == RQ_OK) {
        if (!is_of_row(a, &cell)) continue;
        if (a->json)
            print_json_cell(a, &cell, first);
        else
            print_text_cell(a, &cell);
        first = false;
    }
    return rc == RQ_E_END ? RQ_OK : rc;
}

static void print_damaged_cells(wal_run *run, const rq_wal_surveyed_file *s, uint64_t offset,
                                rq_err rc, const rq_error *inner)
{
    rq_error what = {0};
    (void)rq_fail(&what, rc, "%s: offset %" PRIu64 ": %s", s->path, offset, inner->message);
    print_damage(run, &what);
}

static rq_err dump_record(void *ctx, const rq_wal_surveyed_file *s, const rq_wal_record *r,
                          uint64_t offset, rq_error *why)
{
    wal_run *run = ctx;
    const wal_args *a = run->args;
    rq_error inner = {0};
    (void)why;
    if (!is_wanted(a, r) || !has_row(a, r)) return RQ_OK;
    if (run->shown++ >= a->limit) return RQ_E_END;
    if (!a->json) {
        printf("%s:%" PRIu64 "  ", s->path, offset);
        rq__print_bytes(r->table);
        putchar(' ');
        rq__print_bytes(r->region);
        printf("  seq %" PRIu64 "  %s  at %" PRId64 " ms", r->sequence_id, kind_name(r->kind),
               r->write_time_ms);
        if (r->nonce != 0) printf("  nonce %" PRIu64 "/%" PRIu64, r->nonce_group, r->nonce);
        putchar('\n');
    } else {
        rq__print_json_text("{", "file", rq_slice_cstr(s->path));
        rq__print_json_number(",", "offset", (int64_t)offset);
        rq__print_json_text(",", "table", r->table);
        rq__print_json_text(",", "region", r->region);
        rq__print_json_number(",", "sequence", (int64_t)r->sequence_id);
        rq__print_json_text(",", "kind", rq_slice_cstr(kind_name(r->kind)));
        rq__print_json_number(",", "time", r->write_time_ms);
        fputs(",\"cells\":[", stdout);
    }
    rq_err rc = print_cells(a, r, &inner);
    if (a->json) puts("]}");
    if (rc != RQ_OK) print_damaged_cells(run, s, offset, rc, &inner);
    return RQ_OK;
}

/* --- nonces ----------------------------------------------------------------------------------- */

static void print_nonces(const wal_args *a, const rq_nonce_survey *f)
{
    if (a->json) {
        rq__print_json_text("{", "file", rq_slice_cstr(f->path));
        rq__print_json_text(",", "region", rq_slice_cstr(f->region));
        rq__print_json_number(",", "sequence", (int64_t)f->highest);
        rq__print_json_text(",", "kind", RQ_SLICE_LIT("nonces"));
        rq__print_json_number(",", "time", f->written_ms);
        rq__print_json_number(",", "nonces", (int64_t)f->count);
        puts("}");
        return;
    }
    printf("%s  %s  seq %" PRIu64 "  nonces  at %" PRId64 " ms: %zu\n", f->path, f->region,
           f->highest, f->written_ms, f->count);
    for (size_t i = 0; a->values && i < f->count; i++) {
        rq_nonce_survey_entry e = rq_nonces_survey_entry(f, i);
        printf("    nonce %" PRIu64 "/%" PRIu64 "  seq %" PRIu64 "  %" PRIu64 " ms before\n",
               e.group, e.nonce, e.sequence_id, e.age_ms);
    }
}

static rq_err show_nonces(void *ctx, const rq_nonce_survey *f, rq_error *why)
{
    wal_run *run = ctx;
    const wal_args *a = run->args;
    (void)why;
    if (f->unfinished) return RQ_OK; /* the log still has these nonces */
    if (f->damage != NULL) {
        rq_error what = {0};
        (void)rq_fail(&what, RQ_E_CORRUPT, "%s: %s", f->path, f->damage);
        print_damage(run, &what);
        return RQ_OK;
    }
    if (a->region != NULL && strcmp(a->region, f->region) != 0) return RQ_OK;
    if (strcmp(a->verb, "dump") != 0 || a->table != NULL || a->row != NULL) return RQ_OK;
    if (run->shown++ >= a->limit) return RQ_E_END;
    print_nonces(a, f);
    return RQ_OK;
}

/* --- list, verify ----------------------------------------------------------------------------- */

/* Counts the record, and parses the fields that otherwise only a replay parses. */
static rq_err count_record(void *ctx, const rq_wal_surveyed_file *s, const rq_wal_record *r,
                           uint64_t offset, rq_error *why)
{
    wal_run *run = ctx;
    totals *t = &run->totals;
    rq_error inner = {0};
    rq_cursor c = rq_cursor_of(r->payload);
    rq_cell cell;
    rq_err rc = r->kind == RQ_WAL_EDIT ? RQ_OK : RQ_E_END;
    (void)why;
    while (rc == RQ_OK) {
        rc = rq_cellblock_next_stored(&c, &cell, &inner);
        t->cells += rc == RQ_OK;
    }
    if (rc != RQ_E_END) print_damaged_cells(run, s, offset, rc, &inner);
    t->records++;
    t->bytes += r->payload.len;
    if (t->lowest == 0 || r->sequence_id < t->lowest) t->lowest = r->sequence_id;
    if (r->sequence_id > t->highest) t->highest = r->sequence_id;
    if (t->records % 256 == 0) rq__progress_step(&run->progress, run->before + offset, run->size);
    return RQ_OK;
}

static void print_file(const wal_run *run, const rq_wal_surveyed_file *s, uint64_t end)
{
    const totals *t = &run->totals;
    if (run->args->json) {
        rq__print_json_text("{", "file", rq_slice_cstr(s->path));
        rq__print_json_number(",", "number", (int64_t)s->info.number);
        rq__print_json_number(",", "epoch", (int64_t)s->info.epoch);
        rq__print_json_number(",", "firstLsn", (int64_t)s->info.first_lsn);
        rq__print_json_number(",", "created", s->info.created_ms);
        rq__print_json_number(",", "records", (int64_t)t->records);
        rq__print_json_number(",", "cells", (int64_t)t->cells);
        rq__print_json_number(",", "payloadBytes", (int64_t)t->bytes);
        rq__print_json_number(",", "end", (int64_t)end);
        printf(",\"live\":%s,\"sealed\":%s,\"clean\":%s}\n", s->live ? "true" : "false",
               s->sealed ? "true" : "false", s->info.clean ? "true" : "false");
        return;
    }
    printf("%s  WAL file %" PRIu64 ", epoch %" PRIu64 ", from position %" PRIu64 ": %" PRIu64
           " records, %" PRIu64 " cells, %" PRIu64 " bytes, to offset %" PRIu64 "%s%s\n",
           s->path, s->info.number, s->info.epoch, s->info.first_lsn, t->records, t->cells,
           t->bytes, end, s->sealed ? ", sealed" : "",
           s->info.clean && t->records == 0 ? ", after a clean stop" : "");
}

/* --- the command ------------------------------------------------------------------------------ */

typedef enum verb { LIST, DUMP, VERIFY, VERBS } verb;

static const char *const verbs[VERBS] = {[LIST] = "list", [DUMP] = "dump", [VERIFY] = "verify"};

static const char help[] =
    "usage: rorqual wal VERB [OPTION ...] FOLDER|FILE\n\n"
    "  list       the WAL files, oldest first: what they contain and where they end\n"
    "  dump       the records and their cells; for a data folder also its nonce files\n"
    "  verify     read every record; report damaged records with their offset\n\n"
    "  FOLDER           a data folder, or its .rorqual/wal\n"
    "  --json           print a JSON object per line\n"
    "  --all            include recycled WAL files, with their old records\n"
    "  --table NAME     dump: this table only\n"
    "  --region NAME    dump: this region only (encoded name)\n"
    "  --row ROW        dump: records with cells of this row, and those cells\n"
    "  --sequence N[-M] dump: records with these sequence ids\n"
    "  --limit N        dump: at most N records\n"
    "  --values         dump: print values too\n"
    "exit codes: 0 no damage; 1 damage; 2 the log cannot be read, or wrong arguments\n";

static bool parse_range(const char *text, wal_args *a)
{
    const char *end;
    if (!rq__arg_number_prefix(text, &end, &a->lowest)) return false;
    a->highest = a->lowest;
    if (*end == '-') {
        a->highest = UINT64_MAX;
        if (end[1] == '\0') return true;
        if (!rq__arg_number_prefix(end + 1, &end, &a->highest)) return false;
    }
    return *end == '\0';
}

/* Exit code; -1: go on. */
static int parse(int argc, char **argv, wal_args *a)
{
    const char *sequence = NULL;
    const rq__option options[] = {
        {"json", .flag = &a->json},      {"all", .flag = &a->all},
        {"values", .flag = &a->values},  {"table", .text = &a->table},
        {"region", .text = &a->region},  {"row", .text = &a->row},
        {"sequence", .text = &sequence}, {"limit", .number = &a->limit},
    };
    *a = (wal_args){.highest = UINT64_MAX, .limit = UINT64_MAX};
    int code = rq__parse_options("wal", help, options, RQ_ARRAY_LEN(options), argc, argv);
    if (code >= 0) return code;
    if (sequence != NULL && !parse_range(sequence, a))
        return rq__refuse("wal", "--sequence %s: expected N or N-M", sequence);
    if (optind == argc) return rq__refuse("wal", "expected a verb and a folder");
    a->verb = argv[optind];
    if (argc - optind > 2) return rq__refuse("wal", "expected one folder or WAL file");
    a->place = argc - optind == 2 ? argv[optind + 1] : NULL;
    return -1;
}

/* Opens the folder of the WAL files. If the path names a single WAL file, *ret_file is its name in
 * the folder, else NULL. */
static rq_err open_place(const char *place, rq_arena *arena, rq_vfs **ret, const char **ret_dir,
                         const char **ret_file, rq_error *why)
{
    rq_stat st;
    rq_error ignored = {0};
    char *slash;
    size_t n = strlen(place);
    *ret_file = NULL;
    if (n > 4 && strcmp(place + n - 4, ".wal") == 0) {
        char *dir = rq_arena_printf(arena, "%s", place);
        if (dir == NULL) return RQ_E_NO_MEMORY;
        slash = strrchr(dir, '/');
        *ret_file = slash == NULL ? place : place + (slash - dir) + 1;
        if (slash != NULL) slash[slash == dir] = '\0';
        return rq_vfs_posix_new(slash == NULL ? "." : dir, ret, why);
    }
    RQ_TRY(rq_vfs_posix_new(place, ret, why));
    *ret_dir = rq_vfs_stat(*ret, LOG_DIR, &st, &ignored) == RQ_OK ? LOG_DIR : "";
    return RQ_OK;
}

static rq_err run_verb(rq_vfs *vfs, const rq_wal_survey *v, verb what, wal_run *run, rq_error *why)
{
    const rq_wal_survey_calls calls = {what == DUMP ? dump_record : count_record, print_damage,
                                       run};
    uint64_t records = 0;
    rq_err rc = RQ_OK;
    for (size_t i = 0; i < v->count; i++)
        run->size += v->files[i].size_bytes;
    rq__progress_begin(&run->progress, what == DUMP ? "records" : "log");
    if (what == DUMP && isatty(STDOUT_FILENO)) run->progress.is_terminal = false;
    for (size_t i = 0; i < v->count && rc == RQ_OK; i++) {
        const rq_wal_surveyed_file *s = &v->files[i];
        uint64_t end = 0;
        if (!s->live && !run->args->all) continue;
        run->totals = (totals){0};
        rc = rq_wal_survey_read(vfs, s, &calls, &end, why);
        run->before += s->size_bytes;
        records += run->totals.records;
        if (rc == RQ_OK && what == LIST) {
            rq__progress_end(&run->progress);
            print_file(run, s, end);
        }
    }
    rq__progress_end(&run->progress);
    if (rc == RQ_OK && what != LIST && run->is_data_folder)
        rc = rq_nonces_survey(vfs, show_nonces, run, why);
    if (rc == RQ_E_END) rc = RQ_OK; /* the limit */
    if (rc != RQ_OK || what != VERIFY) return rc;
    if (run->args->json) {
        rq__print_json_number("{", "records", (int64_t)records);
        printf(",\"fine\":%s}\n", run->damaged == 0 ? "true" : "false");
    } else {
        printf("%s: %s, %" PRIu64 " records\n", run->args->place,
               run->damaged == 0 ? "fine" : "DAMAGED", records);
    }
    return RQ_OK;
}

static int run_command(const wal_args *args, verb what)
{
    wal_run run = {.args = args};
    const rq_wal_survey_calls calls = {NULL, print_damage, &run};
    rq_arena arena = {0};
    rq_vfs *vfs = NULL;
    rq_wal_survey survey = {0};
    const char *dir = "";
    const char *file = NULL;
    rq_error why = {0};
    rq_err rc = open_place(args->place, &arena, &vfs, &dir, &file, &why);
    if (rc == RQ_OK)
        rc = file == NULL ? rq_wal_survey_dir(vfs, dir, &arena, &calls, &survey, &why)
                          : rq_wal_survey_file(vfs, file, &arena, &calls, &survey, &why);
    if (rc == RQ_OK && survey.count == 0 && run.damaged == 0)
        rc = rq_fail(&why, RQ_E_NOT_FOUND, "%s: no write-ahead log found", args->place);
    run.is_data_folder = file == NULL && dir[0] != '\0';
    if (rc == RQ_OK) rc = run_verb(vfs, &survey, what, &run, &why);
    if (vfs != NULL) rq_vfs_free(vfs);
    rq_arena_clear(&arena);
    if (rc != RQ_OK)
        fprintf(stderr, "rorqual wal %s: %s\n", args->verb,
                why.message[0] != '\0' ? why.message : rq_err_text(rc));
    if (fflush(stdout) != 0 || rc != RQ_OK) return 2;
    return run.damaged > 0 ? 1 : 0;
}

int rq__cmd_wal(int argc, char **argv)
{
    wal_args args;
    int code = parse(argc, argv, &args);
    if (code >= 0) return code;
    if (strcmp(args.verb, "help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    for (int v = 0; v < VERBS; v++) {
        if (strcmp(args.verb, verbs[v]) != 0) continue;
        if (args.place == NULL)
            return rq__refuse("wal", "%s: expected a folder or WAL file", args.verb);
        return run_command(&args, (verb)v);
    }
    return rq__refuse("wal", "unknown verb or option '%s'", args.verb);
}
