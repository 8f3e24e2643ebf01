"""The process of the user's own functions: a worker sends requests of fixed size over descriptor 3, patches lie in the
shared memory of descriptor 4, code and description in the sealed file of descriptor 5."""
import inspect
import json
import mmap
import os
import struct
import sys
import time
import traceback
import types

LINK, MEMORY, SETUP = 3, 4, 5
REQUEST = struct.Struct("<IIQII16Q")  # function, patches, seed, epoch, 0, ordinals
REPLY = struct.Struct("<iIq4080s")  # failed, bytes of text, nanoseconds, text
MAX_TEXT = 4080


def blocks():
    """The pieces of the setup, each after its length."""
    text = os.pread(SETUP, os.fstat(SETUP).st_size, 0)
    at, found = 0, []
    while at < len(text):
        (size,) = struct.unpack_from("<I", text, at)
        found.append(text[at + 4:at + 4 + size])
        at += 4 + size
    return found


def reply(text="", failed=0, cpu_ns=0):
    data = text.encode("utf-8", "replace")[:MAX_TEXT]
    os.write(LINK, REPLY.pack(failed, len(data), cpu_ns, data))


def described(error, file):
    """The exception, and the last line of the user's file on the way to it."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip().replace("\n", " ")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{text[:3000]} ({os.path.basename(file)}:{lines[-1]})" if lines else text[:3000]


class Generator:
    """A numpy.random.Generator that is used again: a new one costs ten times what a new key does."""

    def __init__(self, numpy):
        self._bits = numpy.random.Philox(key=0)
        self._made = numpy.random.Generator(self._bits)
        self._fresh = self._bits.state
        words = self._fresh["state"]
        self._key, self._counter = words["key"], words["counter"]

    def keyed(self, seed, ordinal, epoch, index):
        self._key[0], self._key[1] = seed, ordinal
        self._counter[2], self._counter[3] = epoch, index
        self._bits.state = self._fresh
        return self._made


class Generators:
    """One numpy.random.Generator a patch, keyed when it is asked for: rng[i], or in a loop over image, mask and rng."""

    def __init__(self, pool, seed, epoch, index, ordinals):
        self._pool, self._key = pool, (epoch, index)
        self._seed, self._ordinals, self._made = seed, ordinals, {}

    def __len__(self):
        return len(self._ordinals)

    def __getitem__(self, i):
        if not -len(self._ordinals) <= i < len(self._ordinals):
            raise IndexError(i)
        i %= len(self._ordinals)
        if i not in self._made:
            self._made[i] = self._pool[i].keyed(self._seed, self._ordinals[i], *self._key)
        return self._made[i]

    def __iter__(self):
        return (self[i] for i in range(len(self)))


class Function:
    def __init__(self, described, source):
        self.file, self.name, self.stage, self.options = (described[key] for key in ("file", "name", "at", "options"))
        name = os.path.splitext(os.path.basename(self.file))[0]
        module = types.ModuleType(name)
        module.__file__ = self.file
        sys.modules.setdefault(name, module)
        exec(compile(source, self.file, "exec"), module.__dict__)
        self.call = getattr(module, self.name, None)
        if not callable(self.call):
            raise LookupError(f"{os.path.basename(self.file)} has no function of this name")
        inspect.signature(self.call).bind(image=None, mask=None, rng=None, **self.options)


class Host:
    def __init__(self, setup, sources):
        import numpy
        self.numpy = numpy
        memory = mmap.mmap(MEMORY, 0)
        count, shape = setup["capacity"], setup["shape"]

        def view(dtype, at, shape):
            size = 1
            for side in shape:
                size *= side
            return numpy.frombuffer(memory, dtype, size, at).reshape(shape)

        self.images = {stage: view(setup[stage]["dtype"], setup[stage]["at"], [count, *shape]) for stage in ("pixels", "values")
                       if setup[stage]["at"] >= 0}
        self.mask = None if setup["mask"] < 0 else view("uint8", setup["mask"], [count, *shape[:-1]])
        self.generators = [Generator(numpy) for _ in range(count)]
        self.functions = []
        for each, source in zip(setup["functions"], sources):
            if setup["imports_beside"]:
                sys.path.insert(0, os.path.dirname(each["file"]))
            self.functions.append(Function(each, source))

    def run(self, index, count, seed, epoch, ordinals):
        function = self.functions[index]
        image = self.images[function.stage][:count]
        mask = None if self.mask is None else self.mask[:count]
        rng = Generators(self.generators, seed, epoch, index, ordinals[:count])
        returned = function.call(image=image, mask=mask, rng=rng, **function.options)
        if returned is None or returned is image:
            return
        array = self.numpy.asarray(returned)
        if array.shape != image.shape or array.dtype != image.dtype:
            raise TypeError(f"it returned {array.dtype} of {array.shape}, not {image.dtype} of {image.shape}; "
                            "it may also change `image` in place and return nothing")
        image[...] = array


def load():
    """The host, or None where a function cannot be loaded, which is said."""
    setup, *sources = blocks()[1:]
    setup = json.loads(setup)
    sys.path[:] = [path for path in sys.path if path]
    host = Host.__new__(Host)
    host.functions = []
    try:
        host.__init__(setup, sources)
    except BaseException as error:
        index = min(len(host.functions), len(sources) - 1)
        text = described(error, setup["functions"][index]["file"])
        if isinstance(error, ImportError) and error.name == "numpy":
            text = f"{sys.executable} has no NumPy: {text}"
        reply(json.dumps({"error": text, "function": index}))
        return None
    version = ".".join(map(str, sys.version_info[:3]))
    reply(json.dumps({"python": version, "numpy": host.numpy.__version__}))
    return host


def main():
    host = load()
    while host is not None:
        request = os.read(LINK, REQUEST.size)
        if len(request) != REQUEST.size:
            return
        index, count, seed, epoch, _, *ordinals = REQUEST.unpack(request)
        before = time.process_time_ns()
        try:
            host.run(index, count, seed, epoch, ordinals)
        except BaseException as error:
            reply(described(error, host.functions[index].file), 1, time.process_time_ns() - before)
        else:
            reply(cpu_ns=time.process_time_ns() - before)


main()
