#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each check passes a clean tree and fails on a tree with one thing wrong: a check that cannot fail is no check."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.dirname(os.path.abspath(__file__))

C = "/* SPDX-License-Identifier: Apache-2.0 */\n"
BOTH = "/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */\n"
GPL = "/* SPDX-License-Identifier: GPL-2.0-only */\n"

CLEAN = {
    "tools/layers.txt": "# reading order\nbase\nabi\nbpf\ncli\n",
    "tools/x.py": "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n",
    "src/base/one.h": C + "#pragma once\n\nint one(void);\n",
    "src/base/one.c": C + '#include "base/one.h"\n\nint one(void)\n{\n\treturn 1; // "exit(1)" is text\n}\n',
    "src/base/rows.def": C + '/* ROW(name, id, help): rows. */\nROW(a, 1, "the (first), row")\nROW(b, 2, "b")\n',
    "src/base/test-one.c": C + '#include "base/one.h"\n\n#include "unit.h"\n\nint main(void)\n{\n\treturn one() - 1;\n}\n',
    "src/base/fuzz-one.c": C + "/* LLVMFuzzerTestOneInput */\n",
    "src/base/meson.build": "# SPDX-License-Identifier: Apache-2.0\nunit_tests = ['one']\nfuzz_targets = ['one']\n",
    "src/abi/both.h": BOTH + "#pragma once\n\nenum colour { COLOUR_red, COLOUR_green };\n",
    "src/bpf/only.bpf.h": GPL + "#pragma once\n\nenum { ONLY = 1 };\n",
    "src/bpf/x.bpf.c": GPL + '#include "abi/both.h"\n#include "bpf/only.bpf.h"\n',
    "src/cli/go.c": C + '#include "base/one.h"\n\nint command_go;\n',
    "src/cli/commands.def": C + "/* COMMAND(name): a verb. */\nCOMMAND(go)\n",
    "src/main.c": C + '#include "base/one.h"\n',
    "tests/unit.h": C + "#pragma once\n",
    "tests/corpus/one/empty": "",
    "tests/e2e/x.py": "# SPDX-License-Identifier: Apache-2.0\n",
}

FORMAT = "src/formats/formats.def"
FORMAT_ROW = C + '/* FORMAT(name, suffix, help): one. */\nFORMAT(col, ".col", "lines")\n'


def function(body, name="f", parameters="void"):
    return f"{C}int {name}({parameters})\n{{\n{body}}}\n"


DEEP = "\tfor (;;)\n\t\twhile (1)\n\t\t\tif (f())\n\t\t\t\tif (f())\n\t\t\t\t\treturn 1;\n\treturn 0;\n"
THREE = "\tfor (;;) {\n\t\twhile (1)\n\t\t\tif (f())\n\t\t\t\treturn 1;\n\t\t\telse if (f())\n\t\t\t\treturn 2;\n\t}\n"
SWITCH = ('#include "abi/both.h"\n\nint f(enum colour c);\nint f(enum colour c)\n{\n\tswitch (c) {\n\tcase COLOUR_red:\n'
          "\t\treturn 1;\n%s\t}\n\treturn 0;\n}\n")

