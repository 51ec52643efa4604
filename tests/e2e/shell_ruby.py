# SPDX-License-Identifier: Apache-2.0
"""The Ruby of `rorqual shell`: variables of statements, limits, libraries, classes of the client, help. own_shell.py runs the tests."""
import re

from shell_world import script, shell


def blocks_see_variables_of_earlier_statements(_):
    """As in Ruby; a variable whose assignment is not executed is nil, not a leftover of an earlier statement."""
    text = ("p [0].map { |x| x }\na = 1\n[5].each { |t| p [a, t] }\nb = 2\nadd = lambda { |n| b += n + a }\nadd.call(3)\n[6].each { |t| c = 7; [8].each { |u| p [a, b, t, c, u] } }\n"
            "puts [1, 2].map { |x| x.to_s * 3 }.inspect\ny = z = w = 5 if nil\np [y, z, w]\n"
            + "".join(f"v{i} = {i}\n" for i in range(60)) + "create 't', 'f', SPLITS => (1..3).map { |i| \"#{v59}#{i}\" }\np (1..2).map { |i| v0 + v58 + v59 + i }\n")
    said = script(text)
    lines = [line.strip() for line in said.stdout.splitlines()]
    for wanted in ("[1, 5]", "[1, 6, 6, 7, 8]", "[nil, nil, nil]", "Created table t", "[118, 119]"):
        if wanted not in lines:
            return f"no {wanted} in {said.stdout[-1500:]} {said.stderr}"
    return None


def client_classes_say_what_is_missing(_):
    """A class, a method or a cluster that the shell lacks is named in the error."""
    text = ("conf = org.apache.hadoop.hbase.HBaseConfiguration.create\nconf.set('hbase.zookeeper.quorum', 'elsewhere')\n"
            "def told\n  yield\nrescue StandardError => e\n  puts \"told #{e.message}\"\nend\n"
            "told { org.apache.hadoop.hbase.client.ConnectionFactory.createConnection(conf).getTable('t') }\n"
            "told { org.apache.hadoop.hbase.client.HConnectionManager.createConnection(conf) }\n"
            "told { org.apache.hadoop.hbase.client.HTable.new('t').checkAndPut('a', 'b', 'c', 'd', nil) }\n"
            "told { org.apache.hadoop.hbase.client.Put.new(5) }\n"
            "create 't', 'f'\n"
            "told { org.apache.hadoop.hbase.client.HTable.new('t').put(org.apache.hadoop.hbase.client.Put.new('x').addColumn('no', 'q', 'v')) }\n")
    wanted = ["runs in a shell of its own: rorqual shell --zk elsewhere:2181", "the shell has no Java: org.apache.hadoop.hbase.client.HConnectionManager",
              "org.apache.hadoop.hbase.client.HTable has no method checkAndPut", "to class [B", "NoSuchColumnFamilyException"]
    out = shell("-n", "memory:", text=text).stdout
    got = re.findall(r"(?m)^told (.*)", out)
    return None if len(got) == 5 and all(w in g for w, g in zip(wanted, got)) else out


def what_cannot_be_compiled_is_an_error(folder):
    """Too many variables or too deep an expression cause an error instead of a skipped statement, and the session continues. A NUL byte
    in a line is kept."""
    many = "".join(f"v{i} = {i}\n" for i in range(300))
    deep = "(" * 3000 + "1" + ")" * 3000 + "\n"
    for text in (many, deep):
        script = folder / "large.rb"
        script.write_text(text)
        for option in ("-n", "--ruby"):
            done = shell(option, "memory:", str(script))
            if done.returncode != 1 or not re.search("SyntaxError: .*too many local variables", done.stdout + done.stderr):
                return f"{option}: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]}"
    out = shell("memory:", text=many + deep + "p v7, 'a\0b'.length\n").stdout
    return None if out.endswith("\n7\n3\n=> [7, 3]\nhbase:303:0> \n") else out[-300:]


