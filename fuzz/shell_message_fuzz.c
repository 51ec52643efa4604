/* SPDX-License-Identifier: Apache-2.0 */
/* A server's message as the shell reads it into a hash (src/shell/message.c): two bytes choose the
 * type, the rest is the message's bytes. A decoded message is encoded, decoded again, and must
 * encode to the same bytes. The same bytes are also searched for nested messages. */
#include "shell/shell_priv.h"

#include "shell/messages.h"

#include <mruby/array.h>
#include <mruby/class.h>
#include <mruby/string.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static mrb_value call(mrb_state *mrb, const char *method, const char *name, mrb_value argument)
{
    mrb_value wire = mrb_obj_value(mrb_module_get(mrb, "Wire"));
    return mrb_funcall(mrb, wire, method, 2, mrb_str_new_cstr(mrb, name), argument);
}

static void read_and_write(mrb_state *mrb, const char *name, rq_slice bytes)
{
    mrb_value text = mrb_str_new(mrb, (const char *)bytes.ptr, (mrb_int)bytes.len);
    mrb_value hash = call(mrb, "decode", name, text);
    if (mrb->exc != NULL) return; /* the message is malformed */
    mrb_value again = call(mrb, "encode", name, hash);
    if (mrb->exc != NULL) return; /* a field with the wrong wire type is kept, but has no value */
    mrb_value same = call(mrb, "decode", name, again);
    if (mrb->exc != NULL) abort();
    mrb_value third = call(mrb, "encode", name, same);
    if (!rq_slice_eq(rq__slice_of(again), rq__slice_of(third))) abort();
}

static mrb_value path(mrb_state *mrb, mrb_int a, mrb_int b)
{
    return mrb_assoc_new(mrb, mrb_int_value(mrb, a), mrb_int_value(mrb, b));
}

/* -1: malformed. */
static mrb_int count_selected(mrb_state *mrb, rq_slice bytes, const char *prefix)
{
    mrb_value wire = mrb_obj_value(mrb_module_get(mrb, "Wire"));
    mrb_value text = mrb_str_new(mrb, (const char *)bytes.ptr, (mrb_int)bytes.len);
    mrb_value list = mrb_funcall(mrb, wire, "select", 4, text, path(mrb, 1, 2), path(mrb, 1, 2),
                                 mrb_str_new_cstr(mrb, prefix));
    bool is_malformed = mrb->exc != NULL;
    mrb->exc = NULL;
    return is_malformed ? -1 : RARRAY_LEN(list);
}

static void search(mrb_state *mrb, rq_slice bytes)
{
    mrb_int all = count_selected(mrb, bytes, ""), some = count_selected(mrb, bytes, "t");
    if (some > all || (some < 0) != (all < 0)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rq__shell session; /* kept, because making a state of mruby takes longer than an input */
    if (session.mrb == NULL) {
        session.mrb = mrb_open();
        if (session.mrb == NULL) abort();
        session.mrb->ud = &session;
        rq__define_messages(session.mrb);
    }
    if (size < 2) return 0;
    size_t which = ((size_t)data[0] << 8 | data[1]) % rq__message_count;
    int arena = mrb_gc_arena_save(session.mrb);
    read_and_write(session.mrb, rq__messages[which]->short_name, rq_slice_of(data + 2, size - 2));
    session.mrb->exc = NULL;
    search(session.mrb, rq_slice_of(data + 2, size - 2));
    mrb_gc_arena_restore(session.mrb, arena);
    return 0;
}
