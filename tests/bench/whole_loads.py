# SPDX-License-Identifier: Apache-2.0
"""The loads of bench-whole: one row each. What they are made of lies in loads/.

A load is a real program that is busy for as long as it is let; the bench starts it again when it ends. Its processes
are known by their names (comm), which are its own where a program can be given another name by a symbolic link.
"""
import dataclasses
import os
import pathlib
import random
import shutil
import subprocess

SOURCES = pathlib.Path(__file__).resolve().parent / "loads"
DATA_BYTES = 48 << 20
REPOSITORY_COMMITS = 40
COMPILED_FUNCTIONS = 600

NATIVE, SHELL_CHILDREN = 99.0, 95.0


class Missing(Exception):
    """What a load needs is not on this machine."""


@dataclasses.dataclass(frozen=True)
class Load:
    name: str
    needs: tuple  # programs
    prepare: object  # function of the work folder, or None
    command: object  # function of the work folder: the command line
    comms: tuple  # names of the processes that count
    least: float = NATIVE  # % of the stacks that must be whole
    # A cut with this reason is what the row demands of code that no walker exists for yet.
    allowed_cut: str = ""
    names_from: str = ""  # a stripped program's twin with symbols, for roots that perf cannot name
    own_threads: bool = True  # threads that name themselves count as well


def run(command, folder, **more):
    """Run a step of a preparation; a failure shows what it printed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")


def program(name):
    """Debian's own program where it is there: others on PATH may be wrappers written in shell."""
    path = shutil.which(name, path="/usr/bin:/bin") or shutil.which(name)
    if not path:
        raise Missing(name)
    return path


def renamed(work, name, alias):
    """PROGRAM under a name that no other process of the machine has."""
    link = work / alias
    if not link.is_symlink():
        link.symlink_to(os.path.realpath(program(name)))
    return str(link)


def make_data(work):
    """Text that compresses about as well as logs do; the same in every run."""
    path = work / "data"
    if path.exists():
        return
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 10))) for _ in range(5000)]
    line = [" ".join(chance.choices(words, k=12)) + f" {chance.random():.6f}\n" for _ in range(20000)]
    with path.open("w", encoding="ascii") as out:
        while out.tell() < DATA_BYTES:
            out.writelines(chance.choices(line, k=5000))
            out.write(f"{chance.getrandbits(4096):x}\n")


def make_c_source(work):
    """Functions that keep an optimiser busy: loops, switches, calls."""
    chance = random.Random(2)
    text = ["static int table[256];\n"]
    for i in range(COMPILED_FUNCTIONS):
        cases = "".join(f"\t\tcase {c}: x += table[(x * {chance.randint(3, 99)} + {c}) & 255] ^ y; break;\n"
                        for c in range(24))
        call = f"\tx += f{chance.randrange(i)}(y, x & 7);\n" if i else ""
        text.append(f"int f{i}(int x, int y)\n{{\n\tfor (int i = 0; i < y; i++) {{\n\t\tswitch ((x + i) & 31) {{\n{cases}"
                    f"\t\tdefault: table[x & 255] = x / (y | 1);\n\t\t}}\n\t\tx = x * {i + 3} - (y >> 2);\n\t}}\n{call}"
                    f"\treturn x;\n}}\n")
    (work / "compiled.c").write_text("".join(text), encoding="ascii")


def make_repository(work):
    """A repository with history, for git to pack."""
    folder = work / "repository"
    if (folder / ".git/done").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    run(["git", "init", "-q", "."], folder)
    chance = random.Random(3)
    files = [[f"line {i} of file {f}: {chance.random()}\n" for i in range(400)] for f in range(120)]
    for commit in range(REPOSITORY_COMMITS):
        for number, lines in enumerate(files):
            for _ in range(8):
                lines[chance.randrange(len(lines))] = f"changed by {commit}: {chance.random()}\n"
            (folder / f"file{number}.txt").write_text("".join(lines), encoding="ascii")
        run(["git", "add", "-A"], folder)
        run(["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false",
             "-c", "gc.auto=0", "commit", "-q", "--no-verify", "-m", f"commit {commit}"], folder)
    (folder / ".git/done").touch()


