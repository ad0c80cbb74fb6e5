# SPDX-License-Identifier: Apache-2.0
"""C sources as the checks see them: without comments and strings, cut into functions and statements.

This is no compiler. It relies on the house's own format, which clang-format keeps: a function's braces stand at the
left margin.
"""
import os
import re

SKIPPED_FOLDERS = {".git", "node_modules", "__pycache__", "dist", "build"}

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|'[^']*'|\"[^\"]*\"|[{}()\[\];:,=?]|[^\s\w]")
CONTROLS = {"if", "for", "while", "switch"}


def files(root, folders, suffixes):
    """Paths below ROOT's FOLDERS that end with one of SUFFIXES, relative to ROOT, sorted."""
    found = []
    for folder in folders:
        for place, names, entries in os.walk(os.path.join(root, folder)):
            names[:] = [n for n in names if n not in SKIPPED_FOLDERS and not n.startswith("build-")]
            for entry in entries:
                if entry.endswith(tuple(suffixes)):
                    found.append(os.path.relpath(os.path.join(place, entry), root))
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def _blank_string(match):
    text = match.group(0)
    if text.startswith(("/*", "//")):
        return _blank(match)
    return text[0] + re.sub(r"[^\n]", " ", text[1:-1]) + text[-1]


PIECES = re.compile(r"/\*.*?\*/|//(?:[^\n\\]|\\.)*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.S)


def code(text):
    """TEXT with comments and the insides of strings as blanks; lines and columns stay."""
    return PIECES.sub(_blank_string, text)


def comments(text):
    """(line, comment) of every comment."""
    for match in PIECES.finditer(text):
        if match.group(0).startswith(("/*", "//")):
            yield text.count("\n", 0, match.start()) + 1, match.group(0)


def without_preprocessor(text):
    """Stripped code with preprocessor lines, continued ones too, as blanks."""
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", _blank, text, flags=re.M | re.S)


class Function:
    """name, line of its name, parameters, body (between the braces) and the body's first line."""

    def __init__(self, name, line, parameters, body, body_line):
        self.name, self.line, self.parameters = name, line, parameters
        self.body, self.body_line = body, body_line

    def lines(self):
        """Lines of the body, its two braces counted."""
        return self.body.count("\n") + 1


def _split_parameters(text):
    parts, depth, part = [], 0, ""
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += char
    parts.append(part)
    parts = [" ".join(p.split()) for p in parts]
    return [] if parts in ([""], ["void"]) else parts


def functions(stripped):
    """The functions of stripped code (see code()), preprocessor lines included in their bodies."""
    flat = without_preprocessor(stripped)
    for match in re.finditer(r"^\{.*?^\}", flat, flags=re.M | re.S):
        head_start = max(flat.rfind(";", 0, match.start()), flat.rfind("}", 0, match.start())) + 1
        head = flat[head_start : match.start()]
        # The last parentheses of the head are the parameters; attributes stand before the name.
        end = head.rstrip()
        if not end.endswith(")"):
            continue  # an array or a structure with its brace at the margin
        depth, at = 0, len(end)
        while at:
            at -= 1
            depth += (end[at] == ")") - (end[at] == "(")
            if not depth:
                break
        name = re.search(r"([A-Za-z_]\w*)\s*$", end[:at])
        if not name:
            continue
        line = flat.count("\n", 0, head_start + name.start()) + 1
        body = stripped[match.start() : match.end()]
        yield Function(name.group(1), line, _split_parameters(end[at + 1 : -1]), body,
                       flat.count("\n", 0, match.start()) + 1)


class _Statements:
    """Reads statements from tokens and remembers how deep control statements were nested."""

    def __init__(self, body):
        text = without_preprocessor(body)
        self.tokens = [(m.group(0), text.count("\n", 0, m.start())) for m in TOKEN.finditer(text)]
        self.at, self.deepest, self.line = 0, 0, 0

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def note(self, depth):
        if depth > self.deepest:
            self.deepest, self.line = depth, self.tokens[min(self.at, len(self.tokens) - 1)][1]

    def balanced(self, opening, closing):
        """Skip from OPENING to behind its CLOSING."""
        depth = 0
        while self.at < len(self.tokens):
            token = self.peek()
            depth += (token == opening) - (token == closing)
            self.at += 1
            if not depth:
                return

    def block(self, depth):
        self.at += 1
        while self.peek() not in ("}", ""):
            self.statement(depth)
        self.at += 1

    def statement(self, depth):
        token = self.peek()
        if token == "{":
            self.block(depth)
        elif token in CONTROLS:
            self.control(depth + 1)
        elif token == "do":
            self.at += 1
            self.note(depth + 1)
            self.statement(depth + 1)
            self.expression(depth)
        elif token in ("case", "default"):
            while self.peek() not in (":", ""):
                self.at += 1
            self.at += 1
        else:
            self.expression(depth)

    def control(self, depth):
        """if, for, while, switch; `else if` is the same level."""
        is_if = self.peek() == "if"
        self.note(depth)
        self.at += 1
        self.balanced("(", ")")
        self.statement(depth)
        if is_if and self.peek() == "else":
            self.at += 1
            if self.peek() == "if":
                self.control(depth)
            else:
                self.statement(depth)

    def expression(self, depth):
        """Up to the semicolon; a loop macro's block and a statement expression's are looked into."""
        begin = self.at
        while self.at < len(self.tokens):
            token = self.peek()
            if token == ";":
                self.at += 1
                return
            if token == "(":
                self.at += 1
                if self.peek() == "{":
                    self.block(depth)
                    continue
                self.at -= 1
                self.balanced("(", ")")
                if self.peek() == "{" and self.at_macro_block(begin):
                    self.note(depth + 1)
                    self.block(depth + 1)
                    return
            elif token == "{":
                self.balanced("{", "}")
            elif token == "}":
                return
            else:
                self.at += 1

    def at_macro_block(self, begin):
        """Is what was read since BEGIN exactly `name(...)`, as loop macros are written?"""
        names = [t for t, _ in self.tokens[begin : self.at]]
        return bool(re.match(r"[A-Za-z_]", names[0])) and names[0] != "return" and names[1] == "("


def nesting(function):
    """(levels, line) of the deepest control statement."""
    statements = _Statements(function.body)
    statements.block(0)
    return statements.deepest, function.body_line + statements.line


class Report:
    """Collects violations and ends a check."""

    def __init__(self, name):
        self.name, self.rows = name, []

    def add(self, path, line, text):
        self.rows.append((path, line, text))

    def finish(self, looked_at):
        for path, line, text in sorted(set(self.rows)):
            print(f"{path}:{line}: {text}")
        print(f"{self.name}: {looked_at} files, {len(set(self.rows))} violations")
        # A check that sees nothing proves nothing.
        return 1 if self.rows or not looked_at else 0
