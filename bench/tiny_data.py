"""Data sets of a few samples in the formats that configs name, written without any library."""

import json
import math
import pathlib
import random
import struct
import wave
import zlib


def cifar10(folder):
    """Six .bin files of 40 images, each a label and 3072 random bytes."""
    rng = random.Random(1)
    for name in [f"data_batch_{n}.bin" for n in range(1, 6)] + ["test_batch.bin"]:
        images = b"".join(bytes([n % 10]) + rng.randbytes(3072) for n in range(40))
        write(folder, name, images)


def fashion_mnist(folder):
    """idx files of 80 training and 20 test images of 28 x 28."""
    rng = random.Random(2)
    for part, count in (("train", 80), ("t10k", 20)):
        write(folder, f"{part}-images-idx3-ubyte", struct.pack(">4I", 0x803, count, 28, 28) + rng.randbytes(count * 784))
        write(folder, f"{part}-labels-idx1-ubyte", struct.pack(">2I", 0x801, count) + bytes(n % 10 for n in range(count)))


def image_folder(folder):
    """PNG images of 40 x 36 pixels: two classes, 12 to train on and 4 to validate."""
    rng = random.Random(3)
    for part, count in (("train", 6), ("val", 2)):
        for kind in ("cat", "dog"):
            for number in range(count):
                write(folder / part / kind, f"{number}.png", png(40, 36, rng))


def png(width, height, rng):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + rng.randbytes(3 * width) for _ in range(height))
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def text(folder):
    """train.txt, valid.txt and test.txt: sentences of words w0 to w49, all of them in train.txt."""
    rng = random.Random(4)
    for part, sentences in (("train", 300), ("valid", 40), ("test", 40)):
        lines = [" ".join(f"w{rng.randrange(50)}" for _ in range(rng.randrange(3, 12))) for _ in range(sentences)]
        if part == "train":
            lines.append(" ".join(f"w{n}" for n in range(50)))
        write(folder, f"{part}.txt", ("\n".join(lines) + "\n").encode())


def speech_manifest(folder):
    """24 recordings of tones to train on and 6 to test, 8 kHz, a tone a letter."""
    rng = random.Random(5)
    for part, count in (("train", 24), ("test", 6)):
        lines = []
        for number in range(count):
            said = "".join(rng.choice("AB") for _ in range(rng.randrange(2, 7)))
            record(folder / f"{part}{number}.wav", said, 8000)
            lines.append(json.dumps({"path": f"{part}{number}.wav", "text": said}))
        write(folder, f"{part}.jsonl", ("\n".join(lines) + "\n").encode())


def an4(folder):
    """The layout of AN4 with as many recordings as speech_manifest, 16 kHz."""
    rng = random.Random(6)
    for part, count in (("train", 24), ("test", 6)):
        names, transcripts = [], []
        for number in range(count):
            said = "".join(rng.choice("AB") for _ in range(rng.randrange(2, 7)))
            name = f"an4_clstk/s{number}" if part == "train" else f"an4test_clstk/s{number}"
            record(folder / "wav" / f"{name}.wav", said, 16000)
            names.append(name)
            transcripts.append(f"{said} (s{number})")
        write(folder / "etc", f"an4_{part}.fileids", ("\n".join(names) + "\n").encode())
        write(folder / "etc", f"an4_{part}.transcription", ("\n".join(transcripts) + "\n").encode())


def librispeech(folder):
    """One chapter to train on and one to test, WAV under the name of FLAC: readers look at the contents."""
    rng = random.Random(7)
    for part, count in (("train-clean-100", 24), ("test-clean", 6)):
        lines = []
        for number in range(count):
            said = "".join(rng.choice("AB") for _ in range(rng.randrange(2, 7)))
            record(folder / part / "1" / "2" / f"1-2-{number:04d}.flac", said, 16000)
            lines.append(f"1-2-{number:04d} {said}")
        write(folder / part / "1" / "2", "1-2.trans.txt", ("\n".join(lines) + "\n").encode())


def record(path, said, rate):
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = []
    for letter in said:
        tone = 400 if letter == "A" else 1300
        samples += [int(9000 * math.sin(2 * math.pi * tone * n / rate)) for n in range(rate // 8)] + [0] * (rate // 40)
    write_sound(path, rate, struct.pack(f"<{len(samples)}h", *samples))


def write_sound(path, rate, samples):
    """A WAV file of 16-bit samples, which are bytes here."""
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(samples)


def write(folder, name, data):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def make_all(root):
    """Every set above into root/NAME."""
    for make in (cifar10, fashion_mnist, image_folder, text, speech_manifest, an4, librispeech):
        make(pathlib.Path(root) / make.__name__)
