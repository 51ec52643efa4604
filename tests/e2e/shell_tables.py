# SPDX-License-Identifier: Apache-2.0
"""`count` of `rorqual shell`, and the variables of one statement. own_shell.py runs the tests; the expectation is HBase's Ruby."""
import re

from shell_load import shell


def lines_of(text, *arguments):
    said = shell("-n", *arguments, "memory:", text=text)
    printed = re.sub(r"Took \d+\.\d+ seconds", "\n", said.stdout)
    return [line.strip() for line in printed.splitlines() if not line.startswith("hbase:")], said


def counts(_):
    """Every INTERVAL-th row is told, also of a negative interval; 0 is an error as soon as there is a row."""
    lines, said = lines_of("create 't', 'f'\ncount 't', INTERVAL => 0\n(1..7).each { |i| put 't', \"r#{i}\\xff\", 'f:q', 'v' }; nil\n"
                           "count 't', INTERVAL => 3\ncount 't', INTERVAL => -5, CACHE => 2\ncount 't', INTERVAL => 2, LIMIT => 4\n"
                           "begin; count 't', INTERVAL => 0; rescue ZeroDivisionError => e; puts e.message; end\n"
                           "n = 0; get_table('t').count(INTERVAL => 1, FILTER => \"PrefixFilter('r2')\")\n")
    told = [re.sub("Current count: (.), row: ", r"\1 ", line) for line in lines if re.match(r"Current count|\d+ row|divided|=>", line)]
    wanted = ["0 row(s)", "=> 0", r"3 r3\xFF", r"6 r6\xFF", "7 row(s)", "=> 7", r"5 r5\xFF", "7 row(s)", "=> 7", r"2 r2\xFF", r"4 r4\xFF", "4 row(s)", "=> 4",
              "divided by 0", r"1 r2\xFF", "1 row(s)", "=> 1"]
    return None if [line for line in told if line in wanted] == wanted else f"{told} {said}"


def variables_begin_where_they_are_assigned(_):
    """In text before its assignment a name is a method's."""
    lines, said = lines_of("begin\n  puts early if (early = 1)\nrescue NameError => e\n  puts e.message\nend\nputs early\nputs late = 2; puts late\n"
                           "x = 5; f = lambda { x += 1 }; f.call; puts x\nputs x, f.call, x\n")
    got = [line.split(" for #")[0] for line in lines if line and not line.startswith(("=>", "begin", "rescue", "end", "puts"))]
    wanted = ["undefined local variable or method `early'", "1", "2", "2", "6", "6", "7", "7"]
    return None if got == wanted else f"{got} {said}"


TESTS = [counts, variables_begin_where_they_are_assigned]
