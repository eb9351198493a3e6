"""Writes tiny stand-ins for ImageNet's three archives into a folder: two classes, three training images, two to validate."""

import io
import os
import sys
import tarfile
import zlib

CLASSES = ["n00000022", "n00000011"]  # not in the order of their names, as in the real list


def add(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def inner(names):
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w") as archive:
        for name in names:
            add(archive, name, name.encode())
    return memory.getvalue()


folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
with tarfile.open(folder + "/ILSVRC2012_img_train.tar", "w") as train:
    add(train, "n00000011.tar", inner(["n00000011_1.JPEG"]))
    add(train, "n00000022.tar", inner(["n00000022_1.JPEG", "../../n00000022_2.JPEG"]))
with tarfile.open(folder + "/ILSVRC2012_img_val.tar", "w") as val:
    for number in (1, 2):
        add(val, f"ILSVRC2012_val_{number:08d}.JPEG", b"image %d" % number)
body = zlib.compress("".join(f"....{name}...." for name in CLASSES).encode("utf-16-le"))
meta = b"\0" * 128 + (15).to_bytes(4, "little") + len(body).to_bytes(4, "little") + body
with tarfile.open(folder + "/ILSVRC2012_devkit_t12.tar.gz", "w:gz") as devkit:
    add(devkit, "ILSVRC2012_devkit_t12/data/meta.mat", meta)
    add(devkit, "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", b"2\n1\n")
