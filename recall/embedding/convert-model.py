#!/usr/bin/env python3
"""Write all-MiniLM-L6-v2 as ONNX from its safetensors weights.

    convert-model.py model.safetensors model.onnx

Nothing but Python's standard library is used, and the bytes written depend on the weights alone, so that the result has
one SHA-256 on every machine. The graph takes input_ids, attention_mask and token_type_ids, int64 [batch, sequence], and
gives last_hidden_state, float32 [batch, sequence, 384], as the usual exports of this model do; pooling is the caller's.

Matrices stay as the weights file has them, [out, in], and are applied by Gemm with transB, which spares an interpreter of
the graph from turning them round in every run.
"""

import json
import struct
import sys

LAYERS, HEADS, SIZE, VOCABULARY, POSITIONS = 6, 12, 384, 30522, 512
EPSILON = 1e-12
FLOAT, INT64 = 1, 7  # onnx.TensorProto.DataType


# The protobuf wire format, as much as ONNX needs.


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def single(field, f):
    return varint(field << 3 | 5) + struct.pack("<f", f)


def data(field, b):
    if isinstance(b, str):
        b = b.encode()
    return varint(field << 3 | 2) + varint(len(b)) + b


# ONNX.


def tensor(name, kind, dims, raw):
    return b"".join(number(1, d) for d in dims) + number(2, kind) + data(8, name) + data(9, raw)


def attribute(name, value):
    if isinstance(value, float):
        return data(1, name) + single(2, value) + number(20, 1)
    if isinstance(value, int):
        return data(1, name) + number(3, value) + number(20, 2)
    return data(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)


def value_info(name, kind, dims):
    shape = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    return data(1, name) + data(2, data(1, number(1, kind) + data(2, shape)))


class Graph:
    def __init__(self):
        self.nodes, self.initializers = [], []

    def weight(self, name, dims, raw):
        self.initializers.append(tensor(name, FLOAT, dims, raw))
        return name

    def scalar(self, name, f):
        return self.weight(name, [], struct.pack("<f", f))

    def integers(self, name, *values):
        self.initializers.append(tensor(name, INT64, [len(values)], struct.pack(f"<{len(values)}q", *values)))
        return name

    def node(self, op, inputs, output, **attributes):
        parts = [data(1, i) for i in inputs] + [data(2, output), data(3, output), data(4, op)]
        parts += [data(5, attribute(k, v)) for k, v in attributes.items()]
        self.nodes.append(b"".join(parts))
        return output

    def model(self, name, inputs, outputs):
        graph = [data(1, n) for n in self.nodes] + [data(2, name)] + [data(5, i) for i in self.initializers]
        graph += [data(11, i) for i in inputs] + [data(12, o) for o in outputs]
        opset = data(1, "") + number(2, 17)
        return number(1, 8) + data(2, "polyphony") + data(7, b"".join(graph)) + data(8, opset)


def read(path):
    """Return the tensors of a safetensors file as name -> (dims, bytes)."""
    with open(path, "rb") as f:
        content = f.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    base = 8 + length
    tensors = {}
    for name, t in header.items():
        if name == "__metadata__" or t["dtype"] != "F32":
            continue
        begin, end = t["data_offsets"]
        tensors[name] = (t["shape"], content[base + begin : base + end])
    return tensors


