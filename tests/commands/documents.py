#!/usr/bin/env python3
"""documents.py MILLRACE SOURCE [--update] - runs the worked examples of README.md and docs/*.md.

Invariant: what a page shows is what the program prints.  A block that is fenced as ```console holds commands after
"$ " and their output.  The blocks of a page run in order, in one private folder.  In the output "..." stands for any
text, and as a line of its own for any lines; what differs between machines (durations, rates, losses, processors) is not compared.  A
command that ends with "# exit code N" has to end with N, all others with 0.  --update writes what was printed into the
pages, but for output that matches.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HANG = 900  # seconds, which nothing here takes unless it hangs
MEASURED = re.compile("|".join((
    r"\b(?:\d+ h )?(?:\d+ min )?[\d.,]+ (?:(?:[kMG]?B|samples|steps|pictures)/s(?:ec)?\b|ms\b|s\b|us\b|min\b)",  # durations and rates
    r"\b(?:loss|images/sec|lr|wait_ms|memory|max|available)=[\d.e+-]+(?: [MG]B)?",  # a line of training
    r"\b(?:compute|wait|exchange)=\d+(?:-\d+)?%",
    r"(?i:\b(?:loss|accuracy)\b:? *\t?)[\d.]+(?: \([\d,]+ of [\d,]+\))?",
    r"Text>Image@1 .*|Best .*|(?:words|texts|pictures) find .*|Bottleneck: .*|(?:Slowest|Ranks): .*",
    r"\bmAP:? .*|\b[01]\.\d{4}\b",
    r"\d+ threads?, .*",  # what the machine is
    r"\"seconds\": [\d.]+")))


def blocks(text):
    """The console blocks of a page: (start, end) of what stands between the fences."""
    return [m.span(1) for m in re.finditer(r"^```console\n(.*?)^```$", text, re.M | re.S)]


def steps(block):
    """(command, expected output) of a block; a command goes on after a backslash at the end of its line."""
    found = []
    lines = block.splitlines(keepends=True)
    while lines:
        line = lines.pop(0)
        assert line.startswith("$ "), "a block begins with a command, not with: " + line
        command = line[2:]
        while command.endswith("\\\n") and lines:
            command += lines.pop(0)
        output = ""
        while lines and not lines[0].startswith("$ "):
            output += lines.pop(0)
        found.append((command, output))
    return found


def pattern(expected):
    """A regular expression for the output, in which what was measured is a NUL."""
    made = ""
    for line in expected.splitlines():
        if line == "...":
            made += r"(?:.*\n)*?"
            continue
        line = MEASURED.sub("\0", line)
        made += re.escape(line).replace(r"\.\.\.", ".*").replace(re.escape("\0"), "\0") + r"[ \t]*\n"
    return re.compile(made)


def run(command, folder, env):
    code = re.search(r"# exit code (\d+)\s*$", command)
    ran = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=HANG)
    assert ran.returncode == int(code.group(1) if code else 0), "%s\nended with exit code %d:\n%s" % (
        command, ran.returncode, ran.stdout)
    return ran.stdout


def check(page, update, env):
    """Runs a page; returns how many commands it has, and how many printed something else than it says."""
    text = page.read_text()
    made, at, count, wrong = "", 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="millrace-documents-") as folder:
        for start, end in blocks(text):
            made += text[at:start]
            at = end
            for command, expected in steps(text[start:end]):
                output = run(command, folder, env)
                count += 1
                if not pattern(expected).fullmatch(MEASURED.sub("\0", output)):
                    wrong += 1
                    if not update:
                        print("%s: $ %s--- the page says\n%s--- printed\n%s" % (page.name, command, expected, output))
                    expected = output
                made += "$ " + command + expected
    if update and wrong:
        page.write_text(made + text[at:])
    return count, wrong


def main():
    p = argparse.ArgumentParser(usage="documents.py MILLRACE SOURCE [--update]")
    p.add_argument("millrace")
    p.add_argument("source", type=pathlib.Path)
    p.add_argument("--update", action="store_true")
    o = p.parse_args()
    env = dict(os.environ, LC_ALL="C.UTF-8", COLUMNS="120", OMPI_ALLOW_RUN_AS_ROOT="1",
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
    # An mpirun that starts while another test's removes the folder that both would share fails.
    own = tempfile.TemporaryDirectory(prefix="millrace-mpi-")
    env["OMPI_MCA_orte_tmpdir_base"] = own.name
    # Open MPI's own processes leak; leaks of the program are looked for by the C tests.
    env["ASAN_OPTIONS"] = ":".join(filter(None, (env.get("ASAN_OPTIONS"), "detect_leaks=0")))
    env["PATH"] = os.path.dirname(os.path.realpath(o.millrace)) + os.pathsep + env["PATH"]
    counted = wrong = 0
    for page in [o.source / "README.md", *sorted((o.source / "docs").glob("*.md"))]:
        found = check(page, o.update, env)
        counted += found[0]
        wrong += found[1]
    print("%d examples, %d %s" % (counted, wrong, "updated" if o.update else "differ"))
    return 0 if o.update or (counted and not wrong) else 1


if __name__ == "__main__":
    sys.exit(main())
