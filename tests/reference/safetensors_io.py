"""The safetensors format in a few lines: 8 bytes of header length, a JSON header, then the tensors' bytes."""

import array
import json
import struct

import torch

CODES = {"F32": ("f", torch.float32), "F64": ("d", torch.float64), "I64": ("q", torch.int64), "I32": ("i", torch.int32)}


def save(path, tensors):
    """tensors: {name: tensor}; floating-point ones are stored as F32, others as I64."""
    header, blobs, at = {}, [], 0
    for name, tensor in tensors.items():
        code = "F32" if tensor.is_floating_point() else "I64"
        blob = array.array(CODES[code][0], tensor.detach().reshape(-1).tolist()).tobytes()
        header[name] = {"dtype": code, "shape": list(tensor.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    start = 8 + length
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (start + offset for offset in entry["data_offsets"])
        values = array.array(CODES[entry["dtype"]][0])
        values.frombytes(data[begin:end])
        dtype = CODES[entry["dtype"]][1]
        flat = torch.frombuffer(values, dtype=dtype).clone() if len(values) else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors
