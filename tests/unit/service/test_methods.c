/* SPDX-License-Identifier: Apache-2.0 */
/* Every RPC method of HBase (rpc/methods.def) is either served, or listed with the reason in
 * service/lacking.def; a method listed there is refused when it is called. This program generates
 * the page of methods, and compares it:
 *
 *   test_service_methods PAGE            fails if the page is not current
 *   test_service_methods PAGE --write    writes it */
#include "request_maker.h"
#include "service_world.h"

#include "proto/access_control.pb-c.h"
#include "proto/admin.pb-c.h"
#include "proto/client.pb-c.h"
#include "proto/logs.pb-c.h"
#include "proto/master.pb-c.h"
#include "proto/quota.pb-c.h"
#include "proto/region_server_status.pb-c.h"
#include "proto/registry.pb-c.h"
#include "proto/replication.pb-c.h"
#include "service/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum status { SERVED, REFUSED, ABSENT } status;

typedef struct method {
    const char *service, *name;
} method;

static const method methods[] = {
#define X(service, method, request, response) {#service, #method},
#include "rpc/methods.def"
#undef X
};

static const struct lack {
    method of;
    status status;
    const char *reason;
} lacks[] = {
#define X(service, method, kind, reason) {{#service, #method}, kind, reason},
#include "service/lacking.def"
#undef X
};

static bool is_same(method a, method b)
{
    return strcmp(a.service, b.service) == 0 && strcmp(a.name, b.name) == 0;
}

static const struct lack *lack_of(method m)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(lacks); i++)
        if (is_same(lacks[i].of, m)) return &lacks[i];
    return NULL;
}

static bool is_method(method m)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++)
        if (is_same(methods[i], m)) return true;
    return false;
}

/* NULL: no table has it. AdminService has two tables; the region server's has every method of the
 * master's. */
static const rq_rpc_method *find(const service_world *w, method m, service_kind *ret_kind)
{
    for (size_t k = 0; k < SERVICE_KINDS; k++) {
        const rq_rpc_service *s = &w->services[k];
        for (size_t i = 0; i < s->method_count; i++)
            if (is_same((method){s->name, s->methods[i].name}, m)) {
                *ret_kind = (service_kind)k;
                return &s->methods[i];
            }
    }
    return NULL;
}

static void every_method_is_served_or_listed_with_a_reason(void **state)
{
    (void)state;
    service_world *w = service_world_new();
    service_kind kind;
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++) {
        const rq_rpc_method *m = find(w, methods[i], &kind);
        const struct lack *lack = lack_of(methods[i]);
        bool right = m == NULL ? lack != NULL && lack->status == ABSENT
                               : m->handle != NULL && (lack == NULL || lack->status == REFUSED);
        if (!right) fail_msg("%s.%s: table and list differ", methods[i].service, methods[i].name);
    }
    service_world_free(w);
}

static void the_list_names_methods_of_hbase_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < RQ_ARRAY_LEN(lacks); i++) {
        assert_true(is_method(lacks[i].of));
        assert_ptr_equal(lack_of(lacks[i].of), &lacks[i]);
        assert_true(strlen(lacks[i].reason) > 0);
    }
}

static void tables_have_methods_of_hbase_alone(void **state)
{
    (void)state;
    service_world *w = service_world_new();
    for (size_t k = 0; k < SERVICE_KINDS; k++)
        for (size_t i = 0; i < w->services[k].method_count; i++)
            assert_true(is_method((method){w->services[k].name, w->services[k].methods[i].name}));
    service_world_free(w);
}

static const char *call(service_world *w, service_kind kind, const rq_rpc_method *m, char *text,
                        size_t size)
{
    service_client c;
    rq_buf message = {0};
    request_plan plan = {.type = m->request, .region = w->regions[0]};
    request_make(&plan, &message);
    service_client_open(&c, w, kind, 0);
    assert_true(service_client_call(&c, m->name, rq_buf_slice(&message), (rq_slice){0}));
    snprintf(text, size, "%s",
             service_client_exception(&c) == NULL ? "" : c.header->exception->stack_trace);
    service_client_close(&c);
    rq_buf_clear(&message);
    return text;
}

