"""attach(device="cuda") and page-locked host rings, on a CUDA device that the CPU plays, up to what a consumer is handed:
DLPack's device and pointer, copies in a stream of its own, and slots that wait for it. Skips where the build has none."""
import textwrap
import unittest

import harness
import trainer_test
from gpu_test import emulated

DRIVER = harness.BIN.parent / "emulated_driver"

# A consumer: the driver API as PyTorch would call it, and the part of torch.cuda that Patchbay looks at.
CONSUMER = """
import ctypes, types, warnings
cuda = ctypes.CDLL("libcuda.so.1")
context, device = ctypes.c_void_p(), int(os.environ.get("CONSUMER_DEVICE", "0"))

def must(code):
    assert code == 0, f"CUDA error {code}"

must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
must(cuda.cuCtxPushCurrent_v2(context))

def new_stream():
    stream = ctypes.c_void_p()
    must(cuda.cuStreamCreate(ctypes.byref(stream), 1))
    return stream

stream = new_stream()
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(
    is_initialized=lambda: True, current_device=lambda: device,
    current_stream=lambda of: types.SimpleNamespace(cuda_stream=stream.value)))

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("axes", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

class Taken:
    '''What from_dlpack makes of an array.'''
    def __init__(self, array, on=None):
        capsule = array.__dlpack__(stream=on)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        self.address = pointer(capsule, b"dltensor")
        self.tensor = Tensor.from_address(self.address)
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        assert rename(capsule, USED) == 0
        self.shape = tuple(self.tensor.shape[:self.tensor.axes])
        self.bytes = array.nbytes

    def __del__(self):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.tensor.deleter)(self.address)

    def queue_copy_out(self, stream):
        '''Queues a copy to page-locked memory; the bytes are there once the stream has passed.'''
        out = ctypes.c_void_p()
        must(cuda.cuMemHostAlloc(ctypes.byref(out), ctypes.c_size_t(self.bytes), 0))
        must(cuda.cuMemcpyDtoHAsync_v2(out, ctypes.c_uint64(self.tensor.data), ctypes.c_size_t(self.bytes), stream))
        return out, self.bytes

USED = b"used_dltensor"

def copied(outs):
    must(cuda.cuStreamSynchronize(stream))
    whole = hashlib.sha256()
    for out, size in outs:
        whole.update(ctypes.string_at(out, size))
    return whole.hexdigest()
"""

HOST_DIGEST = """
    whole = hashlib.sha256()
    with patchbay.attach("run.yaml", cpus=1) as stream:
        for _ in range(2):
            for batch in stream:
                whole.update(bytes(batch["image"]))
    print(whole.hexdigest())
    """


