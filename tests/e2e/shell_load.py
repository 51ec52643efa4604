# SPDX-License-Identifier: Apache-2.0
"""`load` of `rorqual shell`, and long scripts. own_shell.py runs the tests. JRuby's output for the same files is the expected
output."""
import os
import re
import resource
import subprocess

from rorqual import BINARY
from shell_world import DEADLINE, script, shell

# mruby's heap: the smallest that the shell accepts. A file of LINES lines does not fit into it as a whole.
HEAP = "64m"
LINES = 200000


def loaded_files(folder):
    """`load` runs a file at the top level: its classes, methods and errors are the same as in a script."""
    file = folder / "loaded.rb"
    file.write_text("module M; class C; def self.x; 7; end; end; end\nLOADED = M::C.x\ndef of_file; LOADED + 1; end\nlocal = 1\n")
    broken, raising = folder / "broken.rb", folder / "raising.rb"
    broken.write_text("1 +\n)\n")
    raising.write_text("raise ArgumentError, 'from the file'\n")
    text = f"load '{file}'\nM::C.name\nof_file\nLOADED\nbegin; local; rescue NameError; 'its own'; end\n"
    text += "".join(f"begin; load '{f}'; rescue ScriptError, ArgumentError => e; e.class; end\n" for f in (broken, raising))
    out = re.findall(r"(?m)^=> (.*)$", script(text).stdout)
    return None if out == ["true", '"M::C"', "8", "7", '"its own"', "SyntaxError", "ArgumentError"] else f"{out}"


# A file and its output.
WHOLE = r'''
# The statements of a file share its variables, also with blocks.
a = 1
add = lambda { a += 1 }
add.call
a += 10
puts a, add.call
[1, 2].each do |i|
  total = (a += i)
  b = total
end
puts a, defined?(b).inspect
for i in 3..4 do c = i end
puts i + c
x, (y, *z) = 1, [2, 3, 4]
puts [x, y, z].inspect
begin
  raise ArgumentError, 'kept'
rescue => e
end
puts e.message
# A dot on the next line, comments between.
puts [3, 1, 2]
  .sort
  # the largest first
  .reverse
  &.inspect
puts <<~TEXT + 'end'
  . no call
  # no comment
    =begin
TEXT
=begin
puts 'a comment'
=end
long = [1, # /
  2,
  3
]
puts long.sum \
  + 4
def call_me(v) v * 2; end
def
  split_up(v)
  return v if v > 1
  v + 1
end
puts call_me(4), split_up(0), split_up(9)
class Here; def there; AT; end; AT = __LINE__; end
puts Here.new.there
list = 5
puts list + 1 if list
puts eval('list + a')
i = 0
while i < 3
  i += 1
  next if i == 2
  break if i == 3
end
puts i
puts __FILE__[-8..-1]
'''
WHOLE_PRINTS = ["12", "13", "16", "nil", "8", "[1, 2, [3, 4]]", "kept", "[3, 2, 1]", ". no call", "# no comment", "  =begin", "end", "10", "8", "1", "9",
                "49", "6", "21", "3", "whole.rb"]


def files_run_in_pieces(folder):
    """A file that is compiled in pieces behaves like one unit."""
    file = folder / "whole.rb"
    file.write_text(WHOLE)
    out = shell("--ruby", "memory:", str(file))
    if out.stdout.split("\n")[:-1] != WHOLE_PRINTS or out.returncode != 0:
        return f"{out}"
    outer = folder / "outer.rb"
    outer.write_text(f"a = 'outer'\ndef run(f) load(f); 'in a method' end\n[0].each {{ puts run('{file}') }}\nputs a\n")
    out = shell("--ruby", "memory:", str(outer))
    return None if out.stdout.split("\n")[:-1] == [*WHOLE_PRINTS, "in a method", "outer"] else f"nested: {out}"


def files_end_early(folder):
    """`return` and `__END__` end a file; before its assignment a variable's name is a command."""
    file = folder / "early.rb"
    for text, prints in (("puts 1\nreturn if true\nputs 2\n", "1\n"), ("puts 1\nreturn if false\nputs 2\n", "1\n2\n"),
                         ("def f; return 5; end\nputs f\nputs 2\n", "5\n2\n"), ("if true\n  return\nend\nputs 2\n", ""),
                         ("puts 1\n__END__\nx = = 1\n", "1\n"), ("puts 1 # no newline", "1\n"), ("\n\n# nothing", ""), ("", ""),
                         ("puts list.length\nlist = 5\nputs list\n", "0\n5\n")):
        file.write_text(text)
        out = shell("-n", "memory:", text=f"x = load '{file}'; nil\nputs x\n")
        got = out.stdout.split("nil\n", 1)[1].split("hbase:")[0]
        got = re.sub(r"(?m)^(TABLE|\d+ row\(s\)|Took .*|)\n", "", got)
        if out.returncode != 0 or got != prints or "\ntrue\n" not in out.stdout:
            return f"{text!r}: {out}"
    return None


