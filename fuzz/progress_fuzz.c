/* SPDX-License-Identifier: Apache-2.0 */
/* The state files of transfers: a plan, the journal of a load, the step of a bulk load; the first byte selects the
 * kind. A file that decodes is encoded and decoded again. */
#include "transfer/bulk_work.h"
#include "transfer/load_journal.h"
#include "vfs/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { JOURNAL, PLAN, STEP, KINDS };

static void check_journal(rq_vfs *v)
{
    rq__load_journal j;
    const rq__journal_line done = {.path = "cf/new", .state = RQ__LOAD_DONE};
    rq_err rc = rq__journal_open(v, "t=1", &j, NULL);
    RQ_ASSERT(rc == RQ_OK || rc == RQ_E_CORRUPT || rc == RQ_E_CONFLICT || rc == RQ_E_VERSION);
    size_t count = j.count;
    for (size_t i = 0; rc == RQ_OK && i < count; i++)
        RQ_ASSERT(rq__journal_state(&j, j.lines[i].path) != RQ__LOAD_NEW);
    if (rc == RQ_OK) RQ_ASSERT(rq__journal_note(&j, &done, 1, NULL) == RQ_OK);
    rq__journal_close(&j);
    if (rc != RQ_OK) return;
    RQ_ASSERT(rq__journal_open(v, "t=1", &j, NULL) == RQ_OK);
    RQ_ASSERT(j.count == count + 1 && rq__journal_state(&j, done.path) == RQ__LOAD_DONE);
    rq__journal_close(&j);
}

static void check_plan(rq_vfs *v)
{
    rq__plan p;
    rq_err rc = rq__plan_open(v, "w", "x=1", NULL, 0, false, &p, NULL);
    RQ_ASSERT(rc == RQ_OK || rc == RQ_E_CORRUPT || rc == RQ_E_CONFLICT);
    if (rc == RQ_OK) RQ_ASSERT(p.is_resumed && p.done == 0);
    rq__plan_close(&p);
}

static void check_step(rq_vfs *v)
{
    rq__bulk_work w;
    rq__files none = {0};
    rq_err rc = rq__work_open(NULL, v, "/v", "w", "x=1", &none, &w, NULL);
    RQ_ASSERT(rc == RQ_OK || rc == RQ_E_CORRUPT);
    RQ_ASSERT((rc == RQ_OK) == (w.step != RQ__BULK_SORTING));
    rq__work_close(&w);
    rq_arena_clear(&none.arena);
}

static bool put(rq_vfs *v, const char *path, rq_slice bytes)
{
    return rq_vfs_write_new_file(v, path, bytes, NULL) == RQ_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rq_vfs *v;
    if (size == 0 || size > 65536 || rq_vfs_memory_new(&v) != RQ_OK) return 0;
    rq_slice rest = rq_slice_of(data + 1, size - 1);
    int kind = data[0] % KINDS;
    bool done = rq_vfs_mkdirs(v, "w", NULL) == RQ_OK;
    if (done && kind == JOURNAL && put(v, "_rorqual_load", rest)) check_journal(v);
    if (done && kind == PLAN && put(v, "w/plan", rest)) check_plan(v);
    rq_slice plan = RQ_SLICE_LIT("rorqual plan 1\nstamp 7\nfor x=1\nend\n");
    if (done && kind == STEP && put(v, "w/plan", plan) && put(v, "w/step", rest)) check_step(v);
    rq_vfs_free(v);
    return 0;
}
