/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and rows as text for the parts of test_api; see api_rows.h. */
#include "api_rows.h"

fixture at;
rq_failure why = {.size = sizeof(rq_failure)};

rq_table *make(const char *name, const char *versions, const rq_bytes *splits, size_t count)
{
    rq_property attributes[] = {{"VERSIONS", versions}};
    rq_family families[] = {{"f", attributes, 1}, {"g", NULL, 0}};
    rq_table_spec spec = {.size = sizeof spec,
                          .name = name,
                          .families = families,
                          .family_count = 2,
                          .split_keys = splits,
                          .split_key_count = count};
    rq_table *t = NULL;
    OK(rq_table_create(at.db, &spec, &why));
    OK(rq_table_open(at.db, name, &t, &why));
    return t;
}

void finish(rq_table *t, const char *name)
{
    rq_table_close(t);
    OK(rq_table_disable(at.db, name, &why));
    OK(rq_table_drop(at.db, name, &why));
}

void put(rq_table *t, const char *row, const char *family, const char *qualifier, const char *value,
         int64_t timestamp)
{
    rq_edit edit = {rq_text(family), rq_text(qualifier), rq_text(value), timestamp, 0, 0, 0};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_PUT,
                        .row = rq_text(row),
                        .edits = &edit,
                        .edit_count = 1};
    OK(rq_table_change(t, &change, NULL, &why));
}

rq_err erase(rq_table *t, const char *row, rq_delete_scope scope, const char *qualifier,
             int64_t timestamp)
{
    rq_edit edit = {rq_text("f"), rq_text(qualifier), {NULL, 0}, timestamp, 0, scope, 0};
    rq_change change = {.size = sizeof change,
                        .kind = RQ_DELETE,
                        .row = rq_text(row),
                        .edits = &edit,
                        .edit_count = 1};
    return rq_table_change(t, &change, NULL, &why);
}

char *text_of(const rq_row *row)
{
    size_t cap = 64;
    for (size_t i = 0; i < row->count; i++)
        cap +=
            row->cells[i].family.len + row->cells[i].qualifier.len + row->cells[i].value.len + 32;
    char *text = malloc(cap);
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < row->count; i++) {
        const rq_kv *c = &row->cells[i];
        len += (size_t)snprintf(
            text + len, cap - len, "%s%.*s:%.*s@%lld=%.*s", i > 0 ? " " : "", (int)c->family.len,
            (const char *)c->family.data, (int)c->qualifier.len, (const char *)c->qualifier.data,
            (long long)c->timestamp, (int)c->value.len, (const char *)c->value.data);
    }
    return text;
}

void expect_get(rq_table *t, const rq_get_request *get, const char *expected)
{
    rq_row *row = NULL;
    OK(rq_table_get(t, get, &row, &why));
    char *text = text_of(row);
    assert_string_equal(text, expected);
    assert_int_equal(row->exists, expected[0] != '\0');
    free(text);
    rq_row_free(row);
}

void expect_row(rq_table *t, const char *row, const char *expected)
{
    rq_get_request get = {.size = sizeof get, .row = rq_text(row), .max_versions = RQ_ALL_VERSIONS};
    expect_get(t, &get, expected);
}

int open_db(void **state)
{
    (void)state;
    rq_connect_options o = {.size = sizeof o, .no_threads = at.no_threads};
    rq_err rc = rq_connect(at.url, &o, &at.db, &why);
    if (rc != RQ_OK) fprintf(stderr, "%s: %s: %s\n", at.url, rq_err_name(rc), why.message);
    return rc == RQ_OK ? 0 : -1;
}

int close_db(void **state)
{
    (void)state;
    return at.db == NULL || rq_disconnect(at.db, &why) == RQ_OK ? 0 : -1;
}