def what_takes_too_much_is_an_error(_):
    """Growing strings, arrays of any length, patterns of exponential time, endless values: an error that a script can rescue,
    and the session continues."""
    memory = ["s = 'a'; loop { s = s + s }", "s = 'a'; loop { s << s }", "'a' * 10**12", "'a' * 10**9", "a = [1]; loop { a += a }",
              "[0] * 10**9", "'a'.ljust(10**11)", "'%1000000000d' % 1", "h = {}; i = 0; loop { h[i] = 'x' * 100; i += 1 }"]
    text = "def told; yield; rescue Exception => e; puts \"#{e.class}: #{e.message}\"; end\n"
    text += "".join(f"told {{ {m} }}\n" for m in memory) + "told { ('a' * 50 + 'b') =~ /(a+)+$/ }\nputs 'on'\n"
    out = shell("-n", "memory:", text=text, HBASE_HEAPSIZE="100")
    said = [line for line in out.stdout.splitlines() if re.match(r"\w+Error: |on$", line)]
    if said != ["NoMemoryError: Out of memory"] * len(memory) + ["RegexpError: match limit exceeded: /(a+)+$/", "on"]:
        return f"{said} {out.stdout[-500:]} {out.stderr[-300:]}"
    # What is kept: the session goes on with what it needs itself, and its memory can be given back.
    text = "$kept = []; begin; loop { $kept << 'x' * 1000 }; rescue NoMemoryError; 7; end\n$more = []; loop { $more << 'x' }\n"
    for option in ("-n", "--csv"):  # --csv has no effect here: the same is expected
        out = shell(option, "memory:", text=text + "$kept = $more = nil\nlist\n6 * 7\n", HBASE_HEAPSIZE="100")
        if out.returncode != 1 or "NoMemoryError" not in out.stderr:
            return f"{option}: {out.returncode} {out.stdout[-500:]} {out.stderr[-300:]}"
    out = shell("-n", "memory:", text=text.replace("$more = []; loop { $more << 'x' }", "$more = 'y'") + "$kept = $more = nil\nlist\n6 * 7\n", HBASE_HEAPSIZE="100")
    if out.returncode != 0 or "=> 42" not in out.stdout:
        return f"{out.returncode} {out.stdout[-500:]} {out.stderr[-300:]}"
    # Nothing is left when the session itself goes on: it calls the script's methods, and compiles and begins statements with many variables.
    full = "$kept = []; begin; loop { $kept << 'x' * 1000 }; rescue NoMemoryError; begin; loop { $kept << 'x' }; rescue NoMemoryError; 7; end; end\n"
    variables = "; ".join(f"v{i} = {i}" for i in range(230))
    greedy = "$kept = []; class Greedy; def write(*a) loop { $kept << 'x' * 100 }; end; end; $stdout = Greedy.new; 1\n"
    for option, text, code in (("-n", f"{full}{variables}\n$kept = nil\nexit 3\n", 3), ("-n", f"{greedy}2\n$kept = nil; exit 3\n", 3), ("-n", "$kept = []\n\\watch 1 loop { $kept << 'x' * 100 }\n$kept = nil; exit 3\n", 3)):
        out = shell(option, "memory:", text=text, HBASE_HEAPSIZE="64")
        if out.returncode != code:
            return f"{text[:300]}: {out.returncode} {out.stdout[-500:]} {out.stderr[-300:]}"
    deep = shell("-n", "memory:", text="a = []; 100000.times { a = [a] }; nil\na\nputs 'on'\n")
    whole = deep.stdout + deep.stderr
    return None if "SystemStackError: stack level too deep" in whole and "core.rb" not in whole and deep.returncode == 1 else whole[-300:]


def scripts_of_older_clients(_):
    """HTable made from a configuration and Put.add, as before HBase 2; and `@hbase`."""
    text = ("create 'wiki', 'text', 'revision'\nimport 'org.apache.hadoop.hbase.client.HTable'\nimport 'org.apache.hadoop.hbase.client.Put'\n"
            "def jbytes(*args)\n  args.map { |arg| arg.to_s.to_java_bytes }\nend\n"
            "table = HTable.new(@hbase.configuration, 'wiki')\np = Put.new(*jbytes('Home'))\np.add(*jbytes('text', '', 'Hello'))\n"
            "p.add(*jbytes('revision', 'author', 'jimbo'))\ntable.put(p)\ntable.flushCommits\nscan 'wiki'\n")
    out = shell("-n", "memory:", text=text).stdout
    return None if re.search(r"column=revision:author, .*value=jimbo\n.*column=text:, .*value=Hello\n1 row\(s\)", out) else out


def libraries_are_loaded_by_their_methods(_):
    """Time.parse, to_json and similar methods load their library before any of its classes is named."""
    cases = {"Time.parse('2026-01-02 03:04:05 UTC').to_i": "1767323045", "{'a' => 1}.to_json": '{"a":1}', "[1, 1].to_set.length": "1",
             "Time.at(0).utc.to_date": "1970-01-01", "Java::JavaLang::Integer::MAX_VALUE": "2147483647"}
    for case, want in cases.items():
        got = shell("-n", "memory:", text=f"puts(({case})); nil\n").stdout.splitlines()
        if want not in got:
            return f"{case}: {got}"
    return None


def every_command_has_help(_):
    names = re.findall(r"\w+", " ".join(re.findall(r"  Commands: (.*)", shell("memory:", text="help\n").stdout)))
    if len(names) != 179:
        return f"{len(names)} commands"
    out = shell("memory:", text="".join(f"help '{name}'\n" for name in names)).stdout
    parts = re.split(r"(?m)^hbase:\d+:0> help '", out)[1:]
    return next((f"{name} has no example" for name, part in zip(names, parts) if "hbase> " not in part and name != "table_help"), None)


TESTS = (blocks_see_variables_of_earlier_statements, libraries_are_loaded_by_their_methods, client_classes_say_what_is_missing,
         what_cannot_be_compiled_is_an_error, what_takes_too_much_is_an_error, scripts_of_older_clients, every_command_has_help)
# HBase's own shell passes these, too.
OF_HBASE = (blocks_see_variables_of_earlier_statements,)
