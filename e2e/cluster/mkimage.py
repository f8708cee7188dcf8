#!/usr/bin/env python3
"""mkimage.py OUT.tar REF ROOTDIR JSON-CONFIG: packs a folder into an OCI image archive of one layer.

Only the standard library is needed, and the same folder gives the same image: owners and times are left out.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import sys
import tarfile

MEDIA = "application/vnd.oci.image."


def layer_of(root):
    """The folder as a tar archive, sorted."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder, folders, files in os.walk(root):
            folders.sort()
            for name in sorted(folders + files):
                path = os.path.join(folder, name)
                info = tar.gettarinfo(path, os.path.relpath(path, root))
                info.uid = info.gid = info.mtime = 0
                info.uname = info.gname = ""
                if info.isreg():
                    with open(path, "rb") as file:
                        tar.addfile(info, file)
                else:
                    tar.addfile(info)
    return raw.getvalue()


def digest(blob):
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def described(kind, blob, **more):
    """A blob as other blobs refer to it."""
    return {"mediaType": MEDIA + kind, "digest": digest(blob), "size": len(blob), **more}


def main(out, ref, root, config):
    system = {"architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()], "os": "linux"}
    raw = layer_of(root)
    layer = gzip.compress(raw, 1, mtime=0)
    rootfs = {"type": "layers", "diff_ids": [digest(raw)]}
    config = json.dumps({**system, "config": json.loads(config), "rootfs": rootfs}).encode()
    manifest = json.dumps({
        "schemaVersion": 2,
        "mediaType": MEDIA + "manifest.v1+json",
        "config": described("config.v1+json", config),
        "layers": [described("layer.v1.tar+gzip", layer)],
    }).encode()
    names = {"io.containerd.image.name": ref, "org.opencontainers.image.ref.name": ref.rsplit(":", 1)[1]}
    index = json.dumps({
        "schemaVersion": 2,
        "mediaType": MEDIA + "index.v1+json",
        "manifests": [described("manifest.v1+json", manifest, annotations=names, platform=system)],
    }).encode()
    # Under another name until it is complete: an archive that is there is whole.
    with tarfile.open(out + ".part", "w") as tar:
        for name, blob in [("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), ("index.json", index)] + [
            ("blobs/sha256/" + digest(blob).removeprefix("sha256:"), blob) for blob in (config, manifest, layer)
        ]:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(blob), 0o644
            tar.addfile(info, io.BytesIO(blob))
    os.replace(out + ".part", out)
    print(ref, digest(manifest), len(layer))


main(*sys.argv[1:])
