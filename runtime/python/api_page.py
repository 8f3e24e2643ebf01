#!/usr/bin/env python3
"""api_page.py: prints API.md, made from the signatures and docstrings of the package. Reads the sources; imports nothing.

    python3 runtime/python/api_page.py > runtime/python/API.md
"""
import ast
import inspect
import pathlib

PACKAGE = pathlib.Path(__file__).resolve().parent / "patchbay"
HEAD = """# The Python API

Made from the docstrings by `python3 runtime/python/api_page.py`; edit those. [ATTACH.md](ATTACH.md) is the page to begin with.
"""
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def tree_of(name):
    return ast.parse((PACKAGE / name).read_text(encoding="utf-8"))


def definitions(tree):
    """{name: node} of the public functions and classes of a module or class."""
    special = {"__len__", "__iter__", "__getitem__", "__enter__", "__call__", "__dlpack__", "__dlpack_device__"}
    return {node.name: node for node in tree.body
            if isinstance(node, DEFINITIONS) and (not node.name.startswith("_") or node.name in special)}


def exported():
    """(name, node) of everything public that the package imports, from where it is."""
    found = []
    for node in tree_of("__init__.py").body:
        if not isinstance(node, ast.ImportFrom):
            continue
        file = next(PACKAGE / f"{node.module}{end}" for end in (".py", ".pyi", "/__init__.py") if (PACKAGE / f"{node.module}{end}").exists())
        known = definitions(tree_of(file.relative_to(PACKAGE)))
        found += [(alias.name, known[alias.name]) for alias in node.names]
    return sorted(found, key=lambda each: (isinstance(each[1], ast.ClassDef), each[0]))


def is_property(node):
    return any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)


def signature(node, owner=""):
    """As one would call it, without `self`."""
    if isinstance(node, ast.ClassDef):
        constructor = definitions_of_init(node)
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return f"class {node.name}" + (arguments(constructor) if constructor else f"({bases})" if bases else "")
    return f"{owner}{node.name}" + ("" if is_property(node) else arguments(node))


def definitions_of_init(node):
    if any(isinstance(base, ast.Name) for base in node.bases) or node.name in ("Stream", "Images"):
        return None  # nobody calls it
    return next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)


def arguments(node):
    given = ast.unparse(node.args)
    for first in ("self, /, ", "self, ", "self"):
        if given.startswith(first):
            given = given[len(first):]
            break
    returned = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"({given.removesuffix(', /')}){returned}"


def text_of(node):
    return inspect.cleandoc(ast.get_docstring(node, clean=False) or "")


def entry(module, name, node):
    lines = [f"### `{module}.{name}`", "", "```", signature(node), "```", ""]
    text = text_of(node)
    if text:
        lines += ["```text", text, "```", ""]
    if isinstance(node, ast.ClassDef):
        for member, inner in definitions(node).items():
            said = text_of(inner).split("\n\n")[0].replace("\n", " ")
            if said:
                lines.append(f"- `{signature(inner, '.')}`: {said}")
        if lines[-1].startswith("- "):
            lines.append("")
    return lines


def page():
    lines = [HEAD, "## `patchbay`", ""]
    for name, node in exported():
        lines += entry("patchbay", name, node)
    lines += ["## `patchbay.torch`", "", text_of(tree_of("torch.py")), ""]
    for name, node in definitions(tree_of("torch.py")).items():
        lines += entry("patchbay.torch", name, node)
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
