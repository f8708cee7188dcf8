"""Pieces of content, made here so that none has to be kept as a file."""

import base64
import struct
import zlib

import mcp_types as types


def png():
    """A red pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff\0\0")
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


def wav():
    """A millisecond of silence."""
    samples = b"\x80" * 8
    form = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    body = b"WAVE" + form + b"data" + struct.pack("<I", len(samples)) + samples
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


def text(words):
    return types.TextContent(type="text", text=words)


def image():
    return types.ImageContent(type="image", data=png(), mime_type="image/png")


def sound():
    return types.AudioContent(type="audio", data=wav(), mime_type="audio/wav")


def embedded(uri, mime_type, words):
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    return types.EmbeddedResource(type="resource", resource=contents)