static void refused_methods_say_why(void **state)
{
    (void)state;
    service_world *w = service_world_new();
    char text[1024];
    for (size_t i = 0; i < RQ_ARRAY_LEN(lacks); i++) {
        service_kind kind;
        if (lacks[i].status != REFUSED) continue;
        const rq_rpc_method *m = find(w, lacks[i].of, &kind);
        assert_non_null(m);
        if (strstr(call(w, kind, m, text, sizeof text), lacks[i].reason) == NULL)
            fail_msg("%s: '%s' instead of '%s'", m->name, text, lacks[i].reason);
    }
    service_world_free(w);
}

/* --- the page --------------------------------------------------------------------------------- */

static void print(rq_buf *out, const char *format, ...) RQ_PRINTF(2, 3);
static void print(rq_buf *out, const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    int len = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    assert_true(len >= 0 && (size_t)len < sizeof line);
    assert_int_equal(rq_buf_append(out, line, (size_t)len), RQ_OK);
}

#define LINE 110

static void print_served(rq_buf *out, const char *service)
{
    size_t column = 0;
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++) {
        if (strcmp(methods[i].service, service) != 0 || lack_of(methods[i]) != NULL) continue;
        const char *before = column == 0 ? "\nServed: " : column > LINE ? ",\n" : ", ";
        column = (column > LINE ? 0 : column) + strlen(before) + strlen(methods[i].name);
        print(out, "%s%s", before, methods[i].name);
    }
    if (column > 0) print(out, ".\n");
}

static void print_service(rq_buf *out, const char *service)
{
    size_t lacking = 0;
    print(out, "\n## %s\n", service);
    print_served(out, service);
    for (size_t i = 0; i < RQ_ARRAY_LEN(lacks); i++) {
        if (strcmp(lacks[i].of.service, service) != 0) continue;
        if (lacking++ == 0) print(out, "\n| method | answer | reason |\n|---|---|---|\n");
        print(out, "| %s | %s | %s |\n", lacks[i].of.name,
              lacks[i].status == REFUSED ? "refused" : "no such method", lacks[i].reason);
    }
}

static void print_endpoints(rq_buf *out)
{
    print(out,
          "\n## Coprocessor services\n\nServed in ExecService, for tables that have them:\n\n");
    for (size_t i = 0; i < rq__endpoint_service_count; i++) {
        const rq__endpoint_service *s = &rq__endpoint_services[i];
        print(out, "- %s:", s->name);
        for (size_t k = 0; k < *s->method_count; k++)
            print(out, "%s %s", k == 0 ? "" : ",", s->methods[k].name);
        print(out, "\n");
    }
}

static void print_page(rq_buf *out)
{
    print(out,
          "# RPC methods\n\n"
          "Every RPC method of HBase 2.6, and those that only clients of 1.x and 3.x call, by "
          "service. Made by\n`tests/unit/service/test_methods.c` from `src/rpc/methods.def`, "
          "`src/service/lacking.def` and the tables of the\nserver. Refused methods fail with "
          "DoNotRetryIOException and the reason. Differences in what served methods do are in\n"
          "[compatibility.md](compatibility.md).\n");
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++)
        if (i == 0 || strcmp(methods[i].service, methods[i - 1].service) != 0)
            print_service(out, methods[i].service);
    print_endpoints(out);
}

static const char *page;

static void the_page_is_current(void **state)
{
    (void)state;
    rq_buf text = {0};
    print_page(&text);
    FILE *f = fopen(page, "r");
    assert_non_null(f);
    char *read = calloc(1, text.len + 2);
    assert_non_null(read);
    size_t len = fread(read, 1, text.len + 1, f);
    (void)fclose(f);
    if (len != text.len || memcmp(read, text.ptr, len) != 0)
        fail_msg("%s is not current: test_service_methods %s --write", page, page);
    free(read);
    rq_buf_clear(&text);
}

static int write_page(void)
{
    rq_buf text = {0};
    print_page(&text);
    FILE *f = fopen(page, "w");
    bool done = f != NULL && fwrite(text.ptr, 1, text.len, f) == text.len;
    if (f != NULL && fclose(f) != 0) done = false;
    rq_buf_clear(&text);
    return done ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    page = argv[1];
    if (argc > 2 && strcmp(argv[2], "--write") == 0) return write_page();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_is_served_or_listed_with_a_reason),
        cmocka_unit_test(the_list_names_methods_of_hbase_once),
        cmocka_unit_test(tables_have_methods_of_hbase_alone),
        cmocka_unit_test(refused_methods_say_why),
        cmocka_unit_test(the_page_is_current),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
