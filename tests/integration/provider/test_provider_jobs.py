"""MPIsec's own plug-in for OpenSSL takes the provider like any program."""

import os
import subprocess

import pytest

from mpisec_lab import places

RING = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int has(const char* name) {
    char line[4096];
    int found = 0;
    FILE* maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) found |= strstr(line, name) != NULL;
    if (maps) fclose(maps);
    return found;
}

int main(int argc, char** argv) {
    int rank, n = 300000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int* data = malloc(sizeof(int) * n);
    for (int i = 0; i < n; ++i) data[i] = rank ? 0 : i;
    for (int round = 0; round < 5; ++round)
        if (rank == 0) {
            MPI_Send(data, n, MPI_INT, 1, round, MPI_COMM_WORLD);
            MPI_Send(data, 10, MPI_INT, 1, round, MPI_COMM_WORLD);
        } else {
            MPI_Recv(data, n, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(data, 10, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    int good = 1;
    for (int i = 0; i < n; ++i) good &= data[i] == i;
    printf("rank %d: data %d, provider %d\n", rank, good, has("libmpisec-provider"));
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture
def configuration(tmp_path):
    file = tmp_path / "mpisec.cnf"
    file.write_text(subprocess.run([places.find_mpisec(), "provider"], capture_output=True, text=True, check=True).stdout)
    return {"OPENSSL_CONF": str(file), "MPISEC_PROVIDER_LIBRARY": "all", "MPISEC_CACHE_DIR": str(tmp_path)}


def test_a_job_seals_through_it(compile_mpi, run, configuration):
    """One node with the provider, one without: the bytes are the same."""
    result = run(compile_mpi(RING, "mpich-5"), nodes=2, ranks=2, mpi="mpich-5",
                 env={"MPISEC_AEAD": "openssl:aes-128-gcm"}, node_env={0: configuration})
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["rank 0: data 1, provider 1", "rank 1: data 1, provider 0"]


def test_the_plug_in_seals_and_opens_through_it(configuration):
    done = subprocess.run([places.find_mpisec(), "bench", "crypto", "--libraries", "openssl", "--ciphers", "aes-256-gcm", "--sizes", "16,64K",
                           "--repetitions", "1", "--json"], env=os.environ | configuration, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert os.path.exists(configuration["MPISEC_CACHE_DIR"] + "/provider"), "the provider was not asked for anything"
