"""An empty Debian in a directory, as debootstrap makes it, and commands in it with the rights of the lab."""

import os
import shutil
import subprocess
import time
from pathlib import Path

CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


class BareSystem:
    """`packages`: what there is beside the smallest set that debootstrap installs."""

    def __init__(self, root, release, packages=()):
        self.root, self.release = Path(root), release
        include = [f"--include={','.join(packages)}"] if packages else []
        self._must(["debootstrap", "--variant=minbase", *include, release, root])
        self.root.chmod(0o755)
        # How this machine reaches registries, if that takes something.
        for file in (CERTIFICATES, "/etc/resolv.conf", "/etc/hosts"):
            if Path(file).exists():
                target = self.root / file[1:]
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        for file in Path("/etc/apt/apt.conf.d").glob("99*"):
            shutil.copyfile(file, self.root / "etc/apt/apt.conf.d" / file.name)

    @staticmethod
    def _must(command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def copy(self, file, directory="root"):
        """Returns its path inside."""
        shutil.copy(file, self.root / directory)
        return f"/{directory}/{Path(file).name}"

    def __call__(self, line, timeout=600):
        """Runs a line of sh inside, in a mount namespace and PID namespace of its own; returns what it printed."""
        enter = f"""mount --bind {self.root} {self.root} && cd {self.root} && mount -t proc proc proc && mount -t sysfs sysfs sys &&
            mount --rbind /dev dev && mount -t tmpfs tmpfs dev/shm && mount -t tmpfs tmpfs run && pivot_root . mnt && umount -l /mnt && exec sh -ec '{line}'"""
        allowed = {name: value for name, value in os.environ.items() if name.endswith(("_proxy", "_PROXY")) or name in ("PIP_CERT", "PIP_INDEX_URL")}
        environment = allowed | {"HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", enter]
        done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def timed(self, line):
        """(seconds, what it printed)."""
        start = time.monotonic()
        said = self(line)
        return time.monotonic() - start, said

    def remove(self):
        shutil.rmtree(self.root)
