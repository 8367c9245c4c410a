"""Run the suite on each named backend and tell the results and the joint coverage.

`python scripts/run_tests.py tensorflow jax torch`, from the root of the checkout, with
the environments that the Makefile makes. The exit status is 1 where a test failed,
where TensorFlow is installed beside JAX or torch, or where the coverage is too low.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITE_SECONDS = 2400  # a suite that takes so long hangs
# All suites run at once, and each on one thread: suites with as many threads as there
# are cores wait for each other's, and take twice as long.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "NPROC"), "1")
# The first one named has the right of way: TensorFlow's would end minutes after the
# others, with a core idle meanwhile.
BEHIND = ("nice", "-n", "10")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one backend's run of the suite came to."""

    backend: str
    passed: int
    failed: int
    skipped: int
    status: int
    seconds: float

    def __str__(self) -> str:
        """Return the line that the summary shows."""
        counts = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        return f"{self.backend}: {counts}"


def python_of(backend: str) -> str:
    return str(ROOT / f".venv-{backend}" / "bin" / "python")


def has_tensorflow(backend: str) -> bool:
    code = (
        "import importlib.util as u, sys; sys.exit(u.find_spec('tensorflow') is None)"
    )
    return subprocess.run([python_of(backend), "-c", code]).returncode == 0


def run_suite(backend: str, is_first: bool) -> Outcome:
    """Run pytest on one backend; its output is shown when it has ended."""
    report = ROOT / "build" / f"tests-{backend}.xml"
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    environment = {
        **os.environ,
        **ONE_THREAD,
        "KERAS_BACKEND": backend,
        "COVERAGE_FILE": f".coverage.{backend}",
    }
    command = [*BEHIND] * (not is_first)
    command += [python_of(backend), "-m", "pytest", "-q", f"--junitxml={report}"]
    command += ["--cov", "--cov-report=", "--cov-fail-under=0", "--durations=10"]
    start = time.monotonic()
    log = report.with_suffix(".log")
    with log.open("w") as output:
        try:
            status = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=SUITE_SECONDS,
            ).returncode
        except subprocess.TimeoutExpired:
            output.write(f"\nThe suite was ended after {SUITE_SECONDS} s.\n")
            status = 1
    seconds = time.monotonic() - start
    print(f"\n===== the suite on {backend} =====\n{log.read_text()}", flush=True)
    if not report.exists():
        return Outcome(backend, 0, 1, 0, status or 1, seconds)
    suite = xml.etree.ElementTree.parse(report).getroot().find("testsuite")
    counts = {
        key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")
    }
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    return Outcome(backend, passed, failed, counts["skipped"], status, seconds)


def combined_coverage(backends: list[str]) -> tuple[int, str]:
    """Report the coverage of all runs together; return the status and the percent."""
    python = python_of(backends[0])
    files = [f".coverage.{name}" for name in backends]
    files = [name for name in files if (ROOT / name).exists()]
    combine = [python, "-m", "coverage", "combine", "--quiet", "--keep", *files]
    status = subprocess.run(combine, cwd=ROOT).returncode
    report = [python, "-m", "coverage", "report"]
    status = status or subprocess.run(report, cwd=ROOT).returncode
    total = [*report, "--format=total", "--precision=1", "--fail-under=0"]
    percent = subprocess.run(total, cwd=ROOT, capture_output=True, text=True)
    return status, percent.stdout.strip() or "unknown"


def main() -> int:
    """Run what the command line names and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("backends", nargs="+")
    backends = parser.parse_args().backends
    for stale in ROOT.glob(".coverage.*"):
        stale.unlink()
    for backend in backends:
        if backend != "tensorflow" and has_tensorflow(backend):
            print(f".venv-{backend} must not hold TensorFlow. Run `make clean` first.")
            return 1
    print(f"Running the suite on {', '.join(backends)}; logs in build/.", flush=True)
    with concurrent.futures.ThreadPoolExecutor(len(backends)) as pool:
        first = [backend == backends[0] for backend in backends]
        outcomes = list(pool.map(run_suite, backends, first))
    print(f"\n===== coverage over {', '.join(backends)} =====", flush=True)
    coverage_status, percent = combined_coverage(backends)
    print("\n===== summary =====")
    for outcome in outcomes:
        print(f"{outcome.backend} took {outcome.seconds:.0f} s")
    verdict = "too low" if coverage_status else "as high as it must be"
    print(f"coverage over {len(backends)} backends: {percent} %, {verdict}")
    for outcome in outcomes:
        print(outcome)
    return int(coverage_status != 0 or any(o.status != 0 for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())
