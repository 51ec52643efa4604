/* SPDX-License-Identifier: Apache-2.0 */
/* Times in text: Time#strftime, and the forms in which HBase's shell prints times. */
#include "shell/shell_priv.h"

#include "base/clock.h"

#include <mruby/class.h>
#include <mruby/string.h>
#include <stdio.h>
#include <time.h>

/* Shell.local_time(ms) → "2026-01-31T12:00:01.500". HBASE (Java): LocalDateTime.toString omits
 * seconds and milliseconds that are 0. */
static mrb_value local_time(mrb_state *mrb, mrb_value self)
{
    mrb_int ms;
    char text[64];
    struct tm t;
    (void)self;
    mrb_get_args(mrb, "i", &ms);
    mrb_int rest = ms % 1000 < 0 ? ms % 1000 + 1000 : ms % 1000;
    time_t seconds = (time_t)(ms / 1000 - (ms % 1000 < 0));
    if (localtime_r(&seconds, &t) == NULL)
        mrb_raise(mrb, E_ARGUMENT_ERROR, "Instant exceeds minimum or maximum instant");
    long year = t.tm_year + 1900L;
    int n = snprintf(text, sizeof text, "%s%04ld-%02d-%02dT%02d:%02d", year > 9999 ? "+" : "", year,
                     t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min);
    if (t.tm_sec != 0 || rest != 0)
        n += snprintf(text + n, sizeof text - (size_t)n, ":%02d", t.tm_sec);
    if (rest != 0) n += snprintf(text + n, sizeof text - (size_t)n, ".%03d", (int)rest);
    return mrb_str_new(mrb, text, n);
}

/* Bytes. A longer text is refused: a format may ask for a field of any width. */
#define TEXT_MAX ((mrb_int)1 << 20)

/* strftime returns 0 if there is no room and if the text is empty. So a byte is appended to the format, and removed
 * from the text. */
static mrb_value text_of(mrb_state *mrb, const char *format, const struct tm *t)
{
    mrb_value marked = mrb_str_cat_lit(mrb, mrb_str_new_cstr(mrb, format), ".");
    const char *whole = mrb_string_cstr(mrb, marked);
    for (mrb_int size = 256; size <= TEXT_MAX; size *= 16) {
        mrb_value text = mrb_str_new_capa(mrb, size);
        size_t n = strftime(RSTRING_PTR(text), (size_t)size, whole, t);
        if (n > 0) return mrb_str_new(mrb, RSTRING_PTR(text), (mrb_int)n - 1);
    }
    mrb_raise(mrb, E_ARGUMENT_ERROR, "the time in this format is too long");
    return mrb_nil_value();
}

/* Shell.strftime(format, seconds, utc) */
static mrb_value format_time(mrb_state *mrb, mrb_value self)
{
    const char *format;
    mrb_int seconds;
    mrb_bool utc;
    struct tm t;
    (void)self;
    mrb_get_args(mrb, "zib", &format, &seconds, &utc);
    time_t at = (time_t)seconds;
    if ((utc ? gmtime_r(&at, &t) : localtime_r(&at, &t)) == NULL)
        mrb_raise(mrb, E_ARGUMENT_ERROR, "no such time");
    return text_of(mrb, format, &t);
}

static mrb_value now_ms(mrb_state *mrb, mrb_value self)
{
    (void)self;
    return mrb_int_value(mrb, (mrb_int)(rq_clock_ns(CLOCK_REALTIME) / 1000000));
}

static mrb_value monotonic(mrb_state *mrb, mrb_value self)
{
    (void)self;
    return mrb_float_value(mrb, (double)rq_client_now_ns() / 1e9);
}

void rq__define_times(mrb_state *mrb)
{
    struct RClass *m = mrb_define_module(mrb, "Shell");
    mrb_define_module_function(mrb, m, "local_time", local_time, MRB_ARGS_REQ(1));
    mrb_define_module_function(mrb, m, "strftime", format_time, MRB_ARGS_REQ(3));
    mrb_define_module_function(mrb, m, "now_ms", now_ms, MRB_ARGS_NONE());
    mrb_define_module_function(mrb, m, "monotonic", monotonic, MRB_ARGS_NONE());
}