def wrong_files_do_not_begin(folder):
    """With a syntax error anywhere nothing of the file runs. The error names the line, also after line 65,535."""
    file = folder / "wrong.rb"
    for lines in (3, 70000):
        for error, behind in (("x = = 1\n", 0), ("if true\n  x = = 1\nend\n", 1), ("puts [1,\n2\n", 2), ("'open\n", 1)):
            file.write_text("puts 'begun'\n" + "y = 'why'\n" * (lines - 1) + error)
            out = shell("-n", "memory:", text=f"begin; load '{file}'; rescue SyntaxError => e; puts e.message; end\n").stdout
            if "\nbegun" in out or f"{file}:{lines + 1 + behind}: " not in out:
                return f"{lines} {error!r}: {out[-500:]}"
    file.write_text("puts 'begun'\n" + "".join(f"v{i} = {i}\n" for i in range(300)))
    out = shell("-n", "memory:", text=f"load '{file}'\n")
    if "\nbegun" in out.stdout or f"SyntaxError: {file}:256: too many local variables" not in out.stderr:
        return f"variables: {out}"
    for missing in (folder / "missing.rb", folder, file / "x"):
        if f"no such file to load -- {missing}\n" not in shell("-n", "memory:", text=f"load '{missing}'\n").stderr:
            return f"{missing} was loaded"
    return None


def failures_have_a_place(folder):
    """Standard error names the file and line of an exception that is not rescued, also after line 65,535."""
    file, outer = folder / "failing.rb", folder / "outer.rb"
    outer.write_text(f"\nload '{file}'\n")
    for lines in (3, 70000):
        file.write_text("def fails\n  raise 'why'\nend\n" + "y = 'why'\n" * (lines - 3) + "if true\n  fails\nend\n")
        place = f"  at {file}:2\n"
        for arguments, text in ((("--ruby", "memory:", str(file)), ""), (("--ruby", "memory:", str(outer)), ""),
                                (("-n", "memory:"), f"load '{file}'\n"), (("-n", "memory:", str(outer)), "")):
            out = shell(*arguments, text=text)
            if out.returncode != 1 or not out.stderr.startswith(place):
                return f"{arguments}: {out}"
    return None


# Lines after 65,535, of whose numbers mruby keeps 16 bits. {N}: N lines after the first.
BEHIND = r'''puts __LINE__, "#{__LINE__}"
def late
  raise 'why'
end
[:early, :late].each do |m|
  begin
    send(m)
  rescue => e
    puts e.backtrace.find { |l| l =~ /early|late/ }
  end
end
def calls; caller[0]; end
puts calls
puts proc { }.source_location.inspect, proc { }.inspect[/@.*/], method(:late).source_location.inspect
'''
BEHIND_PRINTS = """{0}
{0}
FILE:2:in `early'
FILE:{2}:in `late'
FILE:{12}
["FILE", {13}]
@FILE:{13}>
["FILE", {1}]
"""


def lines_of_long_files_are_told(folder):
    """Line numbers in __LINE__, backtraces and blocks, also after line 65,535: in a file, and in a script at the prompt."""
    file = folder / "lines.rb"
    for lines, way in ((3, "--ruby"), (32759, "--ruby"), (65523, "--ruby"), (65534, "--ruby"), (200000, "--ruby"), (3, "-n"), (65600, "-n")):
        file.write_text("def early\n  raise 'why'\nend\n" + "y = nil\n" * (lines - 3) + BEHIND)
        wanted = re.sub(r"\{(\d+)\}", lambda m, lines=lines: str(lines + 1 + int(m.group(1))), BEHIND_PRINTS)
        wanted = wanted.replace("FILE", str(file) if way == "--ruby" else "(hbase)").splitlines()
        out = shell(way, "memory:", str(file))
        got = [line for line in out.stdout.splitlines() if line in wanted]
        if got != wanted:
            return f"{lines} {way}: {got}, not {wanted}; {out.stdout[-800:]} {out.stderr}"
    return None


