# SPDX-License-Identifier: Apache-2.0
"""`count` and `list_regions` of `rorqual shell`, and the variables of one statement. own_shell.py runs the tests; the expected
output is that of HBase's Ruby."""
import re

from shell_world import script


def lines_of(text, *arguments):
    said = script(text, *arguments)
    printed = re.sub(r"Took \d+\.\d+ seconds", "\n", said.stdout)
    return [line.strip() for line in printed.splitlines() if not line.startswith("hbase:")], said


def counts(_):
    """Every INTERVAL-th row is reported, also with a negative interval; 0 is an error as soon as there is a row."""
    lines, said = lines_of("create 't', 'f'\ncount 't', INTERVAL => 0\n(1..7).each { |i| put 't', \"r#{i}\\xff\", 'f:q', 'v' }; nil\n"
                           "count 't', INTERVAL => 3\ncount 't', INTERVAL => -5, CACHE => 2\ncount 't', INTERVAL => 2, LIMIT => 4\n"
                           "begin; count 't', INTERVAL => 0; rescue ZeroDivisionError => e; puts e.message; end\n"
                           "n = 0; get_table('t').count(INTERVAL => 1, FILTER => \"PrefixFilter('r2')\")\n")
    told = [re.sub("Current count: (.), row: ", r"\1 ", line) for line in lines if re.match(r"Current count|\d+ row|divided|=>", line)]
    wanted = ["0 row(s)", "=> 0", r"3 r3\xFF", r"6 r6\xFF", "7 row(s)", "=> 7", r"5 r5\xFF", "7 row(s)", "=> 7", r"2 r2\xFF", r"4 r4\xFF", "4 row(s)", "=> 4",
              "divided by 0", r"1 r2\xFF", "1 row(s)", "=> 1"]
    return None if [line for line in told if line in wanted] == wanted else f"{told} {said}"


def regions_are_listed(_):
    """Lists only the table's regions, even if its name is a prefix of another table's; by server, with columns and
    locality."""
    text = ("create 't1', 'f', SPLITS => ['b', 'c']\ncreate 't', 'f'\ncreate 't12', 'f'\n3.times { put 't1', 'b', 'f:q', 'v' }\n"
            "list_regions 't1'\nlist_regions 't1', 'nowhere'\nlist_regions 't1', {}, ['start_key', 'REQ']\nlist_regions 't'\n"
            "list_regions 't1', {LOCALITY_THRESHOLD => 1.0}, ['END_KEY']\nlist_regions 'hbase:meta', '', ['REGION_NAME']\n"
            "list_regions 'default:t1', '', ['END_KEY']\n")
    lines, said = lines_of(text)
    keys = [[cell.strip() for cell in line.split("|")] for line in lines if "|" in line and "---" not in line]
    found = [re.sub(r"^(\S+),,\d+\.[0-9a-f]{32}\.$", r"\1", cell) for row in keys for cell in row if re.match(r"^(|[bc]|t1?,,.*|t,,.*|START_KEY|END_KEY|hbase:meta,.*)$", cell)]
    counts_ = [int(line.split()[0]) for line in lines if re.match(r"\d+ rows$", line)]
    if counts_ != [3, 0, 3, 1, 3, 1, 3] or any("Can not find" in line for line in lines):
        return f"{counts_} {said}"
    projected = [row[:-1] for row in keys if len(row) == 3]
    if projected != [["START_KEY", "REQ"], ["", "0"], ["b", "3"], ["c", "0"]] or "hbase:meta,,1.1588230740" not in found:
        return f"{projected} {said}"
    return None


def messages_are_selected(_):
    """Selects the entries of a list in a message whose key begins with a text; each is returned unchanged, malformed
    messages are refused."""
    entry = r"\x0a\x06\x08\x01\x12\x02%s\x10\x05"  # field 1: a message whose field 2 is the key
    outer = "".join(r"\x12\x0a" + entry % key for key in ("ta", "ub", "tb"))
    text = "".join(f"begin; p Wire.select(\"{m}\", [2], [1, 2], '{prefix}').map {{ |b| b[6, 2] }}; rescue => e; puts e.message; end\n"
                   for m, prefix in ((outer, "t"), (outer, ""), (outer, "x"), ("", ""), (r"\x12\x0a", ""), (r"\x10\x01", ""), (outer + r"\x12\x01\x0a", "")))
    lines, said = lines_of(text)
    got = [line for line in lines if line[:2] in ('["', "[]", "a ")]
    wanted = ['["ta", "tb"]', '["ta", "ub", "tb"]', "[]", "[]", "a malformed message", "a malformed message", "a malformed message"]
    return None if [line for line in got if not line.startswith("=>")] == wanted else f"{got} {said}"


def variables_begin_where_they_are_assigned(_):
    """Before its assignment in the text a variable's name is a method call."""
    lines, said = lines_of("begin\n  puts early if (early = 1)\nrescue NameError => e\n  puts e.message\nend\nputs early\nputs late = 2; puts late\n"
                           "x = 5; f = lambda { x += 1 }; f.call; puts x\nputs f.call, x\n")
    got = [line.split(" for #")[0] for line in lines if line and not line.startswith(("=>", "begin", "rescue", "end", "puts"))]
    wanted = ["undefined local variable or method `early'", "1", "2", "2", "6", "7", "7"]
    return None if got == wanted else f"{got} {said}"


TESTS = [counts, regions_are_listed, messages_are_selected, variables_begin_where_they_are_assigned]
# HBase's own shell passes these, too. HBase's list of regions comes from the servers' last reports, and is seconds old.
OF_HBASE = (counts, variables_begin_where_they_are_assigned)
