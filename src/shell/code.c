/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles Ruby, and refuses code that mruby 3.1 compiles wrongly. mruby counts the literals of a unit of code (a file, a
 * statement, a block) in 16 bits, and does not notice when the count starts again at 0. The instructions then name
 * literals that the table does not have: running them would end the process by SIGSEGV. */
#include "shell/shell_priv.h"

#include <mruby/irep.h>
#include <mruby/opcode.h>
#include <mruby/proc.h>

typedef struct instruction {
    unsigned code, a, b; /* its first two operands; 0 if it has fewer */
} instruction;

/* An operand of one byte; of two behind an EXT. */
static unsigned operand(const mrb_code **at, bool is_wide)
{
    unsigned v = is_wide ? (unsigned)PEEK_S(*at) : PEEK_B(*at);
    *at += is_wide ? 2 : 1;
    return v;
}

/* The sizes of the operands, in the letters of mruby/ops.h. */
static const char *const layouts[] = {
#define OPCODE(name, operands) #operands,
#include <mruby/ops.h>
#undef OPCODE
};

/* Returns the place behind the instruction that begins at `at`. */
static const mrb_code *read_instruction(const mrb_code *at, instruction *ret)
{
    unsigned values[3] = {0}, n = 0, code = *at++;
    bool wide_a = code == OP_EXT1 || code == OP_EXT3, wide_b = code == OP_EXT2 || code == OP_EXT3;
    if (wide_a || wide_b) code = *at++;
    for (const char *p = layouts[code]; *p != '\0' && *p != 'Z'; p++) {
        bool is_wide = *p == 'S' || (*p == 'B' && ((n == 0 && wide_a) || (n == 1 && wide_b)));
        if (*p == 'W') at++;
        values[n++] = operand(&at, is_wide || *p == 'W');
    }
    *ret = (instruction){code, values[0], values[1]};
    return at;
}

static bool has_its_literals(const mrb_irep *irep)
{
    const mrb_code *at = irep->iseq, *end = irep->iseq + irep->ilen;
    while (at < end) {
        instruction i;
        at = read_instruction(at, &i);
        bool names_b = i.code == OP_LOADL || i.code == OP_SYMBOL || i.code == OP_STRING;
        if (names_b && i.b >= irep->plen) return false;
        if (i.code == OP_ERR && i.a >= irep->plen) return false;
    }
    return true;
}

/* Recursive over nested units; mruby's compiler limits their depth. */
static bool is_sound(const mrb_irep *irep)
{
    if (!has_its_literals(irep)) return false;
    for (unsigned i = 0; i < irep->rlen; i++)
        if (!is_sound(irep->reps[i])) return false;
    return true;
}

struct RProc *rq__compile(mrb_state *mrb, struct mrb_parser_state *p)
{
    struct RProc *proc = mrb_generate_code(mrb, p);
    return proc != NULL && is_sound(proc->body.irep) ? proc : NULL;
}
