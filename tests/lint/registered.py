"""Every test is run: a test source has a CMakeLists.txt beside it that takes it in."""
import sources

TAKES_IN = {"_test.cc": ("patchbay_tests(",), "_test.py": ("_test.py", "add_test("),
            "_benchmark.cc": ("patchbay_benchmark(", "_benchmark")}


def main():
    faults = []
    for file in sources.all_files():
        if not file.startswith("tests/"):
            if file.endswith("_test.cc"):
                faults.append(f"{file}: a test outside tests/")
            continue
        for ending, needles in TAKES_IN.items():
            if not file.endswith(ending):
                continue
            lists = sources.ROOT / file.rsplit("/", 1)[0] / "CMakeLists.txt"
            text = lists.read_text(encoding="utf-8") if lists.exists() else ""
            if not any(needle in text for needle in needles):
                faults.append(f"{file}: nothing in {lists.relative_to(sources.ROOT)} runs it")
    sources.finish(faults)


if __name__ == "__main__":
    main()
