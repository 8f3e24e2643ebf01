"""The table of planted bugs, and how one becomes C++ that an environment variable switches on.

A table is a file AREA.mutants: a line "[FILE]", then for each mutant the code around it with the part that changes
between two "@@", and below it one of
    => EXPRESSION   the part is an expression; this one takes its place
    =~ OPERATOR     the part is a comparison; this one takes its place
    =;              the part is a statement; it is left out
    =! REASON       after one of these: the mutant does what the code does, so no test can see it
The code around a mutant must stand once in its file; blanks and ends of lines count as one blank.
"""
import dataclasses
import pathlib
import re

SWITCH = "tests/mutants/chosen_mutant.h"


@dataclasses.dataclass
class Mutant:
    area: str
    file: str
    before: str
    old: str
    after: str
    kind: str
    new: str
    line: int
    equivalent: str = ""
    number: int = 0

    def name(self):
        return f"{self.area} {self.file}: {' '.join(self.old.split())} {self.kind} {self.new}".rstrip()


class TableError(Exception):
    pass


def parse(path):
    """The mutants of one table; TableError names file and line."""
    mutants, file, code = [], "", []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path.name}:{number}"
        if line.startswith("[") and line.endswith("]") and not code:
            file = line[1:-1]
        elif line.startswith("=!") and mutants and not code:
            mutants[-1].equivalent = line[2:].strip()
        elif re.match(r"=[>~;]( |$)", line):
            parts = "\n".join(code).split("@@")
            if not file or len(parts) != 3 or not parts[1].strip():
                raise TableError(f"{where}: expected a [FILE], and code with one part between two @@")
            if line[1] != ";" and not line[2:].strip():
                raise TableError(f"{where}: nothing to put in its place")
            mutants.append(Mutant(path.stem, file, *parts, line[:2], line[2:].strip(), number))
            code = []
        elif line.strip() or code:
            code.append(line)
    if code:
        raise TableError(f"{path.name}: code without a mutant at its end")
    return mutants


def pattern_of(text):
    """A regular expression for code, whatever its blanks."""
    return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))


def place_of(mutant, text):
    """(begin, end) of the part that changes."""
    whole = f"({pattern_of(mutant.before)})({pattern_of(mutant.old)}){pattern_of(mutant.after)}"
    found = list(re.finditer(whole, text))
    if len(found) != 1:
        raise TableError(f"{mutant.area}.mutants:{mutant.line}: {mutant.file}: the code is there {len(found)} times")
    return found[0].span(2)


def operands(text, begin, end):
    """The span of the comparison whose operator is text[begin:end]: up to what binds more loosely or encloses it."""
    depth, left = 0, begin
    while left > 0:
        c = text[left - 1]
        depth += (c in ")]") - (c in "([")
        if depth < 0 or (depth == 0 and (c in ";{},?:!" and text[left - 2:left] != "::" and text[left - 1:left + 1] != "::"
                                         or text[left - 2:left] in ("&&", "||", " ="))):
            break
        if depth == 0 and text[:left].endswith("return "):
            break
        left -= 1
    depth, right = 0, end
    while right < len(text):
        c = text[right]
        depth += (c in "([") - (c in ")]")
        if depth < 0 or (depth == 0 and (c in ";,?" or text[right:right + 2] in ("&&", "||", " :"))):
            break
        right += 1
    return left, right


def span_of(mutant, text):
    """(begin, end) of the code that the mutant makes another version of: a whole comparison for its operator."""
    begin, end = place_of(mutant, text)
    return operands(text, begin, end) if mutant.kind == "=~" else (begin, end)


def plant(mutants, text):
    """`text` of one file with all its mutants in it."""
    groups = []
    for begin, end, mutant in sorted(((*span_of(m, text), m) for m in mutants), key=lambda e: (e[0], -e[1])):
        if groups and begin < groups[-1][1]:
            groups[-1][1] = max(groups[-1][1], end)
            groups[-1][2].append(mutant)
        else:
            groups.append([begin, end, [mutant]])
    out, at = [f'#include "{SWITCH}"\n'], 0
    for begin, end, members in groups:
        out += [text[at:begin], versions(members, text, begin, end)]
        at = end
    return "".join(out) + text[at:]


def versions(members, text, begin, end):
    """The code text[begin:end] with the other versions that its mutants make of it."""
    if any(m.kind == "=;" for m in members):
        if len(members) != 1:
            raise TableError(f"{members[0].area}.mutants:{members[0].line}: a statement with another mutant in it")
        return f"if (!::patchbay::test::IsMutant({members[0].number})) {{ {text[begin:end]} }}"
    out = f"({text[begin:end]})"
    for mutant in members:
        at, to = place_of(mutant, text)
        version = text[begin:at] + mutant.new + text[to:end]
        out = f"(::patchbay::test::IsMutant({mutant.number}) ? ({version}) : {out})"
    return f" {out} "


def load(folder):
    """All mutants, numbered from 1 in the tables' order."""
    mutants = [m for table in sorted(pathlib.Path(folder).glob("*.mutants")) for m in parse(table)]
    for number, mutant in enumerate(mutants, 1):
        mutant.number = number
    return mutants


def of_areas(mutants, areas):
    """The mutants of the areas; without areas all of them."""
    known = {m.area for m in mutants}
    unknown = set(areas) - known
    if unknown:
        raise TableError(f"no table for {', '.join(sorted(unknown))}: there are {', '.join(sorted(known))}")
    return [m for m in mutants if not areas or m.area in areas]
