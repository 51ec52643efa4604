#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A blog in one table: writes 10,000 posts of the year 2022 and prints those of December, the newest first.

    python3 blog.py file:/tmp/blog       in this process; or hbase://localhost:2181, memory:

The same as blog.c, whose rows it reads: the key is the blogger's id, "_", and the largest 64-bit number minus the post's time in
milliseconds, so that the newest post is the first.
"""
import sys

import rorqual

POSTS = 10_000
BLOGGER = "123"
YEAR_BEGIN, DECEMBER, YEAR_END = 1640995200000, 1669852800000, 1672531200000  # 2022-01-01, 2022-12-01, 2023-01-01, UTC
COLUMNS = ("title", "content", "tag")


def key_of(time):
    return f"{BLOGGER}_{2**63 - 1 - time:019}"


def write_posts(table):
    with table.batch(size=1000) as batch:
        for post in range(POSTS):
            time = YEAR_BEGIN + (YEAR_END - YEAR_BEGIN) // POSTS * post
            batch.put(key_of(time), {f"cf:{column}": f"{column}_{post}" for column in COLUMNS})


def print_december(table):
    """The newest post has the smallest key: the scan begins at December's end."""
    posts = 0
    for row in table.scan(key_of(YEAR_END - 1), key_of(DECEMBER), include_stop=True):
        print("--".join(row.get_str(f"cf:{column}", "") for column in COLUMNS))
        posts += 1
    print(f"{posts} posts in December")


def main():
    with rorqual.connect(sys.argv[1] if len(sys.argv) > 1 else "memory:") as db:
        table = db.table("blog") if db.table_exists("blog") else db.create_table("blog", ["cf"])
        write_posts(table)
        print_december(table)


if __name__ == "__main__":
    main()
