"""What every test gets: a backend, a seed, no network, and a clean Keras.

A file named test_*_tf.py, test_*_jax.py or test_*_torch.py belongs to one backend: on
the others it is not collected. The header says how many files that leaves out.
"""

import importlib.util
import os
import pathlib
import socket
import tempfile

import pytest

TESTS = pathlib.Path(__file__).resolve().parent
PROJECT = TESTS.parent
SUFFIXES = {"_tf": "tensorflow", "_jax": "jax", "_torch": "torch"}
# These check the checkout itself, which is absent where an installed wheel is tested.
CHECKOUT = (PROJECT / "README.md").exists()
CHECKOUT_ONLY = {"test_house.py", "test_readme.py", "examples", "benchmarks", "scripts"}

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if "KERAS_BACKEND" not in os.environ:
    installed = [name for name in SUFFIXES.values() if importlib.util.find_spec(name)]
    os.environ["KERAS_BACKEND"] = installed[0]
# Programs of tests run once or twice: let XLA compile them fast rather than well.
FAST = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false"
)
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FAST}".strip()
# And let JAX compile a program once, though many tests make it.
COMPILED = tempfile.TemporaryDirectory(prefix="kbert-tests-jax-")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", COMPILED.name)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import keras  # noqa: E402  (reads the environment set above)


def other_backend(path: pathlib.Path) -> str | None:
    """The backend that a file belongs to, where it is not the one in use."""
    for suffix, backend in SUFFIXES.items():
        if path.stem.endswith(suffix) and backend != keras.backend.backend():
            return backend
    return None


def pytest_ignore_collect(collection_path):
    of_tests = collection_path.parent == TESTS
    if not CHECKOUT and of_tests and collection_path.name in CHECKOUT_ONLY:
        return True
    return True if other_backend(collection_path) else None


def pytest_collection_modifyitems(items):
    """Measure coverage where it costs least.

    It slows a test by a third. Torch is the fastest, so what runs on all backends is
    measured there, and elsewhere what belongs to one backend.
    """
    for item in items if keras.backend.backend() != "torch" else ():
        if not item.path.stem.endswith(tuple(SUFFIXES)):
            item.add_marker("no_cover")


def pytest_report_header():
    left_out = [other_backend(path) for path in TESTS.rglob("test_*.py")]
    counts = [
        f"{left_out.count(backend)} for {backend}"
        for backend in SUFFIXES.values()
        if backend in left_out
    ]
    told = ", ".join(counts) or "none"
    return f"keras: {keras.backend.backend()}; files of other backends left out: {told}"


@pytest.fixture(scope="session", autouse=True)
def no_network():
    """Let a test reach this machine alone."""
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def check(host):
        host = host.decode() if isinstance(host, bytes) else str(host)
        local = host in ("", "None", "localhost", "::1") or host.startswith("127.")
        if not local:
            raise RuntimeError(f"Tests may not use the network. Received: host={host}.")

    def local_connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            check(address[0])
        return connect(self, address)

    def local_look_up(host, *args, **kwargs):
        check(host)
        return look_up(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", local_connect)
        patch.setattr(socket, "getaddrinfo", local_look_up)
        yield


@pytest.fixture(autouse=True)
def fresh_keras():
    """Start from the same seed, names and policy, whatever ran before."""
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture(scope="session")
def backend() -> str:
    """The name of the backend in use."""
    return keras.backend.backend()


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """The folder of real data and vocabularies that may lie beside the project."""
    folder = PROJECT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the folder shared/ beside the project, which is absent")
    return folder


def other_python(environment: str) -> pathlib.Path:
    """The interpreter of an environment that the Makefile makes."""
    python = PROJECT / environment / "bin" / "python"
    if not python.exists():
        pytest.skip(f"needs {environment}, which `make {environment}/ready` makes")
    return python


@pytest.fixture(scope="session")
def tensorflow_python() -> pathlib.Path:
    """The interpreter of the newest TensorFlow; the running one has it or has not."""
    return other_python(".venv-tensorflow")


@pytest.fixture(scope="session")
def serving_python() -> pathlib.Path:
    """An interpreter with the oldest TensorFlow that exports are made for, alone."""
    return other_python(".venv-serving")