def files_know_their_folder(folder):
    """__dir__, require_relative and $LOAD_PATH, as in JRuby: in a file in another folder, and in code without a
    file."""
    inner = folder / "inner"
    inner.mkdir()
    (inner / "main.rb").write_text("puts __dir__, \"#{__dir__}/x\"\n[1].each { puts __dir__ }\nputs require_relative('part')\nputs require_relative('part.rb')\n"
                                   "begin; require_relative 'nothing'; rescue LoadError => e; puts e.message; end\n")
    (inner / "part.rb").write_text("puts __FILE__\nrequire_relative '../above'\ndef folder_of_part; __dir__; end\n")
    (folder / "above.rb").write_text("puts \"above in #{__dir__}\"\n")
    (inner / "broken.rb").write_text("x = = 1\n")
    (inner / "found.rb").write_text("puts 'found'\n")
    text = f"""puts __dir__
load '{inner}/main.rb'
puts folder_of_part
begin; load 'found.rb'; rescue LoadError => e; puts e.message; end
begin; require_relative 'above'; rescue LoadError => e; puts e.message; end
$LOAD_PATH.unshift File.join('{inner}')
load 'found.rb'
puts require('found'), require('found.rb'), $LOADED_FEATURES.length
puts $:.length, File.absolute_path('~x', '/y'), $0, RUBY_VERSION
load './inner/../inner/found.rb'
begin; load 'inner/broken.rb'; rescue SyntaxError => e; puts e.message[/.*:/]; end
"""
    out = subprocess.run([BINARY, "shell", "-n", "memory:"], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=DEADLINE, check=False,
                         cwd=folder)
    got = [line for line in out.stdout.splitlines() if line and not line.startswith(("hbase:", "=> "))]
    wanted = [str(folder), str(inner), f"{inner}/x", str(inner), f"{inner}/part.rb", f"above in {folder}", "true", "false", f"no such file to load -- {inner}/nothing",
              str(inner), "no such file to load -- found.rb", "cannot infer basepath", "found", "found", "true", "false", "3", "1", "/y/~x", "hbase", "2.6.8",
              "found", f"{inner}/broken.rb:1:"]
    return None if got == wanted and out.returncode == 0 else f"{got}, not {wanted}: {out.stderr}"


def long_files_take_no_memory(folder):
    """Each line has another literal: more literals than mruby allows in one unit, and more than fit into memory."""
    file = folder / "long.rb"
    file.write_text("".join(f"$v = 'the literal of line {i}, of which there are too many to be kept in memory at once'\n" for i in range(LINES))
                    + "puts $v[0, 26]\n")
    last = f"the literal of line {LINES - 1}\n"
    for arguments in (("--ruby", "memory:", str(file)), ("-n", "memory:")):
        out = shell(*arguments, text=f"load '{file}'\n", HBASE_HEAPSIZE=HEAP)
        if out.returncode != 0 or last not in out.stdout:
            return f"{arguments}: {out.stdout[-300:]} {out.stderr[-300:]}"
    for arguments, text in ((("-n", "memory:", str(file)), ""), (("-n", "memory:"), file.read_text())):
        out = shell(*arguments, text=text, HBASE_HEAPSIZE=HEAP)
        if out.returncode != 0 or last not in out.stdout:
            return f"{arguments[:2]}: {out.stdout[-300:]} {out.stderr[-300:]}"
    return None


def many_literals_of_one_unit_are_refused(folder):
    """More literals than 16 bits can count, in one method or in a text for eval. They are in groups, because the time of
    mruby's parser grows with the square of their number."""
    unit = "def too_large\n" + "".join("begin\n" + "".join(f"$v = {2 ** 32 + 256 * i + k}\n" for k in range(256)) + "end\n" for i in range(257)) + "end\n"
    file = folder / "unit.rb"
    file.write_text("puts 'begun'\n" + unit)
    for how in (f"load '{file}'", f"String.class_eval File.read('{file}')"):
        out = shell("memory:", text=how + "\np 6 * 7\n")
        if out.returncode != 0 or "more than 65535 different texts" not in out.stdout or "\n=> 42\n" not in out.stdout:
            return f"{how}: {out.returncode} {out.stdout[-300:]} {out.stderr[-300:]}"
    return None


