"""DICOM series of CT, MR and PET, made here: single slices in a file each, or the frames of an enhanced one."""
import struct

PLANE = {"rows": 6, "columns": 5}
CLASSES = {"CT": ("1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.2.1"),
           "MR": ("1.2.840.10008.5.1.4.1.1.4", "1.2.840.10008.5.1.4.1.1.4.1"),
           "PT": ("1.2.840.10008.5.1.4.1.1.128", "1.2.840.10008.5.1.4.1.1.130")}
FORMS = {"US": "<H", "FL": "<f", "FD": "<d"}
LONG = ("OW", "SQ", "UN")
RLE = "1.2.840.10008.1.2.5"


def packed(data):
    """PackBits, as RLE of DICOM has it."""
    out, at = b"", 0
    while at < len(data):
        same = next((n for n in range(1, 128) if data[at + n:at + n + 1] != data[at:at + 1]), 128)
        if same > 2:
            out, at = out + bytes([257 - same, data[at]]), at + same
        else:
            part = data[at:at + 64]
            out, at = out + bytes([len(part) - 1]) + part, at + len(part)
    return out + b"\0" * (len(out) % 2)


def rle(values):
    """A frame of 16 bits in two segments, the high bytes first."""
    parts = [packed(bytes(value >> shift & 255 for value in values)) for shift in (8, 0)]
    return struct.pack("<16I", 2, 64, 64 + len(parts[0]), *[0] * 13) + b"".join(parts)


def fragments(*frames):
    """Pixel data of frames in a fragment each, after an empty offset table."""
    items = [struct.pack("<HHI", 0xFFFE, 0xE000, len(frame)) + frame for frame in (b"", *frames)]
    return struct.pack("<HH", 0x7FE0, 0x0010) + b"OB\0\0\xff\xff\xff\xff" + b"".join(items) + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)


def element(tag, vr, value, implicit=False):
    """One element of little endian; of SQ `value` is a list of items, of numbers one number; without VR all of it."""
    if vr is None:
        return value
    if vr == "SQ":
        items = [b"".join(element(t, *v, implicit) for t, v in sorted(item.items())) for item in value]
        data = b"".join(struct.pack("<HHI", 0xFFFE, 0xE000, len(item)) + item for item in items)
    elif vr in FORMS:
        data = struct.pack(FORMS[vr], value)
    else:
        data = value if isinstance(value, bytes) else str(value).encode()
    data += (b"\0" if vr in ("UI", "OW") else b" ") * (len(data) % 2)
    head = struct.pack("<HH", tag >> 16, tag & 0xFFFF)
    if implicit:
        return head + struct.pack("<I", len(data)) + data
    return head + vr.encode() + (struct.pack("<HI", 0, len(data)) if vr in LONG else struct.pack("<H", len(data))) + data


def write(path, elements, implicit=False, syntax="1.2.840.10008.1.2.1"):
    syntax = element(0x00020010, "UI", "1.2.840.10008.1.2" if implicit else syntax)
    head = element(0x00020000, "UL", struct.pack("<I", len(syntax))) + syntax
    body = b"".join(element(tag, *value, implicit) for tag, value in sorted(elements.items()))
    path.write_bytes(b"\0" * 128 + b"DICM" + head + body)


def stored(slice_number):
    """The values of a slice, row by row."""
    return [(37 * slice_number + 11 * i) % 900 for i in range(PLANE["rows"] * PLANE["columns"])]


def head_of(modality, series, enhanced):
    return {0x00080008: ("CS", "ORIGINAL\\PRIMARY"), 0x00080016: ("UI", CLASSES[modality][enhanced]), 0x00080060: ("CS", modality),
            0x00100010: ("PN", "Doe^Jane"), 0x00100020: ("LO", "4711"), 0x0020000D: ("UI", "1.2.3"), 0x0020000E: ("UI", f"1.2.3.{series}"),
            0x00200052: ("UI", "1.2.9"), 0x00280002: ("US", 1), 0x00280004: ("CS", "MONOCHROME2"), 0x00280010: ("US", PLANE["rows"]),
            0x00280011: ("US", PLANE["columns"]), 0x00280100: ("US", 16), 0x00280101: ("US", 16), 0x00280102: ("US", 15), 0x00280103: ("US", 0)}


def place(k):
    return {0x00200032: ("DS", f"-10\\-12\\{3.0 * k}")}


AXES, STEPS = {0x00200037: ("DS", "1\\0\\0\\0\\1\\0")}, {0x00280030: ("DS", "2\\2")}


def rescale(slope, intercept):
    return {0x00281052: ("DS", intercept), 0x00281053: ("DS", slope)}


def words(values):
    return "OW", struct.pack(f"<{len(values)}H", *values)


def single(folder, modality, series, per_slice=lambda k: {}, slices=4, implicit=False, at=lambda k: k, pixels=words, **more):
    """A file a slice; `more` and per_slice(k) are further elements, at(k) is its place, pixels(values) its pixel data."""
    folder.mkdir(parents=True)
    for k in range(slices):
        data = pixels(stored(k))
        write(folder / f"IM{k}.dcm", {**head_of(modality, series, False), 0x00200013: ("IS", k + 1), **place(at(k)), **AXES, **STEPS,
                                      **more.get("elements", {}), **per_slice(k), 0x7FE00010: data}, implicit,
              **({"syntax": RLE} if data[0] is None else {}))


def enhanced(folder, modality, series, per_frame=lambda k: {}, elements=None, order=(2, 0, 3, 1), at=lambda k: k):
    """One file, whose frames lie in another order than in the patient, frame k at at(k); per_frame(k): further functional groups."""
    folder.mkdir(parents=True)
    groups = [{0x00209113: ("SQ", [place(at(k))]), **per_frame(k)} for k in order]
    shared = {0x00209116: ("SQ", [AXES]), 0x00289110: ("SQ", [STEPS])}
    values = [v for k in order for v in stored(k)]
    write(folder / "frames.dcm", {**head_of(modality, series, True), 0x00280008: ("IS", len(order)), 0x52009229: ("SQ", [shared]),
                                  0x52009230: ("SQ", groups), **(elements or {}), 0x7FE00010: ("OW", struct.pack(f"<{len(values)}H", *values))})
