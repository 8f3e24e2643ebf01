"""Formulas that the pages of ops have, in NumPy: reads a JSON request, writes the results of its cases.

usage: page_oracle.py REQUEST.json FOLDER
request: {"page": PATH, "op": NAME, "cases": [{"dtype", "in_depth", "options"}]}
reads FOLDER/<case>.source, writes FOLDER/<case>.raw (float32)
"""
import json
import re
import sys

import numpy as np

FULL_SCALE = {"uint8": 256, "uint16": 65536, "int16": 32768, "float32": 1}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    with open(request["page"], encoding="utf-8") as file:
        formula = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL).group(1)
    scope = {"np": np}
    exec(formula, scope)
    for i, case in enumerate(request["cases"]):
        x = np.fromfile(f"{sys.argv[2]}/{i}.source", case["dtype"]).astype(np.float32)
        full_scale = 1 if case["in_depth"] else FULL_SCALE[case["dtype"]]
        y = scope[request["op"]](x, full_scale, **case["options"])
        assert y.dtype == np.float32, y.dtype
        y.tofile(f"{sys.argv[2]}/{i}.raw")


main()