def every_eval_understands_the_same(_):
    """Each method that takes Ruby code as text, and each way to call it, rewrites the code (rewrite.c)."""
    source = "begin; raise ArgumentError; rescue; $!.class.name; end"
    ways = ["eval(t)", "Kernel.eval(t)", "eval(t, nil, 'file', 3)", "instance_eval(t)", "String.class_eval(t)", "Comparable.module_eval(t)",
            "eval(*a)", "send(:eval, t)", "__send__(:instance_eval, t)", "method(:eval).call(t)", "String.send(:class_eval, *a)"]
    text = f"t = {source!r}\na = [t]\n" + "".join(f"puts '{w.split('(')[0]} ' + {w}\n" for w in ways)
    text += "puts a == [t], instance_eval { 7 }, String.class_eval { self }, eval('a.length')\nbegin; eval(5); rescue TypeError; puts 'no text'; end\n"
    out = script(text).stdout
    got = [line for line in out.split("\n") if line and not line.startswith(("hbase:", "=> "))]
    expected = [w.split("(")[0] + " ArgumentError" for w in ways] + ["true", "7", "String", "1", "no text"]
    return None if got == expected else f"{got}"


def fed_without_end(feeder, *arguments):
    """The shell with HEAP megabytes for scripts, whose input is the output of a command that does not end. The limit of its address space
    ends a shell without a limit of its own."""
    with subprocess.Popen(["sh", "-c", feeder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as feed:
        done = subprocess.run([BINARY, "shell", *arguments], stdin=feed.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="backslashreplace",
                              timeout=DEADLINE, check=False, env={**os.environ, "HBASE_HEAPSIZE": HEAP},
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)))
        feed.stdout.close()
        feed.kill()
    return done


def endless_input_is_refused(folder):
    """A line without an end, in standard input, in a script and for `gets`; a bracket and a string that are never closed. Memory is limited, and the error
    says by what."""
    line, bracket, string = "yes xxxxxxxx | tr -d '\\n'", f"echo '['; yes '{'x.y(1),' * 500}'", f"echo \"'\"; yes '{'some text' * 500}'"
    for feeder, arguments in ((line, ("-n", "memory:")), (line, ("memory:",)), ("true", ("-n", "memory:", "/dev/zero")), (bracket, ("-n", "memory:")), (string, ("-n", "memory:"))):
        done = fed_without_end(feeder, *arguments)
        if done.returncode != 1 or "NoMemoryError: a line or statement is longer" not in done.stdout[-1000:] + done.stderr:
            return f"{feeder} {arguments}: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]}"
    script_file = folder / "asks.rb"
    script_file.write_text("begin; gets; rescue NoMemoryError => e; puts 'refused: ' + e.message; end\nexit 7\n")
    done = fed_without_end(line, "-n", "memory:", str(script_file))
    return None if done.returncode == 7 and "refused: a line or statement is longer" in done.stdout else f"{done}"


# Bytes; a shell that writes a longer file is ended by SIGXFSZ.
FILE_MAX = 256 << 20


def endless_files_are_refused(folder):
    """`load` of a pipe, and of a device, that has no end: the copy that is read twice does not fill the disk, and nothing of it is
    run."""
    fifo = folder / "endless.fifo"
    os.mkfifo(fifo)
    for path in ("/dev/zero", fifo):
        with subprocess.Popen(["sh", "-c", f"exec yes \"puts 'run'\" >{fifo}"], stderr=subprocess.DEVNULL) as feed:
            done = subprocess.run([BINARY, "shell", "memory:"], input=f"begin; load '{path}'; rescue NoMemoryError => e; puts e.message; end\n6 * 7\n", text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE, check=False, env={**os.environ, "HBASE_HEAPSIZE": HEAP},
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MAX, FILE_MAX)))
            feed.kill()
        if done.returncode != 0 or f"{path}: a pipe or device gives more than" not in done.stdout or "=> 42" not in done.stdout or "\nrun" in done.stdout:
            return f"{path}: {done.returncode} {done.stdout[-500:]} {done.stderr[-300:]}"
    return None


TESTS = (loaded_files, files_run_in_pieces, files_end_early, wrong_files_do_not_begin, failures_have_a_place, lines_of_long_files_are_told,
         files_know_their_folder, long_files_take_no_memory,
         many_literals_of_one_unit_are_refused, every_eval_understands_the_same, endless_input_is_refused, endless_files_are_refused)
# HBase's own shell passes these, too.
OF_HBASE = (loaded_files, every_eval_understands_the_same)