# check: {what is wrong: (changed files, what is said of it)}; None takes a file away.
BAD = {
    "layers": {
        "from below": ({"src/base/up.c": C + '#include "cli/x.h"\n', "src/cli/x.h": C}, "base stands before cli"),
        "no layer": ({"src/base/up.c": C + '#include "xyz/x.h"\n'}, "xyz is no layer"),
        "unknown folder": ({"src/zoo/x.c": C}, "is not in tools/layers.txt"),
        "relative": ({"src/base/up.c": C + '#include "one.h"\n'}, "paths begin at src/"),
        "gone": ({"src/base/up.c": C + '#include "base/gone.h"\n'}, "there is no such file"),
        "unit.h outside tests": ({"src/base/up.c": C + '#include "unit.h"\n'}, "paths begin at src/"),
    },
    "style": {
        "long file": ({"src/base/x.c": C + "\n" * 1000}, "1001 lines in a file"),
        "wide line": ({"src/base/x.c": C + "\tint " + "x" * 90 + ";\n"}, "columns, 100 allowed"),
        "long function": ({"src/base/x.c": function("\tg();\n" * 79)}, "f(): 81 lines"),
        "deep": ({"src/base/x.c": function(DEEP)}, "f(): 4 levels"),
        "deep in braces": ({"src/base/x.c": function("\t{\n" + DEEP + "\t}\n")}, "f(): 4 levels"),
        "deep in a loop macro": ({"src/base/x.c": function("\teach(x) {\n" + DEEP + "\t}\n")}, "f(): 5 levels"),
        "deep in do": ({"src/base/x.c": function("\tdo {\n" + DEEP + "\t} while (0);\n")}, "f(): 5 levels"),
        "deep in switch": ({"src/base/x.c": function("\tswitch (1) {\n\tcase 1:\n" + DEEP + "\t}\n")}, "f(): 5 levels"),
        "deep in an expression": ({"src/base/x.c": function("\tint x = ({\n" + DEEP + "\t});\n")}, "f(): 4 levels"),
        "parameters": ({"src/base/x.c": function("", parameters="int a, int b, int (*c)(int, int), int d, int e, int f")},
                       "f(): 6 parameters"),
        "blanks": ({"src/base/x.c": function("        return 1;\n")}, "blanks instead of tabs"),
        "blanks at the end": ({"src/base/x.c": function("\treturn 1; \n")}, "blanks at the end"),
    },
    "banned": {
        "sprintf": ({"src/base/x.c": function("\tsprintf(a, b);\n")}, "sprintf()"),
        "exit": ({"src/cli/x.c": function("\texit(1);\n")}, "exit()"),
        "strtok": ({"src/base/x.c": function("\tstrtok(a, b);\n")}, "strtok()"),
        "logging": ({"src/base/x.c": function('\tlog_warning("x");\n')}, "log_debug() only"),
        "u32": ({"src/base/x.c": C + "static u32 x;\n"}, "u32: the kernel's name"),
        "typedef": ({"src/base/x.h": C + "typedef struct x {\n\tint y;\n} z;\n"}, "typedef of a struct"),
        "version": ({"src/base/x.c": C + "int x = KERNEL_VERSION(5, 8, 0);\n"}, "features are probed"),
        "goto": ({"src/base/x.c": function("\t_cleanup_free_ char *x = g();\n\tgoto out;\nout:\n\treturn 1;\n")},
                 "goto in a function with scope guards"),
        "todo": ({"src/base/x.c": C + "// TODO: later\n"}, "TODO without an issue"),
        "ifdef": ({"src/base/x.c": function("#ifdef X\n\tg();\n#endif\n")}, "#if inside a function"),
        "prefix": ({"src/base/x.c": function("", name="elf_open")}, "prefix belongs to somebody else"),
    },
    "spdx": {
        "none": ({"src/base/x.c": "int x;\n"}, "no SPDX"),
        "program": ({"src/bpf/x.bpf.c": C}, "is Apache-2.0, should be GPL-2.0-only"),
        "shared": ({"src/abi/both.h": C + "#pragma once\n"}, "should be GPL-2.0-only OR Apache-2.0"),
        "shared with the host": ({"src/bpf/only.bpf.h": GPL, "src/bpf/y.h": GPL, "src/bpf/x.bpf.c": GPL + '#include "bpf/y.h"\n',
                                  "src/cli/y.c": C + '#include "bpf/y.h"\n'}, "y.h:1: is GPL-2.0-only, should be"),
        "host": ({"src/base/one.c": GPL}, "should be Apache-2.0"),
        "script": ({"tools/x.py": "#!/usr/bin/env python3\n"}, "no SPDX"),
    },
    "tables": {
        "empty help": ({"src/base/rows.def": C + '/* ROW(name, id, help): x */\nROW(a, 1, "")\n'}, "the help is empty"),
        "id twice": ({"src/base/rows.def": C + '/* ROW(name, id, help): x */\nROW(a, 1, "x")\nROW(b, 1, "x")\n'},
                     "id 1 is also in line 3"),
        "short row": ({"src/base/rows.def": C + '/* ROW(name, id, help): x */\nROW(a, 1)\n'}, "ROW takes name, id, help"),
        "unexplained row": ({"src/base/rows.def": C + 'ROW(a, 1, "x")\n'}, "no comment shows the row"),
        "no rows": ({"src/base/rows.def": C}, "a table without rows"),
        "command without file": ({"src/cli/go.c": None}, "there is no src/cli/go.c"),
        "format without golden file": ({FORMAT: FORMAT_ROW}, 'no file in tests/golden ends with ".col"'),
        "test that never runs": ({"src/base/test-two.c": C + "int main(void)\n{\n}\n"}, "so it never runs"),
        "fuzz target that never runs": ({"src/base/fuzz-two.c": C + "/* LLVMFuzzerTestOneInput */\n",
                                         "tests/corpus/two/x": ""}, "so it never runs"),
        "no corpus": ({"tests/corpus/one/empty": None}, "has no inputs"),
    },
    "headers": {
        "incomplete": ({"src/base/x.h": C + "#pragma once\n\nuint32_t x(void);\n"}, "does not compile alone"),
        "incomplete for BPF": ({"src/bpf/x.h": C + "#pragma once\n\nuint32_t x(void);\n"}, "does not compile alone"),
    },
    "format": {
        "indentation": ({"src/base/x.c": C + "int f(void)\n{\n  return 1;\n}\n"}, "clang-format would change"),
    },
    "switch": {
        "default that hides": ({"src/base/sw.c": C + SWITCH % "\tdefault:\n\t\treturn 2;\n"}, "not explicitly handled"),
        "default over all": ({"src/base/sw.c": C + SWITCH % "\tcase COLOUR_green:\n\tdefault:\n\t\treturn 2;\n"},
                             "default label in switch"),
    },
}
ALSO_CLEAN = {
    "style": {"src/base/x.c": function(THREE + "\tstruct x y = {\n\t\t{1, {2, {3, {4}}}},\n\t};\n")},
    "banned": {"src/base/x.c": C + "typedef struct error *fn(int x);\n// TODO(#7): later\n" +
               function("\t_exit(1);\n\tp->exit(1);\n")[len(C):]},
    "tables": {FORMAT: FORMAT_ROW, "tests/golden/a.col": "x"},
    "switch": {"src/base/sw.c": C + SWITCH % "\tcase COLOUR_green:\n\t\treturn 2;\n" +
               "int g(int x);\nint g(int x)\n{\n\tswitch (x) {\n\tcase 1:\n\t\treturn 1;\n\tdefault:\n\t\treturn 2;\n\t}\n}\n"},
}