@unittest.skipUnless(emulated(), "this build plays no CUDA device")
class CudaTrainer(trainer_test.ModuleCase):
    def consumer(self, text, devices=1, pace="lazy", **env):
        return self.run_program(CONSUMER + textwrap.dedent(text), PATCHBAY_EMULATED_GPUS=str(devices),
                                PATCHBAY_EMULATED_GPU_PACE=pace, LD_LIBRARY_PATH=str(DRIVER), **env)

    def test_slots_on_a_device_are_handed_out_as_they_are_and_wait_for_the_consumers_stream(self):
        expected = self.run_program(HOST_DIGEST)
        for pace, devices, ordinal in (("lazy", 1, 0), ("random", 2, 1)):
            said = self.consumer("""
                stream_of = patchbay.attach("run.yaml", device=f"cuda:{device}", cpus=1)
                outs, addresses = [], set()
                for _ in range(2):
                    for batch in stream_of:
                        image = batch["image"]
                        assert image.__dlpack_device__() == (2, device) and batch["ordinal"].__dlpack_device__() == (1, 0)
                        taken = Taken(image)
                        t = taken.tensor
                        assert (t.device_type, t.device_id, t.data) == (2, device, image.data_ptr)
                        assert taken.shape == image.shape == (batch.count, 3, 128, 128) and (t.code, t.bits) == (2, 16), (
                            taken.shape, t.code, t.bits)
                        assert batch["ordinal"].tolist() == list(range(batch.index * 16, batch.index * 16 + batch.count))
                        outs.append(taken.queue_copy_out(stream))
                        addresses.add(t.data)
                        del batch, image, taken, t
                assert len(addresses) < len(outs), "slots are used again"
                stats = stream_of.stats()
                assert stats["batches"] == len(outs) and stats["device_bytes"] >= len(addresses) * outs[0][1], stats
                print(copied(outs))
                stream_of.close()
                """, devices=devices, pace=pace, CONSUMER_DEVICE=str(ordinal))
            self.assertEqual(said, expected, pace)
            self.nothing_left()

    def test_ct_patches_of_gpu_workers_are_handed_out_with_five_axes(self):
        made = self.command("synth", "volume", "ct.ome.zarr", "--size", "24x64x48")
        self.assertEqual(made.returncode, 0, made.stderr)
        (self.folder / "run.yaml").write_text(textwrap.dedent("""
            dataset: ct.ome.zarr
            numerics: strict
            seed: 3
            patch: {size: [6, 14, 12]}
            sampling: {positions: random, patches_per_epoch: 12}
            batch: {global_size: 4, dtype: float16, tail: keep}
            preprocess: [{window: {range: [-150, 250]}}]
            augment: [{flip: {axes: [z, y, x]}}, {affine: {p: 0.5, degrees: [-30, 30]}}, {gamma: {p: 0.5}}]
            """))
        expected = self.run_program(HOST_DIGEST)
        (self.folder / "run.yaml").write_text((self.folder / "run.yaml").read_text().replace("strict", "cuda"))
        said = self.consumer("""
            stream_of, outs = patchbay.attach("run.yaml", device="cuda", cpus=1), []
            for _ in range(2):
                for batch in stream_of:
                    taken = Taken(batch["image"])
                    assert taken.shape == batch["image"].shape == (4, 1, 6, 14, 12), taken.shape
                    assert taken.tensor.device_type == 2
                    outs.append(taken.queue_copy_out(stream))
                    del batch, taken
            print(copied(outs))
            """)
        self.assertEqual(said, expected)
        self.nothing_left()

    def test_a_stream_named_to_dlpack_holds_the_slot_too(self):
        expected = self.run_program(HOST_DIGEST)
        said = self.consumer("""
            side, current = stream, new_stream()
            sys.modules["torch"].cuda.current_stream = lambda of: types.SimpleNamespace(cuda_stream=current.value)
            stream_of, outs = patchbay.attach("run.yaml", device="cuda", cpus=1), []
            for _ in range(2):
                for batch in stream_of:
                    outs.append(Taken(batch["image"], on=side.value).queue_copy_out(side))
                    del batch
            print(copied(outs))
            """)
        self.assertEqual(said, expected)

    def test_what_a_device_array_is_not_is_a_buffer_error(self):
        self.consumer("""
            stream_of = patchbay.attach("run.yaml", device="cuda", cpus=1)
            batch = next(iter(stream_of))
            image = batch["image"]
            for wrong in (image.numpy, image.tolist, lambda: memoryview(image), lambda: image[0],
                          lambda: image.__dlpack__(dl_device=(1, 0)), lambda: image.__dlpack__(copy=True)):
                raised(wrong, BufferError)
            raised(lambda: image.__dlpack__(stream=-2), ValueError)
            assert image.__dlpack__(stream=-1) and image.__dlpack__(dl_device=(2, 0))
            held = []
            text = raised(lambda: [held.append(batch) for _ in range(9) for batch in stream_of], patchbay.RingExhausted)
            assert "the batch" in text, text
            """)
        self.nothing_left()

    def test_tensors_of_a_device_outlive_their_stream(self):
        self.consumer("""
            stream_of = patchbay.attach("run.yaml", device="cuda", cpus=1)
            first = stream_of.state_dict()
            batch = next(iter(stream_of))
            taken = Taken(batch["image"])
            del batch
            outs = [taken.queue_copy_out(stream)]
            before = copied(outs)
            stream_of.load_state_dict(first)
            again = next(iter(stream_of))
            assert copied([taken.queue_copy_out(stream)]) == before, "a new place of the stream is a new ring"
            del again
            stream_of.close()
            assert copied([taken.queue_copy_out(stream)]) == before, "the stream was closed"
            del taken
            """, pace="eager")
        self.nothing_left()

    def test_a_host_ring_is_page_locked_and_waits_for_copies_to_the_device(self):
        expected = self.run_program(HOST_DIGEST)
        said = self.consumer("""
            stream_of = patchbay.attach("run.yaml", cpus=1)
            ups, sizes = [], []
            for _ in range(2):
                for batch in stream_of:
                    image = batch["image"]
                    if not ups:
                        text = cuda.cuMemHostRegister_v2(ctypes.c_void_p(image.data_ptr), ctypes.c_size_t(4096), 0)
                        assert text == 712, f"the ring is not page-locked: {text}"
                    up = ctypes.c_uint64()
                    must(cuda.cuMemAlloc_v2(ctypes.byref(up), ctypes.c_size_t(image.nbytes)))
                    must(cuda.cuMemcpyHtoDAsync_v2(up, ctypes.c_void_p(image.data_ptr), ctypes.c_size_t(image.nbytes), stream))
                    ups.append(up)
                    sizes.append(image.nbytes)
                    del batch, image
            outs = []
            for up, size in zip(ups, sizes):
                out = ctypes.c_void_p()
                must(cuda.cuMemHostAlloc(ctypes.byref(out), ctypes.c_size_t(size), 0))
                must(cuda.cuMemcpyDtoHAsync_v2(out, up, ctypes.c_size_t(size), stream))
                outs.append((out, size))
            print(copied(outs))
            """)
        self.assertEqual(said, expected)
        self.nothing_left()

    def test_a_device_that_is_not_there_is_a_device_error_that_says_what_to_do(self):
        self.consumer("""
            text = raised(lambda: patchbay.attach("run.yaml", device="cuda:3"), patchbay.DeviceError)
            assert "this process sees 1 CUDA devices" in text, text
            raised(lambda: patchbay.attach("run.yaml", device="cuda:x"), patchbay.ConfigError)
            raised(lambda: patchbay.attach("run.yaml", device="cuda:-1"), patchbay.ConfigError)
            """)
        self.run_program("""
            text = raised(lambda: patchbay.attach("run.yaml", device="cuda"), patchbay.DeviceError)
            assert "leave `device` out" in text, text
            """, PATCHBAY_EMULATED_GPUS="0", LD_LIBRARY_PATH=str(DRIVER))


if __name__ == "__main__":
    harness.main()
