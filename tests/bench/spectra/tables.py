"""What spectra_bench.py prints of its figures."""


def show(figures, options, study_gpx, study_s, floor_us):
    slide, rows = figures["slide"], figures["contenders"]
    gpx = slide["width"] * slide["height"] / 1e9
    print(f"{slide['width']} x {slide['height']} pixels ({gpx:.3f} Gpx), {slide['frames']} frames; "
          f"medians of {options.repeat} rounds, page cache warm")
    show_times(rows, options.cores, gpx, study_gpx)
    show_reasons(rows, options.disk)
    show_study(rows, options.cores, gpx, study_gpx, study_s)
    show_goals(figures, floor_us)


def show_times(rows, cores, gpx, study_gpx):
    print("\n| contender | " + " | ".join(f"{n} core{'s' if n > 1 else ''}, s | processor s | Gpx/s" for n in cores)
          + f" | NumPy's time by its | NumPy's processor time by its | s for {study_gpx} Gpx |")
    print("| --- |" + " --- | --- | --- |" * len(cores) + " --- | --- | --- |")
    last, first = cores[-1], next((r for r in rows if r["name"] == "NumPy"), None)
    for row in rows:
        cells = [f"{row[f'wall_s_{n}']:.2f} | {row[f'cpu_s_{n}']:.2f} | {gpx / row[f'wall_s_{n}']:.3f}" for n in cores]
        ratios = [f"{first[f'{k}_s_{last}'] / row[f'{k}_s_{last}']:.1f}x" if first else "" for k in ("wall", "cpu")]
        print(f"| {row['name']} | {' | '.join(cells)} | {' | '.join(ratios)} | {row[f'wall_s_{last}'] * study_gpx / gpx:.1f} |")


def show_reasons(rows, disk):
    print(f"\n| contender | pixels copied | peak memory | read | in reads, warm | on a {disk:.0f} MB/s disk | in reads there |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        copied = "see README" if row["name"].startswith("patchbay") else "not counted"
        if row["copied_bytes"] is not None:
            copied = f"{row['copied_bytes'] / 1e9:.2f} GB"
        slowed = f"{row['slowed_wall_s']:.2f} s | {row['slowed_waited_s']:.2f} s" if "slowed_wall_s" in row else " | "
        print(f"| {row['name']} | {copied} | {row['peak_bytes'] / 1e6:.0f} MB | {row['read_bytes'] / 1e6:.0f} MB | "
              f"{row['waited_s']:.2f} s | {slowed} |")


def show_study(rows, cores, gpx, study_gpx, study_s):
    """The study's seconds an image beside ours for as many pixels."""
    here = " | ".join(f"here, {n} core{'s' if n > 1 else ''}" for n in cores)
    print(f"\n| architecture | study, 1 A40 | study, 4 A40 | {here} | step gains |")
    print("| --- | --- | --- |" + " --- |" * len(cores) + " --- |")
    before = None
    for row in rows:
        if row["name"].startswith("NumPy"):
            continue
        seconds = [row[f"wall_s_{n}"] * study_gpx / gpx for n in cores]
        study = study_s.get(row["name"], ("", ""))
        gain = f"{before / seconds[-1]:.2f}x" if before else ""
        print(f"| {row['name']} | {study[0]} | {study[1]} | " + " | ".join(f"{s:.2f}" for s in seconds) + f" | {gain} |")
        before = seconds[-1]


def show_goals(figures, floor_us):
    floor = figures["floor"]
    rows = {row["name"]: row for row in figures["contenders"]}
    parts = {k: floor[k] for k in floor_us}
    here, named = sum(parts.values()), sum(floor_us.values())
    print("\nalone, us a frame and core: " + ", ".join(f"{k[:-3]} {v:.1f}" for k, v in parts.items())
          + f"; together {here:.1f} (goal set on {named}); the op over grey pixels {floor['op_us']:.1f}")
    for name in ("patchbay, slide", "patchbay, store"):
        row = rows.get(name)
        if row is None or "wall_s_2" not in row:
            continue
        taken = row["wall_s_2"] * 2 / floor["frames"] * 1e6
        line = f"{name}: {taken:.1f} us a frame and core"
        busy = row["cpu_s_2"] / floor["frames"] * 1e6
        if name.endswith("slide"):
            line += (f", {here / taken:.2f} of what the parts alone allow ({named / taken:.2f} by the figures named; goal 0.75); "
                     f"{busy:.1f} us of processor, {here / busy:.2f} of theirs")
        for peer in ("NumPy", "NumPy, SciPy's FFT, OpenCV", "A", "B", "B+", "B+, our tiles"):
            if peer in rows:
                line += f"; {rows[peer]['wall_s_2'] / row['wall_s_2']:.2f}x {peer}"
        free = figures["unpinned_one_worker_s"].get(name)
        line += f"; two workers {free / row['wall_s_2']:.2f}x one (goal 1.9)" if free else ""
        print(line)