def build(tensors):
    g = Graph()

    def weight(name, *dims):
        have, raw = tensors[name]
        if tuple(have) != dims or len(raw) != 4 * prod(dims):
            raise SystemExit(f"{name} is {have}, want {list(dims)}: not all-MiniLM-L6-v2")
        return g.weight(name, dims, raw)

    def linear(x, name, width, inner, out):
        return g.node("Gemm", [x, weight(name + ".weight", width, inner), weight(name + ".bias", width)], out, transB=1)

    def norm(x, name, out):
        inputs = [x, weight(name + ".weight", SIZE), weight(name + ".bias", SIZE)]
        return g.node("LayerNormalization", inputs, out, axis=-1, epsilon=EPSILON)

    # Shapes: batch and sequence are known only when the graph runs.
    shape = g.node("Shape", ["input_ids"], "shape")
    length = g.node("Gather", [shape, g.integers("axis.1", 1)], "length", axis=0)
    by_head = g.node("Concat", [shape, g.integers("heads", HEADS, SIZE // HEADS)], "shape.heads", axis=0)
    by_token = g.node("Concat", [shape, g.integers("size", SIZE)], "shape.tokens", axis=0)
    flat = g.integers("shape.flat", -1, SIZE)

    # Tokens that the mask leaves out get a score so low that softmax gives them nothing.
    mask = g.node("Unsqueeze", ["attention_mask", g.integers("axes.1.2", 1, 2)], "mask.axes")
    mask = g.node("Cast", [mask], "mask.float", to=FLOAT)
    mask = g.node("Sub", [g.scalar("one", 1.0), mask], "mask.inverse")
    mask = g.node("Mul", [mask, g.scalar("low", -10000.0)], "mask")

    words = g.node("Gather", [weight("embeddings.word_embeddings.weight", VOCABULARY, SIZE), "input_ids"], "words")
    types = g.node("Gather", [weight("embeddings.token_type_embeddings.weight", 2, SIZE), "token_type_ids"], "types")
    places = g.node(
        "Slice",
        [weight("embeddings.position_embeddings.weight", POSITIONS, SIZE), g.integers("begin", 0), length, g.integers("axis.0", 0)],
        "places",
    )
    x = g.node("Add", [g.node("Add", [words, types], "words.types"), places], "embedded")
    x = norm(x, "embeddings.LayerNorm", "hidden.tokens")
    x = g.node("Reshape", [x, flat], "hidden.0")

    scale, one = g.scalar("scale", (SIZE // HEADS) ** -0.5), "one"
    root2, half = g.scalar("root2", 2**0.5), g.scalar("half", 0.5)
    for n in range(LAYERS):
        name, to = f"encoder.layer.{n}.", f"layer.{n}."

        def heads(part, order):
            y = linear(x, name + "attention.self." + part, SIZE, SIZE, to + part)
            y = g.node("Reshape", [y, by_head], to + part + ".split")
            return g.node("Transpose", [y], to + part + ".heads", perm=order)

        query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
        scores = g.node("Mul", [g.node("MatMul", [query, key], to + "scores"), scale], to + "scores.scaled")
        share = g.node("Softmax", [g.node("Add", [scores, mask], to + "scores.masked")], to + "share", axis=-1)
        context = g.node("MatMul", [share, value], to + "context.heads")
        context = g.node("Transpose", [context], to + "context.tokens", perm=[0, 2, 1, 3])
        context = g.node("Reshape", [context, flat], to + "context")
        y = linear(context, name + "attention.output.dense", SIZE, SIZE, to + "attention")
        x = norm(g.node("Add", [y, x], to + "attention.sum"), name + "attention.output.LayerNorm", to + "attention.norm")

        y = linear(x, name + "intermediate.dense", 4 * SIZE, SIZE, to + "inner")
        erf = g.node("Erf", [g.node("Div", [y, root2], to + "inner.root2")], to + "inner.erf")
        gate = g.node("Mul", [y, g.node("Add", [erf, one], to + "inner.gate")], to + "inner.gated")
        y = g.node("Mul", [gate, half], to + "gelu")
        y = linear(y, name + "output.dense", SIZE, 4 * SIZE, to + "outer")
        x = norm(g.node("Add", [y, x], to + "outer.sum"), name + "output.LayerNorm", f"hidden.{n + 1}")
    g.node("Reshape", [x, by_token], "last_hidden_state")

    free = ["batch", "sequence"]
    inputs = [value_info(i, INT64, free) for i in ("input_ids", "attention_mask", "token_type_ids")]
    return g.model("all-MiniLM-L6-v2", inputs, [value_info("last_hidden_state", FLOAT, free + [SIZE])])


def prod(dims):
    n = 1
    for d in dims:
        n *= d
    return n


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: convert-model.py model.safetensors model.onnx")
    with open(sys.argv[2], "wb") as f:
        f.write(build(read(sys.argv[1])))


if __name__ == "__main__":
    main()
