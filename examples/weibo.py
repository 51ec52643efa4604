#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Weibo: users publish, follow each other, and read a timeline of those that they follow.

    python3 weibo.py file:/tmp/weibo     in this process; or hbase://localhost:2181, memory:

The same tables as weibo.c has:

    weibo:content      row user_time     cf:content = text
    weibo:relations    row user          attends:OTHER, fans:OTHER
    weibo:mailbox      row fan           cf:PUBLISHER = row of content, up to 1,000 versions, each at the time of its post
"""
import sys

import rorqual

FOLLOWED_MAX, POSTS_MAX = 100, 100


class Weibo:
    def __init__(self, db):
        if "weibo" not in db.namespaces():
            db.create_namespace("weibo")
        self.content = self._table(db, "weibo:content", {"cf": {"versions": 1}})
        self.relations = self._table(db, "weibo:relations", {"attends": {"versions": 1}, "fans": {"versions": 1}})
        self.mailbox = self._table(db, "weibo:mailbox", {"cf": {"versions": 1000}})

    @staticmethod
    def _table(db, name, families):
        return db.table(name) if db.table_exists(name) else db.create_table(name, families)

    def publish(self, user, time, text):
        """`time` is the time of the post; two posts of one user at the same time would be the same row."""
        row = f"{user}_{time}"
        self.content.put(row, {"cf:content": text}, timestamp=time)
        with self.mailbox.batch() as batch:
            for fan in self.relations.get(user, ["fans"]).cells:
                batch.put(fan.qualifier, {("cf", user): row}, timestamp=time)

    def follow(self, user, other):
        """Follows a user, and delivers that user's earlier posts."""
        self.relations.put(user, {("attends", other): other})
        self.relations.put(other, {("fans", user): user})
        with self.mailbox.batch() as batch:
            for post in self.content.scan(prefix=f"{other}_"):
                batch.put(user, {("cf", other): post.key}, timestamp=post.cells[0].timestamp)

    def unfollow(self, user, other):
        """The mailbox is not changed: a delete marker written now would hide its posts after a later follow."""
        self.relations.delete(user, [("attends", other)])
        self.relations.delete(other, [("fans", user)])

    def timeline(self, user):
        """(publisher, text), the newest first: up to five posts of each that the user follows."""
        followed = [("cf", cell.qualifier) for cell in self.relations.get(user, ["attends"]).cells[:FOLLOWED_MAX]]
        if not followed:
            return []
        posts = sorted(self.mailbox.get(user, followed, versions=5).cells, key=lambda cell: -cell.timestamp)[:POSTS_MAX]
        texts = self.content.get_many([post.value for post in posts])
        return [(post.qualifier.decode(), text.get_str("cf:content")) for post, text in zip(posts, texts) if text]


def print_timeline(weibo, user):
    print(f"{user} reads:")
    for publisher, text in weibo.timeline(user):
        print(f"  {publisher}: {text}")


def main():
    with rorqual.connect(sys.argv[1] if len(sys.argv) > 1 else "memory:") as db:
        weibo = Weibo(db)
        weibo.publish("0008", 1000, "Fine weather today!")
        weibo.publish("0009", 2000, "Rain.")
        weibo.publish("10008", 2500, "Not for those who follow 0008.")
        weibo.follow("0001", "0008")
        weibo.follow("0001", "0009")
        weibo.publish("0008", 3000, "Tomorrow will be better!")
        print_timeline(weibo, "0001")
        weibo.unfollow("0001", "0009")
        print_timeline(weibo, "0001")
        weibo.follow("0002", "0009")
        weibo.follow("0002", "0010")
        weibo.publish("0010", 4000, "More rain.")
        print_timeline(weibo, "0002")


if __name__ == "__main__":
    main()
