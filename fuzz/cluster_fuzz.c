/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between master and servers (cluster/wire.h): the first byte selects the message. A decoded message is
 * encoded and decoded again, and must be equal. */
#include "cluster/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const rq_server_name self = {.host = "h", .port = 1, .start_code = 2, .text = "h,1,2"};

static bool same_order(const rq_order *a, const rq_order *b)
{
    if (a->kind != b->kind || a->id != b->id || a->master_ms != b->master_ms ||
        a->abandon != b->abandon || a->flush != b->flush || a->family_count != b->family_count ||
        (a->moves_to == NULL) != (b->moves_to == NULL) ||
        strcmp(a->info.encoded, b->info.encoded) != 0)
        return false;
    for (size_t i = 0; i < a->family_count; i++)
        if (!rq_slice_eq(a->families[i], b->families[i])) return false;
    return a->moves_to == NULL || strcmp(a->moves_to->text, b->moves_to->text) == 0;
}

static void try_orders(rq_arena *a, rq_slice bytes)
{
    rq_order *list, *again;
    size_t count, count_again;
    int64_t code, code_again;
    rq_slice written;
    if (rq__orders_decode(bytes, a, &list, &count, &code, NULL) != RQ_OK) return;
    if (rq__orders_encode(list, count, code, a, &written) != RQ_OK ||
        rq__orders_decode(written, a, &again, &count_again, &code_again, NULL) != RQ_OK ||
        count != count_again)
        abort();
    for (size_t i = 0; i < count; i++)
        if (!same_order(&list[i], &again[i])) abort();
    rq_revoked *revoked, *revoked_again;
    if (rq__revoked_decode(bytes, a, &revoked, &count) != RQ_OK) abort();
    if (rq__revoked_append(revoked, count, a, &written) != RQ_OK ||
        rq__revoked_decode(written, a, &revoked_again, &count_again) != RQ_OK ||
        count != count_again)
        abort();
    for (size_t i = 0; i < count; i++)
        if (strcmp(revoked[i].server, revoked_again[i].server) != 0 ||
            revoked[i].quiet_in_ms != revoked_again[i].quiet_in_ms)
            abort();
}

static bool same_family(const rq_family_files *a, const rq_family_files *b)
{
    if (a->count != b->count || !rq_slice_eq(a->name, b->name)) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!rq_slice_eq(a->files[i].name, b->files[i].name) ||
            !rq_slice_eq(a->files[i].reference, b->files[i].reference) ||
            a->files[i].size != b->files[i].size)
            return false;
    return true;
}

/* A copy must be equal, too. */
static bool same_files(rq_arena *arena, const rq_region_files *a, const rq_region_files *b)
{
    rq_region_files copy;
    if (a->count != b->count || rq__wire_copy_files(b, arena, &copy) != RQ_OK) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!same_family(&a->families[i], &copy.families[i])) return false;
    return copy.count == a->count;
}

/* Compares the names in mob_writes; a copy must be equal, too. */
static bool same_names(rq_arena *arena, const rq_outcome *a, const rq_outcome *b)
{
    rq_slice *copy;
    if (a->mob_write_count != b->mob_write_count ||
        rq__wire_copy_names(b->mob_writes, b->mob_write_count, arena, &copy) != RQ_OK)
        return false;
    for (size_t i = 0; i < a->mob_write_count; i++)
        if (!rq_slice_eq(a->mob_writes[i], copy[i])) return false;
    return true;
}

static bool same_outcome(const rq_outcome *a, const rq_outcome *b)
{
    return a->kind == b->kind && a->id == b->id && a->master_ms == b->master_ms && a->rc == b->rc &&
           (a->rc != RQ_OK ||
            (a->open_seqnum == b->open_seqnum && a->splittable == b->splittable &&
             a->mergeable == b->mergeable && rq_slice_eq(a->split_row, b->split_row)));
}

static rq_err decode(bool transitions, rq_slice bytes, rq_arena *a, rq_outcome **ret, size_t *count)
{
    const rq_server_name *from;
    return transitions ? rq__transitions_decode(bytes, a, ret, count, &from, NULL)
                       : rq__procedures_done_decode(bytes, a, ret, count, NULL);
}

static void try_outcomes(rq_arena *a, rq_slice bytes, bool transitions)
{
    rq_outcome *list, *again;
    size_t count, one;
    rq_slice written;
    if (decode(transitions, bytes, a, &list, &count) != RQ_OK) return;
    for (size_t i = 0; i < count; i++) {
        if (rq__outcome_encode(&list[i], &self, a, &written) != RQ_OK ||
            decode(transitions, written, a, &again, &one) != RQ_OK || one != 1 ||
            !same_outcome(&list[i], again) ||
            (again->rc == RQ_OK &&
             !(same_files(a, &list[i].files, &again->files) && same_names(a, &list[i], again))))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_arena arena = {0};
    if (size == 0) return 0;
    rq_slice rest = rq_slice_of(data + 1, size - 1);
    if (data[0] % 3 == 0)
        try_orders(&arena, rest);
    else
        try_outcomes(&arena, rest, data[0] % 3 == 1);
    rq_arena_clear(&arena);
    return 0;
}
