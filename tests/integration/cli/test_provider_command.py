"""mpisec provider: what it prints enables the provider."""

import os
import shutil
import subprocess

import pytest
from mpisec_program import mpisec, program  # noqa: F401 (fixtures)


def test_the_path_is_that_of_the_module(mpisec):
    ran = mpisec("provider", "--path")
    assert ran.returncode == 0 and os.path.exists(ran.stdout.strip()), ran.stderr


def test_openssl_takes_the_configuration(mpisec, tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl command")
    configuration = tmp_path / "mpisec.cnf"
    configuration.write_text(mpisec("provider").stdout)
    done = subprocess.run(["openssl", "list", "-providers"], env=os.environ | {"OPENSSL_CONF": str(configuration), "MPISEC_CACHE_DIR": str(tmp_path)},
                          capture_output=True, text=True, timeout=60, check=False)
    assert "name: MPIsec" in done.stdout, done.stdout + done.stderr
