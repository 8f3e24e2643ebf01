"""The GPU code inside programs: which architectures, and what each kernel takes.

    python3 deploy/gpu_kit/device_code.py [--require 80,86,89,90,ptx90] PROGRAM...

Prints one line of JSON: {"architectures": [...], "kernels": {name: {"sm_80": {"registers": n, "stack_bytes": n,
"shared_bytes": n}, ...}}}. Exit code 1 where a program lacks what is required or loads CUDA's runtime as a library.
Registers, stack and static shared memory are those that the assembler wrote down (.nv.info, .nv.shared.*).
"""
import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys

FATBIN = struct.pack("<IHH", 0xBA55ED50, 1, 16)
PTX, ELF = 1, 2
SHT_NOBITS, SYMBOL_BYTES = 8, 24
VALUE_FOLLOWS, STACK, REGISTERS = 4, 0x12, 0x2F  # fields of an entry of .nv.info: the form, the attributes
ENTRY = "<HHIQIIHHI"  # kind, version, header bytes, payload bytes, compressed bytes, -, minor, major, architecture


def images_of(program):
    """(kind, architecture, bytes) of everything that fat binaries in a file hold."""
    text = program.read_bytes()
    for found in re.finditer(re.escape(FATBIN), text):
        at = found.start() + 16
        end = at + struct.unpack_from("<Q", text, found.start() + 8)[0]
        while at < end <= len(text):
            kind, _, header, payload, compressed, _, _, _, arch = struct.unpack_from(ENTRY, text, at)
            if header == 0 or compressed:
                raise SystemExit(f"device_code: {program}: a fat binary that is compressed or damaged at byte {at}")
            yield kind, arch, text[at + header:at + header + payload]
            at += header + payload


def sections_of(elf):
    """{name: (type, info, bytes in the file, size)} of a 64-bit little-endian ELF."""
    start, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, start + i * size) for i in range(count)]
    strings = headers[names][4]
    found = {}
    for name, kind, _, _, offset, length, _, info, _, _ in headers:
        end = elf.index(b"\0", strings + name)
        found[elf[strings + name:end].decode()] = kind, info, b"" if kind == SHT_NOBITS else elf[offset:offset + length], length
    return found


def attributes_of(sections):
    """{attribute: {symbol: value}} of the whole image (.nv.info)."""
    info, at, found = sections.get(".nv.info", (0, 0, b"", 0))[2], 0, {}
    while at + 4 <= len(info):
        form, attribute, length = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == VALUE_FOLLOWS:
            if length == 8:
                symbol, value = struct.unpack_from("<II", info, at)
                found.setdefault(attribute, {})[symbol] = value
            at += length
    return found


def kernels_of(elf):
    """{mangled name: figures} of one image."""
    sections = sections_of(elf)
    attributes = attributes_of(sections)
    symbols, strings = sections[".symtab"][2], sections[".strtab"][2]
    found = {}
    for symbol, registers in attributes.get(REGISTERS, {}).items():
        name, = struct.unpack_from("<I", symbols, symbol * SYMBOL_BYTES)
        name = strings[name:strings.index(b"\0", name)].decode()
        if f".nv.constant0.{name}" in sections:  # a kernel, and no function that kernels call
            found[name] = {"registers": registers, "stack_bytes": attributes.get(STACK, {}).get(symbol, 0),
                           "shared_bytes": sections.get(f".nv.shared.{name}", (0, 0, b"", 0))[3]}
    return found


def plain(names):
    """{mangled: as in the source, without namespaces and arguments}."""
    said = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    found = {}
    for mangled, text in zip(names, said):
        kernel = re.search(r"(\w+Kernel(?:<[^>]*>)?)\(", text)
        found[mangled] = kernel[1] if kernel else text
    return found


def look_at(programs):
    architectures, kernels = set(), {}
    for program in programs:
        for kind, arch, image in images_of(program):
            architectures.add(f"ptx{arch}" if kind == PTX else str(arch))
            if kind == ELF:
                for name, figures in kernels_of(image).items():
                    kernels.setdefault(name, {})[f"sm_{arch}"] = figures
    names = plain(sorted(kernels))
    return sorted(architectures), {names[mangled]: kernels[mangled] for mangled in sorted(kernels, key=names.get)}


def refusal_of(program, required):
    found = {f"ptx{arch}" if kind == PTX else str(arch) for kind, arch, _ in images_of(program)}
    if missing := [arch for arch in required if arch not in found]:
        return f"{program.name}: has no GPU code for {', '.join(missing)}; has {', '.join(sorted(found)) or 'none'}"
    loaded = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    if "libcudart" in loaded:
        return f"{program.name}: loads libcudart.so, which a machine with a driver alone does not have"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--require", default="")
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    asked = parser.parse_args()
    required = [arch for arch in asked.require.split(",") if arch]
    refused = [text for program in asked.programs if (text := refusal_of(program, required))]
    if refused:
        sys.exit("\n".join(f"device_code: {text}" for text in refused))
    architectures, kernels = look_at(asked.programs)
    print(json.dumps({"architectures": architectures, "kernels": kernels}))


if __name__ == "__main__":
    main()
