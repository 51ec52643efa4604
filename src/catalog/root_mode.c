/* SPDX-License-Identifier: Apache-2.0 */
/* The modes of an existing data folder, made by an older version that left it readable to everyone,
 * by HBase, or by mkdir. The entries in the root are restricted, which protects everything below;
 * so is the root itself if it contains nothing but a database (not if someone serves /tmp). Modes
 * are only ever restricted: stricter modes set by the operator are kept. */
#include "catalog/root_priv.h"

#include <string.h>

/* Names in the root that are ours or HBase's. */
static const char *const names[] = {
    ".hbase-snapshot", ".hbck", ".rorqual", ".tmp",          "MasterData", "WALs",    "archive",
    "corrupt",         "data",  "hbase.id", "hbase.version", "mobdir",     "oldWALs", "staging",
};

static bool is_known(const char *name)
{
    if (strcmp(name, "lost+found") == 0) return true; /* a file system's own */
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* The root's entries. */
typedef struct listing {
    rq_dir_entry *entries;
    size_t count;
    bool failed; /* the entries could not be listed */
} listing;

/* Whether there are no foreign entries. */
static bool is_dedicated(const listing *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (!is_known(l->entries[i].name)) return false;
    return !l->failed;
}

static bool may_have(const listing *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->entries[i].name, name) == 0) return true;
    return l->failed;
}

static void restrict_one(rq_vfs *v, const rq_log *log, rq_log_level level, const char *name)
{
    unsigned was;
    rq_error why = {0};
    const char *shown = name[0] == '\0' ? "the folder itself" : name;
    if (rq_vfs_restrict_mode(v, name, &was, &why) != RQ_OK)
        rq_log_warn(log, "catalog", "%s", why.message);
    else if (was != 0)
        rq_log_write(log, level, "catalog",
                     "restricted the data folder's permissions (%s had mode %04o); setting "
                     "rorqual.data.mode allows access by other users",
                     shown, was);
}

void rq__root_restrict(rq_vfs *v, const rq_log *log, bool is_new)
{
    rq_arena a = {0};
    listing l = {0};
    l.failed = rq_vfs_list(v, "", &a, &l.entries, &l.count, NULL) != RQ_OK;
    bool dedicated = is_dedicated(&l);
    /* Once the root is closed, the other modes need no warning. */
    if (dedicated) restrict_one(v, log, is_new ? RQ_LOG_INFO : RQ_LOG_WARN, "");
    for (size_t i = 0; i < RQ_ARRAY_LEN(names); i++)
        if (may_have(&l, names[i]))
            restrict_one(v, log, dedicated ? RQ_LOG_INFO : RQ_LOG_WARN, names[i]);
    rq_arena_clear(&a);
}
