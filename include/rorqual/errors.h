/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error codes of Rorqual. Their numbers are part of the library's ABI: a code keeps its number,
 * and new codes are appended. rq_err_text describes a code; rq_failure (rorqual.h) has the message
 * of a failed call.
 *
 * The server and the library share this list. The declaration of each call of the library names the
 * codes that it returns. 1 and 2 are internal to the engine and never returned.
 */
#ifndef RORQUAL_ERRORS_H
#define RORQUAL_ERRORS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RQ_API __attribute__((visibility("default")))
#else
#define RQ_API
#endif

typedef enum rq_err {
    RQ_OK = 0,
    RQ_E_NOT_FOUND = 3,                /* not found */
    RQ_E_EXISTS = 4,                   /* exists already */
    RQ_E_NO_MEMORY = 5,                /* out of memory */
    RQ_E_IO = 6,                       /* input/output error */
    RQ_E_NO_SPACE = 7,                 /* no space left on device */
    RQ_E_CORRUPT = 8,                  /* corrupt bytes */
    RQ_E_MALFORMED = 9,                /* malformed bytes */
    RQ_E_VERSION = 10,                 /* written by a newer version */
    RQ_E_CONFLICT = 11,                /* changed by another writer */
    RQ_E_LOCKED = 12,                  /* in use by another server */
    RQ_E_PERMISSION = 13,              /* permission denied */
    RQ_E_CONFIG = 14,                  /* bad setting */
    RQ_E_INVALID = 15,                 /* invalid argument */
    RQ_E_STATE = 16,                   /* not possible in this state */
    RQ_E_UNSUPPORTED = 17,             /* not supported */
    RQ_E_CANCELLED = 18,               /* cancelled */
    RQ_E_TIMEOUT = 19,                 /* timed out */
    RQ_E_IOEXCEPTION = 20,             /* input/output exception */
    RQ_E_DO_NOT_RETRY = 21,            /* request refused */
    RQ_E_NOT_SERVING_REGION = 22,      /* region is not online */
    RQ_E_WRONG_REGION = 23,            /* row is outside the region */
    RQ_E_REGION_MOVED = 24,            /* region moved */
    RQ_E_REGION_OPENING = 25,          /* region is opening */
    RQ_E_REGION_TOO_BUSY = 26,         /* region is over its memstore limit */
    RQ_E_SERVER_STOPPED = 27,          /* server is stopping */
    RQ_E_SERVER_ABORTED = 28,          /* server aborted */
    RQ_E_SERVER_NOT_RUNNING = 29,      /* server is not running yet */
    RQ_E_PLEASE_HOLD = 30,             /* master is initializing */
    RQ_E_CALL_QUEUE_TOO_BIG = 31,      /* call queue is full */
    RQ_E_CALL_DROPPED = 32,            /* call dropped */
    RQ_E_REQUEST_TOO_BIG = 33,         /* request is too big */
    RQ_E_RESULT_TOO_LARGE = 34,        /* result is too large */
    RQ_E_RETRY_IMMEDIATELY = 35,       /* retry at once */
    RQ_E_UNKNOWN_SCANNER = 36,         /* unknown scanner */
    RQ_E_OUT_OF_ORDER_SCANNER = 37,    /* next call is out of order */
    RQ_E_SCANNER_RESET = 38,           /* scanner was reset */
    RQ_E_LEASE = 39,                   /* lease does not exist */
    RQ_E_SANITY_CHECK = 40,            /* sanity check failed */
    RQ_E_NO_SUCH_FAMILY = 41,          /* no such column family */
    RQ_E_TABLE_NOT_FOUND = 42,         /* table not found */
    RQ_E_TABLE_EXISTS = 43,            /* table exists */
    RQ_E_TABLE_NOT_ENABLED = 44,       /* table is not enabled */
    RQ_E_TABLE_NOT_DISABLED = 45,      /* table is not disabled */
    RQ_E_NAMESPACE_EXISTS = 46,        /* namespace exists */
    RQ_E_NAMESPACE_NOT_FOUND = 47,     /* namespace not found */
    RQ_E_CONSTRAINT = 48,              /* constraint violated */
    RQ_E_UNKNOWN_REGION = 49,          /* unknown region */
    RQ_E_MERGE_REGION = 50,            /* regions cannot be merged */
    RQ_E_INVALID_FAMILY_OP = 51,       /* invalid family operation */
    RQ_E_UNKNOWN_PROTOCOL = 52,        /* unknown protocol */
    RQ_E_INVALID_HFILE = 53,           /* not a file that can be loaded */
    RQ_E_ACCESS_DENIED = 54,           /* access denied */
    RQ_E_QUOTA_EXCEEDED = 55,          /* quota exceeded */
    RQ_E_ROW_TOO_BIG = 56,             /* row is bigger than the largest allowed */
    RQ_E_INCOMPATIBLE_FILTER = 57,     /* filter does not fit the scan */
    RQ_E_ROW_LOCK_TIMEOUT = 58,        /* timed out waiting for a row lock */
    RQ_E_OPERATION_CONFLICT = 59,      /* operation runs already or was done */
    RQ_E_CALL_TIMEOUT = 60,            /* call timed out */
    RQ_E_CALLER_DISCONNECTED = 61,     /* caller disconnected */
    RQ_E_FATAL_CONNECTION = 62,        /* connection refused */
    RQ_E_BAD_AUTH = 63,                /* bad authentication method */
    RQ_E_WRONG_VERSION = 64,           /* wrong protocol version */
    RQ_E_UNKNOWN_SERVICE = 65,         /* unknown service */
    RQ_E_UNSUPPORTED_CODEC = 66,       /* unsupported cell codec */
    RQ_E_UNSUPPORTED_COMPRESSION = 67, /* unsupported compression codec */
    RQ_E_SECURITY_NOT_ENABLED = 68,    /* security is not enabled */
    RQ_E_WRONG_ROW = 69,               /* cell of another row */
    RQ_E_ILLEGAL_ARGUMENT = 70,        /* illegal argument */
    RQ_E_NULL_POINTER = 71,            /* null */
    RQ_E_DO_NOT_RETRY_REGION = 72,     /* region is not in the right state */
    RQ_E_FORKED = 73,             /* the database was opened before a fork, by the parent process */
    RQ_E_CLOSED = 74,             /* the database is closed */
    RQ_E_PEER_NOT_FOUND = 75,     /* no such replication peer */
    RQ_E_SNAPSHOT_EXISTS = 76,    /* snapshot exists */
    RQ_E_SNAPSHOT_NOT_FOUND = 77, /* snapshot does not exist */
    RQ_E_SNAPSHOT_CREATION = 78,  /* snapshot cannot be taken */
    RQ_E_SNAPSHOT_CORRUPT = 79,   /* snapshot is damaged */
    RQ_E_SNAPSHOT_RESTORE = 80,   /* snapshot cannot be restored */
    RQ_E_SNAPSHOT_UNKNOWN = 81,   /* unknown snapshot */
    RQ_E_SNAPSHOT_EXPIRED = 82,   /* snapshot has expired */
    RQ_E_THROTTLED = 83,          /* a quota of requests is used up */
    RQ_E_SPACE_LIMITED = 84,      /* a space quota is violated */
    RQ_E_YOU_ARE_DEAD = 85,       /* the master has given this server up */
    RQ_E_CLOCK_OUT_OF_SYNC = 86,  /* the server's clock differs too much from the master's */
    RQ_E_HOST_REJECTED = 87,      /* the server's host is decommissioned */
    RQ_E_HBASE_IO = 88,           /* input/output exception of HBase */
} rq_err;

/* The code's name ("RQ_E_TABLE_NOT_FOUND") and a description of it. Static strings, never NULL; any
 * thread. */
RQ_API const char *rq_err_name(rq_err code);
/* "table not found"; of a number that is no code, a text that says so. */
RQ_API const char *rq_err_text(rq_err code);

#ifdef __cplusplus
}
#endif

#endif