def compiled(target, *command):
    """A preparation: COMMAND, with {} for the target, makes it from a source in loads/."""
    def prepare(work):
        if not (work / target).exists():
            run([word.replace("{}", str(work / target)) for word in command], SOURCES,
                env={**os.environ, "GOCACHE": str(work / "go-cache"), "GOFLAGS": "", "GO111MODULE": "off"})
    return prepare


def built(target):
    return lambda work: [str(work / target)]


def script(name, alias, source):
    return lambda work: [renamed(work, name, alias), str(SOURCES / source)]


def make_java(work):
    run(["javac", "-d", str(work), str(SOURCES / "Work.java")], work)


GO = ("go", "build", "-o", "{}")

LOADS = (
    Load("openssl sha256", ("openssl",), None,
         lambda work: [renamed(work, "openssl", "load-sha256"), "speed", "-seconds", "60", "-bytes", "16384", "sha256"],
         ("load-sha256",)),
    Load("openssl rsa", ("openssl",), None,
         lambda work: [renamed(work, "openssl", "load-rsa"), "speed", "-seconds", "60", "rsa2048"], ("load-rsa",)),
    Load("gzip", ("gzip",), make_data,
         lambda work: [renamed(work, "gzip", "load-gzip"), "-9", "-c", str(work / "data")], ("load-gzip",)),
    Load("xz", ("xz",), make_data,
         lambda work: [renamed(work, "xz", "load-xz"), "-6", "-T1", "-c", "-z", str(work / "data")], ("load-xz",)),
    Load("sqlite3", ("sqlite3",), None,
         lambda work: [renamed(work, "sqlite3", "load-sqlite3"), ":memory:", f".read {SOURCES / 'work.sql'}"],
         ("load-sqlite3",)),
    Load("gcc", ("gcc",), make_c_source,
         lambda work: [program("gcc"), "-O2", "-c", str(work / "compiled.c"), "-o", str(work / "compiled.o")],
         ("gcc", "cc1", "as")),
    Load("git gc", ("git",), make_repository,
         lambda work: [program("git"), "-C", str(work / "repository"), "-c", "gc.auto=0", "gc", "-q", "--aggressive",
                       "--prune=now"],
         ("git",)),
    Load("perl", ("perl",), None, script("perl", "load-perl", "work.pl"), ("load-perl",)),
    Load("go", ("go",), compiled("load-go", *GO, "work.go"), built("load-go"), ("load-go",)),
    Load("go -s -w", ("go",), compiled("load-go-sw", *GO, "-ldflags", "-s -w", "work.go"), built("load-go-sw"),
         ("load-go-sw",), names_from="load-go"),
    Load("rust", ("rustc",), compiled("load-rust", "rustc", "--edition=2021", "-O", "-o", "{}", "work.rs"),
         built("load-rust"), ("load-rust",)),
    Load("musl static", ("musl-gcc",), compiled("load-musl", "musl-gcc", "-O2", "-static", "-o", "{}", "musl.c"),
         built("load-musl"), ("load-musl",)),
    Load("c++", ("g++",), compiled("load-cxx", "g++", "-O2", "-std=c++17", "-o", "{}", "templates.cc"),
         built("load-cxx"), ("load-cxx",)),
    Load("node", ("node",), None, script("node", "load-node", "work.js"), ("load-node",)),
    Load("python3", ("python3",), None, script("python3", "load-python3", "work.py"), ("load-python3",)),
    Load("java", ("java", "javac"), make_java,
         lambda work: [renamed(work, "java", "load-java"), "-cp", str(work), "Work"], ("load-java",),
         allowed_cut="code of a runtime that has no walker"),
    Load("shell loop", ("bash", "awk"), None, lambda work: [str(SOURCES / "shell.sh")],
         ("expr", "sed", "date", "sort", "cut", "awk", "mawk", "gawk", "dirname"), least=SHELL_CHILDREN,
         own_threads=False),
)


def prepare(load, work):
    """Everything that LOAD needs before it runs. Missing: the machine lacks a program."""
    for name in load.needs:
        program(name)
    if load.prepare:
        load.prepare(work)
