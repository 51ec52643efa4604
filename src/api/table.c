/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions for rows: each checks its arguments, and calls the back end with a slot. */
#include "api/api_priv.h"

#include <stdlib.h>

/* --- tables ----------------------------------------------------------------------------------- */

/* HBASE: TableName.valueOf; the characters are checked where a table is made. */
static rq_err split_name(const char *name, rq_table *t, rq_error *why)
{
    const char *colon = strchr(name, ':');
    t->name = rq_slice_cstr(name);
    t->ns = RQ_SLICE_LIT("default");
    t->qualifier = t->name;
    if (colon != NULL) {
        size_t len = (size_t)(colon - name);
        t->ns = rq_slice_of(name, len);
        t->qualifier = rq_slice_of(colon + 1, t->name.len - len - 1);
        if (rq_slice_eq(t->ns, RQ_SLICE_LIT("default"))) t->name = t->qualifier;
    }
    if (t->ns.len == 0 || t->qualifier.len == 0)
        return rq_fail(why, RQ_E_ILLEGAL_ARGUMENT, "Table qualifier must not be empty: '%s'", name);
    return RQ_OK;
}

rq_err rq_table_open(rq_db *db, const char *name, rq_table **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_why_clear(&why);
    if (db == NULL || name == NULL)
        return rq_fill_failure(
            failure, rq_fail(&why.error, RQ_E_INVALID, "the database or the name is NULL"), &why);
    rq_err rc = rq__slot_take(db, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    size_t len = strlen(name) + 1;
    rq_table *t = calloc(1, sizeof *t + len);
    rc = t == NULL ? rq_no_memory(&why.error) : RQ_OK;
    if (rc == RQ_OK) {
        memcpy(t->bytes, name, len);
        rc = split_name(t->bytes, t, &why.error);
    }
    if (rc == RQ_OK) {
        atomic_init(&t->refs, 1);
        t->db = rq__db_ref(db);
        t->number = atomic_fetch_add(&db->tables, 1) + 1;
        *ret = t;
    } else {
        free(t);
    }
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_table *rq__table_ref(rq_table *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void rq__table_unref(rq_table *t)
{
    if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
    rq_db_unref(t->db);
    free(t);
}

void rq_table_close(rq_table *table)
{
    if (table != NULL && rq_db_is_home(table->db)) rq__table_unref(table);
}

/* The begin of every call on a table. */
static rq_err begin(rq_table *t, rq_slot **ret, rq_why *why)
{
    rq_why_clear(why);
    return t == NULL ? rq_fail(&why->error, RQ_E_INVALID, "the table is NULL")
                     : rq__slot_take(t->db, ret, why);
}

/* --- rows ------------------------------------------------------------------------------------- */

rq_err rq_table_get(rq_table *table, const rq_get_request *get, rq_row **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_getting g;
    rq_err rc = begin(table, &slot, &why);
    if (RQ_UNLIKELY(rc != RQ_OK)) return rq_fill_failure(failure, rc, &why);
    rc = rq__take_get(get, &slot->arena, &g, &why.error);
    if (rc == RQ_OK) rc = table->db->backend->get(table, slot, &g, ret, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_table_change(rq_table *table, const rq_change *change, rq_row **ret, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_changing *c;
    bool done;
    rq_err rc = begin(table, &slot, &why);
    if (RQ_UNLIKELY(rc != RQ_OK)) return rq_fill_failure(failure, rc, &why);
    rc = rq__take_changes(change, 1, &slot->arena, &c, &why.error);
    if (rc == RQ_OK) rc = table->db->backend->change(table, slot, NULL, c, 1, &done, ret, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* HBASE: RowMutations takes puts and deletes; CheckAndMutate of one action takes all kinds. */
rq_err rq__check_kinds(const rq_changing *c, size_t count, rq_error *why)
{
    for (size_t i = 0; i < count && count > 1; i++)
        if (c[i].kind != RQ_PUT && c[i].kind != RQ_DELETE && !c[i].returns_nothing)
            return rq_fail(
                why, RQ_E_INVALID,
                "an append or increment together with other changes must set returns_nothing");
    return RQ_OK;
}

rq_err rq_table_change_row(rq_table *table, const rq_change *changes, size_t count,
                           rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_changing *c;
    bool done;
    rq_err rc = begin(table, &slot, &why);
    if (RQ_UNLIKELY(rc != RQ_OK)) return rq_fill_failure(failure, rc, &why);
    rc = rq__take_changes(changes, count, &slot->arena, &c, &why.error);
    if (rc == RQ_OK) rc = rq__check_kinds(c, count, &why.error);
    if (rc == RQ_OK)
        rc = table->db->backend->change(table, slot, NULL, c, count, &done, NULL, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_table_check_and_change(rq_table *table, const rq_check *check, const rq_change *changes,
                                 size_t count, bool *ret_done, rq_row **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret_done, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_changing *c;
    rq_checking k;
    rq_err rc = begin(table, &slot, &why);
    if (RQ_UNLIKELY(rc != RQ_OK)) return rq_fill_failure(failure, rc, &why);
    rc = rq__take_check(check, &slot->arena, &k, &why.error);
    if (rc == RQ_OK) rc = rq__take_changes(changes, count, &slot->arena, &c, &why.error);
    if (rc == RQ_OK) rc = rq__check_kinds(c, count, &why.error);
    if (rc == RQ_OK)
        rc = table->db->backend->change(table, slot, &k, c, count, ret_done, ret, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* --- batches ---------------------------------------------------------------------------------- */

static rq_err take_action(const rq_checked_action *given, rq_arena *arena, rq_acting *ret,
                          rq_error *why)
{
    *ret = (rq_acting){.is_get = given->get != NULL, .change_count = given->change_count};
    if (ret->is_get && given->change_count > 0)
        return rq_fail(why, RQ_E_INVALID, "an action has both a get and changes");
    if (ret->is_get && given->check != NULL)
        return rq_fail(why, RQ_E_INVALID, "an action has both a get and a check");
    if (ret->is_get) RQ_TRY(rq__take_get(given->get, arena, &ret->get, why));
    if (ret->is_get && ret->get.read.replica > 0)
        return rq_fail(why, RQ_E_UNSUPPORTED, "a get of a batch cannot choose a replica");
    if (ret->is_get) return RQ_OK;
    if (given->check != NULL) {
        rq_checking *check = rq_arena_alloc(arena, sizeof *check);
        if (check == NULL) return rq_no_memory(why);
        RQ_TRY(rq__take_check(given->check, arena, check, why));
        ret->check = check;
    }
    RQ_TRY(rq__take_changes(given->changes, given->change_count, arena, &ret->changes, why));
    return rq__check_kinds(ret->changes, ret->change_count, why);
}

/* The i-th action; one of a list without checks has none. */
static rq_err given_action(const rq__actions *given, size_t i, rq_checked_action *ret,
                           rq_error *why)
{
    const void *at = NULL;
    if (given->plain != NULL) {
        const rq_action *a = &given->plain[i];
        *ret = (rq_checked_action){
            .get = a->get, .changes = a->changes, .change_count = a->change_count};
        return RQ_OK;
    }
    RQ_TRY(rq__element(given->checked, i, "rq_checked_action", &at, why));
    return rq_sized(ret, sizeof *ret, at, sizeof *ret, "rq_checked_action", why);
}

rq_err rq__take_actions(const rq__actions *given, rq_arena *arena, rq_acting **ret, rq_why *why)
{
    size_t count = given->count;
    if (count > 0 && given->plain == NULL && given->checked == NULL)
        return rq_fail(&why->error, RQ_E_INVALID, "the actions are NULL");
    if (count > UINT32_MAX)
        return rq_fail(&why->error, RQ_E_INVALID, "%zu actions are too many", count);
    rq_acting *list = rq_arena_alloc(arena, (count + 1) * sizeof *list);
    if (list == NULL) return rq_no_memory(&why->error);
    for (size_t i = 0; i < count; i++) {
        rq_checked_action a;
        why->action = i;
        RQ_TRY(given_action(given, i, &a, &why->error));
        RQ_TRY(take_action(&a, arena, &list[i], &why->error));
    }
    why->action = RQ_NO_ACTION;
    *ret = list;
    return RQ_OK;
}

static rq_err run_batch(rq_table *table, rq_slot *slot, const rq__actions *given, rq_results **ret,
                        rq_why *why)
{
    size_t count = given->count;
    rq_outcomes *o;
    rq_acting *actions;
    RQ_TRY(rq__take_actions(given, &slot->arena, &actions, why));
    RQ_TRY(rq__outcomes_new(count, &o));
    if (count > 0) {
        rq_err rc = table->db->backend->batch(table, slot, actions, count, o, why);
        rq__outcomes_fill(o, count, rc, why);
    }
    return rq__outcomes_end(o, ret, why);
}

static rq_err batch(rq_table *table, const rq__actions *given, rq_results **ret,
                    rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    rq_err rc = begin(table, &slot, &why);
    if (RQ_UNLIKELY(rc != RQ_OK)) return rq_fill_failure(failure, rc, &why);
    rc = run_batch(table, slot, given, ret, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

rq_err rq_table_batch(rq_table *table, const rq_action *actions, size_t count, rq_results **ret,
                      rq_failure *failure)
{
    return batch(table, &(rq__actions){.plain = actions, .count = count}, ret, failure);
}

rq_err rq_table_batch_checked(rq_table *table, const rq_checked_action *actions, size_t count,
                              rq_results **ret, rq_failure *failure)
{
    return batch(table, &(rq__actions){.checked = actions, .count = count}, ret, failure);
}

/* --- scans ------------------------------------------------------------------------------------ */

static void scanner_free(rq_scanner *s)
{
    rq__table_unref(s->table);
    rq_row_memory_clear(&s->rows);
    rq_arena_clear(&s->arena);
    free(s);
}

rq_err rq_table_scan(rq_table *table, const rq_scan_request *scan, rq_scanner **ret,
                     rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_err rc = begin(table, &slot, &why);
    if (RQ_UNLIKELY(rc != RQ_OK)) return rq_fill_failure(failure, rc, &why);
    rq_scanner *s = calloc(1, sizeof *s);
    rc = s == NULL ? rq_no_memory(&why.error) : RQ_OK;
    if (rc == RQ_OK) {
        s->table = rq__table_ref(table);
        s->rows.counts = true;
        rc = rq__take_scan(scan, &s->arena, &s->scan, &why.error);
        if (rc == RQ_OK) rc = table->db->backend->scan(table, slot, &s->scan, &s->own, &why);
        if (rc == RQ_OK)
            *ret = s;
        else
            scanner_free(s);
    }
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

/* Takes a slot for a call on the scanner. */
static rq_err scanner_begin(rq_scanner *s, rq_slot **ret, rq_why *why)
{
    rq_why_clear(why);
    if (s == NULL) return rq_fail(&why->error, RQ_E_INVALID, "the scanner is NULL");
    RQ_TRY(rq__slot_take(s->table->db, ret, why));
    if (!s->in_call) return RQ_OK;
    rq__slot_give_back(*ret);
    return rq_fail(&why->error, RQ_E_STATE, "the scanner is used by an asynchronous call");
}

void rq__scanner_read(rq_scanner *s, rq_err rc, size_t count, const rq_why *why)
{
    s->ended = rc != RQ_OK || count == 0;
    if (RQ_LIKELY(rc == RQ_OK || s->ended_by != RQ_OK)) return;
    s->ended_by = rc;
    s->failure = *why;
}

rq_err rq__scanner_end(const rq_scanner *s, rq_why *why)
{
    if (s->ended_by != RQ_OK) *why = s->failure;
    return s->ended_by;
}

rq_err rq_scanner_take(rq_scanner *s, rq_row_memory *memory, size_t max, rq_row **rows,
                       size_t *ret_count, rq_failure *failure)
{
    rq_why why;
    rq_slot *slot;
    *ret_count = 0;
    rq_err rc = scanner_begin(s, &slot, &why);
    if (RQ_UNLIKELY(rc != RQ_OK)) return rq_fill_failure(failure, rc, &why);
    if (memory == NULL) memory = &s->rows;
    rc = RQ_UNLIKELY(s->ended) ? rq__scanner_end(s, &why)
                               : s->table->db->backend->next(s->table, slot, s->own, memory, max,
                                                             rows, ret_count, &why);
    rq__scanner_read(s, rc, *ret_count, &why);
    rq__slot_give_back(slot);
    return rq_fill_failure(failure, rc, &why);
}

void rq_scanner_ahead(rq_scanner *s)
{
    rq_why why;
    rq_slot *slot;
    const rq_backend *backend = s->table->db->backend;
    if (backend->ahead == NULL || s->ended || scanner_begin(s, &slot, &why) != RQ_OK) return;
    backend->ahead(s->table, slot, s->own);
    rq__slot_give_back(slot);
}

rq_err rq_scanner_next(rq_scanner *s, rq_row **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_row *row;
    size_t count;
    rq_err rc = rq_scanner_take(s, NULL, 1, &row, &count, failure);
    if (rc == RQ_OK) *ret = count == 0 ? NULL : row;
    return rc;
}

#define ROWS_AT_ONCE 128

rq_err rq__next_rows(rq_table *table, rq_slot *slot, void *scan, size_t max, rq_rows *rows,
                     rq_why *why)
{
    const rq_backend *backend = table->db->backend;
    do {
        size_t most = max - rows->count < ROWS_AT_ONCE ? max - rows->count : ROWS_AT_ONCE;
        size_t count = 0;
        rq_row **room;
        if (rq__rows_room(rows, most, &room) != RQ_OK) return rq_no_memory(&why->error);
        RQ_TRY(backend->next(table, slot, scan, rq__rows_memory(rows), most, room, &count, why));
        if (count == 0) return RQ_OK;
        rq__rows_added(rows, count);
    } while (rows->count < max && backend->has_row(scan));
    return RQ_OK;
}

rq_err rq_scanner_next_rows(rq_scanner *s, size_t max, rq_rows **ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_why why;
    rq_slot *slot;
    rq_rows *rows = NULL;
    rq_err rc = scanner_begin(s, &slot, &why);
    if (rc != RQ_OK) return rq_fill_failure(failure, rc, &why);
    if (rq__rows_new(&rows) != RQ_OK)
        rc = rq_no_memory(&why.error);
    else
        rc = s->ended
                 ? rq__scanner_end(s, &why)
                 : rq__next_rows(s->table, slot, s->own, max == 0 ? SIZE_MAX : max, rows, &why);
    if (rows != NULL) rq__scanner_read(s, rc, rows->count, &why);
    rq__slot_give_back(slot);
    if (rc == RQ_OK)
        *ret = rows;
    else
        rq_rows_free(rows);
    return rq_fill_failure(failure, rc, &why);
}

void rq_scanner_close(rq_scanner *s)
{
    if (s == NULL || !rq_db_is_home(s->table->db)) return;
    if (rq__scanner_closes_later(s)) return;
    rq_db *db = s->table->db;
    rq_slot *slot = rq__slot_take_last(db);
    db->backend->scan_close(db, slot, s->own);
    if (slot != NULL) rq__slot_give_back(slot);
    scanner_free(s);
}

/* --- short forms ------------------------------------------------------------------------------ */

rq_err rq_put_value(rq_table *table, rq_bytes row, rq_bytes family, rq_bytes qualifier,
                    rq_bytes value, rq_failure *why)
{
    rq_edit edit = {.family = family, .qualifier = qualifier, .value = value};
    rq_change put = {
        .size = sizeof put, .kind = RQ_PUT, .row = row, .edits = &edit, .edit_count = 1};
    return rq_table_change(table, &put, NULL, why);
}

rq_err rq_delete_row(rq_table *table, rq_bytes row, rq_failure *why)
{
    rq_change change = {.size = sizeof change, .kind = RQ_DELETE, .row = row};
    return rq_table_change(table, &change, NULL, why);
}

rq_err rq_get_value(rq_table *table, rq_bytes row, rq_bytes family, rq_bytes qualifier, void *buf,
                    size_t cap, size_t *ret_len, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret_len, "place for the length", failure));
    if (cap > 0) RQ_TRY(rq_needs(buf, "buffer", failure));
    rq_column column = {family, qualifier};
    if (qualifier.data == NULL) column.qualifier = (rq_bytes){"", 0};
    rq_get_request get = {.size = sizeof get, .row = row, .columns = &column, .column_count = 1};
    rq_row *r;
    rq_err rc = rq_table_get(table, &get, &r, failure);
    if (rc != RQ_OK) return rc;
    *ret_len = SIZE_MAX;
    if (r->count > 0) {
        rq_bytes value = r->cells[0].value;
        *ret_len = value.len;
        if (value.len > cap) {
            rq_why why;
            rq_why_clear(&why);
            rc = rq_fail(&why.error, RQ_E_RESULT_TOO_LARGE, "the value has %zu bytes", value.len);
            (void)rq_fill_failure(failure, rc, &why);
        } else if (value.len > 0) {
            memcpy(buf, value.data, value.len);
        }
    }
    rq_row_free(r);
    return rc;
}

rq_err rq_add_value(rq_table *table, rq_bytes row, rq_bytes family, rq_bytes qualifier,
                    int64_t amount, int64_t *ret, rq_failure *failure)
{
    RQ_TRY(rq_needs(ret, "place for the result", failure));
    rq_edit edit = {.family = family, .qualifier = qualifier, .amount = amount};
    rq_change add = {
        .size = sizeof add, .kind = RQ_INCREMENT, .row = row, .edits = &edit, .edit_count = 1};
    rq_row *r;
    rq_err rc = rq_table_change(table, &add, &r, failure);
    if (rc != RQ_OK) return rc;
    if (r->count == 1 && r->cells[0].value.len == 8) {
        *ret = (int64_t)rq_get_be64(r->cells[0].value.data);
    } else {
        rq_why why;
        rq_why_clear(&why);
        rc = rq_fail(&why.error, RQ_E_MALFORMED,
                     "the increment's result is not a number of 8 bytes");
        (void)rq_fill_failure(failure, rc, &why);
    }
    rq_row_free(r);
    return rc;
}