def build(root, changes):
    tree = {**CLEAN, **changes}
    for path, text in tree.items():
        if text is None:
            continue
        path = os.path.join(root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    units = [path for path in tree if path.startswith("src/") and path.endswith(".c") and ".bpf." not in path]
    commands = [{"directory": root, "file": path, "command": f"gcc -Isrc -Itests -Wall -c {path} -o x.o"}
                for path in units]
    with open(os.path.join(root, "compile_commands.json"), "w", encoding="utf-8") as file:
        json.dump(commands, file)
    # clang-format looks for its settings in the folders above a file.
    with open(os.path.join(TOOLS, "../.clang-format"), encoding="utf-8") as file:
        style = file.read()
    with open(os.path.join(root, ".clang-format"), "w", encoding="utf-8") as file:
        file.write(style)


def run(check, changes):
    with tempfile.TemporaryDirectory() as root:
        build(root, changes)
        # What check-switch calls a build folder is the place of compile_commands.json; sources are not below it.
        where = root
        if check == "switch":
            where = os.path.join(root, "build")
            os.mkdir(where)
            os.rename(os.path.join(root, "compile_commands.json"), os.path.join(where, "compile_commands.json"))
        return subprocess.run([sys.executable, os.path.join(TOOLS, f"check-{check}.py"), where],
                              capture_output=True, text=True)


class Checks(unittest.TestCase):
    def test_a_clean_tree_passes(self):
        for check in BAD:
            for changes in ({}, ALSO_CLEAN.get(check, {})):
                with self.subTest(check):
                    result = run(check, changes)
                    self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)

    def test_what_is_wrong_is_found_and_named(self):
        for check, samples in BAD.items():
            for name, (changes, said) in samples.items():
                with self.subTest(f"{check}: {name}"):
                    result = run(check, changes)
                    self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                    self.assertIn(said, result.stdout)

    def test_a_tree_without_sources_is_a_failure(self):
        nothing = {path: None for path in CLEAN if path.startswith(("src/", "tests/", "tools/x"))}
        for check in set(BAD) - {"layers", "switch"}:
            with self.subTest(check):
                self.assertEqual(run(check, nothing).returncode, 1)

    def test_every_check_has_bad_samples(self):
        names = {n[len("check-") : -len(".py")] for n in os.listdir(TOOLS) if n.startswith("check-")}
        self.assertEqual(names, set(BAD))


if __name__ == "__main__":
    unittest.main()
