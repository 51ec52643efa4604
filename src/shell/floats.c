/* SPDX-License-Identifier: Apache-2.0 */
/* Corrections to mruby's numbers: the order of large integers, and the text of floats.
 *
 * Float#to_s as the official shell prints floats: the shortest digits that read back as the same
 * number, without an exponent between 0.0001 and 10^19.
 *
 * mruby keeps a float in a word whose two lowest bits are a tag, so a float stands for four doubles that
 * differ in these bits. At most one number of up to 15 digits lies among them; it is what the script wrote
 * or computed. Otherwise the double is unknown: one with many zero bits is taken as exact, of others the
 * second of the four is printed. Each of these texts reads back as the same float of mruby. */
#include "shell/shell_priv.h"

#include "base/doubles.h"

#include <math.h>
#include <mruby/class.h>
#include <mruby/string.h>
#include <stdlib.h>

#define TAG_BITS 3ULL     /* of the word */
#define EXACT_BITS 255ULL /* all zero: a sum of few powers of two (integers, halves) */
#define DIGITS_SAFE 15    /* digits that every float of mruby keeps */
#define DIGITS_MAX 17
#define POINT_MIN (-3) /* number of places of the decimal point from which an exponent is written */
#define POINT_MAX 19

/* The text of f with that many digits, as %e writes it, if reading it gives f except for the
 * `tolerated` bits. */
static bool reads_back(double f, int digits, uint64_t tolerated, char text[static 32])
{
    snprintf(text, 32, "%.*e", digits - 1, f);
    return ((rq_bits_of_double(strtod(text, NULL)) ^ rq_bits_of_double(f)) & ~tolerated) == 0;
}

static void shortest(double f, char text[static 32])
{
    uint64_t bits = rq_bits_of_double(f) & ~TAG_BITS;
    for (int digits = 1; digits <= DIGITS_SAFE; digits++)
        for (uint64_t tag = 0; tag <= TAG_BITS; tag++)
            if (reads_back(rq_double_of_bits(bits | tag), digits, TAG_BITS, text)) return;
    if ((bits & EXACT_BITS) != 0) bits |= 1;
    for (int digits = DIGITS_SAFE + 1; digits <= DIGITS_MAX; digits++)
        if (reads_back(rq_double_of_bits(bits), digits, 0, text)) return;
}

/* "1.25e+03" → "1250.0" */
static mrb_value in_ruby(mrb_state *mrb, const char *text)
{
    char digits[DIGITS_MAX + 1], out[64];
    int count = 0, n = 0;
    bool negative = *text == '-';
    const char *at = text + negative;
    for (; *at != 'e'; at++)
        if (*at != '.') digits[count++] = *at;
    int exponent = (int)strtol(at + 1, NULL, 10), point = exponent + 1;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    if (negative) out[n++] = '-';
    if (point < POINT_MIN || point > POINT_MAX)
        n += snprintf(out + n, sizeof out - (size_t)n, "%c.%.*se%+03d", digits[0],
                      count > 1 ? count - 1 : 1, count > 1 ? digits + 1 : "0", exponent);
    else if (point <= 0)
        n += snprintf(out + n, sizeof out - (size_t)n, "0.%.*s%.*s", -point, "000", count, digits);
    else if (count <= point)
        n += snprintf(out + n, sizeof out - (size_t)n, "%.*s%.*s.0", count, digits, point - count,
                      "000000000000000000");
    else
        n += snprintf(out + n, sizeof out - (size_t)n, "%.*s.%.*s", point, digits, count - point,
                      digits + point);
    return mrb_str_new(mrb, out, n);
}

static mrb_value to_s(mrb_state *mrb, mrb_value self)
{
    char text[32];
    double f = mrb_float(self);
    if (isnan(f)) return mrb_str_new_lit(mrb, "NaN");
    if (isinf(f)) return mrb_str_new_cstr(mrb, f < 0 ? "-Infinity" : "Infinity");
    shortest(f, text);
    return in_ruby(mrb, text);
}

/* Integer#<=>: mruby compares integers as floats, so from 2^51 on different integers compare
 * equal. */
static mrb_value compare_integers(mrb_state *mrb, mrb_value self)
{
    mrb_value other;
    mrb_get_args(mrb, "o", &other);
    if (mrb_integer_p(other)) {
        mrb_int a = mrb_integer(self), b = mrb_integer(other);
        return mrb_fixnum_value((a > b) - (a < b));
    }
    if (mrb_float_p(other)) {
        double a = (double)mrb_integer(self), b = mrb_float(other);
        return isnan(b) ? mrb_nil_value() : mrb_fixnum_value((a > b) - (a < b));
    }
    return mrb_nil_value();
}

void rq__define_floats(mrb_state *mrb)
{
    mrb_define_method(mrb, mrb->integer_class, "<=>", compare_integers, MRB_ARGS_REQ(1));
    mrb_define_method(mrb, mrb->float_class, "to_s", to_s, MRB_ARGS_NONE());
    mrb_define_method(mrb, mrb->float_class, "inspect", to_s, MRB_ARGS_NONE());
}
